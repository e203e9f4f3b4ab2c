//! Reading `Topology#describe()` texts, and the `topology` command.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "in a test a panic is the message"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use expect_test::expect_file;
use kit::process;
use partition_autoscaler::topology::describe::{Description, NodeKind, ParseError, parse};
use partition_autoscaler::topology::{Overview, names, text_hints};
use serde_json::{Value, json};

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

/// All texts, by file name.
fn texts() -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = fs::read_dir(data("describe"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap()))
        .collect();
    texts.sort();
    assert_eq!(texts.len(), 15);
    texts
}

fn answer(text: &str) -> Result<Value, ParseError> {
    Ok(serde_json::to_value(Overview::of_description(&parse(text)?).answer()).unwrap())
}

/// Everything but the warnings has to be equal; of the warnings the expected ones must be there.
fn assert_answer(name: &str, mut got: Value, mut expected: Value) {
    let codes = |value: &Value| -> BTreeSet<String> {
        value["warnings"].as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap().to_owned()).collect()
    };
    assert!(codes(&expected).is_subset(&codes(&got)), "{name}: {got}");
    for value in [&mut got, &mut expected] {
        value["warnings"] = Value::Null;
    }
    assert_eq!(got, expected, "{name}");
}

fn binary(args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_partition-autoscaler"));
    command.args(args).envs([("NO_PROXY", "127.0.0.1"), ("no_proxy", "127.0.0.1")]);
    process::feed(&mut command, input)
}

fn stdout(args: &[&str], input: &[u8]) -> String {
    let output = binary(args, input);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_text_gives_the_answer_beside_it() {
    for (name, text) in texts() {
        let expected = fs::read(data("describe").join(&name).with_extension("json")).unwrap();
        assert_answer(&name, answer(&text).unwrap(), serde_json::from_slice(&expected).unwrap());
    }
}

#[test]
fn every_case_is_answered() {
    let cases: Value = serde_json::from_slice(&fs::read(data("cases/describe.json")).unwrap()).unwrap();
    for case in cases["cases"].as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        let text = match case["describe_file"].as_str() {
            Some(file) => fs::read_to_string(data(file)).unwrap(),
            None => case["text"].as_str().unwrap().to_owned(),
        };
        let expected = &case["expected"];
        let output = binary(&["topology", "--describe", "-", "--output", "json"], text.as_bytes());
        if expected["error"] == true {
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code().map(i64::from), expected["exit_code"].as_i64(), "{id}");
            assert!(output.stdout.is_empty(), "{id}");
            assert!(message.contains("line "), "{id}: {message}");
            for word in expected["mentions"].as_array().unwrap() {
                assert!(message.contains(word.as_str().unwrap()), "{id}: {message}");
            }
        } else {
            assert_eq!(output.status.code(), Some(0), "{id}");
            assert_answer(id, serde_json::from_slice(&output.stdout).unwrap(), expected.clone());
        }
    }
}

/// One subtopology with a source in front of the given lines.
fn one(lines: &str) -> String {
    format!("Topologies:\n   Sub-topology: 0\n{lines}")
}

