//! `partition-autoscaler job`.

mod assignment;
mod group;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;

use super::{Common, Failure};
use crate::job::Tasks;
use crate::table;
use crate::topology_source;

/// Largest input that is read, in bytes: about a million partitions.
const MAX_BYTES: u64 = 64 << 20;

/// Options of `job`.
#[derive(Debug, Args)]
pub struct JobArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Give the partitions of the inputs to tasks, so that each key stays with its state
    Group(group::GroupArgs),
    /// Read or write tasks as the records of Samza's coordinator stream
    Assignment(assignment::AssignmentArgs),
}

/// Runs the command.
pub fn run(args: &JobArgs, common: &Common) -> Result<u8, Failure> {
    match &args.command {
        Command::Group(args) => group::run(args, common),
        Command::Assignment(args) => assignment::run(args, common),
    }
}

/// The text of a file, or of standard input for `-`.
fn read(path: &Path) -> Result<String, Failure> {
    let name = topology_source::name(path);
    let read = |from: &mut dyn Read| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes =
        if path == Path::new("-") { read(&mut io::stdin().lock()) } else { File::open(path).and_then(|mut f| read(&mut f)) };
    let bytes = bytes.map_err(|error| {
        Failure::usage(format!("cannot read {name}: {error}; expected a file that exists and may be read, correct its path"))
    })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::usage(format!(
            "{name} is larger than {MAX_BYTES} bytes, expected the partitions of one job; divide it"
        )));
    }
    String::from_utf8(bytes)
        .map_err(|error| Failure::usage(format!("{name} is not text ({}), expected JSON in UTF-8", error.utf8_error())))
}

/// Reads a JSON object; an error names the field. `form` is what was expected.
fn parse<T: DeserializeOwned>(place: &str, text: &str, form: &str) -> Result<T, Failure> {
    let wrong = |what: String| Failure::usage(format!("{place}: {what}; expected {form}"));
    // Serde would take the fields from an array, in order.
    if !text.trim_start().starts_with('{') {
        return Err(wrong("it is not a JSON object".to_owned()));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| match error.path().to_string().as_str() {
        // Nothing is open, or something nameless is.
        "." | "?" => wrong(error.inner().to_string()),
        field => wrong(format!("{field}: {}", error.inner())),
    })?;
    reader.end().map_err(|error| wrong(error.to_string()))?;
    Ok(value)
}

/// Tasks for people.
fn table(tasks: &Tasks) -> String {
    let mut rows: Vec<_> = tasks.0.iter().collect();
    // So that Partition 2 comes before Partition 10.
    rows.sort_by_key(|(task, _)| (task.len(), *task));
    let rows = rows.into_iter().map(|(task, partitions)| {
        let mut cell = String::new();
        let mut last = None;
        for partition in partitions {
            let stream = (&partition.system, &partition.stream);
            if last != Some(stream) {
                let line = if last.is_some() { "\n" } else { "" };
                cell += &format!("{line}{}.{}", partition.system, partition.stream);
                last = Some(stream);
            }
            cell += &format!(" {}", partition.id);
            if let Some(bucket) = partition.bucket {
                cell += &format!("/{bucket}");
            }
        }
        [task.clone(), cell]
    });
    table::borderless(["TASK", "PARTITIONS"], rows).trim_end().to_owned()
}
