//! The loop of one application: does what the state machine asks for, on a thread of its own.
//!
//! Every call to the cluster blocks and is bounded, and the loop makes one call at a time, so there is never more than one
//! request in flight.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::autoscaler::backoff;
use crate::autoscaler::lead::{Begun, Loop, assignor_error, model};
use crate::autoscaler::machine::{Machine, Rules};
use crate::autoscaler::record::Unwritten;
use crate::autoscaler::state::Event;
use crate::autoscaler::status::{AssignorError, HistoryEntry};
use crate::autoscaler::words;
use crate::config::settings::OnError;
use crate::coordinator::office::{Office, Standing};
use crate::coordinator::{Failure, Memory};
use crate::kafka::group_bytes::Tasks;
use crate::kafka::port::{Cluster, ErrorClass, Group, KafkaError, Observation, Reply};
use crate::plan::partitioner::Keys;
use crate::plan::{Planner, Question};

/// Bound of a request that reads.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a follower waits for news before it looks whether it leads.
const FOLLOW_PACE: Duration = Duration::from_millis(100);
/// How often a follower, which has nothing to ask, finds out whether the brokers still answer, and how long it waits for that.
const CONTACT_PACE: Duration = Duration::from_secs(10);
const CONTACT_TIMEOUT: Duration = Duration::from_secs(2);

/// What others tell a running loop.
pub enum Control {
    /// Finish the current call and end.
    Stop,
    /// Other settings.
    Settings {
        /// Those that the machine obeys.
        rules: Rules,
        /// Stated counts of inputs, by full topic name.
        baseline: BTreeMap<String, u32>,
        /// `partition.autoscaling.on.error`
        on_error: OnError,
    },
    /// Another topology of the application, or the first one.
    Topology(Box<Planner>),
    /// How the keys of some topics are spread.
    Keys(BTreeMap<String, Keys>),
    /// The topology cannot be read, and why. What was known of it stays in force.
    NoTopology(String),
    /// This sidecar must not go on, and why.
    Refuse(KafkaError),
}

/// Who is told what the loop does: log, metrics and status.
pub trait Report: Send {
    /// The cluster has answered.
    fn cluster(&mut self, id: String);
    /// No answer yet, before the first one ever.
    fn unreachable(&mut self, error: &KafkaError);
    /// The topology that is worked with from now on.
    fn topology(&mut self, planner: &Planner);
    /// The topology cannot be read, for this reason; it is tried again.
    fn topology_failed(&mut self, reason: &str);
    /// What the operator has to state before the next growth can be followed.
    fn questions(&mut self, questions: Vec<Question>);
    /// An observation ended.
    fn observed(&mut self, now: Duration, took: Duration, answer: &Result<Observation, KafkaError>);
    /// A CreatePartitions request goes out.
    fn requesting(&mut self, now: Duration, targets: &BTreeMap<String, u32>);
    /// Its outcome.
    fn replied(&mut self, now: Duration, took: Duration, outcome: &Result<Reply, KafkaError>);
    /// The group was looked at; `tasks` where it is stable or empty.
    fn group(&mut self, group: Result<Option<&Group>, &KafkaError>, tasks: Option<&Tasks>);
    /// The topics of the cluster could not be listed.
    fn list_failed(&mut self, error: &KafkaError);
    /// A step is over, and these are the events of it.
    fn step(&mut self, now: Duration, events: Vec<Event>, machine: &Machine);
    /// This sidecar acts from now on.
    fn leading(&mut self);
    /// Another sidecar acts, or nobody; this is what is remembered of it. `enabled`: the flag as this sidecar has it.
    fn following(&mut self, memory: &Memory, enabled: bool);
    /// Whether the brokers answer a sidecar that only follows.
    fn contact(&mut self, answer: Result<(), KafkaError>);
    /// How reading and writing the memory goes: `failures` of writing by kind, since the start.
    fn coordination(&mut self, memory: &Memory, failures: &BTreeMap<Failure, u64>);
    /// Something is wrong with leadership or memory.
    fn trouble(&mut self, message: &str);
    /// What is wrong with them at present; empty if nothing is.
    fn ailing(&mut self, ailments: Vec<String>);
    /// What has happened since the last call.
    fn take_history(&mut self) -> Vec<HistoryEntry>;
    /// The loop ends.
    fn ended(&mut self, ended: &Ended);
}

/// Why a loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Stopped,
    /// `partition.autoscaling.on.error=exit`, and there is an assignor error.
    AssignorError,
    /// It may not or cannot work with this cluster; a sentence says why.
    Refused(KafkaError),
}

