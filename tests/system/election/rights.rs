//! The rights that election needs, and expansions that a missing right holds up.

use kit::wait::{self, PATIENCE};
use kit::{Acl, Operation, Resource};
use serde_json::Value;

use super::{Member, Team, both};
use crate::failures::rights::{USER, guarded};

/// What the election of this application needs, no more; to be seen by leaving one out.
fn election(team: &Team<'_>) -> Vec<Acl> {
    let name = team.stage.internal("partition-autoscaler");
    let topic = |operation| Acl::new(USER, operation, Resource::Topic, &name);
    vec![
        Acl::new(USER, Operation::Read, Resource::Group, &name),
        topic(Operation::Create),
        topic(Operation::Read),
        topic(Operation::Write),
        topic(Operation::DescribeConfigs),
        Acl::new(USER, Operation::Write, Resource::TransactionalId, &name),
    ]
}

/// ALTER on both internal topics.
fn growth(team: &Team<'_>) -> Vec<Acl> {
    let names = ["k-repartition", "st-changelog"].map(|name| team.stage.internal(name));
    names.iter().map(|name| Acl::new(USER, Operation::Alter, Resource::Topic, name)).collect()
}

/// Nobody runs yet; the user may elect and see all topics of the application, and not grow them.
fn team(id: &'static str) -> Team<'static> {
    let cluster = guarded();
    let team = Team::on(cluster, id)
        .with("bootstrap.servers", &format!("{:?}", cluster.sasl_bootstrap()))
        .with("kafka.security.protocol", "\"SASL_PLAINTEXT\"")
        .with("kafka.sasl.mechanism", "\"PLAIN\"")
        .with("kafka.sasl.username", &format!("{USER:?}"))
        .with("kafka.sasl.password", "\"secret\"");
    let topics = [team.stage.topic("orders"), team.stage.internal("k-repartition"), team.stage.internal("st-changelog")];
    let see: Vec<Acl> = topics.iter().map(|topic| Acl::new(USER, Operation::Describe, Resource::Topic, topic)).collect();
    allow(&see);
    allow(&election(&team));
    team
}

fn allow(acls: &[Acl]) {
    guarded().admin().allow(acls);
}

fn revoke(acls: &[Acl]) {
    guarded().admin().revoke(acls);
}

fn wait_warning(team: &Team<'_>, at: usize, text: &str) {
    let said = |warning: &Value| warning["message"].as_str().is_some_and(|message| message.contains(text));
    team.sidecars[at].wait_status(text, |status| status["applications"][0]["warnings"].as_array().unwrap().iter().any(said));
    team.sidecars[at].wait_log(text);
}

fn wait_well(team: &Team<'_>, at: usize) {
    let well = |status: &Value| {
        let warnings = status["applications"][0]["warnings"].as_array().unwrap();
        warnings.iter().all(|warning| warning["code"] != "COORDINATION")
    };
    team.sidecars[at].wait_status("that nothing is wrong", well);
}

/// Waits for two more heartbeats of each sidecar. Between them lies half a second: five times what a leader takes to look.
fn wait_heartbeats(team: &Team<'_>) {
    let heartbeats = || -> Vec<usize> {
        let requests = team.stage.cluster.requests("HEARTBEAT");
        let of = |member: &Member| requests.iter().filter(|request| request.client_id == member.client).count();
        team.sidecars.iter().map(of).collect()
    };
    let before = heartbeats();
    wait::until(PATIENCE, "two more heartbeats of each", || {
        heartbeats().iter().zip(&before).all(|(now, before)| *now >= before + 2).then_some(())
    });
}

#[test]
fn each_right_of_the_least_set_is_needed_and_named_when_it_is_missing() {
    let mut team = team("least");
    let name = team.stage.internal("partition-autoscaler");
    allow(&growth(&team));
    let [group, create, read, write, configs, id] = election(&team).try_into().unwrap();

    revoke(std::slice::from_ref(&create));
    team.start(1);
    let refused = team.take(0);
    assert!(!refused.wait_exit().success());
    assert!(refused.log().contains(&format!("Kafka denies CREATE on the topic {name}")), "{}", refused.log());
    allow(std::slice::from_ref(&create));

    for (right, text) in [
        (group, format!("Kafka denies READ on the group {name}")),
        (write, format!("Kafka denies WRITE on the topic {name}")),
        (id, format!("Kafka denies WRITE on the transactional id {name}")),
        (read, format!("Kafka denies READ on the topic {name}")),
    ] {
        revoke(std::slice::from_ref(&right));
        team.start(1);
        wait_warning(&team, 0, &text);
        assert_eq!(team.application(0)["leader"], false);
        allow(&[right]);
        team.wait_leader();
        wait_well(&team, 0);
        let last = team.take(0);
        last.process().terminate();
        last.wait_exit();
    }

    // The topic is there, so nobody needs to create it, but its settings are looked at.
    revoke(&[create, configs.clone()]);
    team.start(1);
    let refused = team.take(0);
    assert!(!refused.wait_exit().success());
    assert!(refused.log().contains(&format!("Kafka denies DESCRIBE_CONFIGS on the topic {name}")), "{}", refused.log());
    allow(&[configs]);
    team.start(1);
    team.wait_leader();
    team.expand(6);
}

#[test]
fn a_topic_that_becomes_unreadable_stops_the_leader_until_it_may_read_again() {
    let mut team = team("unreadable");
    allow(&growth(&team));
    let name = team.stage.internal("partition-autoscaler");
    let read = [Acl::new(USER, Operation::Read, Resource::Topic, &name)];
    team.start(2);
    team.wait_leader();
    team.expand(4);
    let orders = team.stage.topic("orders");
    for sidecar in &team.sidecars {
        sidecar.wait_status("the baseline", |status| status["applications"][0]["baseline"][&orders] == 4);
    }
    revoke(&read);
    for at in 0..2 {
        wait_warning(&team, at, &format!("Kafka denies READ on the topic {name}"));
        team.sidecars[at].wait_status("that it does not lead", |status| status["applications"][0]["leader"] == false);
    }
    team.stage.grow(&[("orders", 6)]);
    wait_heartbeats(&team);
    let before: Vec<_> = team.requests().into_iter().map(|(_, totals)| totals).collect();
    assert_eq!(before, [both(4)], "nobody leads, so nobody acts");
    allow(&read);
    team.wait_followed(6);
    team.wait_leader();
    for at in 0..2 {
        wait_well(&team, at);
    }
    let totals: Vec<_> = team.requests_to(6).into_iter().map(|(_, totals)| totals).collect();
    assert_eq!(totals, [both(4), both(6)]);
}

#[test]
fn an_expansion_that_is_held_up_outlives_the_replacement_of_every_sidecar() {
    let mut team = team("rolling");
    team.start(3);
    team.wait_leader();
    // Grown while nobody runs, which the next ones find out.
    for sidecar in team.sidecars.drain(..) {
        sidecar.process().terminate();
        sidecar.wait_exit();
    }
    team.stage.grow(&[("orders", 6)]);
    team.start(3);
    let held_up = |team: &Team<'_>| {
        let leader = team.wait_leader();
        team.sidecars[leader].wait_status("the refusal", |status| {
            let application = &status["applications"][0];
            application["state"]["name"] == "Expanding" && application["topic_errors"].as_object().unwrap().len() == 2
        });
    };
    held_up(&team);
    // What the input had before is known to nobody but the sidecars and the topic, and the topic goes first.
    let (admin, topic) = (team.stage.cluster.admin(), team.stage.internal("partition-autoscaler"));
    admin.delete(&[&topic]);
    wait::until(PATIENCE, "what was known in a new topic", || {
        let there = admin.count(&topic).is_some();
        (there && admin.read_table(&topic).keys().any(|key| key.contains(&team.stage.topic("orders")))).then_some(())
    });
    held_up(&team);
    for _ in 0..3 {
        team.start(1);
        let old = team.take(0);
        old.process().terminate();
        assert!(old.wait_exit().success());
        held_up(&team);
    }
    allow(&growth(&team));
    team.wait_followed(6);
    let leader = team.wait_leader();
    for at in 0..3 {
        assert_eq!(team.application(at)["failures"], 0);
    }
    assert_eq!(team.requests_to(6).last().map(|(_, totals)| totals.clone()), Some(both(6)));
    team.sidecars[leader]
        .wait_status("the baseline", |status| status["applications"][0]["baseline"][team.stage.topic("orders")] == 6);
}

#[test]
fn a_mismatch_is_one_failure_under_however_many_leaders() {
    let mut team = team("one-failure").with("partition.autoscaling.timeout.ms", "500");
    team.start(3);
    for (count, failures) in [(6, 1), (9, 2)] {
        team.wait_leader();
        team.stage.grow(&[("orders", count)]);
        for _ in 0..2 {
            let leader = team.wait_leader();
            let known = |status: &Value| {
                let application = &status["applications"][0];
                application["state"]["name"] == "Failed" && application["failures"] == failures
            };
            for sidecar in &team.sidecars {
                sidecar.wait_status(&format!("{failures} failures"), known);
            }
            let old = team.take(leader);
            old.process().terminate();
            old.wait_exit();
            team.start(1);
        }
    }
    let leader = team.wait_leader();
    let metrics = team.sidecars[leader].metrics();
    let gauge = metrics.lines().find(|line| line.starts_with("kafka_streams_stream_client_metrics_num_autoscaling_failures{"));
    assert!(gauge.is_some_and(|line| line.ends_with(" 0")), "this one has given up nothing new: {gauge:?}");
    allow(&growth(&team));
    team.expand(12);
    assert_eq!(team.application(team.wait_leader())["failures"], 2);
}
