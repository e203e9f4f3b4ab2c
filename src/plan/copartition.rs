//! Copartition groups: which topics must have equal counts, and what Kafka does about it (`CopartitionedTopicsEnforcer`).
#![allow(clippy::indexing_slicing, reason = "indices of topics and groups are made by Model::compile")]

use std::collections::BTreeSet;

use super::counts::{BASE, NOW, Pair, World};
use super::decision::Code;
use super::model::Model;

/// Groups that share topics, each bundle in order of enforcement. Groups are enforced one by one and never merged.
pub(crate) struct Bundles {
    /// Groups of each bundle.
    pub groups: Vec<Vec<usize>>,
    /// Bundle of each topic.
    pub of_topic: Vec<Option<usize>>,
}

impl Bundles {
    /// Bundles the groups of a model.
    pub fn of(model: &Model) -> Self {
        let mut sets = DisjointSets::new(model.topics.len());
        for group in &model.groups {
            for pair in group.windows(2) {
                sets.join(pair[0], pair[1]);
            }
        }
        let mut bundle_of_root = vec![None; model.topics.len()];
        let mut bundles = Self { groups: Vec::new(), of_topic: vec![None; model.topics.len()] };
        for (index, group) in model.groups.iter().enumerate() {
            let Some(&first) = group.first() else { continue };
            let bundle = *bundle_of_root[sets.root(first)].get_or_insert(bundles.groups.len());
            if bundle == bundles.groups.len() {
                bundles.groups.push(Vec::new());
            }
            bundles.groups[bundle].push(index);
            for &topic in group {
                bundles.of_topic[topic] = Some(bundle);
            }
        }
        bundles
    }

    /// Enforces the groups of one bundle on the counts of its repartition topics.
    pub fn enforce(&self, world: &World<'_>, bundle: usize, counts: &mut dyn Counts) {
        for &group in &self.groups[bundle] {
            let group = &world.model.groups[group];
            let count = [enforced(world, group, counts, BASE), enforced(world, group, counts, NOW)];
            for &topic in group {
                if world.model.topics[topic].repartition && world.pins[topic] == 0 {
                    counts.set(topic, count);
                }
            }
        }
    }

    /// Topics of a bundle.
    pub fn members(&self, model: &Model, bundle: usize) -> BTreeSet<usize> {
        self.groups[bundle].iter().flat_map(|&group| model.groups[group].iter().copied()).collect()
    }
}

/// Counts of repartition topics while groups are enforced.
pub(crate) trait Counts {
    /// Count of a topic.
    fn get(&self, topic: usize) -> Pair;
    /// Changes the count of a topic.
    fn set(&mut self, topic: usize, count: Pair);
}

impl Counts for Vec<Pair> {
    fn get(&self, topic: usize) -> Pair {
        self[topic]
    }

    fn set(&mut self, topic: usize, count: Pair) {
        self[topic] = count;
    }
}

/// The count that a group demands: that of its inputs, else of its pinned topics, else the greatest; 0 where its inputs differ.
fn enforced(world: &World<'_>, group: &[usize], counts: &dyn Counts, at: usize) -> u32 {
    let mut inputs = inputs_of(world, group).map(|topic| world.inputs[topic][at]).filter(|&count| count > 0);
    if let Some(first) = inputs.next() {
        return if inputs.all(|count| count == first) { first } else { 0 };
    }
    let pinned = group.iter().map(|&topic| world.pins[topic]).find(|&pin| pin > 0);
    pinned.unwrap_or_else(|| group.iter().map(|&topic| counts.get(topic)[at]).max().unwrap_or(0))
}

fn inputs_of<'a>(world: &'a World<'_>, group: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
    group.iter().copied().filter(|&topic| !world.model.topics[topic].repartition)
}

/// A group that Kafka refuses now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A pinned topic differs from an input or from another pinned topic of the group.
    Pinned {
        /// The pinned topic.
        topic: usize,
        /// The other one.
        other: usize,
    },
    /// The inputs of the group differ.
    Inputs {
        /// All inputs of the groups that share an input with this one.
        topics: Vec<usize>,
        /// The baseline had them equal, so the others are expected to follow.
        were_equal: bool,
    },
}

impl Refusal {
    /// The code that it comes under.
    pub fn code(&self) -> Code {
        match self {
            Self::Pinned { .. } => Code::PinnedConflict,
            Self::Inputs { were_equal: false, .. } => Code::CopartitionMismatch,
            Self::Inputs { were_equal: true, .. } => Code::WaitingForCopartition,
        }
    }
}

/// Every group that Kafka refuses now. Whatever the order of the visit, the outcome is the same: no count that it changes is compared.
pub(crate) fn refusals(world: &World<'_>) -> Vec<Refusal> {
    world.model.groups.iter().filter_map(|group| refusal(world, group)).collect()
}

fn refusal(world: &World<'_>, group: &[usize]) -> Option<Refusal> {
    let inputs: Vec<usize> = inputs_of(world, group).filter(|&topic| world.inputs[topic][NOW] > 0).collect();
    let pinned = || group.iter().copied().filter(|&topic| world.pins[topic] > 0);
    let Some(&widest) = inputs.iter().max_by_key(|&&topic| (world.inputs[topic][NOW], std::cmp::Reverse(topic))) else {
        let first = pinned().next()?;
        let topic = pinned().find(|&topic| world.pins[topic] != world.pins[first])?;
        return Some(Refusal::Pinned { topic, other: first });
    };
    let count = |topic: usize| world.inputs[topic][NOW];
    let equal = inputs.iter().all(|&topic| count(topic) == count(widest));
    // counts only grow, so a pinned topic below the widest input is lost whether or not the other inputs follow
    if let Some(topic) = pinned().find(|&topic| world.pins[topic] < count(widest) || (equal && world.pins[topic] > count(widest)))
    {
        return Some(Refusal::Pinned { topic, other: widest });
    }
    if equal {
        return None;
    }
    let before = |topic: usize| world.inputs[topic][BASE];
    let were_equal = before(widest) > 0 && inputs.iter().all(|&topic| before(topic) == before(widest));
    Some(Refusal::Inputs { topics: sharing_inputs(world, inputs), were_equal })
}

/// Inputs of all groups that are tied to these by inputs they share.
fn sharing_inputs(world: &World<'_>, inputs: Vec<usize>) -> Vec<usize> {
    let mut all: BTreeSet<usize> = inputs.into_iter().collect();
    loop {
        let before = all.len();
        for group in &world.model.groups {
            if inputs_of(world, group).any(|topic| all.contains(&topic)) {
                all.extend(inputs_of(world, group).filter(|&topic| world.inputs[topic][NOW] > 0));
            }
        }
        if all.len() == before {
            return all.into_iter().collect();
        }
    }
}

/// Union-find over numbers.
pub(crate) struct DisjointSets {
    parent: Vec<usize>,
}

impl DisjointSets {
    /// Each number alone.
    pub fn new(size: usize) -> Self {
        Self { parent: (0..size).collect() }
    }

    /// The number that stands for the set.
    pub fn root(&mut self, mut number: usize) -> usize {
        while self.parent[number] != number {
            self.parent[number] = self.parent[self.parent[number]];
            number = self.parent[number];
        }
        number
    }

    /// Makes one set of two.
    pub fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a] = b;
    }
}
