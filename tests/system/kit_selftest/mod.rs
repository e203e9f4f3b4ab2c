//! The test kit itself: what the other tests take for granted.

mod brokers;
mod kitchen_sink;
mod topologies;

use kit::{App, Cluster, Record, Sidecar};

/// Topics and application of one test on the shared cluster.
struct Stage {
    cluster: &'static Cluster,
    prefix: &'static str,
}

impl Stage {
    fn new(prefix: &'static str) -> Self {
        Self { cluster: Cluster::shared(), prefix }
    }

    fn topic(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    /// The application `simple` on three partitions, running, with some orders processed.
    fn simple(&self, protocol: &str) -> App {
        let admin = self.cluster.admin();
        admin.create(&[(&self.topic("orders"), 3), (&self.topic("customer-counts"), 1)]);
        let app = App::builder(self.prefix).prefix(&self.topic("")).protocol(protocol).metadata_age_ms(1000);
        let app = app.start(self.cluster);
        app.wait_tasks(6);
        let orders: Vec<Record> = (0..60).map(|id| Record::new(id.to_string(), format!("c{},p1", id % 5))).collect();
        admin.produce(&self.topic("orders"), &orders);
        admin.wait_caught_up(self.prefix, &[&self.topic("orders"), &self.repartition()]);
        app
    }

    fn repartition(&self) -> String {
        format!("{}-by-customer-repartition", self.prefix)
    }

    fn changelog(&self) -> String {
        format!("{}-counts-changelog", self.prefix)
    }
}

#[test]
fn a_stock_application_counts() {
    let stage = Stage::new("kit-counts");
    let admin = stage.cluster.admin();
    let app = stage.simple("classic");
    let counts = admin.read_table(&stage.topic("customer-counts"));
    let expected = (0..5).map(|customer| (format!("c{customer}"), "12".to_owned()));
    assert_eq!(counts, expected.collect());
    assert_eq!(
        admin.internal_counts("kit-counts").into_iter().collect::<Vec<_>>(),
        [(stage.repartition(), 3), (stage.changelog(), 3)]
    );
    assert!(app.describe().contains("kit-counts.orders"), "{}", app.describe());
    assert_eq!(admin.group_state("kit-counts").as_deref(), Some("Stable"));
    app.close();
    assert_eq!(app.exceptions(), Vec::<String>::new());
    assert!(!app.is_alive());
}

/// The experiment every other test stands on: without help the application dies, in Kafka's own words.
#[test]
fn without_help_a_grown_input_kills_the_application() {
    let stage = Stage::new("kit-dies");
    let app = stage.simple("classic");
    stage.cluster.admin().grow(&[(&stage.topic("orders"), 6)]);
    let exception = app.wait_dead();
    let expected = format!("Existing internal topic {} has invalid partitions: expected: 6; actual: 3.", stage.repartition());
    assert!(exception.contains(&expected), "{exception}");
}

#[test]
fn without_help_a_grown_input_kills_the_application_in_a_streams_group() {
    let stage = Stage::new("kit-streams-dies");
    let app = stage.simple("streams");
    stage.cluster.admin().grow(&[(&stage.topic("orders"), 6)]);
    let exception = app.wait_dead();
    let expected = format!("Existing topic {} has different number of partitions: expected 6, found 3", stage.repartition());
    assert!(exception.contains(&expected), "{exception}");
}

#[test]
fn growing_everything_in_one_request_keeps_the_application_alive() {
    let stage = Stage::new("kit-lives");
    let app = stage.simple("classic");
    let topics = [stage.topic("orders"), stage.repartition(), stage.changelog()];
    let admin = stage.cluster.admin();
    admin.grow(&topics.each_ref().map(|topic| (topic.as_str(), 6)));
    app.wait_tasks(12);
    admin.produce(&stage.topic("orders"), &[Record::new("new", "c9,p1").to(5)]);
    admin.wait_caught_up("kit-lives", &[&topics[0], &topics[1]]);
    assert_eq!(admin.read_table(&stage.topic("customer-counts")).get("c9").map(String::as_str), Some("1"));
    assert_eq!(app.exceptions(), Vec::<String>::new());
}

#[test]
fn a_sidecar_that_cannot_start_says_why() {
    let sidecar = Sidecar::builder(env!("CARGO_BIN_EXE_partition-autoscaler")).config("no.such.key = 1\n").start();
    assert!(!sidecar.wait_exit().success());
    assert!(sidecar.wait_log("error: ").len() > "error: ".len());
}
