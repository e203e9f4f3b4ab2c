//! `partition-autoscaler control`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Common, Failure, Output, exit, print};
use crate::control::wire::{self, Fields, Kind, Message};
use crate::control::{Body, Checkpoint, ControlMessage, Event, NO_WATERMARK, Partition, Reconciler, WireFormat};
use crate::table;
use crate::topology_source::{self, MAX_BYTES, SourceError};

/// Options of `control`.
#[derive(Debug, Args)]
pub struct ControlArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what a message of an intermediate topic says
    Decode {
        /// The value of the record, in hexadecimal digits
        #[arg(long, value_name = "BYTES")]
        hex: String,
        /// Layout of the payload; every layout is read in either
        #[arg(long, value_enum, default_value_t = Format::Seed)]
        format: Format,
    },
    /// Print the bytes of a message, in hexadecimal digits
    Encode {
        /// The message, as `control decode --output json` shows it (`-` = standard input)
        #[arg(long, value_name = "FILE")]
        input: PathBuf,
        /// Layout of the payload
        #[arg(long, value_enum, default_value_t = Format::Seed)]
        format: Format,
    },
    /// Show what a task makes of the control messages of its partitions, step by step
    Reconcile {
        /// Partitions and steps as JSON (`-` = standard input)
        #[arg(long, value_name = "FILE")]
        input: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// SEP-6: with the number of upstream tasks
    Seed,
    /// What Samza 0.14 and newer read
    Samza,
}

impl From<Format> for WireFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Seed => Self::Seed,
            Format::Samza => Self::Samza,
        }
    }
}

/// Runs the command.
pub fn run(args: &ControlArgs, common: &Common) -> Result<u8, Failure> {
    let text = match &args.command {
        Command::Decode { hex, format: _ } => decode(hex, common.output)?,
        Command::Encode { input, format } => encode(input, (*format).into(), common.output)?,
        Command::Reconcile { input } => reconcile(input, common.output)?,
    };
    print(&text)?;
    Ok(exit::OK)
}

/// A message in the words of the command line.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object", rename_all = "camelCase")]
struct Shown {
    r#type: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    #[serde(rename = "payload_hex", skip_serializing_if = "Option::is_none")]
    payload_hex: Option<String>,
}

