//! From a snapshot to a decision.

use std::collections::{BTreeMap, BTreeSet};

use super::decision::{Decision, Question, Verdict};
use super::model::Model;
use super::snapshot::{Knowledge, Protocol, Snapshot};
use super::verdict;
use super::worlds::{self, Answer, Facts};
use crate::topology::copartition_hints::{Group, Hints, joined, joined_in_order};
use crate::topology::describe::{self, Description, NodeKind};
use crate::topology::infer::{self, Cluster, Inference};
use crate::topology::pattern::TopicPattern;
use crate::topology::{Stated, Topology, names};

/// Combinations of what is unsure that are tried.
const MAX_WAYS: usize = 64;

/// Sets of inputs that are rehearsed one by one; where there are more, only all inputs together are.
const MAX_REHEARSED: usize = 100;

/// Counts by full topic name.
pub type CountsByName = BTreeMap<String, u32>;

/// The topology of an application, read once, planned often.
#[derive(Clone, Debug)]
pub struct Planner {
    prefix: String,
    protocol: Protocol,
    source: Source,
    patterns: Vec<TopicPattern>,
}

#[derive(Clone, Debug)]
enum Source {
    Exact(Topology),
    Described { description: Description, stated: Stated },
}

/// The topics that a decision hangs on.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Full names; not all of them need to exist.
    pub names: BTreeSet<String>,
    /// Patterns whose matches are inputs as well.
    pub patterns: Vec<TopicPattern>,
}

/// One topology that the sources allow, worked out.
pub(crate) struct Case {
    /// The compiled topology.
    pub model: Model,
    /// What is observed of it.
    pub facts: Facts,
    /// What follows.
    pub answer: Answer,
}

impl Planner {
    /// Takes the topology of a snapshot; its counts are not looked at. The error says what cannot be read.
    pub fn new(snapshot: &Snapshot) -> Result<Self, String> {
        let (source, patterns) = match (&snapshot.topology, &snapshot.describe) {
            (Some(_), Some(_)) => return Err("both topology and describe are given; give one of them".to_owned()),
            (None, None) => return Err("neither topology nor describe is given; give one of them".to_owned()),
            (Some(_), None) if snapshot.stated.is_some() => {
                return Err("stated belongs to describe; with topology, state it there".to_owned());
            }
            (Some(topology), None) => {
                let written = topology.subtopologies.iter().flat_map(|subtopology| subtopology.source_patterns.keys());
                let patterns = written.map(|pattern| TopicPattern::new(pattern)).collect::<Result<_, _>>()?;
                (Source::Exact(topology.clone()), patterns)
            }
            (None, Some(text)) => {
                let description = describe::parse(text).map_err(|error| format!("describe: {error}"))?;
                let patterns = infer::patterns(&description)?;
                (Source::Described { description, stated: snapshot.stated.clone().unwrap_or_default() }, patterns)
            }
        };
        Ok(Self { prefix: snapshot.prefix().to_owned(), protocol: snapshot.protocol, source, patterns })
    }

    /// What the application reads, writes and stores, as a text that every version of the program makes the same: another one is
    /// another topology.
    pub fn shape(&self) -> String {
        let shape = match &self.source {
            Source::Exact(topology) => serde_json::to_string(&(&topology.subtopologies, &topology.repartition_topics)),
            Source::Described { description, .. } => serde_json::to_string(&description.blocks),
        };
        format!("{} {}", self.prefix, shape.unwrap_or_default())
    }

    /// Everything that a plan hangs on beside counts and limits: the shape, and what is stated about it.
    pub fn identity(&self) -> String {
        let stated = match &self.source {
            Source::Exact(topology) => serde_json::to_string(topology),
            Source::Described { stated, .. } => serde_json::to_string(stated),
        };
        format!("{} {:?} {}", self.shape(), self.protocol, stated.unwrap_or_default())
    }

    /// Works out which topics have to grow.
    ///
    /// `baseline`: counts of the inputs when every internal topic last had exactly the expected count. `partitions`: present counts.
    pub fn decide(&self, baseline: &CountsByName, partitions: &CountsByName, knowledge: &Knowledge) -> Decision {
        if self.protocol == Protocol::Streams {
            return verdict::unsupported(
                "the application uses the streams group protocol, whose counts the broker works out by other rules; \
                 streams groups are not planned yet, so grow its internal topics by hand",
            );
        }
        let counts = Counts { baseline, partitions };
        let cases = self.variants(&counts).into_iter().map(|topology| self.work_out(&topology, &counts, knowledge)).collect();
        verdict::decide(cases, knowledge)
    }

