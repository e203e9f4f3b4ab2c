//! The rule of the fixed task count: a partition keeps its task, and a new partition goes to the task of its parent.
//!
//! Where the new count is a multiple of the old one, `hash mod old = (hash mod new) mod old`: every key of partition p was in
//! partition p mod old before, so the task that owned that one has its state. Otherwise keys of several tasks would meet in one new
//! partition, and no assignment could be right.

use std::collections::{BTreeMap, BTreeSet};

use super::grouper::{Inputs, Naming};
use super::model::{Partition, StreamKey, Tasks};
use super::request::{Code, Unsound};
use super::words;

/// What the rule says.
pub(super) enum Outcome {
    /// The tasks, and what grew, for people.
    Grouped(Tasks, Option<String>),
    /// Nothing may change.
    Refused(Code, String),
}

pub(super) fn group(naming: Naming, inputs: &Inputs, previous: &Tasks, power_of_two: bool) -> Result<Outcome, Unsound> {
    let before = counts(previous.0.values().flatten());
    let owners = owners(previous);
    let is_own = |partition| owners.get(partition).is_some_and(|owners| owners.len() == 1);
    let each_has_own = previous.0.values().all(|partitions| partitions.iter().any(is_own));
    let rule = Rule { naming, inputs, previous, before, owners, each_has_own };
    if let Some(message) = rule.another_grouper() {
        return Ok(Outcome::Refused(Code::GrouperChanged, message));
    }
    let growths = rule.growths();
    if let Some((code, message)) = refused(&growths, power_of_two) {
        return Ok(Outcome::Refused(code, message));
    }
    let (mut chosen, mut orphans) = (Vec::new(), Vec::new());
    for partition in &inputs.own {
        match rule.task(partition)? {
            Place::Task(task) => chosen.push((task, *partition)),
            Place::NoParent(orphan) => orphans.push(orphan),
        }
    }
    if let Some((first, others)) = orphans.split_first() {
        return Ok(Outcome::Refused(Code::NoParent, words::no_parent(first, others)));
    }
    Ok(Outcome::Grouped(inputs.give(chosen)?, words::grew(&growths)))
}

/// Counts of a stream that was consumed before and is consumed now.
pub(super) struct Growth {
    pub stream: String,
    pub from: usize,
    pub to: usize,
}

fn refused(growths: &[Growth], power_of_two: bool) -> Option<(Code, String)> {
    type Fault = (Code, fn(&Growth, bool) -> bool);
    let faults: [Fault; 3] = [
        (Code::StreamShrank, |growth, _| growth.to < growth.from),
        (Code::NotAMultiple, |growth, _| growth.to % growth.from != 0),
        (Code::NotAPowerOfTwo, |growth, strict| strict && !(growth.to / growth.from).is_power_of_two()),
    ];
    faults.into_iter().find_map(|(code, holds)| {
        let bad: Vec<&Growth> = growths.iter().filter(|growth| holds(growth, power_of_two)).collect();
        if bad.is_empty() { None } else { Some((code, words::bad_growths(code, &bad))) }
    })
}

/// Distinct numbers of partitions of each stream.
fn counts<'a>(partitions: impl Iterator<Item = &'a Partition>) -> BTreeMap<StreamKey<'a>, usize> {
    let mut ids: BTreeMap<StreamKey, BTreeSet<u32>> = BTreeMap::new();
    for partition in partitions {
        ids.entry(partition.stream_key()).or_default().insert(partition.id);
    }
    ids.into_iter().map(|(stream, ids)| (stream, ids.len())).collect()
}

fn owners(previous: &Tasks) -> BTreeMap<&Partition, Vec<&str>> {
    let mut owners: BTreeMap<&Partition, Vec<&str>> = BTreeMap::new();
    for (task, partitions) in &previous.0 {
        for partition in partitions {
            owners.entry(partition).or_default().push(task);
        }
    }
    owners
}

