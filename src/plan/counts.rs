//! Kafka's computation of repartition counts, before copartition groups are enforced
//! (`RepartitionTopics#setRepartitionSourceTopicPartitionCount`).
//!
//! A count is the maximum over the sources of all writers, but repartition topics that have none yet are left out, so it can depend
//! on the order of the visit. Here every topic gets the least and the greatest count that any order could give it; where the two
//! differ, `orders` looks closer.
#![allow(clippy::indexing_slicing, reason = "indices of topics and subtopologies are made by Model::compile")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::model::Model;

/// Counts of one topic for the baseline inputs and for the present ones; 0 = none. The maximum of two is the maximum of each.
pub(crate) type Pair = [u32; 2];
/// Index of the baseline in a [`Pair`].
pub(crate) const BASE: usize = 0;
/// Index of the present in a [`Pair`].
pub(crate) const NOW: usize = 1;

/// The maximum of each.
pub(crate) fn max(a: Pair, b: Pair) -> Pair {
    [a[BASE].max(b[BASE]), a[NOW].max(b[NOW])]
}

/// A topology with its inputs and the explicit counts that are assumed.
pub(crate) struct World<'a> {
    /// The topology.
    pub model: &'a Model,
    /// Counts of inputs by topic; 0 for repartition topics and for inputs that do not exist.
    pub inputs: &'a [Pair],
    /// Explicit count by topic; 0 = none.
    pub pins: Vec<u32>,
}

impl World<'_> {
    /// Widest input of each subtopology.
    fn widest_inputs(&self) -> Vec<Pair> {
        let widest = |sources: &[usize]| sources.iter().fold([0, 0], |most, &topic| max(most, self.inputs[topic]));
        self.model.subtopologies.iter().map(|subtopology| widest(&subtopology.sources)).collect()
    }
}

/// Least and greatest count of every topic; inputs and pinned topics have the same for both. 0 = can never be worked out.
pub(crate) struct Bounds {
    /// Least.
    pub low: Vec<Pair>,
    /// Greatest.
    pub high: Vec<Pair>,
    /// Widest input among the writers of a repartition topic; such a topic can be worked out at any time.
    pub direct: Vec<Pair>,
}

impl Bounds {
    /// Works out the bounds in `n log n`.
    pub fn of(world: &World<'_>) -> Self {
        let model = world.model;
        let widest = world.widest_inputs();
        let mut direct = vec![[0, 0]; model.topics.len()];
        for id in repartition(model) {
            direct[id] = model.topics[id].writers.iter().fold([0, 0], |most, &writer| max(most, widest[writer]));
        }
        let mut low = world.inputs.to_vec();
        for id in repartition(model) {
            low[id] = if world.pins[id] > 0 { [world.pins[id]; 2] } else { direct[id] };
        }
        let mut high = low.clone();
        for at in [BASE, NOW] {
            lowest(world, &widest, &direct, &mut low, at);
            highest(world, &mut high, at);
        }
        Self { low, high, direct }
    }

    /// True if no order of the visit changes the count, at the baseline or now.
    pub fn certain(&self, topic: usize) -> bool {
        self.low[topic] == self.high[topic]
    }
}

/// A topic whose writers read no input takes the count of whatever is known first: at least that of its narrowest ancestor.
fn lowest(world: &World<'_>, widest: &[Pair], direct: &[Pair], low: &mut [Pair], at: usize) {
    let model = world.model;
    let mut settled = vec![false; model.subtopologies.len()];
    let mut queue: BinaryHeap<Reverse<(u32, usize)>> =
        repartition(model).map(|id| (low[id][at], id)).filter(known).map(Reverse).collect();
    while let Some(Reverse((count, topic))) = queue.pop() {
        if low[topic][at] < count {
            continue;
        }
        for &reader in &model.topics[topic].readers {
            if widest[reader][at] > 0 || std::mem::replace(&mut settled[reader], true) {
                continue;
            }
            for &sink in &model.subtopologies[reader].sinks {
                let open = direct[sink][at] == 0 && world.pins[sink] == 0;
                if open && (low[sink][at] == 0 || count < low[sink][at]) {
                    low[sink][at] = count;
                    queue.push(Reverse((count, sink)));
                }
            }
        }
    }
}

/// The count if everything upstream were known in time.
fn highest(world: &World<'_>, high: &mut [Pair], at: usize) {
    let model = world.model;
    let mut settled = vec![false; model.subtopologies.len()];
    let mut queue: BinaryHeap<(u32, usize)> = repartition(model).map(|id| (high[id][at], id)).filter(known).collect();
    while let Some((count, topic)) = queue.pop() {
        if high[topic][at] > count {
            continue;
        }
        for &reader in &model.topics[topic].readers {
            if std::mem::replace(&mut settled[reader], true) {
                continue;
            }
            for &sink in &model.subtopologies[reader].sinks {
                if world.pins[sink] == 0 && count > high[sink][at] {
                    high[sink][at] = count;
                    queue.push((count, sink));
                }
            }
        }
    }
}

fn repartition(model: &Model) -> impl Iterator<Item = usize> + '_ {
    model.topics.iter().enumerate().filter(|(_, topic)| topic.repartition).map(|(id, _)| id)
}

fn known(entry: &(u32, usize)) -> bool {
    entry.0 > 0
}
