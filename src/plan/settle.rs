//! One world worked out to its end: counts, copartition groups, and what the observed counts say about it.
#![allow(clippy::indexing_slicing, reason = "indices of topics and subtopologies are made by Model::compile")]

use std::collections::{BTreeMap, BTreeSet};

use super::copartition::{Bundles, Counts};
use super::counts::{BASE, Bounds, NOW, Pair, World};
use super::decision::Conflict;
use super::orders::{self, Part};

/// Counts of one world after copartition groups are enforced.
pub(crate) struct Settled {
    /// Counts before the groups are enforced; what is downstream follows these.
    pub computed: Vec<Pair>,
    /// Counts that Kafka Streams asks for.
    pub counts: Vec<Pair>,
    /// Tasks of each subtopology, now.
    pub tasks: Vec<u32>,
    /// Present counts of topics that have several, over all orders that fit.
    pub possible: BTreeMap<usize, BTreeSet<u32>>,
    /// Present numbers of tasks of subtopologies that have several.
    pub possible_tasks: BTreeMap<usize, BTreeSet<u32>>,
    /// Repartition topics that are neither as at the baseline nor as now.
    pub unexplained: BTreeMap<usize, Unexplained>,
    /// False if there are more orders than could be looked at.
    pub complete: bool,
}

/// A repartition topic whose count does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unexplained {
    /// Counts found and expected.
    pub conflict: Conflict,
    /// There is no baseline to explain it.
    pub no_baseline: bool,
}

/// Works out a world. `observed` is the count of each topic, 0 where it does not exist.
pub(crate) fn settle(world: &World<'_>, observed: &[u32], bounds: &Bounds, bundles: &Bundles) -> Settled {
    let fits = |topic: usize, count: Pair| observed[topic] == 0 || count.contains(&observed[topic]);
    let parts = orders::parts(world, bounds, bundles, &fits);
    let computed = bounds.low.clone();
    let mut counts = computed.clone();
    for bundle in 0..bundles.groups.len() {
        bundles.enforce(world, bundle, &mut counts);
    }
    let mut settled = Settled {
        computed,
        counts,
        tasks: Vec::new(),
        possible: BTreeMap::new(),
        possible_tasks: BTreeMap::new(),
        unexplained: BTreeMap::new(),
        complete: parts.iter().all(|part| part.complete),
    };
    let mut kept = Vec::new();
    for part in &parts {
        kept.push(settled.choose(world, observed, bundles, part));
    }
    for (topic, &found) in observed.iter().enumerate() {
        if let Some(unexplained) = judge(world, topic, found, settled.counts[topic]) {
            settled.unexplained.insert(topic, unexplained);
        }
    }
    settled.count_tasks(world, &kept);
    settled
}

/// Counts of the topics that a part decides, for one of its outcomes.
type Outcome = BTreeMap<usize, Pair>;

impl Settled {
    /// Keeps the outcomes of a part that fit what is observed, and adopts the first of them.
    fn choose(&mut self, world: &World<'_>, observed: &[u32], bundles: &Bundles, part: &Part) -> Vec<Outcome> {
        let touched: BTreeSet<usize> = part.topics.iter().filter_map(|&topic| bundles.of_topic[topic]).collect();
        let members: BTreeSet<usize> = touched.iter().flat_map(|&bundle| bundles.members(world.model, bundle)).collect();
        let members = members.iter().filter(|&&topic| world.model.topics[topic].repartition);
        let before: Outcome = members.chain(&part.topics).map(|&topic| (topic, self.computed[topic])).collect();
        let mut outcomes: Vec<(usize, Outcome, &[Pair])> = Vec::new();
        for computed in &part.outcomes {
            let mut outcome = before.clone();
            outcome.extend(part.topics.iter().copied().zip(computed.iter().copied()));
            touched.iter().for_each(|&bundle| bundles.enforce(world, bundle, &mut outcome));
            let strange = |(&topic, &count): (&usize, &Pair)| is_strange(world, topic, observed[topic], count);
            let misfits = outcome.iter().filter(|entry| strange(*entry)).count();
            outcomes.push((misfits, outcome, computed));
        }
        outcomes.sort_by_key(|(misfits, ..)| *misfits); // stable
        let Some((fewest, first, computed)) = outcomes.first() else { return Vec::new() };
        for (&topic, &count) in part.topics.iter().zip(computed.iter()) {
            self.computed[topic] = count;
        }
        first.iter().for_each(|(&topic, &count)| self.counts[topic] = count);
        let kept = if *fewest == 0 { outcomes.iter().filter(|(misfits, ..)| *misfits == 0).count() } else { 1 };
        let kept: Vec<Outcome> = outcomes.into_iter().take(kept).map(|(_, outcome, _)| outcome).collect();
        for &topic in before.keys() {
            let counts: BTreeSet<u32> = kept.iter().map(|outcome| outcome[&topic][NOW]).collect();
            if counts.len() > 1 {
                self.possible.insert(topic, counts);
            }
        }
        kept
    }

