//! The office that a sidecar holds among those of its application: who leads, and the memory that outlives every leader.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::memory::{Applied, Memory};
use super::protocol::{Action, Event, Failure, Held, Leadership, Limits, Refusal};
use super::records::{Change, Fingerprint, Origin, Row, StandingIntent};
use crate::autoscaler::status::Time;
use crate::kafka::coordination::{
    CommitError, Coordination, LogError, LogReader, LogRecord, LostReason, Membership, MembershipEvent, SESSION, Writer, grown,
};
use crate::kafka::port::{KafkaError, TopicId};
use crate::pause_point;

/// Least time that must be left of the session for a request to begin.
const RESERVE: Duration = Duration::from_secs(2);
/// Bound of reading what earlier leaders wrote.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Bound of a look at the topic.
const TOPIC_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a leader waits to read back what it has committed. What takes longer is read later.
const READ_BACK: Duration = Duration::from_millis(300);
/// After this time without a sign of a leader something is wrong: a session and the handover are long over.
const LEADERLESS: Duration = Duration::from_secs(30);
/// How long leaving the group may take.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(3);
/// Steps of one turn; more are left for the next, so that a turn ends.
const STEPS: usize = 8;

/// Where a sidecar stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It acts. `begins`: it did not at the turn before, so it starts from the memory.
    Leads {
        /// Whether it has just begun.
        begins: bool,
    },
    /// It watches the memory; another acts, or nobody.
    Follows,
}

/// What the loop asks before it acts, and tells afterwards.
pub trait Office: Send {
    /// Brings the office up to date. Every call in it is bounded; while leading under the same model it is a look at the lease.
    fn turn(&mut self, now: Duration, model: Fingerprint) -> Standing;
    /// Follows the memory for this long. Tells whether anything changed.
    fn watch(&mut self, wait: Duration) -> bool;
    /// Whether a request may go out now, and how long it may take; to be asked right before it.
    fn may_send(&self, now: Duration, model: Fingerprint) -> Result<Duration, Refusal>;
    /// Whether the brokers answer, and somebody leads; for a sidecar that only follows.
    fn contact(&mut self, _now: Duration, _within: Duration) -> Result<(), KafkaError> {
        Ok(())
    }
    /// What is remembered.
    fn memory(&self) -> &Memory;
    /// Changes the memory, if this sidecar leads. Tells whether it did; if not, it is to be tried again.
    fn remember(&mut self, now: Duration, change: &mut dyn FnMut(&mut Memory, u64)) -> bool;
    /// What went wrong since the last call, a sentence each, told once.
    fn troubles(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// What is wrong at present, a sentence each.
    fn ailments(&self) -> Vec<String> {
        Vec::new()
    }
    /// The topic that the memory is in, to be looked at together with the others.
    fn topic(&self) -> Option<&str> {
        None
    }
    /// The topic of the memory as it was just seen.
    fn saw(&mut self, _id: Option<TopicId>, _partitions: u32) {}
    /// How often Kafka did not take what was to be remembered, by kind, since the start.
    fn failures(&self) -> &BTreeMap<Failure, u64>;
    /// Gives the office up in good order.
    fn close(&mut self) {}
}

/// The only sidecar of its application (`leader.election=none`): always leads, and has nobody to remember anything for.
#[derive(Default)]
pub struct Alone {
    memory: Memory,
    failures: BTreeMap<Failure, u64>,
    began: bool,
}

impl Office for Alone {
    fn turn(&mut self, _now: Duration, _model: Fingerprint) -> Standing {
        Standing::Leads { begins: !std::mem::replace(&mut self.began, true) }
    }

    fn watch(&mut self, _wait: Duration) -> bool {
        false
    }

    fn may_send(&self, _now: Duration, _model: Fingerprint) -> Result<Duration, Refusal> {
        Ok(Duration::MAX)
    }

    fn memory(&self) -> &Memory {
        &self.memory
    }

    fn remember(&mut self, _now: Duration, _change: &mut dyn FnMut(&mut Memory, u64)) -> bool {
        true
    }

    fn failures(&self) -> &BTreeMap<Failure, u64> {
        &self.failures
    }
}

/// What may be wrong, each for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Group,
    Leader,
    Topic,
    Reading,
    Records,
    Writing,
}

/// What the thread of the membership tells.
#[derive(Default)]
struct GroupNews {
    /// Until the group is well again.
    error: Option<KafkaError>,
    /// Why the latest term ended.
    lost: Option<LostReason>,
}

