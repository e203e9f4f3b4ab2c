//! Turns what a loop does into log lines, metrics and status, in one place each.

mod fill;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use tracing::{error, info, warn};

use super::labels::{ExpansionResult, ObservationResult, ReactionPart, Transition};
use super::metrics::AppMetrics;
use super::shared::{Latch, Shared};
use crate::autoscaler::counts::News;
use crate::autoscaler::driver::{Ended, Report};
use crate::autoscaler::machine::Machine;
use crate::autoscaler::state::{Event, State};
use crate::autoscaler::status::{
    ApplicationStatus, AssignorError, ExpansionStatus, HistoryEntry, NOTHING_OBSERVED, StateName, StateStatus, Time,
};
use crate::autoscaler::words;
use crate::coordinator::{Failure, Memory, view};
use crate::kafka::group_bytes::Tasks;
use crate::kafka::port::{Group, KafkaError, Observation, Reply, TopicState};
use crate::plan::{Decision, Planner, Question, Warning};

/// Events that the status keeps.
const HISTORY: usize = 50;

/// The reporter of one application.
pub struct Reporter {
    metrics: AppMetrics,
    /// What this sidecar is called beside others.
    member: String,
    /// Whom it follows.
    leader: Option<String>,
    shared: Shared,
    status: ApplicationStatus,
    /// Warnings of the configuration, which stay.
    config_warnings: Vec<Warning>,
    /// What is wrong with leader election.
    ailments: Vec<Warning>,
    topology_latch: Option<Latch>,
    observation_latch: Option<Latch>,
    /// What happened and is not in the memory of all sidecars yet.
    unwritten: Vec<HistoryEntry>,
    changed: bool,
    /// The latest failure of a call, so that a lasting one is logged once.
    failing: Option<KafkaError>,
    group_failing: bool,
    /// The application has no member in its group.
    group_empty: bool,
    /// That nothing of the application is there was said.
    said_absent: bool,
    /// The feature flag is another than the leader's.
    flag_differs: bool,
    /// The latest decision that was counted.
    planned: Option<Decision>,
    /// What the group lacks, for the details of `Settling`.
    group_says: Option<String>,
    /// When counts were last read, and the time before that.
    last_observation: Duration,
    observation_before: Duration,
    reaction: Reaction,
}

/// Moments of the expansion under way.
#[derive(Default)]
struct Reaction {
    /// The latest answer before the growth was seen.
    before: Duration,
    seen: Duration,
    first_request: Option<Duration>,
    requests: Duration,
    last_reply: Option<Duration>,
}

impl Reporter {
    /// Nothing has happened yet; makes the sidecar unready until the first full observation.
    pub fn new(
        shared: &Shared,
        metrics: AppMetrics,
        member: &str,
        application_id: &str,
        enabled: bool,
        source: &str,
        warnings: &[String],
    ) -> Self {
        let mut status = ApplicationStatus::starting(application_id, enabled, SystemTime::now());
        status.topology_source = Some(source.to_owned());
        let warning = |message: &String| Warning { code: "CONFIGURATION".to_owned(), message: message.clone() };
        let config_warnings: Vec<Warning> = warnings.iter().map(warning).collect();
        status.warnings.clone_from(&config_warnings);
        shared.publish(status.clone());
        Self {
            metrics,
            member: member.to_owned(),
            leader: None,
            shared: shared.clone(),
            status,
            config_warnings,
            ailments: Vec::new(),
            topology_latch: Some(shared.latch(format!("{application_id}: the topology"))),
            observation_latch: Some(shared.latch(format!("{application_id}: the first full observation"))),
            unwritten: Vec::new(),
            changed: false,
            failing: None,
            group_failing: false,
            group_empty: false,
            said_absent: false,
            flag_differs: false,
            planned: None,
            group_says: None,
            last_observation: Duration::ZERO,
            observation_before: Duration::ZERO,
            reaction: Reaction::default(),
        }
    }

    fn app(&self) -> &str {
        &self.status.application_id
    }

