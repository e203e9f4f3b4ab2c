//! The office that a sidecar holds among those of its application: who leads, and the memory that outlives every leader.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::memory::{Applied, Memory};
use super::protocol::{Action, Event, Failure, Held, Leadership, Limits, Refusal};
use super::records::{Change, Fingerprint, Origin, Row, StandingIntent};
use crate::kafka::coordination::{CommitError, Coordination, LogError, LogReader, LogRecord, Membership, SESSION, Writer};
use crate::kafka::port::KafkaError;
use crate::pause_point;

/// Least time that must be left of the session for a request to begin.
const RESERVE: Duration = Duration::from_secs(2);
/// Bound of reading what earlier leaders wrote.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Bound of each request while the topic is looked at.
const TOPIC_TIMEOUT: Duration = Duration::from_secs(10);
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
    /// Brings the office up to date. Every call in it is bounded; while leading it is a look at the lease.
    fn turn(&mut self, now: Duration, model: Fingerprint) -> Standing;
    /// Follows the memory for this long. Tells whether anything changed.
    fn watch(&mut self, wait: Duration) -> bool;
    /// Whether a request may go out now, and how long it may take; to be asked right before it.
    fn may_send(&self, now: Duration, model: Fingerprint) -> Result<Duration, Refusal>;
    /// What is remembered.
    fn memory(&self) -> &Memory;
    /// Changes the memory, if this sidecar leads. What cannot be written now is lost, and told by the next change.
    fn remember(&mut self, now: Duration, change: &mut dyn FnMut(&mut Memory, u64));
    /// What went wrong since the last call, a sentence each, told once.
    fn troubles(&mut self) -> Vec<String>;
    /// Gives the office up in good order.
    fn close(&mut self);
}

/// The only sidecar of its application (`leader.election=none`): always leads, and remembers only while it lives.
#[derive(Default)]
pub struct Alone {
    memory: Memory,
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

    fn remember(&mut self, _now: Duration, _change: &mut dyn FnMut(&mut Memory, u64)) {}

    fn troubles(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn close(&mut self) {}
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
    /// The term in which the loop was told that it leads.
    leading: Option<u64>,
    model: Option<Fingerprint>,
    /// Where times of the loop are counted from.
    clock: Instant,
    origin: Origin,
    troubles: Vec<String>,
    told: Option<String>,
}

impl Elected {
    /// Makes sure of the coordinator topic and joins the group. `clock`: where the times of the loop are counted from.
    ///
    /// # Errors
    /// If the topic cannot be used; the sentence says what to do.
    pub fn join(coordination: Coordination, clock: Instant, host: String, username: String) -> Result<Self, KafkaError> {
        let topic = coordination.ensure_topic(TOPIC_TIMEOUT)?;
        let reader = coordination.reader(topic.id)?;
        let membership = coordination.join(|_| {})?;
        Ok(Self {
            coordination,
            membership: Some(membership),
            reader,
            writer: None,
            leadership: Leadership::new(Limits { session: SESSION, reserve: RESERVE }),
            memory: Memory::default(),
            leading: None,
            model: None,
            clock,
            origin: Origin { host, username, timestamp: 0 },
            troubles: Vec::new(),
            told: None,
        })
    }

    fn held(&self) -> Option<Held> {
        let held = self.membership.as_ref()?.lease().held()?;
        Some(Held { term: held.term, renewed: held.renewed.saturating_duration_since(self.clock) })
    }

    fn trouble(&mut self, message: String) {
        if self.told.as_ref() != Some(&message) {
            self.told = Some(message.clone());
            self.troubles.push(message);
        }
    }

    fn take(&mut self, records: Vec<LogRecord>) -> bool {
        let mut changed = false;
        for record in records {
            match self.memory.apply(record.offset, &record.key, record.value.as_deref()) {
                Ok(applied) => changed |= applied == Applied::Changed,
                Err(skipped) => self
                    .trouble(format!("a record of the coordinator topic {} is passed over: {skipped}", self.coordination.name())),
            }
        }
        changed
    }

