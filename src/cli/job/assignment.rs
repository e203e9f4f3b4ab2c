//! `partition-autoscaler job assignment`.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde::{Deserialize, Deserializer, Serialize};

use super::{parse, read, table};
use crate::cli::{Common, Failure, Output, exit, print};
use crate::coordinator::Origin;
use crate::job::{Assignment, Tasks};
use crate::topology_source;

/// Options of `job assignment`.
#[derive(Debug, Args)]
pub struct AssignmentArgs {
    #[command(flatten)]
    way: Way,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Way {
    /// Read records, one JSON object with `key` and `value` a line, and show the tasks (`-` = standard input)
    #[arg(long, value_name = "FILE")]
    decode: Option<PathBuf>,
    /// Read `tasks`, and `previous` where there is one, and print the records to write (`-` = standard input)
    #[arg(long, value_name = "FILE")]
    encode: Option<PathBuf>,
}

/// One record, texts as on the wire.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    key: String,
    #[serde(deserialize_with = "stated")]
    value: Option<String>,
}

/// A value that is forgotten must not delete a row.
fn stated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToEncode {
    tasks: Tasks,
    #[serde(default)]
    previous: Option<Tasks>,
}

#[derive(Serialize)]
struct Decoded {
    tasks: Tasks,
}

/// Runs the command.
pub fn run(args: &AssignmentArgs, common: &Common) -> Result<u8, Failure> {
    let text = match &args.way {
        Way { decode: Some(file), .. } => decode(file, common.output)?,
        Way { encode: Some(file), .. } => encode(file)?,
        // The parser of the command line asks for one of them.
        Way { decode: None, encode: None } => return Err(Failure::usage("expected one of --decode FILE and --encode FILE")),
    };
    print(&text)?;
    Ok(exit::OK)
}

fn decode(file: &Path, output: Output) -> Result<String, Failure> {
    let name = topology_source::name(file);
    let mut assignment = Assignment::default();
    for (number, line) in (1..).zip(read(file)?.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let place = format!("{name}, record in line {number}");
        let Record { key, value } =
            parse(&place, line, "{\"key\": \"...\", \"value\": \"...\" or null} with the texts of a record")?;
        let applied = assignment.apply(key.as_bytes(), value.as_deref().map(str::as_bytes));
        applied.map_err(|error| Failure::usage(format!("{place}: {error}; correct the record, or leave it out")))?;
    }
    let decoded = Decoded { tasks: assignment.tasks() };
    let text = match output {
        Output::Text => table(&decoded.tasks),
        Output::Json => serde_json::to_string_pretty(&decoded).map_err(|error| Failure::failed(error.to_string()))?,
    };
    Ok(text + "\n")
}

/// Records are for programs, whatever the form of the answer.
fn encode(file: &Path) -> Result<String, Failure> {
    let name = topology_source::name(file);
    let form = "{\"tasks\": {...}, \"previous\": {...}} with a list of partitions for each task";
    let ToEncode { tasks, previous } = parse(&name, &read(file)?, form)?;
    let previous = Assignment::from(&previous.unwrap_or_default());
    let mut lines = String::new();
    for (key, value) in Assignment::from(&tasks).encode(&previous, &origin()) {
        let text = |bytes| String::from_utf8(bytes).map_err(|error| Failure::failed(error.to_string()));
        let record = Record { key: text(key)?, value: value.map(text).transpose()? };
        lines += &serde_json::to_string(&record).map_err(|error| Failure::failed(error.to_string()))?;
        lines += "\n";
    }
    Ok(lines)
}

fn origin() -> Origin {
    let environment = |name| std::env::var(name).unwrap_or_default();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Origin {
        host: environment("HOSTNAME"),
        username: environment("USER"),
        timestamp: u64::try_from(since.as_millis()).unwrap_or_default(),
    }
}
