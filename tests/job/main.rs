//! Which task consumes which partitions: recorded situations, what Samza's own classes answer, rules that hold for every job, and
//! the commands.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "in a test a panic is the message"
)]

mod cases;
mod command;
mod rules;
mod vectors;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use kit::process;
use serde_json::Value;

fn read(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// Runs `job ...` with a text on standard input.
fn job(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_partition-autoscaler"));
    command.arg("job").args(arguments);
    process::feed(&mut command, input.as_bytes())
}

/// Exit code and answer, which is null with code 2.
fn group(input: &Value) -> (i64, Value) {
    answer(&job(&["group", "--output", "json", "--input", "-"], &input.to_string()))
}

fn decode(records: &[(String, Option<String>)]) -> (i64, Value) {
    let line = |(key, value): &(String, Option<String>)| format!("{}\n", serde_json::json!({"key": key, "value": value}));
    let lines: String = records.iter().map(line).collect();
    answer(&job(&["assignment", "--output", "json", "--decode", "-"], &lines))
}

fn answer(output: &Output) -> (i64, Value) {
    let code = i64::from(output.status.code().unwrap());
    if code == 2 {
        assert!(output.stdout.is_empty() && output.stderr.starts_with(b"error: "));
        return (code, Value::Null);
    }
    (code, serde_json::from_slice(&output.stdout).unwrap())
}

/// Record key -> task names, or none for a delete.
type Rows = BTreeMap<String, Option<BTreeSet<String>>>;

fn encode(input: &Value) -> Rows {
    let output = job(&["assignment", "--encode", "-"], &input.to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let records = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        let names = record["value"].as_str().map(|value| {
            let value: Value = serde_json::from_str(value).unwrap();
            assert!(value["timestamp"].as_u64().is_some_and(|at| at > 0), "{value}");
            assert!(["host", "source", "username"].iter().all(|name| value[name].is_string()), "{value}");
            assert_eq!(value["values"].as_object().unwrap().len(), 1);
            serde_json::from_str(value["values"]["taskNames"].as_str().unwrap()).unwrap()
        });
        (record["key"].as_str().unwrap().to_owned(), names)
    };
    records.lines().map(row).collect()
}

/// The same as [`encode`] gives it.
fn rows(expected: &Value) -> Rows {
    let names =
        |value: &Value| value.as_array().map(|names| names.iter().map(|name| name.as_str().unwrap().to_owned()).collect());
    expected.as_object().unwrap().iter().map(|(key, value)| (key.clone(), names(value))).collect()
}

/// Tasks with their partitions as sets.
fn sets(tasks: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let partition = |partition: &Value| {
        let mut parts = partition.as_array().unwrap().clone();
        parts.retain(|part| *part != -1);
        Value::Array(parts).to_string()
    };
    let partitions = |list: &Value| list.as_array().unwrap().iter().map(partition).collect();
    tasks.as_object().unwrap().iter().map(|(task, list)| (task.clone(), partitions(list))).collect()
}

/// What is wrong with an answer of `job group`.
fn differences((code, answer): &(i64, Value), expected: &Value, expected_code: i64) -> Vec<String> {
    let mut wrong = Vec::new();
    if *code != expected_code {
        wrong.push(format!("exit code {code} instead of {expected_code}: {answer}"));
    }
    if *code == 2 || !wrong.is_empty() {
        return wrong;
    }
    if sets(&answer["tasks"]) != sets(&expected["tasks"]) {
        wrong.push(format!("tasks {}", answer["tasks"]));
    }
    for field in ["changed", "code"] {
        if answer[field] != expected[field] {
            wrong.push(format!("{field} {} instead of {}", answer[field], expected[field]));
        }
    }
    for word in expected["mentions"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !answer["message"].as_str().unwrap().contains(word) {
            wrong.push(format!("{word} is not in {}", answer["message"]));
        }
    }
    wrong
}
