//! `partition-autoscaler completions`.

use clap::{Args, Command};
use clap_complete::Shell;

use super::exit;

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell to complete for
    shell: Shell,
}

/// Prints the completion script of a shell.
pub fn run(args: &CompletionsArgs, mut command: Command) -> u8 {
    clap_complete::generate(args.shell, &mut command, "partition-autoscaler", &mut std::io::stdout());
    exit::OK
}