#[test]
fn what_a_node_line_may_hold() {
    let source = |topics: &[&str], pattern: Option<&str>| NodeKind::Source {
        topics: topics.iter().map(|&t| t.to_owned()).collect(),
        pattern: pattern.map(str::to_owned),
    };
    let dynamic = NodeKind::Sink { topic: None };
    let cases = [
        ("Source: a (topics: [x, y.z_1-2])\n--> none", source(&["x", "y.z_1-2"], None)),
        ("Source: a (topics: [])\n--> none", source(&[], None)),
        ("Source: a (topics: [ab].*)\n--> none", source(&[], Some("[ab].*"))),
        ("Source: a (topics: [^ab])\n--> none", source(&[], Some("[^ab]"))),
        ("Source: a (topics: (x|y)-(\\d+))\n--> none", source(&[], Some("(x|y)-(\\d+)"))),
        ("Source: a (topics: x (topics: y))\n--> none", source(&[], Some("x (topics: y)"))),
        ("Source: My source (1) (topics: [x])\n--> none", source(&["x"], None)),
        ("Source: a (topics: [x])\n<-- none\n--> none", source(&["x"], None)),
        ("Processor: a (stores: [s 1, s2])\n--> none\n<-- none", NodeKind::Processor { stores: vec!["s 1".into(), "s2".into()] }),
        ("Processor: a (stores: [])\n\n<-- none\n\n--> none", NodeKind::Processor { stores: vec![] }),
        ("Sink: a (topic: x)\n<-- none", NodeKind::Sink { topic: Some("x".into()) }),
        ("Sink: a (extractor class: )\n<-- none", dynamic.clone()),
        ("Sink: a (extractor class: (k, v) -> \"(topic: x)\")\n<-- none", dynamic.clone()),
        ("Sink: a (extractor class: A (topic: x))\n<-- none", dynamic.clone()),
        ("Sink: a (extractor class: Router(\n  rules = (1)\n\n  fallback = x\n))\n<-- none", dynamic),
    ];
    for (lines, expected) in cases {
        let description = parse(&one(lines)).unwrap_or_else(|e| panic!("{lines}: {e}"));
        assert_eq!(description.blocks.len(), 1, "{lines}");
        let node = &description.blocks[0].nodes[0];
        assert_eq!(node.kind, expected, "{lines}");
        assert_eq!(node.name, if lines.contains("My source") { "My source (1)" } else { "a" });
    }
}

#[test]
fn every_wrapping_gives_the_same_description() {
    let (_, plain) = texts().swap_remove(1);
    let expected = parse(&plain).unwrap();
    let wrappings = [
        json!(plain).to_string(),
        json!([plain]).to_string(),
        json!({"application": "shop", "topology": plain}).to_string(),
        serde_json::to_string_pretty(&json!({"status": 200, "value": {"topology-description": plain}, "tags": [1, null]}))
            .unwrap(),
        format!("\u{feff}{plain}"),
        format!("\n\n{plain}\n\n"),
        plain.replace('\n', "\r\n"),
        plain.replace('\n', "  \n\n"),
        plain.replace('\n', "\n\t\t"),
        plain.lines().map(str::trim).collect::<Vec<_>>().join("\n"),
        plain.trim_start_matches("Topologies:\n").to_owned(),
        plain.trim_end().to_owned(),
    ];
    for wrapping in wrappings {
        assert_eq!(parse(&wrapping).as_ref(), Ok(&expected), "{wrapping}");
    }
}

