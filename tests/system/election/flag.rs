//! The flag is a matter of the leader, and switching it is no event for anything else.

use kit::Cluster;
use kit::wait::{self, PATIENCE};
use serde_json::Value;

use super::{Team, both};

#[test]
fn fifty_switches_during_expansions_leave_everything_consistent() {
    let mut team = Team::on(Cluster::shared(), "toggled");
    team.start(3);
    let leader = team.wait_leader();
    let mut count = 3;
    for switch in 1..=50 {
        let on = if switch % 2 == 0 { "true" } else { "false" };
        for sidecar in &team.sidecars {
            sidecar.write_config(&team.config(&sidecar.client, &[("partition.autoscaling.enabled", on)]));
            sidecar.process().hang_up();
        }
        let seen = |status: &Value| status["applications"][0]["enabled"] == (switch % 2 == 0);
        team.sidecars[leader].wait_status("the switched flag", seen);
        if switch % 5 == 0 {
            count += 1;
            team.stage.grow(&[("orders", count)]);
        }
    }
    // The last value is on.
    team.wait_followed(count);
    assert_eq!(team.wait_leader(), leader);
    for at in 0..3 {
        wait::until(PATIENCE, "the flag and no failure", || {
            let application = team.application(at);
            let fits = application["state"]["name"] == "Settling" && application["assignor_error"]["code"] == 0;
            (application["enabled"] == true && application["failures"] == 0 && fits).then_some(())
        });
        assert!(team.application(at)["warnings"].as_array().unwrap().iter().all(|warning| warning["code"] != "FLAG_MISMATCH"));
    }
    let client = team.client(leader);
    let requests = team.requests_to(count as u64);
    assert!(requests.iter().all(|(sender, totals)| *sender == client && totals.len() == 2), "{requests:?}");
    assert_eq!(requests.last(), Some(&(client, both(count as u64))));
}
