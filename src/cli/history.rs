//! `partition-autoscaler history`: what the sidecars of an application remember, read from the coordinator topic.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use super::remembered::{self, Remembered};
use super::{Common, Failure, Output, exit, live, print};
use crate::autoscaler::status::{AssignorError, AssignorErrorStatus, HistoryEntry, StateStatus};
use crate::autoscaler::words;
use crate::coordinator::records::{Intent, Outcome, Verdict};
use crate::coordinator::{Kind, Memory, view};
use crate::http::Label;
use crate::kafka::port::TopicError;
use crate::table;

/// Options of `history`.
#[derive(Debug, Args)]
#[command(after_help = "The coordinator topic is read directly; no sidecar needs to run.")]
pub struct HistoryArgs {}

/// The answer.
#[derive(Debug, Serialize)]
struct History {
    application_id: String,
    topic: String,
    leader: Option<Leader>,
    enabled: Option<bool>,
    state: Option<StateStatus>,
    assignor_error: AssignorErrorStatus,
    baseline: BTreeMap<String, u32>,
    failures: u64,
    plans: Vec<Plan>,
    history: Vec<HistoryEntry>,
    skipped: BTreeMap<&'static str, u64>,
}

/// Who took over last.
#[derive(Debug, Serialize)]
struct Leader {
    member: String,
    epoch: u64,
}

/// The latest plan of a kind.
#[derive(Debug, Serialize)]
struct Plan {
    kind: Kind,
    epoch: u64,
    targets: BTreeMap<String, u32>,
    outcome: Option<Ended>,
}

/// What became of it.
#[derive(Debug, Serialize)]
struct Ended {
    result: Verdict,
    took_ms: u64,
    errors: BTreeMap<String, TopicError>,
}

/// Prints the history of one application.
pub fn run(_args: &HistoryArgs, common: &Common) -> Result<u8, Failure> {
    let settings = live::settings(common)?;
    let history = History::of(settings.application_id.clone(), &remembered::read(&settings)?);
    let text = match common.output {
        Output::Text => history.text(),
        Output::Json => {
            let text = serde_json::to_string_pretty(&history);
            text.map_err(|error| Failure::failed(format!("cannot write the history as JSON: {error}")))? + "\n"
        }
    };
    print(&text)?;
    Ok(exit::OK)
}

impl History {
    fn of(application_id: String, remembered: &Remembered) -> Self {
        let memory = &remembered.memory;
        Self {
            application_id,
            topic: remembered.topic.clone(),
            leader: memory.standing_intent().map(|row| Leader { member: row.member.clone(), epoch: row.epoch }),
            enabled: view::enabled(memory),
            state: view::state(memory),
            assignor_error: view::assignor_error(memory).map_or(AssignorError::None, |(error, _)| error).into(),
            baseline: memory.baseline(&BTreeMap::new()),
            failures: memory.failures(),
            plans: [Kind::Reaction, Kind::Operator].into_iter().filter_map(|kind| plan(memory, kind)).collect(),
            history: view::history(memory),
            skipped: memory.skipped().iter().map(|(reason, count)| (reason.text(), *count)).collect(),
        }
    }

    fn text(&self) -> String {
        let mut lines = Vec::new();
        let mut line = |name: &str, value: String| lines.push(format!("{name:<12} {value}\n"));
        line("Application", self.application_id.clone());
        line("Topic", self.topic.clone());
        line("Leader", self.leader.as_ref().map_or_else(|| "none yet".to_owned(), Leader::text));
        if let Some(state) = &self.state {
            line("State", format!("{:?} since {}: {}", state.name, state.since, state.details));
        }
        if let Some(enabled) = self.enabled {
            line("Autoscaling", if enabled { "enabled" } else { "disabled" }.to_owned());
        }
        if self.assignor_error.name != AssignorError::None {
            line("Error", format!("assignor error {} ({})", self.assignor_error.code, self.assignor_error.name.text()));
        }
        if !self.baseline.is_empty() {
            let counts: Vec<String> = self.baseline.iter().map(|(topic, count)| format!("{topic}={count}")).collect();
            line("Baseline", counts.join(", "));
        }
        for plan in &self.plans {
            line("Plan", plan.text());
            for (topic, error) in plan.outcome.iter().flat_map(|outcome| &outcome.errors) {
                line("Error", words::refused(topic, error));
            }
        }
        if self.failures > 0 {
            line("Failures", self.failures.to_string());
        }
        let skipped: u64 = self.skipped.values().sum();
        if skipped > 0 {
            let reasons: Vec<String> = self.skipped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
            let records = words::count(usize::try_from(skipped).unwrap_or(usize::MAX), "record");
            line("Skipped", format!("{records} that this program cannot read ({})", reasons.join(", ")));
        }
        let mut text: String = lines.concat();
        if self.history.is_empty() {
            text += "\nNothing has happened yet.\n";
        } else {
            let rows = self.history.iter().map(|entry| [entry.at.to_string(), entry.event.clone(), entry.message.clone()]);
            text += "\n";
            text += &table::borderless(["AT", "EVENT", "MESSAGE"], rows);
        }
        text
    }
}

