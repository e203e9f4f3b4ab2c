//! The leader goes, in good order or not, and its successor knows what it knew.

use kit::{Cluster, wait};

use super::{Member, Team, both};
use crate::stage::{metric, wait_state};

/// Ends in good order, so that the next one need not wait for the session to expire.
fn stop(sidecar: &Member) {
    sidecar.process().terminate();
    assert!(sidecar.wait_exit().success(), "{}", sidecar.log());
    assert!(!sidecar.log().contains("could not be left in time"), "{}", sidecar.log());
}

#[test]
fn one_of_three_acts_and_its_successor_knows_what_it_knew() {
    let mut team = Team::on(Cluster::shared(), "elected");
    team.start(3);
    let leader = team.wait_leader();
    team.expand(6);
    assert_eq!(team.requests_to(6), [(team.client(leader), both(6))]);

    // the memory outlives the leader: the baseline of 6 is known to whoever comes next
    stop(&team.take(leader));
    let leader = team.wait_leader();
    let orders = team.stage.topic("orders");
    wait::until(wait::PATIENCE, "the baseline", || (team.application(leader)["baseline"][&orders] == 6).then_some(()));
    assert_eq!(metric(&team.sidecars[leader].metrics(), "partition_autoscaler_leader{application_id=\"elected\"}"), 1.0);

    // and it outlives all of them: an input that grows while nobody runs is followed later
    while let Some(sidecar) = team.sidecars.pop() {
        sidecar.process().kill();
        sidecar.wait_exit();
    }
    team.stage.grow(&[("orders", 9)]);
    team.start(1);
    team.wait_followed(9);
    wait_state(&team.sidecars[0], "Settling");
}

#[test]
fn the_next_growth_is_followed_after_a_crash_and_after_a_stop() {
    let mut team = Team::on(Cluster::shared(), "succession");
    team.start(3);
    let mut expected = Vec::new();
    let mut count = 3;
    for end in ["crash", "stop", "none"] {
        let leader = team.wait_leader();
        let client = team.client(leader);
        count += 1;
        team.expand(count);
        expected.push((client, both(count as u64)));
        match end {
            "crash" => {
                let old = team.take(leader);
                old.process().kill();
                old.wait_exit();
            }
            "stop" => stop(&team.take(leader)),
            _ => {}
        }
    }
    assert_eq!(team.requests_to(count as u64), expected);
}

#[test]
fn a_growth_right_at_the_crash_is_followed_by_the_successor() {
    let mut team = Team::on(Cluster::shared(), "orphaned");
    team.start(2);
    let leader = team.wait_leader();
    let other = team.client(1 - leader);
    let old = team.take(leader);
    old.process().kill();
    old.wait_exit();
    team.stage.grow(&[("orders", 5)]);
    team.wait_followed(5);
    assert_eq!(team.requests_to(5), [(other, both(5))]);
}
