//! Membership in the group of sidecars, on a thread that does nothing but poll.
//!
//! The callbacks of librdkafka run only inside a poll, so work on that thread would delay the news that leadership is gone.
//! librdkafka does not tell of its heartbeats. So once a second the leader commits an offset: an answer without error proves that
//! the coordinator saw this member in its present generation, and it starts the session anew, as a heartbeat does.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError as RdKafkaError, KafkaResult};
use rdkafka::{Offset, TopicPartitionList};
use tracing::{debug, warn};

use super::lease::{GroupMetadata, Lease};
use super::{Coordination, PARTITION, Position, SESSION, create, denied, failed, log_line, partition_at};
use crate::kafka::native::{commit_async, local};
use crate::kafka::port::{ErrorClass, KafkaError};

const SETTINGS: &[(&str, &str)] = &[
    ("group.protocol", "classic"),
    // A newcomer takes nothing away from the leader.
    ("partition.assignment.strategy", "cooperative-sticky"),
    ("session.timeout.ms", "10000"),
    // All members have to hear of a leader that leaves before there is another one.
    ("heartbeat.interval.ms", "500"),
    // The guard against a polling thread that hangs.
    ("max.poll.interval.ms", "15000"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    // A topic that was deleted, grown, or created on another broker just now is noticed within this time.
    ("topic.metadata.refresh.interval.ms", "1000"),
    ("topic.metadata.propagation.max.ms", "1000"),
    // A commit that is not answered within the session is of no use.
    ("socket.timeout.ms", "10000"),
    ("auto.offset.reset", "latest"),
    // Nothing is read here.
    ("queued.min.messages", "1"),
    ("queued.max.messages.kbytes", "64"),
];

/// How often the leader proves its membership.
const RENEWAL: Duration = Duration::from_secs(1);
/// The longest poll.
const POLL: Duration = Duration::from_millis(250);
/// The same while leaving, which has no event for its end.
const LEAVING_POLL: Duration = Duration::from_millis(10);
/// How long a membership that is dropped may take to leave.
const DROP_DEADLINE: Duration = Duration::from_secs(3);

/// What happened to the membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembershipEvent {
    /// Partition 0 is ours, and the coordinator has confirmed it.
    Won {
        /// Counts the wins of this process.
        term: u64,
    },
    /// Leadership is over. [`Lease`] says so already, so nothing can begin any more under this term.
    Lost {
        /// The term that ended. It was never [`Won`](Self::Won) if the coordinator did not confirm it.
        term: u64,
        /// Why.
        reason: LostReason,
    },
    /// A member, and somebody else leads.
    NotLeading,
    /// Something a person may have to look at; the membership goes on trying. Told once, until something else happens.
    Error(KafkaError),
}

/// Why leadership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostReason {
    /// Given up in good order: this process leaves, or the group was told to share anew.
    Revoked,
    /// The group went on without this process, or the topic is gone. Another may lead already.
    Expired,
}

type Events = Box<dyn Fn(MembershipEvent) + Send + Sync>;

/// A member of the group. Dropping it leaves the group, as [`leave`](Self::leave) does.
pub struct Membership {
    lease: Lease,
    consumer: Option<Arc<BaseConsumer<Member>>>,
    leave_by: Arc<OnceLock<Instant>>,
    thread: Option<JoinHandle<()>>,
}

impl Membership {
    pub(super) fn join(coordination: &Coordination, events: Events) -> Result<Self, KafkaError> {
        let mut config = coordination.config(SETTINGS)?;
        config.set("group.id", coordination.name());
        let lease = Lease::default();
        let member = Member {
            topic: coordination.name().to_owned(),
            lease: lease.clone(),
            position: coordination.position.clone(),
            events,
            proofs: Mutex::default(),
        };
        let consumer: Arc<BaseConsumer<Member>> = Arc::new(create(&config, member)?);
        let refuse = |message: String| KafkaError::new(ErrorClass::Other, message);
        consumer
            .subscribe(&[coordination.name()])
            .map_err(|error| refuse(format!("the topic {} cannot be subscribed to: {error}", coordination.name())))?;
        let leave_by = Arc::new(OnceLock::new());
        let thread = {
            let (consumer, leave_by) = (Arc::clone(&consumer), Arc::clone(&leave_by));
            thread::Builder::new().name("membership".to_owned()).spawn(move || poll(&consumer, &leave_by))
        };
        let thread = thread.map_err(|error| refuse(format!("no thread for leader election: {error}")))?;
        Ok(Self { lease, consumer: Some(consumer), leave_by, thread: Some(thread) })
    }

