//! Topology and counts of one application at one moment: the input of the planner, and the snapshot file.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::topology::{Stated, Topology};

/// The snapshot file. Counts are numbers of partitions by full topic name; topics that the topology does not use do not matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// `application.id` of the Kafka Streams application.
    pub application_id: String,
    /// Group protocol of the application, which decides between the rules of the client and those of the broker.
    #[serde(default)]
    pub protocol: Protocol,
    /// What the names of internal topics start with; default is the application id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The topology, or `None` where `describe` stands in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Text of `Topology#describe()`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub describe: Option<String>,
    /// What is known beside the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated: Option<Stated>,
    /// Counts of the inputs when every internal topic last had exactly the expected count.
    #[serde(default)]
    pub baseline: BTreeMap<String, u32>,
    /// Present count of every topic that exists.
    pub partitions: BTreeMap<String, u32>,
}

impl Snapshot {
    /// What the names of internal topics start with (without the dash).
    pub fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or(&self.application_id)
    }
}

/// Group protocol of the application (`group.protocol`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// The leader client computes counts (`StreamsPartitionAssignor`).
    #[default]
    Classic,
    /// The group coordinator computes counts (KIP-1071).
    Streams,
}

/// What the planner is told beside the snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knowledge {
    /// `max.new.partitions`: a plan that adds more is refused.
    pub max_new_partitions: u32,
    /// Full names of repartition topics that have followed an input once, so are known not to be pinned.
    pub not_pinned: BTreeSet<String>,
}

impl Default for Knowledge {
    fn default() -> Self {
        Self { max_new_partitions: 5000, not_pinned: BTreeSet::new() }
    }
}
