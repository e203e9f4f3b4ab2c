//! Entry point: parse, dispatch, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    partition_autoscaler::cli::main()
}
