//! The planner over recorded situations: hand-written cases, counts worked out by Kafka's own classes, and large topologies.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "in a test a panic is the message"
)]

mod cases;
mod command;
mod oracle;
mod planner;
mod scale;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use partition_autoscaler::plan::{Decision, Snapshot};
use serde_json::Value;

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(data(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn snapshot(value: &Value) -> Snapshot {
    serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{e} in {value}"))
}

/// A decision as programs see it.
fn json(decision: &Decision) -> Value {
    serde_json::to_value(decision).unwrap()
}

/// Topic, count before and count after of each change.
type Changes = BTreeSet<(String, u64, u64)>;

fn changes(answer: &Value) -> Changes {
    let change = |c: &Value| (c["topic"].as_str().unwrap().to_owned(), c["from"].as_u64().unwrap(), c["to"].as_u64().unwrap());
    answer["changes"].as_array().map(|changes| changes.iter().map(change).collect()).unwrap_or_default()
}

/// Expected tasks of a subtopology.
fn expected_tasks(answer: &Value, id: &str) -> Value {
    let all = answer["subtopologies"].as_array().unwrap();
    all.iter().find(|s| s["id"] == id).map_or(Value::Null, |s| s["expected"].clone())
}
