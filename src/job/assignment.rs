//! The assignment of partitions to tasks as rows of Samza's coordinator stream (`set-task-partition-assignment`).
//!
//! A row has a partition as key and the names of its tasks as value: a partition that is broadcast has several. Compaction compares
//! the bytes of keys, so a key is written in exactly the one form that Samza writes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::model::{Bucket, Id, Name, Partition, Tasks};
use crate::coordinator::Origin;
use crate::coordinator::envelope::{self, json};

/// Type of the rows.
pub const KIND: &str = "set-task-partition-assignment";
const TASK_NAMES: &str = "taskNames";

/// Why a record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Malformed {
    #[error("its key is no key of a coordinator stream ({0}), expected [1,\"TYPE\",\"KEY\"]")]
    Key(String),
    #[error("its key has the version {0}, expected {version}", version = envelope::KEY_VERSION)]
    Version(u64),
    #[error(
        "its key names no partition ({0}), expected [1,\"{KIND}\",\"{{\\\"system\\\":...,\\\"partition\\\":...,\\\"stream\\\":...,\\\"keyBucket\\\":...}}\"]"
    )]
    Partition(String),
    #[error("its value cannot be read ({0}), expected an object whose values have texts")]
    Value(String),
    #[error("its value names no tasks ({0}), expected values.{TASK_NAMES} with a JSON array as text")]
    TaskNames(String),
}

/// What the rows add up to: partition -> its tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment(BTreeMap<Partition, BTreeSet<String>>);

impl Assignment {
    /// Takes up the next record. One of another type changes nothing; one without a value deletes the row.
    pub fn apply(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Malformed> {
        let (version, kind, key) = envelope::parse_key(key).map_err(|error| Malformed::Key(error.to_string()))?;
        if kind != KIND {
            return Ok(());
        }
        if version != envelope::KEY_VERSION {
            return Err(Malformed::Version(version));
        }
        let partition = RowKey::read(&key).map_err(|error| Malformed::Partition(error.to_string()))?.partition();
        let tasks = value.map(task_names).transpose()?.unwrap_or_default();
        // A row without tasks is what Samza deletes.
        if tasks.is_empty() {
            self.0.remove(&partition);
        } else {
            self.0.insert(partition, tasks);
        }
        Ok(())
    }

    /// The records that turn the rows of `previous` into these.
    pub fn encode(&self, previous: &Self, origin: &Origin) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let set = self.0.iter().map(|(partition, tasks)| {
            let values = BTreeMap::from([(TASK_NAMES.to_owned(), json(tasks))]);
            (key(partition), Some(envelope::value(values, origin)))
        });
        let gone = previous.0.keys().filter(|partition| !self.0.contains_key(partition));
        set.chain(gone.map(|partition| (key(partition), None))).collect()
    }

    /// The same by task.
    pub fn tasks(&self) -> Tasks {
        let mut tasks: BTreeMap<String, BTreeSet<Partition>> = BTreeMap::new();
        for (partition, names) in &self.0 {
            for name in names {
                tasks.entry(name.clone()).or_default().insert(partition.clone());
            }
        }
        Tasks(tasks)
    }
}

impl From<&Tasks> for Assignment {
    fn from(tasks: &Tasks) -> Self {
        let mut assignment = Self::default();
        for (task, partitions) in &tasks.0 {
            for partition in partitions {
                assignment.0.entry(partition.clone()).or_default().insert(task.clone());
            }
        }
        assignment
    }
}

fn key(partition: &Partition) -> Vec<u8> {
    let Partition { system, stream, id, bucket } = partition;
    let bucket = bucket.map_or(-1, i64::from);
    envelope::key(KIND, &json(&WrittenKey { system, partition: *id, stream, bucket }))
}

fn task_names(value: &[u8]) -> Result<BTreeSet<String>, Malformed> {
    let values = envelope::values(value).map_err(|error| Malformed::Value(error.to_string()))?;
    let names = values.get(TASK_NAMES).ok_or_else(|| Malformed::TaskNames("it is missing".to_owned()))?;
    serde_json::from_str(names).map_err(|error| Malformed::TaskNames(error.to_string()))
}

/// In the order in which Samza writes it, which is that of a Java hash map.
#[derive(Serialize)]
struct WrittenKey<'a> {
    system: &'a str,
    partition: u32,
    stream: &'a str,
    #[serde(rename = "keyBucket")]
    bucket: i64,
}

/// As it is read: in any order, and without a bucket as before Samza 1.7.
#[derive(Deserialize)]
struct RowKey {
    system: Name,
    stream: Name,
    partition: Id,
    #[serde(default, rename = "keyBucket")]
    bucket: Option<Bucket>,
}

impl RowKey {
    /// By way of a map: an array would do otherwise.
    fn read(text: &str) -> serde_json::Result<Self> {
        let fields: Map<String, Value> = serde_json::from_str(text)?;
        serde_json::from_value(Value::Object(fields))
    }

    fn partition(self) -> Partition {
        let Self { system: Name(system), stream: Name(stream), partition: Id(id), bucket } = self;
        Partition { system, stream, id, bucket: bucket.and_then(|Bucket(bucket)| bucket) }
    }
}
