//! What goes wrong in the life of a sidecar, on real brokers: each test ends in the state that the rules ask for, with nothing
//! half-done that a restart would not finish. Most need the topics of an application only, so no application runs.

mod copartition;
mod flag;
mod growth;
mod outages;
pub mod rights;

use std::collections::BTreeMap;

use kit::wait::{self, PATIENCE};
use kit::{Cluster, Sidecar};
use serde_json::Value;

use crate::stage::{BINARY, Stage};

/// An application of which only the topics exist. Its topology: each input has a repartition topic `by-<input>-repartition`
/// behind it, and that one a store `<input>-counts`.
struct Shop<'a> {
    stage: Stage<'a>,
    inputs: &'static [&'static str],
    /// The inputs are joined with one another.
    copartitioned: bool,
}

impl Shop<'static> {
    /// One input `orders` on the cluster that all tests share.
    fn shared(id: &'static str) -> Self {
        Self::on(Cluster::shared(), id)
    }
}

impl<'a> Shop<'a> {
    /// One input `orders`.
    fn on(cluster: &'a Cluster, id: &'static str) -> Self {
        Self { stage: Stage::on(cluster, id), inputs: &["orders"], copartitioned: false }
    }

    /// Creates inputs and internal topics with these counts, by short name; three partitions where none is said.
    fn create(&self, counts: &[(&str, usize)]) -> &Self {
        let said: BTreeMap<&str, usize> = counts.iter().copied().collect();
        let count = |name: &str| said.get(name).copied().unwrap_or(3);
        let inputs = self.inputs.iter().map(|name| (self.stage.topic(name), count(name)));
        let internal = self.internal_names().into_iter().map(|name| (self.stage.internal(&name), count(&name)));
        let topics: Vec<(String, usize)> = inputs.chain(internal).collect();
        self.stage.cluster.admin().create(&crate::stage::borrowed(&topics));
        self
    }

    /// Short names of the internal topics.
    fn internal_names(&self) -> Vec<String> {
        let names = self.inputs.iter().flat_map(|input| [format!("by-{input}-repartition"), format!("{input}-counts-changelog")]);
        names.collect()
    }

    /// Waits until all internal topics have this count.
    #[track_caller]
    fn wait_all_internal(&self, count: usize) {
        let names = self.internal_names();
        let counts: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), count)).collect();
        self.stage.wait_internal(&counts);
    }

    /// Counts of the internal topics, in the order of their names.
    fn internal_counts(&self) -> Vec<usize> {
        self.stage.cluster.admin().internal_counts(self.stage.id).into_values().collect()
    }

    /// Text of a configuration file with the topology in it; `keys` win.
    fn config(&self, keys: &[(&str, &str)]) -> String {
        let inputs: Vec<String> = self.inputs.iter().map(|input| format!("{:?}", self.stage.topic(input))).collect();
        let (mut subtopologies, mut repartition) = (Vec::new(), Vec::new());
        for (index, input) in self.inputs.iter().enumerate() {
            let (topic, id) = (self.stage.topic(input), 2 * index);
            subtopologies.push(format!(r#"{{ id = {id}, sources = ["{topic}"], sinks = ["by-{input}-repartition"] }}"#));
            let fed = id + 1;
            subtopologies.push(format!(r#"{{ id = {fed}, sources = ["by-{input}-repartition"], stores = ["{input}-counts"] }}"#));
            repartition.push(format!("\"by-{input}-repartition\""));
        }
        let groups = if self.copartitioned { format!("[[{}]]", inputs.join(", ")) } else { "[]".to_owned() };
        let (subtopologies, repartition) = (subtopologies.join(", "), repartition.join(", "));
        let text = self.stage.config(
            &[
                &[
                    ("topology.subtopologies", format!("[{subtopologies}]").as_str()),
                    ("topology.repartition_topics", &format!("[{repartition}]")),
                    ("topology.copartition_groups", &groups),
                ],
                keys,
            ]
            .concat(),
        );
        text.replace("topology.file = \"topology.txt\"\n", "")
    }

    fn sidecar(&self, keys: &[(&str, &str)]) -> Sidecar {
        Sidecar::builder(BINARY).config(&self.config(keys)).start()
    }

    /// The totals of each CreatePartitions request of the sidecar, as the brokers logged them, by short name of the topic.
    fn requests(&self) -> Vec<BTreeMap<String, u64>> {
        let mine = self.requests_of("CREATE_PARTITIONS").into_iter();
        let totals = |request: kit::requests::Request| {
            let topics = request.request["topics"].as_array().unwrap().iter();
            topics.map(|topic| (self.short(topic["name"].as_str().unwrap()), topic["count"].as_u64().unwrap())).collect()
        };
        mine.map(totals).collect()
    }

    fn requests_of(&self, api: &str) -> Vec<kit::requests::Request> {
        let mut requests = self.stage.cluster.requests(api);
        requests.retain(|request| request.client_id == format!("{}-partition-autoscaler", self.stage.id));
        requests
    }

    fn short(&self, topic: &str) -> String {
        topic.strip_prefix(self.stage.id).map_or(topic, |name| name.trim_start_matches(['.', '-'])).to_owned()
    }

    /// The requests so far, read when the log shows more observations of the sidecar, so that none is still on its way there.
    #[track_caller]
    fn settled_requests(&self) -> Vec<BTreeMap<String, u64>> {
        let observations = || self.requests_of("METADATA").len();
        let before = observations();
        wait::until(PATIENCE, "two more observations", || (observations() >= before + 2).then_some(()));
        self.requests()
    }

    /// Like [`Self::settled_requests`], without repetitions: a broker that is slow to show what it did is asked again.
    #[track_caller]
    fn settled_plans(&self) -> Vec<BTreeMap<String, u64>> {
        let mut requests = self.settled_requests();
        requests.dedup();
        requests
    }
}

/// A request for all internal topics of one input.
fn totals(topics: &[(&str, u64)]) -> BTreeMap<String, u64> {
    topics.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// The `details` of the state.
fn details(application: &Value) -> &str {
    application["state"]["details"].as_str().unwrap()
}

/// Number of failed expansions, in status and metrics.
fn failures(sidecar: &Sidecar) -> u64 {
    let status = sidecar.status()["applications"][0]["failures"].as_u64().unwrap();
    assert_eq!(metric(sidecar, "kafka_streams_stream_client_metrics_num_autoscaling_failures{"), status as f64);
    status
}

/// Value of the first sample that begins so.
fn metric(sidecar: &Sidecar, begin: &str) -> f64 {
    let metrics = sidecar.metrics();
    let sample = metrics.lines().find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("no {begin} in {metrics}"));
    sample.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Lines of its log that contain a text.
fn lines(sidecar: &Sidecar, text: &str) -> usize {
    sidecar.log().lines().filter(|line| line.contains(text)).count()
}
