//! The topology of a Kafka Streams application, as it is written in configuration and snapshots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A complete topology. Names of internal topics are raw, that is without the application's prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// The subtopologies, in any order.
    pub subtopologies: Vec<Subtopology>,
    /// Raw names of the repartition topics, including the two of each foreign-key join.
    #[serde(default)]
    pub repartition_topics: Vec<String>,
    /// Topics that Kafka Streams wants to have equal counts, in order of enforcement. Groups may overlap.
    #[serde(default)]
    pub copartition_groups: Vec<Vec<String>>,
    /// Topics of global stores: their counts never matter.
    #[serde(default)]
    pub global_topics: Vec<String>,
    /// Repartition topics with an explicit count in the application's code; absent = not known, empty = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Pinned>,
    /// Stores without a changelog.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logging_disabled: Vec<String>,
    /// Store -> user topic that serves as its changelog.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub source_changelogs: BTreeMap<String, String>,
}

/// A connected part of the processor graph: the unit that has tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subtopology {
    /// Number of the subtopology, unique within its (named) topology.
    pub id: u32,
    /// Name of its named topology, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// Topics it reads, those that its patterns match included.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Regular expression of a pattern source -> topics it matched.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub source_patterns: BTreeMap<String, Vec<String>>,
    /// Topics it writes by a fixed name.
    #[serde(default)]
    pub sinks: Vec<String>,
    /// State stores of its processors.
    #[serde(default)]
    pub stores: Vec<String>,
}

/// Repartition topics that keep an explicit count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Pinned {
    /// Raw names; the observed count is the explicit one.
    Names(Vec<String>),
    /// Raw name -> count; `None` = the observed count.
    Counts(BTreeMap<String, Option<u32>>),
}

/// What the operator states beside a `Topology#describe()` text. What is present is complete and overrides inference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// See [`Topology::pinned`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Pinned>,
    /// See [`Topology::copartition_groups`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copartition_groups: Option<Vec<Vec<String>>>,
    /// See [`Topology::global_topics`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_topics: Option<Vec<String>>,
    /// See [`Topology::repartition_topics`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repartition_topics: Option<Vec<String>>,
    /// See [`Topology::logging_disabled`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging_disabled: Option<Vec<String>>,
    /// See [`Topology::source_changelogs`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_changelogs: Option<BTreeMap<String, String>>,
}