struct Rule<'a> {
    naming: Naming,
    inputs: &'a Inputs<'a>,
    previous: &'a Tasks,
    /// Previous count of each stream.
    before: BTreeMap<StreamKey<'a>, usize>,
    /// Previous tasks of each partition.
    owners: BTreeMap<&'a Partition, Vec<&'a str>>,
    /// Whether every previous task has something that no other has, as it does where a partition in all of them was broadcast.
    each_has_own: bool,
}

enum Place {
    Task(String),
    NoParent(Orphan),
}

/// A new partition of a stream that was there before, whose keys were in no task of their own.
pub(super) struct Orphan {
    pub partition: Partition,
    pub parent: Partition,
    pub is_broadcast: bool,
    /// Previous count of the stream.
    pub before: u32,
}

impl Rule<'_> {
    /// Why the previous tasks cannot be those of this grouper.
    fn another_grouper(&self) -> Option<String> {
        let streams: BTreeSet<StreamKey> = self.inputs.own.iter().map(|partition| partition.stream_key()).collect();
        let highest = self.inputs.own.iter().filter_map(|partition| partition.bucket).max();
        self.previous.0.iter().find_map(|(task, partitions)| {
            let Some(bucket) = self.naming.bucket_of(task) else { return Some(words::foreign_task(task, partitions)) };
            let bucketed = self.inputs.bucketed?;
            let own = partitions.iter().filter(|partition| !self.inputs.is_broadcast(partition));
            // What has no bucket may have been broadcast, unless it is consumed otherwise now.
            let mut told = own.filter(|partition| partition.bucket.is_some() || streams.contains(&partition.stream_key()));
            let switched = bucket.is_some() != bucketed || told.any(|partition| partition.bucket.is_some() != bucketed);
            if switched {
                return Some(words::buckets_switched(task, partitions, bucketed));
            }
            let highest = highest?;
            bucket.filter(|bucket| *bucket > highest).map(|_| words::fewer_buckets(task, partitions, highest))
        })
    }

    fn growths(&self) -> Vec<Growth> {
        let Inputs { own, shared, broadcast, .. } = self.inputs;
        let now = counts(own.iter().chain(shared).copied().chain(*broadcast));
        let own: BTreeSet<StreamKey> = own.iter().map(|partition| partition.stream_key()).collect();
        let known = own.into_iter().filter_map(|stream| {
            let (from, to) = (*self.before.get(&stream)?, *now.get(&stream)?);
            Some(Growth { stream: words::stream(stream), from, to })
        });
        known.collect()
    }

    fn task(&self, partition: &Partition) -> Result<Place, Unsound> {
        if let Some(task) = self.owner(partition)? {
            return Ok(Place::Task(task));
        }
        let Some(before) = self.before.get(&partition.stream_key()).and_then(|count| u32::try_from(*count).ok()) else {
            return Ok(Place::Task(self.naming.task(partition)));
        };
        // A stream that was there before has a partition at least.
        let parent = Partition { id: partition.id.checked_rem(before).unwrap_or_default(), ..partition.clone() };
        let is_broadcast = self.inputs.is_broadcast(&parent);
        let owner = if is_broadcast { None } else { self.owner(&parent)? };
        Ok(owner
            .map_or_else(|| Place::NoParent(Orphan { partition: partition.clone(), parent, is_broadcast, before }), Place::Task))
    }

    /// The task that had the partition.
    fn owner(&self, partition: &Partition) -> Result<Option<String>, Unsound> {
        let owners = self.owners.get(partition).map(Vec::as_slice).unwrap_or_default();
        let [first, second, ..] = owners else { return Ok(owners.first().map(|task| (*task).to_owned())) };
        if owners.len() < self.previous.0.len() || !self.each_has_own {
            return Err(Unsound::SeveralTasks {
                partition: partition.to_string(),
                first: (*first).to_owned(),
                second: (*second).to_owned(),
            });
        }
        // It was broadcast. One of them keeps it.
        let plain = self.naming.task(partition);
        let nth = usize::try_from(partition.id).unwrap_or_default().checked_rem(owners.len()).unwrap_or_default();
        let kept = if owners.contains(&plain.as_str()) { &plain } else { *owners.get(nth).unwrap_or(first) };
        Ok(Some(kept.to_owned()))
    }
}
