//! The loop of one application: does what the state machine asks for, on a thread of its own.
//!
//! Every call to the cluster blocks and is bounded, and the loop makes one call at a time, so there is never more than one
//! request in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::autoscaler::backoff;
use crate::autoscaler::machine::{Machine, Rules};
use crate::autoscaler::state::{Command, State};
use crate::autoscaler::status::AssignorError;
use crate::autoscaler::words;
use crate::config::settings::OnError;
use crate::kafka::group_bytes::{self, Tasks};
use crate::kafka::port::{Cluster, ErrorClass, Group, KafkaError, Observation, Reply};
use crate::plan::partitioner::Keys;
use crate::plan::{Planner, Question, Watched};
use crate::topology::pattern::TopicPattern;

/// Bound of a request that reads.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Bound of a CreatePartitions request; after it the counts are read again, whatever happened.
const EXPAND_TIMEOUT: Duration = Duration::from_secs(15);
/// How often the group is looked at while it has to take up new partitions, and otherwise.
const GROUP_PACE_SETTLING: Duration = Duration::from_millis(500);
const GROUP_PACE: Duration = Duration::from_secs(30);
/// How often all topics are listed, for pattern sources only; in between, topics are asked for by name.
const LIST_PACE: Duration = Duration::from_secs(30);

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
    /// A step is over: the events of the machine are to be taken.
    fn step(&mut self, now: Duration, machine: &mut Machine);
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
}

/// The loop of one application.
pub struct Driver<C, R> {
    cluster: C,
    setup: Setup,
    control: Receiver<Control>,
    reporter: R,
    clock: Instant,
}

impl<C: Cluster, R: Report> Driver<C, R> {
    /// A loop that has not begun.
    pub fn new(cluster: C, setup: Setup, control: Receiver<Control>, reporter: R) -> Self {
        Self { cluster, setup, control, reporter, clock: Instant::now() }
    }

    /// Works until it is told to stop, may not go on, or cannot.
    pub fn run(mut self) -> Ended {
        if let Some(planner) = &self.setup.planner {
            self.reporter.topology(planner);
        }
        let planner = self.meet_cluster().and_then(|()| self.await_topology());
        let ended = match planner {
            Err(ended) => ended,
            Ok(planner) => {
                let machine = Machine::new(self.setup.rules.clone(), planner, std::mem::take(&mut self.setup.baseline));
                let watch = Watch::of(machine.planner());
                let mut work = Loop { machine, watch, next_group: Duration::ZERO, rehearsed: false, driver: &mut self };
                work.run()
            }
        };
        self.reporter.ended(&ended);
        ended
    }

    fn now(&self) -> Duration {
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
            let until = self.now().saturating_add(backoff::pause(attempt, fastrand::f64()));
            attempt = attempt.saturating_add(1);
            while let Some(control) = self.told_before(until) {
                self.prepare(control)?;
            }
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
    fn prepare(&mut self, control: Control) -> Result<(), Ended> {
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
            Control::Keys(_) => {} // sampled again later
            Control::NoTopology(reason) => self.reporter.topology_failed(&reason),
        }
        Ok(())
    }

    /// What is told before `until`, or nothing.
    fn told_before(&self, until: Duration) -> Option<Control> {
        match self.control.recv_timeout(until.saturating_sub(self.now())) {
            Ok(control) => Some(control),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Control::Stop),
        }
    }
}

/// Only a change of configuration or rights helps, so waiting does not.
fn needs_a_person(class: ErrorClass) -> bool {
    matches!(class, ErrorClass::Authentication | ErrorClass::Authorization | ErrorClass::TooOld | ErrorClass::Config)
}

/// Names to ask for.
struct Watch {
    names: Vec<String>,
    patterns: Vec<TopicPattern>,
    next_list: Duration,
}

impl Watch {
    fn of(planner: &Planner) -> Self {
        let Watched { names, patterns } = planner.watched();
        Self { names: names.into_iter().collect(), patterns, next_list: Duration::ZERO }
    }
}

struct Loop<'a, C, R> {
    driver: &'a mut Driver<C, R>,
    machine: Machine,
    watch: Watch,
    next_group: Duration,
    rehearsed: bool,
}

