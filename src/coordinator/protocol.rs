//! When a sidecar leads, and when it may send a request.
//!
//! CreatePartitions carries nothing by which a broker could refuse a leader of yesterday, so the sidecar has to be sure by itself.
//! Three things together make it sure: a lease (nobody else can lead before the session has run out), a producer that fences every
//! earlier one, and an intent in the log that names the model the targets come from.
//!
//! The driver tells what happened ([`Leadership::on`]), asks what to do ([`Leadership::next`]), and asks before every request
//! ([`Leadership::may_send`]). The lease is told with every question: it changes on another thread, and only its latest view counts.

use std::time::Duration;

use super::records::Fingerprint;

/// Partition 0 of the coordinator topic is ours, and the group's coordinator has said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    /// Counts the wins of this process: another number means that it did not lead in between.
    pub term: u64,
    /// When the last request was sent that the coordinator answered as to a member, from the start of the process. The session runs
    /// from its arrival, so never from before this.
    pub renewed: Duration,
}

/// Lengths of time that all sidecars have to agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// `session.timeout.ms` of the group.
    pub session: Duration,
    /// Least time that is left for a call to the cluster; with less it is not begun.
    pub reserve: Duration,
}

/// What happened. An event of a term that is over changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The model of the application: the first one, or another.
    Model(Fingerprint),
    /// `init_transactions` is done.
    WriterReady {
        /// In which term it began.
        term: u64,
    },
    /// A marker of this term was committed, and the log was read through it.
    LogRead {
        /// In which term.
        term: u64,
        /// The highest number of an intent in it.
        last_epoch: u64,
    },
    /// The intent with this number is committed.
    IntentCommitted {
        /// In which term it began.
        term: u64,
        /// Number of the intent.
        epoch: u64,
    },
    /// What became of the operator's plan is committed.
    OutcomeCommitted {
        /// In which term.
        term: u64,
        /// Number of its intent.
        epoch: u64,
    },
    /// A call to the log did not succeed.
    Failed {
        /// In which term.
        term: u64,
        /// How.
        failure: Failure,
        /// When its outcome was known, from the start of the process.
        at: Duration,
    },
    /// The log was deleted or begun anew: what was committed in this term is not in it.
    TopicRestarted {
        /// In which term.
        term: u64,
    },
    /// This sidecar ends, or must not lead any more.
    StepDown,
}

/// How a call to the log did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// A newer writer has taken over.
    Fenced,
    /// The group is in another generation. Nothing was committed.
    NotMember,
    /// It is not known whether it was committed, and the writer is finished.
    TimedOut,
    /// Anything else. Nothing was committed.
    Other,
}

impl Failure {
    /// Only another writer can go on.
    fn ends_writer(self) -> bool {
        matches!(self, Self::Fenced | Self::TimedOut)
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Read the log and watch; nothing may be written or sent.
    Follow,
    /// Partition 0 is ours, but nothing can be done before the lease is renewed, or the model is known.
    Wait,
    /// Drop the writer; it may not write any more.
    DropWriter,
    /// Make a writer, within this time.
    InitWriter {
        /// The present term.
        term: u64,
        /// Bound of the call.
        within: Duration,
    },
    /// Commit a marker, with the group metadata of this term, within this time, and read the log through it. Earlier writers are fenced,
    /// so what they wrote is before the marker, and it need not be waited for that the broker tells the end of the log.
    ReadLog {
        /// The present term.
        term: u64,
        /// Bound of the commit.
        within: Duration,
    },
    /// Commit a standing intent, with the group metadata of this term, within this time.
    CommitStandingIntent {
        /// The present term.
        term: u64,
        /// Number of the intent.
        epoch: u64,
        /// The model.
        fingerprint: Fingerprint,
        /// Bound of the call.
        within: Duration,
    },
    /// Observe, plan, and ask before each request.
    Lead {
        /// The present term.
        term: u64,
        /// Number of the standing intent.
        epoch: u64,
    },
}

/// Why a request must not go out, or an intent not be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// Another sidecar has partition 0, or nobody.
    #[error("this sidecar does not lead")]
    NotLeading,
    /// No standing intent yet, or none any more.
    #[error("this sidecar has not finished taking over")]
    NotReady,
    /// What is left of the session is less than the reserve.
    #[error("the leadership is not sure for long enough")]
    MarginSpent,
    /// The plan was made with another model than the intent says.
    #[error("the plan was made with another model of the application than the committed intent")]
    OtherModel,
    /// The plan needs an intent of its own, which is not committed, or has ended.
    #[error("the plan has no committed intent")]
    NoIntent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Intent {
    epoch: u64,
    fingerprint: Fingerprint,
    committed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Log {
    NoWriter,
    Unread,
    /// Nobody else writes from here on, so this count goes on.
    Read {
        last_epoch: u64,
    },
}

/// What is remembered of one term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Tenure {
    term: u64,
    log: Log,
    standing: Option<Intent>,
    operator: Option<Intent>,
    /// After a failure nothing is tried before the coordinator has confirmed the membership anew.
    failed: Option<Duration>,
}

impl Tenure {
    fn new(term: u64) -> Self {
        Self { term, log: Log::NoWriter, standing: None, operator: None, failed: None }
    }

