//! What an operator sees of an expansion: metrics, health, status and log.

use std::io::Write;
use std::process::{Command, Stdio};

use kit::Sidecar;
use kit::wait::{self, PATIENCE};
use serde_json::{Value, json};

use crate::stage::{Stage, metric, wait_state};

#[test]
fn an_expansion_is_seen_in_metrics_health_status_and_log() {
    let stage = Stage::shared("operator");
    let app = stage.start_simple(stage.app().threads(2).metadata_age_ms(5000));
    let sidecar = stage.sidecar(&app, &[("log.format", "\"json\"")]).start();
    wait_state(&sidecar, "Steady");
    assert_quiet(&sidecar, "operator");
    stage.grow_after_refresh("operator-", &[("orders", 6)]);
    app.wait_tasks(12);
    let in_use = |status: &Value| status["applications"][0]["last_expansion"]["settled_ms"].is_u64();
    let status = sidecar.wait_status("that the group has taken up the new partitions", in_use);
    let (orders, repartition) = (stage.topic("orders"), stage.internal("by-customer-repartition"));
    let changelog = stage.internal("counts-changelog");

    assert_eq!(sidecar.get("/livez"), (200, "ok\n".to_owned()));
    let none = json!({"code": 0, "name": "NONE"});
    let application = json!({"application_id": "operator", "state": "Steady", "assignor_error": none});
    assert_eq!(json_of(&sidecar, "/readyz"), json!({"ready": true, "missing": [], "applications": [application]}));
    let status = &status["applications"][0];
    assert_eq!(status["state"]["name"], "Steady");
    assert_eq!(status["baseline"], json!({&orders: 6}));
    let six = json!({"count": 6, "expected": 6});
    for topic in [&orders, &repartition, &changelog] {
        assert_eq!(status["partitions"][topic], six, "{topic}");
    }
    assert_eq!(status["last_expansion"]["topics"], json!({&repartition: 6, &changelog: 6}));
    assert_eq!((&status["failures"], &status["last_error"], &status["questions"]), (&json!(0), &json!(null), &json!([])));
    let plan = json_of(&sidecar, "/v1/plan");
    assert_eq!(
        (&plan["applications"][0]["application_id"], &plan["applications"][0]["plan"]),
        (&json!("operator"), &status["plan"])
    );
    assert_eq!((&status["plan"]["decision"], &status["plan"]["changes"]), (&json!("none"), &json!([])));

    assert_metrics(&sidecar.metrics());
    let log = sidecar.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    for line in &lines {
        assert!(line["timestamp"].is_string() && line["level"].is_string() && line["message"].is_string(), "{line}");
    }
    let messages: Vec<&str> = lines.iter().filter_map(|line| line["message"].as_str()).collect();
    assert_history_is_told(status, |message| messages.contains(&message));
}

fn assert_metrics(text: &str) {
    promtool(text);
    for line in include_str!("../../docs/metrics.md").lines() {
        let Some(family) = line.strip_prefix("| `").and_then(|line| line.split_once('`')) else { continue };
        assert!(
            text.contains(&format!("\n# TYPE {} ", family.0)) || text.starts_with(&format!("# HELP {} ", family.0)),
            "{line}"
        );
    }
    let own = |family: &str, labels: &str| {
        metric(text, &format!("partition_autoscaler_{family}{{application_id=\"operator\"{labels}}}"))
    };
    let failures = "kafka_streams_stream_client_metrics_num_autoscaling_failures";
    let client = "application_id=\"operator\",client_id=\"operator-partition-autoscaler\"";
    assert_eq!(metric(text, &format!("{failures}{{{client}}}")), 0.0);
    for family in ["subtopology_parallelism", "current_subtopology_parallelism", "expected_subtopology_parallelism"] {
        for subtopology in ["0", "1"] {
            let labels = format!("{{application_id=\"operator\",subtopology_id=\"{subtopology}\"}}");
            assert_eq!(metric(text, &format!("kafka_streams_stream_subtopology_metrics_{family}{labels}")), 6.0);
        }
    }
    for (family, labels, value) in [
        ("state", ",state=\"steady\"", 1.0),
        ("state", ",state=\"expanding\"", 0.0),
        ("assignor_error", ",code=\"NONE\"", 1.0),
        ("leader", "", 1.0),
        ("expansions_total", ",result=\"done\"", 1.0),
        ("expansions_total", ",result=\"failed\"", 0.0),
        ("create_partitions_requests_total", "", 1.0),
        ("partitions_created_total", ",role=\"repartition\"", 3.0),
        ("partitions_created_total", ",role=\"changelog\"", 3.0),
        ("observations_total", ",result=\"error\"", 0.0),
        ("reaction_seconds_count", "", 1.0),
        ("settling_seconds_count", "", 1.0),
    ] {
        assert_eq!(own(family, labels), value, "{family} {labels}");
    }
}

/// Prometheus' own opinion of what is scraped.
fn promtool(text: &str) {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("promtool ({error}): apt-get install -y prometheus"));
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("promtool reads everything");
    let output = child.wait_with_output().expect("our own child");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}\n{text}", String::from_utf8_lossy(&said));
}

fn json_of(sidecar: &Sidecar, path: &str) -> Value {
    let (code, body) = sidecar.get(path);
    assert_eq!(code, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}\n{body}"))
}

/// While nothing happens, nothing is said.
#[track_caller]
pub fn assert_quiet(sidecar: &Sidecar, application_id: &str) {
    let sample = format!("partition_autoscaler_observations_total{{application_id=\"{application_id}\",result=\"ok\"}}");
    let polls = || metric(&sidecar.metrics(), &sample);
    let (start, log) = (polls(), sidecar.log());
    wait::until(PATIENCE, "ten more observations", || (polls() >= start + 10.0).then_some(()));
    assert_eq!(sidecar.log(), log);
}

/// Everything that the history of a status remembers, changes of state first of all, was logged in the same words.
#[track_caller]
pub fn assert_history_is_told(status: &Value, logged: impl Fn(&str) -> bool) {
    let history = status["history"].as_array().expect("a list");
    let events: Vec<&str> = history.iter().filter_map(|entry| entry["event"].as_str()).collect();
    assert_eq!(events, ["leading", "steady", "topic-grew", "expanding", "expanded", "settling", "steady"]);
    for entry in history {
        assert!(logged(entry["message"].as_str().expect("a text")), "{entry}");
    }
}
