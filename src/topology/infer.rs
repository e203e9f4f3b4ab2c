//! What a description does not say but shows: which topics are repartition topics, and which have to have equal counts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::describe::{Block, Description, Node, NodeKind};

/// Whether a raw name (without prefix) is one that Kafka Streams gives to a repartition topic.
///
/// The two topics of a foreign-key join are repartition topics too, under names of their own
/// (`KTableImpl#doJoinOnForeignKey`).
pub fn is_repartition_name(raw: &str) -> bool {
    let generated_join = |rest: &str| {
        rest.strip_prefix("REGISTRATION-")
            .or_else(|| rest.strip_prefix("RESPONSE-"))
            .and_then(|rest| rest.strip_suffix("-topic"))
            .is_some_and(|number| number.len() == 10 && number.bytes().all(|b| b.is_ascii_digit()))
    };
    raw.ends_with("-repartition")
        || raw.ends_with("-subscription-registration-topic")
        || raw.ends_with("-subscription-response-topic")
        || raw.strip_prefix("KTABLE-FK-JOIN-SUBSCRIPTION-").is_some_and(generated_join)
}

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

fn groups_of_block(block: &Block) -> Vec<BTreeSet<&str>> {
    let by_name: HashMap<&str, &Node> = block.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    let mut users: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
    for node in &block.nodes {
        if let NodeKind::Processor { stores } = &node.kind {
            for store in stores {
                users.entry(store).or_default().insert(&node.name);
            }
        }
    }
    users
        .into_values()
        .filter(|users| users.len() > 1)
        .map(|users| topics_above(&by_name, users))
        .filter(|topics| topics.len() > 1)
        .collect()
}

/// The source topics from which any of the nodes can be reached.
fn topics_above<'a>(by_name: &HashMap<&'a str, &'a Node>, nodes: HashSet<&'a str>) -> BTreeSet<&'a str> {
    let mut topics = BTreeSet::new();
    let mut open: Vec<&str> = nodes.iter().copied().collect();
    let mut seen = nodes;
    while let Some(name) = open.pop() {
        let Some(node) = by_name.get(name) else { continue };
        if let NodeKind::Source { topics: read, .. } = &node.kind {
            topics.extend(read.iter().map(String::as_str));
        }
        open.extend(node.predecessors.iter().map(String::as_str).filter(|above| seen.insert(above)));
    }
    topics
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
    block
        .nodes
        .iter()
        .flat_map(|node| match &node.kind {
            NodeKind::Source { topics, .. } => topics.as_slice(),
            _ => &[],
        })
        .map(String::as_str)
}

/// The topics that the sinks of a block write by name.
pub(super) fn sink_topics(block: &Block) -> impl Iterator<Item = &str> {
    block.nodes.iter().filter_map(|node| match &node.kind {
        NodeKind::Sink { topic } => topic.as_deref(),
        _ => None,
    })
}
