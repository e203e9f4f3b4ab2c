use std::io::Write;
use std::process::{Command, Stdio};

use expect_test::expect_file;

use super::*;

/// The table as Markdown, for the documentation.
fn markdown() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         `GET /metrics` in the text format of Prometheus. Counters exist at 0 from the start; sets of labels are small and closed.\n\
         This file is generated from `src/http/metrics.rs`: `UPDATE_EXPECT=1 cargo test --lib documentation_lists` writes it anew.\n\n\
         | family | type | labels | meaning |\n|---|---|---|---|\n",
    );
    for Family { name, kind, help, labels } in FAMILIES {
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        text += &format!("| `{name}` | {kind} | {} | {help} |\n", labels.join(", "));
    }
    text
}

fn parallelism(id: &str, current: Option<u32>, expected: Option<u32>) -> Parallelism {
    Parallelism { id: id.to_owned(), current, expected }
}

/// Metrics on which every method has been called.
fn used() -> (Metrics, AppMetrics) {
    let metrics = Metrics::new().unwrap();
    let app = metrics.application("shop", "shop-partition-autoscaler");
    app.set_leader(true);
    app.set_parallelism(&[parallelism("0", Some(3), Some(6)), parallelism("1", None, Some(6))]);
    app.set_state(StateName::Expanding);
    app.observe(ObservationResult::Ok, Duration::from_millis(2), SystemTime::UNIX_EPOCH + Duration::from_secs(7));
    app.count_plan(Verdict::Blocked, Some(Code::WouldShrink));
    app.count_request();
    app.count_created(Role::Repartition, 3);
    app.count_expansion(ExpansionResult::Done);
    app.time_reaction(Duration::from_millis(50));
    app.time_reaction_part(ReactionPart::Request, Duration::from_millis(40));
    app.time_gap(Duration::from_millis(550));
    app.time_settling(Duration::from_secs(90));
    app.count_kafka_error(ErrorClass::Unreachable);
    app.count_throttle(Duration::from_millis(1500));
    app.set_assignor_error(AssignorError::IncompleteSourceTopicMetadata);
    app.count_transition(Transition::Leading);
    app.set_epoch(7);
    app.set_skipped(&BTreeMap::from([(Skipped::NotAKey, 2)]));
    app.set_write_failures(&BTreeMap::from([(Failure::Fenced, 1)]));
    app.group_observed(SystemTime::UNIX_EPOCH + Duration::from_secs(8));
    metrics.config_read(Some(SystemTime::UNIX_EPOCH + Duration::from_secs(9)));
    (metrics, app)
}

#[test]
fn documentation_lists_every_family() {
    expect_file!["../../../docs/metrics.md"].assert_eq(&markdown());
}

#[test]
fn the_table_is_what_is_exported() {
    let (metrics, _app) = used();
    let exported: BTreeSet<(String, String)> = (metrics.render().unwrap().lines())
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect();
    let table = FAMILIES.iter().map(|family| (family.name.to_owned(), family.kind.to_owned())).collect();
    assert_eq!(exported, table);
}

