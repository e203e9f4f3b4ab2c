//! The main promise: an input grows, the internal topics follow, and the application lives.

mod kip_878;
mod pattern;
mod wide;

use crate::operator::{assert_history_is_told, assert_quiet};
use crate::stage::{Stage, wait_state};

#[test]
fn the_internal_topics_follow_the_input_and_the_application_lives() {
    let stage = Stage::shared("simple");
    let app = stage.start_simple(stage.app().threads(2).metadata_age_ms(5000));
    let sidecar = stage.sidecar(&app, &[]).start();
    wait_state(&sidecar, "Steady");
    assert_quiet(&sidecar, "simple");
    stage.grow_after_refresh("simple-", &[("orders", 6)]);
    stage.wait_internal(&[("by-customer-repartition", 6), ("counts-changelog", 6)]);
    app.wait_tasks(12);
    let status = wait_state(&sidecar, "Steady");
    assert_eq!(status["baseline"][stage.topic("orders")], 6);
    crate::documents::assert_documented("status", &sidecar.status());
    let log = sidecar.log();
    assert_history_is_told(&status, |message| log.contains(message));
    assert_eq!(app.exceptions(), Vec::<String>::new());
}
