//! The bytes that the members of a classic Kafka Streams group exchange: who runs which tasks, and what the leader told them.
//!
//! `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment` are Kafka's; the user data inside are those of Kafka Streams
//! (`SubscriptionInfo`, `AssignmentInfo`). The bytes come from other programs: every length is checked against what is left, and a
//! text that ends early is an error, not a panic.

use std::collections::{BTreeMap, BTreeSet};

use super::port::Group;

/// Newest version of `AssignmentInfo` and `SubscriptionInfo` that is understood (Kafka 3.2 and later write 11).
const LATEST: i32 = 11;

/// Why bytes could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// They end within this field, or its length cannot be right.
    #[error("the bytes end within {0}")]
    Truncated(&'static str),
    /// The field has a value that it cannot have.
    #[error("{0} is not valid")]
    Invalid(&'static str),
    /// Written by a newer Kafka Streams.
    #[error("version {0} is newer than the version 11 that is known")]
    TooNew(i32),
}

/// A task of a Kafka Streams application.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// Name of its named topology; empty normally.
    pub topology: String,
    /// Number of its subtopology.
    pub subtopology: i32,
    /// Number of its partition.
    pub partition: i32,
}

impl TaskId {
    /// Id of its subtopology as in the description: `0`, or `name/0` within a named topology.
    pub fn subtopology_id(&self) -> String {
        match self.topology.as_str() {
            "" => self.subtopology.to_string(),
            name => format!("{name}/{}", self.subtopology),
        }
    }
}

/// What a member told the leader (`ConsumerProtocolSubscription` with `SubscriptionInfo`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Topics it wants: inputs and repartition topics, full names.
    pub topics: Vec<String>,
    /// `SubscriptionInfo` version, from 1.
    pub version: i32,
    /// Id of the process, the same for all its threads; `None` where the version is too new to be read.
    pub process_id: Option<u128>,
    /// `AssignorError` that it reports to the leader (version 9 and later), e.g. 4 = shut down.
    pub error_code: i32,
}

/// What the leader told a member (`ConsumerProtocolAssignment` with `AssignmentInfo`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Its partitions, sorted by topic and number.
    pub partitions: Vec<(String, i32)>,
    /// Its active tasks, one for each partition, in the same order.
    pub active: Vec<TaskId>,
    /// Its standby tasks with their partitions.
    pub standby: BTreeMap<TaskId, Vec<(String, i32)>>,
    /// `AssignorError`: 0 none, 1 incomplete source topic metadata, 2 version probing, 3 assignment error, 4 shutdown requested.
    pub error_code: i32,
    /// When the next rebalance is due in ms since 1970; 0 = at once, `None` = none is planned.
    pub next_rebalance_ms: Option<i64>,
}

/// What the whole group says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tasks {
    /// Id of the subtopology -> number of its tasks.
    pub counts: BTreeMap<String, u32>,
    /// Id of the subtopology -> topics it reads.
    pub sources: BTreeMap<String, BTreeSet<String>>,
    /// Partitions that some member owns.
    pub assigned: BTreeMap<String, BTreeSet<i32>>,
    /// The first `AssignorError` other than 0.
    pub error_code: i32,
    /// Some tasks are not placed yet: a member is to rebalance at once.
    pub in_transition: bool,
}

/// Reads the assignments of all members of a stable group together.
pub fn tasks(group: &Group) -> Result<Tasks, Unreadable> {
    let mut tasks = Tasks::default();
    for member in &group.members {
        let Some(assignment) = assignment(&member.assignment)? else { continue };
        if assignment.error_code != 0 {
            tasks.error_code = if tasks.error_code == 0 { assignment.error_code } else { tasks.error_code };
            continue;
        }
        tasks.in_transition |= assignment.next_rebalance_ms == Some(0);
        let active = assignment.active.into_iter().zip(assignment.partitions);
        for (task, (topic, partition)) in active {
            tasks.assigned.entry(topic.clone()).or_default().insert(partition);
            tasks.note(&task, topic, partition)?;
        }
        for (task, partitions) in assignment.standby {
            for (topic, partition) in partitions {
                tasks.note(&task, topic, partition)?;
            }
        }
    }
    Ok(tasks)
}

