//! Counts that depend on the order in which Kafka Streams visits subtopologies.
//!
//! The visit goes round in one fixed order of subtopologies, and within each of its repartition topics, until all have a count;
//! which order that is cannot be seen from outside. Only topics whose time of visit matters are looked at, in parts that do not
//! touch one another. A part is explored state by state; where it is too large, each topic gets every count that it could have, which
//! may be more than can happen, never less.
#![allow(clippy::indexing_slicing, reason = "indices are made by Model::compile and within this module")]

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::copartition::{Bundles, DisjointSets};
use super::counts::{BASE, Bounds, NOW, Pair, World, max};

/// States explored in one part before it counts as too large.
const MAX_STATES: usize = 5_000;
/// Topics in one part before it counts as too large (they are bits of a word).
const MAX_TOPICS: usize = 64;
/// Counts kept for one topic, and combinations kept for one part, where a part is too large.
const MAX_OPTIONS: usize = 512;

/// Topics whose counts hang together, with every outcome.
pub(crate) struct Part {
    /// The topics.
    pub topics: Vec<usize>,
    /// Their counts, one list for each outcome.
    pub outcomes: BTreeSet<Vec<Pair>>,
    /// False if there are more outcomes than are listed.
    pub complete: bool,
}

/// Says whether a count that is not touched by copartition groups fits what is observed.
pub(crate) type Fits<'a> = dyn Fn(usize, Pair) -> bool + 'a;

/// The parts of a topology in which the order matters.
///
/// `fits` prunes outcomes early: if none is left, the part comes back without outcomes.
pub(crate) fn parts(world: &World<'_>, bounds: &Bounds, bundles: &Bundles, fits: &Fits<'_>) -> Vec<Part> {
    let relevant = relevant(world, bounds);
    let mut parts = Vec::new();
    for topics in split(world, bounds, bundles, &relevant) {
        let search = Search::new(world, bounds, bundles, &topics, fits);
        match search.and_then(Search::run) {
            Some(part) => parts.push(part),
            None => parts.extend(apart(world, bounds, bundles, &topics, fits)),
        }
    }
    parts
}

/// Topics with more than one possible count, and those whose time of visit has a bearing on them.
fn relevant(world: &World<'_>, bounds: &Bounds) -> Vec<bool> {
    let model = world.model;
    let mut relevant = vec![false; model.topics.len()];
    let mut open: Vec<usize> = (0..model.topics.len()).filter(|&topic| !bounds.certain(topic)).collect();
    open.iter().for_each(|&topic| relevant[topic] = true);
    let mut entered = vec![false; model.subtopologies.len()];
    while let Some(topic) = open.pop() {
        let waits = [BASE, NOW].iter().any(|&at| bounds.direct[topic][at] == 0 && bounds.low[topic][at] > 0);
        if bounds.certain(topic) && !waits {
            continue;
        }
        for &writer in &model.topics[topic].writers {
            if std::mem::replace(&mut entered[writer], true) {
                continue;
            }
            for &source in &model.subtopologies[writer].sources {
                let counted = model.topics[source].repartition && world.pins[source] == 0;
                if counted && !std::mem::replace(&mut relevant[source], true) {
                    open.push(source);
                }
            }
        }
    }
    relevant
}

/// Splits the relevant topics into parts that share neither a subtopology nor a bundle of copartition groups.
fn split(world: &World<'_>, bounds: &Bounds, bundles: &Bundles, relevant: &[bool]) -> Vec<Vec<usize>> {
    let model = world.model;
    let (topics, subtopologies) = (model.topics.len(), model.subtopologies.len());
    let mut sets = DisjointSets::new(topics + subtopologies + bundles.groups.len());
    let read: Vec<bool> =
        model.subtopologies.iter().map(|subtopology| subtopology.sources.iter().any(|&source| relevant[source])).collect();
    for topic in (0..topics).filter(|&topic| relevant[topic]) {
        model.topics[topic].readers.iter().for_each(|&reader| sets.join(topic, topics + reader));
        model.topics[topic].writers.iter().filter(|&&writer| read[writer]).for_each(|&writer| sets.join(topic, topics + writer));
        if let Some(bundle) = bundles.of_topic[topic].filter(|_| !bounds.certain(topic)) {
            sets.join(topic, topics + subtopologies + bundle);
        }
    }
    let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for topic in (0..topics).filter(|&topic| relevant[topic]) {
        parts.entry(sets.root(topic)).or_default().push(topic);
    }
    parts.into_values().filter(|part| part.iter().any(|&topic| !bounds.certain(topic))).collect()
}

