//! The state machine of one application (KIP-878): pure, with time and observations as arguments.
//!
//! The driver asks [`Machine::command`] what to do, does it, and tells the outcome. Every answer of a broker leads to a new
//! plan from scratch: the machine remembers what it saw, never what it meant to do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::autoscaler::backoff;
use crate::autoscaler::counts::{Counts, News};
use crate::autoscaler::decisions::{expected_tasks, is_part, moving_keys};
use crate::autoscaler::state::{Command, Event, Expansion, State};
use crate::autoscaler::status::AssignorError;
use crate::autoscaler::words;
use crate::config::settings::StaticCheck;
use crate::kafka::port::{KafkaError, Observation, Reply, TopicId};
use crate::plan::partitioner::Keys;
use crate::plan::{Code, Decision, Knowledge, Parallelism, Planner, Role, Verdict, Warning};

/// An accepted request may stay invisible this long beyond the timeout before it counts as failed: brokers lag.
const VERIFY_GRACE: Duration = Duration::from_secs(5);
/// An accepted request is not sent again before this time: starved brokers were seen to lag one another by 1.4 s.
const VERIFY_PATIENCE: Duration = Duration::from_secs(2);
/// Pace of re-reading while an accepted request is not visible yet, for as long as it is not sent again.
const VERIFY_PACE: Duration = Duration::from_millis(10);

/// Kafka's error codes that only a person can mend: the next request waits for the ceiling of the back-off.
const TOPIC_AUTHORIZATION_FAILED: i16 = 29;
const POLICY_VIOLATION: i16 = 44;
/// The topic has that many partitions already, or more: an earlier request was carried out, and the counts will tell.
const INVALID_PARTITIONS: i16 = 37;

/// The settings that the machine obeys; may change at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `partition.autoscaling.enabled`
    pub enabled: bool,
    /// `partition.autoscaling.timeout.ms`
    pub timeout: Duration,
    /// `partition.autoscaling.poll.interval.ms`
    pub poll_interval: Duration,
    /// `max.new.partitions`
    pub max_new_partitions: u32,
    /// `partition.autoscaling.static.partitioning.check`
    pub static_check: StaticCheck,
}

/// One application: what is known of it, and where it stands.
pub struct Machine {
    rules: Rules,
    planner: Planner,
    counts: Counts,
    state: State,
    /// Input counts at which every internal topic had exactly the expected count.
    baseline: BTreeMap<String, u32>,
    /// What the operator stated last, so that reading the same again does not bring back what was outlived.
    stated: BTreeMap<String, u32>,
    /// Repartition topics that followed an input once, and which topics those were.
    followers: BTreeMap<String, Option<TopicId>>,
    /// The leader before did not see the group take up the new partitions.
    unsettled: bool,
    /// How the keys of topics are spread, as far as they were sampled.
    keys: BTreeMap<String, Keys>,
    /// The latest decision, whatever the state.
    decision: Option<Decision>,
    /// Inputs that were deleted and made again since everything fitted last.
    recreated: BTreeSet<String>,
    /// Tasks the group has, by subtopology, as last seen.
    tasks: BTreeMap<String, u32>,
    assignor_error: AssignorError,
    failures: u64,
    next_observation: Duration,
    /// When the present mismatch was first seen.
    mismatch_since: Option<Duration>,
    /// The latest change of an input was seen by this machine when it came, not found later.
    seen_live: bool,
    /// News came while a count was unknown, so they are not planned for yet; true if an input changed.
    postponed: Option<bool>,
    /// Refusals and unreadable counts that were already told.
    told: BTreeSet<(String, i16)>,
    events: Vec<Event>,
}

