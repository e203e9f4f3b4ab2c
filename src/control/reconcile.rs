//! Puts together what the upstream tasks say, partition by partition.
//!
//! A partition has ended once the ends of at least as many upstream tasks were heard as the newest end says there are. Its watermark
//! is the least over the upstream tasks heard, each with its highest, as soon as at least as many were heard as the newest watermark
//! says there are. A message without a task is the partition speaking for itself, and counts at once. Nothing is ever taken back, so
//! hearing a message again changes nothing.
//!
//! The number of upstream tasks may change, up and down. A task that was last heard under another number than that of the newest
//! message counts only until as many as that number were heard under it: tasks that are gone do not hold the watermark back.
//!
//! Samza's `EndOfStreamStates` and `WatermarkStates` compare with equality, so that one name too many undoes an end and freezes a
//! watermark; and they wait for all partitions of a stream that a task owns before they pass anything on, which with several
//! partitions (what SEP-5 makes of a grown stream) never comes. Here every partition is on its own.

use std::collections::BTreeMap;
use std::fmt;

use super::checkpoint::{Checkpoint, EndOfStreamCheckpoint, Ends, TaskWatermark, WatermarkCheckpoint, Watermarks};
use super::wire::{Body, ControlMessage};
use super::{Partition, Stream};

/// The watermark before there is one (Samza's `WATERMARK_NOT_EXIST`). Lower timestamps count as none.
pub const NO_WATERMARK: i64 = -1;

/// What became new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The watermark of a partition rose.
    Watermark {
        /// The partition.
        partition: Partition,
        /// The watermark, in milliseconds since 1970.
        timestamp: i64,
    },
    /// A partition has ended.
    EndOfStream {
        /// The partition.
        partition: Partition,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Watermark { partition, timestamp } => write!(f, "{partition}: watermark {timestamp}"),
            Self::EndOfStream { partition } => write!(f, "{partition}: end of stream"),
        }
    }
}

/// A message that cannot be taken into account. Nothing has changed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReconcileError {
    /// From a partition that was not added.
    #[error("{0} is not among the partitions of this task; add it before its messages come")]
    UnknownPartition(Partition),
    /// A named task has to say how many there are.
    #[error("the message of task {task} in {partition} does not say how many upstream tasks there are; expected 1 or more")]
    NoTaskCount {
        /// Where it was.
        partition: Partition,
        /// Name of the task.
        task: String,
    },
}

/// The bookkeeping of one downstream task over all its input partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciler {
    // Both have the same partitions.
    ends: EndOfStreamCheckpoint,
    watermarks: WatermarkCheckpoint,
}

impl Reconciler {
    /// A task that has heard nothing yet.
    pub fn new(partitions: impl IntoIterator<Item = Partition>) -> Self {
        Self::restore(partitions, &Checkpoint::default())
    }

    /// A task that goes on where the checkpoint was taken, with the partitions that it has now.
    pub fn restore(partitions: impl IntoIterator<Item = Partition>, checkpoint: &Checkpoint) -> Self {
        let Checkpoint { end_of_stream, watermark, .. } = checkpoint;
        let mut task = Self::default();
        task.ends.ended_streams.clone_from(&end_of_stream.ended_streams);
        task.watermarks.streams.clone_from(&watermark.streams);
        for partition in partitions {
            let ends = end_of_stream.partitions.get(&partition).cloned().unwrap_or_default();
            let watermarks = watermark.partitions.get(&partition).cloned().unwrap_or_default();
            task.insert(partition, ends, watermarks);
        }
        task
    }

    /// Adds a partition of a stream that has grown. It may hold the watermark of its stream back, but never lowers it.
    pub fn add(&mut self, partition: Partition) {
        if !self.ends.partitions.contains_key(&partition) {
            self.insert(partition, Ends::default(), Watermarks::default());
        }
    }

    fn insert(&mut self, partition: Partition, ends: Ends, watermarks: Watermarks) {
        self.watermarks.streams.entry(partition.stream.clone()).or_insert(NO_WATERMARK);
        self.ends.partitions.insert(partition.clone(), ends);
        self.watermarks.partitions.insert(partition, watermarks);
    }

