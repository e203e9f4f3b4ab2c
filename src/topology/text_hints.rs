//! What a description does not say but shows: which topics are repartition topics, and which have to have equal counts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::describe::{Block, Description, Node, NodeKind};
use super::names::is_repartition_name;

/// Topics written and read inside the text under the name of a repartition topic. What only a global store reads does not count.
///
/// A candidate is confirmed when the topic exists under its full name; else it is a user topic of that name.
pub fn repartition_candidates(description: &Description) -> BTreeSet<String> {
    let written: HashSet<&str> = description.blocks.iter().flat_map(sink_topics).collect();
    let read = description.blocks.iter().filter(|block| !block.global).flat_map(source_topics);
    read.filter(|topic| written.contains(topic) && is_repartition_name(topic)).map(str::to_owned).collect()
}

/// Topics that are joined, as far as the text shows it: processors that share a store and are reached from different topics.
///
/// Sorted inside and out; groups that share a topic are one. Groups of a single topic say nothing and are left out.
pub fn copartition_groups(description: &Description) -> Vec<Vec<String>> {
    let mut groups: Vec<BTreeSet<&str>> = Vec::new();
    for block in description.blocks.iter().filter(|block| !block.global) {
        for group in groups_of_block(block) {
            join(&mut groups, group);
        }
    }
    let mut groups: Vec<Vec<String>> = groups.into_iter().map(|group| group.into_iter().map(str::to_owned).collect()).collect();
    groups.sort();
    groups
}

/// The groups of one subtopology, each the topics of a connected part of the graph.
///
/// Whatever lies above two users of a store is tied together, so two stores with a node in common above them have the topics
/// above that node in common. Only nodes that some topic reaches can tie anything.
fn groups_of_block(block: &Block) -> Vec<BTreeSet<&str>> {
    let by_name: HashMap<&str, &Node> = block.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    let above = |name: &str| by_name.get(name).into_iter().flat_map(|node| strs(&node.predecessors));
    let below = |name: &str| by_name.get(name).into_iter().flat_map(|node| strs(&node.successors));
    let topics = |name: &str| by_name.get(name).into_iter().flat_map(|node| strs(topics_of(node)));
    let stores = |name: &str| by_name.get(name).into_iter().flat_map(|node| strs(stores_of(node)));

    let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for node in &block.nodes {
        for store in stores_of(node) {
            users.entry(store).or_default().insert(&node.name);
        }
    }
    users.retain(|_, users| users.len() > 1);

    let fed = reach(by_name.keys().copied().filter(|name| topics(name).next().is_some()), below);
    let tied = reach(users.values().flatten().copied().filter(|name| fed.contains(name)), |name| {
        above(name).filter(|name| fed.contains(name))
    });
    let mut grouped = HashSet::new();
    let mut groups = Vec::new();
    for start in tied.iter().copied() {
        if !grouped.contains(start) {
            let part = reach([start], |name| {
                let beside: Vec<&str> = stores(name).filter_map(|store| users.remove(store)).flatten().collect();
                above(name).chain(below(name)).chain(beside).filter(|name| tied.contains(name))
            });
            groups.push(part.iter().copied().flat_map(topics).collect());
            grouped.extend(part);
        }
    }
    groups.retain(|group: &BTreeSet<&str>| group.len() > 1);
    groups
}

/// The names that can be reached from some of them, those included.
fn reach<'a, I: Iterator<Item = &'a str>>(
    start: impl IntoIterator<Item = &'a str>,
    mut next: impl FnMut(&'a str) -> I,
) -> HashSet<&'a str> {
    let mut open: Vec<&str> = start.into_iter().collect();
    let mut seen: HashSet<&str> = open.iter().copied().collect();
    while let Some(name) = open.pop() {
        open.extend(next(name).filter(|other| seen.insert(other)));
    }
    seen
}

fn join<'a>(groups: &mut Vec<BTreeSet<&'a str>>, mut group: BTreeSet<&'a str>) {
    groups.retain_mut(|other| {
        let apart = other.is_disjoint(&group);
        if !apart {
            group.append(other);
        }
        apart
    });
    groups.push(group);
}

/// The topics that the sources of a block read by name.
pub(super) fn source_topics(block: &Block) -> impl Iterator<Item = &str> {
    block.nodes.iter().flat_map(|node| strs(topics_of(node)))
}

/// The topics that the sinks of a block write by name.
pub(super) fn sink_topics(block: &Block) -> impl Iterator<Item = &str> {
    block.nodes.iter().filter_map(|node| match &node.kind {
        NodeKind::Sink { topic } => topic.as_deref(),
        _ => None,
    })
}

fn topics_of(node: &Node) -> &[String] {
    if let NodeKind::Source { topics, .. } = &node.kind { topics } else { &[] }
}

fn stores_of(node: &Node) -> &[String] {
    if let NodeKind::Processor { stores } = &node.kind { stores } else { &[] }
}

fn strs(names: &[String]) -> impl Iterator<Item = &str> {
    names.iter().map(String::as_str)
}