/// What a loop needs beside the cluster.
pub struct Setup {
    /// `application.id`, which is the name of the group as well.
    pub application_id: String,
    /// `expected.cluster.id`
    pub expected_cluster_id: Option<String>,
    /// `partition.autoscaling.on.error`
    pub on_error: OnError,
    /// The settings that the machine obeys.
    pub rules: Rules,
    /// Stated counts of inputs, by full topic name.
    pub baseline: BTreeMap<String, u32>,
    /// The topology, if it is known already; else it comes as [`Control::Topology`].
    pub planner: Option<Planner>,
    /// Makes the office, with the moment that times are counted from; tried again while the cluster is out of reach.
    pub office: MakeOffice,
}

/// See [`Setup::office`].
pub type MakeOffice = Box<dyn FnMut(Instant) -> Result<Box<dyn Office>, KafkaError> + Send>;

/// The loop of one application.
pub struct Driver<C, R> {
    pub(super) cluster: C,
    pub(super) setup: Setup,
    control: Receiver<Control>,
    pub(super) reporter: R,
    /// How keys are spread, as far as it was told; sampled once, so kept for whenever this sidecar leads.
    pub(super) keys: BTreeMap<String, Keys>,
    clock: Instant,
    /// The assignor error that is remembered was told before this sidecar came.
    inherited: bool,
    /// The counts of the application were read once, so nothing is wrong that only a person can mend.
    pub(super) seen_counts: bool,
    /// What happened while this sidecar led and is not remembered yet.
    pub(super) unwritten: Unwritten,
}

impl<C: Cluster, R: Report> Driver<C, R> {
    /// A loop that has not begun.
    pub fn new(cluster: C, setup: Setup, control: Receiver<Control>, reporter: R) -> Self {
        Self {
            cluster,
            setup,
            control,
            reporter,
            keys: BTreeMap::new(),
            clock: Instant::now(),
            inherited: false,
            seen_counts: false,
            unwritten: Unwritten::default(),
        }
    }

    /// Works until it is told to stop, may not go on, or cannot.
    pub fn run(mut self) -> Ended {
        if let Some(planner) = &self.setup.planner {
            self.reporter.topology(planner);
        }
        let ended = self.work();
        self.reporter.ended(&ended);
        ended
    }

    /// Joins the others only when it knows what to do: a leader without a topology would keep them from acting.
    fn work(&mut self) -> Ended {
        let ready = self.meet_cluster().and_then(|()| self.await_topology()).and_then(|planner| {
            self.look_once(&planner)?;
            Ok((self.take_office()?, planner))
        });
        match ready {
            Ok((mut office, planner)) => {
                let ended = self.serve(office.as_mut(), planner);
                office.close();
                ended
            }
            Err(ended) => ended,
        }
    }

    /// Whether this sidecar may see the topics: what only a person can mend is found out now and not when it has to lead.
    fn look_once(&mut self, planner: &Planner) -> Result<(), Ended> {
        let names: Vec<String> = planner.watched().names.into_iter().collect();
        match self.cluster.describe_topics(&names, READ_TIMEOUT) {
            Ok(_) => self.seen_counts = true,
            Err(error) if needs_a_person(error.class) => return Err(Ended::Refused(error)),
            Err(_) => {} // tried again by whoever leads
        }
        Ok(())
    }

    /// Follows and leads in turn.
    fn serve(&mut self, office: &mut dyn Office, mut planner: Planner) -> Ended {
        self.inherited = true;
        if let Some(later) = self.setup.planner.take() {
            planner = later; // it came while the office was taken
        }
        loop {
            if let Err(ended) = self.follow(office, &mut planner) {
                return ended;
            }
            self.reporter.leading();
            match Loop::begin(self, office, planner) {
                Ok(mut work) => match work.run() {
                    Some(ended) => return ended,
                    None => planner = work.into_planner(),
                },
                Err(Begun::Lost(same)) => planner = *same,
                Err(Begun::Ended(ended)) => return ended,
            }
            self.unwritten.history.extend(self.reporter.take_history());
            self.reporter.following(office.memory(), self.setup.rules.enabled);
        }
    }

