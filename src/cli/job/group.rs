//! `partition-autoscaler job group`.

use std::path::PathBuf;

use clap::Args;

use super::{parse, read, table};
use crate::cli::{Common, Failure, Output, exit, print};
use crate::job::{Answer, Request};
use crate::topology_source;

/// Options of `job group`.
#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 done, 4 the growth is refused and the previous tasks stay in force.")]
pub struct GroupArgs {
    /// Inputs, grouper and previous tasks of the job (`-` = standard input)
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
}

/// Runs the command.
pub fn run(args: &GroupArgs, common: &Common) -> Result<u8, Failure> {
    let name = topology_source::name(&args.input);
    let request: Request = parse(&name, &read(&args.input)?, "the input that docs/job-group-input.schema.json describes")?;
    let answer = request.group().map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    let text = match common.output {
        Output::Text => text(&answer),
        Output::Json => serde_json::to_string_pretty(&answer).map_err(|error| Failure::failed(error.to_string()))?,
    };
    print(&format!("{text}\n"))?;
    Ok(if answer.code.is_some() { exit::BLOCKED } else { exit::OK })
}

fn text(answer: &Answer) -> String {
    let code = answer.code.and_then(|code| serde_json::to_value(code).ok());
    let verdict = match (&code, answer.changed) {
        (Some(code), _) => format!("refused ({})", code.as_str().unwrap_or_default()),
        (None, true) => "changed".to_owned(),
        (None, false) => "unchanged".to_owned(),
    };
    format!("{verdict}: {}\n\n{}", answer.message, table(&answer.tasks)).trim_end().to_owned()
}
