//! Samza's groupers, without memory.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::model::{MAX_NUMBER, Partition, Tasks};
use super::request::Unsound;

/// How partitions are given to tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grouper {
    /// One task for each partition number, so that joined streams meet: `Partition 0`.
    GroupByPartition,
    /// One task for each partition: `SystemStreamPartition [kafka, orders, 0]`.
    GroupBySystemStreamPartition,
    /// One task for each processor, each with every partition: `Task-0`.
    AllSspToSingleTask,
}

/// Names of the tasks of the groupers that give each partition to one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    Number,
    Full,
}

impl Naming {
    /// The task of a partition that has none yet.
    pub fn task(self, partition: &Partition) -> String {
        let Partition { system, stream, id, bucket } = partition;
        match (self, bucket) {
            (Self::Number, None) => format!("Partition {id}"),
            (Self::Number, Some(bucket)) => format!("Partition {id} {bucket}"),
            (Self::Full, None) => format!("SystemStreamPartition [{system}, {stream}, {id}]"),
            (Self::Full, Some(bucket)) => format!("SystemStreamPartition [{system}, {stream}, {id}, {bucket}]"),
        }
    }

    /// The key bucket in the name of a task, if this grouper makes such names.
    pub fn bucket_of(self, task: &str) -> Option<Option<u32>> {
        match self {
            Self::Number => {
                let numbers = task.strip_prefix("Partition ")?;
                match numbers.split_once(' ') {
                    None => number(numbers).map(|_| None),
                    Some((id, bucket)) => number(id).and(number(bucket)).map(Some),
                }
            }
            Self::Full => {
                let mut parts = task.strip_prefix("SystemStreamPartition [")?.strip_suffix(']')?.rsplit(", ");
                let (last, before, _, more) = (number(parts.next()?)?, parts.next()?, parts.next()?, parts.next());
                Some(number(before).filter(|_| more.is_some()).map(|_| last))
            }
        }
    }
}

/// A number as it is printed.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number: &u32| *number <= MAX_NUMBER && number.to_string() == text)
}

/// The inputs of a job, sorted by who gets them.
pub(super) struct Inputs<'a> {
    /// Each goes to one task.
    pub own: BTreeSet<&'a Partition>,
    /// Each goes to every task.
    pub broadcast: &'a BTreeSet<Partition>,
    /// The others of `partitions`: they are in `broadcast`, if only as a whole.
    pub shared: BTreeSet<&'a Partition>,
    /// Whether partitions are divided into key buckets, if there are any to tell.
    pub bucketed: Option<bool>,
}

impl<'a> Inputs<'a> {
    pub fn new(partitions: &'a BTreeSet<Partition>, broadcast: &'a BTreeSet<Partition>) -> Result<Self, Unsound> {
        let (shared, own): (BTreeSet<_>, BTreeSet<_>) = partitions.iter().partition(|partition| covers(broadcast, partition));
        let with = own.iter().find(|partition| partition.bucket.is_some());
        let without = own.iter().find(|partition| partition.bucket.is_none());
        if let (Some(with), Some(without)) = (with, without) {
            return Err(Unsound::MixedBuckets { with: with.to_string(), without: without.to_string() });
        }
        let bucketed = own.first().map(|partition| partition.bucket.is_some());
        Ok(Self { own, broadcast, shared, bucketed })
    }

    /// Whether every task gets the partition.
    pub fn is_broadcast(&self, partition: &Partition) -> bool {
        covers(self.broadcast, partition)
    }

    /// Each partition to the task named beside it, and what is broadcast to all of these.
    pub fn give(&self, chosen: Vec<(String, &Partition)>) -> Result<Tasks, Unsound> {
        let mut tasks: BTreeMap<String, BTreeSet<Partition>> = BTreeMap::new();
        for (task, partition) in chosen {
            tasks.entry(task).or_default().insert(partition.clone());
        }
        check_size(tasks.len(), self.broadcast.len())?;
        for partitions in tasks.values_mut() {
            partitions.extend(self.broadcast.iter().cloned());
        }
        Ok(Tasks(tasks))
    }
}

/// Most partitions that all tasks together may get by broadcast. More would fill the memory before it fills anyone's need.
const MAX_SHARED: usize = 4_000_000;

/// Whether so many tasks can have so many partitions each.
pub(super) fn check_size(tasks: usize, partitions: usize) -> Result<(), Unsound> {
    match tasks.checked_mul(partitions) {
        Some(shared) if shared <= MAX_SHARED => Ok(()),
        _ => Err(Unsound::TooLarge { tasks, partitions, most: MAX_SHARED }),
    }
}

fn covers(broadcast: &BTreeSet<Partition>, partition: &Partition) -> bool {
    broadcast.contains(partition) || broadcast.contains(&partition.whole())
}
