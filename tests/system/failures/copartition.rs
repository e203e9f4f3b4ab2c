//! Joined inputs that do not grow together.

use kit::Sidecar;
use kit::app::Builder;
use serde_json::json;

use super::{Shop, details, failures, totals};
use crate::leadership::put;
use crate::stage::{BINARY, Stage, wait_state};

#[test]
fn joined_inputs_may_grow_one_after_the_other() {
    let stage = Stage::shared("joined");
    stage.create(&[("orders", 3), ("payments", 3), ("paid", 1), ("customer-counts", 1)]);
    // An application that closes stays in its group until its session ends.
    let session = |app: Builder| app.property("session.timeout.ms", "6000").property("heartbeat.interval.ms", "1000");
    let start = || session(stage.app().topology("join")).start(stage.cluster);
    let app = start();
    app.wait_tasks(6);
    let sidecar = stage.sidecar(&app, &[]).start();
    wait_state(&sidecar, "Steady");

    stage.grow(&[("orders", 6)]);
    let waiting = wait_state(&sidecar, "Waiting");
    assert_eq!(waiting["plan"]["code"], "WAITING_FOR_COPARTITION");
    assert!(details(&waiting).contains(&stage.topic("payments")), "{waiting}");
    stage.grow(&[("payments", 6)]);
    stage.wait_internal(&[
        ("by-customer-repartition", 6),
        ("counts-changelog", 6),
        ("paid-other-join-store-changelog", 6),
        ("paid-this-join-store-changelog", 6),
    ]);
    wait_state(&sidecar, "Settling");
    // The application has not looked yet (it does every five minutes); its next start finds everything as it should be.
    app.close();
    let next = start();
    next.wait_tasks(12);
    let steady = wait_state(&sidecar, "Steady");
    assert_eq!(steady["baseline"], serde_json::json!({(stage.topic("orders")): 6, (stage.topic("payments")): 6}));
    assert_eq!([app.exceptions(), next.exceptions()], [vec![], Vec::<String>::new()]);
}

#[test]
fn a_sibling_that_never_grows_is_one_failure_and_no_end() {
    let shop = Shop { inputs: &["orders", "payments"], copartitioned: true, ..Shop::shared("sibling") };
    let sidecar = shop.create(&[]).sidecar(&[("partition.autoscaling.timeout.ms", "1000")]);
    wait_state(&sidecar, "Steady");
    shop.stage.grow(&[("orders", 6)]);
    let failed = wait_state(&sidecar, "Failed");
    assert_eq!(failed["plan"]["code"], "TIMEOUT");
    assert!(
        details(&failed).contains("gave up after 1s") && details(&failed).contains(&shop.stage.topic("payments")),
        "{failed}"
    );
    let events: Vec<&str> = failed["history"].as_array().unwrap().iter().filter_map(|entry| entry["event"].as_str()).collect();
    assert_eq!(events, ["leading", "steady", "topic-grew", "waiting", "failed"]);
    assert_eq!(shop.settled_requests(), []);
    assert_eq!(failures(&sidecar), 1);

    shop.stage.grow(&[("payments", 6)]);
    shop.wait_all_internal(6);
    wait_state(&sidecar, "Settling");
    let expected = totals(&[
        ("by-orders-repartition", 6),
        ("by-payments-repartition", 6),
        ("orders-counts-changelog", 6),
        ("payments-counts-changelog", 6),
    ]);
    assert_eq!(shop.settled_plans(), [expected]);
    assert_eq!(failures(&sidecar), 1);
}

const TIMEOUT: &str = "partition.autoscaling.timeout.ms";
const TOKEN: (&str, &str) = ("http.token.file", "\"token\"");

/// Waits for a sibling with the default timeout, until `shorten` has it changed.
fn gives_up(id: &'static str, shorten: impl FnOnce(&Shop<'_>, &Sidecar)) {
    let shop = Shop { inputs: &["orders", "payments"], copartitioned: true, ..Shop::shared(id) };
    let config = shop.create(&[]).config(&[TOKEN]);
    let sidecar = Sidecar::builder(BINARY).config(&config).file("token", "hunter2").start();
    wait_state(&sidecar, "Steady");
    shop.stage.grow(&[("orders", 6)]);
    wait_state(&sidecar, "Waiting");
    shorten(&shop, &sidecar);
    let failed = wait_state(&sidecar, "Failed");
    assert!(details(&failed).contains("gave up after 1ms"), "{failed}");
    assert_eq!(failures(&sidecar), 1);
}

#[test]
fn a_shorter_timeout_that_is_asked_for_ends_the_wait() {
    gives_up("impatient-asked", |_, sidecar| assert_eq!(put(sidecar, "hunter2", &json!({(TIMEOUT): 1})).0, 200));
}

#[test]
fn a_shorter_timeout_in_the_file_ends_the_wait() {
    gives_up("impatient-written", |shop, sidecar| sidecar.write_config(&shop.config(&[TOKEN, (TIMEOUT, "1")])));
}
