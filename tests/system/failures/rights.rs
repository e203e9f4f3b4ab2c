//! Missing rights, topics and clusters.

use std::sync::OnceLock;

use kit::wait::{self, PATIENCE};
use kit::{Acl, Cluster, Operation, Resource, Sidecar};

use super::{Shop, details, failures, lines, metric, totals};
use crate::stage::wait_state;

pub const USER: &str = "scaler";

/// A cluster on which the sidecar may do what its user was allowed.
pub fn guarded() -> &'static Cluster {
    static GUARDED: OnceLock<Cluster> = OnceLock::new();
    GUARDED.get_or_init(|| Cluster::builder().log_requests().user(USER, "secret").start())
}

/// An application on that cluster, and its sidecar's user.
struct Guarded(Shop<'static>);

impl Guarded {
    /// Everything is allowed that the sidecar needs.
    fn shop(id: &'static str) -> Self {
        let shop = Shop::on(guarded(), id);
        shop.create(&[]);
        let guarded = Self(shop);
        let inputs = guarded.0.inputs.iter().map(|name| guarded.describe(&guarded.0.stage.topic(name)));
        let internal = guarded.0.internal_names().into_iter().map(|name| guarded.0.stage.internal(&name));
        let internal = internal.flat_map(|name| [guarded.describe(&name), guarded.alter(&name)]);
        guarded.allow(&inputs.chain(internal).collect::<Vec<_>>());
        guarded
    }

    fn describe(&self, topic: &str) -> Acl {
        Acl::new(USER, Operation::Describe, Resource::Topic, topic)
    }

    fn alter(&self, topic: &str) -> Acl {
        Acl::new(USER, Operation::Alter, Resource::Topic, topic)
    }

    fn allow(&self, acls: &[Acl]) {
        self.0.stage.cluster.admin().allow(acls);
    }

    fn revoke(&self, acls: &[Acl]) {
        self.0.stage.cluster.admin().revoke(acls);
    }

    fn sidecar(&self, keys: &[(&str, &str)]) -> Sidecar {
        let bootstrap = format!("{:?}", self.0.stage.cluster.sasl_bootstrap());
        let user = format!("{USER:?}");
        let login = [
            ("bootstrap.servers", bootstrap.as_str()),
            ("kafka.security.protocol", "\"SASL_PLAINTEXT\""),
            ("kafka.sasl.mechanism", "\"PLAIN\""),
            ("kafka.sasl.username", &user),
            ("kafka.sasl.password", "\"secret\""),
        ];
        self.0.sidecar(&[&login, keys].concat())
    }
}

#[test]
fn a_plan_that_was_carried_out_by_half_is_finished_once_it_may_be() {
    let shop = Guarded::shop("half");
    let repartition = shop.0.stage.internal("by-orders-repartition");
    shop.revoke(&[shop.alter(&repartition)]);
    let sidecar = shop.sidecar(&[]);
    wait_state(&sidecar, "Steady");
    shop.0.stage.grow(&[("orders", 6)]);
    shop.0.stage.wait_internal(&[("orders-counts-changelog", 6), ("by-orders-repartition", 3)]);
    let half = sidecar.wait_status("the refusal", |status| {
        let topics = &status["applications"][0]["plan"]["changes"];
        !status["applications"][0]["topic_errors"].as_object().unwrap().is_empty() && topics.as_array().unwrap().len() == 1
    });
    let application = &half["applications"][0];
    assert_eq!(application["state"]["name"], "Expanding");
    assert_eq!(application["topic_errors"][&repartition]["name"], "TOPIC_AUTHORIZATION_FAILED");
    assert_eq!(application["plan"]["changes"][0]["topic"], repartition.as_str());
    assert!(details(application).contains(&format!("{repartition} was not grown")), "{application}");
    assert!(details(application).contains("grant ALTER"), "{application}");

    // Grown again meanwhile: the topic that may be grown follows at once.
    shop.0.stage.grow(&[("orders", 9)]);
    shop.0.stage.wait_internal(&[("orders-counts-changelog", 9), ("by-orders-repartition", 3)]);
    assert_eq!(lines(&sidecar, "was not grown"), 1, "said once: {}", sidecar.log());

    // A sidecar that is started in this state has to be told the counts before.
    sidecar.process().kill();
    let baseline = format!("baseline.{:?}", shop.0.stage.topic("orders"));
    let next = shop.sidecar(&[(&baseline, "3")]);
    next.wait_log(&format!("{repartition} was not grown"));
    shop.allow(&[shop.alter(&repartition)]);
    shop.0.wait_all_internal(9);
    let application = wait_state(&next, "Settling");
    assert_eq!(application["topic_errors"], serde_json::json!({}));
    assert_eq!(application["baseline"][shop.0.stage.topic("orders")], 9);
    assert_eq!(failures(&next), 0);
}

#[test]
fn giving_up_is_one_failure_and_no_further_request() {
    let shop = Guarded::shop("timeout");
    let topics = ["by-orders-repartition", "orders-counts-changelog"].map(|name| shop.0.stage.internal(name));
    let rights = topics.each_ref().map(|topic| shop.alter(topic));
    shop.revoke(&rights);
    let sidecar = shop.sidecar(&[("partition.autoscaling.timeout.ms", "500")]);
    wait_state(&sidecar, "Steady");
    shop.0.stage.grow(&[("orders", 6)]);
    let failed = wait_state(&sidecar, "Failed");
    assert_eq!(failed["plan"]["code"], "TIMEOUT");
    for topic in &topics {
        assert_eq!(failed["topic_errors"][topic]["name"], "TOPIC_AUTHORIZATION_FAILED", "{failed}");
        assert!(details(&failed).contains(topic), "{failed}");
    }
    assert_eq!(failures(&sidecar), 1);
    shop.allow(&rights);
    // Longer than the longest pause between two requests.
    let sample = "partition_autoscaler_last_observation_timestamp_seconds{";
    let start = metric(&sidecar, sample);
    wait::until(PATIENCE, "observations for 11 s", || (metric(&sidecar, sample) - start > 11.0).then_some(()));
    let first = [totals(&[("by-orders-repartition", 6), ("orders-counts-changelog", 6)])];
    assert_eq!(shop.0.settled_requests(), first);
    assert_eq!(failures(&sidecar), 1);
    assert_eq!(wait_state(&sidecar, "Failed")["topic_errors"], failed["topic_errors"]);

    shop.0.stage.grow(&[("orders", 9)]);
    shop.0.wait_all_internal(9);
    let application = wait_state(&sidecar, "Settling");
    let second = totals(&[("by-orders-repartition", 9), ("orders-counts-changelog", 9)]);
    assert_eq!(shop.0.settled_plans(), [first, [second]].concat());
    assert_eq!((failures(&sidecar), &application["topic_errors"]), (1, &serde_json::json!({})));
}

#[test]
fn an_input_that_may_not_be_seen_is_named() {
    let shop = Guarded::shop("unseen");
    let orders = shop.0.stage.topic("orders");
    shop.revoke(&[shop.describe(&orders)]);
    let sidecar = shop.sidecar(&[]);
    let starting = sidecar.wait_status("the refusal", |status| {
        status["applications"][0]["topic_errors"][&orders]["name"] == "TOPIC_AUTHORIZATION_FAILED"
    });
    let application = &starting["applications"][0];
    assert_eq!(application["state"]["name"], "Starting");
    assert!(details(application).contains(&orders) && details(application).contains("grant DESCRIBE"), "{application}");
    assert_eq!(sidecar.get("/readyz").0, 503);
    shop.allow(&[shop.describe(&orders)]);
    wait_state(&sidecar, "Steady");
    assert_eq!(sidecar.get("/readyz").0, 200);

    // Lost while running: the last known count stays, the loss is told, and nothing is missed.
    shop.revoke(&[shop.describe(&orders)]);
    sidecar.wait_status("the loss", |status| !status["applications"][0]["topic_errors"][&orders].is_null());
    shop.0.stage.grow(&[("orders", 6)]);
    assert_eq!(shop.0.settled_requests(), []);
    assert_eq!(wait_state(&sidecar, "Steady")["partitions"][&orders]["count"], 3);
    shop.allow(&[shop.describe(&orders)]);
    shop.0.wait_all_internal(6);
    assert_eq!(wait_state(&sidecar, "Settling")["topic_errors"], serde_json::json!({}));
}

#[test]
fn an_input_that_does_not_exist_yet_is_waited_for() {
    let shop = Shop::shared("absent");
    let sidecar = shop.sidecar(&[]);
    let blocked = wait_state(&sidecar, "Blocked");
    assert_eq!(blocked["plan"]["code"], "MISSING_SOURCE_TOPICS");
    assert!(details(&blocked).contains(&shop.stage.topic("orders")), "{blocked}");
    shop.create(&[]);
    sidecar.wait_status("that all fits", |status| {
        let application = &status["applications"][0];
        application["plan"]["decision"] == "none" && application["partitions"].as_object().unwrap().len() == 3
    });
    shop.stage.grow(&[("orders", 6)]);
    shop.wait_all_internal(6);
    assert_eq!(failures(&sidecar), 0);
}

#[test]
fn another_cluster_than_expected_is_refused() {
    let shop = Shop::shared("elsewhere");
    let expected = "MkU3OEVBNTcwNTJENDM2Qg";
    let sidecar = shop.create(&[("orders", 6)]).sidecar(&[("expected.cluster.id", &format!("{expected:?}"))]);
    assert_eq!(sidecar.wait_exit().code(), Some(2));
    let line = sidecar.wait_log("expected.cluster.id");
    assert!(line.contains(expected) && line.contains(shop.stage.cluster.id()), "{line}");
    assert_eq!(shop.internal_counts(), [3, 3]);
    assert_eq!(shop.requests(), []);
}
