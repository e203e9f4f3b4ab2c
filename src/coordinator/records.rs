//! The rows of the coordinator topic. How they look as bytes: [`Change::encode`] and [`Change::decode`].

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::autoscaler::status::{AssignorError, StateName};
use crate::kafka::port::{TopicError, TopicId};

/// Entries of the history that are kept: the topic stays small however long it lives.
pub const HISTORY_SLOTS: u64 = 100;

/// Identity of everything a plan hangs on: topology, pins, configuration, topic ids. 64 bits of FNV-1a, which is the same in every
/// version of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// Fingerprint of parts in their order. Where one part ends and the next begins counts.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        // 0xff is no byte of UTF-8
        let bytes = parts.into_iter().flat_map(|part| part.bytes().chain([0xff]));
        Self(bytes.fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME)))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Who started a plan. The two never overwrite each other's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An input grew. Covered by the standing intent; its rows follow the request.
    Reaction,
    /// A person asked for it. Its intent is committed before the request.
    Operator,
}

/// What became of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All counts are verified.
    Expanded,
    /// Given up.
    Failed,
    /// Not sent: it was no longer wanted, or no longer allowed.
    Dropped,
}

/// One row of state. Times are milliseconds since 1970, UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// An input at the time when every internal topic last had exactly the expected count.
    Baseline(Baseline),
    /// A repartition topic that has followed an input once, so is known not to be pinned.
    FollowsInput {
        /// Full topic name.
        topic: String,
        /// Which topic it was, where the broker tells; one that was made anew may be pinned.
        id: Option<TopicId>,
    },
    /// A repartition topic as the leader last saw it. One that has grown since follows its inputs, for an explicit count does not change:
    /// a leader that ended between a request and its record leaves no other trace.
    RepartitionCount {
        /// Full topic name.
        topic: String,
        /// Its count.
        partitions: u32,
        /// Which topic it was, where the broker tells.
        id: Option<TopicId>,
    },
    /// A plan that may be carried out, or was.
    Intent(Intent),
    /// The leader's permission to react.
    StandingIntent(StandingIntent),
    /// The latest sidecar that began to take over. Whoever has read its own has read everything that earlier leaders wrote.
    TakeOver {
        /// Which sidecar.
        member: String,
    },
    /// What became of an intent.
    Outcome(Outcome),
    /// What the leader tells all sidecars.
    AssignorError {
        /// Kafka's number and name.
        error: AssignorError,
        /// One sentence for people.
        message: String,
    },
    /// The topology that baselines and followers were learned with.
    Topology(Fingerprint),
    /// `partition.autoscaling.enabled` as the leader has it.
    Flag {
        /// Its value.
        enabled: bool,
        /// Since when.
        since: u64,
    },
    /// Where the leader's state machine stands.
    State {
        /// Which state.
        name: StateName,
        /// Since when.
        since: u64,
        /// In words.
        details: String,
    },
    /// A failed expansion that was counted.
    Failure(CountedFailure),
    /// Something that happened.
    History(HistoryRow),
}

/// An input when everything fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// Full topic name.
    pub topic: String,
    /// Its count.
    pub partitions: u32,
    /// Which topic it was; a topic with another id has no baseline. `None` where the broker is too old to tell.
    pub id: Option<TopicId>,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Who started it.
    pub kind: Kind,
    /// Number of the intent, higher than that of any before; for a reaction that of the standing intent it was sent under.
    pub epoch: u64,
    /// What it was planned with.
    pub fingerprint: Fingerprint,
    /// Full topic name -> total.
    pub targets: BTreeMap<String, u32>,
    /// Full topic name -> the topic it was planned for, where the broker tells.
    pub topic_ids: BTreeMap<String, TopicId>,
}

/// The leader's permission to react to growth, under exactly one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingIntent {
    /// Number of the intent, higher than that of any before.
    pub epoch: u64,
    /// The model.
    pub fingerprint: Fingerprint,
    /// Who leads.
    pub member: String,
}

/// What became of an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Who started the plan.
    pub kind: Kind,
    /// The intent it is about.
    pub epoch: u64,
    /// How it ended.
    pub result: Verdict,
    /// Full topic name -> its latest error.
    pub errors: BTreeMap<String, TopicError>,
    /// From the first sight of the mismatch to the end, in milliseconds.
    pub took_ms: u64,
}

/// A failure that was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedFailure {
    /// Identity of the mismatch: the same for every leader that tries to mend it. Empty once that is over, for then the same
    /// mismatch counts anew.
    pub mismatch: String,
    /// How many failures there were with this one, so that old rows can be deleted.
    pub number: u64,
    /// When.
    pub at: u64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    /// Counts all entries ever; its slot is this modulo [`HISTORY_SLOTS`].
    pub number: u64,
    /// When.
    pub at: u64,
    /// Short stable name, e.g. `expanded`.
    pub event: String,
    /// In words.
    pub message: String,
}

/// What a row is about; a later row of the same key replaces it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "named like the rows")]
pub enum Key {
    Baseline(String),
    FollowsInput(String),
    RepartitionCount(String),
    Intent(Kind),
    StandingIntent,
    TakeOver,
    Outcome(Kind),
    AssignorError,
    Topology,
    Flag,
    State,
    Failure(String),
    History(u64),
}

impl Row {
    /// What it is about.
    pub fn key(&self) -> Key {
        match self {
            Self::Baseline(row) => Key::Baseline(row.topic.clone()),
            Self::FollowsInput { topic, .. } => Key::FollowsInput(topic.clone()),
            Self::RepartitionCount { topic, .. } => Key::RepartitionCount(topic.clone()),
            Self::Intent(row) => Key::Intent(row.kind),
            Self::StandingIntent(_) => Key::StandingIntent,
            Self::TakeOver { .. } => Key::TakeOver,
            Self::Outcome(row) => Key::Outcome(row.kind),
            Self::AssignorError { .. } => Key::AssignorError,
            Self::Topology(_) => Key::Topology,
            Self::Flag { .. } => Key::Flag,
            Self::State { .. } => Key::State,
            Self::Failure(row) => Key::Failure(row.mismatch.clone()),
            Self::History(row) => Key::History(row.number % HISTORY_SLOTS),
        }
    }
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The row is so from now on.
    Set(Row),
    /// The row is gone.
    Delete(Key),
}

/// Who writes a record, and when; for people who read the topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name or address of the host; empty if unknown.
    pub host: String,
    /// User that the process runs as; empty if unknown.
    pub username: String,
    /// Milliseconds since 1970.
    pub timestamp: u64,
}

/// Why a record was passed over. Such a record changes nothing, and the next one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Skipped {
    /// The key is not the compact array `[1,"TYPE","KEY"]`.
    #[error("the key is not one of this program")]
    NotAKey,
    /// Written by another version of the layout.
    #[error("the record has a version that this program does not know")]
    UnknownVersion,
    /// Written by another version of this program, or another program.
    #[error("the record has a type that this program does not know")]
    UnknownType,
    /// The value, or the third part of the key, does not fit the type.
    #[error("the record does not say what its type has to say")]
    Malformed,
    /// Key or value is longer than any of this program.
    #[error("the record is too long")]
    TooLong,
    /// There are as many rows of the type as are kept.
    #[error("there are too many records of the type")]
    TooMany,
}