/// One of several sidecars (`leader.election=kafka`).
pub struct Elected {
    coordination: Coordination,
    /// `None` once the group was left.
    membership: Option<Membership>,
    reader: LogReader,
    writer: Option<Writer>,
    leadership: Leadership,
    memory: Memory,
    /// What was remembered when the topic vanished, for whoever leads next to write down anew.
    rescued: Memory,
    /// The term in which the loop was told that it leads.
    leading: Option<u64>,
    model: Option<Fingerprint>,
    /// Where times of the loop are counted from.
    clock: Instant,
    origin: Origin,
    troubles: Vec<String>,
    ailments: BTreeMap<Part, String>,
    group: Arc<Mutex<GroupNews>>,
    /// The latest sign of a leader, and when it was another one than before.
    leader: (Option<String>, Duration),
    failures: BTreeMap<Failure, u64>,
}

impl Elected {
    /// Makes sure of the coordinator topic and joins the group. `clock`: where the times of the loop are counted from.
    ///
    /// # Errors
    /// If the topic cannot be used; the sentence says what to do.
    pub fn join(coordination: Coordination, clock: Instant, host: String, username: String) -> Result<Self, KafkaError> {
        let topic = coordination.ensure_topic(TOPIC_TIMEOUT)?;
        let reader = coordination.reader(topic.id)?;
        let group = Arc::<Mutex<GroupNews>>::default();
        let membership = {
            let group = Arc::clone(&group);
            coordination.join(move |event| {
                let mut news = group.lock().unwrap_or_else(PoisonError::into_inner);
                if let MembershipEvent::Lost { reason, .. } = event {
                    news.lost = Some(reason);
                }
                news.error = if let MembershipEvent::Error(error) = event { Some(error) } else { None };
            })?
        };
        let mut elected = Self {
            coordination,
            membership: Some(membership),
            reader,
            writer: None,
            leadership: Leadership::new(Limits { session: SESSION, reserve: RESERVE }),
            memory: Memory::default(),
            rescued: Memory::default(),
            leading: None,
            model: None,
            clock,
            origin: Origin { host, username, timestamp: 0 },
            troubles: Vec::new(),
            ailments: BTreeMap::new(),
            group,
            leader: (None, Duration::ZERO),
            failures: BTreeMap::new(),
        };
        // What was told before this sidecar came is known when it begins to follow; the group needs as long to let it in.
        match elected.reader.read_to_end(READ_TIMEOUT) {
            Ok(records) => drop(elected.take(records)),
            Err(error) => elected.read_failed(&error),
        }
        Ok(elected)
    }

    fn held(&self) -> Option<Held> {
        let held = self.membership.as_ref()?.lease().held()?;
        Some(Held { term: held.term, renewed: held.renewed.saturating_duration_since(self.clock) })
    }

    fn trouble(&mut self, part: Part, message: String) {
        if self.ailments.get(&part) != Some(&message) {
            self.ailments.insert(part, message.clone());
            self.troubles.push(message);
        }
    }

    fn well(&mut self, part: Part) {
        self.ailments.remove(&part);
    }

    fn take(&mut self, records: Vec<LogRecord>) -> bool {
        let mut changed = false;
        for record in records {
            match self.memory.apply(record.offset, &record.key, record.value.as_deref()) {
                Ok(applied) => changed |= applied == Applied::Changed,
                // A flood of them is told once.
                Err(skipped) if self.memory.skipped().get(&skipped) == Some(&1) => {
                    let topic = self.coordination.name();
                    let message = format!(
                        "records of the coordinator topic {topic} are passed over, the first at offset {}: {skipped}; see who else writes there",
                        record.offset
                    );
                    self.trouble(Part::Records, message);
                }
                Err(_) => {}
            }
        }
        changed
    }

    fn read_failed(&mut self, error: &LogError) {
        self.trouble(Part::Reading, error.to_string());
        if *error == LogError::Restarted {
            self.well(Part::Records); // those were in the topic before
            let before = std::mem::take(&mut self.memory);
            if before.last_epoch() > 0 {
                self.rescued = before;
            }
            // A writer that goes on would add to a topic that begins without its past.
            if let Some(held) = self.held() {
                self.leadership.on(Event::TopicRestarted { term: held.term });
            }
            self.look_at_topic();
        }
    }

    /// Creates the topic if it is gone.
    fn look_at_topic(&mut self) {
        match self.coordination.ensure_topic(TOPIC_TIMEOUT) {
            Ok(topic) => {
                self.well(Part::Topic);
                if let Some(id) = topic.id {
                    let _ = self.reader.confirm(id); // it begins anew in any case
                }
            }
            Err(error) => self.trouble(Part::Topic, error.message),
        }
    }

    /// What has to be written with the first intent: nothing, unless the topic is a new one.
    fn lost_rows(&self) -> Memory {
        if self.memory.last_epoch() > 0 { self.memory.clone() } else { self.rescued.clone() }
    }