    /// The view of the leadership, to hand to whoever acts.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Leaves the group in good order, so that another member leads at its next heartbeat and need not wait out the session. Tells
    /// whether that came about in time.
    pub fn leave(mut self, deadline: Duration) -> bool {
        self.leave_within(deadline)
    }

    fn leave_within(&mut self, deadline: Duration) -> bool {
        let (Some(consumer), Some(thread)) = (self.consumer.take(), self.thread.take()) else { return true };
        // Closing alone is not enough: librdkafka lets a member that has no partition go without telling the group.
        consumer.unsubscribe();
        let _ = self.leave_by.set(Instant::now() + deadline);
        let ended = thread.join().is_ok();
        // Whatever happened, this process no longer leads.
        consumer.context().lose(LostReason::Revoked);
        if ended && consumer.closed() {
            return true;
        }
        warn!("the group of sidecars could not be left in time; the next leader waits for the session to expire");
        // Dropping it would wait without limit.
        mem::forget(consumer);
        false
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.leave_within(DROP_DEADLINE);
    }
}

/// The work of the thread.
fn poll(consumer: &BaseConsumer<Member>, leave_by: &OnceLock<Instant>) {
    let member = consumer.context();
    let mut closing = false;
    loop {
        let wait = match leave_by.get() {
            Some(by) if consumer.closed() || Instant::now() >= *by => return,
            Some(_) => {
                // In the middle of a rebalance the group is left at its end.
                if !closing && consumer.subscription().is_ok_and(|topics| topics.count() == 0) {
                    closing = true;
                    if let Err(error) = consumer.close_queue() {
                        debug!(%error, "leaving the group");
                    }
                }
                LEAVING_POLL
            }
            None => member.renew_when_due(consumer),
        };
        if let Some(Err(error)) = consumer.poll(wait) {
            member.trouble(&error);
        }
    }
}

/// What the callbacks of the consumer work on.
struct Member {
    topic: String,
    lease: Lease,
    position: Position,
    events: Events,
    proofs: Mutex<Proofs>,
}

/// The commits on their way.
#[derive(Default)]
struct Proofs {
    count: u64,
    /// Number of the commit, the term it is for, and when it was sent.
    sent: VecDeque<(u64, u64, Instant)>,
    /// The error that was told last, so that it is told once.
    told: Option<i32>,
}

impl Member {
    /// Sends a commit if it is time to, and tells for how long there is nothing else to do.
    fn renew_when_due(&self, consumer: &BaseConsumer<Self>) -> Duration {
        let Some(term) = self.lease.term() else { return POLL };
        let last = self.proofs().sent.back().map(|(_, _, sent)| *sent);
        let due = last.map_or(Duration::ZERO, |last| (last + RENEWAL).saturating_duration_since(Instant::now()));
        if due.is_zero() {
            self.send_proof(consumer, term);
            return POLL;
        }
        due.min(POLL)
    }

    fn send_proof(&self, consumer: &BaseConsumer<Self>, term: u64) {
        let now = Instant::now();
        let number = {
            let mut proofs = self.proofs();
            // An answer that takes longer than the session proves nothing that matters.
            proofs.sent.retain(|(_, _, sent)| now.duration_since(*sent) < SESSION);
            proofs.count += 1;
            let number = proofs.count;
            proofs.sent.push_back((number, term, now));
            number
        };
        let Ok(offsets) = partition_at(&self.topic, Offset::Offset(self.position.get())) else { return };
        if let Some(mut partition) = offsets.find_partition(&self.topic, PARTITION) {
            // The answer has it too, and so it is known which commit was answered.
            partition.set_metadata(number.to_string());
        }
        if let Err(fault) = commit_async(consumer, &offsets) {
            debug!(reason = fault.reason, "no commit");
        }
    }

