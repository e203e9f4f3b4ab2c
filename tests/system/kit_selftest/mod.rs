//! The test kit itself: what the other tests take for granted.

mod brokers;
mod kitchen_sink;
mod topologies;

use kit::{Record, Sidecar};

use crate::stage::{BINARY, Stage};

#[test]
fn a_stock_application_counts() {
    let stage = Stage::shared("kit-counts");
    let admin = stage.cluster.admin();
    let app = stage.start_simple(stage.app().metadata_age_ms(1000));
    let counts = admin.read_table(&stage.topic("customer-counts"));
    let expected = (0..5).map(|customer| (format!("c{customer}"), "12".to_owned()));
    assert_eq!(counts, expected.collect());
    assert_eq!(
        admin.internal_counts("kit-counts").into_iter().collect::<Vec<_>>(),
        [(stage.internal("by-customer-repartition"), 3), (stage.internal("counts-changelog"), 3)]
    );
    assert!(app.describe().contains("kit-counts.orders"), "{}", app.describe());
    assert_eq!(admin.group_state("kit-counts").as_deref(), Some("Stable"));
    app.close();
    assert_eq!(app.exceptions(), Vec::<String>::new());
    assert!(!app.is_alive());
}

/// The experiment every other test stands on: without help the application dies, in Kafka's own words.
#[test]
fn without_help_a_grown_input_kills_the_application() {
    let stage = Stage::shared("kit-dies");
    let app = stage.start_simple(stage.app().metadata_age_ms(1000));
    stage.grow(&[("orders", 6)]);
    let exception = app.wait_dead();
    let expected = format!(
        "Existing internal topic {} has invalid partitions: expected: 6; actual: 3.",
        stage.internal("by-customer-repartition")
    );
    assert!(exception.contains(&expected), "{exception}");
}

#[test]
fn without_help_a_grown_input_kills_the_application_in_a_streams_group() {
    let stage = Stage::shared("kit-streams-dies");
    let app = stage.start_simple(stage.app().metadata_age_ms(1000).protocol("streams"));
    stage.grow(&[("orders", 6)]);
    let exception = app.wait_dead();
    let expected = format!(
        "Existing topic {} has different number of partitions: expected 6, found 3",
        stage.internal("by-customer-repartition")
    );
    assert!(exception.contains(&expected), "{exception}");
}

#[test]
fn growing_everything_in_one_request_keeps_the_application_alive() {
    let stage = Stage::shared("kit-lives");
    let app = stage.start_simple(stage.app().metadata_age_ms(1000));
    let topics = [stage.topic("orders"), stage.internal("by-customer-repartition"), stage.internal("counts-changelog")];
    let admin = stage.cluster.admin();
    admin.grow(&topics.each_ref().map(|topic| (topic.as_str(), 6)));
    app.wait_tasks(12);
    admin.produce(&stage.topic("orders"), &[Record::new("new", "c9,p1").to(5)]);
    admin.wait_caught_up("kit-lives", &[&topics[0], &topics[1]]);
    assert_eq!(admin.read_table(&stage.topic("customer-counts")).get("c9").map(String::as_str), Some("1"));
    assert_eq!(app.exceptions(), Vec::<String>::new());
}

#[test]
fn a_sidecar_that_cannot_start_says_why() {
    let sidecar = Sidecar::builder(BINARY).config("no.such.key = 1\n").start();
    assert!(!sidecar.wait_exit().success());
    assert!(sidecar.wait_log("error: ").len() > "error: ".len());
}
