//! Copartition groups, as far as the text of `Topology#describe()` shows them.
//!
//! A join lets processors behind different sources share a store, so their sources must have equal counts. A processor of the user's
//! may share a store without a join, and Kafka Streams forgets the sources of a table behind `cogroup` and `suppress`; there the text
//! is no proof either way.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use regex::Regex;

use super::describe::{Block, Description, Node, NodeKind};
use super::names;

/// Raw names of topics that must have equal counts; two or more, sorted.
pub type Group = Vec<String>;

/// What the text shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Groups that are there.
    pub sure: Vec<Group>,
    /// What the text leaves open: for each choice, one of its alternatives holds, each a list of groups. The likeliest comes first.
    pub choices: Vec<Vec<Vec<Group>>>,
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
        let mut of_block = Hints::default();
        graph.collect(&before, &mut of_block);
        of_block.doubt_shared_repartition(internal);
        hints.sure.append(&mut of_block.sure);
        hints.choices.append(&mut of_block.choices);
    }
    hints
}

impl Hints {
    fn add_sure(&mut self, group: BTreeSet<&str>) {
        let group = owned(group);
        if group.len() > 1 && !self.sure.contains(&group) {
            self.sure.push(group);
        }
    }

    /// One of these groups, or of the groups left of them, holds.
    fn add_choice(&mut self, alternatives: impl IntoIterator<Item = BTreeSet<String>>) {
        let mut choice: Vec<Vec<Group>> = Vec::new();
        for group in alternatives {
            let groups: Vec<Group> = (group.len() > 1).then(|| group.into_iter().collect()).into_iter().collect();
            if !choice.contains(&groups) {
                choice.push(groups);
            }
        }
        self.add_alternatives(choice);
    }

    fn add_alternatives(&mut self, mut choice: Vec<Vec<Group>>) {
        if choice.len() > 1 && !self.choices.contains(&choice) {
            self.choices.push(choice);
        } else if choice.len() == 1 {
            self.sure.extend(choice.pop().into_iter().flatten());
        }
    }

    /// A stream that is re-keyed once and joined several times shares one repartition topic; Kafka Streams then knows of it in the
    /// first join only (without `merge.repartition.topics`) or in all (with it).
    fn doubt_shared_repartition(&mut self, internal: &BTreeSet<String>) {
        for topic in internal.iter().filter(|topic| !topic.starts_with(REPARTITION)) {
            let (shared, sure): (Vec<Group>, Vec<Group>) = self.sure.drain(..).partition(|group| group.contains(topic));
            self.sure = sure;
            if shared.len() < 2 {
                self.sure.extend(shared);
                continue;
            }
            let without = |group: &Group| group.iter().filter(|member| *member != topic).cloned().collect::<BTreeSet<_>>();
            let mut choice = vec![shared.clone()];
            for (first, group) in shared.iter().enumerate() {
                let others = || shared.iter().enumerate().filter(|(other, _)| *other != first).map(|(_, group)| without(group));
                let apart = others().filter(|group| group.len() > 1).map(|group| group.into_iter().collect());
                choice.push(std::iter::once(group.clone()).chain(apart).collect());
                let together: BTreeSet<String> = others().flatten().collect();
                if shared.len() > 2 && together.len() > 1 {
                    choice.push(vec![group.clone(), together.into_iter().collect()]);
                }
            }
            self.add_alternatives(choice);
        }
    }
}

/// How the repartition topics of an unnamed `repartition()` begin.
const REPARTITION: &str = "KSTREAM-REPARTITION-";

/// Nodes of one subtopology and the source nodes above each.
struct Graph<'a> {
    nodes: &'a [Node],
    /// Topics of each source node.
    topics: HashMap<&'a str, BTreeSet<String>>,
    /// Source nodes above each node.
    above: Vec<BTreeSet<&'a str>>,
    /// The same, as far as Kafka Streams keeps track of them.
    tracked: Vec<BTreeSet<&'a str>>,
    /// The same, if processors that look like a named `suppress` are one.
    suppressed: Vec<BTreeSet<&'a str>>,
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
        let nodes = &block.nodes;
        Self {
            nodes,
            topics,
            above: sources_above(nodes, &|_| false),
            tracked: sources_above(nodes, &forgets),
            suppressed: sources_above(nodes, &|node| forgets(node) || may_be_suppress(node)),
        }
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
                && !topic.starts_with(REPARTITION)
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

    /// `cogroup` ties the sources before the repartition that it makes itself, not that repartition. A topic with the user's own name
    /// may as well come from a `repartition()`, which is a source of its own.
    fn collect_cogrouped(&self, users: &[usize], before: &BTreeMap<&str, BTreeSet<&str>>, hints: &mut Hints) {
        if users.len() < 2 {
            return;
        }
        let topics: BTreeSet<&str> =
            users.iter().filter_map(|&user| self.above.get(user)).flat_map(|above| self.topics(above)).collect();
        let behind = |topic: &str| before.get(topic).filter(|topics| !topics.is_empty());
        let group = |own: &dyn Fn(&str) -> bool| {
            let mut group = BTreeSet::new();
            for &topic in &topics {
                match behind(topic).filter(|_| !own(topic)) {
                    Some(topics) => group.extend(topics.iter().map(|&topic| topic.to_owned())),
                    None => _ = group.insert(topic.to_owned()),
                }
            }
            group
        };
        hints.add_choice([group(&|_| false), group(&names::may_be_pinned)]);
    }

    /// Processors that share a store, behind different sources or with the name of a join.
    fn collect_shared(&self, users: &[usize], hints: &mut Hints) {
        let sets = |of: &'_ [BTreeSet<&'a str>]| users.iter().filter_map(|&user| of.get(user).cloned()).collect::<BTreeSet<_>>();
        let tracked = sets(&self.tracked);
        let suppressed = sets(&self.suppressed);
        let join = users.iter().any(|&user| is_join(self.name(user)));
        if tracked.len() < 2 && suppressed.len() < 2 && !join {
            return;
        }
        let group: BTreeSet<&str> = tracked.iter().flat_map(|sources| self.topics(sources)).collect();
        let without: BTreeSet<&str> = suppressed.iter().flat_map(|sources| self.topics(sources)).collect();
        let made_by_dsl = users.iter().filter(|&&user| is_made_by_dsl(self.name(user))).count();
        // of two users one fills the store, so beside the reading side of a join the other one does
        let table_and_reader = users.len() == 2 && users.iter().any(|&user| reads_other_side(self.name(user)));
        let sure = join && (made_by_dsl == users.len() || table_and_reader);
        let choices = [Some(group.clone()), (without != group).then(|| without.clone()), (!sure).then(BTreeSet::new)];
        if sure && without == group {
            hints.add_sure(group);
        } else {
            hints.add_choice(choices.into_iter().flatten().map(|group| owned(group).into_iter().collect()));
        }
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

