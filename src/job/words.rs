//! The sentences of an answer.

use std::collections::BTreeSet;

use super::fixed::{Growth, Orphan};
use super::model::{Partition, StreamKey, Tasks};
use super::request::Code;

/// Items that a list shows before it is cut.
const SHOWN: usize = 8;

const IN_FORCE: &str = "the previous tasks stay in force";

pub fn stream((system, stream): StreamKey) -> String {
    format!("{system}.{stream}")
}

pub fn grew(growths: &[Growth]) -> Option<String> {
    let grown = growths.iter().filter(|growth| growth.to > growth.from);
    let list: Vec<String> = grown.map(|Growth { stream, from, to }| format!("{stream} from {from} to {to}")).collect();
    let list = (!list.is_empty()).then(|| shortened(&list, ", "))?;
    Some(format!("partitions grew: {list}; each new one goes to the task of its parent"))
}

pub fn bad_growths(code: Code, growths: &[&Growth]) -> String {
    let sentence = |growth: &&Growth| {
        let Growth { stream, from, to } = growth;
        let factor = to.div_ceil(*from);
        match code {
            Code::StreamShrank => format!("{stream} shrank from {from} to {to} partitions"),
            Code::NotAPowerOfTwo => {
                let fits = factor.checked_next_power_of_two().unwrap_or(factor).saturating_mul(*from);
                format!("{stream} grew from {from} to {to} partitions, expected a power of two times {from}: grow it to {fits}")
            }
            _ => {
                let fits = factor.saturating_mul(*from);
                format!("{stream} grew from {from} to {to} partitions, expected a multiple of {from}: grow it to {fits}")
            }
        }
    };
    let why = match code {
        Code::StreamShrank => {
            "a topic never loses partitions: list all of them, or leave previous out if it was made anew and its state is gone"
        }
        Code::NotAPowerOfTwo => "power_of_two asks for that",
        _ => "else keys of several tasks meet in one new partition",
    };
    format!("{}; {why}; {IN_FORCE}", shortened(&growths.iter().map(sentence).collect::<Vec<_>>(), "; "))
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

pub fn no_parent(first: &Orphan, others: &[Orphan]) -> String {
    let Orphan { partition, parent, is_broadcast, before } = first;
    let count = if *before == 1 { "partition" } else { "partitions" };
    let stream = stream(partition.stream_key());
    let what = if partition == parent {
        format!("{partition} had no previous task, though {stream} had {before} {count}")
    } else {
        let why = if *is_broadcast { "is broadcast, so every task has its state" } else { "no previous task had" };
        format!("{partition} is new, and {stream} had {before} {count}, so its keys were in {parent}, which {why}")
    };
    let others: Vec<String> = others.iter().map(|orphan| orphan.partition.to_string()).collect();
    let others = if others.is_empty() { others.concat() } else { format!(" (likewise {})", shortened(&others, ", ")) };
    let help = if *is_broadcast {
        "broadcast the new partition too, or no partition of the stream"
    } else {
        "complete previous, or leave it out if its state may be lost"
    };
    format!("{what}{others}: {help}; {IN_FORCE}")
}

/// What is different now, for people.
pub fn summary(tasks: &Tasks, previous: &Tasks, changed: bool, grew: Option<String>) -> String {
    let mut notes: Vec<String> = grew.into_iter().collect();
    let streams = |tasks: &Tasks| -> BTreeSet<String> {
        tasks.0.values().flatten().map(|partition| stream(partition.stream_key())).collect()
    };
    let names = |tasks: &Tasks| -> BTreeSet<String> { tasks.0.keys().cloned().collect() };
    let (streams_now, streams_before) = (streams(tasks), streams(previous));
    let (names_now, names_before) = (names(tasks), names(previous));
    let mut note = |what: &str, list: BTreeSet<String>| {
        if !list.is_empty() {
            notes.push(format!("{what}: {}", shortened(&list.into_iter().collect::<Vec<_>>(), ", ")));
        }
    };
    if !previous.0.is_empty() {
        note("new streams", &streams_now - &streams_before);
        note("streams that are gone", &streams_before - &streams_now);
        note("new tasks", &names_now - &names_before);
        note("tasks that are gone", &names_before - &names_now);
    }
    let count = match names_now.len() {
        1 => "1 task".to_owned(),
        count => format!("{count} tasks"),
    };
    let count = if changed { count } else { format!("{count}, as before") };
    [vec![count], notes].concat().join("; ")
}

fn shortened(list: &[String], separator: &str) -> String {
    let shown = list.get(..SHOWN).unwrap_or(list).join(separator);
    match list.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
