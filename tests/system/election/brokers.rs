//! Brokers that go while sidecars elect.

use kit::Cluster;
use kit::wait::{self, PATIENCE};

use super::{Team, both};

#[test]
fn the_loss_of_the_coordinator_or_of_the_topics_leader_is_survived() {
    let cluster = Cluster::builder().nodes(3).log_requests().start();
    let mut team = Team::on(&cluster, "lossy");
    team.start(3);
    let name = team.stage.internal("partition-autoscaler");
    let mut count = 3;
    let coordinator = || cluster.coordinator(&name);
    let topic_leader = || cluster.admin().leader(&name);
    let lost: [&dyn Fn() -> Option<usize>; 2] = [&coordinator, &topic_leader];
    for lost in lost {
        team.wait_leader();
        let node = wait::until(PATIENCE, "the node to kill", lost);
        cluster.kill(node);
        count += 1;
        team.expand(count);
        team.wait_leader();
        count += 1;
        team.expand(count);
        cluster.restart(node);
    }
    let totals: Vec<_> = team.requests_to(count as u64).into_iter().map(|(_, totals)| totals).collect();
    assert_eq!(totals, (4..=count as u64).map(both).collect::<Vec<_>>(), "no plan was sent by two");
}

#[test]
fn a_leader_that_the_network_drops_stops_before_another_acts() {
    let cluster = Cluster::builder().log_requests().cuttable().start();
    let mut team = Team::on(&cluster, "dropped").with("bootstrap.servers", &format!("{:?}", cluster.cuttable_bootstrap()));
    team.start(1);
    team.wait_leader();
    team.expand(4);
    let mut team = team.with("bootstrap.servers", &format!("{:?}", cluster.bootstrap()));
    team.start(1);
    assert_eq!(team.wait_leader(), 0);
    let (old, next) = (team.client(0), team.client(1));

    cluster.cut();
    team.stage.grow(&[("orders", 6)]);
    team.wait_followed(6);
    // Another has acted, so nobody else may think that he leads.
    assert_eq!(team.application(0)["leader"], false, "{}", team.sidecars[0].log());
    assert_eq!(team.application(1)["leader"], true);

    team.stage.grow(&[("orders", 7)]);
    cluster.mend();
    team.wait_followed(7);
    assert_eq!(team.wait_leader(), 1);
    team.expand(8);
    let expected = [(old, both(4)), (next.clone(), both(6)), (next.clone(), both(7)), (next, both(8))];
    assert_eq!(team.requests_to(8), expected);
}

#[test]
fn a_leader_that_was_frozen_sends_nothing_when_it_comes_back() {
    let mut team = Team::on(Cluster::shared(), "cut-off");
    team.start(2);
    let leader = team.wait_leader();
    team.expand(4);
    let (old, next) = (team.client(leader), team.client(1 - leader));
    // It neither sends nor hears anything, and does not know that time passes.
    let frozen = team.take(leader);
    frozen.process().pause();
    team.stage.grow(&[("orders", 6)]);
    team.wait_followed(6);
    let new = team.wait_leader();
    frozen.process().resume();
    frozen.wait_log("this sidecar does not lead any more");
    team.expand(7);
    assert_eq!(team.wait_leader(), new);
    assert_eq!(team.requests_to(7), [(old, both(4)), (next.clone(), both(6)), (next, both(7))]);
}
