//! What the machine reads out of the planner's decisions.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::partitioner::Keys;
use crate::plan::{Decision, Planner, Role};

/// Topics that feed state, grow with this decision or have grown since the baseline, and whose keys lie where Kafka's default
/// partitioner puts them.
pub fn moving_keys(
    planner: &Planner,
    baseline: &BTreeMap<String, u32>,
    keys: &BTreeMap<String, Keys>,
    decision: &Decision,
    partitions: &BTreeMap<String, u32>,
) -> Vec<String> {
    let inputs = planner.inputs(partitions);
    let inputs = inputs.iter().filter(|(topic, n)| baseline.get(*topic).is_some_and(|before| before < *n));
    let repartition = decision.changes.iter().filter(|change| change.role == Role::Repartition);
    let grown: BTreeSet<&String> = inputs.map(|(topic, _)| topic).chain(repartition.map(|change| &change.topic)).collect();
    let stateful = planner.read_by_state(partitions);
    let moving = |topic: &&String| stateful.contains(*topic) && keys.get(*topic) == Some(&Keys::MoveWhenGrown);
    grown.into_iter().filter(moving).cloned().collect()
}

/// Tasks of each subtopology once counts fit.
pub fn expected_tasks(decision: &Decision) -> BTreeMap<&str, u32> {
    decision.subtopologies.iter().filter_map(|sub| Some((sub.id.as_str(), sub.expected?))).collect()
}

/// Every change of `plan` stands in `of` with the same target.
pub fn is_part(plan: &Decision, of: &Decision) -> bool {
    plan.changes.iter().all(|change| of.changes.iter().any(|other| other.topic == change.topic && other.to == change.to))
}