/// What comes out of `cogroup` or `suppress` has lost its sources.
fn forgets(node: &Node) -> bool {
    node.name.starts_with("COGROUPKSTREAM-MERGE-") || node.name.starts_with("KTABLE-SUPPRESS-")
}

/// `Suppressed.withName(x)` makes a node `x` with a store `x-store`.
fn may_be_suppress(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Processor { stores } => stores.iter().any(|store| store.strip_suffix("-store") == Some(&node.name)),
        _ => false,
    }
}

/// Source nodes above each node; nothing comes through a node that `blocks`.
fn sources_above<'a>(nodes: &'a [Node], blocks: &dyn Fn(&Node) -> bool) -> Vec<BTreeSet<&'a str>> {
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
        if blocks(node) {
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

fn owned(group: BTreeSet<&str>) -> Group {
    group.into_iter().map(str::to_owned).collect()
}

/// Joins groups as `InternalTopologyBuilder#copartitionGroups` does: one that touches several earlier ones joins the first of them only.
pub fn joined_in_order(groups: &[Group]) -> Vec<Group> {
    let mut all: Vec<BTreeSet<String>> = Vec::new();
    let mut group_of: BTreeMap<&str, usize> = BTreeMap::new();
    for group in groups {
        let known = group.iter().find_map(|topic| group_of.get(topic.as_str()).copied());
        let index = known.unwrap_or(all.len());
        match all.get_mut(index) {
            Some(known) => known.extend(group.iter().cloned()),
            None => all.push(group.iter().cloned().collect()),
        }
        group_of.extend(group.iter().map(|topic| (topic.as_str(), index)));
    }
    let mut used: Vec<usize> = group_of.into_values().collect();
    used.sort_unstable();
    used.dedup();
    used.into_iter().filter_map(|index| all.get(index)).map(|group| group.iter().cloned().collect()).collect()
}

/// Joins all groups that share a topic.
pub fn joined(groups: Vec<Group>) -> Vec<Group> {
    let mut all: Vec<BTreeSet<String>> = Vec::new();
    for group in groups {
        let mut group: BTreeSet<String> = group.into_iter().collect();
        let (apart, touching): (Vec<_>, Vec<_>) = all.into_iter().partition(|other| other.is_disjoint(&group));
        touching.into_iter().for_each(|other| group.extend(other));
        all = apart;
        all.push(group);
    }
    let mut groups: Vec<Group> = all.into_iter().map(|group| group.into_iter().collect()).collect();
    groups.sort();
    groups
}

fn is_join(node: &str) -> bool {
    static JOIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let generated = "^KSTREAM-(LEFT)?JOIN|^KSTREAM-OUTER|^KTABLE-(JOIN|OUTER|LEFT|MERGE|FK)|^COGROUPKSTREAM";
        let named =
            "-(this|other|outer-this|outer-other)-join$|-(this|other)-windowed$|-subscription-(join-foreign$|response-resolver)";
        Regex::new(&format!("{generated}|{named}")).ok()
    });
    JOIN.as_ref().is_some_and(|regex| regex.is_match(node))
}

/// The side of a join that reads a store which another processor fills.
fn reads_other_side(node: &str) -> bool {
    static READER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let generated = "^KSTREAM-(LEFT)?JOIN-|^KTABLE-(JOIN|LEFT|OUTER)(THIS|OTHER)-|^KTABLE-(LEFT)?JOIN-|^KTABLE-FK-JOIN-";
        Regex::new(&format!("{generated}|-subscription-join-foreign$|-subscription-response-resolver")).ok()
    });
    READER.as_ref().is_some_and(|regex| regex.is_match(node))
}

fn is_made_by_dsl(node: &str) -> bool {
    static DSL: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let generated = "^(KSTREAM|KTABLE|COGROUPKSTREAM)-";
        let named = "-(this|other|outer-this|outer-other)-join$|-(this|other)-windowed$|-merge$|-join$";
        Regex::new(&format!("{generated}|{named}")).ok()
    });
    DSL.as_ref().is_some_and(|regex| regex.is_match(node))
        && !node.starts_with("KSTREAM-PROCESSOR")
        && !node.starts_with("KTABLE-PROCESSOR")
}
