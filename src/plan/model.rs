//! The topology, compiled: topics are numbers, only what has tasks is left.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::topology::pattern::TopicPattern;
use crate::topology::{Pinned, Topology, names};

/// A topology ready to be worked out.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// Every topic that a subtopology with tasks reads.
    pub topics: Vec<Topic>,
    /// Subtopologies that have tasks.
    pub subtopologies: Vec<Subtopology>,
    /// Changelogs that may exist.
    pub changelogs: Vec<Changelog>,
    /// Copartition groups in order of enforcement, each with at least one topic.
    pub groups: Vec<Vec<usize>>,
    /// What is stated about explicit counts.
    pub pins: Pins,
    /// Names in copartition groups and pins that no subtopology reads.
    pub unknown_names: Vec<String>,
}

/// A source topic.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    /// Name on the broker.
    pub name: String,
    /// Name in the topology.
    pub raw: String,
    /// Made by Kafka Streams, by a subtopology that writes to it.
    pub repartition: bool,
    /// Found by a pattern: its absence is no error.
    pub optional: bool,
    /// Subtopologies that write to it; only kept for repartition topics.
    pub writers: Vec<usize>,
    /// Subtopologies that read it.
    pub readers: Vec<usize>,
}

/// A subtopology with at least one source topic.
#[derive(Clone, Debug)]
pub(crate) struct Subtopology {
    /// `0`, or `name/0` in a named topology.
    pub id: String,
    /// Its named topology; empty where there is none.
    pub named: String,
    /// Topics it reads.
    pub sources: Vec<usize>,
    /// Repartition topics it writes.
    pub sinks: Vec<usize>,
}

/// The changelog of a store.
#[derive(Clone, Debug)]
pub(crate) struct Changelog {
    /// Name on the broker.
    pub name: String,
    /// The subtopology that owns the store.
    pub subtopology: usize,
}

/// What is stated about repartition topics with an explicit count.
#[derive(Clone, Debug)]
pub(crate) enum Pins {
    /// Nothing.
    Unknown,
    /// These and no others; a count, or the observed one.
    Stated(Vec<(usize, Option<u32>)>),
}

impl Model {
    /// Compiles a topology. `existing` are the topics that patterns may match: those that are there, or were at the baseline.
    pub fn compile<'a>(prefix: &str, topology: &Topology, existing: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut builder = Builder::new(prefix, topology);
        for subtopology in &topology.subtopologies {
            builder.add(subtopology, existing.clone());
        }
        builder.finish()
    }
}

struct Builder<'a> {
    prefix: &'a str,
    topology: &'a Topology,
    repartition: BTreeSet<&'a str>,
    global: BTreeSet<&'a str>,
    unlogged: BTreeSet<&'a str>,
    /// Raw name -> topics of that name; several where named topologies use one name.
    by_raw: BTreeMap<String, BTreeSet<usize>>,
    by_name: HashMap<String, usize>,
    topics: Vec<Topic>,
    subtopologies: Vec<Subtopology>,
    /// Full names that each subtopology writes.
    sinks: Vec<Vec<String>>,
    changelogs: Vec<Changelog>,
}

impl<'a> Builder<'a> {
    fn new(prefix: &'a str, topology: &'a Topology) -> Self {
        let set = |names: &'a [String]| names.iter().map(String::as_str).collect::<BTreeSet<_>>();
        let mut unlogged = set(&topology.logging_disabled);
        unlogged.extend(topology.source_changelogs.keys().map(String::as_str));
        Self {
            prefix,
            topology,
            repartition: set(&topology.repartition_topics),
            global: set(&topology.global_topics),
            unlogged,
            by_raw: BTreeMap::new(),
            by_name: HashMap::new(),
            topics: Vec::new(),
            subtopologies: Vec::new(),
            sinks: Vec::new(),
            changelogs: Vec::new(),
        }
    }