/// Exploration of one part.
struct Search<'a> {
    bounds: &'a Bounds,
    fits: &'a Fits<'a>,
    topics: &'a [usize],
    /// What each topic takes from inputs and pinned topics of its writers.
    direct: Vec<Pair>,
    /// Topics of the part that its writers read, as bits.
    feeds: Vec<u64>,
    /// Topics of the part that take from it.
    fed: Vec<Vec<usize>>,
    /// Topics of each subtopology, as bits: once begun, a subtopology is visited to its end.
    blocks: Vec<u64>,
    /// Whether copartition groups have the last word.
    grouped: Vec<bool>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    counts: Vec<Pair>,
    /// Topics whose turn has come in this round.
    turned: u64,
    /// Subtopology that is being visited.
    open: Option<usize>,
}

impl<'a> Search<'a> {
    fn new(world: &World<'_>, bounds: &'a Bounds, bundles: &Bundles, topics: &'a [usize], fits: &'a Fits<'a>) -> Option<Self> {
        if topics.len() > MAX_TOPICS {
            return None;
        }
        let model = world.model;
        let place: BTreeMap<usize, usize> = topics.iter().enumerate().map(|(place, &topic)| (topic, place)).collect();
        let mut search = Self {
            bounds,
            fits,
            topics,
            direct: Vec::new(),
            feeds: Vec::new(),
            fed: vec![Vec::new(); topics.len()],
            blocks: Vec::new(),
            grouped: topics.iter().map(|&topic| bundles.of_topic[topic].is_some()).collect(),
        };
        let mut blocks: BTreeMap<usize, u64> = BTreeMap::new();
        for (at, &topic) in topics.iter().enumerate() {
            let mut direct = bounds.direct[topic];
            let mut feeds = 0;
            for &writer in &model.topics[topic].writers {
                for &source in &model.subtopologies[writer].sources {
                    if let Some(&feed) = place.get(&source) {
                        feeds |= bit(feed);
                    } else if world.pins[source] > 0 {
                        direct = max(direct, [world.pins[source]; 2]);
                    }
                }
            }
            bits(feeds).for_each(|feed| search.fed[feed].push(at));
            search.direct.push(direct);
            search.feeds.push(feeds);
            for &reader in &model.topics[topic].readers {
                *blocks.entry(reader).or_default() |= bit(at);
            }
        }
        search.blocks = blocks.into_values().collect();
        Some(search)
    }

    /// Every outcome, or `None` if there are too many states.
    fn run(self) -> Option<Part> {
        let start = State { counts: vec![[0, 0]; self.topics.len()], turned: 0, open: None };
        let mut seen = HashSet::from([start.clone()]);
        let mut stack = vec![start];
        let uncertain: Vec<usize> = (0..self.topics.len()).filter(|&at| !self.bounds.certain(self.topics[at])).collect();
        let mut outcomes = BTreeSet::new();
        while let Some(state) = stack.pop() {
            if (0..self.topics.len()).all(|at| self.done(&state, at)) {
                outcomes.insert(uncertain.iter().map(|&at| state.counts[at]).collect());
                continue;
            }
            for next in self.next(&state) {
                if seen.insert(next.clone()) {
                    stack.push(next);
                }
            }
            if seen.len() > MAX_STATES {
                return None;
            }
        }
        Some(Part { topics: uncertain.iter().map(|&at| self.topics[at]).collect(), outcomes, complete: true })
    }

    /// True if the topic has every count that it can ever have.
    fn done(&self, state: &State, at: usize) -> bool {
        let low = self.bounds.low[self.topics[at]];
        (state.counts[at][BASE] > 0 || low[BASE] == 0) && (state.counts[at][NOW] > 0 || low[NOW] == 0)
    }

    fn next(&self, state: &State) -> Vec<State> {
        let waiting = |at: usize| state.turned & bit(at) == 0 && !self.done(state, at);
        let left = |block: usize| bits(self.blocks[block]).any(waiting);
        let open = state.open.filter(|&block| left(block));
        let mut moves: Vec<(usize, usize)> = Vec::new();
        for block in (0..self.blocks.len()).filter(|&block| open.is_none_or(|open| open == block)) {
            moves.extend(bits(self.blocks[block]).filter(|&at| waiting(at)).map(|at| (block, at)));
        }
        if moves.is_empty() {
            return vec![State { turned: 0, open: None, ..state.clone() }]; // the next round
        }
        if let Some(&free) = moves.iter().find(|&&(block, at)| self.is_free(state, block, at, open)) {
            moves = vec![free];
        }
        moves.into_iter().filter_map(|(block, at)| self.turn(state, block, at)).collect()
    }

    fn candidate(&self, state: &State, at: usize) -> Pair {
        bits(self.feeds[at]).fold(self.direct[at], |most, feed| max(most, state.counts[feed]))
    }

