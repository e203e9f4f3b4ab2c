//! The sentences of log, history and status.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::autoscaler::counts::News;
use crate::autoscaler::machine::Machine;
use crate::autoscaler::state::State;
use crate::autoscaler::status::{AssignorError, NOTHING_OBSERVED, StateName, TopicCounts};
use crate::kafka::group_bytes::Tasks;
use crate::kafka::port::{Group, TopicError};
use crate::plan::Decision;

/// Items that a list shows before it is cut.
const SHOWN: usize = 8;

/// `1 topic`, `2 topics`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Milliseconds with one decimal below ten.
pub fn millis(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

/// A list that stays readable when it is long.
pub fn shortened(list: &[String]) -> String {
    let shown: Vec<&str> = list.iter().take(SHOWN).map(String::as_str).collect();
    match list.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// What one observation changed.
pub fn news(news: &News) -> String {
    match news {
        News::Appeared { topic, partitions } => format!("{topic} exists now, with {}", count(*partitions as usize, "partition")),
        News::Grew { topic, from, to } => format!("{topic} grew from {from} to {to} partitions"),
        News::Recreated { topic, from, to } => {
            format!("{topic} was deleted and recreated: it has {to} partitions and had {from}; its baseline is void")
        }
        News::Gone { topic } => format!("{topic} is gone: no broker has shown it for a while"),
    }
}

/// Nothing on the cluster belongs to the application.
pub fn absent(application_id: &str, example: &str) -> String {
    format!(
        "none of the internal topics of {application_id} exists, such as {example}, and no group {application_id} with members is \
         seen: is application.id right, or has the application not started yet?"
    )
}

/// These topics would grow away from the state of their keys.
pub fn keys_will_move(topics: &[String]) -> String {
    format!(
        "keys of {} lie where Kafka's default partitioner puts them, so growth sends them to other partitions, away from their \
         state; safe is only a static partitioner (KIP-878)",
        topics.join(", ")
    )
}

/// Why the broker did not grow a topic, and what to do.
pub fn refused(topic: &str, error: &TopicError) -> String {
    let what = match error.code {
        29 => "the account has no ALTER right on it; grant ALTER, the request is repeated".to_owned(),
        44 => format!("a policy of the broker refuses: {}", error.message),
        _ => error.message.clone(),
    };
    format!("{topic} was not grown: {what} ({})", error.name)
}

/// The cluster is not the one that was expected.
pub fn other_cluster(id: &str, expected: &str) -> String {
    format!(
        "bootstrap.servers lead to the cluster {id}, but expected.cluster.id is {expected}; correct whichever is wrong, nothing \
         was changed"
    )
}

/// Why a count is not known, and what to do.
pub fn unreadable(topic: &str, error: &TopicError) -> String {
    let what = match error.code {
        29 => "the account has no DESCRIBE right on it; grant DESCRIBE".to_owned(),
        _ => error.message.clone(),
    };
    format!("the count of {topic} cannot be read: {what} ({})", error.name)
}

/// Kafka's name of an assignor error.
pub fn assignor_name(error: AssignorError) -> &'static str {
    match error {
        AssignorError::None => "NONE",
        AssignorError::IncompleteSourceTopicMetadata => "INCOMPLETE_SOURCE_TOPIC_METADATA",
        AssignorError::VersionProbing => "VERSION_PROBING",
        AssignorError::AssignmentError => "ASSIGNMENT_ERROR",
        AssignorError::ShutdownRequested => "SHUTDOWN_REQUESTED",
    }
}

/// A decision in one line: its message and its changes.
pub fn decision(decision: Option<&Decision>) -> String {
    let Some(decision) = decision else { return "nothing is planned yet".to_owned() };
    let changes: Vec<String> =
        decision.changes.iter().map(|change| format!("{} {} -> {}", change.topic, change.from, change.to)).collect();
    if changes.is_empty() { decision.message.clone() } else { format!("{} ({})", decision.message, shortened(&changes)) }
}

/// What a state means right now.
pub fn state(state: &State, machine: &Machine) -> String {
    match state {
        State::Starting => {
            let missing: Vec<String> = machine.counts().failed().iter().map(|(topic, error)| unreadable(topic, error)).collect();
            if missing.is_empty() { NOTHING_OBSERVED.to_owned() } else { shortened(&missing) }
        }
        State::Steady => "every internal topic has the expected count".to_owned(),
        State::Settling { .. } => "counts fit; waiting for the group to take up the new partitions".to_owned(),
        State::Expanding(expansion) => {
            let errors: Vec<String> = expansion.errors.iter().map(|(topic, error)| refused(topic, error)).collect();
            let trouble = errors.into_iter().chain(expansion.request_error.clone()).collect::<Vec<_>>();
            let plan = decision(Some(&expansion.decision));
            if trouble.is_empty() { plan } else { format!("{plan}; {}", shortened(&trouble)) }
        }
        State::Disabled { decision: found } => {
            format!("partition.autoscaling.enabled is false, so nothing is done: {}", decision(Some(found)))
        }
        State::Failed { decision: found, errors } => {
            let errors: Vec<String> = errors.iter().map(|(topic, error)| refused(topic, error)).collect();
            if errors.is_empty() { decision(Some(found)) } else { format!("{}; {}", decision(Some(found)), shortened(&errors)) }
        }
        State::Waiting { decision: found, .. } | State::Blocked { decision: found } => {
            let code =
                found.code.and_then(|code| serde_json::to_value(code).ok()).and_then(|code| code.as_str().map(str::to_owned));
            format!("{}: {}", code.unwrap_or_default(), decision(Some(found)))
        }
    }
}

/// Name of the event that a state was entered.
pub fn state_event(name: StateName) -> &'static str {
    match name {
        StateName::Starting => "starting",
        StateName::Steady => "steady",
        StateName::Expanding => "expanding",
        StateName::Settling => "settling",
        StateName::Waiting => "waiting",
        StateName::Blocked => "blocked",
        StateName::Disabled => "disabled",
        StateName::Failed => "failed",
    }
}

/// What keeps the group from having settled: its state, or partitions that nobody owns.
pub fn group(group: Option<&Group>, tasks: Option<&Tasks>, topics: &BTreeMap<String, TopicCounts>) -> Option<String> {
    let Some(group) = group else { return Some("the group does not exist: the application is not running".to_owned()) };
    if group.state == "Empty" {
        return Some("the group has no members: the application is not running".to_owned());
    }
    let Some(tasks) = tasks else { return Some(format!("the group is in state {}", group.state)) };
    let idle = tasks.assigned.iter().filter_map(|(topic, owned)| {
        let all = topics.get(topic)?.count?;
        let free: Vec<String> =
            (0..all).filter(|n| i32::try_from(*n).is_ok_and(|n| !owned.contains(&n))).map(|n| n.to_string()).collect();
        (!free.is_empty()).then(|| format!("{topic} {}", shortened(&free)))
    });
    let idle: Vec<String> = idle.collect();
    (!idle.is_empty()).then(|| format!("no member owns the partitions {}", shortened(&idle)))
}