    /// The next intent, which takes the next number.
    fn begin(&mut self, fingerprint: Fingerprint) -> Option<Intent> {
        let Log::Read { last_epoch } = &mut self.log else { return None };
        *last_epoch = last_epoch.saturating_add(1);
        Some(Intent { epoch: *last_epoch, fingerprint, committed: false })
    }
}

/// Where this sidecar stands between following and leading.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leadership {
    limits: Limits,
    model: Option<Fingerprint>,
    tenure: Option<Tenure>,
    /// A writer exists that must not be used any more.
    stale_writer: bool,
    stepped_down: bool,
}

impl Leadership {
    /// A follower that knows nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, model: None, tenure: None, stale_writer: false, stepped_down: false }
    }

    /// Takes in what happened.
    pub fn on(&mut self, event: Event) {
        match event {
            Event::Model(fingerprint) => self.model = Some(fingerprint),
            Event::StepDown => {
                self.stepped_down = true;
                self.end_tenure();
            }
            // A writer that came too late is nevertheless there.
            Event::WriterReady { term } => match self.tenure(term) {
                Some(tenure) => tenure.log = Log::Unread,
                None => self.stale_writer = true,
            },
            Event::LogRead { term, last_epoch } => {
                if let Some(tenure) = self.tenure(term).filter(|tenure| tenure.log == Log::Unread) {
                    tenure.log = Log::Read { last_epoch };
                }
            }
            Event::IntentCommitted { term, epoch } => {
                if let Some(tenure) = self.tenure(term) {
                    let intents = tenure.standing.iter_mut().chain(&mut tenure.operator);
                    intents.filter(|intent| intent.epoch == epoch).for_each(|intent| intent.committed = true);
                }
            }
            Event::OutcomeCommitted { term, epoch } => {
                if let Some(tenure) = self.tenure(term) {
                    tenure.operator = tenure.operator.filter(|intent| intent.epoch != epoch);
                }
            }
            Event::TopicRestarted { term } => {
                if self.tenure(term).is_some() {
                    self.end_tenure();
                }
            }
            Event::Failed { term, failure, at } => self.failed(term, failure, at),
        }
    }

    fn failed(&mut self, term: u64, failure: Failure, at: Duration) {
        let Some(tenure) = self.tenure(term) else { return };
        tenure.failed = Some(at);
        tenure.standing = tenure.standing.filter(|intent| intent.committed);
        tenure.operator = tenure.operator.filter(|intent| intent.committed);
        if failure.ends_writer() {
            let had_writer = tenure.log != Log::NoWriter;
            // What was committed may no longer be the latest in the log.
            *tenure = Tenure { failed: Some(at), ..Tenure::new(term) };
            self.stale_writer |= had_writer;
        }
    }

    /// What to do now. `held` is what the lease says at this moment.
    pub fn next(&mut self, now: Duration, held: Option<Held>) -> Action {
        let held = held.filter(|_| !self.stepped_down);
        if self.tenure.is_some_and(|tenure| held.is_none_or(|held| held.term != tenure.term)) {
            self.end_tenure();
        }
        if std::mem::take(&mut self.stale_writer) {
            return Action::DropWriter;
        }
        let Some(held) = held else { return Action::Follow };
        let (limits, model) = (self.limits, self.model);
        let tenure = self.tenure.get_or_insert_with(|| Tenure::new(held.term));
        let term = held.term;
        let (Some(within), Some(fingerprint)) = (margin(limits, now, held), model) else { return Action::Wait };
        let standing = tenure.standing.filter(|intent| intent.fingerprint == fingerprint);
        if let Some(Intent { epoch, committed: true, .. }) = standing {
            return Action::Lead { term, epoch };
        }
        if tenure.failed.is_some_and(|failed| held.renewed <= failed) {
            return Action::Wait;
        }
        match tenure.log {
            Log::NoWriter => return Action::InitWriter { term, within },
            Log::Unread => return Action::ReadLog { term, within },
            Log::Read { .. } => {}
        }
        let Some(intent) = standing.or_else(|| tenure.begin(fingerprint)) else { return Action::Wait };
        tenure.standing = Some(intent);
        Action::CommitStandingIntent { term, epoch: intent.epoch, fingerprint, within }
    }

    /// Begins an operator's plan, which was made with this model: tells the number of its intent, to be committed at once. An earlier
    /// plan that has not ended is superseded.
    pub fn begin_plan(&mut self, now: Duration, held: Option<Held>, fingerprint: Fingerprint) -> Result<u64, Refusal> {
        self.may_send(now, held, fingerprint, None)?;
        let tenure = self.tenure.as_mut().ok_or(Refusal::NotLeading)?;
        let intent = tenure.begin(fingerprint).ok_or(Refusal::NotReady)?;
        tenure.operator = Some(intent);
        Ok(intent.epoch)
    }

    /// Whether a CreatePartitions request may go out now, and how long it may take. To be asked right before the call.
    ///
    /// `fingerprint` is the model that the targets were planned with; `intent` is the number of the plan's own intent, `None` for a
    /// reaction, which the standing intent covers. An operator's plan that is refused with [`Refusal::OtherModel`] stays refused: plan
    /// anew and [begin](Self::begin_plan) again, or write that it was dropped.
    pub fn may_send(
        &self,
        now: Duration,
        held: Option<Held>,
        fingerprint: Fingerprint,
        intent: Option<u64>,
    ) -> Result<Duration, Refusal> {
        let held = held.filter(|_| !self.stepped_down).ok_or(Refusal::NotLeading)?;
        let tenure = self.tenure.filter(|tenure| tenure.term == held.term).ok_or(Refusal::NotLeading)?;
        let standing = tenure.standing.filter(|intent| intent.committed).ok_or(Refusal::NotReady)?;
        let margin = margin(self.limits, now, held).ok_or(Refusal::MarginSpent)?;
        if self.model != Some(fingerprint) || standing.fingerprint != fingerprint {
            return Err(Refusal::OtherModel);
        }
        let Some(epoch) = intent else { return Ok(margin) };
        let own = tenure.operator.filter(|own| own.committed && own.epoch == epoch).ok_or(Refusal::NoIntent)?;
        if own.fingerprint == fingerprint { Ok(margin) } else { Err(Refusal::OtherModel) }
    }

    fn tenure(&mut self, term: u64) -> Option<&mut Tenure> {
        self.tenure.as_mut().filter(|tenure| tenure.term == term)
    }

    fn end_tenure(&mut self) {
        self.stale_writer |= self.tenure.take().is_some_and(|tenure| tenure.log != Log::NoWriter);
    }
}