    fn follow_group(&mut self) {
        let error = self.group.lock().unwrap_or_else(PoisonError::into_inner).error.clone();
        let renewed = self.held().is_some_and(|held| self.clock.elapsed().saturating_sub(held.renewed) < RESERVE);
        match error {
            Some(error) if !renewed => self.trouble(Part::Group, error.message),
            _ => self.well(Part::Group),
        }
    }

    /// Tells the offset of the last record that was committed.
    fn write(&mut self, term: u64, changes: &[Change], within: Duration) -> Result<i64, Failure> {
        let Some(writer) = &mut self.writer else { return Err(Failure::Other) };
        let Some(group) = self.membership.as_ref().and_then(|member| member.lease().group_metadata(term)) else {
            return Err(Failure::NotMember);
        };
        self.origin.timestamp = Time(SystemTime::now()).milliseconds();
        let records: Vec<_> = changes.iter().map(|change| change.encode(&self.origin)).collect();
        match writer.commit(&records, Some(&group), within) {
            Ok(offset) => {
                self.well(Part::Writing);
                if self.memory.read_to().is_some_and(|read| offset <= read) {
                    self.reader.begin_anew();
                    self.read_failed(&LogError::Restarted);
                    return Err(Failure::Other);
                }
                Ok(offset)
            }
            Err(error) => {
                // A writer that cannot go on is replaced, whatever it was that it met.
                let failure = if writer.is_finished() && !matches!(error, CommitError::Fenced) {
                    Failure::TimedOut
                } else {
                    failure(&error)
                };
                self.trouble(
                    Part::Writing,
                    format!("the coordinator topic {} takes no records: {error}", self.coordination.name()),
                );
                Err(failure)
            }
        }
    }

    /// Tells whether the memory has everything up to this offset.
    fn read_through(&mut self, offset: i64, within: Duration) -> bool {
        match self.reader.read_through(offset, within) {
            Ok(records) => {
                self.well(Part::Reading);
                self.take(records);
                true
            }
            Err(error) => {
                self.read_failed(&error);
                false
            }
        }
    }

    /// Writes, and makes the memory read what was committed.
    fn commit(&mut self, term: u64, changes: &[Change], within: Duration) -> Result<(), Failure> {
        let offset = self.write(term, changes, within)?;
        self.read_through(offset, within.min(READ_BACK));
        Ok(())
    }

    /// Reads everything that earlier leaders wrote.
    fn catch_up(&mut self, term: u64, within: Duration) -> Result<(), Failure> {
        let marker = Row::TakeOver { member: self.origin.host.clone() };
        let offset = self.write(term, &[Change::Set(marker)], within)?;
        if self.read_through(offset, READ_TIMEOUT) { Ok(()) } else { Err(Failure::Other) }
    }

    fn failed(&mut self, term: u64, failure: Failure) {
        let count = self.failures.entry(failure).or_default();
        *count = count.saturating_add(1);
        self.leadership.on(Event::Failed { term, failure, at: self.clock.elapsed() });
    }

    fn why_not_leading(&self) -> &'static str {
        if self.held().is_some() {
            return "the session may run out before something could be done, because the brokers do not answer, or the group is changing";
        }
        match self.group.lock().unwrap_or_else(PoisonError::into_inner).lost {
            Some(LostReason::Revoked) => "the group shares its partition anew",
            Some(LostReason::Expired) | None => "the group went on without this sidecar, or the coordinator topic is gone",
        }
    }

    fn step(&mut self, action: Action) -> Option<Standing> {
        match action {
            Action::Follow | Action::Wait => {
                if self.leading.take().is_some() {
                    let why = self.why_not_leading();
                    self.troubles.push(format!("the leadership is over: {why}"));
                }
                return Some(Standing::Follows);
            }
            Action::DropWriter => {
                self.writer = None;
                self.troubles.push(format!(
                    "this sidecar writes no more to the coordinator topic {}; before it leads again it has to take over anew",
                    self.coordination.name()
                ));
            }
            Action::InitWriter { term, within } => match self.coordination.writer(within) {
                Ok(writer) => {
                    self.writer = Some(writer);
                    self.leadership.on(Event::WriterReady { term });
                }
                Err(error) => {
                    self.trouble(Part::Writing, format!("the leadership cannot be taken up: {error}"));
                    self.failed(term, failure(&error));
                }
            },
            Action::ReadLog { term, within } => match self.catch_up(term, within) {
                Ok(()) => self.leadership.on(Event::LogRead { term, last_epoch: self.lost_rows().last_epoch() }),
                Err(failure) => self.failed(term, failure),
            },
            Action::CommitStandingIntent { term, epoch, fingerprint, within } => {
                let row = StandingIntent { epoch, fingerprint, member: self.origin.host.clone() };
                let mut wanted = self.lost_rows();
                wanted.set(Row::StandingIntent(row));
                pause_point::reached("before-intent");
                let committed = self.commit(term, &self.memory.diff(&wanted), within);
                pause_point::reached("after-intent");
                match committed {
                    Ok(()) => self.leadership.on(Event::IntentCommitted { term, epoch }),
                    Err(failure) => self.failed(term, failure),
                }
            }
            Action::Lead { term, .. } => {
                self.well(Part::Leader);
                let begins = self.leading.replace(term) != Some(term);
                // What could not be read back at the time of the commit, which nothing else would make up for.
                if self.ailments.contains_key(&Part::Reading) {
                    self.watch(Duration::ZERO);
                }
                return Some(Standing::Leads { begins });
            }
        }
        None
    }
}

