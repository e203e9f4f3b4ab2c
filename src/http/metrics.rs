//! Every metric family in one table, and the typed handles through which the loop sets them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use prometheus::core::Collector;
use prometheus::{
    Counter, CounterVec, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

use super::labels::{ExpansionResult, Label, ObservationResult, ReactionPart, Transition};
use super::process;
use crate::autoscaler::status::{AssignorError, StateName};
use crate::coordinator::{Failure, Skipped};
use crate::kafka::port::ErrorClass;
use crate::plan::{Code, Parallelism, Role, Verdict};

/// One row of the table.
#[derive(Debug)]
pub struct Family {
    /// Full name.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// Meaning and unit.
    pub help: &'static str,
    /// Names of its labels.
    pub labels: &'static [&'static str],
}

/// The table. Each macro line is a family: constant, kind, name, labels, help.
macro_rules! families {
    ($($constant:ident $kind:literal $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(const $constant: Family = Family { name: $name, kind: $kind, help: $help, labels: &[$($label),*] };)*
        /// Every family that is exported, in the order of the documentation.
        pub const FAMILIES: &[&Family] = &[$(&$constant),*];
    };
}

families! {
    FAILURES "gauge" "kafka_streams_stream_client_metrics_num_autoscaling_failures" ["application_id", "client_id"]
        "Expansions given up after partition.autoscaling.timeout.ms (num-autoscaling-failures of KIP-878). Only ever rises; the name has no _total because it is the one that a JMX exporter derives";
    PARALLELISM "gauge" "kafka_streams_stream_subtopology_metrics_subtopology_parallelism" ["application_id", "subtopology_id"]
        "Number of tasks of a subtopology (subtopology-parallelism of KIP-878). Only the leader shows it";
    CURRENT "gauge" "kafka_streams_stream_subtopology_metrics_current_subtopology_parallelism" ["application_id", "subtopology_id"]
        "Number of tasks that a subtopology has now (current-subtopology-parallelism of KIP-878). Only the leader shows it";
    EXPECTED "gauge" "kafka_streams_stream_subtopology_metrics_expected_subtopology_parallelism" ["application_id", "subtopology_id"]
        "Number of tasks that a subtopology has once its inputs have been followed (expected-subtopology-parallelism of KIP-878). Only the leader shows it";
    BUILD_INFO "gauge" "partition_autoscaler_build_info" ["version"]
        "Always 1; the version is in the label";
    LEADER "gauge" "partition_autoscaler_leader" ["application_id"]
        "1 if this sidecar acts for the application, else 0";
    STATE "gauge" "partition_autoscaler_state" ["application_id", "state"]
        "1 for the state that the application is in, 0 for all others. Only the leader shows it";
    TRANSITIONS "counter" "partition_autoscaler_leadership_transitions_total" ["application_id", "to"]
        "Times that this sidecar began to act (leading) and ceased to (following)";
    EPOCH "gauge" "partition_autoscaler_leader_epoch" ["application_id"]
        "Number of the latest intent in the coordinator topic, as far as this sidecar has read it; rises with every new leader and every new model";
    FENCED "counter" "partition_autoscaler_fenced_total" ["application_id", "kind"]
        "Times that acting was put off because a call to the coordinator topic failed: fenced (a newer leader has taken over), not_member (the group has moved on), timed_out, other";
    SKIPPED "counter" "partition_autoscaler_coordinator_records_skipped_total" ["application_id", "reason"]
        "Records of the coordinator topic that were passed over, by reason";
    OBSERVATIONS "counter" "partition_autoscaler_observations_total" ["application_id", "result"]
        "Observations of the topics by result: ok, partial (the count of some topic is not known), error";
    OBSERVATION_DURATION "histogram" "partition_autoscaler_observation_duration_seconds" ["application_id"]
        "Time that an observation took";
    LAST_OBSERVATION "gauge" "partition_autoscaler_last_observation_timestamp_seconds" ["application_id"]
        "When the topics were last observed with success, at least in part, in seconds since 1970. Only the leader shows it";
    GROUP_OBSERVATION "gauge" "partition_autoscaler_group_last_observation_timestamp_seconds" ["application_id"]
        "When the group of the application was last described, in seconds since 1970. Only the leader shows it";
    PLANS "counter" "partition_autoscaler_plans_total" ["application_id", "decision"]
        "Decisions of the planner that differ from the one before";
    BLOCKED "counter" "partition_autoscaler_blocked_total" ["application_id", "code"]
        "Blocked and waiting decisions that differ from the one before, by code";
    EXPANSIONS "counter" "partition_autoscaler_expansions_total" ["application_id", "result"]
        "Expansions by result: done, failed, superseded";
    REQUESTS "counter" "partition_autoscaler_create_partitions_requests_total" ["application_id"]
        "CreatePartitions requests sent";
    CREATED "counter" "partition_autoscaler_partitions_created_total" ["application_id", "role"]
        "Partitions added, by the role of their topic";
    REACTION "histogram" "partition_autoscaler_reaction_seconds" ["application_id"]
        "Time from the first sight of a growth to verified counts, where the leader saw it come and could act";
    REACTION_PART "histogram" "partition_autoscaler_reaction_part_seconds" ["application_id", "part"]
        "Parts of the reaction: plan (from sight to plan), request (CreatePartitions), verify (from the last reply to verified counts)";
    GAP "histogram" "partition_autoscaler_gap_seconds" ["application_id"]
        "Longest time for which counts can have differed: from the last observation without the growth to verified counts, where the leader saw the growth come and could act";
    SETTLING "histogram" "partition_autoscaler_settling_seconds" ["application_id"]
        "Time from verified counts until the group had taken up the new partitions";
    ASSIGNOR_ERROR "gauge" "partition_autoscaler_assignor_error" ["application_id", "code"]
        "1 for the assignor error that the leader tells all sidecars, 0 for all others; NONE if all is well";
    FLAG_MISMATCH "gauge" "partition_autoscaler_flag_mismatch" ["application_id"]
        "1 if partition.autoscaling.enabled of this sidecar is not that of the leader, whose value counts, else 0";
    KAFKA_ERRORS "counter" "partition_autoscaler_kafka_errors_total" ["application_id", "class"]
        "Calls to Kafka that got no usable answer, by kind";
    THROTTLE "counter" "partition_autoscaler_throttle_seconds_total" ["application_id"]
        "Time for which the broker asked to wait (controller mutation quota)";
    RELOAD "gauge" "partition_autoscaler_config_last_reload_success" []
        "1 if the configuration was in order when it was last read, 0 if it was wrong and the one before stays in force";
    RELOADED "gauge" "partition_autoscaler_config_last_reload_success_timestamp_seconds" []
        "When the configuration in force was read, in seconds since 1970";
    RESIDENT "gauge" "process_resident_memory_bytes" []
        "Resident memory of the process";
    CPU "counter" "process_cpu_seconds_total" []
        "User and system processor time of the process";
}

/// Buckets of what should take milliseconds.
const FAST: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 900.0];
/// Buckets of what waits for the clients, whose metadata may be five minutes old.
const SLOW: &[f64] = &[0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0];