impl Leader {
    fn text(&self) -> String {
        format!("{} (epoch {})", took_over(&self.member), self.epoch)
    }
}

/// Who leads, or led when it was told last.
pub(super) fn took_over(member: &str) -> String {
    let name = if member.is_empty() { "a sidecar without a name" } else { member };
    format!("{name} took over last")
}

impl Plan {
    fn text(&self) -> String {
        let kind = match self.kind {
            Kind::Reaction => "reaction",
            Kind::Operator => "operator",
        };
        let targets: Vec<String> = self.targets.iter().map(|(topic, count)| format!("{topic} to {count}")).collect();
        let ended = self.outcome.as_ref().map_or_else(
            || "not ended".to_owned(),
            |outcome| {
                let result = match outcome.result {
                    Verdict::Expanded => "expanded",
                    Verdict::Failed => "failed",
                    Verdict::Dropped => "dropped",
                };
                format!("{result} after {} ms", outcome.took_ms)
            },
        );
        format!("{kind} of epoch {}, {ended}: {}", self.epoch, words::shortened(&targets))
    }
}

fn plan(memory: &Memory, kind: Kind) -> Option<Plan> {
    let Intent { epoch, targets, .. } = memory.intent(kind)?.clone();
    let outcome = memory.outcome(kind).filter(|outcome| outcome.epoch == epoch).cloned();
    let ended = |Outcome { result, took_ms, errors, .. }| Ended { result, took_ms, errors };
    Some(Plan { kind, epoch, targets, outcome: outcome.map(ended) })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::autoscaler::status::StateName;
    use crate::coordinator::records::{Baseline, Fingerprint, Row, StandingIntent};

    fn remembered(memory: Memory) -> Remembered {
        Remembered { cluster_id: "c".to_owned(), topic: "shop-partition-autoscaler".to_owned(), memory }
    }

    #[test]
    fn an_empty_topic_says_so() {
        let history = History::of("shop".to_owned(), &remembered(Memory::default()));
        expect![[r#"
            Application  shop
            Topic        shop-partition-autoscaler
            Leader       none yet

            Nothing has happened yet.
        "#]]
        .assert_eq(&history.text());
    }

    #[test]
    fn everything_that_is_remembered_is_shown() {
        let mut memory = Memory::default();
        let targets = BTreeMap::from([("shop-k-repartition".to_owned(), 6)]);
        let error = TopicError { code: 29, name: "TOPIC_AUTHORIZATION_FAILED".into(), message: String::new() };
        let errors = BTreeMap::from([("shop-k-repartition".to_owned(), error)]);
        let (kind, epoch, fingerprint) = (Kind::Reaction, 7, Fingerprint(1));
        memory.set(Row::StandingIntent(StandingIntent { epoch, fingerprint, member: "shop-0".into() }));
        memory.set(Row::Intent(Intent { kind, epoch, fingerprint, targets, topic_ids: BTreeMap::new() }));
        memory.set(Row::Outcome(Outcome { kind, epoch, result: Verdict::Failed, errors, took_ms: 900_000 }));
        memory.set(Row::Baseline(Baseline { topic: "orders".into(), partitions: 3, id: None }));
        memory.set(Row::State { name: StateName::Failed, since: 0, details: "given up".into() });
        memory.set(Row::Flag { enabled: true, since: 0 });
        memory.set(Row::AssignorError { error: AssignorError::IncompleteSourceTopicMetadata, message: String::new() });
        memory.count_failure("m", 0);
        memory.add_history(0, "failed", "given up");
        let _ = memory.apply(0, b"garbage", None);
        let history = History::of("shop".to_owned(), &remembered(memory));
        expect![[r#"
            Application  shop
            Topic        shop-partition-autoscaler
            Leader       shop-0 took over last (epoch 7)
            State        Failed since 1970-01-01T00:00:00.000Z: given up
            Autoscaling  enabled
            Error        assignor error 1 (INCOMPLETE_SOURCE_TOPIC_METADATA)
            Baseline     orders=3
            Plan         reaction of epoch 7, failed after 900000 ms: shop-k-repartition to 6
            Error        shop-k-repartition was not grown: the account has no ALTER right on it; grant ALTER, the request is repeated (TOPIC_AUTHORIZATION_FAILED)
            Failures     1
            Skipped      1 record that this program cannot read (not_a_key 1)

            AT                        EVENT   MESSAGE
            1970-01-01T00:00:00.000Z  failed  given up
        "#]]
        .assert_eq(&history.text());
    }
}
