//! What the loop does while its sidecar leads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::autoscaler::driver::{Control, Driver, Ended, READ_TIMEOUT, Report, needs_a_person};
use crate::autoscaler::machine::{Machine, Rules};
use crate::autoscaler::record::{self, EndedPlan, Unwritten, mismatch, topology};
use crate::autoscaler::state::{Command, Event, State};
use crate::autoscaler::status::{AssignorError, StateName};
use crate::config::settings::OnError;
use crate::coordinator::office::{Office, Standing};
use crate::coordinator::records::{Fingerprint, Intent, Key, Kind, Outcome, Row, Verdict};
use crate::coordinator::{Memory, view};
use crate::kafka::group_bytes::{self, Tasks};
use crate::kafka::port::{Cluster, ErrorClass, Group, KafkaError, Observation, TopicError, TopicId, TopicState};
use crate::pause_point;
use crate::plan::{Decision, Planner, Watched};
use crate::topology::pattern::TopicPattern;

/// Bound of a CreatePartitions request; after it the counts are read again, whatever happened.
const EXPAND_TIMEOUT: Duration = Duration::from_secs(15);
/// How often the group is looked at while it has to take up new partitions, and otherwise.
const GROUP_PACE_SETTLING: Duration = Duration::from_millis(500);
const GROUP_PACE: Duration = Duration::from_secs(30);
/// How often it looks whether it still leads, however long the poll interval is.
const TURN_PACE: Duration = Duration::from_millis(500);
/// How long to wait before what could not be written is written again.
const REWRITE_PACE: Duration = Duration::from_secs(1);
/// How often all topics are listed, for pattern sources only; in between, topics are asked for by name.
const LIST_PACE: Duration = Duration::from_secs(30);

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

pub(super) struct Loop<'a, C, R> {
    driver: &'a mut Driver<C, R>,
    office: &'a mut dyn Office,
    machine: Machine,
    model: Fingerprint,
    watch: Watch,
    next_group: Duration,
    rehearsed: bool,
    /// Something is different from what is remembered.
    unwritten: bool,
    /// Not before this moment it is tried again to write.
    next_write: Duration,
}

/// Why leading did not begin.
pub(super) enum Begun {
    /// The leadership was lost meanwhile.
    Lost(Box<Planner>),
    /// The sidecar ends.
    Ended(Ended),
}

impl<'a, C: Cluster, R: Report> Loop<'a, C, R> {
    /// Starts from what is remembered, and from the topics that are there now: a recreated topic has no past.
    pub(super) fn begin(driver: &'a mut Driver<C, R>, office: &'a mut dyn Office, mut planner: Planner) -> Result<Self, Begun> {
        let mut watch = Watch::of(&planner);
        let mut fingerprint = model(&planner, &driver.setup.rules);
        let seen = loop {
            let started = Instant::now();
            let answer = driver.cluster.describe_topics(&watch.names, READ_TIMEOUT);
            if let Err(error) = &answer
                && !driver.seen_counts
                && needs_a_person(error.class)
            {
                return Err(Begun::Ended(Ended::Refused(error.clone())));
            }
            driver.reporter.observed(driver.now(), started.elapsed(), &answer);
            if let Ok(seen) = answer {
                driver.seen_counts = true;
                break seen;
            }
            let until = driver.now().saturating_add(driver.setup.rules.poll_interval);
            while let Some(control) = driver.told_before(until) {
                driver.prepare(control).map_err(Begun::Ended)?;
            }
            if let Some(other) = driver.setup.planner.take() {
                planner = other;
                watch = Watch::of(&planner);
            }
            fingerprint = model(&planner, &driver.setup.rules);
            if office.turn(driver.now(), fingerprint) == Standing::Follows {
                return Err(Begun::Lost(Box::new(planner)));
            }
        };
        let ids = topic_ids(&seen);
        let memory = office.memory();
        let learned_here = memory.get(&Key::Topology) == Some(&Row::Topology(topology(&planner)));
        let unsettled = view::state(memory).is_some_and(|state| matches!(state.name, StateName::Expanding | StateName::Settling));
        let mut machine = Machine::new(driver.setup.rules.clone(), planner, driver.setup.baseline.clone()).unsettled(unsettled);
        if learned_here {
            machine = machine.knowing(memory.baseline(&ids), memory.followers(&counts(&seen), &ids));
        }
        machine.keys_sampled(driver.now(), driver.keys.clone());
        machine.recount(memory.failures());
        Ok(Self {
            driver,
            office,
            machine,
            model: fingerprint,
            watch,
            next_group: Duration::ZERO,
            rehearsed: false,
            unwritten: true,
            next_write: Duration::ZERO,
        })
    }

