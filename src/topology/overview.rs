//! What is known of a topology, how well, and the JSON of `topology --output json`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::describe::{Block, Description, NodeKind};
use super::names::is_repartition_name;
use super::text_hints;
use super::{Pinned, Stated, Subtopology, Topology};

/// A topology with the certainty of each of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// Where the subtopologies come from. A text and a statement are both certain as far as they go.
    pub origin: Origin,
    /// In the order of their source.
    pub subtopologies: Vec<Part>,
    /// Raw name -> how it is known to be a repartition topic.
    pub repartition_topics: BTreeMap<String, Standing>,
    /// Topics that have to have equal counts.
    pub copartition_groups: Vec<Vec<String>>,
    /// Whether the groups are stated or inferred.
    pub groups_from: Origin,
    /// Full name of each changelog that a store may have -> whether it exists; `None` = the topics that exist are not known.
    pub changelogs: Option<BTreeMap<String, bool>>,
    /// Topics of global stores that are not in a subtopology of their own.
    pub global_topics: BTreeSet<String>,
    /// Explicit counts; `None` = not known.
    pub pinned: Option<Pinned>,
    /// What the reader should know.
    pub warnings: Vec<Notice>,
    /// What the names of internal topics start with, once the overview was compared with the topics that exist.
    prefix: Option<String>,
}

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The text of `Topology#describe()`, or what follows from it.
    #[serde(rename = "inferred")]
    Text,
    /// Configuration or snapshot file.
    Stated,
}

/// How a topic is known to be a repartition topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Written down by the operator.
    Stated,
    /// A candidate; nothing is known of the topics that exist.
    Inferred,
    /// A candidate that exists under its full name, and only there.
    Confirmed,
    /// A candidate that exists under its raw name only.
    UserTopic,
    /// A candidate that exists under both names.
    Unclear,
    /// A candidate that exists under neither name.
    Missing,
}

/// One subtopology or global store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Number within its (named) topology.
    pub id: u32,
    /// Name of the named topology.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// A global store: no tasks.
    pub global: bool,
    /// Topics read by name.
    pub sources: BTreeSet<String>,
    /// Regular expressions of pattern sources.
    pub source_patterns: BTreeSet<String>,
    /// Topics written by name.
    pub sinks: BTreeSet<String>,
    /// Whether some sink chooses its topic for each record.
    pub dynamic_sinks: bool,
    /// State stores.
    pub stores: BTreeSet<String>,
    /// Number of nodes; `None` where only a text could tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<usize>,
}

/// A remark beside the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// Stable code.
    pub code: &'static str,
    /// In words.
    pub message: String,
}

/// The JSON of `topology --output json`.
#[derive(Clone, Debug, Serialize)]
pub struct Answer<'a> {
    subtopologies: &'a [Part],
    repartition_topics: Vec<&'a str>,
    copartition_groups: &'a [Vec<String>],
    warnings: &'a [Notice],
    /// Only where more than a text was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<Known<'a>>,
}

/// How the parts of an [`Answer`] are known.
#[derive(Clone, Debug, Serialize)]
struct Known<'a> {
    repartition_topics: &'a BTreeMap<String, Standing>,
    copartition_groups: Origin,
    changelogs: Option<&'a BTreeMap<String, bool>>,
    global_topics: &'a BTreeSet<String>,
    /// Null = not known.
    pinned: Option<&'a Pinned>,
}

impl Overview {
    /// What a text tells by itself.
    pub fn of_description(description: &Description) -> Self {
        let candidates = text_hints::repartition_candidates(description);
        Self {
            origin: Origin::Text,
            subtopologies: description.blocks.iter().map(Part::of_block).collect(),
            warnings: notices(description, &candidates),
            repartition_topics: candidates.into_iter().map(|topic| (topic, Standing::Inferred)).collect(),
            copartition_groups: text_hints::copartition_groups(description),
            groups_from: Origin::Text,
            changelogs: None,
            global_topics: BTreeSet::new(),
            pinned: None,
            prefix: None,
        }
    }

    /// What the operator wrote down.
    pub fn of_topology(topology: &Topology) -> Self {
        Self {
            origin: Origin::Stated,
            subtopologies: topology.subtopologies.iter().map(Part::of_subtopology).collect(),
            repartition_topics: stated(&topology.repartition_topics),
            copartition_groups: topology.copartition_groups.clone(),
            groups_from: Origin::Stated,
            changelogs: None,
            global_topics: topology.global_topics.iter().cloned().collect(),
            pinned: topology.pinned.clone(),
            warnings: Vec::new(),
            prefix: None,
        }
    }

    /// Puts what is stated beside a text in the place of what was inferred.
    #[must_use]
    pub fn with_stated(mut self, stated_parts: &Stated) -> Self {
        if let Some(topics) = &stated_parts.repartition_topics {
            self.repartition_topics = stated(topics);
        }
        if let Some(groups) = &stated_parts.copartition_groups {
            self.copartition_groups.clone_from(groups);
            self.groups_from = Origin::Stated;
        }
        if let Some(topics) = &stated_parts.global_topics {
            self.global_topics = topics.iter().cloned().collect();
        }
        if let Some(pinned) = &stated_parts.pinned {
            self.pinned = Some(pinned.clone());
        }
        self
    }