#[test]
fn counters_exist_from_the_start() {
    let metrics = Metrics::new().unwrap();
    let app = metrics.application("shop", "shop-scaler");
    let text = metrics.render().unwrap();
    for line in [
        r#"kafka_streams_stream_client_metrics_num_autoscaling_failures{application_id="shop",client_id="shop-scaler"} 0"#,
        r#"partition_autoscaler_leader{application_id="shop"} 0"#,
        r#"partition_autoscaler_observations_total{application_id="shop",result="error"} 0"#,
        r#"partition_autoscaler_blocked_total{application_id="shop",code="TIMEOUT"} 0"#,
        r#"partition_autoscaler_kafka_errors_total{application_id="shop",class="timed_out"} 0"#,
        r#"partition_autoscaler_assignor_error{application_id="shop",code="NONE"} 1"#,
        r#"partition_autoscaler_reaction_seconds_count{application_id="shop"} 0"#,
        r#"partition_autoscaler_throttle_seconds_total{application_id="shop"} 0"#,
    ] {
        assert!(text.lines().any(|found| found == line), "no line {line}");
    }
    assert!(!text.contains("num_autoscaling_failures_total"));
    assert!(!text.contains("last_observation"), "nothing was observed yet");
    app.count_failure();
    let text = metrics.render().unwrap();
    assert!(text.contains(r#"num_autoscaling_failures{application_id="shop",client_id="shop-scaler"} 1"#));
}

fn parallelism_lines(metrics: &Metrics) -> Vec<String> {
    let text = metrics.render().unwrap();
    let prefix = "kafka_streams_stream_subtopology_metrics_";
    text.lines().filter_map(|line| line.strip_prefix(prefix)).map(str::to_owned).collect()
}

#[test]
fn parallelism_follows_the_leader() {
    let (metrics, app) = used();
    let other = metrics.application("other", "c");
    other.set_leader(true);
    other.set_parallelism(&[parallelism("0", Some(1), Some(1))]);
    let line = |family: &str, app: &str, id: &str, value: u32| {
        format!(r#"{family}{{application_id="{app}",subtopology_id="{id}"}} {value}"#)
    };
    let of_other = [
        line("current_subtopology_parallelism", "other", "0", 1),
        line("expected_subtopology_parallelism", "other", "0", 1),
        line("subtopology_parallelism", "other", "0", 1),
    ];
    let mut all = of_other.to_vec();
    all.extend([
        line("current_subtopology_parallelism", "shop", "0", 3),
        line("expected_subtopology_parallelism", "shop", "0", 6),
        line("expected_subtopology_parallelism", "shop", "1", 6),
        line("subtopology_parallelism", "shop", "0", 3),
        line("subtopology_parallelism", "shop", "1", 6),
    ]);
    all.sort();
    let mut found = parallelism_lines(&metrics);
    found.sort();
    assert_eq!(found, all);

    app.set_parallelism(&[parallelism("1", Some(6), Some(6))]);
    assert!(parallelism_lines(&metrics).iter().all(|line| !line.contains(r#""shop",subtopology_id="0""#)));
    app.set_leader(false);
    assert_eq!(parallelism_lines(&metrics), of_other);
}

#[test]
fn what_only_a_leader_sees_goes_with_the_leadership() {
    let (metrics, app) = used();
    let shown =
        |text: &str| ["_state{", "_last_observation_timestamp", "subtopology_parallelism{"].map(|part| text.contains(part));
    assert_eq!(shown(&metrics.render().unwrap()), [true; 3]);
    app.set_leader(false);
    let text = metrics.render().unwrap();
    assert_eq!(shown(&text), [false; 3], "{text}");
    for line in [
        r#"partition_autoscaler_leader{application_id="shop"} 0"#,
        r#"partition_autoscaler_leader_epoch{application_id="shop"} 7"#,
        r#"partition_autoscaler_create_partitions_requests_total{application_id="shop"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "no line {line}");
    }
}

#[test]
fn totals_kept_elsewhere_never_fall() {
    let (metrics, app) = used();
    let skipped = |count| {
        app.set_skipped(&BTreeMap::from([(Skipped::NotAKey, count)]));
        let text = metrics.render().unwrap();
        let sample = r#"coordinator_records_skipped_total{application_id="shop",reason="not_a_key"} "#;
        text.split(sample).nth(1).and_then(|rest| rest.lines().next()).unwrap().to_owned()
    };
    assert_eq!([skipped(3), skipped(3), skipped(1), skipped(5)], ["3", "3", "3", "5"]);
    metrics.config_read(None);
    let text = metrics.render().unwrap();
    assert!(text.contains("config_last_reload_success 0") && text.contains("success_timestamp_seconds 9"), "{text}");
}

/// The linter of Prometheus itself.
#[test]
fn promtool_has_nothing_to_say() {
    let (metrics, _app) = used();
    let promtool = Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut promtool = promtool.expect("promtool is needed: apt-get install --no-install-recommends prometheus");
    promtool.stdin.take().unwrap().write_all(metrics.render().unwrap().as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}