impl Tasks {
    fn note(&mut self, task: &TaskId, topic: String, partition: i32) -> Result<(), Unreadable> {
        // A task reads partition n of each of its topics, so anything else means that the bytes were misread.
        if task.partition != partition {
            return Err(Unreadable::Invalid("the pairing of tasks and partitions"));
        }
        let count = u32::try_from(task.partition).map_err(|_| Unreadable::Invalid("a task id"))?.saturating_add(1);
        let id = task.subtopology_id();
        let most = self.counts.entry(id.clone()).or_default();
        *most = count.max(*most);
        self.sources.entry(id).or_default().insert(topic);
        Ok(())
    }
}

/// Reads `ConsumerProtocolSubscription` bytes of a Kafka Streams member.
pub fn subscription(bytes: &[u8]) -> Result<Subscription, Unreadable> {
    let mut input = Reader(bytes);
    // Fields are only ever appended, so an unknown version is read as the newest known one.
    input.i16("the version")?;
    let topics = input.list("the topics", 2, |input| input.string("a topic"))?;
    let data = input.nullable_bytes("the user data")?.ok_or(Unreadable::Invalid("the user data"))?;
    subscription_info(topics, data)
}

fn subscription_info(topics: Vec<String>, data: &[u8]) -> Result<Subscription, Unreadable> {
    let mut input = Reader(data);
    let version = input.i32("the version of the subscription")?;
    match version {
        ..1 => return Err(Unreadable::Invalid("the version of the subscription")),
        1..=LATEST => {}
        // Only the version may be trusted.
        _ => return Ok(Subscription { topics, version, process_id: None, error_code: 0 }),
    }
    if version >= 3 {
        input.i32("the latest supported version")?;
    }
    let process_id = Some(u128::from_be_bytes(input.array("the process id")?));
    if version <= 6 {
        return Ok(Subscription { topics, version, process_id, error_code: 0 });
    }
    input.nullable_bytes("the user end point")?;
    if version >= 10 {
        input.list("the task offsets", 18, |input| {
            input.take(16, "a task offset")?;
            input.nullable_string("the named topology")
        })?;
    } else {
        input.list("the task offsets", 8, |input| {
            input.i32("a task offset")?;
            input.list("the offsets of a subtopology", 12, |input| input.take(12, "a task offset"))
        })?;
    }
    if version >= 8 {
        input.take(1, "the unique field")?;
    }
    let error_code = if version >= 9 { input.i32("the error code")? } else { 0 };
    Ok(Subscription { topics, version, process_id, error_code })
}

/// Reads `ConsumerProtocolAssignment` bytes of a Kafka Streams member; `None` = nothing assigned yet.
pub fn assignment(bytes: &[u8]) -> Result<Option<Assignment>, Unreadable> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut input = Reader(bytes);
    input.i16("the version")?;
    let by_topic = input.list("the assigned partitions", 6, |input| {
        let topic = input.string("a topic")?;
        Ok((topic, input.list("the partitions", 4, |input| input.i32("a partition"))?))
    })?;
    let mut partitions: Vec<(String, i32)> = Vec::new();
    for (topic, numbers) in by_topic {
        partitions.extend(numbers.into_iter().map(|number| (topic.clone(), number)));
    }
    partitions.sort();
    let data = input.nullable_bytes("the user data")?.ok_or(Unreadable::Invalid("the user data"))?;
    let assignment = assignment_info(partitions, data)?;
    if assignment.error_code == 0 && assignment.active.len() != assignment.partitions.len() {
        return Err(Unreadable::Invalid("the number of active tasks"));
    }
    Ok(Some(assignment))
}

