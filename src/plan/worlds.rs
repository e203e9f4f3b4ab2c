//! What the sources of a topology do not tell, tried every way that fits the evidence: explicit counts of repartition topics.
#![allow(clippy::indexing_slicing, reason = "indices of topics are made by Model::compile")]

use std::collections::{BTreeMap, BTreeSet};

use super::copartition::{self, Bundles, Refusal};
use super::counts::{BASE, Bounds, NOW, Pair, World};
use super::decision::Code;
use super::model::{Model, Pins};
use super::settle::{Settled, settle};
use crate::topology::names;

/// Topics worked out in all trials of one decision; a pin that is not tried because of it counts as one that matters.
const MAX_TRIED: usize = 200_000;

/// What is observed, by the numbers of the model.
pub(crate) struct Facts {
    /// Counts of inputs; 0 = does not exist.
    pub inputs: Vec<Pair>,
    /// Present count of each topic; 0 = does not exist.
    pub observed: Vec<u32>,
    /// Present count of each changelog; 0 = does not exist.
    pub changelogs: Vec<u32>,
    /// Topics that followed an input once, so have no explicit count.
    pub followed: Vec<bool>,
}

impl Facts {
    /// Looks up the topics of a model.
    pub fn of(
        model: &Model,
        baseline: &BTreeMap<String, u32>,
        partitions: &BTreeMap<String, u32>,
        followed: &BTreeSet<String>,
    ) -> Self {
        let count = |counts: &BTreeMap<String, u32>, name: &str| counts.get(name).copied().unwrap_or(0);
        let input = |topic: &super::model::Topic| match topic.repartition {
            true => [0, 0],
            false => [count(baseline, &topic.name), count(partitions, &topic.name)],
        };
        Self {
            inputs: model.topics.iter().map(input).collect(),
            observed: model.topics.iter().map(|topic| count(partitions, &topic.name)).collect(),
            changelogs: model.changelogs.iter().map(|log| count(partitions, &log.name)).collect(),
            followed: model.topics.iter().map(|topic| followed.contains(&topic.name)).collect(),
        }
    }
}

/// One way in which everything could be.
pub(crate) struct Trial {
    /// Explicit counts by topic; 0 = none.
    pub pins: Vec<u32>,
    /// The counts.
    pub settled: Settled,
    /// Copartition groups that Kafka refuses.
    pub refusals: Vec<Refusal>,
    /// Repartition topics that can never have a count.
    pub unresolvable: Vec<usize>,
    /// No count depends on the order of the visit.
    certain: bool,
}

/// The way that is taken, and what is not certain about it.
pub(crate) struct Answer {
    /// The way that is taken.
    pub trial: Trial,
    /// The topic that is taken as pinned although this was not stated.
    pub assumed: Option<usize>,
    /// Topics for which the answer hangs on whether they are pinned, or on which count.
    pub in_question: Vec<usize>,
    /// The observed counts do not speak against this: they are explained, or pins that nobody stated could explain them.
    pub possible: bool,
}

/// Works out a model under everything that is stated about it.
pub(crate) fn answer(model: &Model, facts: &Facts) -> Answer {
    let mut worlds = Worlds { model, facts, bundles: Bundles::of(model), left: MAX_TRIED };
    let mut pins = vec![0; model.topics.len()];
    let mut in_question = Vec::new();
    if let Pins::Stated(stated) = &model.pins {
        for &(topic, count) in stated {
            pins[topic] = count.unwrap_or(facts.observed[topic]);
            if pins[topic] == 0 && worlds.feeds_existing(topic) {
                in_question.push(topic); // it does not exist, so its count cannot be seen
            }
        }
    }
    let mut trial = worlds.run(pins);
    let mut assumed = None;
    let strange = trial.unresolvable.is_empty() && trial.refusals.is_empty() && !trial.settled.unexplained.is_empty();
    if strange && let Some((topic, other)) = worlds.only_pin_that_explains(&trial) {
        (trial, assumed) = (other, Some(topic));
    }
    let open = matches!(model.pins, Pins::Unknown) && trial.refusals.is_empty() && trial.unresolvable.is_empty();
    if open && trial.settled.unexplained.is_empty() {
        in_question = worlds.pins_that_matter(&trial);
    }
    let unstated = matches!(model.pins, Pins::Unknown);
    let possible = trial.settled.unexplained.is_empty() || unstated && worlds.pins_could_explain(&trial);
    if !trial.settled.unexplained.is_empty() && possible {
        in_question = trial.settled.unexplained.keys().copied().collect();
    }
    Answer { trial, assumed, in_question, possible }
}