    pub(super) fn into_planner(self) -> Planner {
        self.machine.into_planner()
    }

    /// Leads until this sidecar ends, or (`None`) does not lead any more.
    pub(super) fn run(&mut self) -> Option<Ended> {
        loop {
            if self.office.turn(self.driver.now(), self.model) != (Standing::Leads { begins: false }) {
                return None;
            }
            let now = self.driver.now();
            match self.machine.command(now) {
                Command::Observe { at } => match self.driver.told_before(at.min(now.saturating_add(TURN_PACE))) {
                    Some(Control::Stop) => return Some(Ended::Stopped),
                    Some(Control::Settings { rules, baseline, on_error }) => {
                        let now = self.driver.now();
                        self.driver.setup.on_error = on_error;
                        self.driver.setup.rules = rules.clone();
                        self.driver.setup.baseline.clone_from(&baseline);
                        self.machine.reconfigure(now, rules);
                        self.machine.state_baseline(now, baseline);
                        self.model = model(self.machine.planner(), &self.driver.setup.rules);
                        self.unwritten = true; // followers compare their flag with it
                    }
                    Some(Control::Refuse(error)) => return Some(Ended::Refused(error)),
                    Some(Control::Topology(planner)) => self.change_topology(*planner),
                    Some(Control::Keys(keys)) => {
                        self.driver.keys.extend(keys.clone());
                        self.machine.keys_sampled(self.driver.now(), keys);
                    }
                    Some(Control::NoTopology(reason)) => self.driver.reporter.topology_failed(&reason),
                    None if self.driver.now() < at => {} // only a look at the office
                    None => {
                        if let Some(refused) = self.observe() {
                            return Some(Ended::Refused(refused));
                        }
                        if self.request_is_due() {
                            pause_point::reached("after-observation");
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
            self.remember();
            if self.driver.setup.on_error == OnError::Exit && self.machine.assignor_error() != AssignorError::None {
                return Some(Ended::AssignorError);
            }
        }
    }

    fn tell(&mut self) {
        let now = self.driver.now();
        let mut events = self.machine.take_events();
        // one mismatch is one failure, however many leaders give it up
        if self.machine.decision().is_some_and(|decision| self.is_counted(decision)) {
            let before = events.len();
            events.retain(|event| *event != Event::GaveUp);
            if events.len() < before {
                self.machine.recount(self.office.memory().failures());
            }
        }
        for event in &events {
            match event {
                Event::Expanded { decision, took, .. } => self.plan_ended(decision, Verdict::Expanded, &BTreeMap::new(), *took),
                Event::Entered(State::Failed { decision, errors }) => {
                    self.plan_ended(decision, Verdict::Failed, errors, self.driver.setup.rules.timeout);
                }
                _ => {}
            }
        }
        self.unwritten |= !events.is_empty();
        self.driver.reporter.step(now, events, &self.machine);
        self.driver.tell_troubles(self.office);
    }

    /// A plan has ended; its rows follow.
    fn plan_ended(&mut self, decision: &Decision, result: Verdict, errors: &BTreeMap<String, TopicError>, took: Duration) {
        let targets: BTreeMap<_, _> = decision.changes.iter().map(|change| (change.topic.clone(), change.to)).collect();
        let mut topic_ids = self.machine.counts().ids();
        topic_ids.retain(|topic, _| targets.contains_key(topic));
        let (kind, epoch) = (Kind::Reaction, self.office.memory().standing_intent().map_or(0, |standing| standing.epoch));
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let plan = EndedPlan {
            mismatch: mismatch(decision, &self.machine),
            intent: Intent { kind, epoch, fingerprint: self.model, targets, topic_ids },
            outcome: Outcome { kind, epoch, result, errors: errors.clone(), took_ms },
        };
        self.driver.unwritten.plans.push(plan);
    }

    fn is_counted(&self, decision: &Decision) -> bool {
        let mismatch = mismatch(decision, &self.machine);
        self.driver.unwritten.failed(&mismatch) || self.office.memory().get(&Key::Failure(mismatch)).is_some()
    }

    /// The first request of a plan is on its way, or was accepted and is being verified.
    fn request_is_due(&self) -> bool {
        matches!(self.machine.state(), State::Expanding(expansion)
            if expansion.errors.is_empty() && expansion.request_error.is_none() && expansion.attempts < 2)
    }

    /// Writes down what has happened, but never while a request is due: the record of a reaction follows it.
    fn remember(&mut self) {
        if !self.unwritten || self.request_is_due() {
            return;
        }
        let now = self.driver.now();
        if now < self.next_write {
            return;
        }
        let machine = &self.machine;
        self.driver.unwritten.history.extend(self.driver.reporter.take_history());
        self.driver.unwritten.trim();
        let unwritten = &self.driver.unwritten;
        let written = self.office.remember(now, &mut |memory, at| {
            record::stand(memory, at, machine);
            unwritten.put_into(memory, at);
            record::close_failures(memory, machine);
        });
        if written {
            self.unwritten = false;
            self.driver.unwritten = Unwritten::default();
        } else {
            self.next_write = now.saturating_add(REWRITE_PACE);
        }
        self.driver.tell_troubles(self.office);
    }

    /// Reads all counts. Before the first time that this works, an error that only a person can mend is handed back.
    fn observe(&mut self) -> Option<KafkaError> {
        self.list_topics_when_due();
        let mut names = self.watch.names.clone();
        names.extend(self.office.topic().map(str::to_owned));
        let started = Instant::now();
        let within = self.read_timeout();
        let mut answer = self.driver.cluster.describe_topics(&names, within);
        let now = self.driver.now();
        if let (Ok(seen), Some(own)) = (&mut answer, self.office.topic())
            && let Some(TopicState::Present { id, partitions }) = seen.remove(own)
        {
            self.office.saw(id, partitions);
        }
        if let Err(error) = &answer
            && !self.driver.seen_counts
            && needs_a_person(error.class)
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
        pause_point::reached("before-margin-check");
        let now = self.driver.now();
        let within = match self.office.may_send(now, self.model) {
            Ok(within) => within.min(EXPAND_TIMEOUT),
            Err(refusal) => {
                let message = format!("the request is not sent: {refusal}");
                self.driver.reporter.trouble(&message);
                self.machine.replied(now, &Err(KafkaError::new(ErrorClass::Other, message)), fastrand::f64());
                return;
            }
        };
        pause_point::reached("after-margin-check");
        self.driver.reporter.requesting(now, targets);
        let started = Instant::now();
        let outcome = self.driver.cluster.create_partitions(targets, within);
        pause_point::reached("after-request");
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
        self.unwritten = true; // what is remembered was learned with another topology
        let names: BTreeSet<String> = self.watch.names.iter().cloned().collect();
        self.model = model(&planner, &self.driver.setup.rules);
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

    /// Bound of a request that reads: it ends before the session does, so that a leader without a connection knows in time that it
    /// leads no more.
    fn read_timeout(&self) -> Duration {
        const LEAST: Duration = Duration::from_secs(1);
        let left = self.office.may_send(self.driver.now(), self.model).unwrap_or_default();
        READ_TIMEOUT.min(left.saturating_sub(LEAST)).max(LEAST)
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
        let within = self.read_timeout();
        match self.driver.cluster.describe_group(&self.driver.setup.application_id, within) {
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

/// Everything that targets are planned with beside the counts.
pub(super) fn model(planner: &Planner, rules: &Rules) -> Fingerprint {
    Fingerprint::of([planner.identity().as_str(), &rules.max_new_partitions.to_string()])
}

fn topic_ids(seen: &Observation) -> BTreeMap<String, TopicId> {
    let id = |(topic, state): (&String, &TopicState)| match state {
        TopicState::Present { id: Some(id), .. } => Some((topic.clone(), *id)),
        _ => None,
    };
    seen.iter().filter_map(id).collect()
}

fn counts(seen: &Observation) -> BTreeMap<String, u32> {
    let count = |(topic, state): (&String, &TopicState)| match state {
        TopicState::Present { partitions, .. } => Some((topic.clone(), *partitions)),
        _ => None,
    };
    seen.iter().filter_map(count).collect()
}

pub(super) fn assignor_error(memory: &Memory) -> AssignorError {
    match memory.get(&Key::AssignorError) {
        Some(Row::AssignorError { error, .. }) => *error,
        _ => AssignorError::None,
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
