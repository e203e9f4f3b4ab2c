//! Growth that comes at a bad moment, or to topics that do not fit.

use kit::Cluster;
use kit::wait::{self, PATIENCE};
use serde_json::Value;

use super::{Shop, details, failures, metric, totals};
use crate::stage::wait_state;

#[test]
fn an_input_that_grows_again_at_once_is_followed_to_the_end() {
    let shop = Shop::shared("again");
    let sidecar = shop.create(&[]).sidecar(&[]);
    wait_state(&sidecar, "Steady");
    shop.stage.grow(&[("orders", 6)]);
    shop.stage.grow(&[("orders", 9)]);
    shop.wait_all_internal(9);
    wait_state(&sidecar, "Settling");
    let requests = shop.settled_plans();
    let all = |count| totals(&[("by-orders-repartition", count), ("orders-counts-changelog", count)]);
    assert!(requests == [all(9)] || requests == [all(6), all(9)], "{requests:?}");
    assert_eq!(failures(&sidecar), 0);
}

#[test]
fn inputs_that_grow_together_are_followed_in_one_request() {
    let shop = Shop { inputs: &["orders", "payments"], ..Shop::shared("together") };
    let sidecar = shop.create(&[]).sidecar(&[]);
    wait_state(&sidecar, "Steady");
    shop.stage.grow(&[("orders", 6), ("payments", 4)]);
    wait_state(&sidecar, "Settling");
    let expected = totals(&[
        ("by-orders-repartition", 6),
        ("by-payments-repartition", 4),
        ("orders-counts-changelog", 6),
        ("payments-counts-changelog", 4),
    ]);
    assert_eq!(shop.settled_plans(), [expected]);
    assert_eq!(shop.internal_counts(), [6, 4, 6, 4]);
}

#[test]
fn an_internal_topic_that_is_too_wide_stops_everything() {
    let shop = Shop::shared("too-wide");
    let sidecar = shop.create(&[]).sidecar(&[]);
    wait_state(&sidecar, "Steady");
    let changelog = shop.stage.internal("orders-counts-changelog");
    shop.stage.cluster.admin().grow(&[(&changelog, 8)]);
    let application = wait_state(&sidecar, "Blocked");
    assert!(details(&application).contains("WOULD_SHRINK"), "{application}");
    assert_eq!(application["plan"]["conflicts"][&changelog], serde_json::json!({"found": 8, "expected": 3}));
    // It fits no growth but the one to its own width.
    shop.stage.grow(&[("orders", 6)]);
    let expects_six = |status: &Value| status["applications"][0]["plan"]["conflicts"][&changelog]["expected"] == 6;
    sidecar.wait_status("the new plan", expects_six);
    assert_eq!(wait_state(&sidecar, "Blocked")["plan"]["code"], "WOULD_SHRINK");
    assert_eq!(shop.settled_requests(), []);
    shop.stage.grow(&[("orders", 8)]);
    shop.wait_all_internal(8);
    wait_state(&sidecar, "Settling");
    assert_eq!(shop.settled_plans(), [totals(&[("by-orders-repartition", 8)])]);
    assert_eq!(failures(&sidecar), 0);
}

#[test]
fn an_input_that_was_recreated_is_planned_from_scratch() {
    let shop = Shop::shared("recreated");
    let sidecar = shop.create(&[]).sidecar(&[]);
    wait_state(&sidecar, "Steady");
    let orders = shop.stage.topic("orders");
    let recreate = |count| {
        shop.stage.cluster.admin().delete(&[&orders]);
        shop.stage.create(&[("orders", count)]);
        sidecar.wait_log(&format!("it has {count} partitions and had"));
    };
    recreate(2);
    let narrower = wait_state(&sidecar, "Blocked");
    assert_eq!(narrower["plan"]["code"], "WOULD_SHRINK");
    assert!(details(&narrower).contains("recreated") && details(&narrower).contains(&orders), "{narrower}");
    recreate(3);
    let same = sidecar.wait_status("that all fits", |status| status["applications"][0]["plan"]["decision"] == "none");
    assert_eq!(same["applications"][0]["baseline"][&orders], 3);
    recreate(6);
    let wider = wait_state(&sidecar, "Blocked");
    assert_eq!(wider["plan"]["code"], "NO_BASELINE");
    assert!(details(&wider).contains("recreated"), "{wider}");
    assert_eq!(shop.settled_requests(), []);
    assert_eq!(failures(&sidecar), 0);
}

#[test]
fn a_quota_does_not_tear_the_plan() {
    let cluster = Cluster::shared();
    let shop = Shop::shared("quota");
    let sidecar = shop.create(&[]).sidecar(&[]);
    wait_state(&sidecar, "Steady");
    cluster.limit_mutations("quota-partition-autoscaler", 1);
    // The burst is 11 partitions, and the quota takes a moment to reach the controller.
    let mut orders = 3;
    wait::until(PATIENCE, "the quota to bite", || {
        orders += 20;
        shop.stage.grow(&[("orders", orders)]);
        shop.wait_all_internal(orders);
        wait_state(&sidecar, "Settling");
        (metric(&sidecar, "partition_autoscaler_throttle_seconds_total{") > 0.0).then_some(())
    });
    for (index, request) in shop.settled_plans().into_iter().enumerate() {
        let orders = 23 + 20 * index as u64;
        assert_eq!(request, totals(&[("by-orders-repartition", orders), ("orders-counts-changelog", orders)]));
    }
    assert_eq!(failures(&sidecar), 0);
}
