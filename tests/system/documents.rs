//! What programs and people are promised in `docs` is what the program does: the JSON schemas and the help texts.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use expect_test::expect_file;
use partition_autoscaler::autoscaler::status::{AssignorError, StateName};
use partition_autoscaler::http::Label;
use partition_autoscaler::job;
use partition_autoscaler::plan::{Code, Role, Verdict};
use serde::Serialize;
use serde_json::{Value, json};

use crate::stage::BINARY;

fn docs(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Checks an answer of the program against `docs/<name>.schema.json`. It may hold nothing that the schema does not describe.
#[track_caller]
pub fn assert_documented(name: &str, answer: &Value) {
    let problems = Schema::of(name).problems(answer);
    assert!(problems.is_empty(), "{name}.schema.json: {problems:#?}\n{answer:#}");
}

/// A schema document: as much of JSON schema as `docs` uses; another keyword panics rather than going unchecked.
struct Schema {
    document: Value,
}

impl Schema {
    fn of(name: &str) -> Self {
        Self { document: serde_json::from_str(&docs(&format!("{name}.schema.json"))).unwrap() }
    }

    fn problems(&self, value: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        self.check(&self.document, value, "$", &mut problems);
        problems
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) {
        let schema = schema.as_object().unwrap();
        let is = |name: &str| match name {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "null" => value.is_null(),
            other => panic!("the type {other} is not known"),
        };
        for (keyword, rule) in schema {
            let holds = match keyword.as_str() {
                "$schema" | "$defs" | "title" | "description" | "properties" | "additionalProperties" | "items" => true,
                "$ref" => {
                    self.refer(rule.as_str().unwrap(), value, at, problems);
                    true
                }
                "type" => {
                    rule.as_str().map_or_else(|| rule.as_array().unwrap().iter().any(|name| is(name.as_str().unwrap())), is)
                }
                "enum" => rule.as_array().unwrap().contains(value),
                "minimum" => value.as_i64().is_none_or(|value| value >= rule.as_i64().unwrap()),
                "required" => value
                    .as_object()
                    .is_none_or(|object| rule.as_array().unwrap().iter().all(|name| object.contains_key(name.as_str().unwrap()))),
                "anyOf" => rule.as_array().unwrap().iter().any(|schema| {
                    let mut problems = Vec::new();
                    self.check(schema, value, at, &mut problems);
                    problems.is_empty()
                }),
                other => panic!("the keyword {other} is not known"),
            };
            if !holds {
                problems.push(format!("{at}: {keyword} {rule} does not hold for {value}"));
            }
        }
        for (name, inner) in value.as_object().into_iter().flatten().filter(|_| schema.contains_key("type")) {
            let at = format!("{at}.{name}");
            match schema.get("properties").and_then(|known| known.get(name)).or(schema.get("additionalProperties")) {
                Some(schema) if schema.is_object() => self.check(schema, inner, &at, problems),
                _ => problems.push(format!("{at} is not described")),
            }
        }
        for (index, inner) in value.as_array().into_iter().flatten().enumerate() {
            if let Some(schema) = schema.get("items") {
                self.check(schema, inner, &format!("{at}[{index}]"), problems);
            }
        }
    }

    fn refer(&self, reference: &str, value: &Value, at: &str, problems: &mut Vec<String>) {
        let (file, pointer) = reference.split_once('#').unwrap_or((reference, ""));
        let other = file.strip_suffix(".schema.json").map(Self::of);
        let target = other.as_ref().unwrap_or(self);
        let schema = target.document.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"));
        target.check(schema, value, at, problems);
    }
}

#[test]
fn a_schema_refuses_what_does_not_fit() {
    let good = json!({"application_id": "shop", "topology": {"subtopologies": [{"id": 0, "sources": ["orders"]}], "pinned": {"k": null}},
        "partitions": {"orders": 3}});
    assert_documented("snapshot", &good);
    let schema = Schema::of("snapshot");
    for (pointer, wrong) in [
        ("/application_id", json!(1)),
        ("/topology/subtopologies/0", json!({"sources": []})),
        ("/topology/subtopologies/0/sources/0", json!(null)),
        ("/topology/pinned", json!({"k": "3"})),
        ("/topology/pinned", json!({"k": -1})),
        ("/partitions", json!(null)),
        ("/topology", json!({"subtopologies": [], "extra": 1})),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = wrong;
        assert_eq!(schema.problems(&bad).len(), 1, "{pointer}: {bad:#}");
    }
}

/// Every word that a field can have is in its schema, in order.
#[test]
fn words_are_as_documented() {
    fn assert_words<L: Label + Serialize + 'static>(name: &str, pointer: &str) {
        let words: Vec<Value> = L::ALL.iter().map(|(word, _)| serde_json::to_value(word).unwrap()).collect();
        let mut documented = Schema::of(name).document.pointer(pointer).unwrap().as_array().unwrap().clone();
        documented.retain(|word| !word.is_null());
        assert_eq!(documented, words, "{name}{pointer}");
    }
    let application = "/properties/applications/items/properties";
    assert_words::<Verdict>("plan", "/properties/decision/enum");
    assert_words::<Code>("plan", "/properties/code/enum");
    assert_words::<Role>("plan", "/properties/changes/items/properties/role/enum");
    assert_words::<StateName>("status", &format!("{application}/state/properties/name/enum"));
    assert_words::<AssignorError>("status", &format!("{application}/assignor_error/properties/name/enum"));
}