/// The metrics of the process.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    failures: IntGaugeVec,
    parallelism: IntGaugeVec,
    current: IntGaugeVec,
    expected: IntGaugeVec,
    leader: IntGaugeVec,
    state: IntGaugeVec,
    observations: IntCounterVec,
    observation_duration: HistogramVec,
    last_observation: IntGaugeVec,
    plans: IntCounterVec,
    blocked: IntCounterVec,
    expansions: IntCounterVec,
    requests: IntCounterVec,
    created: IntCounterVec,
    reaction: HistogramVec,
    reaction_part: HistogramVec,
    gap: HistogramVec,
    settling: HistogramVec,
    assignor_error: IntGaugeVec,
    flag_mismatch: IntGaugeVec,
    kafka_errors: IntCounterVec,
    throttle: CounterVec,
    transitions: IntCounterVec,
    epoch: IntGaugeVec,
    fenced: IntCounterVec,
    skipped: IntCounterVec,
    group_observation: IntGaugeVec,
    reload: IntGauge,
    reloaded: IntGauge,
    resident: IntGauge,
    /// Locked while it is brought up to date, so that two scrapes do not count the same time twice.
    cpu: Mutex<Counter>,
}

impl Metrics {
    /// Registers every family.
    ///
    /// # Errors
    /// If two families of the table have the same name, or a name is not valid: never, as a test makes them all.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let build = gauge(&registry, &BUILD_INFO)?;
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let inner = Inner {
            failures: gauge(&registry, &FAILURES)?,
            parallelism: gauge(&registry, &PARALLELISM)?,
            current: gauge(&registry, &CURRENT)?,
            expected: gauge(&registry, &EXPECTED)?,
            leader: gauge(&registry, &LEADER)?,
            state: gauge(&registry, &STATE)?,
            observations: counter(&registry, &OBSERVATIONS)?,
            observation_duration: histogram(&registry, &OBSERVATION_DURATION, FAST)?,
            last_observation: gauge(&registry, &LAST_OBSERVATION)?,
            plans: counter(&registry, &PLANS)?,
            blocked: counter(&registry, &BLOCKED)?,
            expansions: counter(&registry, &EXPANSIONS)?,
            requests: counter(&registry, &REQUESTS)?,
            created: counter(&registry, &CREATED)?,
            reaction: histogram(&registry, &REACTION, FAST)?,
            reaction_part: histogram(&registry, &REACTION_PART, FAST)?,
            gap: histogram(&registry, &GAP, FAST)?,
            settling: histogram(&registry, &SETTLING, SLOW)?,
            assignor_error: gauge(&registry, &ASSIGNOR_ERROR)?,
            flag_mismatch: gauge(&registry, &FLAG_MISMATCH)?,
            kafka_errors: counter(&registry, &KAFKA_ERRORS)?,
            throttle: register(&registry, CounterVec::new(options(&THROTTLE), THROTTLE.labels)?)?,
            transitions: counter(&registry, &TRANSITIONS)?,
            epoch: gauge(&registry, &EPOCH)?,
            fenced: counter(&registry, &FENCED)?,
            skipped: counter(&registry, &SKIPPED)?,
            group_observation: gauge(&registry, &GROUP_OBSERVATION)?,
            reload: register(&registry, IntGauge::with_opts(options(&RELOAD))?)?,
            reloaded: register(&registry, IntGauge::with_opts(options(&RELOADED))?)?,
            resident: register(&registry, IntGauge::with_opts(options(&RESIDENT))?)?,
            cpu: Mutex::new(register(&registry, Counter::with_opts(options(&CPU))?)?),
            registry,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// The configuration was read: from now on this one is in force, or (`None`) it is wrong and the one before stays.
    pub fn config_read(&self, at: Option<SystemTime>) {
        self.0.reload.set(at.is_some().into());
        if let Some(at) = at {
            self.0.reloaded.set(seconds(at));
        }
    }

    /// The metrics of one application. Its counters exist at 0 from here on.
    pub fn application(&self, application_id: &str, client_id: &str) -> AppMetrics {
        let inner = Arc::clone(&self.0);
        let app = AppMetrics { inner, application_id: application_id.to_owned(), client_id: client_id.to_owned() };
        app.create();
        app
    }

    /// All families in the text format of Prometheus.
    ///
    /// # Errors
    /// If a family cannot be written as text.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        if let Some(bytes) = process::resident_bytes() {
            self.0.resident.set(bytes);
        }
        if let Some(seconds) = process::cpu_seconds() {
            let cpu = self.0.cpu.lock().unwrap_or_else(PoisonError::into_inner);
            cpu.inc_by((seconds - cpu.get()).max(0.0));
        }
        TextEncoder::new().encode_to_string(&self.0.registry.gather())
    }
}

