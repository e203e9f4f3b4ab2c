//! The sentences of an answer.

use std::collections::BTreeSet;

use super::fixed::Growth;
use super::model::{Partition, StreamKey, Tasks};
use super::request::Code;

/// Items that a list shows before it is cut.
const SHOWN: usize = 8;

const COMPLETE_PREVIOUS: &str = "complete previous, or leave it out if its state may be lost";
const IN_FORCE: &str = "the previous tasks stay in force";

pub fn stream((system, stream): StreamKey) -> String {
    format!("{system}.{stream}")
}

pub fn grew(growth: &Growth) -> String {
    let Growth { stream, from, to } = growth;
    format!("{stream} grew from {from} to {to} partitions, each new one goes to the task of its parent")
}

pub fn bad_growth(code: Code, growth: &Growth, more: usize) -> String {
    let Growth { stream, from, to } = growth;
    let others = match more {
        0 => String::new(),
        1 => " (and so did another stream)".to_owned(),
        more => format!(" (and so did {more} other streams)"),
    };
    let multiple = to.div_ceil(*from).saturating_mul(*from);
    let double = to.div_ceil(*from).checked_next_power_of_two().unwrap_or(1).saturating_mul(*from);
    match code {
        Code::StreamShrank => format!(
            "{stream} shrank from {from} to {to} partitions{others}, but a topic never loses any: list all of them, or leave \
             previous out if it was made anew and its state is gone; {IN_FORCE}"
        ),
        Code::NotAPowerOfTwo => format!(
            "{stream} grew from {from} to {to} partitions{others}, expected a power of two times {from}, as power_of_two asks: grow \
             it to {double}; {IN_FORCE}"
        ),
        _ => format!(
            "{stream} grew from {from} to {to} partitions{others}, expected a multiple of {from}, for else keys of several tasks meet \
             in one new partition: grow it to {multiple}; {IN_FORCE}"
        ),
    }
}

pub fn foreign_task(task: &str, partitions: &BTreeSet<Partition>) -> String {
    format!("the previous task {task:?}{} has a name that this grouper does not give: {GROUPER_BACK}", of(partitions))
}

pub fn buckets_switched(task: &str, partitions: &BTreeSet<Partition>, bucketed: bool) -> String {
    let (was, is) = if bucketed { ("without", "with") } else { ("with", "without") };
    format!(
        "the previous task {task:?}{} was made {was} key buckets, and partitions come {is} them: {GROUPER_BACK}",
        of(partitions)
    )
}

pub fn fewer_buckets(task: &str, partitions: &BTreeSet<Partition>, highest: u32) -> String {
    format!(
        "the previous task {task:?}{} has a key bucket above {highest}, the highest of partitions now, so its keys would move away \
         from their state: {GROUPER_BACK}",
        of(partitions)
    )
}

const GROUPER_BACK: &str = "go back to what the job ran with, or leave previous out if its state may be lost; the previous tasks stay \
                            in force";

fn of(partitions: &BTreeSet<Partition>) -> String {
    partitions.first().map(|partition| format!(" ({partition})")).unwrap_or_default()
}

pub fn no_parent(partition: &Partition, parent: &Partition, before: u32, is_broadcast: bool) -> String {
    let count = if before == 1 { "partition" } else { "partitions" };
    let stream = stream(partition.stream_key());
    if partition == parent {
        return format!(
            "{partition} had no previous task, though {stream} had {before} {count}: {COMPLETE_PREVIOUS}; {IN_FORCE}"
        );
    }
    let (why, help) = if is_broadcast {
        ("is broadcast, so every task has its state", "broadcast the new partition too, or no partition of the stream")
    } else {
        ("no previous task had", COMPLETE_PREVIOUS)
    };
    format!(
        "{partition} is new, and {stream} had {before} {count}, so its keys were in {parent}, which {why}: {help}; {IN_FORCE}"
    )
}

/// What is different now, for people.
pub fn summary(tasks: &Tasks, previous: &Tasks, changed: bool, mut notes: Vec<String>) -> String {
    let streams = |tasks: &Tasks| -> BTreeSet<String> {
        tasks.0.values().flatten().map(|partition| stream(partition.stream_key())).collect()
    };
    let names = |tasks: &Tasks| -> BTreeSet<String> { tasks.0.keys().cloned().collect() };
    let (streams_now, streams_before) = (streams(tasks), streams(previous));
    let (names_now, names_before) = (names(tasks), names(previous));
    let mut note = |what: &str, list: Vec<&String>| {
        if !list.is_empty() {
            notes.push(format!("{what}: {}", shortened(&list)));
        }
    };
    if !previous.0.is_empty() {
        note("new streams", streams_now.difference(&streams_before).collect());
        note("streams that are gone", streams_before.difference(&streams_now).collect());
        note("new tasks", names_now.difference(&names_before).collect());
        note("tasks that are gone", names_before.difference(&names_now).collect());
    }
    let count = match names_now.len() {
        1 => "1 task".to_owned(),
        count => format!("{count} tasks"),
    };
    let count = if changed { count } else { format!("{count}, as before") };
    [vec![count], notes].concat().join("; ")
}

fn shortened(list: &[&String]) -> String {
    let shown: Vec<&str> = list.iter().take(SHOWN).map(|item| item.as_str()).collect();
    match list.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
