//! Copartition groups, as far as the text of `Topology#describe()` shows them.
//!
//! A join lets processors behind different sources share a store, so their sources must have equal counts. A processor of the user's
//! may share a store without a join, and Kafka Streams forgets the sources of a table behind `cogroup` and `suppress`; there the text
//! is no proof either way.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use regex::Regex;

use super::describe::{Block, Description, Node, NodeKind};

/// Groups of raw topic names, each with two topics or more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Groups that are there.
    pub sure: Vec<Vec<String>>,
    /// Groups that may be there.
    pub unsure: Vec<Vec<String>>,
}

/// Finds the topics that a pattern source reads.
pub type Matching<'a> = dyn Fn(&str) -> BTreeSet<String> + 'a;

/// Collects the groups of all subtopologies. `internal` are the raw names of repartition topics.
pub fn collect(description: &Description, internal: &BTreeSet<String>, matching: &Matching<'_>) -> Hints {
    let blocks: Vec<Graph<'_>> =
        description.blocks.iter().filter(|block| !block.global).map(|block| Graph::of(block, matching)).collect();
    let mut before: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for graph in &blocks {
        graph.add_topics_before_sinks(internal, &mut before);
    }
    let mut hints = Hints::default();
    for graph in &blocks {
        graph.collect(&before, &mut hints);
    }
    hints.sure = joined(std::mem::take(&mut hints.sure));
    hints
}

/// Nodes of one subtopology and the source nodes above each.
struct Graph<'a> {
    nodes: &'a [Node],
    /// Topics of each source node.
    topics: HashMap<&'a str, BTreeSet<String>>,
    /// Source nodes above each node.
    above: Vec<BTreeSet<&'a str>>,
    /// The same, as far as Kafka Streams keeps track of them.
    tracked: Vec<BTreeSet<&'a str>>,
}

impl<'a> Graph<'a> {
    fn of(block: &'a Block, matching: &Matching<'_>) -> Self {
        let mut topics = HashMap::new();
        for node in &block.nodes {
            if let NodeKind::Source { topics: fixed, pattern } = &node.kind {
                let mut all: BTreeSet<String> = fixed.iter().cloned().collect();
                all.extend(pattern.iter().flat_map(|pattern| matching(pattern)));
                topics.insert(node.name.as_str(), all);
            }
        }
        Self { nodes: &block.nodes, topics, above: sources_above(&block.nodes, &|_| false), tracked: sources_above(&block.nodes, &forgets) }
    }

    /// Topics of source nodes.
    fn topics<'g>(&'g self, sources: &'g BTreeSet<&str>) -> impl Iterator<Item = &'g str> + 'g {
        sources.iter().filter_map(|source| self.topics.get(source)).flatten().map(String::as_str)
    }

    /// For each repartition topic that is not the user's own `repartition()`: the topics that are read to fill it.
    fn add_topics_before_sinks<'g>(&'g self, internal: &BTreeSet<String>, before: &mut BTreeMap<&'g str, BTreeSet<&'g str>>) {
        for (node, above) in self.nodes.iter().zip(&self.above) {
            if let NodeKind::Sink { topic: Some(topic) } = &node.kind
                && internal.contains(topic)
                && !topic.starts_with("KSTREAM-REPARTITION-")
            {
                before.entry(topic).or_default().extend(self.topics(above));
            }
        }
    }

    fn collect(&self, before: &BTreeMap<&str, BTreeSet<&str>>, hints: &mut Hints) {
        for users in self.users_of_stores().into_values() {
            let (cogrouped, others): (Vec<usize>, Vec<usize>) =
                users.into_iter().partition(|&user| self.name(user).starts_with("COGROUPKSTREAM-AGGREGATE-"));
            self.collect_cogrouped(&cogrouped, before, hints);
            self.collect_shared(&others, hints);
        }
    }

    /// `cogroup` ties the sources before the repartition that it makes itself, not that repartition.
    fn collect_cogrouped(&self, users: &[usize], before: &BTreeMap<&str, BTreeSet<&str>>, hints: &mut Hints) {
        if users.len() < 2 {
            return;
        }
        let mut group: BTreeSet<&str> = BTreeSet::new();
        for topic in users.iter().filter_map(|&user| self.above.get(user)).flat_map(|above| self.topics(above)) {
            match before.get(topic).filter(|topics| !topics.is_empty()) {
                Some(topics) => group.extend(topics),
                None => _ = group.insert(topic),
            }
        }
        push(&mut hints.sure, group);
    }

    /// Processors that share a store, behind different sources or with the name of a join.
    fn collect_shared(&self, users: &[usize], hints: &mut Hints) {
        let tracked: BTreeSet<&BTreeSet<&str>> = users.iter().filter_map(|&user| self.tracked.get(user)).collect();
        let join = users.iter().any(|&user| is_join(self.name(user)));
        if tracked.len() < 2 && !join {
            return;
        }
        let group = tracked.into_iter().flat_map(|sources| self.topics(sources)).collect();
        let sure = join && users.iter().all(|&user| is_made_by_dsl(self.name(user)));
        push(if sure { &mut hints.sure } else { &mut hints.unsure }, group);
    }

    fn users_of_stores(&self) -> BTreeMap<&'a str, Vec<usize>> {
        let mut users: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if let NodeKind::Processor { stores } = &node.kind {
                stores.iter().for_each(|store| users.entry(store).or_default().push(index));
            }
        }
        users
    }

    fn name(&self, node: usize) -> &'a str {
        self.nodes.get(node).map_or("", |node| node.name.as_str())
    }
}