    /// Compares the candidates with the topics that exist under `prefix` (without the dash).
    #[must_use]
    pub fn with_topics(mut self, prefix: &str, exists: impl Fn(&str) -> bool) -> Self {
        let named: BTreeSet<&str> =
            self.subtopologies.iter().flat_map(|part| part.sources.iter().chain(&part.sinks)).map(String::as_str).collect();
        for (topic, standing) in &mut self.repartition_topics {
            if *standing != Standing::Stated {
                // A full name that the topology itself mentions is a topic of the user.
                let full =
                    self.subtopologies.iter().filter(|part| part.sinks.contains(topic)).map(|part| part.full_name(prefix, topic));
                let internal = full.into_iter().any(|full| exists(&full) && !named.contains(full.as_str()));
                *standing = match (internal, exists(topic)) {
                    (true, false) => Standing::Confirmed,
                    (true, true) => Standing::Unclear,
                    (false, true) => Standing::UserTopic,
                    (false, false) => Standing::Missing,
                };
            }
        }
        let stores = self
            .subtopologies
            .iter()
            .filter(|part| !part.global)
            .flat_map(|part| part.stores.iter().map(move |store| part.full_name(prefix, &format!("{store}-changelog"))));
        self.changelogs = Some(
            stores
                .map(|topic| {
                    let found = exists(&topic);
                    (topic, found)
                })
                .collect(),
        );
        self.prefix = Some(prefix.to_owned());
        self
    }

    /// The names in the cluster of a repartition topic: one, or one for each named topology that writes it.
    /// Where the prefix is not known, `<prefix>` stands in its place.
    pub fn full_names(&self, topic: &str) -> Vec<String> {
        let prefix = self.prefix.as_deref().unwrap_or("<prefix>");
        self.subtopologies
            .iter()
            .filter(|part| part.sinks.contains(topic))
            .map(|part| part.full_name(prefix, topic))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    /// For programs.
    pub fn answer(&self) -> Answer<'_> {
        let more_than_text = self.prefix.is_some() || self.origin == Origin::Stated;
        Answer {
            subtopologies: &self.subtopologies,
            repartition_topics: self.repartition_topics.keys().map(String::as_str).collect(),
            copartition_groups: &self.copartition_groups,
            warnings: &self.warnings,
            known: more_than_text.then_some(Known {
                repartition_topics: &self.repartition_topics,
                copartition_groups: self.groups_from,
                changelogs: self.changelogs.as_ref(),
                global_topics: &self.global_topics,
                pinned: self.pinned.as_ref(),
            }),
        }
    }
}

impl Part {
    fn of_block(block: &Block) -> Self {
        let mut part = Self {
            id: block.id,
            topology: block.topology.clone(),
            global: block.global,
            sources: text_hints::source_topics(block).map(str::to_owned).collect(),
            sinks: text_hints::sink_topics(block).map(str::to_owned).collect(),
            nodes: Some(block.nodes.len()),
            ..Self::default()
        };
        for node in &block.nodes {
            match &node.kind {
                NodeKind::Source { pattern, .. } => part.source_patterns.extend(pattern.clone()),
                NodeKind::Processor { stores } => part.stores.extend(stores.iter().cloned()),
                NodeKind::Sink { topic } => part.dynamic_sinks |= topic.is_none(),
            }
        }
        part
    }

    fn of_subtopology(subtopology: &Subtopology) -> Self {
        Self {
            id: subtopology.id,
            topology: subtopology.topology.clone(),
            sources: subtopology.sources.iter().cloned().collect(),
            source_patterns: subtopology.source_patterns.keys().cloned().collect(),
            sinks: subtopology.sinks.iter().cloned().collect(),
            stores: subtopology.stores.iter().cloned().collect(),
            ..Self::default()
        }
    }

    /// `0`, or `name/0` within a named topology.
    pub fn label(&self) -> String {
        match &self.topology {
            Some(name) => format!("{name}/{}", self.id),
            None => self.id.to_string(),
        }
    }

    /// The name in the cluster of an internal topic of this subtopology (`InternalTopologyBuilder#decorateTopic`).
    fn full_name(&self, prefix: &str, raw: &str) -> String {
        match &self.topology {
            Some(name) => format!("{prefix}-{name}-{raw}"),
            None => format!("{prefix}-{raw}"),
        }
    }
}

fn stated(topics: &[String]) -> BTreeMap<String, Standing> {
    topics.iter().map(|topic| (topic.clone(), Standing::Stated)).collect()
}

fn notices(description: &Description, candidates: &BTreeSet<String>) -> Vec<Notice> {
    let mut notices = Vec::new();
    let tasks = || description.blocks.iter().filter(|block| !block.global);
    let read: BTreeSet<&str> = tasks().flat_map(text_hints::source_topics).collect();
    let written: BTreeSet<&str> = tasks().flat_map(text_hints::sink_topics).collect();
    let lonely = |topic: &&&str| is_repartition_name(topic) && !candidates.contains(**topic);
    for topic in written.iter().filter(lonely) {
        notices.push(Notice {
            code: "REPARTITION_NOT_READ",
            message: format!("{topic} is written under the name of a repartition topic, but nothing in the text reads it: it is taken for a user topic"),
        });
    }
    for topic in read.iter().filter(lonely) {
        notices.push(Notice {
            code: "REPARTITION_NOT_WRITTEN",
            message: format!("{topic} is read under the name of a repartition topic, but nothing in the text writes it: it is taken for a user topic"),
        });
    }
    for part in description.blocks.iter().map(Part::of_block) {
        if part.dynamic_sinks {
            notices.push(Notice {
                code: "DYNAMIC_SINK",
                message: format!(
                    "subtopology {} chooses a topic for each record: the text cannot tell which topics it writes",
                    part.label()
                ),
            });
        }
        for pattern in &part.source_patterns {
            notices.push(Notice {
                code: "PATTERN_SOURCE",
                message: format!(
                    "subtopology {} reads every topic that matches {pattern}: the text cannot tell which those are",
                    part.label()
                ),
            });
        }
    }
    notices
}
