//! `partition-autoscaler topology`.

use clap::Args;

use super::{Common, Failure};

/// Options of `topology`.
#[derive(Debug, Args)]
pub struct TopologyArgs {}

/// Runs the command.
pub fn run(_args: &TopologyArgs, _common: &Common) -> Result<u8, Failure> {
    Err(Failure::failed("not built yet"))
}