/// Seconds since 1970.
fn seconds(at: SystemTime) -> i64 {
    i64::try_from(at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
}

fn options(family: &Family) -> Opts {
    Opts::new(family.name, family.help)
}

fn register<C: Collector + Clone + 'static>(registry: &Registry, collector: C) -> Result<C, prometheus::Error> {
    registry.register(Box::new(collector.clone()))?;
    Ok(collector)
}

fn gauge(registry: &Registry, family: &Family) -> Result<IntGaugeVec, prometheus::Error> {
    register(registry, IntGaugeVec::new(options(family), family.labels)?)
}

fn counter(registry: &Registry, family: &Family) -> Result<IntCounterVec, prometheus::Error> {
    register(registry, IntCounterVec::new(options(family), family.labels)?)
}

fn histogram(registry: &Registry, family: &Family, buckets: &[f64]) -> Result<HistogramVec, prometheus::Error> {
    let options = HistogramOpts::new(family.name, family.help).buckets(buckets.to_vec());
    register(registry, HistogramVec::new(options, family.labels)?)
}

/// The metrics of one application, as the loop sets them.
pub struct AppMetrics {
    inner: Arc<Inner>,
    application_id: String,
    client_id: String,
}

impl AppMetrics {
    fn create(&self) {
        let id = self.application_id.as_str();
        let with = |vec: &IntCounterVec, texts: &mut dyn Iterator<Item = &'static str>| {
            texts.for_each(|text| drop(vec.with_label_values(&[id, text])));
        };
        let Inner { failures, observations, plans, blocked, expansions, created, kafka_errors, .. } = &*self.inner;
        failures.with_label_values(&[id, &self.client_id]);
        with(observations, &mut texts::<ObservationResult>());
        with(plans, &mut texts::<Verdict>());
        with(blocked, &mut texts::<Code>());
        with(expansions, &mut texts::<ExpansionResult>());
        with(created, &mut texts::<Role>());
        with(kafka_errors, &mut texts::<ErrorClass>());
        with(&self.inner.transitions, &mut texts::<Transition>());
        with(&self.inner.fenced, &mut texts::<Failure>());
        with(&self.inner.skipped, &mut texts::<Skipped>());
        texts::<ReactionPart>().for_each(|part| drop(self.inner.reaction_part.with_label_values(&[id, part])));
        self.inner.requests.with_label_values(&[id]);
        self.inner.throttle.with_label_values(&[id]);
        for histogram in [&self.inner.observation_duration, &self.inner.reaction, &self.inner.gap, &self.inner.settling] {
            histogram.with_label_values(&[id]);
        }
        self.set_leader(false);
        self.set_assignor_error(AssignorError::None);
        self.set_flag_mismatch(false);
    }

    /// An expansion was given up.
    pub fn count_failure(&self) {
        self.inner.failures.with_label_values(&[&self.application_id, &self.client_id]).inc();
    }

    /// Whether this sidecar acts for the application. One that does not shows nothing that only a leader sees.
    pub fn set_leader(&self, leads: bool) {
        self.inner.leader.with_label_values(&[&self.application_id]).set(leads.into());
        if !leads {
            self.set_parallelism(&[]);
            let id = self.application_id.as_str();
            // What never was there need not be removed.
            texts::<StateName>().for_each(|state| drop(self.inner.state.remove_label_values(&[id, state])));
            for gauge in [&self.inner.last_observation, &self.inner.group_observation] {
                drop(gauge.remove_label_values(&[id]));
            }
        }
    }

    /// This sidecar began or ceased to act.
    pub fn count_transition(&self, to: Transition) {
        self.count(&self.inner.transitions, to, 1);
    }

    /// Number of the latest intent that was read.
    pub fn set_epoch(&self, epoch: u64) {
        self.inner.epoch.with_label_values(&[&self.application_id]).set(i64::try_from(epoch).unwrap_or(i64::MAX));
    }

    /// Records passed over since the topic was begun, by reason.
    pub fn set_skipped(&self, skipped: &BTreeMap<Skipped, u64>) {
        self.catch_up(&self.inner.skipped, skipped);
    }

    /// Writes to the coordinator topic that failed since the start, by kind.
    pub fn set_write_failures(&self, failures: &BTreeMap<Failure, u64>) {
        self.catch_up(&self.inner.fenced, failures);
    }

    /// Raises counters to totals that are kept elsewhere. A total that begins anew counts on once it is past the old one.
    fn catch_up<L: Label>(&self, counter: &IntCounterVec, totals: &BTreeMap<L, u64>) {
        for (label, total) in totals {
            let series = counter.with_label_values(&[self.application_id.as_str(), label.text()]);
            series.inc_by(total.saturating_sub(series.get()));
        }
    }

    /// The group of the application was described.
    pub fn group_observed(&self, now: SystemTime) {
        self.inner.group_observation.with_label_values(&[&self.application_id]).set(seconds(now));
    }

    /// Tasks of each subtopology. Subtopologies that are left out lose their series.
    pub fn set_parallelism(&self, subtopologies: &[Parallelism]) {
        let Inner { parallelism, current, expected, .. } = &*self.inner;
        self.set_each(parallelism, subtopologies, |tasks| tasks.current.or(tasks.expected));
        self.set_each(current, subtopologies, |tasks| tasks.current);
        self.set_each(expected, subtopologies, |tasks| tasks.expected);
    }

    fn set_each(&self, gauge: &IntGaugeVec, subtopologies: &[Parallelism], value: impl Fn(&Parallelism) -> Option<u32>) {
        let values = subtopologies.iter().filter_map(|tasks| Some((tasks.id.as_str(), value(tasks)?)));
        let mut kept = BTreeSet::new();
        for (id, tasks) in values {
            gauge.with_label_values(&[self.application_id.as_str(), id]).set(tasks.into());
            kept.insert(id);
        }
        for family in gauge.collect() {
            for series in family.get_metric() {
                let label = |name| series.get_label().iter().find(|label| label.name() == name).map(|label| label.value());
                if let (Some(app), Some(id)) = (label("application_id"), label("subtopology_id"))
                    && app == self.application_id
                    && !kept.contains(id)
                {
                    // The series was there a moment ago; if it is gone already, all the better.
                    let _ = gauge.remove_label_values(&[app, id]);
                }
            }
        }
    }

    /// The state that the application is in.
    pub fn set_state(&self, state: StateName) {
        self.set_one(&self.inner.state, state);
    }

    /// What the leader tells all sidecars.
    pub fn set_assignor_error(&self, error: AssignorError) {
        self.set_one(&self.inner.assignor_error, error);
    }

    /// Whether the feature flag of this sidecar is another than the leader's.
    pub fn set_flag_mismatch(&self, differs: bool) {
        self.inner.flag_mismatch.with_label_values(&[&self.application_id]).set(differs.into());
    }

    fn set_one<L: Label>(&self, gauge: &IntGaugeVec, present: L) {
        for (value, text) in L::ALL {
            gauge.with_label_values(&[self.application_id.as_str(), text]).set((*value == present).into());
        }
    }

    /// An observation that ended at `now` after `duration`.
    pub fn observe(&self, result: ObservationResult, duration: Duration, now: SystemTime) {
        self.count(&self.inner.observations, result, 1);
        self.time(&self.inner.observation_duration, duration);
        if result != ObservationResult::Error {
            self.inner.last_observation.with_label_values(&[&self.application_id]).set(seconds(now));
        }
    }

    /// A decision that differs from the one before.
    pub fn count_plan(&self, verdict: Verdict, code: Option<Code>) {
        self.count(&self.inner.plans, verdict, 1);
        if let Some(code) = code {
            self.count(&self.inner.blocked, code, 1);
        }
    }

    /// A CreatePartitions request was sent.
    pub fn count_request(&self) {
        self.inner.requests.with_label_values(&[&self.application_id]).inc();
    }

    /// Partitions were added to a topic.
    pub fn count_created(&self, role: Role, partitions: u32) {
        self.count(&self.inner.created, role, partitions);
    }

    /// An expansion ended.
    pub fn count_expansion(&self, result: ExpansionResult) {
        self.count(&self.inner.expansions, result, 1);
    }

    /// Time from the first sight of a growth to verified counts.
    pub fn time_reaction(&self, reaction: Duration) {
        self.time(&self.inner.reaction, reaction);
    }

    /// Time of a part of a reaction.
    pub fn time_reaction_part(&self, part: ReactionPart, duration: Duration) {
        self.inner.reaction_part.with_label_values(&[&self.application_id, part.text()]).observe(duration.as_secs_f64());
    }

    /// Longest time for which counts can have differed.
    pub fn time_gap(&self, gap: Duration) {
        self.time(&self.inner.gap, gap);
    }

    /// Time from verified counts until the group had taken up the new partitions.
    pub fn time_settling(&self, settling: Duration) {
        self.time(&self.inner.settling, settling);
    }

    /// A call to Kafka got no usable answer.
    pub fn count_kafka_error(&self, class: ErrorClass) {
        self.count(&self.inner.kafka_errors, class, 1);
    }

    /// The broker asked to wait.
    pub fn count_throttle(&self, wait: Duration) {
        self.inner.throttle.with_label_values(&[&self.application_id]).inc_by(wait.as_secs_f64());
    }

    fn count<L: Label>(&self, counter: &IntCounterVec, label: L, by: u32) {
        counter.with_label_values(&[self.application_id.as_str(), label.text()]).inc_by(by.into());
    }

    fn time(&self, histogram: &HistogramVec, duration: Duration) {
        histogram.with_label_values(&[&self.application_id]).observe(duration.as_secs_f64());
    }
}

fn texts<L: Label>() -> impl Iterator<Item = &'static str> {
    L::ALL.iter().map(|(_, text)| *text)
}

#[cfg(test)]
mod tests;