    /// True if a visit now loses no outcome: the count is final, and who takes from this topic has as much without it.
    fn is_free(&self, state: &State, block: usize, at: usize, open: Option<usize>) -> bool {
        let count = self.candidate(state, at);
        let alone = open.is_some() || self.blocks[block] & !state.turned & !bit(at) & self.unfinished(state) == 0;
        let enough = |reader: usize| {
            let has = self.candidate(state, reader);
            self.done(state, reader) || (0..2).all(|world| has[world] >= count[world])
        };
        alone && count == self.bounds.high[self.topics[at]] && self.fed[at].iter().all(|&reader| reader == at || enough(reader))
    }

    fn unfinished(&self, state: &State) -> u64 {
        (0..self.topics.len()).filter(|&at| !self.done(state, at)).fold(0, |bits, at| bits | bit(at))
    }

    /// The state after a topic's turn; `None` if its count contradicts what is observed.
    fn turn(&self, state: &State, block: usize, at: usize) -> Option<State> {
        let mut next = State { turned: state.turned | bit(at), open: Some(block), ..state.clone() };
        let candidate = self.candidate(state, at);
        for world in [BASE, NOW] {
            if next.counts[at][world] == 0 {
                next.counts[at][world] = candidate[world];
            }
        }
        (self.grouped[at] || !self.done(&next, at) || (self.fits)(self.topics[at], next.counts[at])).then_some(next)
    }
}

fn bit(at: usize) -> u64 {
    1 << at
}

fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = set.trailing_zeros() as usize;
        set &= set.checked_sub(1)?;
        Some(at)
    })
}

/// The outcomes of a part that is too large to explore: each topic, or bundle of copartition groups, for itself.
fn apart(world: &World<'_>, bounds: &Bounds, bundles: &Bundles, topics: &[usize], fits: &Fits<'_>) -> Vec<Part> {
    let counts = spread(world, bounds, bundles, topics, fits);
    let mut by_bundle: BTreeMap<(Option<usize>, usize), Vec<usize>> = BTreeMap::new();
    for &topic in topics.iter().filter(|&&topic| !bounds.certain(topic)) {
        let bundle = bundles.of_topic[topic];
        by_bundle.entry((bundle, if bundle.is_some() { 0 } else { topic })).or_default().push(topic);
    }
    let mut parts = Vec::new();
    for topics in by_bundle.into_values() {
        let mut part = Part { topics, outcomes: BTreeSet::from([Vec::new()]), complete: true };
        for topic in &part.topics {
            let counts = &counts[topic];
            let longer =
                |outcome: &Vec<Pair>| counts.iter().map(|&count| [outcome.as_slice(), &[count]].concat()).collect::<Vec<_>>();
            part.outcomes = part.outcomes.iter().flat_map(longer).take(MAX_OPTIONS).collect();
            part.complete &= part.outcomes.len() < MAX_OPTIONS && counts.len() < MAX_OPTIONS;
        }
        parts.push(part);
    }
    parts
}

/// Every count that a topic could have, whatever the others have.
fn spread(
    world: &World<'_>,
    bounds: &Bounds,
    bundles: &Bundles,
    topics: &[usize],
    fits: &Fits<'_>,
) -> BTreeMap<usize, BTreeSet<Pair>> {
    let model = world.model;
    let mut counts: BTreeMap<usize, BTreeSet<Pair>> = BTreeMap::new();
    let mut work: Vec<usize> = topics.to_vec();
    for &topic in topics {
        let known = if bounds.certain(topic) { BTreeSet::from([bounds.low[topic]]) } else { BTreeSet::new() };
        counts.insert(topic, known);
    }
    while let Some(topic) = work.pop() {
        if bounds.certain(topic) {
            continue;
        }
        let mut offers: BTreeSet<Pair> = BTreeSet::new();
        let mut direct = bounds.direct[topic];
        for &source in model.topics[topic].writers.iter().flat_map(|&writer| &model.subtopologies[writer].sources) {
            if let Some(of_source) = counts.get(&source) {
                offers.extend(of_source);
            } else if world.pins[source] > 0 {
                direct = max(direct, [world.pins[source]; 2]);
            }
        }
        let full = |count: &Pair| (0..2).all(|world| count[world] > 0 || bounds.low[topic][world] == 0);
        let mut found = BTreeSet::from([direct]);
        let mut fresh: Vec<Pair> = vec![direct];
        while let Some(count) = fresh.pop() {
            for &offer in &offers {
                let more = max(count, offer);
                if found.len() < MAX_OPTIONS && found.insert(more) {
                    fresh.push(more);
                }
            }
        }
        let free = bundles.of_topic[topic].is_none();
        found.retain(|count| full(count) && (!free || fits(topic, *count)));
        let before = counts.insert(topic, found).map_or(0, |before| before.len());
        if counts[&topic].len() > before {
            let readers = model.topics[topic].readers.iter();
            let sinks = readers.flat_map(|&reader| &model.subtopologies[reader].sinks);
            work.extend(sinks.filter(|sink| counts.contains_key(sink)));
        }
    }
    counts
}
