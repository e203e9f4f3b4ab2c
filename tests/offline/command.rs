//! The `plan` command on saved snapshots: exit codes, what is printed where, and what-if.

use std::process::{Command, Output};

use kit::process;
use serde_json::{Value, json};

fn grown() -> Value {
    json!({
        "application_id": "shop", "protocol": "classic",
        "topology": {
            "subtopologies": [{"id": 0, "sources": ["orders"], "sinks": ["k-repartition"]},
                              {"id": 1, "sources": ["k-repartition"], "stores": ["totals"]}],
            "repartition_topics": ["k-repartition"], "pinned": []
        },
        "baseline": {"orders": 3},
        "partitions": {"orders": 6, "shop-k-repartition": 3, "shop-totals-changelog": 3}
    })
}

fn plan(input: &str, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_partition-autoscaler"));
    command.args(["plan", "--snapshot", "-"]).args(options);
    process::feed(&mut command, input.as_bytes())
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn json_is_complete_and_the_same_every_time() {
    let output = plan(&grown().to_string(), &["--output", "json"]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(out(&output), out(&plan(&grown().to_string(), &["--output", "json"])));
    let answer: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(
        answer,
        json!({
            "decision": "expand", "code": null, "message": "2 topics have to grow by 6 partitions in all",
            "changes": [
                {"topic": "shop-k-repartition", "role": "repartition", "from": 3, "to": 6,
                 "because": ["orders 3 -> 6", "subtopology 0 reads orders and writes shop-k-repartition -> 6"]},
                {"topic": "shop-totals-changelog", "role": "changelog", "from": 3, "to": 6,
                 "because": ["orders 3 -> 6", "subtopology 0 reads orders and writes shop-k-repartition -> 6",
                             "subtopology 1 has 6 tasks, its changelogs one partition for each -> 6"]}
            ],
            "subtopologies": [{"id": "0", "current": 3, "expected": 6}, {"id": "1", "current": 3, "expected": 6}],
            "possible_counts": {}, "conflicts": {}, "questions": [], "warnings": []
        })
    );
}

#[test]
fn exit_codes_follow_the_decision() {
    for (options, code) in [
        (&["--set-count", "orders=3"][..], 0),
        (&["--set-count", "orders=12"], 3),
        (&["--set-count", "shop-totals-changelog=9"], 4),
        (&["--set", "max.new.partitions=5"], 4),
        (&["--set", "topology.pinned=k-repartition"], 0),
        (&["--set", "topology.pinned=none"], 3),
        (&["--set", "topology.prefix=other"], 0),
        (&["--set", "baseline.orders=2"], 0),
        (&["--set-count", "unrelated=7"], 2),
    ] {
        let output = plan(&grown().to_string(), options);
        assert_eq!(output.status.code(), Some(code), "{options:?}: {}", out(&output));
    }
}

#[test]
fn text_names_the_change_and_the_reason() {
    let text = out(&plan(&grown().to_string(), &[]));
    for word in ["expand", "shop-k-repartition", "repartition", "orders 3 -> 6", "shop-totals-changelog", "subtopology"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn unreadable_input_says_where_and_prints_no_answer() {
    let mut unknown = grown();
    unknown["topology"]["pined"] = json!([]);
    let mut both = grown();
    both["describe"] = json!("Topologies:\n");
    let mut broken_text = grown();
    broken_text.as_object_mut().unwrap().remove("topology");
    broken_text["describe"] = json!("Topologies:\n   Sub-topology: 0\n    Source: a (topics");
    for (input, words) in [
        ("{", &["line 1", "column"][..]),
        (&unknown.to_string(), &["unknown field `pined`", "line 1"]),
        (&both.to_string(), &["both topology and describe"]),
        (&broken_text.to_string(), &["describe", "line 3"]),
    ] {
        let output = plan(input, &["--output", "json"]);
        let error = String::from_utf8(output.stderr.clone()).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{error}");
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} in {error}");
    }
}

#[test]
fn malformed_options_are_usage_errors() {
    for options in [
        ["--set-count", "orders"],
        ["--set-count", "orders=many"],
        ["--set-count", "orders=0"],
        ["--set-count", "=3"],
        ["--set", "max.new.partitions=few"],
        ["--set", "baseline.orders=few"],
        ["--set", "no.such.key=1"],
    ] {
        let output = plan(&grown().to_string(), &options);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{options:?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_partition-autoscaler"))
        .args(["plan", "--snapshot", "no-such-file.json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no-such-file.json"));
}
