//! `partition-autoscaler completions`.

use clap::{Args, Command};
use clap_complete::Shell;

use super::{Failure, exit, print};

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell to complete for
    shell: Shell,
}

/// Prints the completion script of a shell.
pub fn run(args: &CompletionsArgs, mut command: Command) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "partition-autoscaler", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(exit::OK)
}
