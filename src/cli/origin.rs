//! Where the topology of a live application comes from.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Failure, describe_text};
use crate::config::Settings;
use crate::config::settings::TopologySource;
use crate::plan::{Planner, Protocol, Snapshot};
use crate::topology_source;

/// The source of a topology.
pub enum Origin {
    /// Written out in the configuration.
    Stated,
    /// A file with the text of `Topology#describe()`.
    File(PathBuf),
    /// A URL of the application with that text.
    Url(String),
}

impl Origin {
    /// The source that `topology.source` names, else the first that is configured.
    pub fn of(settings: &Settings) -> Result<Self, Failure> {
        let topology = &settings.topology;
        let stated = topology.complete.as_ref().map(|_| Self::Stated);
        let file = topology.file.clone().map(Self::File);
        let url = topology.url.as_ref().map(|url| Self::Url(url.as_str().to_owned()));
        let found = match topology.source {
            Some(TopologySource::Config) => stated,
            Some(TopologySource::Describe) => file.or(url),
            None => stated.or(file).or(url),
        };
        found.ok_or_else(|| {
            Failure::usage(format!(
                "the topology of {} is not configured; set topology.file or topology.url to where the text of \
                 Topology#describe() is, or write it out under [topology]",
                settings.application_id
            ))
        })
    }

    /// Name for the status.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stated => "config",
            Self::File(_) | Self::Url(_) => "describe",
        }
    }

    /// The planner of the topology, and the snapshot (without counts) that it was made from.
    pub fn planner(&self, settings: &Settings) -> Result<(Planner, Snapshot), Failure> {
        let (name, describe) = match self {
            Self::Stated => ("[topology]".to_owned(), None),
            Self::File(path) => (topology_source::name(path), Some(topology_source::read_regular(path)?)),
            Self::Url(url) => (topology_source::without_credentials(url), Some(topology_source::fetch(url)?)),
        };
        if let Some(text) = &describe {
            // names the line that is wrong
            if describe_text::parse(&name, text)?.blocks.is_empty() {
                return Err(Failure::usage(format!(
                    "{name} describes no sub-topology, expected at least one (\"Sub-topology: N\" and its nodes); write the text of \
                     Topology#describe() after everything was added to the topology"
                )));
            }
        }
        let topology = &settings.topology;
        let snapshot = Snapshot {
            application_id: settings.application_id.clone(),
            protocol: Protocol::Classic,
            prefix: topology.prefix.clone(),
            topology: topology.complete.clone().filter(|_| describe.is_none()),
            stated: describe.as_ref().map(|_| topology.stated.clone()),
            describe,
            baseline: settings.baseline.clone(),
            partitions: BTreeMap::new(),
        };
        let planner = Planner::new(&snapshot).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        Ok((planner, snapshot))
    }
}
