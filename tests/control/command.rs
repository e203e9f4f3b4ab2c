//! The `control` command: its contract, its errors, what people see.

use std::process::{Command, Output};

use expect_test::expect_file;
use kit::process;
use serde_json::{Value, json};

use super::{cases, from_hex};

fn control(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_partition-autoscaler"));
    command.arg("control").args(args);
    process::feed(&mut command, input.as_bytes())
}

fn out(args: &[&str], input: &str) -> String {
    let output = control(args, input);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refusal(args: &[&str], input: &str) -> String {
    let output = control(args, input);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?} {input}");
    String::from_utf8(output.stderr).unwrap()
}

fn encode(message: &Value, format: &str) -> String {
    out(&["encode", "--input", "-", "--format", format], &message.to_string()).trim().to_owned()
}

fn decode(hex: &str) -> Value {
    serde_json::from_str(&out(&["decode", "--hex", hex, "--output", "json"], "")).unwrap()
}

#[test]
fn cases_are_answered_as_written_down() {
    let mut calls = 0;
    for case in cases("cases/control.json") {
        let runs = case["runs"].as_array().cloned().unwrap_or_else(|| vec![case.clone()]);
        for run in runs {
            let command: Vec<&str> = case["command"].as_array().unwrap().iter().skip(1).map(|w| w.as_str().unwrap()).collect();
            let input = &run["input"];
            match (command[0], run["exit_code"].as_i64().unwrap()) {
                ("decode", 2) => {
                    assert!(!refusal(&["decode", "--hex", input.as_str().unwrap()], "").is_empty());
                }
                ("encode", 0) => {
                    let bytes = from_hex(out(&[&command[..], &["--input", "-"]].concat(), &input.to_string()).trim());
                    assert_eq!(u64::from(bytes[0]), run["expected"]["first_byte"], "{}", case["id"]);
                    let payload: Value = serde_json::from_slice(&bytes[1..]).unwrap();
                    assert_eq!(payload, run["expected"]["payload"], "{}", case["id"]);
                }
                ("reconcile", 0) => {
                    let answer = out(&["reconcile", "--input", "-", "--output", "json"], &input.to_string());
                    assert_steps(&serde_json::from_str(&answer).unwrap(), &run["expected"], &case["id"]);
                }
                other => panic!("{}: {other:?}", case["id"]),
            }
            calls += 1;
        }
    }
    assert_eq!(calls, 11);
}

/// What is written down for a step has to be in the answer to it.
fn assert_steps(answer: &Value, expected: &Value, id: &Value) {
    let (answers, expected) = (answer["steps"].as_array().unwrap(), expected["steps"].as_array().unwrap());
    assert_eq!(answers.len(), expected.len(), "{id}");
    for (answer, expected) in answers.iter().zip(expected) {
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(&answer[field], value, "{id}: {field}");
        }
    }
}

#[test]
fn messages_go_there_and_back() {
    for message in [
        json!({"type": "user", "payload_hex": "68656c6c6f"}),
        json!({"type": "user", "payload_hex": ""}),
        json!({"type": "watermark", "version": 1, "taskName": "t", "taskCount": 2, "timestamp": -1}),
        json!({"type": "end-of-stream", "version": 1, "taskName": "t", "taskCount": 2, "streamId": "orders"}),
        json!({"type": "drain", "version": 1, "taskName": "t", "runId": "r"}),
        json!({"type": "end-of-stream", "version": 1}),
    ] {
        assert_eq!(decode(&encode(&message, "seed")), message);
    }
    let told = json!({"type": "end-of-stream", "taskName": null, "taskCount": 2, "streamId": "orders", "timestamp": null});
    assert_eq!(decode(&encode(&told, "samza")), json!({"type": "end-of-stream", "version": 1}));
    assert_eq!(
        decode(&encode(&json!({"type": "watermark"}), "seed")),
        json!({"type": "watermark", "version": 1, "timestamp": 0})
    );
    let answer = out(&["encode", "--input", "-", "--output", "json"], r#"{"type":"user","payload_hex":"0A"}"#);
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), json!({"hex": "000a"}));
}

#[test]
fn what_cannot_be_read_is_said() {
    let mut said = String::new();
    for hex in ["", "0", "0g", "ä", "04", "01", "016e756c6c", "015b5d", "017b2261223a317d"] {
        said += &format!("decode --hex {hex:?}\n{}\n", refusal(&["decode", "--hex", hex], ""));
    }
    for message in [
        "",
        "[]",
        r#"{"type":"users"}"#,
        r#"{"type":"user"}"#,
        r#"{"type":"user","payload_hex":"0"}"#,
        r#"{"type":"user","payload_hex":"00","version":1}"#,
        r#"{"type":"watermark","payload_hex":"00"}"#,
        r#"{"type":"end-of-stream","runId":"r"}"#,
        r#"{"type":"watermark","version":9}"#,
        r#"{"type":"watermark","task-name":"t"}"#,
    ] {
        said += &format!("encode <<< '{message}'\n{}\n", refusal(&["encode", "--input", "-"], message));
    }
    for step in [
        r#"{"ssp":["k","m",0],"task":"t","timestamp":5}"#,
        r#"{"ssp":["k","m",7],"timestamp":5}"#,
        r#"{"ssp":["k","m",0],"timestamp":5,"end_of_stream":true}"#,
        r#"{"ssp":["k","m",0]}"#,
        r#"{"checkpoint_restart":true,"task":"t"}"#,
        r#"{"add_partition":["k","m",-1]}"#,
        r#"{"add_partition":["k","m",0,1]}"#,
        r#"{"ssp":["k","m",0],"timestamp":5,"tasks":1}"#,
    ] {
        let input = format!(r#"{{"partitions":[["k","m",0]],"steps":[{step}]}}"#);
        said += &format!("reconcile <<< '{step}'\n{}\n", refusal(&["reconcile", "--input", "-"], &input));
    }
    said += &format!("reconcile no-such-file\n{}", refusal(&["reconcile", "--input", "no-such-file"], ""));
    expect_file!["../golden/control/errors.txt"].assert_eq(&said.replace(env!("CARGO_MANIFEST_DIR"), "FOLDER"));
}

#[test]
fn people_see_what_became_new_and_who_is_missing() {
    let input = json!({"partitions": [["kafka", "mid", 0]], "steps": [
        {"ssp": ["kafka", "mid", 0], "task": "t0", "task_count": 2, "timestamp": 5},
        {"ssp": ["kafka", "mid", 0], "task": "t1", "task_count": 2, "timestamp": 7},
        {"ssp": ["kafka", "mid", 0], "task": "t1", "task_count": 2, "end_of_stream": true},
        {"checkpoint_restart": true},
        {"add_partition": ["kafka", "mid", 1]},
    ]});
    let text = out(&["reconcile", "--input", "-"], &input.to_string());
    expect_file!["../golden/control/reconcile.txt"].assert_eq(&text);
    let hex = encode(&json!({"type": "watermark", "taskName": "t", "taskCount": 2, "timestamp": 5}), "seed");
    assert_eq!(out(&["decode", "--hex", &hex], ""), "watermark\ntask: t\ntasks: 2\ntimestamp: 5\n");
}
