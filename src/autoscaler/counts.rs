//! What is known of the topics, over many answers of many brokers.
//!
//! Brokers lag one another, so a single answer proves little: for one topic id a count never goes down, and a topic that was
//! there is not gone because one broker does not know it. Another topic id is a recreated topic.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::kafka::port::{Observation, TopicError, TopicId, TopicState};

/// A topic that was there is taken as deleted after this time without an answer that shows it.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// What one observation changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A topic is seen for the first time (after the first observation) or again after it was gone.
    Appeared {
        /// Full topic name.
        topic: String,
        /// Its count.
        partitions: u32,
    },
    /// More partitions than before, same topic.
    Grew {
        /// Full topic name.
        topic: String,
        /// Count before.
        from: u32,
        /// Count now.
        to: u32,
    },
    /// The name belongs to another topic now.
    Recreated {
        /// Full topic name.
        topic: String,
        /// Count of the topic that had the name before.
        from: u32,
        /// Count now.
        to: u32,
    },
    /// No broker has shown the topic for a while.
    Gone {
        /// Full topic name.
        topic: String,
    },
}

impl News {
    /// The topic it is about.
    pub fn topic(&self) -> &str {
        match self {
            Self::Appeared { topic, .. } | Self::Grew { topic, .. } | Self::Recreated { topic, .. } | Self::Gone { topic } => {
                topic
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Known {
    id: Option<TopicId>,
    partitions: u32,
    /// When answers began to say that the topic does not exist.
    missing_since: Option<Duration>,
}

/// Topics by full name with the best count known.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    known: BTreeMap<String, Known>,
    /// Ids of topics that were replaced: an answer that shows one comes from a broker that lags.
    retired: BTreeSet<TopicId>,
    /// Topics whose count could not be read in the latest answer.
    failed: BTreeMap<String, TopicError>,
    observed_once: bool,
}

impl Counts {
    /// Takes in one answer and tells what it changed.
    pub fn merge(&mut self, now: Duration, seen: &Observation) -> Vec<News> {
        let mut news = Vec::new();
        for (topic, state) in seen {
            if !matches!(state, TopicState::Failed(_)) {
                self.failed.remove(topic);
            }
            match state {
                TopicState::Present { id, partitions } => news.extend(self.present(topic, *id, *partitions)),
                TopicState::Missing => news.extend(self.missing(now, topic)),
                TopicState::Failed(error) => {
                    self.failed.insert(topic.clone(), error.clone());
                }
            }
        }
        self.observed_once = true;
        news
    }

    fn present(&mut self, topic: &str, id: Option<TopicId>, partitions: u32) -> Option<News> {
        if partitions == 0 || id.is_some_and(|id| self.retired.contains(&id)) {
            return None;
        }
        let topic = topic.to_owned();
        let Some(known) = self.known.get_mut(&topic) else {
            self.known.insert(topic.clone(), Known { id, partitions, missing_since: None });
            return self.observed_once.then_some(News::Appeared { topic, partitions });
        };
        known.missing_since = None;
        let from = known.partitions;
        match (known.id, id) {
            (Some(old), Some(new)) if old != new => {
                self.retired.insert(old);
                *known = Known { id, partitions, missing_since: None };
                Some(News::Recreated { topic, from, to: partitions })
            }
            _ => {
                known.id = known.id.or(id);
                (partitions > from).then(|| {
                    known.partitions = partitions;
                    News::Grew { topic, from, to: partitions }
                })
            }
        }
    }

    fn missing(&mut self, now: Duration, topic: &str) -> Option<News> {
        let known = self.known.get_mut(topic)?;
        let since = *known.missing_since.get_or_insert(now);
        if now.saturating_sub(since) < GONE_AFTER {
            return None;
        }
        self.known.remove(topic);
        Some(News::Gone { topic: topic.to_owned() })
    }

    /// Best known count of every topic that exists, by full name.
    pub fn partitions(&self) -> BTreeMap<String, u32> {
        self.known.iter().map(|(topic, known)| (topic.clone(), known.partitions)).collect()
    }

    /// Ids of the topics that exist, where the broker tells.
    pub fn ids(&self) -> BTreeMap<String, TopicId> {
        self.known.iter().filter_map(|(topic, known)| Some((topic.clone(), known.id?))).collect()
    }

    /// Best known count of one topic.
    pub fn get(&self, topic: &str) -> Option<u32> {
        self.known.get(topic).map(|known| known.partitions)
    }

    /// Topics whose count the latest answer could not tell, with the reason.
    pub fn failed(&self) -> &BTreeMap<String, TopicError> {
        &self.failed
    }

    /// Topics whose count was never known because the broker would not tell it.
    pub fn unreadable(&self) -> impl Iterator<Item = (&String, &TopicError)> {
        self.failed.iter().filter(|(topic, _)| !self.known.contains_key(*topic))
    }

    /// Forgets topics that are no longer of interest.
    pub fn retain(&mut self, watched: &BTreeSet<String>) {
        self.known.retain(|topic, _| watched.contains(topic));
        self.failed.retain(|topic, _| watched.contains(topic));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(states: &[(&str, TopicState)]) -> Observation {
        states.iter().map(|(topic, state)| ((*topic).to_owned(), state.clone())).collect()
    }

    fn present(id: u128, partitions: u32) -> TopicState {
        TopicState::Present { id: Some(TopicId(id)), partitions }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn smaller_zero_and_unknown_are_not_news() {
        let mut counts = Counts::default();
        counts.merge(SECOND, &seen(&[("orders", present(1, 6))]));
        for state in [present(1, 3), present(1, 0), TopicState::Missing] {
            assert_eq!(counts.merge(SECOND, &seen(&[("orders", state)])), []);
            assert_eq!(counts.get("orders"), Some(6));
        }
    }

    #[test]
    fn growth_is_news_once() {
        let mut counts = Counts::default();
        assert_eq!(counts.merge(SECOND, &seen(&[("orders", present(1, 3))])), [], "the first sight of a topic is no change");
        let grew = News::Grew { topic: "orders".into(), from: 3, to: 6 };
        assert_eq!(counts.merge(SECOND, &seen(&[("orders", present(1, 6))])), [grew]);
        assert_eq!(counts.merge(SECOND, &seen(&[("orders", present(1, 6))])), []);
    }

    #[test]
    fn another_id_is_another_topic_even_if_a_lagging_broker_still_shows_the_old_one() {
        let mut counts = Counts::default();
        counts.merge(SECOND, &seen(&[("orders", present(1, 6))]));
        let recreated = News::Recreated { topic: "orders".into(), from: 6, to: 2 };
        assert_eq!(counts.merge(SECOND, &seen(&[("orders", present(2, 2))])), [recreated]);
        assert_eq!(counts.merge(SECOND, &seen(&[("orders", present(1, 6))])), []);
        assert_eq!(counts.get("orders"), Some(2));
    }

    #[test]
    fn a_topic_is_gone_only_after_a_while() {
        let mut counts = Counts::default();
        counts.merge(SECOND, &seen(&[("orders", present(1, 6))]));
        assert_eq!(counts.merge(2 * SECOND, &seen(&[("orders", TopicState::Missing)])), []);
        assert_eq!(counts.merge(11 * SECOND, &seen(&[("orders", TopicState::Missing)])), []);
        assert_eq!(counts.merge(12 * SECOND, &seen(&[("orders", TopicState::Missing)])), [News::Gone { topic: "orders".into() }]);
        assert_eq!(counts.get("orders"), None);
    }

    #[test]
    fn a_count_that_may_not_be_read_is_neither_zero_nor_missing() {
        let denied = TopicError { code: 29, name: "TOPIC_AUTHORIZATION_FAILED".into(), message: "no".into() };
        let mut counts = Counts::default();
        counts.merge(SECOND, &seen(&[("orders", present(1, 6)), ("users", TopicState::Failed(denied.clone()))]));
        assert_eq!(counts.unreadable().collect::<Vec<_>>(), [(&"users".to_owned(), &denied)]);
        counts.merge(SECOND, &seen(&[("orders", TopicState::Failed(denied)), ("users", present(2, 3))]));
        assert_eq!(counts.get("orders"), Some(6));
        assert_eq!(counts.unreadable().count(), 0);
        assert_eq!(counts.failed().len(), 1);
    }
}