impl<C: Cluster, R: Report> Loop<'_, C, R> {
    fn run(&mut self) -> Ended {
        loop {
            match self.machine.command(self.driver.now()) {
                Command::Observe { at } => match self.driver.told_before(at) {
                    Some(Control::Stop) => return Ended::Stopped,
                    Some(Control::Settings { rules, baseline, on_error }) => {
                        let now = self.driver.now();
                        self.driver.setup.on_error = on_error;
                        self.machine.reconfigure(now, rules);
                        self.machine.state_baseline(now, baseline);
                    }
                    Some(Control::Topology(planner)) => self.change_topology(*planner),
                    Some(Control::Keys(keys)) => self.machine.keys_sampled(self.driver.now(), keys),
                    Some(Control::NoTopology(reason)) => self.driver.reporter.topology_failed(&reason),
                    None => {
                        if let Some(refused) = self.observe() {
                            return Ended::Refused(refused);
                        }
                    }
                },
                Command::Expand { targets } => self.expand(&targets),
            }
            self.rehearse_once();
            self.tell(); // what was done is told before the next request delays it
            if self.look_at_group() {
                self.tell();
            }
            if self.driver.setup.on_error == OnError::Exit && self.machine.assignor_error() != AssignorError::None {
                return Ended::AssignorError;
            }
        }
    }

    fn tell(&mut self) {
        let now = self.driver.now();
        self.driver.reporter.step(now, &mut self.machine);
    }

    /// Reads all counts. Before the first time that this works, an error that only a person can mend is handed back.
    fn observe(&mut self) -> Option<KafkaError> {
        self.list_topics_when_due();
        let started = Instant::now();
        let answer = self.driver.cluster.describe_topics(&self.watch.names, READ_TIMEOUT);
        let now = self.driver.now();
        if let Err(error) = &answer
            && needs_a_person(error.class)
            && matches!(self.machine.state(), State::Starting)
        {
            return Some(error.clone());
        }
        self.driver.reporter.observed(now, started.elapsed(), &answer);
        match answer {
            Ok(seen) => self.machine.observed(now, &seen),
            Err(_) => self.machine.observation_failed(now),
        }
        None
    }

    fn expand(&mut self, targets: &BTreeMap<String, u32>) {
        let now = self.driver.now();
        self.driver.reporter.requesting(now, targets);
        let started = Instant::now();
        let outcome = self.driver.cluster.create_partitions(targets, EXPAND_TIMEOUT);
        let now = self.driver.now();
        self.driver.reporter.replied(now, started.elapsed(), &outcome);
        self.machine.replied(now, &outcome, fastrand::f64());
    }

    fn list_topics_when_due(&mut self) {
        let now = self.driver.now();
        if self.watch.patterns.is_empty() || now < self.watch.next_list {
            return;
        }
        self.watch.next_list = now.saturating_add(LIST_PACE);
        match self.driver.cluster.list_topics(READ_TIMEOUT) {
            Ok(topics) => {
                let mut names: BTreeSet<String> = self.watch.names.drain(..).collect();
                let matches = |topic: &String| self.watch.patterns.iter().any(|pattern| pattern.matches(topic));
                names.extend(topics.into_iter().filter(matches));
                self.watch.names = names.into_iter().collect();
            }
            Err(error) => self.driver.reporter.list_failed(&error),
        }
    }

    fn change_topology(&mut self, planner: Planner) {
        self.driver.reporter.topology(&planner);
        self.watch = Watch::of(&planner);
        self.rehearsed = false;
        let names: BTreeSet<String> = self.watch.names.iter().cloned().collect();
        self.machine.change_topology(self.driver.now(), planner, &names);
    }

    /// Asks at start what would otherwise be asked in the moment of growth.
    fn rehearse_once(&mut self) {
        if !self.rehearsed && matches!(self.machine.state(), State::Steady) {
            self.rehearsed = true;
            let counts = self.machine.counts().partitions();
            let questions = self.machine.planner().rehearse(&counts, &self.machine.knowledge());
            self.driver.reporter.questions(questions);
        }
    }

    /// Whether it was time to look.
    fn look_at_group(&mut self) -> bool {
        let now = self.driver.now();
        let settling = matches!(self.machine.state(), State::Settling { .. });
        if matches!(self.machine.state(), State::Starting | State::Expanding(_)) {
            self.next_group = now;
            return false;
        }
        if settling {
            self.next_group = self.next_group.min(now.saturating_add(GROUP_PACE_SETTLING));
        }
        if now < self.next_group {
            return false;
        }
        self.next_group = now.saturating_add(if settling { GROUP_PACE_SETTLING } else { GROUP_PACE });
        match self.driver.cluster.describe_group(&self.driver.setup.application_id, READ_TIMEOUT) {
            Ok(group) => {
                let tasks = settled_tasks(group.as_ref());
                self.driver.reporter.group(Ok(group.as_ref()), tasks.as_ref());
                if let Some(tasks) = tasks {
                    self.machine.group_observed(tasks.counts);
                }
            }
            Err(error) => self.driver.reporter.group(Err(&error), None),
        }
        true
    }
}

/// What the members own and run; `None` while the group has no say, because it is rebalancing.
fn settled_tasks(group: Option<&Group>) -> Option<Tasks> {
    let Some(group) = group else { return Some(Tasks::default()) };
    match group.state.as_str() {
        "Stable" => group_bytes::tasks(group).ok().filter(|tasks| !tasks.in_transition),
        "Empty" => Some(Tasks::default()),
        _ => None,
    }
}
