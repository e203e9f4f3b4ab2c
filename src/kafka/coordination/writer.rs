//! Writing to the coordinator topic, in transactions that a newer leader fences.

use std::time::{Duration, Instant};

use rdkafka::Offset;
use rdkafka::error::{KafkaError as RdKafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use tracing::debug;

use super::{Coordination, GroupMetadata, PARTITION, Position, Quiet, create, denied, failed, partition_at};
use crate::kafka::native::local;
use crate::kafka::port::{ErrorClass, KafkaError};

const SETTINGS: &[(&str, &str)] = &[
    // Near the session: a leader that dies in a transaction keeps nobody waiting for longer.
    ("transaction.timeout.ms", "10000"),
    ("message.timeout.ms", "10000"),
    ("acks", "all"),
    // The second request of a transaction meets the first, which is still being replicated, and is sent again after this time.
    ("retry.backoff.ms", "10"),
    // A transaction is one batch, and nothing more comes that would be worth waiting for.
    ("linger.ms", "0"),
    // One transaction may have to delete every row that the memory can hold.
    ("queue.buffering.max.messages", "100000"),
    ("queue.buffering.max.kbytes", "65536"),
];

/// One wait for delivery reports. rdkafka's poll always takes all of its time.
const TICK: Duration = Duration::from_millis(1);

/// How long aborting waits before the delivery reports are looked at again.
const ABORT_SLICE: Duration = Duration::from_millis(50);

/// A transaction that was not committed, or of which it is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// A newer writer has taken over. This one is finished; only another win brings another.
    #[error("another sidecar has taken over the leadership")]
    Fenced,
    /// The group metadata is of an earlier generation. Nothing was committed.
    #[error("this process is no longer the member of the group that it was")]
    NotMember,
    /// It took too long; whether it is committed is not known. This writer is finished; making another settles it.
    #[error("the coordinator topic did not take the records in time, so it is not known whether they are in it")]
    TimedOut,
    /// A right is missing. Nothing was committed.
    #[error("{0}")]
    Denied(KafkaError),
    /// Anything else. Nothing was committed.
    #[error("{0}")]
    Other(KafkaError),
}

/// The one writer of the coordinator topic. Every call is bounded by its timeout.
pub struct Writer {
    producer: BaseProducer<Deliveries>,
    topic: String,
    position: Position,
    /// Why it can be used no more.
    finished: Option<CommitError>,
}

impl Writer {
    pub(super) fn init(coordination: &Coordination, timeout: Duration) -> Result<Self, CommitError> {
        let name = coordination.name();
        let make = || {
            let mut config = coordination.config(SETTINGS)?;
            config.set("transactional.id", name);
            create(&config, Deliveries::default())
        };
        let writer = Self {
            producer: make().map_err(CommitError::Other)?,
            topic: name.to_owned(),
            position: coordination.position.clone(),
            finished: None,
        };
        writer.producer.init_transactions(timeout.max(TICK)).map_err(|error| writer.explain(&error))?;
        Ok(writer)
    }