impl Machine {
    /// A machine that has seen nothing yet. `baseline` is what the operator stated, by full topic name.
    pub fn new(rules: Rules, planner: Planner, baseline: BTreeMap<String, u32>) -> Self {
        Self {
            rules,
            planner,
            counts: Counts::default(),
            state: State::Starting,
            stated: baseline.clone(),
            baseline,
            followers: BTreeMap::new(),
            unsettled: false,
            keys: BTreeMap::new(),
            decision: None,
            recreated: BTreeSet::new(),
            tasks: BTreeMap::new(),
            assignor_error: AssignorError::None,
            failures: 0,
            next_observation: Duration::ZERO,
            mismatch_since: None,
            seen_live: false,
            postponed: None,
            told: BTreeSet::new(),
            events: Vec::new(),
        }
    }

    /// The same, with what earlier leaders learned: input counts at which everything fitted last, which outlive what the operator
    /// stated before, and repartition topics that followed an input, with their ids.
    pub fn knowing(mut self, baseline: BTreeMap<String, u32>, followers: BTreeMap<String, Option<TopicId>>) -> Self {
        self.baseline.extend(baseline);
        self.followers = followers;
        self
    }

    /// The same, after a leader that did not see the group take up new partitions.
    pub fn unsettled(mut self, unsettled: bool) -> Self {
        self.unsettled = unsettled;
        self
    }

    /// So many failures are counted so far, those of other sidecars among them.
    pub fn recount(&mut self, failures: u64) {
        self.failures = failures;
    }

    /// The planner of the present topology, for another machine.
    pub fn into_planner(self) -> Planner {
        self.planner
    }

    /// Where the application stands.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The latest decision of the planner.
    pub fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// Input counts at which everything fitted last, by full topic name.
    pub fn baseline(&self) -> &BTreeMap<String, u32> {
        &self.baseline
    }

    /// Best known counts.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The planner of the present topology.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// What the planner is told beside topology, baseline and counts.
    pub fn knowledge(&self) -> Knowledge {
        let not_pinned = self.followers().into_keys().collect();
        Knowledge { max_new_partitions: self.rules.max_new_partitions, not_pinned }
    }

    /// Repartition topics that followed an input once, with their ids where they are known. A topic that was made anew may be
    /// pinned, whatever the one before was.
    pub fn followers(&self) -> BTreeMap<String, Option<TopicId>> {
        let ids = self.counts.ids();
        let same = |topic: &String, id: &Option<TopicId>| id.zip(ids.get(topic).copied()).is_none_or(|(then, now)| then == now);
        self.followers.iter().filter(|(topic, id)| same(topic, id)).map(|(topic, id)| (topic.clone(), *id)).collect()
    }

    /// `partition.autoscaling.enabled`, as it is in force.
    pub fn enabled(&self) -> bool {
        self.rules.enabled
    }

    /// How often the application gave up.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// What all sidecars are told.
    pub fn assignor_error(&self) -> AssignorError {
        self.assignor_error
    }

    /// Tasks now and once counts fit. `current` is what the group has where it could be read, else what the baseline gives.
    pub fn parallelism(&self) -> Vec<Parallelism> {
        let decision = self.decision.iter().flat_map(|decision| decision.subtopologies.iter());
        decision.map(|sub| Parallelism { current: self.tasks.get(&sub.id).copied().or(sub.current), ..sub.clone() }).collect()
    }

    /// Takes the events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// What to do next.
    pub fn command(&self, now: Duration) -> Command {
        match &self.state {
            State::Expanding(expansion) if expansion.reread && expansion.next_request <= now => {
                let changes = &expansion.decision.changes;
                Command::Expand { targets: changes.iter().map(|change| (change.topic.clone(), change.to)).collect() }
            }
            State::Expanding(expansion) if expansion.reread => {
                Command::Observe { at: self.next_observation.min(expansion.next_request) }
            }
            _ => Command::Observe { at: self.next_observation },
        }
    }