    /// Returns once this sidecar leads.
    fn follow(&mut self, office: &mut dyn Office, planner: &mut Planner) -> Result<(), Ended> {
        let mut told = false;
        let mut fingerprint = model(planner, &self.setup.rules);
        let mut next_contact = self.now().saturating_add(CONTACT_PACE);
        loop {
            let standing = office.turn(self.now(), fingerprint);
            self.tell_troubles(office);
            if matches!(standing, Standing::Leads { .. }) {
                return Ok(());
            }
            if office.watch(FOLLOW_PACE) || !told {
                told = true;
                self.reporter.following(office.memory(), self.setup.rules.enabled);
            }
            if self.now() >= next_contact {
                let contact = office.contact(self.now(), CONTACT_TIMEOUT);
                self.reporter.contact(contact);
                next_contact = self.now().saturating_add(CONTACT_PACE);
            }
            while let Some(control) = self.told_before(Duration::ZERO) {
                self.prepare(control)?;
                if let Some(other) = self.setup.planner.take() {
                    *planner = other;
                }
                fingerprint = model(planner, &self.setup.rules);
                told = false;
            }
            // An error of a leader that is gone ends nobody: else the sidecar that is to mend it could never take over.
            let error = assignor_error(office.memory()) != AssignorError::None;
            self.inherited &= error;
            if self.setup.on_error == OnError::Exit && error && !self.inherited {
                return Err(Ended::AssignorError);
            }
        }
    }

    pub(super) fn tell_troubles(&mut self, office: &mut dyn Office) {
        for trouble in office.troubles() {
            self.reporter.trouble(&trouble);
        }
        self.reporter.ailing(office.ailments());
        self.reporter.coordination(office.memory(), office.failures());
    }

    /// Joins the other sidecars.
    fn take_office(&mut self) -> Result<Box<dyn Office>, Ended> {
        let mut attempt = 0;
        loop {
            match (self.setup.office)(self.clock) {
                Ok(office) => return Ok(office),
                Err(error) if needs_a_person(error.class) => return Err(Ended::Refused(error)),
                Err(error) => self.reporter.unreachable(&error),
            }
            self.pause(&mut attempt)?;
        }
    }

    /// Waits before the next attempt.
    fn pause(&mut self, attempt: &mut u32) -> Result<(), Ended> {
        let until = self.now().saturating_add(backoff::pause(*attempt, fastrand::f64()));
        *attempt = attempt.saturating_add(1);
        while let Some(control) = self.told_before(until) {
            self.prepare(control)?;
        }
        Ok(())
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Waits for the first answer of the cluster and checks that it is the right one.
    fn meet_cluster(&mut self) -> Result<(), Ended> {
        let mut attempt = 0;
        loop {
            match self.cluster.cluster_id(READ_TIMEOUT) {
                Ok(id) => return self.check_cluster(id),
                Err(error) if needs_a_person(error.class) => return Err(Ended::Refused(error)),
                Err(error) => self.reporter.unreachable(&error),
            }
            self.pause(&mut attempt)?;
        }
    }

    fn check_cluster(&mut self, id: String) -> Result<(), Ended> {
        match &self.setup.expected_cluster_id {
            Some(expected) if *expected != id => {
                Err(Ended::Refused(KafkaError { class: ErrorClass::Config, message: words::other_cluster(&id, expected) }))
            }
            _ => {
                self.reporter.cluster(id);
                Ok(())
            }
        }
    }

    fn await_topology(&mut self) -> Result<Planner, Ended> {
        loop {
            if let Some(planner) = self.setup.planner.take() {
                return Ok(planner);
            }
            match self.control.recv() {
                Ok(control) => self.prepare(control)?,
                Err(_) => return Err(Ended::Stopped),
            }
        }
    }

    /// Takes in what is told before the machine exists.
    pub(super) fn prepare(&mut self, control: Control) -> Result<(), Ended> {
        match control {
            Control::Stop => return Err(Ended::Stopped),
            Control::Settings { rules, baseline, on_error } => {
                self.setup.rules = rules;
                self.setup.baseline = baseline;
                self.setup.on_error = on_error;
            }
            Control::Topology(planner) => {
                self.reporter.topology(&planner);
                self.setup.planner = Some(*planner);
            }
            Control::Keys(keys) => self.keys.extend(keys),
            Control::NoTopology(reason) => self.reporter.topology_failed(&reason),
            Control::Refuse(error) => return Err(Ended::Refused(error)),
        }
        Ok(())
    }

    /// What is told before `until`, or nothing.
    pub(super) fn told_before(&self, until: Duration) -> Option<Control> {
        match self.control.recv_timeout(until.saturating_sub(self.now())) {
            Ok(control) => Some(control),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Control::Stop),
        }
    }
}

/// Only a change of configuration or rights helps, so waiting does not.
pub(super) fn needs_a_person(class: ErrorClass) -> bool {
    matches!(class, ErrorClass::Authentication | ErrorClass::Authorization | ErrorClass::TooOld | ErrorClass::Config)
}