#[test]
fn topologies_are_as_documented() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/describe");
    let snapshots = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for text in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if text.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let snapshot = json!({"application_id": "shop", "describe": fs::read_to_string(&text).unwrap(), "stated": {"pinned": []},
            "partitions": {"orders": 3}});
        assert_documented("snapshot", &snapshot);
        let file = snapshots.path().join("s.json");
        fs::write(&file, snapshot.to_string()).unwrap();
        for (option, path) in [("--describe", &text), ("--snapshot", &file)] {
            let mut command = Command::new(BINARY);
            let output = command.args(["topology", "--output", "json", option]).arg(path).output().unwrap();
            assert!(output.status.success(), "{}", text.display());
            assert_documented("topology", &serde_json::from_slice(&output.stdout).unwrap());
        }
        let output = Command::new(BINARY).args(["plan", "--output", "json", "--snapshot"]).arg(&file).output().unwrap();
        assert_documented("plan", &serde_json::from_slice(&output.stdout).unwrap());
        seen += 1;
    }
    assert_eq!(seen, 15);
}

#[test]
fn jobs_are_as_documented() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases/grouper.json");
    let file: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let codes: Vec<Value> = job::Code::ALL.iter().map(|code| serde_json::to_value(code).unwrap()).collect();
    let documented = Schema::of("job-group").document["properties"]["code"]["enum"].clone();
    assert_eq!(documented.as_array().unwrap()[1..], codes);
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input.json");
    let mut seen = 0;
    for case in file["cases"].as_array().unwrap() {
        for run in case["runs"].as_array().into_iter().flatten().chain([case]).filter(|run| run["input"]["grouper"].is_string()) {
            assert_documented("job-group-input", &run["input"]);
            fs::write(&input, run["input"].to_string()).unwrap();
            let output = Command::new(BINARY).args(["job", "group", "--output", "json", "--input"]).arg(&input).output().unwrap();
            let answer = serde_json::from_slice(&output.stdout).unwrap();
            assert_documented("job-group", &answer);
            seen += 1;
        }
    }
    assert!(seen > 8);
    fs::write(&input, json!({"tasks": {"Partition 0": [["kafka", "orders", 0], ["kafka", "orders", 1, 2]]}}).to_string())
        .unwrap();
    let records = Command::new(BINARY).args(["job", "assignment", "--encode"]).arg(&input).output().unwrap().stdout;
    fs::write(&input, records).unwrap();
    let output = Command::new(BINARY).args(["job", "assignment", "--output", "json", "--decode"]).arg(&input).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["tasks"]["Partition 0"].as_array().unwrap().len(), 2);
    assert_documented("job-assignment", &answer);
}

#[test]
fn control_messages_are_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let ask = |arguments: &[&str], input: &Value| {
        let file = folder.path().join("input.json");
        fs::write(&file, input.to_string()).unwrap();
        let mut command = Command::new(BINARY);
        command.arg("control").args(arguments).args(["--output", "json"]);
        if !input.is_null() {
            command.arg("--input").arg(&file);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    for message in [
        json!({"type": "user", "payload_hex": "00"}),
        json!({"type": "watermark", "taskName": "t0", "taskCount": 2, "timestamp": 5, "streamId": null}),
        json!({"type": "end-of-stream", "version": 1, "streamId": "orders"}),
        json!({"type": "drain", "runId": "r"}),
    ] {
        assert_documented("control-message", &message);
        let answer = ask(&["encode"], &message);
        assert_documented("control-message", &ask(&["decode", "--hex", answer["hex"].as_str().unwrap()], &Value::Null));
    }
    let (one, other) = (json!(["kafka", "mid", 0]), json!(["kafka", "mid", 1]));
    let steps = json!({"partitions": [one], "steps": [
        {"ssp": one, "task": null, "timestamp": 5},
        {"ssp": one, "task": "t0", "task_count": 1, "end_of_stream": true},
        {"add_partition": other},
        {"checkpoint_restart": true}
    ]});
    assert_documented("control-steps", &steps);
    assert_documented("control-reconcile", &ask(&["reconcile"], &steps));
}

/// The answer to `-h`, which must not depend on the terminal.
fn help(arguments: &str) -> String {
    let mut command = Command::new(BINARY);
    command.args(arguments.split_whitespace()).env_clear().stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments}");
    String::from_utf8(output.stdout).unwrap()
}

/// Every block of `docs/commands.md` that starts with a command shows what that command prints.
#[test]
fn help_texts_are_as_documented() {
    const PROMPT: &str = "$ partition-autoscaler ";
    let document = docs("commands.md");
    let mut parts = document.split("```");
    let mut made = parts.next().unwrap().to_owned();
    while let (Some(block), Some(prose)) = (parts.next(), parts.next()) {
        let first = block.trim_start().lines().next().unwrap_or_default();
        let command = first.strip_prefix(PROMPT).unwrap_or_else(|| panic!("a block without a command: {first}"));
        let text: String = help(command).lines().map(|line| format!("{}\n", line.trim_end())).collect();
        made += &format!("```\n{PROMPT}{command}\n{text}```{prose}");
    }
    expect_file!["../../docs/commands.md"].assert_eq(&made);
    let overview = help("-h");
    let commands = overview.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for command in commands.filter_map(|line| line.split_whitespace().next()).filter(|command| *command != "help") {
        assert!(document.contains(&format!("{PROMPT}{command} ")), "{command} is missing in docs/commands.md");
    }
}