impl Office for Elected {
    fn turn(&mut self, now: Duration, model: Fingerprint) -> Standing {
        if self.model.replace(model) != Some(model) {
            self.leadership.on(Event::Model(model));
        }
        self.follow_group();
        for _ in 0..STEPS {
            let action = self.leadership.next(self.clock.elapsed().max(now), self.held());
            if let Some(standing) = self.step(action) {
                return standing;
            }
        }
        self.leading = None;
        Standing::Follows
    }

    fn watch(&mut self, wait: Duration) -> bool {
        match self.reader.poll(wait) {
            Ok(records) => {
                if self.reader.is_well() {
                    self.well(Part::Reading);
                }
                self.take(records)
            }
            Err(error) => {
                self.read_failed(&error);
                error == LogError::Restarted
            }
        }
    }

    fn contact(&mut self, now: Duration, within: Duration) -> Result<(), KafkaError> {
        let sign = self.reader.sign_of_leader(within)?;
        if sign != self.leader.0 {
            self.leader = (sign, now);
            self.well(Part::Leader);
        } else if now.saturating_sub(self.leader.1) > LEADERLESS {
            let name = self.coordination.name();
            let message = format!(
                "no sidecar has led for {} s, so nobody would follow a growth; if sidecars run, a member that is none may hold the \
                 partition: see kafka-consumer-groups.sh --describe --members --group {name}",
                LEADERLESS.as_secs()
            );
            self.trouble(Part::Leader, message);
        }
        Ok(())
    }

    fn may_send(&self, now: Duration, model: Fingerprint) -> Result<Duration, Refusal> {
        self.leadership.may_send(now, self.held(), model, None)
    }

    fn memory(&self) -> &Memory {
        &self.memory
    }

    fn remember(&mut self, now: Duration, change: &mut dyn FnMut(&mut Memory, u64)) -> bool {
        let Some(term) = self.leading else { return false };
        let held = self.held().filter(|held| held.term == term);
        let Some(within) = held.map(|held| (held.renewed + SESSION).saturating_sub(now)) else { return false };
        let mut wanted = self.memory.clone();
        change(&mut wanted, Time(SystemTime::now()).milliseconds());
        let changes = self.memory.diff(&wanted);
        if changes.is_empty() {
            return true;
        }
        if within < RESERVE {
            return false;
        }
        let committed = self.commit(term, &changes, within);
        if let Err(failure) = committed {
            self.failed(term, failure);
        }
        committed.is_ok()
    }

    fn troubles(&mut self) -> Vec<String> {
        std::mem::take(&mut self.troubles)
    }

    fn ailments(&self) -> Vec<String> {
        self.ailments.values().cloned().collect()
    }

    fn topic(&self) -> Option<&str> {
        Some(self.coordination.name())
    }

    fn saw(&mut self, id: Option<TopicId>, partitions: u32) {
        if partitions == 1 {
            self.well(Part::Topic);
        } else {
            self.trouble(Part::Topic, grown(self.coordination.name(), partitions));
        }
        if let Some(Err(error)) = id.map(|id| self.reader.confirm(id)) {
            self.read_failed(&error);
        }
    }

    fn failures(&self) -> &BTreeMap<Failure, u64> {
        &self.failures
    }

    fn close(&mut self) {
        self.leadership.on(Event::StepDown);
        self.leading = None;
        self.writer = None;
        if let Some(membership) = self.membership.take() {
            membership.leave(LEAVE_TIMEOUT);
        }
    }
}

fn failure(error: &CommitError) -> Failure {
    match error {
        CommitError::Fenced => Failure::Fenced,
        CommitError::NotMember => Failure::NotMember,
        CommitError::TimedOut => Failure::TimedOut,
        CommitError::Denied(_) | CommitError::Other(_) => Failure::Other,
    }
}
