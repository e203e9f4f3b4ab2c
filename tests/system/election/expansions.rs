//! One acts, and it stays the one.

use std::collections::BTreeSet;

use kit::Cluster;

use super::{Team, both};

#[test]
fn one_of_five_acts_in_each_of_twenty_expansions_and_a_newcomer_changes_nothing() {
    let cluster = Cluster::builder().nodes(3).log_requests().start();
    let mut team = Team::on(&cluster, "five");
    team.start(5);
    let leader = team.wait_leader();
    for count in 4..=13 {
        team.expand(count);
    }
    team.start(1);
    team.sidecars[5].wait_status("that the newcomer follows", |status| {
        let application = &status["applications"][0];
        application["leader"] == false && application["state"]["name"] != "Starting"
    });
    for count in 14..=23 {
        team.expand(count);
    }
    assert_eq!(team.wait_leader(), leader, "whoever leads goes on");
    let requests = team.requests_to(23);
    let expected: Vec<_> = (4..=23).map(|count| (team.client(leader), both(count))).collect();
    assert_eq!(requests, expected, "one request for each expansion, all from one process");
    let led: BTreeSet<usize> = (0..6).filter(|&at| team.lines(at, "this sidecar leads") > 0).collect();
    assert_eq!(led, BTreeSet::from([leader]));
    for at in 0..6 {
        assert_eq!(team.application(at)["failures"], 0);
    }
}
