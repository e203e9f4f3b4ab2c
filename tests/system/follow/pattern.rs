//! An application that subscribes by a pattern: topics that begin to match count like topics that grow.

use crate::recompute::{Inputs, records};
use crate::stage::{Stage, wait_state, wait_tasks};

#[test]
fn the_widest_matching_topic_leads_whether_it_is_new_or_grows() {
    let stage = Stage::shared("pattern");
    stage.create(&[("orders-eu", 3), ("customer-counts", 1)]);
    // With Kafka's default metadata age, the application hears of neither growth until its group rebalances.
    let start = || stage.app().topology("pattern").static_partitioner().start(stage.cluster);
    let mut apps = vec![start()];
    wait_tasks(&apps, 6);
    let sidecar = stage.sidecar(&apps[0], &[]).start();
    wait_state(&sidecar, "Steady");
    let mut inputs = Inputs::default();
    produce(&stage, &mut inputs, "orders-eu", 3);

    stage.create(&[("orders-us", 5)]);
    stage.wait_internal(&[("by-customer-repartition", 5), ("counts-changelog", 5)]);
    stage.grow(&[("orders-eu", 7)]);
    stage.wait_internal(&[("by-customer-repartition", 7), ("counts-changelog", 7)]);
    apps.push(start());
    wait_tasks(&apps, 14);
    let status = wait_state(&sidecar, "Steady");
    assert_eq!(status["baseline"][stage.topic("orders-eu")], 7);
    assert_eq!(status["baseline"][stage.topic("orders-us")], 5);

    produce(&stage, &mut inputs, "orders-eu", 7);
    produce(&stage, &mut inputs, "orders-us", 5);
    let admin = stage.cluster.admin();
    assert_eq!(admin.read_table(&stage.topic("customer-counts")), inputs.customer_counts());
    assert!(apps.iter().all(|app| app.exceptions().is_empty()));
}

/// An order from each partition for each customer, processed.
fn produce(stage: &Stage<'_>, inputs: &mut Inputs, topic: &str, partitions: usize) {
    let orders = (0..partitions).flat_map(|own| {
        (0..partitions).map(move |customer| (format!("{own}:order-{customer}"), format!("{customer}:customer,product"), 0))
    });
    let orders: Vec<_> = orders.collect();
    let (admin, topic) = (stage.cluster.admin(), stage.topic(topic));
    admin.produce(&topic, &records(&orders));
    admin.wait_caught_up(stage.id, &[&topic, &stage.internal("by-customer-repartition")]);
    inputs.orders.extend(orders);
}
