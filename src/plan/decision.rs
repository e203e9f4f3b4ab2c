//! The answer of the planner, and its JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What is to be done, and why. The JSON of `plan --output json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The verdict.
    pub decision: Verdict,
    /// Why nothing may be done; `None` with `none` and `expand`.
    pub code: Option<Code>,
    /// One sentence for people.
    pub message: String,
    /// The topics to grow, by name; empty unless the verdict is `expand`.
    pub changes: Vec<Change>,
    /// Tasks of each subtopology now and once the plan is carried out.
    pub subtopologies: Vec<Parallelism>,
    /// Full topic name -> counts it may have to have, where there are several.
    pub possible_counts: BTreeMap<String, Vec<u32>>,
    /// Full topic name -> count found and count expected, where they cannot be reconciled.
    pub conflicts: BTreeMap<String, Conflict>,
    /// What the operator has to state so that the plan is certain.
    pub questions: Vec<Question>,
    /// What the operator should know.
    pub warnings: Vec<Warning>,
}

impl Decision {
    /// Nothing to do, with a message.
    pub fn none(message: impl Into<String>) -> Self {
        Self {
            decision: Verdict::None,
            code: None,
            message: message.into(),
            changes: Vec::new(),
            subtopologies: Vec::new(),
            possible_counts: BTreeMap::new(),
            conflicts: BTreeMap::new(),
            questions: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// The verdict of the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every internal topic has the expected count.
    None,
    /// The changes make everything fit.
    Expand,
    /// Somebody else has to act first (a copartitioned input).
    Waiting,
    /// Growing topics cannot help, or it would not be safe.
    Blocked,
}

/// Why nothing may be done, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs)]
pub enum Code {
    MissingSourceTopics,
    PinnedConflict,
    CopartitionMismatch,
    WaitingForCopartition,
    BaselineMismatch,
    NoBaseline,
    Ambiguous,
    OrderDependent,
    WouldShrink,
    LimitExceeded,
    /// Kafka itself could not run the topology.
    Unsupported,
    /// Added by the state machine: `partition.autoscaling.timeout.ms` has passed.
    Timeout,
    /// Added by the state machine: keys would move away from their state
    /// (`partition.autoscaling.static.partitioning.check=enforce`).
    KeysWillMove,
}

/// One topic to grow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Full topic name.
    pub topic: String,
    /// What the topic is to the application.
    pub role: Role,
    /// Present count.
    pub from: u32,
    /// Target count, absolute.
    pub to: u32,
    /// The chain of reasons, from the input to this topic.
    pub because: Vec<String>,
}

/// What a topic is to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A source topic that Kafka Streams did not create.
    Input,
    /// A repartition topic, foreign-key join topics included.
    Repartition,
    /// The changelog of a state store.
    Changelog,
}

/// Number of tasks of a subtopology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parallelism {
    /// Id as in the description; `name/0` within a named topology.
    pub id: String,
    /// From the group, else from the baseline, else unknown.
    pub current: Option<u32>,
    /// Once the plan is carried out; `None` where there is no answer.
    pub expected: Option<u32>,
}

/// A count that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// Observed count.
    pub found: u32,
    /// Count that the rules ask for.
    pub expected: u32,
}

/// Something only the operator can tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The setting that answers it, e.g. `topology.pinned`.
    pub setting: String,
    /// Raw names it is about.
    pub about: Vec<String>,
    /// The question in words, with the line to write.
    pub message: String,
}

/// Something the operator should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable code, e.g. `ASSUMED_PINNED`.
    pub code: String,
    /// In words.
    pub message: String,
}
