//! The flag is a matter of the leader, and switching it is no event for anything else.

use kit::wait::{self, PATIENCE};
use serde_json::Value;

use super::Team;
use crate::kitchen::{self, Counts, Kitchen};
use crate::stage::Stage;

const THREE: Counts = Counts { orders: 3, customers: 3, products: 3, invoices: 3 };
const ROUNDS: usize = 5;

/// A real application works all the time. In every second round its inputs grow while the flag is off.
#[test]
fn fifty_switches_under_load_and_expansions_have_no_effect_on_operations() {
    let stage = Stage::shared("toggled");
    let mut kitchen = Kitchen::new(&stage, THREE);
    let app = kitchen.app().metadata_age_ms(4000).start(stage.cluster);
    app.wait_tasks(THREE.tasks());
    kitchen.add_customers(0, THREE.customers);

    let mut team = Team::beside(Stage::shared("toggled"), &app);
    for (key, value) in kitchen::stated(&stage) {
        team = team.with(key, &value);
    }
    team.start(3);
    let leader = team.wait_leader();

    let mut counts = THREE;
    for round in 0..ROUNDS {
        let grown = Counts { orders: counts.orders + 1, ..counts };
        kitchen.under_load(counts, || {
            let off_and_on = || [false, true].into_iter().for_each(|on| team.switch(leader, on));
            let grow = || stage.grow_after_refresh("toggled-", &[("orders", grown.orders), ("payments", grown.orders)]);
            (0..4).for_each(|_| off_and_on());
            if round % 2 == 0 {
                team.switch(leader, false);
                grow();
                team.switch(leader, true);
            } else {
                grow();
                off_and_on();
            }
            app.wait_tasks(grown.tasks());
        });
        counts = grown;
    }
    kitchen.produce_round(60, counts);
    kitchen.assert_internal(counts);
    kitchen.assert_outputs();
    assert_eq!(app.exceptions(), Vec::<String>::new());

    assert_eq!(team.wait_leader(), leader);
    for at in 0..3 {
        wait::until(PATIENCE, "a fitting state and no failure", || {
            let application = team.application(at);
            let fits = application["state"]["name"] == "Steady" && application["assignor_error"]["code"] == 0;
            (application["enabled"] == true && application["failures"] == 0 && fits).then_some(())
        });
        assert!(team.application(at)["warnings"].as_array().unwrap().iter().all(|warning| warning["code"] != "FLAG_MISMATCH"));
    }
    let client = team.client(leader);
    let requests = team.requests_to(counts.orders as u64);
    assert!(requests.iter().all(|(sender, _)| *sender == client), "{requests:?}");
}

impl Team<'_> {
    /// Switches the flag of all sidecars, and waits until the leader has heard of it.
    fn switch(&self, leader: usize, on: bool) {
        let value = on.to_string();
        for sidecar in &self.sidecars {
            sidecar.write_config(&self.config(&sidecar.client, &[("partition.autoscaling.enabled", &value)]));
            sidecar.process().hang_up();
        }
        let seen = |status: &Value| status["applications"][0]["enabled"] == on;
        self.sidecars[leader].wait_status("the switched flag", seen);
    }
}