    fn remember(&mut self, event: &str, message: impl Into<String>) {
        let entry = HistoryEntry { at: Time(SystemTime::now()), event: event.to_owned(), message: message.into() };
        self.unwritten.push(entry.clone());
        if self.status.history.len() >= HISTORY {
            self.status.history.remove(0);
        }
        self.status.history.push(entry);
        self.changed = true;
    }

    fn flag_mismatch(&mut self, warning: Option<&Warning>) {
        self.metrics.set_flag_mismatch(warning.is_some());
        match (std::mem::replace(&mut self.flag_differs, warning.is_some()), warning) {
            (false, Some(warning)) => warn!(application_id = self.app(), "{}", warning.message),
            (true, None) => info!(application_id = self.app(), "partition.autoscaling.enabled is as at the leader again"),
            _ => {}
        }
    }

    fn failed(&mut self, error: &KafkaError) {
        self.metrics.count_kafka_error(error.class);
        if self.failing.as_ref() != Some(error) {
            warn!(application_id = self.app(), class = ?error.class, "{}", error.message);
            self.status.last_error = Some(error.message.clone());
            if let Some(latch) = &self.observation_latch {
                latch.explain(Some(&error.message));
            }
            self.failing = Some(error.clone());
            self.changed = true;
        }
    }

    fn recovered(&mut self) {
        if self.failing.take().is_some() {
            info!(application_id = self.app(), "the cluster answers again");
            self.status.last_error = None;
            if let Some(latch) = &self.observation_latch {
                latch.explain(None);
            }
            self.changed = true;
        }
    }

    fn event(&mut self, now: Duration, event: Event, machine: &Machine) {
        match event {
            Event::News(news) => {
                let text = words::news(&news);
                info!(application_id = self.app(), topic = news.topic(), "{text}");
                self.remember(news_name(&news), text);
            }
            Event::Entered(state) => self.entered(now, &state, machine),
            Event::Expanded { decision, took, seen_live } => self.expanded(now, &decision, took, seen_live),
            Event::Refused { topic, error } => {
                let text = words::refused(&topic, &error);
                error!(application_id = self.app(), topic, code = error.name, "{text}");
                self.remember("refused", text);
            }
            Event::Unreadable { topic, error } => {
                let text = words::unreadable(&topic, &error);
                warn!(application_id = self.app(), topic, code = error.name, "{text}");
                self.remember("unreadable", text);
            }
            Event::Assignor(AssignorError::None) => {
                info!(application_id = self.app(), "the assignor error is over: counts fit, or the flag is on");
                self.remember("assignor-error", "NONE (0)");
            }
            Event::Assignor(error) => {
                let shown = crate::autoscaler::status::AssignorErrorStatus::from(error);
                let text = format!("{} ({})", words::assignor_name(error), shown.code);
                error!(
                    application_id = self.app(),
                    code = shown.code,
                    "{text}: {}; the application stops at its next rebalance or metadata refresh, unless \
                     partition.autoscaling.enabled is set to true before, or the topics are grown by hand",
                    words::decision(machine.decision())
                );
                self.remember("assignor-error", text);
            }
            Event::GaveUp => {
                self.metrics.count_failure();
                self.metrics.count_expansion(ExpansionResult::Failed);
            }
        }
    }

    fn entered(&mut self, now: Duration, state: &State, machine: &Machine) {
        let (before, name) = (self.status.state.name, state.name());
        let details = words::state(state, machine);
        match state {
            State::Failed { .. } => error!(application_id = self.app(), state = ?name, "{details}"),
            State::Blocked { .. } | State::Waiting { .. } | State::Disabled { .. } => {
                warn!(application_id = self.app(), state = ?name, "{details}");
            }
            _ => info!(application_id = self.app(), state = ?name, "{details}"),
        }
        if let Some(decision) = state.decision().filter(|_| name != StateName::Failed) {
            for (topic, conflict) in &decision.conflicts {
                warn!(
                    application_id = self.app(),
                    topic,
                    expected = conflict.expected,
                    found = conflict.found,
                    "count does not fit"
                );
            }
            for question in &decision.questions {
                warn!(application_id = self.app(), setting = question.setting, "{}", question.message);
            }
        }
        if before == StateName::Expanding && !matches!(name, StateName::Settling | StateName::Steady | StateName::Failed) {
            self.metrics.count_expansion(ExpansionResult::Superseded);
        }
        if name == StateName::Settling && before != StateName::Expanding {
            self.reaction = Reaction::default(); // nothing had to be requested
        }
        if let State::Expanding(expansion) = state {
            self.reaction = Reaction { before: self.observation_before, seen: expansion.started, ..Reaction::default() };
        }
        if before == StateName::Settling
            && name == StateName::Steady
            && let Some(last_reply) = self.reaction.last_reply
        {
            let settling = now.saturating_sub(last_reply);
            self.metrics.time_settling(settling);
            if let Some(last) = &mut self.status.last_expansion {
                last.settled_ms = u64::try_from(settling.as_millis()).ok();
            }
        }
        self.metrics.set_state(name);
        self.status.state = StateStatus { name, since: Time(SystemTime::now()), details: details.clone() };
        self.remember(words::state_event(name), details);
    }

