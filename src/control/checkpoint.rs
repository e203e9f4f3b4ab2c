//! What a reconciler has heard, as it is saved with the input offsets (SEP-6, "Checkpoint").
//!
//! Samza keeps it in memory only: after a restart, the end of a stream whose messages were already consumed never comes. Saved in
//! the same write as the offsets it is neither lost nor heard twice; and were it older or newer than them, hearing a message again
//! changes nothing. All types serialize with serde; an unknown version or field is an error of the deserializer.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{NO_WATERMARK, Partition, Stream};

/// Everything that a task needs to go on after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// For each input partition the offset of the next record to read.
    #[serde(with = "entries")]
    pub offsets: BTreeMap<Partition, i64>,
    /// Which upstream tasks have ended.
    pub end_of_stream: EndOfStreamCheckpoint,
    /// How far upstream tasks have come.
    pub watermark: WatermarkCheckpoint,
}

/// Which upstream tasks have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndOfStreamCheckpoint {
    version: Version,
    /// For each input partition, what was heard of ends.
    #[serde(with = "entries")]
    pub partitions: BTreeMap<Partition, Ends>,
    /// Streams of which all partitions have ended.
    pub ended_streams: BTreeSet<Stream>,
}

/// What was heard of ends in one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ends {
    /// Number of upstream tasks, as the newest message told; 0 before the first.
    pub task_count: u32,
    /// The upstream tasks that have ended.
    pub tasks: BTreeSet<String>,
    /// The partition has ended.
    pub ended: bool,
}

/// How far upstream tasks have come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatermarkCheckpoint {
    version: Version,
    /// For each input partition, what was heard of watermarks.
    #[serde(with = "entries")]
    pub partitions: BTreeMap<Partition, Watermarks>,
    /// Watermark of each stream, in milliseconds since 1970; [`NO_WATERMARK`] if there is none yet.
    #[serde(with = "entries")]
    pub streams: BTreeMap<Stream, i64>,
}

/// What was heard of watermarks in one partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watermarks {
    /// Number of upstream tasks, as the newest message told; 0 before the first.
    pub task_count: u32,
    /// The upstream tasks that were heard.
    pub tasks: BTreeMap<String, TaskWatermark>,
    /// The watermark that was emitted last, in milliseconds since 1970; [`NO_WATERMARK`] if there is none yet.
    pub watermark: i64,
}

impl Default for Watermarks {
    fn default() -> Self {
        Self { task_count: 0, tasks: BTreeMap::new(), watermark: NO_WATERMARK }
    }
}

/// How far one upstream task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskWatermark {
    /// Its highest timestamp, in milliseconds since 1970.
    pub timestamp: i64,
    /// Number of upstream tasks that its latest message told.
    pub task_count: u32,
}

/// The version of both checkpoints: 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
struct Version;

impl TryFrom<u32> for Version {
    type Error = String;

    fn try_from(version: u32) -> Result<Self, String> {
        match version {
            1 => Ok(Self),
            other => Err(format!("the checkpoint has version {other}, expected 1; it was written by a newer program")),
        }
    }
}

impl From<Version> for u32 {
    fn from(_: Version) -> Self {
        1
    }
}

/// Maps whose keys are not text, as lists of pairs.
mod entries {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<K: Serialize, V: Serialize, S: Serializer>(map: &BTreeMap<K, V>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub fn deserialize<'de, K, V, D>(from: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::deserialize(from)?.into_iter().collect())
    }
}
