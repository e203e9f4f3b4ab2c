//! What a leader writes down.

use crate::autoscaler::machine::Machine;
use crate::autoscaler::state::State;
use crate::autoscaler::status::HistoryEntry;
use crate::autoscaler::words;
use crate::coordinator::Memory;
use crate::coordinator::records::{Baseline, Fingerprint, Intent, Key, Kind, Outcome, Row, Verdict};
use crate::plan::{Decision, Planner};

/// What happened while a sidecar led and is not remembered yet: it outlives a write that costs the leadership.
#[derive(Default)]
pub struct Unwritten {
    /// For the history.
    pub history: Vec<HistoryEntry>,
    /// Oldest first.
    pub plans: Vec<EndedPlan>,
}

/// A plan that came to its end.
pub struct EndedPlan {
    /// See [`mismatch`].
    pub mismatch: String,
    /// What was wanted.
    pub intent: Intent,
    /// What became of it.
    pub outcome: Outcome,
}

impl Unwritten {
    /// Drops all but the latest: the topic may refuse everything for a long time.
    pub fn trim(&mut self) {
        const KEPT: usize = 100;
        self.history.drain(..self.history.len().saturating_sub(KEPT));
        self.plans.drain(..self.plans.len().saturating_sub(KEPT));
    }

    /// Whether a plan for this mismatch was given up.
    pub fn failed(&self, mismatch: &str) -> bool {
        self.plans.iter().any(|plan| plan.outcome.result == Verdict::Failed && plan.mismatch == mismatch)
    }

    /// Puts it down.
    pub fn put_into(&self, memory: &mut Memory, at: u64) {
        for entry in &self.history {
            memory.add_history(entry.at.milliseconds(), &entry.event, &entry.message);
        }
        for EndedPlan { mismatch, intent, outcome } in &self.plans {
            if outcome.result == Verdict::Failed {
                memory.count_failure(mismatch, at);
            }
            // Another leader may have come between.
            if memory.outcome(Kind::Reaction).is_none_or(|known| known.epoch <= outcome.epoch) {
                memory.set(Row::Intent(intent.clone()));
                memory.set(Row::Outcome(outcome.clone()));
            }
        }
    }
}

/// Identity of a mismatch: what of which topic would have to grow to what, or does not fit.
pub fn mismatch(decision: &Decision, machine: &Machine) -> String {
    let ids = machine.counts().ids();
    let id = |topic: &String| ids.get(topic).map(ToString::to_string).unwrap_or_default();
    let changes = decision.changes.iter().map(|change| format!("{}@{}={}", change.topic, id(&change.topic), change.to));
    let conflicts = decision.conflicts.iter().map(|(topic, conflict)| format!("{topic}@{}!{}", id(topic), conflict.expected));
    let parts: Vec<String> = changes.chain(conflicts).collect();
    Fingerprint::of(parts.iter().map(String::as_str)).to_string()
}

/// The topology that a baseline is learned with.
pub fn topology(planner: &Planner) -> Fingerprint {
    Fingerprint::of([planner.shape().as_str()])
}

/// Puts down where the machine stands. One that has decided nothing knows nothing of the application yet.
pub fn stand(memory: &mut Memory, at: u64, machine: &Machine) {
    let enabled = machine.enabled();
    if !matches!(memory.get(&Key::Flag), Some(Row::Flag { enabled: known, .. }) if *known == enabled) {
        memory.set(Row::Flag { enabled, since: at });
    }
    if machine.decision().is_some() {
        stand_decided(memory, at, machine);
    }
}

fn stand_decided(memory: &mut Memory, at: u64, machine: &Machine) {
    let ids = machine.counts().ids();
    let learned_here = Row::Topology(topology(machine.planner()));
    if memory.get(&Key::Topology) != Some(&learned_here) {
        memory.forget_topology();
        memory.set(learned_here);
    }
    let inputs = machine.baseline().iter();
    memory.set_baseline(inputs.map(|(topic, partitions)| Baseline {
        topic: topic.clone(),
        partitions: *partitions,
        id: ids.get(topic).copied(),
    }));
    for (topic, partitions) in machine.counts().partitions() {
        if topic.ends_with("-repartition") {
            memory.set(Row::RepartitionCount { id: ids.get(&topic).copied(), topic, partitions });
        }
    }
    memory.set_followers(machine.followers());
    let (name, details) = (machine.state().name(), words::state(machine.state(), machine));
    let known = memory.get(&Key::State);
    if !matches!(known, Some(Row::State { name: old, details: said, .. }) if *old == name && *said == details) {
        memory.set(Row::State { name, since: at, details });
    }
    memory.set(Row::AssignorError { error: machine.assignor_error(), message: words::decision(machine.decision()) });
}

/// Once everything fits, or the flag is off, what failed before is over.
pub fn close_failures(memory: &mut Memory, machine: &Machine) {
    if matches!(machine.state(), State::Steady | State::Settling { .. } | State::Disabled { .. }) {
        memory.close_failures();
    }
}
