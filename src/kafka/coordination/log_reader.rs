//! Reading the coordinator topic: what is committed, from the beginning on.

use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError as RdKafkaError;
use rdkafka::{Message as _, Offset};
use tracing::debug;

use super::{Coordination, PARTITION, Position, Quiet, create, denied, failed, partition_at};
use crate::kafka::native::local;
use crate::kafka::port::{ErrorClass, KafkaError, TopicId};

const SETTINGS: &[(&str, &str)] = &[
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("isolation.level", "read_committed"),
    // An offset that is gone means that the topic is another one; nothing may be skipped silently.
    ("auto.offset.reset", "error"),
    ("enable.partition.eof", "true"),
    ("topic.metadata.refresh.interval.ms", "5000"),
    // A topic that was deleted soon after it was created is missed within this time.
    ("topic.metadata.propagation.max.ms", "1000"),
    // The topic is small.
    ("fetch.message.max.bytes", "262144"),
    ("queued.min.messages", "1000"),
    ("queued.max.messages.kbytes", "1024"),
    // These are soon full, and the next fetch must not wait for a second after that.
    ("fetch.queue.backoff.ms", "1"),
];

/// Records that one call hands out at most, so that it comes to an end.
const BATCH: usize = 1000;

/// Between two attempts to read a topic that cannot be read.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

/// A committed record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Its place; rises, with gaps.
    pub offset: i64,
    /// Empty if there is none.
    pub key: Vec<u8>,
    /// `None` deletes the key.
    pub value: Option<Vec<u8>>,
}

/// Why nothing could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The topic was deleted, recreated or cut off. Forget what was read; reading begins anew, and with a topic that is missing this
    /// error comes again until it is there.
    #[error("the coordinator topic was deleted or begun anew")]
    Restarted,
    /// The right to read is missing.
    #[error("{0}")]
    Denied(KafkaError),
    /// The end was not reached in time. What was read on the way comes again with the next call.
    #[error(
        "the coordinator topic could not be read to its end in time; if that stays so, another producer has an open transaction in it, \
         see kafka-transactions.sh find-hanging"
    )]
    TimedOut,
    /// Anything else; reading goes on with the next call.
    #[error("{0}")]
    Other(KafkaError),
}

/// A reader of the coordinator topic, which joins no group.
pub struct LogReader {
    consumer: BaseConsumer<Quiet>,
    topic: String,
    id: Option<TopicId>,
    /// The offset to read next; `None` at the beginning.
    next: Option<i64>,
    position: Position,
    /// Reading has begun.
    assigned: bool,
    /// When reading last failed so that it has to begin anew.
    stopped: Option<Instant>,
    /// The broker's latest answer was one.
    well: bool,
    /// An error that came after records of the same call.
    pending: Option<LogError>,
}

enum Step {
    Record(LogRecord),
    End,
    Nothing,
}

impl LogReader {
    pub(super) fn new(coordination: &Coordination, id: Option<TopicId>) -> Result<Self, KafkaError> {
        let mut config = coordination.config(SETTINGS)?;
        // librdkafka wants a group for any reader. It is never joined, and the user has rights on this one.
        config.set("group.id", coordination.name());
        Ok(Self {
            consumer: create(&config, Quiet)?,
            topic: coordination.name().to_owned(),
            id,
            next: None,
            position: coordination.position.clone(),
            assigned: false,
            stopped: None,
            well: false,
            pending: None,
        })
    }

    /// New records, in order. Waits for the first one until the timeout; none is no error, and neither is a broker out of reach.
    pub fn poll(&mut self, timeout: Duration) -> Result<Vec<LogRecord>, LogError> {
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        let (mut records, deadline) = (Vec::new(), Instant::now() + timeout);
        while records.len() < BATCH {
            let left = deadline.saturating_duration_since(Instant::now());
            let wait = if records.is_empty() { left } else { Duration::ZERO };
            match self.step(wait) {
                Ok(Step::Record(record)) => records.push(record),
                Ok(Step::End) => {}
                Ok(Step::Nothing) if wait.is_zero() => break,
                Ok(Step::Nothing) => {}
                Err(error) if records.is_empty() || error == LogError::Restarted => return Err(error),
                Err(error) => {
                    self.pending = Some(error);
                    break;
                }
            }
        }
        Ok(records)
    }

    /// Everything that is committed when it is called, from the last record read on.
    ///
    /// The broker tells the end of a topic only after `fetch.wait.max.ms` (500), twice that if the reader was at the end before. A
    /// leader is faster with [`read_through`](Self::read_through).
    pub fn read_to_end(&mut self, timeout: Duration) -> Result<Vec<LogRecord>, LogError> {
        if self.assigned {
            // An end that was seen before may be an old one. Beginning anew at the same place discards it.
            self.assign().map_err(LogError::Other)?;
        }
        self.read_while(timeout, |step| !matches!(step, Step::End))
    }

    /// Everything up to the record at this offset, which is known to be committed.
    pub fn read_through(&mut self, offset: i64, timeout: Duration) -> Result<Vec<LogRecord>, LogError> {
        if self.next.is_some_and(|next| next > offset) {
            return Ok(Vec::new());
        }
        self.read_while(timeout, |step| !matches!(step, Step::Record(record) if record.offset >= offset))
    }

