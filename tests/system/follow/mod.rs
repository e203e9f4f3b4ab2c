//! The main promise: an input grows, the internal topics follow, and the application lives.

mod kip_878;

use crate::stage::{Stage, wait_state};

#[test]
fn the_internal_topics_follow_the_input_and_the_application_lives() {
    let stage = Stage::shared("follow");
    let app = stage.start_simple(stage.app().metadata_age_ms(2000));
    let sidecar = stage.sidecar(&app, &[]).start();
    wait_state(&sidecar, "Steady");
    stage.grow_after_refresh("follow-", &[("orders", 6)]);
    stage.wait_internal(&[("by-customer-repartition", 6), ("counts-changelog", 6)]);
    app.wait_tasks(12);
    assert_eq!(wait_state(&sidecar, "Steady")["baseline"][stage.topic("orders")], 6);
    assert_eq!(app.exceptions(), Vec::<String>::new());
}