    /// An answer with the counts of all watched topics.
    pub fn observed(&mut self, now: Duration, seen: &Observation) {
        self.schedule_observation(now);
        let news = self.counts.merge(now, seen);
        self.tell_unreadable();
        if let State::Expanding(expansion) = &mut self.state {
            expansion.reread = true;
        }
        if news.is_empty() && self.decision.is_some() && self.postponed.is_none() {
            self.give_up_when_due(now);
            return;
        }
        let partitions = self.counts.partitions();
        let inputs = self.planner.inputs(&partitions);
        let mut inputs_changed = self.postponed.take().unwrap_or(false);
        let planned = self.planned_growth();
        let mut followed = Vec::new();
        for item in news {
            if matches!(item, News::Recreated { .. } | News::Gone { .. }) {
                self.baseline.remove(item.topic());
                self.recreated.insert(item.topic().to_owned());
            }
            if matches!(item, News::Grew { .. }) && !inputs.contains_key(item.topic()) {
                followed.push(item.topic().to_owned()); // an explicit count does not change
            }
            inputs_changed |= inputs.contains_key(item.topic());
            let is_planned = matches!(&item, News::Grew { topic, to, .. } if planned.get(topic) == Some(to));
            if !is_planned {
                self.events.push(Event::News(item));
            }
        }
        self.learn_followers(followed);
        let unreadable: Vec<&str> = self.counts.unreadable().map(|(topic, _)| topic.as_str()).collect();
        if unreadable.iter().any(|topic| !self.planner.is_ruled_out(topic, &partitions)) {
            self.postponed = Some(inputs_changed); // an unknown count is neither zero nor missing
            self.give_up_when_due(now);
            return;
        }
        if self.decision.is_none() && self.state == State::Starting {
            self.tell_growth_before(&inputs);
        }
        self.seen_live |= inputs_changed;
        self.decide(now, inputs_changed);
    }

    /// Inputs that grew since everything fitted last, while nobody looked.
    fn tell_growth_before(&mut self, inputs: &BTreeMap<String, u32>) {
        for (topic, to) in inputs {
            if let Some(from) = self.baseline.get(topic).filter(|from| *from < to) {
                self.events.push(Event::News(News::Grew { topic: topic.clone(), from: *from, to: *to }));
            }
        }
    }

    /// Counts could not be read at all; deadlines run on.
    pub fn observation_failed(&mut self, now: Duration) {
        self.schedule_observation(now);
        self.give_up_when_due(now);
    }

    /// The outcome of the request that [`Command::Expand`] asked for. `jitter` in `0.0..1.0`.
    pub fn replied(&mut self, now: Duration, outcome: &Result<Reply, KafkaError>, jitter: f64) {
        let State::Expanding(expansion) = &mut self.state else { return };
        let mut refused = Vec::new();
        let mut pause = backoff::pause(expansion.attempts, jitter);
        expansion.accepted = None;
        match outcome {
            Ok(reply) => {
                expansion.request_error = None;
                for (topic, answer) in &reply.topics {
                    match answer {
                        Ok(()) => {
                            expansion.errors.remove(topic);
                        }
                        Err(error) => {
                            if matches!(error.code, TOPIC_AUTHORIZATION_FAILED | POLICY_VIOLATION) {
                                pause = backoff::CEILING;
                            }
                            expansion.errors.insert(topic.clone(), error.clone());
                            if error.code != INVALID_PARTITIONS {
                                refused.push((topic.clone(), error.clone()));
                            }
                        }
                    }
                }
                pause = pause.max(reply.throttle);
                if refused.is_empty() {
                    expansion.accepted = Some(now);
                    pause = pause.max(VERIFY_PATIENCE);
                }
            }
            Err(error) => expansion.request_error = Some(error.message.clone()),
        }
        expansion.attempts = expansion.attempts.saturating_add(1);
        expansion.next_request = now.saturating_add(pause);
        expansion.reread = false;
        self.next_observation = now; // re-read after every reply, whatever it was
        for (topic, error) in refused {
            if self.told.insert((topic.clone(), error.code)) {
                self.events.push(Event::Refused { topic, error });
            }
        }
    }

