//! The coordinator topic is deleted, grown, and written to by strangers.

use std::time::Duration;

use kit::wait::{self, PATIENCE};
use kit::{Cluster, Record};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use serde_json::Value;

use super::{Team, both};

/// What a sidecar says is wrong with the coordination.
fn ailments(status: &Value) -> Vec<&str> {
    let warnings = status["applications"][0]["warnings"].as_array().unwrap().iter();
    warnings.filter(|warning| warning["code"] == "COORDINATION").filter_map(|warning| warning["message"].as_str()).collect()
}

fn wait_ailment(team: &Team<'_>, at: usize, text: &str) {
    team.sidecars[at].wait_status(text, |status| ailments(status).iter().any(|message| message.contains(text)));
}

fn wait_well(team: &Team<'_>) {
    for sidecar in &team.sidecars {
        sidecar.wait_status("that nothing is wrong", |status| ailments(status).is_empty());
    }
}

#[test]
fn a_deleted_topic_comes_back_with_what_was_known() {
    let mut team = Team::on(Cluster::shared(), "deleted");
    team.start(3);
    team.wait_leader();
    team.expand(6);
    let (topic, orders) = (team.stage.internal("partition-autoscaler"), team.stage.topic("orders"));
    let admin = team.stage.cluster.admin();
    wait::until(PATIENCE, "the baseline in the topic", || {
        let rows = admin.read_table(&topic);
        rows.iter().any(|(key, value)| key.contains(&orders) && value.contains('6')).then_some(())
    });
    admin.delete(&[&topic]);
    wait::until(PATIENCE, "the topic", || (admin.count(&topic) == Some(1)).then_some(()));
    wait::until(PATIENCE, "what was known in the new topic", || {
        let rows = admin.read_table(&topic);
        rows.iter().any(|(key, value)| key.contains(&orders) && value.contains('6')).then_some(())
    });
    team.wait_leader();
    wait_well(&team);
    team.expand(9);
    let requests = team.requests_to(9);
    assert_eq!(requests.iter().map(|(_, totals)| totals.clone()).collect::<Vec<_>>(), [both(6), both(9)]);

    // Nobody is left who remembers but the topic.
    wait::until(PATIENCE, "the baseline in the topic", || {
        let rows = admin.read_table(&topic);
        rows.iter().any(|(key, value)| key.contains(&orders) && value.contains('9')).then_some(())
    });
    team.sidecars.clear();
    team.stage.grow(&[("orders", 12)]);
    team.start(1);
    team.wait_followed(12);
}

#[test]
fn a_topic_that_was_grown_is_told_and_one_still_acts() {
    let mut team = Team::on(Cluster::shared(), "grown-topic");
    team.start(3);
    let leader = team.wait_leader();
    let topic = team.stage.internal("partition-autoscaler");
    team.stage.cluster.admin().grow(&[(&topic, 2)]);
    wait_ailment(&team, leader, "has 2 partitions, but has to have 1");
    team.sidecars[leader].wait_log("has 2 partitions, but has to have 1");
    team.expand(6);
    assert_eq!(team.requests_to(6), [(team.client(leader), both(6))]);

    // Repaired as the message says.
    team.stage.cluster.admin().delete(&[&topic]);
    wait::until(PATIENCE, "the topic", || (team.stage.cluster.admin().count(&topic) == Some(1)).then_some(()));
    team.wait_leader();
    wait_well(&team);
    team.expand(9);
    let totals: Vec<_> = team.requests_to(9).into_iter().map(|(_, totals)| totals).collect();
    assert_eq!(totals, [both(6), both(9)]);
}

#[test]
fn records_of_strangers_change_nothing() {
    let mut team = Team::on(Cluster::shared(), "garbage");
    let topic = team.stage.internal("partition-autoscaler");
    let admin = team.stage.cluster.admin();
    let garbage: Vec<Record> = (0..2000)
        .map(|n| match n % 4 {
            0 => Record::new(format!("{n}"), "{}"),
            1 => Record::new(format!("[1,\"set-autoscaler-baseline\",\"{n}\"]"), "not json"),
            2 => Record::new(format!("[1,\"set-no-such-type\",\"{n}\"]"), "{\"values\":{}}"),
            _ => Record::tombstone(format!("\u{0}{n}")),
        })
        .collect();
    team.start(1);
    let first = team.wait_leader();
    admin.produce(&topic, &garbage);
    team.expand(5);
    team.start(2); // these read it from the beginning
    assert_eq!(team.wait_leader(), first);
    admin.produce(&topic, &garbage);
    team.expand(7);
    for at in 0..3 {
        wait_ailment(&team, at, "are passed over");
        assert!(team.lines(at, "are passed over") <= 8, "{}", team.sidecars[at].log());
    }
    let old = team.take(first);
    old.process().kill();
    old.wait_exit();
    let leader = team.wait_leader();
    team.expand(9);
    assert_eq!(
        team.requests_to(9),
        [(old.client.clone(), both(5)), (old.client.clone(), both(7)), (team.client(leader), both(9))]
    );
    // Another topic has nothing of theirs.
    admin.delete(&[&topic]);
    wait_well(&team);
    team.expand(10);
}

/// Somebody else's consumer with the group's name: it owns the partition, and nobody leads.
#[test]
fn a_stranger_in_the_group_is_told_and_waited_out() {
    let mut team = Team::on(Cluster::shared(), "stranger");
    team.start(1);
    team.wait_leader();
    let name = team.stage.internal("partition-autoscaler");
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", team.stage.cluster.bootstrap())
        .set("group.id", &name)
        .set("partition.assignment.strategy", "cooperative-sticky")
        .create()
        .unwrap();
    consumer.subscribe(&[&name]).unwrap();
    let old = team.take(0);
    old.process().terminate();
    old.wait_exit();
    wait::until(PATIENCE, "the stranger to own the partition", || {
        drop(consumer.poll(Duration::from_millis(100)));
        (consumer.assignment().unwrap().count() == 1).then_some(())
    });
    team.start(1);
    let ailing = |team: &Team<'_>| team.application(0)["warnings"].to_string().contains("no sidecar has led for 30 s");
    wait::until(PATIENCE, "that nobody leads", || {
        drop(consumer.poll(Duration::from_millis(100)));
        ailing(&team).then_some(())
    });
    assert_eq!(team.lines(0, "no sidecar has led for 30 s"), 1);
    drop(consumer);
    team.wait_leader();
    wait_well(&team);
    team.expand(6);
}
