//! What the status shows of the machine of a leader.

use std::collections::BTreeMap;

use tracing::warn;

use super::Reporter;
use crate::autoscaler::machine::Machine;
use crate::autoscaler::state::State;
use crate::autoscaler::status::{StateName, TopicCounts};
use crate::autoscaler::words;
use crate::plan::{Decision, Verdict, Warning};

impl Reporter {
    pub(super) fn fill(&mut self, machine: &Machine) {
        let decision = machine.decision();
        let status = &mut self.status;
        status.baseline = machine.baseline().clone();
        status.partitions = topic_counts(machine, decision);
        status.plan = decision.cloned();
        status.failures = machine.failures();
        status.enabled = machine.enabled();
        if decision.is_some() {
            status.assignor_error = machine.assignor_error().into();
        }
        status.topic_errors = machine.counts().failed().clone();
        match machine.state() {
            State::Expanding(expansion) => status.topic_errors.extend(expansion.errors.clone()),
            State::Failed { decision, errors } => {
                status.topic_errors.extend(errors.clone());
                status.plan = Some(decision.clone());
            }
            _ => {}
        }
        status.state.details = words::state(machine.state(), machine);
        if let (StateName::Settling, Some(says)) = (status.state.name, &self.group_says) {
            status.state.details = format!("{}; {says}", status.state.details);
        }
        status.warnings.clone_from(&self.config_warnings);
        status.warnings.extend(self.ailments.iter().cloned());
        status.warnings.extend(decision.iter().flat_map(|decision| decision.warnings.iter().cloned()));
        let lacks = || machine.planner().lacks_internal_topics(&machine.counts().partitions());
        let absent = if self.group_empty && machine.decision().is_some() { lacks() } else { None };
        if let Some(example) = &absent {
            let message = words::absent(&status.application_id, example);
            if !self.said_absent {
                warn!(application_id = status.application_id, "{message}");
            }
            status.warnings.push(Warning { code: "NO_INTERNAL_TOPICS".to_owned(), message });
        }
        self.said_absent = absent.is_some();
    }
}

/// Every watched topic that exists, with the count it should have as far as the decision tells.
fn topic_counts(machine: &Machine, decision: Option<&Decision>) -> BTreeMap<String, TopicCounts> {
    let counts = machine.counts().partitions();
    let expected = |topic: &String, count: u32| {
        let decision = decision?;
        let change = decision.changes.iter().find(|change| change.topic == *topic).map(|change| change.to);
        let conflict = decision.conflicts.get(topic).map(|conflict| conflict.expected);
        change.or(conflict).or((matches!(decision.decision, Verdict::None | Verdict::Expand)).then_some(count))
    };
    counts.iter().map(|(topic, n)| (topic.clone(), TopicCounts { count: Some(*n), expected: expected(topic, *n) })).collect()
}
