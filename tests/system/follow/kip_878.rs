//! The system test that KIP-878 asks for: the largest topology of the fixture, under load, while its inputs grow.

use kit::{App, Event};
use serde_json::json;

use crate::kitchen::{self, Counts, Kitchen};
use crate::stage::{Stage, wait_state, wait_tasks};

const THREE: Counts = Counts { orders: 3, customers: 3, products: 3, invoices: 3 };

#[test]
fn two_instances_under_load_stay_up_while_all_inputs_grow() {
    let stage = Stage::shared("kip-878");
    let mut kitchen = Kitchen::new(&stage, THREE);
    let start = |client: &&str| kitchen.app().property("client.id", client).metadata_age_ms(2000).start(stage.cluster);
    let clients = ["kip-878-a", "kip-878-b"];
    let apps: Vec<App> = clients.iter().map(start).collect();
    wait_tasks(&apps, THREE.tasks());
    kitchen.assert_internal(THREE);
    kitchen.add_customers(0, THREE.customers);

    let stated = kitchen::stated(&stage);
    let sidecar = stage.sidecar(&apps[0], &stated.each_ref().map(|(key, value)| (*key, value.as_str()))).start();
    let status = wait_state(&sidecar, "Steady");
    assert_eq!(status["questions"], json!([]), "everything that matters is stated");

    let joined = Counts { orders: 6, ..THREE };
    let all = Counts { customers: 5, products: 4, invoices: 7, ..joined };
    let leader = clients[leader(&apps)];
    for (before, after) in [(THREE, joined), (joined, all)] {
        let news = after.topics().into_iter().filter(|topic| !before.topics().contains(topic)).collect::<Vec<_>>();
        kitchen.under_load(before, || stage.grow_after_refresh(leader, &news));
        let counts = Counts { orders: after.orders, ..before }; // whose customers are known
        kitchen.under_load(counts, || wait_tasks(&apps, after.tasks()));
        wait_state(&sidecar, "Steady");
        kitchen.assert_internal(after);
        kitchen.add_customers(before.customers, after.customers);
        kitchen.produce_round(60, after);
    }
    kitchen.assert_outputs();
    apps.iter().for_each(assert_never_down);
}

/// The experiment that makes the test above worth something.
#[test]
fn without_a_sidecar_the_same_application_dies() {
    let stage = Stage::shared("alone");
    let kitchen = Kitchen::new(&stage, THREE);
    let app = kitchen.app().metadata_age_ms(1000).start(stage.cluster);
    app.wait_tasks(THREE.tasks());
    stage.grow(&[("orders", 6), ("payments", 6)]);
    let exception = app.wait_dead();
    assert!(exception.contains("Existing internal topic alone-"), "{exception}");
    let advice = "has invalid partitions: expected: 6; actual: 3. Use 'org.apache.kafka.tools.StreamsResetter' tool to clean up \
                  invalid topics before processing.";
    assert!(exception.contains(advice), "{exception}");
    kitchen.assert_internal(THREE);
}

/// Which instance leads the group: the one that has made the latest assignment.
fn leader(apps: &[App]) -> usize {
    const MADE: &str = "Finished assignment for group at generation ";
    let generation = |app: &App| {
        let log = app.log();
        let number = log.rsplit_once(MADE).and_then(|(_, rest)| rest.split_once(':')?.0.parse::<u32>().ok());
        number.unwrap_or_default()
    };
    (0..apps.len()).max_by_key(|index| generation(&apps[*index])).expect("an instance")
}

/// From its first `RUNNING` on, an instance has never been anything worse than rebalancing.
fn assert_never_down(app: &App) {
    assert_eq!(app.exceptions(), Vec::<String>::new());
    let states = app.events().into_iter().filter_map(|event| match event {
        Event::State { to, .. } => Some(to),
        _ => None,
    });
    let since: Vec<String> = states.skip_while(|state| state != "RUNNING").collect();
    assert!(since.iter().all(|state| ["RUNNING", "REBALANCING"].contains(&state.as_str())), "{since:?}");
    assert_eq!(app.state(), "RUNNING");
}