    /// Takes one control message of a partition into account, and tells what it made new. A drain makes nothing new here.
    pub fn hear(&mut self, partition: &Partition, message: &ControlMessage) -> Result<Option<Event>, ReconcileError> {
        let unknown = || ReconcileError::UnknownPartition(partition.clone());
        let ends = self.ends.partitions.get_mut(partition).ok_or_else(unknown)?;
        let watermarks = self.watermarks.partitions.get_mut(partition).ok_or_else(unknown)?;
        let task = match (&message.task_name, message.task_count) {
            (None, _) => None,
            (Some(name), Some(count @ 1..)) => Some((name.as_str(), count)),
            (Some(name), _) => {
                return Err(ReconcileError::NoTaskCount { partition: partition.clone(), task: name.clone() });
            }
        };
        let event = match message.body {
            Body::Watermark { timestamp } => {
                let rose = watermarks.hear(task, timestamp);
                rose.then(|| Event::Watermark { partition: partition.clone(), timestamp: watermarks.watermark })
            }
            Body::EndOfStream { .. } => ends.hear(task).then(|| Event::EndOfStream { partition: partition.clone() }),
            Body::Drain { .. } => None,
        };
        if event.is_some() {
            self.sum_up(&partition.stream);
        }
        Ok(event)
    }

    /// A stream is as far as its partition that is least far.
    fn sum_up(&mut self, stream: &Stream) {
        let own = self.watermarks.partitions.iter().filter(|(partition, _)| partition.stream == *stream);
        let least = own.map(|(_, heard)| heard.watermark).min().unwrap_or(NO_WATERMARK);
        let watermark = self.watermarks.streams.entry(stream.clone()).or_insert(NO_WATERMARK);
        *watermark = least.max(*watermark);
        if self.ends.partitions.iter().filter(|(partition, _)| partition.stream == *stream).all(|(_, heard)| heard.ended) {
            self.ends.ended_streams.insert(stream.clone());
        }
    }

    /// What has to be saved together with the offsets of the next records to read.
    pub fn checkpoint(&self, offsets: impl IntoIterator<Item = (Partition, i64)>) -> Checkpoint {
        Checkpoint {
            offsets: offsets.into_iter().collect(),
            end_of_stream: self.ends.clone(),
            watermark: self.watermarks.clone(),
        }
    }

    /// What was heard of ends, for each partition.
    pub fn ends(&self) -> &BTreeMap<Partition, Ends> {
        &self.ends.partitions
    }

    /// What was heard of watermarks, for each partition.
    pub fn watermarks(&self) -> &BTreeMap<Partition, Watermarks> {
        &self.watermarks.partitions
    }

    /// Watermark of each stream in milliseconds since 1970, [`NO_WATERMARK`] if there is none yet: the least over its partitions, but
    /// never lower than it was before.
    pub fn stream_watermarks(&self) -> &BTreeMap<Stream, i64> {
        &self.watermarks.streams
    }

    /// Whether all partitions of the stream have ended. It stays so, even if a partition is added after that.
    pub fn has_ended(&self, stream: &Stream) -> bool {
        self.ends.ended_streams.contains(stream)
    }
}

impl Ends {
    /// Whether the partition has ended just now.
    fn hear(&mut self, task: Option<(&str, u32)>) -> bool {
        let complete = match task {
            None => true,
            Some((name, count)) => {
                self.task_count = count;
                self.tasks.insert(name.to_owned());
                self.tasks.len() >= count as usize
            }
        };
        let now = complete && !self.ended;
        self.ended |= complete;
        now
    }
}

impl Watermarks {
    /// Whether the watermark of the partition rose just now.
    fn hear(&mut self, task: Option<(&str, u32)>, timestamp: i64) -> bool {
        let reached = match task {
            None => Some(timestamp),
            Some((name, count)) => {
                self.task_count = count;
                let highest = self.tasks.get(name).map_or(timestamp, |before| before.timestamp.max(timestamp));
                self.tasks.insert(name.to_owned(), TaskWatermark { timestamp: highest, task_count: count });
                self.least()
            }
        };
        let rose = reached.filter(|reached| *reached > self.watermark);
        self.watermark = rose.unwrap_or(self.watermark);
        rose.is_some()
    }

    /// The least over the upstream tasks, if enough were heard.
    fn least(&self) -> Option<i64> {
        let enough = self.task_count as usize;
        let present = || self.tasks.values().filter(|task| task.task_count == self.task_count);
        if present().count() >= enough {
            return present().map(|task| task.timestamp).min();
        }
        self.tasks.values().map(|task| task.timestamp).min().filter(|_| self.tasks.len() >= enough)
    }
}
