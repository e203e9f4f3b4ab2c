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
    /// The tasks, and what happened, for people.
    Grouped(Tasks, Vec<String>),
    /// Nothing may change.
    Refused(Code, String),
}

pub(super) fn group(naming: Naming, inputs: &Inputs, previous: &Tasks, power_of_two: bool) -> Result<Outcome, Unsound> {
    let rule =
        Rule { naming, inputs, before: counts(previous.0.values().flatten()), owners: owners(previous), all: previous.0.len() };
    if let Some(message) = rule.another_grouper(previous) {
        return Ok(Outcome::Refused(Code::GrouperChanged, message));
    }
    let growths = rule.growths();
    if let Some((code, message)) = refused(&growths, power_of_two) {
        return Ok(Outcome::Refused(code, message));
    }
    match inputs.give(|partition| rule.task(partition)) {
        Ok(tasks) => {
            Ok(Outcome::Grouped(tasks, growths.iter().filter(|growth| growth.to > growth.from).map(words::grew).collect()))
        }
        Err(Stop::NoParent(message)) => Ok(Outcome::Refused(Code::NoParent, message)),
        Err(Stop::Unsound(unsound)) => Err(unsound),
    }
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
        let (first, more) = bad.split_first()?;
        Some((code, words::bad_growth(code, first, more.len())))
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
    /// Previous count of each stream.
    before: BTreeMap<StreamKey<'a>, usize>,
    /// Previous tasks of each partition.
    owners: BTreeMap<&'a Partition, Vec<&'a str>>,
    /// Number of previous tasks.
    all: usize,
}

enum Stop {
    NoParent(String),
    Unsound(Unsound),
}

impl Rule<'_> {
    /// Why the previous tasks cannot be those of this grouper.
    fn another_grouper(&self, previous: &Tasks) -> Option<String> {
        let streams: BTreeSet<StreamKey> = self.inputs.own.iter().map(|partition| partition.stream_key()).collect();
        let highest = self.inputs.own.iter().filter_map(|partition| partition.bucket).max();
        previous.0.iter().find_map(|(task, partitions)| {
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

    fn task(&self, partition: &Partition) -> Result<String, Stop> {
        if let Some(task) = self.owner(partition)? {
            return Ok(task);
        }
        let Some(before) = self.before.get(&partition.stream_key()).and_then(|count| u32::try_from(*count).ok()) else {
            return Ok(self.naming.task(partition));
        };
        // A stream that was there before has a partition at least.
        let parent = Partition { id: partition.id.checked_rem(before).unwrap_or_default(), ..partition.clone() };
        let is_broadcast = self.inputs.is_broadcast(&parent);
        let owner = if is_broadcast { None } else { self.owner(&parent)? };
        owner.ok_or_else(|| Stop::NoParent(words::no_parent(partition, &parent, before, is_broadcast)))
    }

    /// The task that had the partition.
    fn owner(&self, partition: &Partition) -> Result<Option<String>, Stop> {
        let owners = self.owners.get(partition).map(Vec::as_slice).unwrap_or_default();
        let [first, second, ..] = owners else { return Ok(owners.first().map(|task| (*task).to_owned())) };
        if owners.len() < self.all {
            return Err(Stop::Unsound(Unsound::SeveralTasks {
                partition: partition.to_string(),
                first: (*first).to_owned(),
                second: (*second).to_owned(),
            }));
        }
        // All had it: it was broadcast. One of them keeps it.
        let plain = self.naming.task(partition);
        let nth = usize::try_from(partition.id).unwrap_or_default().checked_rem(owners.len()).unwrap_or_default();
        let kept = if owners.contains(&plain.as_str()) { plain } else { owners.get(nth).unwrap_or(first).to_string() };
        Ok(Some(kept))
    }
}