    /// What the leader wrote beside the offset that it committed last: another text each second while somebody leads.
    pub fn sign_of_leader(&self, timeout: Duration) -> Result<Option<String>, KafkaError> {
        let list = partition_at(&self.topic, Offset::Invalid)?;
        let committed = self.consumer.committed_offsets(list, timeout).map_err(|error| {
            let code = error.rdkafka_error_code().map_or(local::INVALID_ARG, |code| code as i32);
            failed("reading the position of the group", &self.topic, code)
        })?;
        Ok(committed.find_partition(&self.topic, PARTITION).map(|partition| partition.metadata().to_owned()))
    }

    /// Whether the latest thing heard of the topic was an answer and not an error.
    pub fn is_well(&self) -> bool {
        self.well
    }

    /// The id of the topic as it was just observed. Another one than before is another topic, which else goes unnoticed if it was
    /// recreated quickly: then the reader begins anew.
    pub fn confirm(&mut self, seen: TopicId) -> Result<(), LogError> {
        if self.id.replace(seen).is_none_or(|known| known == seen) {
            return Ok(());
        }
        self.restart()
    }

    fn read_while(&mut self, timeout: Duration, goes_on: impl Fn(&Step) -> bool) -> Result<Vec<LogRecord>, LogError> {
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        let (start, deadline) = (self.next, Instant::now() + timeout);
        let mut records = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let step = match self.step(left) {
                Ok(step) => step,
                Err(LogError::Restarted) => return Err(LogError::Restarted),
                Err(error) => return Err(self.back_to(start, error)),
            };
            let goes_on = goes_on(&step);
            if let Step::Record(record) = step {
                records.push(record);
            }
            if !goes_on {
                return Ok(records);
            }
            if left.is_zero() {
                return Err(self.back_to(start, LogError::TimedOut));
            }
        }
    }

    /// Gives back what was read since.
    fn back_to(&mut self, start: Option<i64>, error: LogError) -> LogError {
        self.next = start;
        // Not at once: librdkafka aborts the process when a partition is assigned anew while a denied one is still being stopped.
        self.assigned = false;
        error
    }

    fn step(&mut self, wait: Duration) -> Result<Step, LogError> {
        let wait = if self.assigned { wait } else { self.begin(wait)? };
        let code = match self.consumer.poll(wait) {
            None => return Ok(Step::Nothing),
            Some(Err(RdKafkaError::PartitionEOF(_))) => {
                self.well = true;
                return Ok(Step::End);
            }
            Some(Ok(message)) => {
                self.well = true;
                let record = LogRecord {
                    offset: message.offset(),
                    key: message.key().unwrap_or_default().to_vec(),
                    value: message.payload().map(<[u8]>::to_vec),
                };
                self.next = Some(record.offset + 1);
                self.position.set(record.offset + 1);
                return Ok(Step::Record(record));
            }
            Some(Err(error)) => error.rdkafka_error_code().map_or(local::INVALID_ARG, |code| code as i32),
        };
        match code {
            1 | 3 | 100 | 103 | local::AUTO_OFFSET_RESET | local::UNKNOWN_TOPIC | local::UNKNOWN_PARTITION => {
                self.restart()?;
                Ok(Step::Nothing)
            }
            29 => Err(self.stop(LogError::Denied(denied("READ", "topic", &self.topic)))),
            30 => Err(self.stop(LogError::Denied(denied("READ", "group", &self.topic)))),
            // Connections come and go; the client of the observations tells what a person has to know.
            local::TRANSPORT
            | local::ALL_BROKERS_DOWN
            | local::TIMED_OUT
            | local::RESOLVE
            | local::SSL
            | local::AUTHENTICATION => {
                debug!(code, "no connection to read the coordinator topic");
                Ok(Step::Nothing)
            }
            code => Err(self.stop(LogError::Other(failed("reading", &self.topic, code)))),
        }
    }

    /// Forgets how far it has read: the topic is known to be another one.
    pub fn begin_anew(&mut self) {
        let _ = self.restart();
    }

    fn restart(&mut self) -> Result<(), LogError> {
        self.next = None;
        self.position.set(0);
        Err(self.stop(LogError::Restarted))
    }

    /// librdkafka tells an error once and then nothing, not even that it is over; reading that begins anew finds out.
    fn stop(&mut self, error: LogError) -> LogError {
        self.assigned = false;
        self.stopped = Some(Instant::now());
        self.well = false;
        error
    }

    /// Begins reading and tells how much of the time is left.
    fn begin(&mut self, wait: Duration) -> Result<Duration, LogError> {
        let deadline = Instant::now() + wait;
        let left = || deadline.saturating_duration_since(Instant::now());
        if let Some(stopped) = self.stopped {
            // A topic that is missing must not keep a processor busy.
            thread::sleep(left().min(RESTART_PAUSE.saturating_sub(stopped.elapsed())));
        }
        // A reader that knows the leader begins half a second earlier. It comes to know it anyway.
        if let Err(error) = self.consumer.fetch_metadata(Some(&self.topic), left()) {
            debug!(%error, "reading begins without knowing the leader of the coordinator topic");
        }
        self.assign().map_err(LogError::Other)?;
        Ok(left())
    }

    /// Begins reading, or begins anew, at the next offset.
    fn assign(&mut self) -> Result<(), KafkaError> {
        self.assigned = true;
        let list = partition_at(&self.topic, self.next.map_or(Offset::Beginning, Offset::Offset))?;
        self.consumer
            .assign(&list)
            .map_err(|error| KafkaError::new(ErrorClass::Other, format!("{} cannot be read: {error}", self.topic)))
    }
}