    fn work_out(&self, topology: &Topology, counts: &Counts<'_>, knowledge: &Knowledge) -> Case {
        let model = Model::compile(&self.prefix, topology, counts.topics().into_iter());
        let facts = Facts::of(&model, counts.baseline, counts.partitions, &knowledge.not_pinned);
        let answer = worlds::answer(&model, &facts);
        Case { model, facts, answer }
    }

    /// Every topology that the sources allow: one, unless copartition groups are unsure.
    fn variants(&self, counts: &Counts<'_>) -> Vec<Topology> {
        let Inference { topology, hints } = match &self.source {
            Source::Exact(topology) => return vec![topology.clone()],
            Source::Described { description, stated } => infer::infer(description, &self.prefix, stated, counts),
        };
        let Some(hints) = hints else { return vec![topology] };
        let mut variants: Vec<Topology> = Vec::new();
        for groups in ways(&hints) {
            let reversed: Vec<Group> = groups.iter().rev().cloned().collect();
            for copartition_groups in [joined(groups.clone()), joined_in_order(&groups), joined_in_order(&reversed)] {
                let known = variants.iter().any(|variant| same_groups(&variant.copartition_groups, &copartition_groups));
                if !known {
                    variants.push(Topology { copartition_groups, ..topology.clone() });
                }
            }
        }
        variants
    }

    /// The topics that a decision hangs on.
    pub fn watched(&self) -> Watched {
        let mut watched = BTreeSet::new();
        match &self.source {
            Source::Exact(topology) => {
                let model = Model::compile(&self.prefix, topology, std::iter::empty());
                watched.extend(model.topics.into_iter().map(|topic| topic.name));
                watched.extend(model.changelogs.into_iter().map(|log| log.name));
            }
            Source::Described { description, .. } => {
                for block in description.blocks.iter().filter(|block| !block.global) {
                    let named = block.topology.as_deref();
                    for node in &block.nodes {
                        match &node.kind {
                            NodeKind::Source { topics, .. } => {
                                watched.extend(topics.iter().cloned());
                                watched.extend(topics.iter().map(|topic| names::internal(&self.prefix, named, topic)));
                            }
                            NodeKind::Processor { stores } => {
                                watched.extend(stores.iter().map(|store| names::changelog(&self.prefix, named, store)));
                            }
                            NodeKind::Sink { .. } => {}
                        }
                    }
                }
            }
        }
        Watched { names: watched, patterns: self.patterns.clone() }
    }

    /// An internal topic of the topology, by full name, if it has some and none of them exists: repartition topics, and changelogs of
    /// all stores that are not known to have none.
    pub fn lacks_internal_topics(&self, partitions: &CountsByName) -> Option<String> {
        let empty = CountsByName::new();
        let counts = Counts { baseline: &empty, partitions };
        let topology = self.variants(&counts).into_iter().next()?;
        let model = Model::compile(&self.prefix, &topology, counts.topics().into_iter());
        let repartition = model.topics.into_iter().filter(|topic| topic.repartition).map(|topic| topic.name);
        let internal: BTreeSet<String> = repartition.chain(model.changelogs.into_iter().map(|log| log.name)).collect();
        let example = internal.first()?.clone();
        (!internal.iter().any(|topic| partitions.contains_key(topic))).then_some(example)
    }

    /// True for a topic that does not exist as far as the other topics show, so that its count need not be known: a name of a
    /// description is either a user topic or, with the prefix, an internal one, and the other of the two is there.
    pub fn is_ruled_out(&self, topic: &str, partitions: &CountsByName) -> bool {
        let Source::Described { description, .. } = &self.source else { return false };
        description.blocks.iter().any(|block| {
            let named = block.topology.as_deref();
            let topics = block.nodes.iter().flat_map(|node| match &node.kind {
                NodeKind::Source { topics, .. } => topics.as_slice(),
                _ => &[],
            });
            topics.into_iter().any(|raw| {
                let full = names::internal(&self.prefix, named, raw);
                (topic == raw && partitions.contains_key(&full)) || (topic == full && partitions.contains_key(raw))
            })
        })
    }

    /// The questions that would hold up an expansion: each set of inputs that must stay equal is taken to twice its width, and all
    /// inputs together, from the present counts as a steady state.
    pub fn rehearse(&self, partitions: &CountsByName, knowledge: &Knowledge) -> Vec<Question> {
        let inputs: CountsByName = self.inputs(partitions);
        let mut questions: Vec<Question> = Vec::new();
        for class in self.classes(partitions, &inputs) {
            let mut grown = partitions.clone();
            grown
                .extend(class.iter().filter_map(|input| inputs.get(input).map(|count| (input.clone(), count.saturating_mul(2)))));
            let unlimited = Knowledge { max_new_partitions: u32::MAX, ..knowledge.clone() };
            let decision = self.decide(&inputs, &grown, &unlimited);
            if decision.decision == Verdict::Blocked {
                questions
                    .extend(decision.questions.into_iter().filter(|question| !questions.contains(question)).collect::<Vec<_>>());
            }
        }
        questions
    }