    fn expanded(&mut self, now: Duration, decision: &Decision, took: Duration, seen_live: bool) {
        let Reaction { before, seen, first_request, requests, last_reply } = self.reaction;
        let plan = first_request.unwrap_or(seen).saturating_sub(seen);
        let verify = now.saturating_sub(last_reply.unwrap_or(now));
        for (part, time) in [(ReactionPart::Plan, plan), (ReactionPart::Request, requests), (ReactionPart::Verify, verify)] {
            self.metrics.time_reaction_part(part, time);
        }
        if seen_live {
            self.metrics.time_reaction(took);
            self.metrics.time_gap(now.saturating_sub(before));
        }
        self.metrics.count_expansion(ExpansionResult::Done);
        for change in &decision.changes {
            self.metrics.count_created(change.role, change.to.saturating_sub(change.from));
        }
        self.status.last_expansion = Some(ExpansionStatus {
            seen: Time(SystemTime::now().checked_sub(took).unwrap_or(SystemTime::UNIX_EPOCH)),
            reaction_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            topics: decision.changes.iter().map(|change| (change.topic.clone(), change.to)).collect(),
            settled_ms: None,
        });
        let text = format!(
            "{} grown and verified {} ms after {} (plan {}, request {}, verification {} ms)",
            words::count(decision.changes.len(), "topic"),
            words::millis(took),
            if seen_live { "the growth was first seen" } else { "this sidecar could act" },
            words::millis(plan),
            words::millis(requests),
            words::millis(verify)
        );
        info!(application_id = self.app(), reaction_ms = words::millis(took), "{text}");
        self.remember("expanded", text);
    }
}

/// Code of the warnings about leader election.
const COORDINATION: &str = "COORDINATION";

fn news_name(news: &News) -> &'static str {
    match news {
        News::Appeared { .. } => "topic-appeared",
        News::Grew { .. } => "topic-grew",
        News::Recreated { .. } => "topic-recreated",
        News::Gone { .. } => "topic-gone",
    }
}

impl Report for Reporter {
    fn cluster(&mut self, id: String) {
        info!(application_id = self.app(), cluster_id = id, "connected to the cluster {id}");
        self.status.cluster_id = Some(id);
        NOTHING_OBSERVED.clone_into(&mut self.status.state.details);
        self.recovered();
        self.shared.publish(self.status.clone());
    }

    fn unreachable(&mut self, error: &KafkaError) {
        self.failed(error);
        self.status.state.details = error.message.clone();
        self.shared.publish(self.status.clone());
    }

    fn topology(&mut self, planner: &Planner) {
        let watched = planner.watched();
        info!(
            application_id = self.app(),
            topics = watched.names.len(),
            patterns = watched.patterns.len(),
            "the topology is known: {} to watch",
            words::count(watched.names.len(), "name")
        );
        self.topology_latch = None;
        self.changed = true;
    }

    fn topology_failed(&mut self, reason: &str) {
        warn!(application_id = self.app(), "the topology cannot be read, trying again: {reason}");
        if let Some(latch) = &self.topology_latch {
            latch.explain(Some(reason));
            self.status.state.details = format!("the topology is not known: {reason}");
            self.shared.publish(self.status.clone());
        }
    }