#[test]
fn what_is_not_a_whole_description_is_an_error_with_its_line() {
    let source = "Source: a (topics: [x])\n--> none\n";
    let cases: Vec<(String, usize, &str)> = vec![
        (String::new(), 1, "found nothing"),
        (" \n\t\n".into(), 1, "found nothing"),
        ("Topologies".into(), 1, "expected \"Topologies:\""),
        ("hello\n".into(), 1, "\"Sub-topology: N\""),
        ("[main] INFO App - started".into(), 1, "\"Sub-topology: N\""),
        ("<!DOCTYPE html>\n<html></html>".into(), 1, "HTML"),
        ("\u{0}\u{1}\u{2}".into(), 1, "found \"\\0\\u{1}\\u{2}\""),
        ("Topology: east\n".into(), 1, "\"Topology: NAME:\""),
        ("Topology: :\n".into(), 1, "\"Topology: NAME:\""),
        ("Topologies:\nSub-topology: 0".into(), 2, "before the first node of subtopology 0"),
        ("Topologies:\nSub-topology: one".into(), 2, "a number"),
        ("Topologies:\nSub-topology: -1".into(), 2, "a number"),
        ("Topologies:\nSub-topology: 99999999999".into(), 2, "a number"),
        ("Topologies:\nSub-topology: 0 for global".into(), 2, "for global store (will not generate tasks)"),
        ("Topologies:\nSub-topology: 0\nSub-topology: 1".into(), 3, "before the first node of subtopology 0 (line 2)"),
        ("Topologies:\nSource: a (topics: [x])".into(), 2, "before the first node"),
        (one("--> a"), 3, "a node before its arrows"),
        (one("Source: a"), 3, "(topics: [TOPIC, ...])"),
        (one("Source: a (topics: [x"), 3, "(topics: [TOPIC, ...])"),
        (one("Source: a (topics: )"), 3, "(topics: [TOPIC, ...])"),
        (one("Source: (topics: [x])"), 3, "(topics: [TOPIC, ...])"),
        (one("Source: a (topics: [x])"), 3, "the text ends in the middle of source \"a\" (line 3)"),
        (one("Source: a (topics: [x])\n-->"), 4, "\"none\" or names"),
        (one("Source: a (topics: [x])\n--> b,"), 4, "\"none\" or names"),
        (one("Source: a (topics: [x])\n--> none\n--> none"), 5, "line 4 is one"),
        (one("Source: a (topics: [x])\n--> b"), 4, "found the name \"b\""),
        (one("Source: a (topics: [x])\nSink: b (topic: y)\n<-- a"), 4, "a node follows in the middle of source \"a\" (line 3)"),
        (one(&format!("{source}Processor: b (stores: [s)\n")), 5, "(stores: [STORE, ...])"),
        (one(&format!("{source}Processor: b (stores: [s, ])\n")), 5, "(stores: [STORE, ...])"),
        (one(&format!("{source}Processor: b (stores: [])\n--> none\n")), 6, "its line \"<-- ...\""),
        (one(&format!("{source}Processor: b (stores: [])\n<-- none\n")), 6, "its line \"--> ...\""),
        (one(&format!("{source}Sink: b (topic: )\n<-- none")), 5, "(topic: TOPIC)"),
        (one(&format!("{source}Sink: b (extractor class: A\n<-- none")), 6, "the \")\" that ends line 5"),
        (one(&format!("{source}Sink: b (extractor class: A\nB(")), 6, "the closing \")\""),
        (one(&format!("{source}Sink: b (topic: y)\n<-- a")), 6, "found source \"a\" (line 3) next to sink \"b\""),
        (one(&format!("{source}Source: a (topics: [y])\n--> none")), 5, "node \"a\" for the second time (first on line 3)"),
        (one(&format!("{source}Sub-topology: 0\n{source}")), 5, "subtopology 0 for the second time"),
        (one(&format!("{source}INFO started\n")), 5, "found \"INFO started\""),
        (one(&format!("{source}{}", "x".repeat(500))), 5, "xxx\"..., expected"),
        ("[]".into(), 1, "JSON without a description"),
        ("{\"status\": \"UP\"}".into(), 1, "JSON without a description"),
        ("\"hello\"".into(), 1, "JSON without a description"),
        ("{\"a\":\n[1,".into(), 2, "nor sound JSON"),
        (json!([one(source), one(source)]).to_string(), 1, "found 2 descriptions"),
        (json!([one("Source: a (topics: [x")]).to_string(), 3, "(topics: [TOPIC, ...])"),
    ];
    for (text, line, words) in cases {
        let error = parse(&text).expect_err(&text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.to_string().starts_with(&format!("line {line}: ")) && error.message.contains(words), "{text}: {error}");
    }
}

/// Cut anywhere, a text gives an error or whole blocks: never a block with fewer nodes or names.
#[test]
fn a_cut_text_gives_whole_blocks_or_an_error() {
    for (name, text) in texts() {
        let full = parse(&text).unwrap();
        let by_line: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        let cuts: Vec<usize> =
            if text.len() < 4000 { (0..text.len()).filter(|&at| text.is_char_boundary(at)).collect() } else { by_line };
        for cut in cuts {
            if let Ok(part) = parse(&text[..cut]) {
                assert_eq!(part.blocks, full.blocks[..part.blocks.len()], "{name} cut at byte {cut}");
            }
        }
    }
}