    /// Topics that a subtopology with state reads, by full name: their keys must not move away from that state.
    pub fn read_by_state(&self, partitions: &CountsByName) -> BTreeSet<String> {
        let empty = CountsByName::new();
        let counts = Counts { baseline: &empty, partitions };
        let models = self.variants(&counts).into_iter().take(1);
        let models = models.map(|topology| Model::compile(&self.prefix, &topology, counts.topics().into_iter()));
        models
            .flat_map(|model| {
                let stateful: BTreeSet<usize> = model.changelogs.iter().map(|log| log.subtopology).collect();
                let read = move |topic: &super::model::Topic| topic.readers.iter().any(|reader| stateful.contains(reader));
                model.topics.into_iter().filter(read)
            })
            .map(|topic| topic.name)
            .filter(|name| partitions.contains_key(name))
            .collect()
    }

    /// The inputs that exist, with their counts: source topics that Kafka Streams did not create.
    pub fn inputs(&self, partitions: &CountsByName) -> CountsByName {
        let empty = CountsByName::new();
        let counts = Counts { baseline: &empty, partitions };
        let models = self
            .variants(&counts)
            .into_iter()
            .take(1)
            .map(|topology| Model::compile(&self.prefix, &topology, counts.topics().into_iter()));
        let topics = models.flat_map(|model| model.topics).filter(|topic| !topic.repartition);
        topics.filter_map(|topic| partitions.get(&topic.name).map(|&count| (topic.name, count))).collect()
    }

    /// Sets of inputs that copartition groups keep equal, and the set of all.
    fn classes(&self, partitions: &CountsByName, inputs: &CountsByName) -> Vec<BTreeSet<String>> {
        let counts = Counts { baseline: inputs, partitions };
        let mut groups: Vec<Vec<String>> =
            self.variants(&counts).into_iter().flat_map(|topology| topology.copartition_groups).collect();
        groups.iter_mut().for_each(|group| group.retain(|topic| inputs.contains_key(topic)));
        groups.extend(inputs.keys().map(|input| vec![input.clone()]));
        groups.retain(|group| !group.is_empty());
        let mut classes: Vec<BTreeSet<String>> = joined(groups).into_iter().map(|group| group.into_iter().collect()).collect();
        let all = inputs.keys().cloned().collect();
        if classes.len() > MAX_REHEARSED {
            classes.clear();
        }
        if classes.len() != 1 {
            classes.push(all);
        }
        classes
    }
}

/// Every combination of what is unsure; where there are too many, what deviates from the likeliest in one choice.
fn ways(hints: &Hints) -> Vec<Vec<Group>> {
    let likeliest: Vec<&Vec<Group>> = hints.choices.iter().filter_map(|choice| choice.first()).collect();
    let mut ways: Vec<Vec<&Vec<Group>>> = vec![Vec::new()];
    for choice in &hints.choices {
        ways = ways
            .iter()
            .flat_map(|way| choice.iter().map(move |groups| [way.as_slice(), &[groups]].concat()))
            .take(MAX_WAYS + 1)
            .collect();
    }
    if ways.len() > MAX_WAYS {
        ways = vec![likeliest.clone()];
        for (at, choice) in hints.choices.iter().enumerate() {
            for groups in choice.iter().skip(1) {
                let deviating = likeliest.iter().enumerate().map(|(other, likely)| if other == at { groups } else { *likely });
                ways.push(deviating.collect());
            }
        }
    }
    ways.into_iter().map(|way| hints.sure.iter().chain(way.into_iter().flatten()).cloned().collect()).collect()
}

fn same_groups(a: &[Group], b: &[Group]) -> bool {
    a.len() == b.len() && a.iter().all(|group| b.contains(group))
}

struct Counts<'a> {
    baseline: &'a CountsByName,
    partitions: &'a CountsByName,
}

impl Cluster for Counts<'_> {
    fn exists(&self, topic: &str) -> bool {
        self.partitions.contains_key(topic)
    }

    fn was_input(&self, topic: &str) -> bool {
        self.baseline.contains_key(topic)
    }

    fn topics(&self) -> Vec<&str> {
        self.partitions.keys().chain(self.baseline.keys()).map(String::as_str).collect()
    }
}