    fn questions(&mut self, questions: Vec<Question>) {
        for question in &questions {
            warn!(
                application_id = self.app(),
                setting = question.setting,
                "to be answered before an input grows: {}",
                question.message
            );
        }
        self.changed |= self.status.questions != questions;
        self.status.questions = questions;
    }

    fn observed(&mut self, now: Duration, took: Duration, answer: &Result<Observation, KafkaError>) {
        let result = match answer {
            Err(_) => ObservationResult::Error,
            Ok(seen) if seen.values().any(|state| matches!(state, TopicState::Failed(_))) => ObservationResult::Partial,
            Ok(_) => ObservationResult::Ok,
        };
        self.metrics.observe(result, took, SystemTime::now());
        match answer {
            Err(error) => self.failed(error),
            Ok(_) => {
                self.recovered();
                self.observation_before = std::mem::replace(&mut self.last_observation, now);
            }
        }
    }

    fn requesting(&mut self, now: Duration, targets: &BTreeMap<String, u32>) {
        self.metrics.count_request();
        self.reaction.first_request.get_or_insert(now);
        let list: Vec<String> = targets.iter().map(|(topic, to)| format!("{topic} to {to}")).collect();
        info!(application_id = self.app(), topics = targets.len(), "one CreatePartitions request: {}", words::shortened(&list));
    }

    fn replied(&mut self, now: Duration, took: Duration, outcome: &Result<Reply, KafkaError>) {
        self.reaction.requests = self.reaction.requests.saturating_add(took);
        self.reaction.last_reply = Some(now);
        match outcome {
            Err(error) => self.failed(error),
            Ok(reply) => {
                let refused = reply.topics.values().filter(|answer| answer.is_err()).count();
                info!(
                    application_id = self.app(),
                    "answered after {} ms: {} accepted, {refused} refused",
                    words::millis(took),
                    reply.topics.len().saturating_sub(refused)
                );
                if !reply.throttle.is_zero() {
                    self.metrics.count_throttle(reply.throttle);
                    warn!(
                        application_id = self.app(),
                        "the broker asks to wait {} ms (controller mutation quota)",
                        reply.throttle.as_millis()
                    );
                }
            }
        }
        self.changed = true;
    }

    fn group(&mut self, group: Result<Option<&Group>, &KafkaError>, tasks: Option<&Tasks>) {
        let says = match group {
            Err(error) => {
                if !std::mem::replace(&mut self.group_failing, true) {
                    warn!(
                        application_id = self.app(),
                        "the group cannot be described, so tasks are not known: {}", error.message
                    );
                }
                self.metrics.count_kafka_error(error.class);
                Some(format!("the group cannot be described: {}", error.message))
            }
            Ok(group) => {
                self.group_failing = false;
                self.group_empty = group.is_none_or(|group| group.members.is_empty());
                self.metrics.group_observed(SystemTime::now());
                words::group(group, tasks, &self.status.partitions)
            }
        };
        self.changed |= self.group_says != says;
        self.group_says = says;
    }

    fn list_failed(&mut self, error: &KafkaError) {
        self.failed(error);
    }

    fn step(&mut self, now: Duration, events: Vec<Event>, machine: &Machine) {
        if let Some(decision) = machine.decision().filter(|decision| self.planned.as_ref() != Some(*decision)) {
            self.metrics.count_plan(decision.decision, decision.code);
            self.planned = Some(decision.clone());
        }
        self.changed |= self.status.enabled != machine.enabled(); // a flag that makes no difference yet is no event
        if events.is_empty() && !self.changed {
            return;
        }
        for event in events {
            self.event(now, event, machine);
        }
        if machine.decision().is_some() {
            self.observation_latch = None;
        }
        self.metrics.set_parallelism(&machine.parallelism());
        if machine.decision().is_some() {
            self.metrics.set_assignor_error(machine.assignor_error());
        }
        self.fill(machine);
        self.shared.publish(self.status.clone());
        self.changed = false;
    }

    fn leading(&mut self) {
        if !std::mem::replace(&mut self.status.leader, true) {
            let text = format!("this sidecar leads ({})", self.member);
            info!(application_id = self.app(), "{text}");
            self.metrics.count_transition(Transition::Leading);
            self.metrics.set_state(StateName::Starting);
            let details = NOTHING_OBSERVED.to_owned();
            self.status.state = StateStatus { name: StateName::Starting, since: Time(SystemTime::now()), details };
            self.reaction = Reaction::default();
            self.remember("leading", text);
        }
        self.metrics.set_leader(true);
        self.flag_mismatch(None);
        self.changed = true;
    }