    fn read_failed(&mut self, error: &LogError) {
        self.trouble(error.to_string());
        if *error == LogError::Restarted {
            self.memory = Memory::default();
            if let Err(error) = self.coordination.ensure_topic(TOPIC_TIMEOUT) {
                self.trouble(error.message);
            }
        }
    }

    /// Tells the offset of the last record that was committed.
    fn write(&mut self, term: u64, changes: &[Change], within: Duration) -> Result<i64, Failure> {
        let Some(writer) = &mut self.writer else { return Err(Failure::Other) };
        let Some(group) = self.membership.as_ref().and_then(|member| member.lease().group_metadata(term)) else {
            return Err(Failure::NotMember);
        };
        self.origin.timestamp = milliseconds();
        let records: Vec<_> = changes.iter().map(|change| change.encode(&self.origin)).collect();
        writer.commit(&records, Some(&group), within).map_err(|error| {
            self.trouble(format!("the coordinator topic {} takes no records: {error}", self.coordination.name()));
            failure(&error)
        })
    }

    /// Tells whether the memory has everything up to this offset.
    fn read_through(&mut self, offset: i64, within: Duration) -> bool {
        match self.reader.read_through(offset, within) {
            Ok(records) => {
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
        self.read_through(offset, within);
        Ok(())
    }

    /// Reads everything that earlier leaders wrote.
    fn catch_up(&mut self, term: u64, within: Duration) -> Result<(), Failure> {
        let marker = Row::TakeOver { member: self.origin.host.clone() };
        let offset = self.write(term, &[Change::Set(marker)], within)?;
        if self.read_through(offset, READ_TIMEOUT) { Ok(()) } else { Err(Failure::Other) }
    }

    fn failed(&mut self, term: u64, failure: Failure) {
        self.leadership.on(Event::Failed { term, failure, at: self.clock.elapsed() });
    }

    fn step(&mut self, action: Action) -> Option<Standing> {
        match action {
            Action::Follow | Action::Wait => {
                self.leading = None;
                return Some(Standing::Follows);
            }
            Action::DropWriter => {
                self.writer = None;
                self.trouble(format!(
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
                    self.trouble(format!("the leadership cannot be taken up: {error}"));
                    self.failed(term, failure(&error));
                }
            },
            Action::ReadLog { term, within } => match self.catch_up(term, within) {
                Ok(()) => self.leadership.on(Event::LogRead { term, last_epoch: self.memory.last_epoch() }),
                Err(failure) => self.failed(term, failure),
            },
            Action::CommitStandingIntent { term, epoch, fingerprint, within } => {
                let row = StandingIntent { epoch, fingerprint, member: self.origin.host.clone() };
                pause_point::reached("before-intent");
                let committed = self.commit(term, &[Change::Set(Row::StandingIntent(row))], within);
                pause_point::reached("after-intent");
                match committed {
                    Ok(()) => self.leadership.on(Event::IntentCommitted { term, epoch }),
                    Err(failure) => self.failed(term, failure),
                }
            }
            Action::Lead { term, .. } => {
                let begins = self.leading.replace(term) != Some(term);
                if begins {
                    self.told = None;
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
            Ok(records) => self.take(records),
            Err(error) => {
                self.read_failed(&error);
                error == LogError::Restarted
            }
        }
    }

    fn may_send(&self, now: Duration, model: Fingerprint) -> Result<Duration, Refusal> {
        self.leadership.may_send(now, self.held(), model, None)
    }

    fn memory(&self) -> &Memory {
        &self.memory
    }

    fn remember(&mut self, now: Duration, change: &mut dyn FnMut(&mut Memory, u64)) {
        let Some(term) = self.leading else { return };
        let Some(within) = self.held().filter(|held| held.term == term).map(|held| (held.renewed + SESSION).saturating_sub(now))
        else {
            return;
        };
        let mut wanted = self.memory.clone();
        change(&mut wanted, milliseconds());
        let changes = self.memory.diff(&wanted);
        if changes.is_empty() || within < RESERVE {
            return;
        }
        if let Err(failure) = self.commit(term, &changes, within) {
            self.failed(term, failure);
        }
    }

    fn troubles(&mut self) -> Vec<String> {
        std::mem::take(&mut self.troubles)
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

/// Milliseconds since 1970.
fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