/// Whatever is left is understood whole or not at all.
#[test]
fn random_deletions_never_leave_loose_ends() {
    let mut random = fastrand::Rng::with_seed(878);
    for (name, text) in texts() {
        for _ in 0..if text.len() < 4000 { 500 } else { 20 } {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..random.usize(1..4) {
                let from = random.usize(..bytes.len());
                let to = (from + random.usize(1..60)).min(bytes.len());
                bytes.drain(from..to);
                if bytes.is_empty() {
                    break;
                }
            }
            let damaged = String::from_utf8_lossy(&bytes);
            // JSON carries its line ends as two characters
            let lines = damaged.lines().count() + damaged.matches("\\n").count();
            match parse(&damaged) {
                Ok(description) => assert_whole(&name, &description),
                Err(error) => assert!((1..=lines.max(1)).contains(&error.line), "{name}: {error}"),
            }
        }
    }
}

fn assert_whole(name: &str, description: &Description) {
    for block in &description.blocks {
        let edges = |down: bool| -> BTreeSet<(&str, &str)> {
            let pairs = block.nodes.iter().flat_map(|node| {
                let others = if down { &node.successors } else { &node.predecessors };
                others.iter().map(|other| (node.name.as_str(), other.as_str()))
            });
            pairs.map(|(a, b)| if down { (a, b) } else { (b, a) }).collect()
        };
        assert!(!block.nodes.is_empty(), "{name}");
        assert_eq!(edges(true), edges(false), "{name}");
    }
}

#[test]
fn names_of_repartition_topics() {
    for name in [
        "a-repartition",
        "x-subscription-registration-topic",
        "x-subscription-response-topic",
        "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic",
        "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic",
    ] {
        assert!(names::is_repartition_name(name), "{name}");
    }
    for name in [
        "",
        "repartition",
        "a-repartition-2",
        "a-changelog",
        "my-topic",
        "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-6-topic",
        "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-pk",
        "KTABLE-FK-JOIN-SUBSCRIPTION-OTHER-0000000006-topic",
        "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-00000000xx-topic",
    ] {
        assert!(!names::is_repartition_name(name), "{name}");
    }
}

#[test]
fn what_is_inferred_from_the_graph() {
    let joins = "
        Sub-topology: 0
        Source: s1 (topics: [a])
          --> p1
        Source: s2 (topics: [b])
          --> p2
        Source: s3 (topics: [c.*])
          --> p3
        Source: s4 (topics: [d])
          --> p4
        Processor: p1 (stores: [left, own])
          --> none
          <-- s1
        Processor: p2 (stores: [left, right])
          --> p5
          <-- s2
        Processor: p3 (stores: [right, other])
          --> none
          <-- s3
        Processor: p4 (stores: [right])
          --> none
          <-- s4
        Processor: p5 (stores: [right])
          --> out
          <-- p2
        Sink: out (topic: x-repartition)
          <-- p5
        Sub-topology: 1 for global store (will not generate tasks)
        Source: g (topics: [x-repartition])
          --> none
        Sub-topology: 2
        Source: y (topics: [y-repartition])
          --> none";
    let description = parse(joins).unwrap();
    // left ties a and b, right ties b and d; what a pattern matches is not known
    assert_eq!(text_hints::copartition_groups(&description), [["a", "b", "d"]]);
    // the only reader is a global store, the only writer is missing
    assert!(text_hints::repartition_candidates(&description).is_empty());
    let overview = Overview::of_description(&description);
    let codes: Vec<&str> = overview.warnings.iter().map(|w| w.code).collect();
    assert_eq!(codes, ["REPARTITION_NOT_READ", "REPARTITION_NOT_WRITTEN", "PATTERN_SOURCE"]);
}