    /// Writes records in one transaction, and with them the offset of the group, which makes the broker check that `group` is still
    /// a member of the present generation. A record is a key with a value; without a value it deletes the key.
    ///
    /// Tells the offset of the last record; whoever has [read through](super::LogReader::read_through) it has read everything that
    /// earlier leaders wrote.
    pub fn commit(
        &mut self,
        records: &[(Vec<u8>, Option<Vec<u8>>)],
        group: Option<&GroupMetadata>,
        timeout: Duration,
    ) -> Result<i64, CommitError> {
        if let Some(error) = &self.finished {
            return Err(error.clone());
        }
        let deadline = Instant::now() + timeout;
        let left = || deadline.saturating_duration_since(Instant::now()).max(TICK);
        match self.transaction(records, group, &left) {
            Ok(()) => Ok(self.producer.context().last()),
            Err(RdKafkaError::Transaction(error)) if error.txn_requires_abort() => {
                let error = self.explain(&RdKafkaError::Transaction(error));
                if !self.abort(&left) {
                    self.finished = Some(error.clone());
                }
                Err(error)
            }
            Err(error) => {
                let error = self.explain(&error);
                self.finished = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Whether it can commit no more, so that another one is needed.
    pub fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    fn transaction(
        &self,
        records: &[(Vec<u8>, Option<Vec<u8>>)],
        group: Option<&GroupMetadata>,
        left: &dyn Fn() -> Duration,
    ) -> Result<(), RdKafkaError> {
        self.producer.begin_transaction()?;
        for (key, value) in records {
            let mut record = BaseRecord::to(&self.topic).partition(PARTITION).key(key);
            record.payload = value.as_ref();
            self.producer.send(record).map_err(|(error, _)| error)?;
        }
        if let Some(group) = group {
            let offset = Offset::Offset(self.position.get());
            let offsets = partition_at(&self.topic, offset).map_err(|_| RdKafkaError::Canceled)?;
            self.producer.send_offsets_to_transaction(&offsets, group.get(), left())?;
        }
        // Committing polls as well, but a tenth of a second at a time.
        self.take_reports(left);
        self.producer.commit_transaction(left())
    }

    /// Tells whether the next transaction may begin.
    fn abort(&self, left: &dyn Fn() -> Duration) -> bool {
        loop {
            // It waits for the delivery reports, which somebody has to take meanwhile, so it is called in slices.
            self.take_reports(&|| left().min(ABORT_SLICE));
            match self.producer.abort_transaction(left().min(ABORT_SLICE)) {
                Ok(()) => return true,
                Err(RdKafkaError::Transaction(error)) if error.is_retriable() && left() > TICK => {}
                Err(error) => {
                    debug!(%error, "a transaction that was not aborted");
                    return false;
                }
            }
        }
    }

    /// Takes delivery reports until none is missing, or the time is over.
    fn take_reports(&self, left: &dyn Fn() -> Duration) {
        let deadline = Instant::now() + left();
        while self.producer.in_flight_count() > 0 && Instant::now() < deadline {
            self.producer.poll(TICK);
        }
    }

    fn explain(&self, error: &RdKafkaError) -> CommitError {
        use RDKafkaErrorCode as Code;
        let name = &self.topic;
        let Some(code) = error.rdkafka_error_code() else {
            return CommitError::Other(KafkaError::new(ErrorClass::Other, format!("no transaction on {name}: {error}")));
        };
        match code {
            Code::Fenced | Code::ProducerFenced | Code::InvalidProducerEpoch => CommitError::Fenced,
            Code::UnknownMemberId | Code::IllegalGeneration | Code::FencedInstanceId => CommitError::NotMember,
            Code::TopicAuthorizationFailed => CommitError::Denied(denied("WRITE", "topic", name)),
            Code::GroupAuthorizationFailed => CommitError::Denied(denied("READ", "group", name)),
            Code::TransactionalIdAuthorizationFailed => CommitError::Denied(denied("WRITE", "transactional id", name)),
            code if [local::TIMED_OUT, local::TIMED_OUT_QUEUE, local::TRANSPORT].contains(&(code as i32)) => {
                CommitError::TimedOut
            }
            Code::RequestTimedOut | Code::MessageTimedOut => CommitError::TimedOut,
            code => CommitError::Other(failed("a transaction on", name, code as i32)),
        }
    }
}

/// Keeps the offset of the latest record that the broker took.
#[derive(Default)]
struct Deliveries {
    last: Position,
}

impl Deliveries {
    fn last(&self) -> i64 {
        self.last.get()
    }
}

impl rdkafka::ClientContext for Deliveries {
    fn log(&self, level: rdkafka::config::RDKafkaLogLevel, facility: &str, line: &str) {
        Quiet.log(level, facility, line);
    }

    fn error(&self, error: RdKafkaError, reason: &str) {
        Quiet.error(error, reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        use rdkafka::Message as _;
        match result {
            Ok(message) => self.last.set(message.offset()),
            Err((error, _)) => debug!(%error, "a record that the coordinator topic did not take"),
        }
    }
}
