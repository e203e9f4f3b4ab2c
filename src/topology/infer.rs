//! From the text of `Topology#describe()` and the topics that exist to a topology.
//!
//! The text tells what is read, written and stored. Which topics are internal and which stores have a changelog shows in the cluster:
//! an internal topic exists under the application's prefix. Copartition groups show in stores that processors behind different
//! sources share; where that is not proof, the group is unsure and the planner tries both ways.

use std::collections::{BTreeMap, BTreeSet};

use super::copartition_hints::{self, Hints};
use super::describe::{Block, Description, NodeKind};
use super::pattern::TopicPattern;
use super::{Stated, Subtopology, Topology, names};

/// The topics of the cluster, as far as they matter.
pub trait Cluster {
    /// The topic exists now.
    fn exists(&self, topic: &str) -> bool;
    /// The topic was an input at the baseline.
    fn was_input(&self, topic: &str) -> bool;
    /// Every topic that exists or was an input.
    fn topics(&self) -> Vec<&str>;
}

/// What a text and a cluster tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inference {
    /// The topology; its copartition groups are those that are stated, else none.
    pub topology: Topology,
    /// The copartition groups, unless they are stated.
    pub hints: Option<Hints>,
}

/// Infers a topology. What is stated overrides what is inferred.
pub fn infer(description: &Description, prefix: &str, stated: &Stated, cluster: &dyn Cluster) -> Inference {
    let names = Names::of(description);
    let repartition_topics = match &stated.repartition_topics {
        Some(topics) => topics.iter().cloned().collect(),
        None => internal_topics(&names, prefix, cluster),
    };
    let hints = match stated.copartition_groups {
        Some(_) => None,
        None => Some(copartition_hints::collect(description, &repartition_topics, &|pattern| matching(pattern, prefix, cluster))),
    };
    let global: BTreeSet<String> = description
        .blocks
        .iter()
        .filter(|block| block.global)
        .flat_map(|block| sources(block).flat_map(|(topics, _)| topics.iter().cloned()))
        .collect();
    let topology = Topology {
        subtopologies: description.blocks.iter().filter(|block| !block.global).map(subtopology).collect(),
        repartition_topics: repartition_topics.into_iter().collect(),
        copartition_groups: stated.copartition_groups.clone().unwrap_or_default(),
        global_topics: stated.global_topics.clone().unwrap_or_else(|| global.into_iter().collect()),
        pinned: stated.pinned.clone(),
        logging_disabled: stated.logging_disabled.clone().unwrap_or_default(),
        source_changelogs: stated.source_changelogs.clone().unwrap_or_default(),
    };
    Inference { topology, hints }
}

/// Every pattern of the description, or why one cannot be read.
pub fn patterns(description: &Description) -> Result<Vec<TopicPattern>, String> {
    description
        .blocks
        .iter()
        .flat_map(sources)
        .filter_map(|(_, pattern)| pattern)
        .map(|pattern| TopicPattern::new(pattern))
        .collect()
}

/// Topics by named topology (empty name where there is none).
struct Names<'a> {
    read: BTreeMap<&'a str, BTreeSet<&'a str>>,
    written: BTreeMap<&'a str, BTreeSet<&'a str>>,
    all: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    fn of(description: &'a Description) -> Self {
        let mut names = Self { read: BTreeMap::new(), written: BTreeMap::new(), all: BTreeSet::new() };
        for block in &description.blocks {
            let named = block.topology.as_deref().unwrap_or_default();
            for node in &block.nodes {
                match &node.kind {
                    NodeKind::Source { topics, .. } => {
                        names.all.extend(topics.iter().map(String::as_str));
                        if !block.global {
                            names.read.entry(named).or_default().extend(topics.iter().map(String::as_str));
                        }
                    }
                    NodeKind::Sink { topic: Some(topic) } => {
                        names.all.insert(topic);
                        names.written.entry(named).or_default().insert(topic);
                    }
                    NodeKind::Sink { topic: None } | NodeKind::Processor { .. } => {}
                }
            }
        }
        names
    }

    /// Topics that are written and read within one named topology, with its name.
    fn looped(&self) -> impl Iterator<Item = (Option<&'a str>, &'a str)> + '_ {
        self.written.iter().flat_map(|(&named, written)| {
            let read = self.read.get(named);
            let looped = written.iter().filter(move |topic| read.is_some_and(|read| read.contains(**topic)));
            looped.map(move |&topic| ((!named.is_empty()).then_some(named), topic))
        })
    }
}

/// A topic that is written and read is internal if it exists under the prefix, and not (or not as the application's own) without it.
///
/// Before the first start of the application none of its topics exist; then the name decides.
fn internal_topics(names: &Names<'_>, prefix: &str, cluster: &dyn Cluster) -> BTreeSet<String> {
    let full = |named: Option<&str>, topic: &str| names::internal(prefix, named, topic);
    let user = |topic: &str| cluster.exists(topic) || cluster.was_input(topic);
    let mut internal = BTreeSet::new();
    let mut unborn = BTreeSet::new();
    for (named, topic) in names.looped().filter(|(_, topic)| !user(topic)) {
        let name = full(named, topic);
        if cluster.exists(&name) && !names.all.contains(name.as_str()) {
            internal.insert(topic.to_owned());
        } else if names::is_repartition_name(topic) {
            unborn.insert(topic.to_owned());
        }
    }
    let started = || cluster.topics().into_iter().any(|topic| names::is_internal_name(prefix, topic));
    if internal.is_empty() && !started() { unborn } else { internal }
}

fn matching(pattern: &str, prefix: &str, cluster: &dyn Cluster) -> BTreeSet<String> {
    let Ok(pattern) = TopicPattern::new(pattern) else { return BTreeSet::new() };
    let topics = cluster.topics().into_iter();
    topics.filter(|topic| pattern.matches(topic) && !names::is_internal_name(prefix, topic)).map(str::to_owned).collect()
}

fn sources(block: &Block) -> impl Iterator<Item = (&[String], Option<&String>)> {
    block.nodes.iter().filter_map(|node| match &node.kind {
        NodeKind::Source { topics, pattern } => Some((topics.as_slice(), pattern.as_ref())),
        _ => None,
    })
}

fn subtopology(block: &Block) -> Subtopology {
    let (mut read, mut written, mut stores) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut source_patterns = BTreeMap::new();
    for node in &block.nodes {
        match &node.kind {
            NodeKind::Source { topics, pattern } => {
                read.extend(topics.iter().cloned());
                source_patterns.extend(pattern.iter().map(|pattern| (pattern.clone(), Vec::new())));
            }
            NodeKind::Processor { stores: touched } => stores.extend(touched.iter().cloned()),
            NodeKind::Sink { topic } => written.extend(topic.iter().cloned()),
        }
    }
    Subtopology {
        id: block.id,
        topology: block.topology.clone(),
        sources: read.into_iter().collect(),
        source_patterns,
        sinks: written.into_iter().collect(),
        stores: stores.into_iter().collect(),
    }
}