#[test]
fn a_snapshot_tells_which_candidates_are_real() {
    let text = fs::read_to_string(data("describe/04-two-stage-windowed-suppress.txt")).unwrap();
    let standings = |partitions: Value| {
        let snapshot = json!({"application_id": "app", "describe": text, "partitions": partitions});
        let out = stdout(&["topology", "--snapshot", "-", "--output", "json"], snapshot.to_string().as_bytes());
        let answer: Value = serde_json::from_str(&out).unwrap();
        let standing = |topic: &str| answer["known"]["repartition_topics"][topic].as_str().unwrap().to_owned();
        [standing("bin-rollup-repartition"), standing("picker-rollup-repartition")]
    };
    let both = json!({"app-bin-rollup-repartition": 3, "app-picker-rollup-repartition": 3});
    assert_eq!(standings(both), ["confirmed", "confirmed"]);
    assert_eq!(standings(json!({"app-bin-rollup-repartition": 3, "bin-rollup-repartition": 3})), ["unclear", "missing"]);
    assert_eq!(standings(json!({"bin-rollup-repartition": 3})), ["user-topic", "missing"]);
}

#[test]
fn a_snapshot_says_what_is_stated() {
    let topology = json!({
        "subtopologies": [{"id": 0, "sources": ["orders"], "sinks": ["by-x-repartition"]},
                          {"id": 1, "sources": ["by-x-repartition", "rates"], "stores": ["totals"]}],
        "repartition_topics": ["by-x-repartition"],
        "copartition_groups": [["by-x-repartition", "rates"]],
        "global_topics": ["countries"],
        "pinned": {"by-x-repartition": 4},
    });
    let snapshot = json!({"application_id": "app", "topology": topology, "partitions": {"orders": 3, "app-totals-changelog": 3}})
        .to_string();
    expect_file!["golden/topology/stated.table"].assert_eq(&stdout(&["topology", "--snapshot", "-"], snapshot.as_bytes()));
    let json: Value =
        serde_json::from_str(&stdout(&["topology", "--snapshot", "-", "--output", "json"], snapshot.as_bytes())).unwrap();
    assert_eq!(
        json["known"],
        json!({"repartition_topics": {"by-x-repartition": "stated"}, "copartition_groups": "stated",
               "changelogs": {"app-totals-changelog": true}, "global_topics": ["countries"], "pinned": {"by-x-repartition": 4}})
    );
}

#[test]
fn forms_for_people() {
    let file = |name: &str| data("describe").join(name).to_string_lossy().into_owned();
    let form = |name: &str, format: &str| stdout(&["topology", "--describe", &file(name), "--format", format], b"");
    let join = "13-optimized-shared-repartition.txt";
    expect_file!["golden/topology/join.table"].assert_eq(&form(join, "table"));
    expect_file!["golden/topology/join.mmd"].assert_eq(&form(join, "mermaid"));
    expect_file!["golden/topology/join.dot"].assert_eq(&form(join, "dot"));
    let global = "05-global-plus-pattern-unindented.txt";
    expect_file!["golden/topology/global.table"].assert_eq(&form(global, "table"));
    expect_file!["golden/topology/global.mmd"].assert_eq(&form(global, "mermaid"));
    expect_file!["golden/topology/global.dot"].assert_eq(&form(global, "dot"));
    assert_eq!(form(join, "json"), stdout(&["topology", "--describe", &file(join), "--output", "json"], b""));
}

/// Names come from outside: they must not be able to end a label or to steer a terminal.
#[test]
fn names_are_escaped() {
    let text = one("Source: a (topics: \"x\\d\"];)\n--> b\nSink: b (topic: \u{1b}[31mred)\n<-- a");
    let form = |format: &str| stdout(&["topology", "--describe", "-", "--format", format], text.as_bytes());
    assert!(form("table").contains("\\u{1b}[31mred"));
    assert!(form("mermaid").contains("n1([\"topics that match #34;x#92;d#34;#93;#59;\"])"));
    assert!(form("dot").contains("label=\"topics that match \\\"x\\\\d\\\"];\""));
    for format in ["table", "mermaid", "dot", "json"] {
        assert!(!form(format).contains('\u{1b}'), "{format}");
    }
}

/// Answers one request on loopback; gives the address.
fn serve(response: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut part = [0; 1024];
        while !request.windows(4).any(|w| w == b"\r\n\r\n") {
            let n = stream.read(&mut part).unwrap();
            assert_ne!(n, 0, "the request ended early");
            request.extend_from_slice(&part[..n]);
        }
        stream.write_all(response.as_bytes()).unwrap();
    });
    format!("http://{address}/topology")
}

