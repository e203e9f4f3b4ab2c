//! What a sidecar shows of an application: the JSON of `/v1/status`.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::kafka::port::TopicError;
use crate::plan::{Decision, Question, Warning};

/// Everything that is known of one application at one moment. Times are UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationStatus {
    /// `application.id`.
    pub application_id: String,
    /// Id of the cluster; `None` until it has answered.
    pub cluster_id: Option<String>,
    /// Whether this sidecar acts for the application.
    pub leader: bool,
    /// `partition.autoscaling.enabled`.
    pub enabled: bool,
    /// Where the state machine stands.
    pub state: StateStatus,
    /// Where the topology came from, e.g. `describe`; `None` until it is known.
    pub topology_source: Option<String>,
    /// Counts of the inputs when every internal topic last had exactly the expected count.
    pub baseline: BTreeMap<String, u32>,
    /// The topics that are watched, by full name.
    pub partitions: BTreeMap<String, TopicCounts>,
    /// The latest decision.
    pub plan: Option<Decision>,
    /// Why the latest call to Kafka failed as a whole, in one sentence.
    pub last_error: Option<String>,
    /// Topic -> why it could not be seen or grown.
    pub topic_errors: BTreeMap<String, TopicError>,
    /// What the leader tells all sidecars.
    pub assignor_error: AssignorErrorStatus,
    /// Failed expansions (`num-autoscaling-failures` of KIP-878): of all leaders ever, or with `leader.election=none` since the
    /// start.
    pub failures: u64,
    /// What the operator has to state so that the plan is certain.
    pub questions: Vec<Question>,
    /// What the operator should know.
    pub warnings: Vec<Warning>,
    /// The latest events, oldest first.
    pub history: Vec<HistoryEntry>,
    /// The latest expansion that was carried out.
    pub last_expansion: Option<ExpansionStatus>,
}

/// Details of an application of which nothing is known yet.
pub const NOTHING_OBSERVED: &str = "nothing observed yet";

impl ApplicationStatus {
    /// An application of which nothing is known yet.
    pub fn starting(application_id: impl Into<String>, enabled: bool, now: SystemTime) -> Self {
        Self {
            application_id: application_id.into(),
            cluster_id: None,
            leader: false,
            enabled,
            state: StateStatus { name: StateName::Starting, since: Time(now), details: NOTHING_OBSERVED.to_owned() },
            topology_source: None,
            baseline: BTreeMap::new(),
            partitions: BTreeMap::new(),
            plan: None,
            last_error: None,
            topic_errors: BTreeMap::new(),
            assignor_error: AssignorError::None.into(),
            failures: 0,
            questions: Vec::new(),
            warnings: Vec::new(),
            history: Vec::new(),
            last_expansion: None,
        }
    }
}

/// A moment, written as `2026-11-30T14:05:06.789Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub SystemTime);

impl Time {
    /// Milliseconds since 1970; 0 for what lies before.
    pub fn milliseconds(self) -> u64 {
        let since = self.0.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", humantime::format_rfc3339_millis(self.0))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        humantime::parse_rfc3339(&text).map(Time).map_err(serde::de::Error::custom)
    }
}

/// Where the state machine stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateStatus {
    /// Which state.
    pub name: StateName,
    /// Since when.
    pub since: Time,
    /// What is going on, in one sentence.
    pub details: String,
}

/// The states of an application, without what they carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StateName {
    /// Topology or first full observation missing.
    Starting,
    /// Every internal topic has the expected count.
    Steady,
    /// A CreatePartitions request is in flight or due.
    Expanding,
    /// Counts match; the group has not yet taken up the new partitions.
    Settling,
    /// Copartitioned inputs differ that were equal before.
    Waiting,
    /// Growing topics cannot help, or it would not be safe.
    Blocked,
    /// `partition.autoscaling.enabled=false`, and counts do not fit.
    Disabled,
    /// Given up after `partition.autoscaling.timeout.ms`.
    Failed,
}

/// Counts of one watched topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicCounts {
    /// Present number of partitions; `None` = not known, or no such topic.
    pub count: Option<u32>,
    /// What the plan wants; `None` = no answer.
    pub expected: Option<u32>,
}

/// Kafka's `AssignorError`, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs)]
pub enum AssignorError {
    None = 0,
    IncompleteSourceTopicMetadata = 1,
    VersionProbing = 2,
    AssignmentError = 3,
    ShutdownRequested = 4,
}

/// An `AssignorError` by number and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignorErrorStatus {
    /// 0 to 4.
    pub code: u8,
    /// Kafka's name.
    pub name: AssignorError,
}

impl From<AssignorError> for AssignorErrorStatus {
    fn from(name: AssignorError) -> Self {
        Self { code: name as u8, name }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// When.
    pub at: Time,
    /// Short stable name, e.g. `expanded`.
    pub event: String,
    /// In words.
    pub message: String,
}

/// An expansion that was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpansionStatus {
    /// When the growth was first seen.
    pub seen: Time,
    /// Milliseconds from then until all counts were verified.
    pub reaction_ms: u64,
    /// Topic -> its new count.
    pub topics: BTreeMap<String, u32>,
    /// Milliseconds until the group had taken up the new partitions; `None` until then.
    pub settled_ms: Option<u64>,
}
