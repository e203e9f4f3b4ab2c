//! One application with its topics on a cluster, and the sidecar beside it: what the tests of the product share.

use std::collections::BTreeMap;

use kit::wait::{self, PATIENCE};
use kit::{App, Cluster, Record, Sidecar, app, sidecar};
use serde_json::Value;

pub const BINARY: &str = env!("CARGO_BIN_EXE_partition-autoscaler");

/// Names that keep one test apart from all others: the application's topics are `<id>.<name>`, its internal ones `<id>-<name>`.
pub struct Stage<'a> {
    pub cluster: &'a Cluster,
    pub id: &'static str,
}

impl Stage<'static> {
    /// On the cluster that all tests share.
    pub fn shared(id: &'static str) -> Self {
        Self::on(Cluster::shared(), id)
    }
}

impl<'a> Stage<'a> {
    pub fn on(cluster: &'a Cluster, id: &'static str) -> Self {
        Self { cluster, id }
    }

    /// Full name of an input or output.
    pub fn topic(&self, name: &str) -> String {
        format!("{}.{name}", self.id)
    }

    /// Full name of an internal topic.
    pub fn internal(&self, name: &str) -> String {
        format!("{}-{name}", self.id)
    }

    /// Creates inputs and outputs, by short name.
    pub fn create(&self, topics: &[(&str, usize)]) {
        let topics = self.topics(topics);
        self.cluster.admin().create(&borrowed(&topics));
    }

    /// Grows inputs, by short name, in one request.
    pub fn grow(&self, topics: &[(&str, usize)]) {
        let topics = self.topics(topics);
        self.cluster.admin().grow(&borrowed(&topics));
    }

    /// Grows inputs like [`Self::grow`], right after the leader of the application's group has refreshed its metadata. So the
    /// sidecar has one metadata age to follow, and with two threads the time of a rebalance more. `client` is what the client
    /// ids of the leader's process start with.
    #[track_caller]
    pub fn grow_after_refresh(&self, client: &str, topics: &[(&str, usize)]) {
        let refreshes = || {
            let requests = self.cluster.requests("METADATA").into_iter();
            requests.filter(|request| request.client_id.starts_with(client) && is_main_consumer(&request.client_id)).count()
        };
        let before = refreshes();
        wait::until(PATIENCE, &format!("a metadata refresh of {client}"), || (refreshes() > before).then_some(()));
        self.grow(topics);
    }

    /// Waits until every node shows these counts of internal topics, by short name.
    #[track_caller]
    pub fn wait_internal(&self, topics: &[(&str, usize)]) {
        let topics: Vec<(String, usize)> = topics.iter().map(|(name, count)| (self.internal(name), *count)).collect();
        self.cluster.admin().wait_counts(&borrowed(&topics));
    }

    fn topics(&self, topics: &[(&str, usize)]) -> Vec<(String, usize)> {
        topics.iter().map(|(name, count)| (self.topic(name), *count)).collect()
    }

    /// The fixture under these names, with topology `simple` unless set.
    pub fn app(&self) -> app::Builder {
        App::builder(self.id).prefix(&self.topic(""))
    }

    /// Starts an application of topology `simple` on three partitions and returns when it has processed 60 orders.
    pub fn start_simple(&self, app: app::Builder) -> App {
        self.create(&[("orders", 3), ("customer-counts", 1)]);
        let app = app.start(self.cluster);
        app.wait_tasks(6);
        let orders: Vec<Record> = (0..60).map(|id| Record::new(id.to_string(), format!("c{},p1", id % 5))).collect();
        let admin = self.cluster.admin();
        admin.produce(&self.topic("orders"), &orders);
        admin.wait_caught_up(self.id, &[&self.topic("orders"), &self.internal("by-customer-repartition")]);
        app
    }

    /// Text of a configuration file: what every test needs, and `keys` (values as in TOML), which win. The topology comes from
    /// `topology.txt` in the sidecar's folder.
    pub fn config(&self, keys: &[(&str, &str)]) -> String {
        let bootstrap = format!("{:?}", self.cluster.bootstrap());
        let id = format!("{:?}", self.id);
        let mut all = BTreeMap::from([
            ("bootstrap.servers", bootstrap.as_str()),
            ("application.id", &id),
            ("partition.autoscaling.enabled", "true"),
            ("partition.autoscaling.poll.interval.ms", "100"),
            ("http.listen", "\"127.0.0.1:0\""),
            ("topology.file", "\"topology.txt\""),
            ("topology.pinned", "[]"),
            ("leader.election", "\"none\""), // tests of leadership say otherwise
        ]);
        all.extend(keys.iter().copied());
        all.into_iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
    }

    /// A sidecar that is not started yet, with the description of `app` and [`Self::config`].
    pub fn sidecar(&self, app: &App, keys: &[(&str, &str)]) -> sidecar::Builder {
        Sidecar::builder(BINARY).file("topology.txt", &app.describe()).config(&self.config(keys))
    }
}

/// Waits until the only application of a sidecar is in this state, and returns its part of the status.
#[track_caller]
pub fn wait_state(sidecar: &Sidecar, state: &str) -> Value {
    let is_there = |status: &Value| status["applications"][0]["state"]["name"] == state;
    sidecar.wait_status(&format!("state {state}"), is_there)["applications"][0].take()
}

/// Waits until the instances share so many active tasks, and each has some.
#[track_caller]
pub fn wait_tasks(apps: &[App], count: usize) {
    wait::until_ok(PATIENCE, &format!("{count} active tasks"), || {
        let tasks: Vec<usize> = apps.iter().map(|app| app.tasks().len()).collect();
        let running = apps.iter().all(|app| app.state() == "RUNNING");
        if running && tasks.iter().sum::<usize>() == count && !tasks.contains(&0) {
            Ok(())
        } else {
            let exceptions: Vec<String> = apps.iter().flat_map(App::exceptions).collect();
            Err(format!("{tasks:?} {exceptions:?}"))
        }
    });
}

/// Value of one sample, by its name with all labels, as `family{a="b"}`.
#[track_caller]
pub fn metric(text: &str, sample: &str) -> f64 {
    let value = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("no {sample} in\n{text}"))
}

/// The clients of one application are told apart by their ids; only this one's metadata decides about counts.
fn is_main_consumer(client_id: &str) -> bool {
    client_id.ends_with("-consumer") && !client_id.ends_with("-restore-consumer")
}

/// Topics as the kit takes them.
pub fn borrowed(topics: &[(String, usize)]) -> Vec<(&str, usize)> {
    topics.iter().map(|(name, count)| (name.as_str(), *count)).collect()
}
