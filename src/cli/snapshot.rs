//! `partition-autoscaler snapshot`.

use std::path::Path;

use clap::Args;

use super::{Common, Failure, describe_text, exit, live, print};
use crate::plan::{Planner, Snapshot};
use crate::topology_source;

/// Options of `snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotArgs {}

/// Prints topology, baseline and counts of a live application as a snapshot file.
pub fn run(_args: &SnapshotArgs, common: &Common) -> Result<u8, Failure> {
    let settings = live::settings(common)?;
    let mut application = live::observe(&settings)?;
    application.recall(&settings);
    application.take_baseline(&settings);
    if let Some(warning) = application.absence() {
        eprintln!("warning: {} ({})", warning.message, warning.code);
    }
    let text = serde_json::to_string_pretty(&application.snapshot)
        .map_err(|error| Failure::failed(format!("cannot write the snapshot as JSON: {error}")))?;
    print(&format!("{text}\n"))?;
    Ok(exit::OK)
}

/// The snapshot in a file, or on standard input for `-`.
pub fn read(path: &Path) -> Result<Snapshot, Failure> {
    let name = topology_source::name(path);
    serde_json::from_str(&describe_text::read(path)?)
        .map_err(|error| Failure::usage(format!("{name} is not a snapshot: {error}; expected what the snapshot command writes")))
}

/// The planner of a snapshot; `name` is what the user knows it by.
pub fn planner(name: &str, snapshot: &Snapshot) -> Result<Planner, Failure> {
    if let (None, Some(text)) = (&snapshot.topology, &snapshot.describe) {
        describe_text::parse(&format!("the describe text of {name}"), text)?;
    }
    Planner::new(snapshot).map_err(|error| Failure::usage(format!("{name}: {error}")))
}