/// How long nobody else can lead, if that is long enough to begin something.
fn margin(limits: Limits, now: Duration, held: Held) -> Option<Duration> {
    let left = held.renewed.saturating_add(limits.session).saturating_sub(now);
    (left >= limits.reserve && !left.is_zero()).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { session: Duration::from_secs(10), reserve: Duration::from_secs(2) };
    const MODEL: Fingerprint = Fingerprint(1);
    const OTHER: Fingerprint = Fingerprint(2);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn held(term: u64, renewed: u64) -> Option<Held> {
        Some(Held { term, renewed: at(renewed) })
    }

    /// A follower that knows the model.
    fn follower() -> Leadership {
        let mut leadership = Leadership::new(LIMITS);
        leadership.on(Event::Model(MODEL));
        leadership
    }

    /// Leads in this term since second 0, with standing intent 8.
    fn leader(term: u64) -> Leadership {
        let mut leadership = follower();
        assert_eq!(leadership.next(at(0), held(term, 0)), Action::InitWriter { term, within: at(10) });
        leadership.on(Event::WriterReady { term });
        assert_eq!(leadership.next(at(0), held(term, 0)), Action::ReadLog { term, within: at(10) }, "only after the writer");
        leadership.on(Event::LogRead { term, last_epoch: 7 });
        let commit = Action::CommitStandingIntent { term, epoch: 8, fingerprint: MODEL, within: at(10) };
        assert_eq!(leadership.next(at(0), held(term, 0)), commit);
        assert_eq!(leadership.may_send(at(0), held(term, 0), MODEL, None), Err(Refusal::NotReady));
        leadership.on(Event::IntentCommitted { term, epoch: 8 });
        assert_eq!(leadership.next(at(0), held(term, 0)), Action::Lead { term, epoch: 8 });
        leadership
    }

    #[test]
    fn who_does_not_hold_partition_0_follows() {
        let mut leadership = follower();
        assert_eq!(leadership.next(at(1), None), Action::Follow);
        assert_eq!(leadership.may_send(at(1), None, MODEL, None), Err(Refusal::NotLeading));
        assert_eq!(leadership.may_send(at(1), held(1, 1), MODEL, None), Err(Refusal::NotLeading), "not even begun");
    }

    #[test]
    fn nothing_begins_before_the_model_is_known() {
        let mut leadership = Leadership::new(LIMITS);
        assert_eq!(leadership.next(at(0), held(1, 0)), Action::Wait);
    }

    #[test]
    fn a_reaction_needs_only_the_margin() {
        let leadership = leader(1);
        assert_eq!(leadership.may_send(at(3), held(1, 3), MODEL, None), Ok(at(10)));
        assert_eq!(leadership.may_send(at(8), held(1, 0), MODEL, None), Ok(at(2)), "just enough");
        assert_eq!(leadership.may_send(at(9), held(1, 0), MODEL, None), Err(Refusal::MarginSpent));
        assert_eq!(leadership.may_send(at(60), held(1, 0), MODEL, None), Err(Refusal::MarginSpent));
    }

    #[test]
    fn without_margin_nothing_begins() {
        let mut leadership = leader(1);
        assert_eq!(leadership.next(at(9), held(1, 0)), Action::Wait);
        assert_eq!(leadership.next(at(9), held(1, 9)), Action::Lead { term: 1, epoch: 8 });
        assert_eq!(follower().next(at(9), held(1, 0)), Action::Wait);
    }

    #[test]
    fn another_model_needs_another_standing_intent() {
        let mut leadership = leader(1);
        leadership.on(Event::Model(OTHER));
        assert_eq!(leadership.may_send(at(0), held(1, 0), MODEL, None), Err(Refusal::OtherModel), "an old plan");
        assert_eq!(leadership.may_send(at(0), held(1, 0), OTHER, None), Err(Refusal::OtherModel), "no intent yet");
        let commit = Action::CommitStandingIntent { term: 1, epoch: 9, fingerprint: OTHER, within: at(10) };
        assert_eq!(leadership.next(at(0), held(1, 0)), commit);
        leadership.on(Event::IntentCommitted { term: 1, epoch: 9 });
        assert_eq!(leadership.may_send(at(0), held(1, 0), OTHER, None), Ok(at(10)));
        assert_eq!(leadership.may_send(at(0), held(1, 0), MODEL, None), Err(Refusal::OtherModel));
    }

    #[test]
    fn an_operators_plan_needs_its_own_intent() {
        let mut leadership = leader(1);
        assert_eq!(leadership.may_send(at(0), held(1, 0), MODEL, Some(8)), Err(Refusal::NoIntent), "not the standing one");
        assert_eq!(leadership.begin_plan(at(0), held(1, 0), OTHER), Err(Refusal::OtherModel));
        assert_eq!(leadership.begin_plan(at(9), held(1, 0), MODEL), Err(Refusal::MarginSpent));
        assert_eq!(leadership.begin_plan(at(0), held(1, 0), MODEL), Ok(9));
        assert_eq!(leadership.may_send(at(0), held(1, 0), MODEL, Some(9)), Err(Refusal::NoIntent), "not committed");
        leadership.on(Event::IntentCommitted { term: 1, epoch: 9 });
        assert_eq!(leadership.may_send(at(0), held(1, 0), MODEL, Some(9)), Ok(at(10)));
        assert_eq!(leadership.may_send(at(0), held(1, 0), MODEL, Some(9)), Ok(at(10)), "and again, until it ended");
        assert_eq!(leadership.may_send(at(0), held(2, 0), MODEL, Some(9)), Err(Refusal::NotLeading), "looks at the lease");
        leadership.on(Event::OutcomeCommitted { term: 1, epoch: 9 });
        assert_eq!(leadership.may_send(at(0), held(1, 0), MODEL, Some(9)), Err(Refusal::NoIntent));
        assert_eq!(leadership.begin_plan(at(0), held(1, 0), MODEL), Ok(10));
    }

    #[test]
    fn a_fenced_leader_waits_for_proof_that_it_leads_and_takes_over_anew() {
        let mut leadership = leader(1);
        leadership.on(Event::Failed { term: 1, failure: Failure::Fenced, at: at(3) });
        assert_eq!(leadership.may_send(at(3), held(1, 3), MODEL, None), Err(Refusal::NotReady));
        assert_eq!(leadership.next(at(3), held(1, 3)), Action::DropWriter);
        assert_eq!(leadership.next(at(3), held(1, 3)), Action::Wait, "whoever fenced may be the leader");
        assert_eq!(leadership.next(at(4), held(1, 4)), Action::InitWriter { term: 1, within: at(10) });
    }

    #[test]
    fn a_commit_of_unknown_outcome_is_settled_by_reading_the_log_anew() {
        let mut leadership = leader(1);
        assert_eq!(leadership.begin_plan(at(0), held(1, 0), MODEL), Ok(9));
        leadership.on(Event::Failed { term: 1, failure: Failure::TimedOut, at: at(2) });
        assert_eq!(leadership.next(at(2), held(1, 2)), Action::DropWriter);
        assert_eq!(leadership.next(at(3), held(1, 3)), Action::InitWriter { term: 1, within: at(10) });
        leadership.on(Event::WriterReady { term: 1 });
        leadership.on(Event::LogRead { term: 1, last_epoch: 9 });
        let commit = Action::CommitStandingIntent { term: 1, epoch: 10, fingerprint: MODEL, within: at(10) };
        assert_eq!(leadership.next(at(3), held(1, 3)), commit);
        assert_eq!(leadership.may_send(at(3), held(1, 3), MODEL, Some(9)), Err(Refusal::NotReady));
    }

    #[test]
    fn a_commit_that_failed_is_tried_again_after_the_next_heartbeat_with_the_same_writer() {
        for failure in [Failure::NotMember, Failure::Other] {
            let mut leadership = leader(1);
            leadership.on(Event::Model(OTHER));
            leadership.next(at(0), held(1, 0));
            leadership.on(Event::Failed { term: 1, failure, at: at(1) });
            assert_eq!(leadership.next(at(1), held(1, 0)), Action::Wait);
            let again = Action::CommitStandingIntent { term: 1, epoch: 10, fingerprint: OTHER, within: at(10) };
            assert_eq!(leadership.next(at(2), held(1, 2)), again);
        }
    }

    #[test]
    fn an_outcome_that_was_not_written_does_not_stop_the_leader() {
        let mut leadership = leader(1);
        leadership.on(Event::Failed { term: 1, failure: Failure::Other, at: at(1) });
        assert_eq!(leadership.next(at(1), held(1, 0)), Action::Lead { term: 1, epoch: 8 });
    }

    #[test]
    fn a_lost_leader_drops_its_writer_and_begins_anew_with_its_next_win() {
        for then in [None, held(2, 5)] {
            let mut leadership = leader(1);
            assert_eq!(leadership.may_send(at(5), then, MODEL, None), Err(Refusal::NotLeading));
            assert_eq!(leadership.next(at(5), then), Action::DropWriter);
            let next = if then.is_some() { Action::InitWriter { term: 2, within: at(10) } } else { Action::Follow };
            assert_eq!(leadership.next(at(5), then), next);
        }
    }

    #[test]
    fn events_of_an_earlier_term_change_nothing() {
        let mut leadership = leader(1);
        leadership.next(at(5), held(2, 5));
        assert_eq!(leadership.next(at(5), held(2, 5)), Action::InitWriter { term: 2, within: at(10) });
        let before = leadership.clone();
        for event in [
            Event::LogRead { term: 1, last_epoch: 3 },
            Event::IntentCommitted { term: 1, epoch: 8 },
            Event::OutcomeCommitted { term: 1, epoch: 8 },
            Event::Failed { term: 1, failure: Failure::Fenced, at: at(6) },
        ] {
            leadership.on(event);
            assert_eq!(leadership, before, "{event:?}");
        }
        leadership.on(Event::WriterReady { term: 1 });
        assert_eq!(leadership.next(at(5), held(2, 5)), Action::DropWriter, "it came too late, but it is there");
    }

    #[test]
    fn who_stepped_down_never_leads_again() {
        let mut leadership = leader(1);
        leadership.on(Event::StepDown);
        assert_eq!(leadership.may_send(at(0), held(1, 0), MODEL, None), Err(Refusal::NotLeading));
        assert_eq!(leadership.next(at(0), held(1, 0)), Action::DropWriter);
        assert_eq!(leadership.next(at(1), held(2, 1)), Action::Follow);
    }
}
