//! A cluster in memory, for tests of what drives a [`Cluster`]: it can be made to answer anything at any moment.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::port::{Cluster, Group, KafkaError, Observation, Reply, TopicId, TopicState};

/// A cluster that obeys, unless a scripted answer is due. Clones share it, so that a test can look on and change it.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    topics: Observation,
    groups: BTreeMap<String, Group>,
    observations: VecDeque<Result<Observation, KafkaError>>,
    replies: VecDeque<Result<Reply, KafkaError>>,
    requests: Vec<BTreeMap<String, u32>>,
    created: u128,
}

impl Memory {
    /// A cluster with these topics.
    pub fn with<'a>(topics: impl IntoIterator<Item = (&'a str, u32)>) -> Self {
        let memory = Self::default();
        for (name, partitions) in topics {
            memory.create(name, partitions);
        }
        memory
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a topic, or deletes it and creates it again: either way it gets a new id.
    pub fn create(&self, name: &str, partitions: u32) {
        let mut state = self.state();
        state.created += 1;
        let id = Some(TopicId(state.created));
        state.topics.insert(name.to_owned(), TopicState::Present { id, partitions });
    }

    /// Changes the count of a topic and keeps its id.
    pub fn grow(&self, name: &str, count: u32) {
        if let Some(TopicState::Present { partitions, .. }) = self.state().topics.get_mut(name) {
            *partitions = count;
        }
    }

    /// Makes a topic be seen in this state from now on.
    pub fn set(&self, name: &str, topic: TopicState) {
        self.state().topics.insert(name.to_owned(), topic);
    }

    /// Makes a group be seen from now on.
    pub fn set_group(&self, name: &str, group: Group) {
        self.state().groups.insert(name.to_owned(), group);
    }

    /// The next observation that is not scripted yet. Topics that it leaves out are seen as they are.
    pub fn script_observation(&self, observation: Result<Observation, KafkaError>) {
        self.state().observations.push_back(observation);
    }

    /// The next reply that is not scripted yet. Topics that it answers with success grow, the others stay.
    pub fn script_reply(&self, reply: Result<Reply, KafkaError>) {
        self.state().replies.push_back(reply);
    }

    /// Every CreatePartitions request so far, in order.
    pub fn requests(&self) -> Vec<BTreeMap<String, u32>> {
        self.state().requests.clone()
    }

    /// Present count of a topic.
    pub fn count(&self, name: &str) -> Option<u32> {
        match self.state().topics.get(name) {
            Some(TopicState::Present { partitions, .. }) => Some(*partitions),
            _ => None,
        }
    }
}

impl Cluster for Memory {
    fn cluster_id(&mut self, _: Duration) -> Result<String, KafkaError> {
        Ok("memory".to_owned())
    }

    fn describe_topics(&mut self, names: &[String], _: Duration) -> Result<Observation, KafkaError> {
        let mut state = self.state();
        let mut scripted = state.observations.pop_front().transpose()?.unwrap_or_default();
        let seen =
            |name: &String| scripted.remove(name).or_else(|| state.topics.get(name).cloned()).unwrap_or(TopicState::Missing);
        Ok(names.iter().map(seen).zip(names).map(|(topic, name)| (name.clone(), topic)).collect())
    }

    fn list_topics(&mut self, _: Duration) -> Result<Vec<String>, KafkaError> {
        Ok(self.state().topics.keys().cloned().collect())
    }

    fn create_partitions(&mut self, targets: &BTreeMap<String, u32>, _: Duration) -> Result<Reply, KafkaError> {
        let mut state = self.state();
        state.requests.push(targets.clone());
        let done = || Reply { topics: targets.keys().map(|name| (name.clone(), Ok(()))).collect(), throttle: Duration::ZERO };
        let reply = state.replies.pop_front().unwrap_or_else(|| Ok(done()))?;
        for (name, count) in targets {
            if let (Some(Ok(())), Some(TopicState::Present { partitions, .. })) =
                (reply.topics.get(name), state.topics.get_mut(name))
            {
                *partitions = *count;
            }
        }
        Ok(reply)
    }

    fn describe_group(&mut self, group: &str, _: Duration) -> Result<Option<Group>, KafkaError> {
        Ok(self.state().groups.get(group).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(1);

    #[test]
    fn obeys_unless_told_otherwise() {
        let mut memory = Memory::with([("orders", 3)]);
        let targets = BTreeMap::from([("orders".to_owned(), 6)]);
        let refused =
            super::super::port::TopicError { code: 89, name: "THROTTLING_QUOTA_EXCEEDED".into(), message: String::new() };
        let reply = Reply { topics: BTreeMap::from([("orders".into(), Err(refused))]), throttle: SOON };
        memory.script_reply(Ok(reply.clone()));
        assert_eq!(memory.create_partitions(&targets, SOON), Ok(reply));
        assert_eq!(memory.count("orders"), Some(3));

        assert!(memory.create_partitions(&targets, SOON).unwrap().topics["orders"].is_ok());
        assert_eq!(memory.count("orders"), Some(6));
        assert_eq!(memory.requests(), [targets.clone(), targets]);

        memory.script_observation(Ok(Observation::from([("orders".into(), TopicState::Missing)])));
        let names = ["orders".to_owned(), "nope".to_owned()];
        assert_eq!(memory.describe_topics(&names, SOON).unwrap()["orders"], TopicState::Missing);
        let seen = memory.describe_topics(&names, SOON).unwrap();
        assert_eq!(seen["orders"], TopicState::Present { id: Some(TopicId(1)), partitions: 6 });
        assert_eq!(seen["nope"], TopicState::Missing);
    }
}