    fn add<'n>(&mut self, subtopology: &'a crate::topology::Subtopology, existing: impl Iterator<Item = &'n str> + Clone) {
        let named = subtopology.topology.as_deref();
        let index = self.subtopologies.len();
        let matched = self.matched(subtopology, existing);
        let mut sources = BTreeSet::new();
        for raw in subtopology.sources.iter().chain(&matched) {
            if !self.global.contains(raw.as_str()) {
                sources.insert(self.intern(raw, named, matched.contains(raw)));
            }
        }
        if sources.is_empty() {
            return; // it only feeds a global store: no tasks, no internal topics
        }
        for store in subtopology.stores.iter().filter(|store| !self.unlogged.contains(store.as_str())) {
            self.changelogs.push(Changelog { name: names::changelog(self.prefix, named, store), subtopology: index });
        }
        let sinks = subtopology.sinks.iter().filter(|raw| self.repartition.contains(raw.as_str()));
        self.sinks.push(sinks.map(|raw| names::internal(self.prefix, named, raw)).collect());
        let id = named.map_or_else(|| subtopology.id.to_string(), |name| format!("{name}/{}", subtopology.id));
        let named = named.unwrap_or_default().to_owned();
        self.subtopologies.push(Subtopology { id, named, sources: sources.into_iter().collect(), sinks: Vec::new() });
    }

    /// Topics of the pattern sources: those that stand in the topology, and those that exist and match, the application's own left out.
    fn matched<'n>(
        &self,
        subtopology: &crate::topology::Subtopology,
        existing: impl Iterator<Item = &'n str> + Clone,
    ) -> BTreeSet<String> {
        let mut matched = BTreeSet::new();
        for (regex, topics) in &subtopology.source_patterns {
            matched.extend(topics.iter().cloned());
            if let Ok(pattern) = TopicPattern::new(regex) {
                let own = |name: &str| names::is_internal_name(self.prefix, name);
                matched.extend(existing.clone().filter(|name| pattern.matches(name) && !own(name)).map(str::to_owned));
            }
        }
        matched
    }

    fn intern(&mut self, raw: &str, named: Option<&str>, optional: bool) -> usize {
        let repartition = self.repartition.contains(raw);
        let name = if repartition { names::internal(self.prefix, named, raw) } else { raw.to_owned() };
        let next = self.topics.len();
        let id = *self.by_name.entry(name.clone()).or_insert(next);
        if id == next {
            let topic = Topic { name, raw: raw.to_owned(), repartition, optional, writers: Vec::new(), readers: Vec::new() };
            self.topics.push(topic);
            self.by_raw.entry(raw.to_owned()).or_default().insert(id);
        }
        id
    }

    fn finish(mut self) -> Model {
        for (index, subtopology) in self.subtopologies.iter_mut().enumerate() {
            for &source in &subtopology.sources {
                if let Some(topic) = self.topics.get_mut(source) {
                    topic.readers.push(index);
                }
            }
            let written: BTreeSet<usize> =
                self.sinks.get(index).into_iter().flatten().filter_map(|name| self.by_name.get(name).copied()).collect();
            for &sink in &written {
                if let Some(topic) = self.topics.get_mut(sink) {
                    topic.writers.push(index);
                }
            }
            subtopology.sinks = written.into_iter().collect();
        }
        let mut unknown_names = BTreeSet::new();
        let groups = self.groups(&mut unknown_names);
        let pins = self.pins(&mut unknown_names);
        Model {
            topics: self.topics,
            subtopologies: self.subtopologies,
            changelogs: self.changelogs,
            groups,
            pins,
            unknown_names: unknown_names.into_iter().collect(),
        }
    }

    /// Topics that a raw name of the topology means; the full name is understood as well.
    fn topics_called(&self, raw: &str) -> Vec<usize> {
        match self.by_raw.get(raw) {
            Some(ids) => ids.iter().copied().collect(),
            None => self.by_name.get(raw).copied().into_iter().collect(),
        }
    }

    /// A group holds within one named topology, so names that several of them use make a group for each.
    fn groups(&self, unknown_names: &mut BTreeSet<String>) -> Vec<Vec<usize>> {
        let mut groups = Vec::new();
        for group in &self.topology.copartition_groups {
            let mut by_topology: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
            for raw in group {
                let topics = self.topics_called(raw);
                if topics.is_empty() && !self.global.contains(raw.as_str()) {
                    unknown_names.insert(raw.clone());
                }
                for id in topics {
                    for reader in self.topics.get(id).into_iter().flat_map(|topic| &topic.readers) {
                        let named = self.subtopologies.get(*reader).map_or("", |subtopology| subtopology.named.as_str());
                        by_topology.entry(named).or_default().insert(id);
                    }
                }
            }
            groups.extend(by_topology.into_values().map(|ids| ids.into_iter().collect()));
        }
        groups
    }

    fn pins(&self, unknown_names: &mut BTreeSet<String>) -> Pins {
        let stated: Vec<(&str, Option<u32>)> = match &self.topology.pinned {
            None => return Pins::Unknown,
            Some(Pinned::Names(names)) => names.iter().map(|name| (name.as_str(), None)).collect(),
            Some(Pinned::Counts(counts)) => counts.iter().map(|(name, count)| (name.as_str(), *count)).collect(),
        };
        let mut pins = Vec::new();
        for (raw, count) in stated {
            let mut known = false;
            for id in self.topics_called(raw) {
                if self.topics.get(id).is_some_and(|topic| topic.repartition) {
                    known = true;
                    pins.push((id, count));
                }
            }
            if !known {
                unknown_names.insert(raw.to_owned());
            }
        }
        Pins::Stated(pins)
    }
}
