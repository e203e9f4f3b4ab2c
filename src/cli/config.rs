//! `partition-autoscaler config`.

use clap::Args;

use super::{Common, Failure};

/// Options of `config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {}

/// Runs the command.
pub fn run(_args: &ConfigArgs, _common: &Common) -> Result<u8, Failure> {
    Err(Failure::failed("not built yet"))
}
