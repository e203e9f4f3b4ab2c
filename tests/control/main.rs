//! Control messages: the wire, what is made of them, and the `control` command. `tests/data/vectors/samza` has what Samza's own classes
//! answer; the tests say where we answer otherwise, and why.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "in a test a panic is the message"
)]

mod command;
mod properties;
mod reconcile;
mod wire;

use std::path::Path;

use partition_autoscaler::control::wire::Message;
use partition_autoscaler::control::{Body, ControlMessage, Partition};
use serde_json::Value;

/// The cases of a file under `tests/data`.
fn cases(path: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut file: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(file["cases"].take()).unwrap()
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap()).collect()
}

fn partition(value: &Value) -> Partition {
    serde_json::from_value(value.clone()).unwrap()
}

fn watermark(task: Option<&str>, task_count: u32, timestamp: i64) -> ControlMessage {
    let task_count = task.map(|_| task_count);
    ControlMessage { task_name: task.map(str::to_owned), task_count, body: Body::Watermark { timestamp } }
}

fn end(task: Option<&str>, task_count: u32) -> ControlMessage {
    ControlMessage { body: Body::EndOfStream { stream_id: None }, ..watermark(task, task_count, 0) }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A message of a vector; `bytes` is where the value of a user message is put.
fn message<'a>(value: &Value, bytes: &'a mut Vec<u8>) -> Message<'a> {
    let body = match value["type"].as_str().unwrap() {
        "user" => {
            bytes.extend(value["value"].as_str().unwrap().bytes());
            return Message::User(bytes);
        }
        "watermark" => Body::Watermark { timestamp: value["timestamp"].as_i64().unwrap() },
        "end_of_stream" => Body::EndOfStream { stream_id: None },
        "drain" => Body::Drain { run_id: text(&value["runId"]) },
        other => panic!("{other}"),
    };
    Message::Control(ControlMessage { task_name: text(&value["taskName"]), task_count: None, body })
}