impl Shown {
    fn of(message: Message<'_>) -> Self {
        let ControlMessage { task_name, task_count, body } = match message {
            Message::User(payload) => return Self { payload_hex: Some(to_hex(payload)), ..Self::default() },
            Message::Control(message) => message,
        };
        let shown = Self { version: Some(1), task_name, task_count, ..Self::default() };
        match body {
            Body::Watermark { timestamp } => Self { r#type: Kind::Watermark, timestamp: Some(timestamp), ..shown },
            Body::EndOfStream { stream_id } => Self { r#type: Kind::EndOfStream, stream_id, ..shown },
            Body::Drain { run_id } => Self { r#type: Kind::Drain, run_id, ..shown },
        }
    }

    fn text(&self) -> String {
        let fields = [
            ("task", self.task_name.clone()),
            ("tasks", self.task_count.map(|count| count.to_string())),
            ("timestamp", self.timestamp.map(|timestamp| timestamp.to_string())),
            ("stream", self.stream_id.clone()),
            ("run", self.run_id.clone()),
            ("payload", self.payload_hex.clone()),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| value.map(|value| format!("{name}: {value}\n")));
        std::iter::once(format!("{}\n", self.r#type.name())).chain(fields).collect()
    }

    fn bytes(self, format: WireFormat) -> Result<Vec<u8>, String> {
        let Self { r#type: kind, version, task_name, task_count, timestamp, stream_id, run_id, payload_hex } = self;
        let payload = match (kind, payload_hex) {
            (Kind::User, Some(hex)) => from_hex(&hex).map_err(|error| format!("payload_hex: {error}"))?,
            (Kind::User, None) => return Err("a user message has to have a payload_hex, which may be empty".to_owned()),
            (_, Some(_)) => return Err(format!("{} messages have no payload_hex", kind.name())),
            (_, None) => Vec::new(),
        };
        let fields = Fields { version, task_name, task_count, timestamp, stream_id, run_id };
        let message = fields.message(kind, &payload).map_err(|error| error.to_string())?;
        Ok(wire::encode(&message, format))
    }
}

fn decode(hex: &str, output: Output) -> Result<String, Failure> {
    let bytes = from_hex(hex).map_err(|error| Failure::usage(format!("--hex: {error}")))?;
    let message = wire::decode(&bytes).map_err(|error| Failure::usage(format!("--hex is no message: {error}")))?;
    let shown = Shown::of(message);
    if output == Output::Text {
        return Ok(shown.text());
    }
    let json = serde_json::to_string_pretty(&shown)
        .map_err(|error| Failure::failed(format!("cannot write the message as JSON: {error}")))?;
    Ok(format!("{json}\n"))
}

fn encode(input: &Path, format: WireFormat, output: Output) -> Result<String, Failure> {
    let (name, shown) = read::<Shown>(input, "a message as `control decode --output json` shows it")?;
    let bytes = shown.bytes(format).map_err(|error| Failure::usage(format!("{name} is no message: {error}")))?;
    let hex = to_hex(&bytes);
    Ok(match output {
        Output::Text => format!("{hex}\n"),
        Output::Json => format!("{:#}\n", json!({ "hex": hex })),
    })
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
    bytes.ok_or_else(|| {
        "expected two hexadecimal digits for each byte, without anything between them, as in 0068656c6c6f".to_owned()
    })
}

/// What `control reconcile` is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct Questions {
    partitions: Vec<Partition>,
    steps: Vec<Step>,
}

/// A step; which one it is, its fields tell.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct Step {
    ssp: Option<Partition>,
    task: Option<String>,
    task_count: Option<u32>,
    timestamp: Option<i64>,
    end_of_stream: Option<bool>,
    add_partition: Option<Partition>,
    checkpoint_restart: Option<bool>,
}

/// What a step does.
enum Doing {
    Hear(Partition, ControlMessage),
    Add(Partition),
    Restart,
}

impl Step {
    fn doing(self) -> Result<Doing, &'static str> {
        let Self { ssp, task: task_name, task_count, timestamp, end_of_stream, add_partition, checkpoint_restart } = self;
        let says = |body| ControlMessage { task_name: task_name.clone(), task_count, body };
        let flags = (end_of_stream.unwrap_or(false), checkpoint_restart.unwrap_or(false));
        match (ssp, timestamp, add_partition, flags) {
            (Some(ssp), Some(timestamp), None, (false, false)) => Ok(Doing::Hear(ssp, says(Body::Watermark { timestamp }))),
            (Some(ssp), None, None, (true, false)) => Ok(Doing::Hear(ssp, says(Body::EndOfStream { stream_id: None }))),
            (None, None, Some(partition), (false, false)) if task_name.is_none() && task_count.is_none() => {
                Ok(Doing::Add(partition))
            }
            (None, None, None, (false, true)) if task_name.is_none() && task_count.is_none() => Ok(Doing::Restart),
            _ => {
                Err("expected one of: ssp with timestamp, ssp with \"end_of_stream\": true (both with task and task_count, if a \
                      task speaks), add_partition, \"checkpoint_restart\": true")
            }
        }
    }
}

/// The answer to one step.
#[derive(Debug, Serialize)]
struct Answer {
    emitted: Vec<Value>,
    partition_watermarks: BTreeMap<String, i64>,
    stream_watermarks: BTreeMap<String, i64>,
    end_of_stream: BTreeMap<String, bool>,
}

impl Answer {
    fn of(event: Option<&Event>, task: &Reconciler) -> Self {
        let emitted = event.map(|event| match event {
            Event::Watermark { partition, timestamp } => json!({"ssp": partition, "watermark": timestamp}),
            Event::EndOfStream { partition } => json!({"ssp": partition, "end_of_stream": true}),
        });
        let watermarks = task.watermarks().iter();
        Self {
            emitted: emitted.into_iter().collect(),
            partition_watermarks: watermarks.map(|(name, heard)| (name.to_string(), heard.watermark)).collect(),
            stream_watermarks: task.stream_watermarks().iter().map(|(name, mark)| (name.to_string(), *mark)).collect(),
            end_of_stream: task.ends().iter().map(|(name, heard)| (name.to_string(), heard.ended)).collect(),
        }
    }
}

fn reconcile(input: &Path, output: Output) -> Result<String, Failure> {
    let (name, questions) = read::<Questions>(input, "partitions, each as [\"kafka\", \"mid\", 0], and steps")?;
    let mut task = Reconciler::new(questions.partitions);
    let (mut events, mut answers) = (Vec::new(), Vec::new());
    for (number, step) in (1..).zip(questions.steps) {
        let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("{name}, step {number}: {error}"));
        let event = match step.doing().map_err(|error| wrong(&error))? {
            Doing::Hear(partition, message) => task.hear(&partition, &message).map_err(|error| wrong(&error))?,
            Doing::Add(partition) => {
                task.add(partition);
                None
            }
            Doing::Restart => {
                task =
                    restarted(&task).map_err(|error| Failure::failed(format!("the checkpoint cannot be read again: {error}")))?;
                None
            }
        };
        if output == Output::Json {
            answers.push(Answer::of(event.as_ref(), &task));
        }
        events.push(event);
    }
    Ok(match output {
        Output::Json => format!("{:#}\n", json!({ "steps": answers })),
        Output::Text => tables(&events, &task),
    })
}

/// The task as it is after it has saved and read its checkpoint.
fn restarted(task: &Reconciler) -> serde_json::Result<Reconciler> {
    let saved = serde_json::to_vec(&task.checkpoint([]))?;
    let checkpoint: Checkpoint = serde_json::from_slice(&saved)?;
    Ok(Reconciler::restore(task.ends().keys().cloned(), &checkpoint))
}

/// What each step made new, and how the partitions stand after the last one.
fn tables(events: &[Option<Event>], task: &Reconciler) -> String {
    let mark = |mark: i64| if mark == NO_WATERMARK { "-".to_owned() } else { mark.to_string() };
    let tasks = |heard: usize, count: u32| if count == 0 { "-".to_owned() } else { format!("{heard} of {count}") };
    let yes = |it: bool| if it { "yes" } else { "no" }.to_owned();
    let steps = (1_usize..).zip(events);
    let steps =
        steps.map(|(number, event)| [number.to_string(), event.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)]);
    let partitions = task.ends().iter().zip(task.watermarks().values()).map(|((partition, ends), watermarks)| {
        [
            partition.to_string(),
            mark(watermarks.watermark),
            tasks(watermarks.tasks.len(), watermarks.task_count),
            yes(ends.ended),
            tasks(ends.tasks.len(), ends.task_count),
        ]
    });
    let streams = task.stream_watermarks().iter();
    let streams = streams.map(|(stream, watermark)| [stream.to_string(), mark(*watermark), yes(task.has_ended(stream))]);
    [
        table::borderless(["STEP", "NEW"], steps),
        table::borderless(["PARTITION", "WATERMARK", "TASKS HEARD", "ENDED", "TASKS ENDED"], partitions),
        table::borderless(["STREAM", "WATERMARK", "ENDED"], streams),
    ]
    .join("\n")
}

/// The JSON in a file, or on standard input for `-`, and what the user knows the file by.
fn read<T: DeserializeOwned>(path: &Path, expected: &str) -> Result<(String, T), Failure> {
    let name = topology_source::name(path);
    let text = topology_source::read(path).map_err(|error| match error {
        SourceError::NotText { name, line } => {
            Failure::usage(format!("{name}, line {line}: found bytes that are not UTF-8, expected {expected}, as JSON"))
        }
        SourceError::TooLarge { name } => {
            Failure::usage(format!("{name} is larger than {MAX_BYTES} bytes, expected {expected}, as JSON"))
        }
        other => other.into(),
    })?;
    let value = serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("{name} cannot be read: {error}; expected {expected}, as JSON")))?;
    Ok((name, value))
}
