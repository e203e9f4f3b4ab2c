//! Leader election and memory of the sidecars of one application, over one consumer group, one compacted topic and one
//! transactional id, all of the same name: `<application.id>-partition-autoscaler`.
//!
//! * [`Membership`] keeps this process in the group. Whoever owns partition 0 leads; [`Lease`] says for how long that is sure.
//! * [`Writer`] writes to the topic in transactions. A newer writer fences every earlier one.
//! * [`LogReader`] reads the topic, which leader and followers do alike.
//!
//! The order that keeps it safe: win, then [`Coordination::writer`], and only then read the topic to its end. The cheapest way to
//! do the latter is to commit a record and to [read through](LogReader::read_through) its offset.

mod lease;
mod log_reader;
mod membership;
mod topic;
mod writer;

pub use lease::{GroupMetadata, Held, Lease};
pub use log_reader::{LogError, LogReader, LogRecord};
pub use membership::{LostReason, Membership, MembershipEvent};
pub use topic::{CoordinatorTopic, grown};
pub use writer::{CommitError, Writer};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError as RdKafkaError;
use rdkafka::{ClientConfig, TopicPartitionList};
use tracing::debug;

use super::client::{client_config, settings_refused};
use super::errors::kafka_name;
use super::native::{describe_code, refused};
use super::port::{ErrorClass, KafkaError, TopicId};

/// `session.timeout.ms` of the group: how long after its last sign of life a member still counts as one.
pub const SESSION: Duration = Duration::from_secs(10);

/// Only this partition counts. Somebody may grow the topic, and then another member gets another partition.
const PARTITION: i32 = 0;

/// Makes the parts of the coordination of one application.
pub struct Coordination {
    name: String,
    bootstrap: String,
    settings: BTreeMap<String, String>,
    position: Position,
}

impl Coordination {
    /// Does not connect yet. `settings` are those of librdkafka, `kafka.*` without the prefix.
    pub fn new(bootstrap: &str, settings: &BTreeMap<String, String>, application_id: &str) -> Self {
        Self {
            name: format!("{application_id}-partition-autoscaler"),
            bootstrap: bootstrap.to_owned(),
            settings: settings.clone(),
            position: Position::default(),
        }
    }

    /// Name of the group, of the topic and of the transactional id.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes sure that the topic is there, as it has to be, and served. It is created if it is missing, and never changed.
    pub fn ensure_topic(&self, timeout: Duration) -> Result<CoordinatorTopic, KafkaError> {
        topic::ensure(&self.bootstrap, &self.settings, &self.name, timeout)
    }

    /// Joins the group, on a thread of its own that does nothing else. `events` is called on that thread and must not wait.
    pub fn join(&self, events: impl Fn(MembershipEvent) + Send + Sync + 'static) -> Result<Membership, KafkaError> {
        Membership::join(self, Box::new(events))
    }

    /// Takes over the transactional id, which fences every earlier writer and ends its transaction. Only the leader may do so.
    pub fn writer(&self, timeout: Duration) -> Result<Writer, CommitError> {
        Writer::init(self, timeout)
    }

    /// A reader at the beginning of the topic, which had this id when it was last looked at.
    pub fn reader(&self, topic: Option<TopicId>) -> Result<LogReader, KafkaError> {
        LogReader::new(self, topic)
    }

    /// Settings of a client, where `own` win over the user's: the protocol depends on them.
    fn config(&self, own: &[(&str, &str)]) -> Result<ClientConfig, KafkaError> {
        let mut config = client_config(&self.bootstrap, &self.settings, &self.name)?;
        for (key, value) in own {
            config.set(*key, *value);
        }
        config.set_log_level(RDKafkaLogLevel::Info);
        Ok(config)
    }
}

/// Makes a client of rdkafka; an error tells the setting and not its value.
fn create<C, T: FromClientConfigAndContext<C>>(config: &ClientConfig, context: C) -> Result<T, KafkaError>
where
    C: ClientContext,
{
    config.create_with_context(context).map_err(|error| settings_refused(&refused(error)))
}

/// How far the topic was read. It is what the leader commits, so that a monitor of consumer groups sees no lag.
#[derive(Clone, Default)]
struct Position(Arc<AtomicI64>);

impl Position {
    fn set(&self, next: i64) {
        self.0.store(next, Ordering::Relaxed);
    }

    fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Partition 0 of the topic at an offset.
fn partition_at(topic: &str, offset: rdkafka::Offset) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, PARTITION, offset)
        .map_err(|error| KafkaError::new(ErrorClass::Other, format!("the offset {offset:?} of {topic} is not valid: {error}")))?;
    Ok(list)
}

/// A client without callbacks; librdkafka's lines go to the log of the program.
struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        log_line(level, facility, line);
    }

    fn error(&self, error: RdKafkaError, reason: &str) {
        debug!(target: "librdkafka", %error, "{reason}");
    }
}

impl ConsumerContext for Quiet {}

fn log_line(level: RDKafkaLogLevel, facility: &str, line: &str) {
    debug!(target: "librdkafka", level = level as i32, facility, "{line}");
}

/// The error of a right that is missing. `right` is an operation of Kafka's ACLs, `on` the kind of resource.
fn denied(right: &str, on: &str, name: &str) -> KafkaError {
    let sentence = format!(
        "Kafka denies {right} on the {on} {name}, which leader election needs; grant it to the user of this program, then it goes on"
    );
    KafkaError::new(ErrorClass::Authorization, sentence)
}

/// The error of a code without a remedy of its own.
fn failed(doing: &str, name: &str, code: i32) -> KafkaError {
    let message = format!("Kafka failed {doing} {name} with {}: {}", kafka_name(code), describe_code(code));
    KafkaError::new(ErrorClass::Other, message)
}