    fn owns(&self, list: &TopicPartitionList) -> bool {
        list.find_partition(&self.topic, PARTITION).is_some()
    }

    fn assigned(&self, consumer: &BaseConsumer<Self>, list: &TopicPartitionList) {
        if list.count() > 0
            && let Err(error) = consumer.pause(list)
        {
            debug!(%error, "the election topic is read although nobody needs it");
        }
        self.proofs().told = None;
        let metadata = || consumer.group_metadata().map(GroupMetadata::new);
        if self.owns(list) {
            self.lease.win(metadata());
            self.proofs().sent.clear();
            if let Some(term) = self.lease.term() {
                self.send_proof(consumer, term);
            }
        } else if self.lease.term().is_some() {
            self.lease.refresh(metadata());
        } else {
            (self.events)(MembershipEvent::NotLeading);
        }
    }

    fn lose(&self, reason: LostReason) {
        if let Some(term) = self.lease.lose() {
            (self.events)(MembershipEvent::Lost { term, reason });
        }
    }

    fn answered(&self, result: KafkaResult<()>, offsets: &TopicPartitionList) {
        if let Err(error) = result {
            return self.trouble(&error);
        }
        let partition = offsets.find_partition(&self.topic, PARTITION);
        let number = partition.and_then(|partition| partition.metadata().parse::<u64>().ok());
        let Some(number) = number else { return };
        let found = self.proofs().sent.iter().find(|(sent, ..)| *sent == number).copied();
        if let Some((_, term, sent)) = found
            && self.lease.renew(term, sent)
        {
            (self.events)(MembershipEvent::Won { term });
        }
    }

    /// Tells an error, unless it passes by itself.
    fn trouble(&self, error: &RdKafkaError) {
        let Some(code) = error.rdkafka_error_code().map(|code| code as i32) else { return };
        let name = &self.topic;
        let error = match code {
            29 => denied("READ", "topic", name),
            30 => denied("READ", "group", name),
            26 => KafkaError::new(
                ErrorClass::Config,
                format!(
                    "the brokers do not allow the session of {} ms that leader election needs; set \
                     group.min.session.timeout.ms and group.max.session.timeout.ms of the brokers so that they do",
                    SESSION.as_millis()
                ),
            ),
            // Connections, coordinators and generations come and go, and librdkafka sees to it; the client of the observations
            // tells what a person has to know.
            local::TRANSPORT | local::ALL_BROKERS_DOWN | local::TIMED_OUT | local::RESOLVE => return,
            local::SSL | local::AUTHENTICATION => return,
            // Whoever reads the topic knows better whether it is there, and makes it anew; nothing would tell here that it is back.
            3 | local::UNKNOWN_TOPIC | local::UNKNOWN_PARTITION => {
                debug!(code, "the group has no topic");
                return;
            }
            7 | 14..=16 | 22 | 25 | 27 => {
                debug!(code, "the group is on the move");
                return;
            }
            code => failed("keeping up the group", name, code),
        };
        if self.proofs().told.replace(code) != Some(code) {
            (self.events)(MembershipEvent::Error(error));
        }
    }

    fn proofs(&self) -> MutexGuard<'_, Proofs> {
        self.proofs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Member {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        log_line(level, facility, line);
    }

    fn error(&self, error: RdKafkaError, reason: &str) {
        debug!(target: "librdkafka", %error, "{reason}");
    }
}

impl ConsumerContext for Member {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(list) = rebalance
            && self.owns(list)
        {
            self.lose(if consumer.assignment_lost() { LostReason::Expired } else { LostReason::Revoked });
        }
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(list) = rebalance {
            self.assigned(consumer, list);
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, offsets: &TopicPartitionList) {
        self.answered(result, offsets);
    }
}