/// What comes out of `cogroup` has lost its sources.
fn forgets(node: &str) -> bool {
    node.starts_with("COGROUPKSTREAM-MERGE-")
}

/// Source nodes above each node; nothing comes through a node that `blocks`.
fn sources_above<'a>(nodes: &'a [Node], blocks: &dyn Fn(&str) -> bool) -> Vec<BTreeSet<&'a str>> {
    let place: HashMap<&str, usize> = nodes.iter().enumerate().map(|(index, node)| (node.name.as_str(), index)).collect();
    let mut above: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); nodes.len()];
    let mut open: Vec<usize> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        if let (NodeKind::Source { .. }, Some(above)) = (&node.kind, above.get_mut(index)) {
            above.insert(&node.name);
            open.push(index);
        }
    }
    while let Some(index) = open.pop() {
        let (Some(node), Some(from)) = (nodes.get(index), above.get(index).cloned()) else { continue };
        if blocks(&node.name) {
            continue;
        }
        for &successor in node.successors.iter().filter_map(|name| place.get(name.as_str())) {
            if let Some(to) = above.get_mut(successor) {
                let before = to.len();
                to.extend(&from);
                if to.len() > before {
                    open.push(successor);
                }
            }
        }
    }
    above
}

fn push(groups: &mut Vec<Vec<String>>, group: BTreeSet<&str>) {
    if group.len() > 1 {
        groups.push(group.into_iter().map(str::to_owned).collect());
    }
}

/// Joins groups that share a topic.
pub fn joined(groups: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let mut all: Vec<BTreeSet<String>> = Vec::new();
    for group in groups {
        let mut group: BTreeSet<String> = group.into_iter().collect();
        let (apart, touching): (Vec<_>, Vec<_>) = all.into_iter().partition(|other| other.is_disjoint(&group));
        touching.into_iter().for_each(|other| group.extend(other));
        all = apart;
        all.push(group);
    }
    let mut groups: Vec<Vec<String>> = all.into_iter().map(|group| group.into_iter().collect()).collect();
    groups.sort();
    groups
}

fn is_join(node: &str) -> bool {
    static JOIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let generated = "^KSTREAM-(LEFT)?JOIN|^KSTREAM-OUTER|^KTABLE-(JOIN|OUTER|LEFT|MERGE|FK)|^COGROUPKSTREAM";
        let named = "-(this|other|outer-this|outer-other)-join$|-(this|other)-windowed$";
        Regex::new(&format!("{generated}|{named}")).ok()
    });
    JOIN.as_ref().is_some_and(|regex| regex.is_match(node))
}

fn is_made_by_dsl(node: &str) -> bool {
    static DSL: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let generated = "^(KSTREAM|KTABLE|COGROUPKSTREAM)-";
        let named = "-(this|other|outer-this|outer-other)-join$|-(this|other)-windowed$|-merge$|-join$";
        Regex::new(&format!("{generated}|{named}")).ok()
    });
    DSL.as_ref().is_some_and(|regex| regex.is_match(node)) && !node.starts_with("KSTREAM-PROCESSOR") && !node.starts_with("KTABLE-PROCESSOR")
}
