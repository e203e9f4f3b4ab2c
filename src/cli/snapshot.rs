//! `partition-autoscaler snapshot`.

use clap::Args;

use super::{Common, Failure, exit, live};
use crate::config::{self, Sources};

/// Options of `snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotArgs {}

/// Prints topology, baseline and counts of a live application as a snapshot file.
pub fn run(_args: &SnapshotArgs, common: &Common) -> Result<u8, Failure> {
    let settings = live::only(config::load(&Sources::new(&common.config, &common.set))?)?;
    let mut application = live::observe(&settings)?;
    application.take_baseline(&settings);
    let text = serde_json::to_string_pretty(&application.snapshot)
        .map_err(|error| Failure::failed(format!("cannot write the snapshot as JSON: {error}")))?;
    println!("{text}");
    Ok(exit::OK)
}