fn assignment_info(partitions: Vec<(String, i32)>, data: &[u8]) -> Result<Assignment, Unreadable> {
    let mut input = Reader(data);
    let version = input.i32("the version of the assignment")?;
    match version {
        ..1 => return Err(Unreadable::Invalid("the version of the assignment")),
        1..=LATEST => {}
        _ => return Err(Unreadable::TooNew(version)),
    }
    if version >= 3 {
        input.i32("the commonly supported version")?;
    }
    let active = input.list("the active tasks", 8, |input| input.task(version))?;
    let standby = input.list("the standby tasks", 12, |input| {
        let task = input.task(version)?;
        Ok((task, input.list("the standby partitions", 6, Reader::partition)?))
    })?;
    match version {
        1 => {}
        2..=4 => {
            input.list("the hosts", 10, |input| {
                input.host()?;
                input.list("the partitions of a host", 6, Reader::partition)
            })?;
        }
        _ => {
            input.list("the topic dictionary", 6, |input| {
                input.i32("a topic index")?;
                input.string("a topic")
            })?;
            input.indexed_hosts()?;
            if version >= 6 {
                input.indexed_hosts()?;
            }
        }
    }
    let error_code = if version >= 4 { input.i32("the error code")? } else { 0 };
    let next = if version >= 7 { input.i64("the next rebalance")? } else { i64::MAX };
    Ok(Assignment {
        partitions,
        active,
        standby: standby.into_iter().collect(),
        error_code,
        next_rebalance_ms: (next != i64::MAX).then_some(next),
    })
}

/// What is left of the input; all numbers are big-endian.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], Unreadable> {
        let (taken, left) = self.0.split_at_checked(count).ok_or(Unreadable::Truncated(field))?;
        self.0 = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Unreadable> {
        let (taken, left) = self.0.split_first_chunk().ok_or(Unreadable::Truncated(field))?;
        self.0 = left;
        Ok(*taken)
    }

    fn i16(&mut self, field: &'static str) -> Result<i16, Unreadable> {
        self.array(field).map(i16::from_be_bytes)
    }

    fn i32(&mut self, field: &'static str) -> Result<i32, Unreadable> {
        self.array(field).map(i32::from_be_bytes)
    }

    fn i64(&mut self, field: &'static str) -> Result<i64, Unreadable> {
        self.array(field).map(i64::from_be_bytes)
    }

    /// A text with a 16-bit length; Java's `writeUTF` is the same for the characters of topic and host names.
    fn string(&mut self, field: &'static str) -> Result<String, Unreadable> {
        self.nullable_string(field)?.ok_or(Unreadable::Invalid(field))
    }

    fn nullable_string(&mut self, field: &'static str) -> Result<Option<String>, Unreadable> {
        let Ok(length) = usize::try_from(self.i16(field)?) else { return Ok(None) };
        let text = std::str::from_utf8(self.take(length, field)?).map_err(|_| Unreadable::Invalid(field))?;
        Ok(Some(text.to_owned()))
    }

    fn nullable_bytes(&mut self, field: &'static str) -> Result<Option<&'a [u8]>, Unreadable> {
        match usize::try_from(self.i32(field)?) {
            Ok(length) => self.take(length, field).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// A list with a 32-bit count. An item has at least `least` bytes, so a count that cannot fit is refused before any room is made.
    fn list<T>(
        &mut self,
        field: &'static str,
        least: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, Unreadable>,
    ) -> Result<Vec<T>, Unreadable> {
        let count = usize::try_from(self.i32(field)?).map_err(|_| Unreadable::Invalid(field))?;
        if count.saturating_mul(least) > self.0.len() {
            return Err(Unreadable::Truncated(field));
        }
        (0..count).map(|_| item(self)).collect()
    }

    fn task(&mut self, version: i32) -> Result<TaskId, Unreadable> {
        let (subtopology, partition) = (self.i32("a task id")?, self.i32("a task id")?);
        let topology = if version >= 10 {
            let units = self.list("the named topology", 2, |input| input.array("the named topology").map(u16::from_be_bytes))?;
            String::from_utf16(&units).map_err(|_| Unreadable::Invalid("the named topology"))?
        } else {
            String::new()
        };
        Ok(TaskId { topology, subtopology, partition })
    }

    fn partition(&mut self) -> Result<(String, i32), Unreadable> {
        Ok((self.string("a topic")?, self.i32("a partition")?))
    }

    fn host(&mut self) -> Result<(), Unreadable> {
        self.string("a host")?;
        self.i32("a port").map(drop)
    }

    fn indexed_hosts(&mut self) -> Result<(), Unreadable> {
        let host = |input: &mut Self| {
            input.host()?;
            input.list("the partitions of a host", 8, |input| input.take(8, "a partition of a host")).map(drop)
        };
        self.list("the hosts", 10, host).map(drop)
    }
}

#[cfg(test)]
mod tests;
