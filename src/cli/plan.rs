//! `partition-autoscaler plan`.

use clap::Args;

use super::{Common, Failure};

/// Options of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {}

/// Runs the command.
pub fn run(_args: &PlanArgs, _common: &Common) -> Result<u8, Failure> {
    Err(Failure::failed("not built yet"))
}