    fn following(&mut self, memory: &Memory, enabled: bool) {
        if std::mem::replace(&mut self.status.leader, false) {
            info!(application_id = self.app(), "this sidecar does not lead any more");
            self.metrics.count_transition(Transition::Following);
            // What it found out while it led may have changed since.
            self.status.last_error = None;
            self.status.last_expansion = None;
            self.status.questions.clear();
            self.failing = None;
            self.group_says = None;
        }
        self.metrics.set_leader(false);
        self.unwritten.clear();
        let leader = memory.standing_intent().map(|standing| standing.member.clone());
        if let Some(name) = leader.as_ref().filter(|name| self.leader.as_ref() != Some(*name) && **name != self.member) {
            info!(application_id = self.app(), "following {name}, which leads");
        }
        self.leader = leader;
        if memory.get(&crate::coordinator::Key::State).is_some() {
            self.observation_latch = None; // a leader has observed
        }
        self.status.enabled = enabled;
        self.status.plan = None;
        self.status.partitions.clear();
        self.status.topic_errors.clear();
        if let Some((error, message)) = view::assignor_error(memory) {
            if self.status.assignor_error.name != error {
                match error {
                    AssignorError::None => info!(application_id = self.app(), "the leader says that the assignor error is over"),
                    error => error!(application_id = self.app(), "the leader says {}: {message}", words::assignor_name(error)),
                }
            }
            self.metrics.set_assignor_error(error);
        }
        view::fill(&mut self.status, memory);
        let older = self.status.history.len().saturating_sub(HISTORY);
        self.status.history.drain(..older);
        self.status.warnings.clone_from(&self.config_warnings);
        self.status.warnings.extend(self.ailments.iter().cloned());
        let leaders = view::enabled(memory).filter(|leaders| *leaders != enabled);
        let mismatch = leaders.map(|leaders| {
            let message =
                format!("partition.autoscaling.enabled is {enabled} here and {leaders} at the leader, whose value counts");
            Warning { code: "FLAG_MISMATCH".to_owned(), message }
        });
        self.flag_mismatch(mismatch.as_ref());
        self.status.warnings.extend(mismatch);
        self.shared.publish(self.status.clone());
    }

    fn contact(&mut self, answer: Result<(), KafkaError>) {
        match answer {
            Err(error) => self.failed(&error),
            Ok(()) => self.recovered(),
        }
        if std::mem::take(&mut self.changed) {
            self.shared.publish(self.status.clone());
        }
    }

    fn coordination(&mut self, memory: &Memory, failures: &BTreeMap<Failure, u64>) {
        self.metrics.set_epoch(memory.last_epoch());
        self.metrics.set_skipped(memory.skipped());
        self.metrics.set_write_failures(failures);
    }

    fn trouble(&mut self, message: &str) {
        warn!(application_id = self.app(), "{message}");
        self.remember("trouble", message);
    }

    fn ailing(&mut self, ailments: Vec<String>) {
        if ailments.iter().eq(self.ailments.iter().map(|known| &known.message)) {
            return;
        }
        let warning = |message| Warning { code: COORDINATION.to_owned(), message };
        self.status.warnings.retain(|warning| warning.code != COORDINATION);
        self.ailments = ailments.into_iter().map(warning).collect();
        self.status.warnings.extend(self.ailments.iter().cloned());
        self.shared.publish(self.status.clone());
    }

    fn take_history(&mut self) -> Vec<HistoryEntry> {
        std::mem::take(&mut self.unwritten)
    }

    fn ended(&mut self, ended: &Ended) {
        match ended {
            Ended::Stopped => info!(application_id = self.app(), "stopped"),
            Ended::AssignorError => {
                error!(application_id = self.app(), "ends because of the assignor error (partition.autoscaling.on.error=exit)")
            }
            Ended::Refused(_) => {} // the process ends with this error
        }
    }
}
