//! What the rest of the program may ask of a Kafka cluster, without a client in sight.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Identity of a topic; a recreated topic has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicId(pub u128);

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for TopicId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What one topic looked like in one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicState {
    /// It exists. Counts are numbers of partitions.
    Present {
        /// `None` where the broker is too old to tell.
        id: Option<TopicId>,
        /// Number of partitions, at least 1.
        partitions: u32,
    },
    /// The broker does not know it (yet).
    Missing,
    /// The count is unknown: no right to see it, or another error. Neither zero nor missing.
    Failed(TopicError),
}

/// Error of one topic in an answer, by Kafka's protocol code (`org.apache.kafka.common.protocol.Errors`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicError {
    /// Kafka's error code, e.g. 29.
    pub code: i16,
    /// Kafka's name, e.g. `TOPIC_AUTHORIZATION_FAILED`.
    pub name: String,
    /// What the broker said, or the client's description of the code.
    pub message: String,
}

/// All names of one request in one answer.
pub type Observation = BTreeMap<String, TopicState>;

/// Answer to one CreatePartitions request: every topic that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Per topic: done, or the error.
    pub topics: BTreeMap<String, Result<(), TopicError>>,
    /// How long the broker asks to wait before the next request; zero if it does not.
    pub throttle: Duration,
}

/// A request that got no usable answer as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct KafkaError {
    /// What kind of failure, for metrics and the exit code.
    pub class: ErrorClass,
    /// One sentence: the thing, what was expected, what to do.
    pub message: String,
}

impl KafkaError {
    /// An error of this class, in one sentence.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }
}

/// Small, closed set of failure kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// No connection: nothing listens, the name does not resolve, or the connection broke.
    Unreachable,
    /// An answer did not come in time.
    TimedOut,
    /// TLS or SASL failed, or one side speaks TLS and the other does not.
    Authentication,
    /// A right is missing.
    Authorization,
    /// The broker lacks a feature that is needed.
    TooOld,
    /// Settings that the client refuses.
    Config,
    /// Anything else.
    Other,
}

/// The cluster as the autoscaler uses it. Calls block; each is bounded by its timeout.
pub trait Cluster: Send {
    /// Id of the cluster that answers.
    fn cluster_id(&mut self, timeout: Duration) -> Result<String, KafkaError>;
    /// Counts and ids of exactly these topics, in one request (never creates a topic).
    fn describe_topics(&mut self, names: &[String], timeout: Duration) -> Result<Observation, KafkaError>;
    /// Names of all topics of the cluster; only for pattern sources.
    fn list_topics(&mut self, timeout: Duration) -> Result<Vec<String>, KafkaError>;
    /// Grows all topics to these totals in one CreatePartitions request.
    fn create_partitions(&mut self, targets: &BTreeMap<String, u32>, timeout: Duration) -> Result<Reply, KafkaError>;
    /// State and assignment of a classic group; `None` if there is no such group, or no right to see it. Every broker is asked, so it
    /// fails for a while (about ten seconds) after one has gone.
    fn describe_group(&mut self, group: &str, timeout: Duration) -> Result<Option<Group>, KafkaError>;
}

/// A classic consumer group as DescribeGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// `Stable`, `PreparingRebalance`, `CompletingRebalance`, `Empty`, `Dead`.
    pub state: String,
    /// Protocol type, `consumer` for Kafka Streams.
    pub protocol_type: String,
    /// Name of the assignor, `stream` for Kafka Streams.
    pub protocol: String,
    /// Its members.
    pub members: Vec<GroupMember>,
}

/// A member of a classic group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// Id given by the coordinator.
    pub id: String,
    /// `client.id`.
    pub client_id: String,
    /// Host as the broker saw it.
    pub host: String,
    /// `ConsumerProtocolSubscription` bytes; empty unless the group is stable.
    pub metadata: Vec<u8>,
    /// `ConsumerProtocolAssignment` bytes; empty unless the group is stable.
    pub assignment: Vec<u8>,
}
