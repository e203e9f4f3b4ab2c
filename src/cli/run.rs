//! `partition-autoscaler run`.

use clap::Args;

use super::{Common, Failure};

/// Options of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {}

/// Runs the command.
pub fn run(_args: &RunArgs, _common: &Common) -> Result<u8, Failure> {
    Err(Failure::failed("not built yet"))
}