    fn count_tasks(&mut self, world: &World<'_>, kept: &[Vec<Outcome>]) {
        let model = world.model;
        let count = |topic: usize, counts: &[Pair]| {
            if model.topics[topic].repartition { counts[topic][NOW] } else { world.inputs[topic][NOW] }
        };
        for subtopology in &model.subtopologies {
            self.tasks.push(subtopology.sources.iter().map(|&topic| count(topic, &self.counts)).max().unwrap_or(0));
        }
        let mut part_of: BTreeMap<usize, usize> = BTreeMap::new();
        for (part, outcomes) in kept.iter().enumerate() {
            part_of.extend(outcomes.first().into_iter().flat_map(BTreeMap::keys).map(|&topic| (topic, part)));
        }
        let varying: BTreeSet<usize> =
            self.possible.keys().flat_map(|&topic| model.topics[topic].readers.iter().copied()).collect();
        for index in varying {
            let sources = &model.subtopologies[index].sources;
            let fixed =
                sources.iter().filter(|topic| !self.possible.contains_key(topic)).map(|&topic| count(topic, &self.counts)).max();
            let mut tasks = BTreeSet::from([fixed.unwrap_or(0)]);
            let parts: BTreeSet<usize> = sources.iter().filter_map(|topic| part_of.get(topic).copied()).collect();
            for part in parts {
                let widest = |outcome: &Outcome| {
                    sources.iter().filter_map(|topic| outcome.get(topic)).map(|count| count[NOW]).max().unwrap_or(0)
                };
                let offers: BTreeSet<u32> = kept[part].iter().map(widest).collect();
                tasks = tasks.iter().flat_map(|&fixed| offers.iter().map(move |&offer| fixed.max(offer))).collect();
            }
            if tasks.len() > 1 {
                self.possible_tasks.insert(index, tasks);
            }
        }
    }
}

impl Counts for Outcome {
    fn get(&self, topic: usize) -> Pair {
        self.get(&topic).copied().unwrap_or_default()
    }

    fn set(&mut self, topic: usize, count: Pair) {
        self.insert(topic, count);
    }
}

/// True if a count speaks against an order of the visit.
fn is_strange(world: &World<'_>, topic: usize, found: u32, count: Pair) -> bool {
    let without_baseline_too_wide = count[BASE] == 0 && count[NOW] > 0 && found > count[NOW] && world.pins[topic] == 0;
    judge(world, topic, found, count).is_some() || without_baseline_too_wide
}

/// What is wrong with the observed count of a topic: it must be the expected one for the present or for the baseline inputs.
///
/// Without a baseline only a topic that is too narrow is in question, for it may be a fixed count; one that is too wide would have to
/// shrink whatever the past was. A count of 0 (inputs of a group differ) expects nothing.
fn judge(world: &World<'_>, topic: usize, found: u32, count: Pair) -> Option<Unexplained> {
    if !world.model.topics[topic].repartition || found == 0 || count.contains(&found) {
        return None;
    }
    let no_baseline = count[BASE] == 0 && world.pins[topic] == 0;
    if no_baseline && found > count[NOW] {
        return None;
    }
    let expected = if no_baseline { count[NOW] } else { count[BASE] };
    Some(Unexplained { conflict: Conflict { found, expected }, no_baseline })
}
