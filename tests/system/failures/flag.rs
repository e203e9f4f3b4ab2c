//! The feature flag: off, switched on, and files that cannot be read.

use super::{Shop, lines, metric};
use crate::stage::wait_state;

const OFF: (&str, &str) = ("partition.autoscaling.enabled", "false");

#[test]
fn the_flag_off_says_everything_once_and_sends_nothing() {
    let shop = Shop::shared("off");
    let sidecar = shop.create(&[]).sidecar(&[OFF]);
    wait_state(&sidecar, "Steady");
    shop.stage.grow(&[("orders", 6)]);
    let disabled = wait_state(&sidecar, "Disabled");
    let error = serde_json::json!({"code": 1, "name": "INCOMPLETE_SOURCE_TOPIC_METADATA"});
    assert_eq!(disabled["assignor_error"], error);
    let sample = "partition_autoscaler_assignor_error{application_id=\"off\",code=\"INCOMPLETE_SOURCE_TOPIC_METADATA\"}";
    assert_eq!(metric(&sidecar, sample), 1.0);
    assert_eq!(shop.settled_requests(), []);
    assert_eq!(lines(&sidecar, "INCOMPLETE_SOURCE_TOPIC_METADATA"), 1, "{}", sidecar.log());
    for topic in shop.internal_names().iter().map(|name| shop.stage.internal(name)) {
        assert!(lines(&sidecar, &format!("{topic} 3 -> 6")) >= 1, "{}", sidecar.log());
    }
    let said = || lines(&sidecar, "Disabled") + lines(&sidecar, " 3 -> 6");
    let before = said();
    shop.settled_requests();
    assert_eq!(said(), before, "{}", sidecar.log());

    // Another change is another report.
    shop.stage.grow(&[("orders", 9)]);
    sidecar.wait_log(&format!("{} 3 -> 9", shop.stage.internal("orders-counts-changelog")));
    assert_eq!(shop.internal_counts(), [3, 3]);
    assert_eq!(wait_state(&sidecar, "Disabled")["assignor_error"], error);
}

#[test]
fn the_flag_off_may_end_the_process() {
    let shop = Shop::shared("exit");
    let sidecar = shop.create(&[]).sidecar(&[OFF, ("partition.autoscaling.on.error", "\"exit\"")]);
    wait_state(&sidecar, "Steady");
    shop.stage.grow(&[("orders", 6)]);
    assert_eq!(sidecar.wait_exit().code(), Some(6));
    assert_eq!(lines(&sidecar, "INCOMPLETE_SOURCE_TOPIC_METADATA (1)"), 1, "{}", sidecar.log());
    assert_eq!(shop.internal_counts(), [3, 3]);
    assert_eq!(shop.requests(), []);
}

#[test]
fn the_flag_is_switched_on_while_running() {
    let shop = Shop::shared("on");
    let sidecar = shop.create(&[]).sidecar(&[OFF]);
    wait_state(&sidecar, "Steady");
    shop.stage.grow(&[("orders", 6)]);
    wait_state(&sidecar, "Disabled");

    let broken = "partition.autoscaling.enabeld = true\n";
    sidecar.write_config(broken);
    sidecar.wait_log("the old one stays in force");
    sidecar.wait_log("partition.autoscaling.enabeld");
    assert_eq!(wait_state(&sidecar, "Disabled")["enabled"], false);
    assert_eq!(shop.settled_requests(), []);

    sidecar.write_config(&shop.config(&[]));
    shop.wait_all_internal(6);
    let application = wait_state(&sidecar, "Settling");
    assert_eq!((&application["enabled"], &application["assignor_error"]["code"]), (&true.into(), &0.into()));
    assert_eq!(shop.settled_plans().len(), 1);
}

#[test]
fn a_hang_up_reads_the_configuration_again() {
    let shop = Shop::shared("hang-up");
    let sidecar = shop.create(&[]).sidecar(&[]);
    wait_state(&sidecar, "Steady");
    sidecar.process().hang_up();
    sidecar.wait_log("the configuration was read again");
    assert_eq!(wait_state(&sidecar, "Steady")["enabled"], true);
}