    /// Task counts of the application's group while it is stable, by subtopology id; empty when nobody runs.
    pub fn group_observed(&mut self, tasks: BTreeMap<String, u32>) {
        self.tasks = tasks;
        if matches!(self.state, State::Settling { .. }) && self.has_settled() {
            self.enter(State::Steady);
        }
    }

    /// How the keys of some topics are spread; what is not told stays as it was.
    pub fn keys_sampled(&mut self, now: Duration, keys: BTreeMap<String, Keys>) {
        self.keys.extend(keys);
        if self.decision.is_some() {
            self.decide(now, false);
        }
    }

    /// Other settings, in force at once.
    pub fn reconfigure(&mut self, now: Duration, rules: Rules) {
        let toggled = rules.enabled != self.rules.enabled;
        self.next_observation = self.next_observation.min(now.saturating_add(rules.poll_interval));
        self.rules = rules;
        if self.decision.is_some() {
            self.decide(now, toggled);
        }
    }

    /// The operator states these counts; what differs from the statement before takes effect at once.
    pub fn state_baseline(&mut self, now: Duration, stated: BTreeMap<String, u32>) {
        let news = stated.iter().filter(|(topic, count)| self.stated.get(*topic) != Some(count));
        let news: Vec<(String, u32)> = news.map(|(topic, count)| (topic.clone(), *count)).collect();
        self.stated = stated;
        if news.is_empty() {
            return;
        }
        self.baseline.extend(news);
        if self.decision.is_some() {
            self.decide(now, true);
        }
    }

    /// Another topology of the same application; `watched` are the topics that matter from now on.
    pub fn change_topology(&mut self, now: Duration, planner: Planner, watched: &BTreeSet<String>) {
        if planner.shape() != self.planner.shape() {
            self.followers.clear(); // its author may have pinned what followed before
        }
        self.planner = planner;
        self.counts.retain(watched);
        self.decision = None;
        self.mismatch_since = None;
        self.next_observation = now;
        if let State::Expanding(expansion) = &mut self.state {
            expansion.reread = false; // the plan of the former topology is not sent any more
        }
    }

    fn has_settled(&self) -> bool {
        let expected = self.decision.iter().flat_map(|decision| &decision.subtopologies);
        expected.filter_map(|sub| sub.expected.map(|n| (&sub.id, n))).all(|(id, n)| self.tasks.get(id) == Some(&n))
    }

    /// What the plan under way wants, by topic. That it comes true is told once for all, as [`Event::Expanded`].
    fn planned_growth(&self) -> BTreeMap<String, u32> {
        let State::Expanding(expansion) = &self.state else { return BTreeMap::new() };
        expansion.decision.changes.iter().map(|change| (change.topic.clone(), change.to)).collect()
    }

    fn schedule_observation(&mut self, now: Duration) {
        let pace = match &self.state {
            State::Expanding(Expansion { accepted: Some(accepted), .. }) if now < accepted.saturating_add(VERIFY_PATIENCE) => {
                VERIFY_PACE.min(self.rules.poll_interval)
            }
            _ => self.rules.poll_interval,
        };
        self.next_observation = now.saturating_add(pace);
    }

    fn tell_unreadable(&mut self) {
        for (topic, error) in self.counts.failed() {
            if self.told.insert((topic.clone(), error.code)) {
                self.events.push(Event::Unreadable { topic: topic.clone(), error: error.clone() });
            }
        }
    }