struct Worlds<'a> {
    model: &'a Model,
    facts: &'a Facts,
    bundles: Bundles,
    /// Topics that may still be worked out.
    left: usize,
}

impl Worlds<'_> {
    fn run(&self, pins: Vec<u32>) -> Trial {
        let world = World { model: self.model, inputs: &self.facts.inputs, pins };
        let bounds = Bounds::of(&world);
        let topics = || self.model.topics.iter().enumerate();
        let unresolvable =
            topics().filter(|(id, topic)| topic.repartition && bounds.low[*id][NOW] == 0).map(|(id, _)| id).collect();
        let mut settled = settle(&world, &self.facts.observed, &bounds, &self.bundles);
        settled.unexplained.retain(|&topic, _| !self.facts.followed[topic]); // what has followed once will follow again
        let certain = topics().all(|(id, _)| bounds.certain(id));
        Trial { settled, refusals: copartition::refusals(&world), unresolvable, certain, pins: world.pins }
    }

    /// The same with one more pinned topic; `None` once enough was tried.
    fn also(&mut self, trial: &Trial, topics: &[usize]) -> Option<Trial> {
        self.left = self.left.checked_sub(self.model.topics.len() + self.model.subtopologies.len())?;
        let mut pins = trial.pins.clone();
        topics.iter().for_each(|&topic| pins[topic] = self.facts.observed[topic]);
        Some(self.run(pins))
    }

    /// Topics that could have an explicit count nobody stated.
    fn candidates(&self, trial: &Trial) -> Vec<usize> {
        let topics = self.model.topics.iter().enumerate();
        topics
            .filter(|(id, topic)| topic.repartition && names::may_be_pinned(&topic.raw) && !self.facts.followed[*id])
            .map(|(id, _)| id)
            .filter(|&id| trial.pins[id] == 0 && self.facts.observed[id] > 0)
            .collect()
    }

    /// The one topic that explains every count if it is pinned; `None` if there is no such topic, or more than one.
    fn only_pin_that_explains(&mut self, trial: &Trial) -> Option<(usize, Trial)> {
        let strange = &trial.settled.unexplained;
        if strange.values().all(|topic| topic.no_baseline) {
            return None; // only too narrow for the present, which the past would explain
        }
        let from_strange = |topic: usize| {
            let writers = self.model.topics[topic].writers.iter();
            writers
                .flat_map(|&writer| &self.model.subtopologies[writer].sources)
                .any(|source| *source != topic && strange.contains_key(source))
        };
        // a topic behind another strange one most likely only follows it, so it is tried last
        let mut candidates = self.candidates(trial);
        candidates.sort_by_key(|&topic| (!strange.contains_key(&topic), from_strange(topic)));
        let mut found = None;
        for topic in candidates {
            let Some(other) = self.also(trial, &[topic]) else { break };
            if other.settled.unexplained.is_empty() && other.unresolvable.is_empty() && found.replace((topic, other)).is_some() {
                return None;
            }
        }
        found
    }

    /// True if pins, as many as it takes, could explain every count.
    fn pins_could_explain(&mut self, trial: &Trial) -> bool {
        let candidates: BTreeSet<usize> = self.candidates(trial).into_iter().collect();
        let mut pinned: BTreeSet<usize> = BTreeSet::new();
        let mut strange: BTreeSet<usize> = trial.settled.unexplained.keys().copied().collect();
        while !strange.is_empty() {
            let before = pinned.len();
            pinned.extend(strange.intersection(&candidates));
            if pinned.len() == before {
                return false;
            }
            let topics: Vec<usize> = pinned.iter().copied().collect();
            let Some(other) = self.also(trial, &topics) else { return true }; // not ruled out
            strange = other.settled.unexplained.keys().copied().collect();
        }
        true
    }

    /// Topics that could be pinned to the count they have, where the plan would then be another one.
    fn pins_that_matter(&mut self, trial: &Trial) -> Vec<usize> {
        let plan = self.plan(trial);
        let (mut matter, mut harmless) = (Vec::new(), Vec::new());
        for topic in self.candidates(trial) {
            let found = self.facts.observed[topic];
            let (computed, settled) = (trial.settled.computed[topic], trial.settled.counts[topic]);
            if trial.certain && computed[NOW] == found && settled[NOW] == found {
                continue; // as good as pinned
            }
            if trial.certain && computed[BASE] == found && settled[BASE] == found && settled[NOW] != found {
                matter.push(topic);
                continue;
            }
            match self.also(trial, &[topic]) {
                None => matter.push(topic),
                Some(other) if !other.settled.unexplained.is_empty() => {}
                Some(other) if self.plan(&other) == plan => harmless.push(topic),
                Some(_) => matter.push(topic),
            }
        }
        if harmless.len() > 1 {
            let same =
                self.also(trial, &harmless).is_some_and(|all| !all.settled.unexplained.is_empty() || self.plan(&all) == plan);
            if !same {
                matter.append(&mut harmless);
            }
        }
        matter
    }

    /// What would be done.
    fn plan(&self, trial: &Trial) -> Plan {
        Plan::of(self.model, self.facts, trial)
    }

    /// True if an internal topic that exists takes its count from this one.
    fn feeds_existing(&self, topic: usize) -> bool {
        let model = self.model;
        let mut reached = BTreeSet::from([topic]);
        let mut open = vec![topic];
        let mut readers = BTreeSet::new();
        while let Some(topic) = open.pop() {
            let mut next = BTreeSet::new();
            for &reader in &model.topics[topic].readers {
                readers.insert(reader);
                next.extend(&model.subtopologies[reader].sinks);
            }
            if let Some(bundle) = self.bundles.of_topic[topic] {
                next.extend(self.bundles.members(model, bundle).into_iter().filter(|&member| model.topics[member].repartition));
            }
            open.extend(next.into_iter().filter(|&next| reached.insert(next)));
        }
        let logs = model.changelogs.iter().zip(&self.facts.changelogs);
        reached.iter().any(|&topic| self.facts.observed[topic] > 0)
            || logs.into_iter().any(|(log, &count)| count > 0 && readers.contains(&log.subtopology))
    }
}

