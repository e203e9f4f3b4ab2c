//! What there is to consume, and who consumes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Serialize, Serializer};

/// Largest number of a partition or key bucket: they are 32-bit numbers with a sign in Kafka and in Samza.
pub const MAX_NUMBER: u32 = i32::MAX as u32;

/// A partition of a stream of a system (a topic of a cluster), or one key bucket of it. The JSON is that of Samza's tools:
/// `["kafka", "orders", 0]`, with the bucket as fourth element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// Name of the system.
    pub system: String,
    /// Name of the stream in that system.
    pub stream: String,
    /// Number of the partition.
    pub id: u32,
    /// Part of its keys, where a partition is shared by several tasks (Samza's elasticity).
    pub bucket: Option<u32>,
}

impl Partition {
    /// The stream, as a key.
    pub(super) fn stream_key(&self) -> StreamKey<'_> {
        (&self.system, &self.stream)
    }

    /// All keys of the partition.
    pub(super) fn whole(&self) -> Self {
        Self { bucket: None, ..self.clone() }
    }
}

/// System and stream.
pub(super) type StreamKey<'a> = (&'a str, &'a str);

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { system, stream, id, bucket } = self;
        write!(f, "{system}.{stream}#{id}")?;
        bucket.map_or(Ok(()), |bucket| write!(f, "/{bucket}"))
    }
}

impl Serialize for Partition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { system, stream, id, bucket } = self;
        match bucket {
            None => (system, stream, id).serialize(serializer),
            Some(bucket) => (system, stream, id, bucket).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Partition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;

        impl<'de> Visitor<'de> for Parts {
            type Value = Partition;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("[\"system\", \"stream\", partition], with the key bucket as fourth element if there are any")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Partition, A::Error> {
                let Name(system) = parts.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
                let Name(stream) = parts.next_element()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
                let Id(id) = parts.next_element()?.ok_or_else(|| A::Error::invalid_length(2, &self))?;
                let bucket = parts.next_element()?.and_then(|Bucket(bucket)| bucket);
                let mut length = 4;
                while parts.next_element::<serde::de::IgnoredAny>()?.is_some() {
                    length += 1;
                }
                if length > 4 {
                    return Err(A::Error::invalid_length(length, &self));
                }
                Ok(Partition { system, stream, id, bucket })
            }
        }

        deserializer.deserialize_seq(Parts)
    }
}

/// The name of a system or stream, as it is read.
pub(super) struct Name(pub String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name.is_empty() {
            return Err(D::Error::invalid_value(Unexpected::Str(""), &"the name of a system or stream"));
        }
        Ok(Self(name))
    }
}

/// The number of a partition, as it is read.
pub(super) struct Id(pub u32);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_i64(Number("a partition number from 0 to 2147483647")).and_then(|n: Read| n.valid()).map(Self)
    }
}

/// The number of a key bucket, as it is read; -1 stands for none.
pub(super) struct Bucket(pub Option<u32>);

impl<'de> Deserialize<'de> for Bucket {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = deserializer.deserialize_i64(Number("a key bucket from 0 to 2147483647, or -1 for none"))?;
        if number.value == -1 { Ok(Self(None)) } else { number.valid().map(|bucket| Self(Some(bucket))) }
    }
}

/// Reads a number; says what was expected.
struct Number(&'static str);

struct Read {
    value: i64,
    expected: &'static str,
}

impl Read {
    fn valid<E: Error>(self) -> Result<u32, E> {
        let number = u32::try_from(self.value).ok().filter(|number| *number <= MAX_NUMBER);
        number.ok_or_else(|| E::invalid_value(Unexpected::Signed(self.value), &self.expected))
    }
}

impl Visitor<'_> for Number {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Read, E> {
        Ok(Read { value, expected: self.0 })
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Read, E> {
        let value = i64::try_from(value).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))?;
        self.visit_i64(value)
    }
}

/// Task name -> what the task consumes. A set: the order in which partitions are listed means nothing, nor does a second mention.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Tasks(pub BTreeMap<String, BTreeSet<Partition>>);

impl<'de> Deserialize<'de> for Tasks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Tasks;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of task names, each with a list of partitions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tasks, A::Error> {
                let mut tasks = BTreeMap::new();
                while let Some((task, partitions)) = entries.next_entry::<String, BTreeSet<Partition>>()? {
                    if tasks.contains_key(&task) {
                        return Err(A::Error::custom(format!("the task {task:?} stands here twice, expected each task once")));
                    }
                    tasks.insert(task, partitions);
                }
                Ok(Tasks(tasks))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}