    /// Plans from what is known now, and moves on. `again`: a change that gives a failed plan another chance.
    fn decide(&mut self, now: Duration, again: bool) {
        if again {
            self.mismatch_since = None;
        }
        let partitions = self.counts.partitions();
        let mut decision = self.planner.decide(&self.baseline, &partitions, &self.knowledge());
        if let Some(stated) = self.decide_as_stated(&decision, &partitions) {
            decision = stated;
        }
        if decision.decision == Verdict::Blocked && !self.recreated.is_empty() {
            let names: Vec<&str> = self.recreated.iter().map(String::as_str).collect();
            decision.message = format!("{} (deleted or recreated meanwhile: {})", decision.message, names.join(", "));
        }
        if decision.decision == Verdict::None {
            // These inputs are the baseline from now on.
            decision.subtopologies.iter_mut().for_each(|sub| sub.current = sub.current.or(sub.expected));
        }
        self.check_keys(&mut decision, &partitions);
        let same = self.decision.as_ref().is_some_and(|old| old == &decision);
        let before = self.decision.replace(decision.clone());
        match decision.decision {
            Verdict::None => self.everything_fits(now, before.as_ref(), &decision),
            _ if !self.rules.enabled && decision.decision != Verdict::Blocked => {
                self.mismatch_since = None; // the time to act has not begun
                self.seen_live = false;
                if !matches!(&self.state, State::Disabled { decision: old } if *old == decision) {
                    self.enter(State::Disabled { decision });
                }
            }
            Verdict::Expand => self.expand(now, decision, again),
            Verdict::Waiting => self.wait(now, decision, again),
            Verdict::Blocked => {
                self.mismatch_since = None;
                self.seen_live = false;
                if !(same && matches!(self.state, State::Blocked { .. })) {
                    self.enter(State::Blocked { decision });
                }
            }
        }
        self.set_assignor_error();
        self.give_up_when_due(now);
    }

    /// Where what is remembered explains nothing, what the operator states for exactly this case is tried, and kept if it does.
    fn decide_as_stated(&mut self, decision: &Decision, partitions: &BTreeMap<String, u32>) -> Option<Decision> {
        let unexplained = |decision: &Decision| matches!(decision.code, Some(Code::BaselineMismatch | Code::NoBaseline));
        let mut baseline = self.baseline.clone();
        baseline.extend(self.stated.iter().map(|(topic, count)| (topic.clone(), *count)));
        if !unexplained(decision) || baseline == self.baseline {
            return None;
        }
        let stated = self.planner.decide(&baseline, partitions, &self.knowledge());
        (!unexplained(&stated)).then(|| {
            self.baseline = baseline;
            stated
        })
    }

    /// KIP-878 is for applications whose keys keep their partition: says so where the keys of a grown topic will not.
    fn check_keys(&self, decision: &mut Decision, partitions: &BTreeMap<String, u32>) {
        if decision.decision != Verdict::Expand || self.rules.static_check == StaticCheck::Off {
            return;
        }
        let moving = moving_keys(&self.planner, &self.baseline, &self.keys, decision, partitions);
        if moving.is_empty() {
            return;
        }
        let message = words::keys_will_move(&moving);
        if self.rules.static_check == StaticCheck::Enforce {
            decision.decision = Verdict::Blocked;
            decision.code = Some(Code::KeysWillMove);
            decision.message = format!("{message}; partition.autoscaling.static.partitioning.check is enforce");
            decision.changes.clear();
        } else {
            decision.warnings.push(Warning { code: "KEYS_WILL_MOVE".to_owned(), message });
        }
    }

    fn everything_fits(&mut self, now: Duration, before: Option<&Decision>, decision: &Decision) {
        if let State::Expanding(expansion) = &self.state {
            let grown = expansion.decision.changes.iter().filter(|change| change.role == Role::Repartition);
            let grown: Vec<String> = grown.map(|change| change.topic.clone()).collect();
            let (decision, took) = (expansion.decision.clone(), now.saturating_sub(expansion.started));
            let done = Event::Expanded { decision, took, seen_live: self.seen_live };
            self.events.push(done);
            self.learn_followers(grown);
        }
        self.baseline = self.planner.inputs(&self.counts.partitions());
        self.mismatch_since = None;
        self.seen_live = false;
        self.recreated.clear();
        self.told.retain(|(topic, _)| self.counts.failed().contains_key(topic));
        let tasks_change = before.is_some_and(|before| expected_tasks(before) != expected_tasks(decision));
        let expanding = matches!(self.state, State::Expanding(_));
        match &self.state {
            State::Steady if !tasks_change => {}
            State::Settling { .. } if !tasks_change => {}
            State::Starting if !self.unsettled => self.enter(State::Steady),
            State::Starting => self.enter(State::Settling { since: now }),
            _ if expanding || tasks_change || self.unsettled_tasks(decision) => self.enter(State::Settling { since: now }),
            _ => self.enter(State::Steady),
        }
    }

