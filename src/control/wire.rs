//! How messages look in an intermediate topic: one type byte, then the payload.
//!
//! The type byte is the ordinal of Samza's `MessageType`: 0 user, 1 watermark, 2 end of stream, 3 drain. The payload of a user message
//! is the user's bytes; that of a control message is a JSON object. Its fields over the years, all of which are read:
//!
//! | layout | fields |
//! |---|---|
//! | SEP-6, written as [`WireFormat::Seed`] | `version`, `taskName`, `taskCount`, and `timestamp` (watermark) or `streamId` (end of stream) |
//! | Samza 0.13.1 | the same, as `task-name`, `task-count`, `stream-id` |
//! | Samza 0.14 and newer (`IntermediateMessageSerde`), written as [`WireFormat::Samza`] | without `taskCount` and `streamId`; since 1.8 `runId` (drain) |
//!
//! As in Samza an absent version is 1, an absent timestamp 0, and of two spellings `taskName` counts. Unlike Samza, null counts as
//! absent, and what no layout has is an error: another version, a text where a number belongs, anything after the object.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The version of every layout so far.
const VERSION: u64 = 1;

/// A message of an intermediate topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The user's bytes.
    User(&'a [u8]),
    /// From the stream processor to itself, downstream.
    Control(ControlMessage),
}

/// A watermark, an end of stream or a drain, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlMessage {
    /// Name of the upstream task; `None` if the partition speaks for itself, as that of a source does, or one into which a Samza task
    /// sent what it had put together.
    pub task_name: Option<String>,
    /// How many upstream tasks there are. Samza 0.14 and newer do not tell; what is known from elsewhere may be filled in.
    pub task_count: Option<u32>,
    /// What is said.
    pub body: Body,
}

/// What a control message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// No record with an earlier event time will follow from this task.
    Watermark {
        /// Event time in milliseconds since 1970.
        timestamp: i64,
    },
    /// Nothing will follow from this task.
    EndOfStream {
        /// The stream that ended, where it is told.
        stream_id: Option<String>,
    },
    /// The job is being drained (SEP-31): finish what is under way. Not reconciled here.
    Drain {
        /// The run that is drained (`app.run.id`); a drain of another run is to be passed over.
        run_id: Option<String>,
    },
}

/// Which layout is written. Every layout is read, whichever this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WireFormat {
    /// SEP-6: `taskCount` and `streamId` travel with the message, so a receiver needs no job model. Samza 0.14 and newer refuse it.
    #[default]
    Seed,
    /// What Samza 0.14 and newer write and read.
    Samza,
}

/// The types of messages. Discriminants are the type bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The user's own.
    #[default]
    User = 0,
    /// See [`Body::Watermark`].
    Watermark = 1,
    /// See [`Body::EndOfStream`].
    EndOfStream = 2,
    /// See [`Body::Drain`].
    Drain = 3,
}

impl Kind {
    fn of_byte(byte: u8) -> Option<Self> {
        [Self::User, Self::Watermark, Self::EndOfStream, Self::Drain].into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Its name, in JSON too: `user`, `watermark`, `end-of-stream`, `drain`.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Watermark => "watermark",
            Self::EndOfStream => "end-of-stream",
            Self::Drain => "drain",
        }
    }
}

impl ControlMessage {
    /// Its type.
    pub fn kind(&self) -> Kind {
        match self.body {
            Body::Watermark { .. } => Kind::Watermark,
            Body::EndOfStream { .. } => Kind::EndOfStream,
            Body::Drain { .. } => Kind::Drain,
        }
    }
}

/// Bytes, or fields, that are no message.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// No type byte.
    #[error("the message is empty, expected a type byte (0 user, 1 watermark, 2 end-of-stream, 3 drain)")]
    Empty,
    /// A type byte that is not known.
    #[error("the type byte is {0}, expected 0 (user), 1 (watermark), 2 (end-of-stream) or 3 (drain)")]
    UnknownType(u8),
    /// A payload that is not the JSON of a control message.
    #[error("the payload of the {kind} message is not a JSON object of its fields: {reason}")]
    Payload {
        /// Type of the message.
        kind: &'static str,
        /// What is wrong with it, and where.
        reason: serde_json::Error,
    },
    /// A field of another type of message.
    #[error("{kind} messages have no {field}")]
    Field {
        /// Type of the message.
        kind: &'static str,
        /// Name of the field.
        field: &'static str,
    },
    /// A version of later days.
    #[error("the version of the {kind} message is {version}, expected {VERSION}; it was written by a newer program")]
    Version {
        /// Type of the message.
        kind: &'static str,
        /// The version found.
        version: u64,
    },
}

/// The fields of all control messages, before it is known whether they make one.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub version: Option<u64>,
    pub task_name: Option<String>,
    pub task_count: Option<u32>,
    pub timestamp: Option<i64>,
    pub stream_id: Option<String>,
    pub run_id: Option<String>,
}

