//! `partition-autoscaler status`.

use clap::Args;

use super::{Common, Failure};

/// Options of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {}

/// Runs the command.
pub fn run(_args: &StatusArgs, _common: &Common) -> Result<u8, Failure> {
    Err(Failure::failed("not built yet"))
}
