//! Why a topic gets its count: the chain from the input to the topic.
#![allow(clippy::indexing_slicing, reason = "indices of topics and subtopologies are made by Model::compile")]

use std::collections::VecDeque;

use super::counts::{BASE, NOW};
use super::model::Model;
use super::worlds::{Facts, Trial};

/// Links that are spelled out in a chain, beside its beginning.
const MAX_LINKS: usize = 6;

/// Where the present count of each repartition topic comes from.
pub(crate) struct Reasons<'a> {
    model: &'a Model,
    facts: &'a Facts,
    trial: &'a Trial,
    links: Vec<Option<Link>>,
}

/// A subtopology writes the topic, and this source of it has that count.
#[derive(Clone, Copy)]
struct Link {
    subtopology: usize,
    source: usize,
    /// The input or pinned topic in which the chain begins.
    root: usize,
    /// Number of links from there.
    length: usize,
}

impl<'a> Reasons<'a> {
    /// Finds the shortest chain to each topic.
    pub fn of(model: &'a Model, facts: &'a Facts, trial: &'a Trial) -> Self {
        let mut reasons = Self { model, facts, trial, links: vec![None; model.topics.len()] };
        let roots = (0..model.topics.len()).filter(|&topic| reasons.is_root(topic));
        let mut open: VecDeque<(usize, usize, usize)> = roots.map(|topic| (topic, topic, 1)).collect();
        while let Some((source, root, length)) = open.pop_front() {
            let count = reasons.computed(source);
            for &subtopology in &model.topics[source].readers {
                for &sink in &model.subtopologies[subtopology].sinks {
                    if reasons.links[sink].is_none() && !reasons.is_root(sink) && reasons.computed(sink) == count {
                        reasons.links[sink] = Some(Link { subtopology, source, root, length });
                        open.push_back((sink, root, length + 1));
                    }
                }
            }
        }
        reasons
    }

    fn is_root(&self, topic: usize) -> bool {
        !self.model.topics[topic].repartition || self.trial.pins[topic] > 0
    }

    /// The count that is downstream reckoned with: before copartition groups are enforced.
    fn computed(&self, topic: usize) -> u32 {
        if self.model.topics[topic].repartition { self.trial.settled.computed[topic][NOW] } else { self.facts.inputs[topic][NOW] }
    }

    /// The count once copartition groups are enforced.
    fn count(&self, topic: usize) -> u32 {
        if self.model.topics[topic].repartition { self.trial.settled.counts[topic][NOW] } else { self.facts.inputs[topic][NOW] }
    }

    /// Why a repartition topic gets its count.
    pub fn repartition(&self, topic: usize) -> Vec<String> {
        let name = &self.model.topics[topic].name;
        let count = self.count(topic);
        if count == self.computed(topic) {
            return self.chain(topic);
        }
        let partner = self.model.groups.iter().rev().filter(|group| group.contains(&topic)).flatten().copied();
        let same = |other: &usize| {
            *other != topic && (self.is_root(*other) || self.computed(*other) == count) && self.count(*other) == count
        };
        let partner = partner.filter(same).min_by_key(|&other| self.model.topics[other].repartition);
        match partner {
            Some(partner) => {
                let mut chain = self.chain(partner);
                chain.push(format!("{name} is copartitioned with {} -> {count}", self.model.topics[partner].name));
                chain
            }
            None => vec![format!("the copartition groups of {name} ask for {count}")],
        }
    }

    /// Why a changelog gets its count.
    pub fn changelog(&self, subtopology: usize) -> Vec<String> {
        let tasks = self.trial.settled.tasks[subtopology];
        let sources = self.model.subtopologies[subtopology].sources.iter().copied();
        let widest =
            sources.filter(|&topic| self.count(topic) == tasks).min_by_key(|&topic| self.model.topics[topic].repartition);
        let mut chain = match widest {
            Some(topic) if self.model.topics[topic].repartition => self.repartition(topic),
            Some(topic) => self.chain(topic),
            None => Vec::new(),
        };
        chain.push(format!(
            "subtopology {} has {tasks} tasks, its changelogs one partition for each -> {tasks}",
            self.id(subtopology)
        ));
        chain
    }

    fn chain(&self, topic: usize) -> Vec<String> {
        let mut steps = Vec::new();
        let mut at = topic;
        while let Some(link) = self.links[at] {
            if steps.len() == MAX_LINKS {
                steps.push(format!("({} more steps)", link.length));
                at = link.root;
                break;
            }
            let topics = &self.model.topics;
            steps.push(format!(
                "subtopology {} reads {} and writes {} -> {}",
                self.id(link.subtopology),
                topics[link.source].name,
                topics[at].name,
                self.computed(at)
            ));
            at = link.source;
        }
        steps.push(self.beginning(at));
        steps.reverse();
        steps
    }

    fn beginning(&self, topic: usize) -> String {
        let name = &self.model.topics[topic].name;
        let now = self.computed(topic);
        match self.facts.inputs[topic][BASE] {
            _ if self.trial.pins[topic] > 0 => format!("{name} is pinned to {now}"),
            before if before > 0 && before != now => format!("{name} {before} -> {now}"),
            _ => format!("{name} {now}"),
        }
    }

    fn id(&self, subtopology: usize) -> &str {
        &self.model.subtopologies[subtopology].id
    }
}