#[test]
fn a_url_may_answer_text_or_json() {
    let plain = serve(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nTopologies:\n   Sub-topology: 0\n    Source: a (topics: [x])\n      --> none\n",
    );
    let array = serve(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n[\"Topologies:\\n   Sub-topology: 0\\n    Source: a (topics: [x])\\n      --> none\\n\"]",
    );
    for url in [plain, array] {
        let answer: Value = serde_json::from_str(&stdout(&["topology", "--url", &url, "--output", "json"], b"")).unwrap();
        assert_eq!(answer["subtopologies"][0]["sources"], json!(["x"]));
    }
}

/// Every way to give no topology ends with exit code 2, nothing on standard output, and one sentence.
#[test]
fn error_sentences() {
    let describe = ["topology", "--describe", "-"];
    let snapshot = ["topology", "--snapshot", "-"];
    let mut said = String::new();
    let mut say = |title: &str, args: &[&str], input: &[u8]| {
        let output = binary(args, input);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{title}: {message}");
        assert!(output.stdout.is_empty(), "{title}");
        assert_eq!(message.lines().count(), 1, "{title}: {message}");
        said += &format!("{title}\n    {}\n", without_port(message.trim_end()));
    };
    say("HTML", &describe, b"<!DOCTYPE html>\n<html><body>Sign in</body></html>\n");
    say("nothing", &describe, b"");
    say("a log line", &describe, b"12:00:00 INFO State transition from CREATED to REBALANCING\n");
    say("bytes that are not text", &describe, b"\x7fELF\n\xff\xfe\x00");
    say(
        "half a node",
        &describe,
        b"Topologies:\n   Sub-topology: 0\n    Source: a (topics: [x])\n      --> b\n    Sink: b (topic: y)\n",
    );
    say("cut after a node", &describe, b"Topologies:\n   Sub-topology: 0\n    Source: a (topics: [x])\n      --> b\n");
    say("cut inside a line", &describe, b"Topologies:\n   Sub-topology: 0\n    Source: a (topics: [x");
    say("JSON of another shape", &describe, b"{\"status\": \"UP\"}");
    say("JSON that is cut", &describe, b"[\"Topologies:\\n");
    say("JSON with two applications", &describe, b"[\"Topologies:\\n\", \"Topologies:\\n\"]");
    say("a file that does not exist", &["topology", "--describe", "no-such-file.txt"], b"");
    say("a snapshot that is a text", &snapshot, b"Topologies:\n");
    say("a snapshot without topology", &snapshot, b"{\"application_id\": \"app\", \"partitions\": {}}");
    say("a snapshot with a bad text", &snapshot, b"{\"application_id\": \"app\", \"partitions\": {}, \"describe\": \"hello\"}");
    say("no topology at all", &["topology"], b"");
    say("two forms at once", &["topology", "--describe", "-", "--format", "dot", "--output", "json"], b"Topologies:\n");

    let html = serve("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html><body>Sign in</body></html>");
    let empty = serve("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let missing = serve("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let garbage = serve("hello\r\n\r\n");
    say("a URL that answers HTML", &["topology", "--url", &html], b"");
    say("a URL that answers nothing", &["topology", "--url", &empty], b"");
    say("a URL that is not there", &["topology", "--url", &missing], b"");
    say("a port that does not speak HTTP", &["topology", "--url", &garbage], b"");
    // nothing listens on port 1
    say("a port that refuses", &["topology", "--url", "http://127.0.0.1:1/topology"], b"");
    say("a URL with a password", &["topology", "--url", "http://user:secret@127.0.0.1:1/topology"], b"");
    say("no URL", &["topology", "--url", "orders"], b"");
    expect_file!["golden/topology/errors.txt"].assert_eq(&said.replace(env!("CARGO_MANIFEST_DIR"), "FOLDER"));
}

fn without_port(message: &str) -> String {
    match message.split_once("127.0.0.1:") {
        Some((before, after)) => format!("{before}127.0.0.1:PORT{}", after.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => message.to_owned(),
    }
}