impl Fields {
    /// The message of this kind. A user message has no fields, only a control message has any.
    pub fn message(self, kind: Kind, payload: &[u8]) -> Result<Message<'_>, WireError> {
        let Self { version, task_name, task_count, timestamp, stream_id, run_id } = self;
        let is_user = kind == Kind::User;
        for (field, misplaced) in [
            ("version", version.is_some() && is_user),
            ("taskName", task_name.is_some() && is_user),
            ("taskCount", task_count.is_some() && is_user),
            ("timestamp", timestamp.is_some() && kind != Kind::Watermark),
            ("streamId", stream_id.is_some() && kind != Kind::EndOfStream),
            ("runId", run_id.is_some() && kind != Kind::Drain),
        ] {
            if misplaced {
                return Err(WireError::Field { kind: kind.name(), field });
            }
        }
        if let Some(version) = version.filter(|version| *version != VERSION) {
            return Err(WireError::Version { kind: kind.name(), version });
        }
        let body = match kind {
            Kind::User => return Ok(Message::User(payload)),
            Kind::Watermark => Body::Watermark { timestamp: timestamp.unwrap_or(0) },
            Kind::EndOfStream => Body::EndOfStream { stream_id },
            Kind::Drain => Body::Drain { run_id },
        };
        Ok(Message::Control(ControlMessage { task_name, task_count, body }))
    }
}

/// A payload in any layout.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct Payload {
    version: Option<u64>,
    timestamp: Option<i64>,
    #[serde(rename = "taskName")]
    task_name: Option<String>,
    #[serde(rename = "task-name")]
    dashed_task_name: Option<String>,
    #[serde(rename = "taskCount")]
    task_count: Option<u32>,
    #[serde(rename = "task-count")]
    dashed_task_count: Option<u32>,
    #[serde(rename = "streamId")]
    stream_id: Option<String>,
    #[serde(rename = "stream-id")]
    dashed_stream_id: Option<String>,
    #[serde(rename = "runId")]
    run_id: Option<String>,
    #[serde(rename = "run-id")]
    dashed_run_id: Option<String>,
}

impl From<Payload> for Fields {
    fn from(payload: Payload) -> Self {
        Self {
            version: payload.version,
            task_name: payload.task_name.or(payload.dashed_task_name),
            task_count: payload.task_count.or(payload.dashed_task_count),
            timestamp: payload.timestamp,
            stream_id: payload.stream_id.or(payload.dashed_stream_id),
            run_id: payload.run_id.or(payload.dashed_run_id),
        }
    }
}

/// Reads the value of a record, in whichever layout it was written (`IntermediateMessageSerde#fromBytes`). A record without a type byte,
/// from before Samza 0.13.1 or another producer, is an error unless its first byte happens to be one.
pub fn decode(bytes: &[u8]) -> Result<Message<'_>, WireError> {
    let (&byte, payload) = bytes.split_first().ok_or(WireError::Empty)?;
    let kind = Kind::of_byte(byte).ok_or(WireError::UnknownType(byte))?;
    if kind == Kind::User {
        return Ok(Message::User(payload));
    }
    let wrong = |reason| WireError::Payload { kind: kind.name(), reason };
    // A list would do for a struct as well.
    let object: Map<String, Value> = serde_json::from_slice(payload).map_err(wrong)?;
    let fields = Payload::deserialize(Value::Object(object)).map_err(wrong)?;
    Fields::from(fields).message(kind, payload)
}

/// The value of a record; its key is null for a control message (`IntermediateMessageSerde#toBytes`).
pub fn encode(message: &Message<'_>, format: WireFormat) -> Vec<u8> {
    let (kind, payload) = match message {
        Message::User(payload) => return [&[Kind::User as u8], *payload].concat(),
        Message::Control(control) => (control.kind(), payload(control, format)),
    };
    [&[kind as u8], payload.as_bytes()].concat()
}

fn payload(ControlMessage { task_name, task_count, body }: &ControlMessage, format: WireFormat) -> String {
    // Samza writes a task that is not there as null.
    let mut fields = Map::from_iter([("version".to_owned(), json!(VERSION)), ("taskName".to_owned(), json!(task_name))]);
    let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    match body {
        Body::Watermark { timestamp } => add("timestamp", json!(timestamp)),
        Body::EndOfStream { stream_id: Some(stream) } if format == WireFormat::Seed => add("streamId", json!(stream)),
        Body::EndOfStream { .. } => None,
        Body::Drain { run_id } => add("runId", json!(run_id)),
    };
    if let (Some(count), WireFormat::Seed) = (task_count, format) {
        add("taskCount", json!(count));
    }
    Value::Object(fields).to_string()
}
