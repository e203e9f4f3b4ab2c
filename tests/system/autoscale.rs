//! The sidecar beside a stock application on a real broker.

use kit::{App, Cluster, Record, Sidecar};

pub const BINARY: &str = env!("CARGO_BIN_EXE_partition-autoscaler");

#[test]
fn the_internal_topics_follow_the_input_and_the_application_lives() {
    let cluster = Cluster::shared();
    let admin = cluster.admin();
    admin.create(&[("follow.orders", 3), ("follow.customer-counts", 1)]);
    let app = App::builder("follow").prefix("follow.").metadata_age_ms(2000).start(cluster);
    app.wait_tasks(6);
    let orders: Vec<Record> = (0..60).map(|id| Record::new(id.to_string(), format!("c{},p1", id % 5))).collect();
    admin.produce("follow.orders", &orders);
    admin.wait_caught_up("follow", &["follow.orders", "follow-by-customer-repartition"]);

    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("topology.txt");
    std::fs::write(&text, app.describe()).unwrap();
    let config = format!(
        "bootstrap.servers = \"{}\"\napplication.id = \"follow\"\npartition.autoscaling.enabled = true\n\
         partition.autoscaling.poll.interval.ms = 100\nhttp.listen = \"127.0.0.1:0\"\ntopology.file = \"{}\"\ntopology.pinned = []\n",
        cluster.bootstrap(),
        text.display()
    );
    let sidecar = Sidecar::builder(BINARY).config(&config).start();
    sidecar.wait_status("steady", |status| status["applications"][0]["state"]["name"] == "Steady");
    admin.grow(&[("follow.orders", 6)]);
    admin.wait_counts(&[("follow-by-customer-repartition", 6), ("follow-counts-changelog", 6)]);
    app.wait_tasks(12);
    let status = sidecar.wait_status("steady again", |status| status["applications"][0]["state"]["name"] == "Steady");
    assert_eq!(status["applications"][0]["baseline"]["follow.orders"], 6);
    crate::documents::assert_documented("status", &status);
    assert_eq!(app.exceptions(), Vec::<String>::new());
}
