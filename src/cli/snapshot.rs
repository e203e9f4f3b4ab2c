//! `partition-autoscaler snapshot`.

use clap::Args;

use super::{Common, Failure};

/// Options of `snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotArgs {}

/// Runs the command.
pub fn run(_args: &SnapshotArgs, _common: &Common) -> Result<u8, Failure> {
    Err(Failure::failed("not built yet"))
}