    fn learn_followers(&mut self, topics: Vec<String>) {
        let ids = self.counts.ids();
        self.followers.extend(topics.into_iter().map(|topic| {
            let id = ids.get(&topic).copied();
            (topic, id)
        }));
    }

    /// The group is known to have other task counts than it should.
    fn unsettled_tasks(&self, decision: &Decision) -> bool {
        let expected = expected_tasks(decision);
        self.tasks.iter().any(|(id, n)| expected.get(id.as_str()).is_some_and(|expected| expected != n))
    }

    fn expand(&mut self, now: Duration, decision: Decision, again: bool) {
        let started = *self.mismatch_since.get_or_insert(now);
        match &mut self.state {
            State::Expanding(expansion) if expansion.decision == decision => {}
            State::Failed { .. } if !again => {}
            State::Expanding(expansion) => {
                // the plan shrinks while parts of it become visible, or grows because an input grew again
                let more = again || !is_part(&decision, &expansion.decision);
                expansion.errors.retain(|topic, _| decision.changes.iter().any(|change| change.topic == *topic));
                expansion.decision = decision;
                if more {
                    expansion.started = started;
                    expansion.next_request = now;
                    expansion.accepted = None;
                }
            }
            _ => self.enter(State::Expanding(Expansion {
                decision,
                started,
                attempts: 0,
                next_request: now,
                reread: true,
                accepted: None,
                errors: BTreeMap::new(),
                request_error: None,
            })),
        }
    }

    fn wait(&mut self, now: Duration, decision: Decision, again: bool) {
        let since = *self.mismatch_since.get_or_insert(now);
        match &self.state {
            State::Waiting { decision: old, .. } if *old == decision => {}
            State::Failed { .. } if !again => {}
            _ => self.enter(State::Waiting { decision, since }),
        }
    }

    fn give_up_when_due(&mut self, now: Duration) {
        let timeout = self.rules.timeout;
        let (decision, errors) = match &self.state {
            State::Waiting { decision, since } if now >= since.saturating_add(timeout) => (decision, BTreeMap::new()),
            State::Expanding(expansion) if expansion.attempts > 0 => {
                let deadline = expansion.started.saturating_add(timeout);
                let grace = expansion.accepted.map_or(Duration::ZERO, |accepted| accepted.saturating_add(VERIFY_GRACE));
                if now < deadline.max(grace) {
                    return;
                }
                (&expansion.decision, expansion.outstanding())
            }
            _ => return,
        };
        let mut decision = decision.clone();
        decision.code = Some(Code::Timeout);
        decision.message = format!("gave up after {}: {}", humantime::format_duration(timeout), decision.message);
        self.failures = self.failures.saturating_add(1);
        self.events.push(Event::GaveUp);
        self.enter(State::Failed { decision, errors });
    }

    fn set_assignor_error(&mut self) {
        let fits = matches!(self.state, State::Starting | State::Steady | State::Settling { .. });
        let error = if self.rules.enabled || fits { AssignorError::None } else { AssignorError::IncompleteSourceTopicMetadata };
        if error != self.assignor_error {
            self.assignor_error = error;
            self.events.push(Event::Assignor(error));
        }
    }

    fn enter(&mut self, state: State) {
        self.events.push(Event::Entered(state.clone()));
        self.state = state;
    }
}