/// What would be done: two ways with the same plan need not be told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    refused: Option<Code>,
    /// Counts of topics and changelogs that exist, by name.
    targets: BTreeMap<String, Vec<u32>>,
    tasks: BTreeMap<String, Vec<u32>>,
}

impl Plan {
    /// The plan of a trial.
    pub fn of(model: &Model, facts: &Facts, trial: &Trial) -> Self {
        let mut plan = Self { refused: trial.refused(), targets: BTreeMap::new(), tasks: BTreeMap::new() };
        if plan.is_refused() {
            return plan;
        }
        for (id, topic) in model.topics.iter().enumerate().filter(|(id, topic)| topic.repartition && facts.observed[*id] > 0) {
            plan.targets.insert(topic.name.clone(), trial.counts_of(id));
        }
        for (log, _) in model.changelogs.iter().zip(&facts.changelogs).filter(|(_, count)| **count > 0) {
            plan.targets.insert(log.name.clone(), trial.tasks_of(log.subtopology));
        }
        for (id, subtopology) in model.subtopologies.iter().enumerate() {
            plan.tasks.insert(subtopology.id.clone(), trial.tasks_of(id));
        }
        plan
    }

    /// Kafka would refuse the topology with these counts.
    pub fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Counts of topics that exist, by name; none where Kafka would refuse.
    pub fn targets(&self) -> impl Iterator<Item = (&str, Vec<u32>)> {
        self.targets.iter().map(|(name, counts)| (name.as_str(), counts.clone()))
    }
}

impl Trial {
    /// The code under which Kafka would refuse.
    pub fn refused(&self) -> Option<Code> {
        if !self.unresolvable.is_empty() {
            return Some(Code::Unsupported);
        }
        self.refusals.iter().map(Refusal::code).min()
    }

    /// Present counts that a repartition topic could have to have, ascending.
    pub fn counts_of(&self, topic: usize) -> Vec<u32> {
        match self.settled.possible.get(&topic) {
            Some(counts) => counts.iter().copied().collect(),
            None => vec![self.settled.counts[topic][NOW]],
        }
    }

    /// Numbers of tasks that a subtopology could have, ascending.
    pub fn tasks_of(&self, subtopology: usize) -> Vec<u32> {
        match self.settled.possible_tasks.get(&subtopology) {
            Some(tasks) => tasks.iter().copied().collect(),
            None => vec![self.settled.tasks[subtopology]],
        }
    }
}
