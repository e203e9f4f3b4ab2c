//! Several sidecars of one application: one acts, whatever happens to it, to the brokers or to the coordinator topic.

mod brokers;
mod expansions;
mod flag;
mod handover;
mod rights;
mod topic;

use std::collections::{BTreeMap, BTreeSet};

use kit::wait::{self, PATIENCE};
use kit::{App, Cluster, Sidecar};
use serde_json::Value;

use crate::stage::{BINARY, Stage};

/// Topics without an application are enough: who leads does not depend on it.
pub const TOPOLOGY: &str = r#"
[topology]
repartition_topics = ["k-repartition"]
pinned = []
[[topology.subtopologies]]
id = 0
sources = ["ORDERS"]
sinks = ["k-repartition"]
[[topology.subtopologies]]
id = 1
sources = ["k-repartition"]
stores = ["st"]
"#;

/// The sidecars of an application. Each one calls itself differently, so the brokers' log tells who sent a request.
struct Team<'a> {
    stage: Stage<'a>,
    keys: Vec<(String, String)>,
    /// Of a real application; of the others only the topics exist, those of [`TOPOLOGY`].
    description: Option<String>,
    sidecars: Vec<Member>,
    started: usize,
}

/// A sidecar, and what it calls itself.
struct Member {
    sidecar: Sidecar,
    client: String,
}

impl std::ops::Deref for Member {
    type Target = Sidecar;

    fn deref(&self) -> &Sidecar {
        &self.sidecar
    }
}

impl<'a> Team<'a> {
    /// Creates the topics, with three partitions each; nobody runs yet.
    fn on(cluster: &'a Cluster, id: &'static str) -> Self {
        let stage = Stage::on(cluster, id);
        stage.create(&[("orders", 3)]);
        cluster.admin().create(&[(&stage.internal("k-repartition"), 3), (&stage.internal("st-changelog"), 3)]);
        Self { stage, keys: Vec::new(), description: None, sidecars: Vec::new(), started: 0 }
    }

    /// For an application that really runs; no sidecar does yet.
    fn beside(stage: Stage<'a>, app: &App) -> Self {
        Self { stage, keys: Vec::new(), description: Some(app.describe()), sidecars: Vec::new(), started: 0 }
    }

    /// Gives every sidecar that starts from now on this setting as well; the value is TOML.
    fn with(mut self, key: &str, value: &str) -> Self {
        self.keys.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Starts so many more sidecars.
    fn start(&mut self, count: usize) {
        for _ in 0..count {
            let client = format!("{}-{}", self.stage.id, self.started);
            let mut sidecar = Sidecar::builder(BINARY).config(&self.config(&client, &[]));
            if let Some(description) = &self.description {
                sidecar = sidecar.file("topology.txt", description);
            }
            self.sidecars.push(Member { sidecar: sidecar.start(), client });
            self.started += 1;
        }
    }

    /// Configuration of the sidecar that calls itself so.
    fn config(&self, client: &str, keys: &[(&str, &str)]) -> String {
        let client = format!("{client:?}");
        let mut all = vec![("leader.election", "\"kafka\""), ("kafka.client.id", &client)];
        all.extend(self.keys.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        all.extend(keys);
        let settings = self.stage.config(&all);
        if self.description.is_some() {
            return settings;
        }
        let settings: Vec<&str> = settings.lines().filter(|line| !line.starts_with("topology.")).collect();
        format!("{}\n{}", settings.join("\n"), TOPOLOGY.replace("ORDERS", &self.stage.topic("orders")))
    }

    fn application(&self, at: usize) -> Value {
        self.sidecars[at].status()["applications"][0].clone()
    }

    /// Which of them leads, once exactly one does and the others have heard where it stands.
    #[track_caller]
    fn wait_leader(&self) -> usize {
        wait::until_ok(PATIENCE, "exactly one leader", || {
            let states: Vec<Value> = (0..self.sidecars.len()).map(|at| self.application(at)).collect();
            let leaders: Vec<usize> = (0..states.len()).filter(|&at| states[at]["leader"] == true).collect();
            let names: BTreeSet<&str> = states.iter().filter_map(|state| state["state"]["name"].as_str()).collect();
            match leaders.as_slice() {
                [leader] if names.len() == 1 && !names.contains("Starting") => Ok(*leader),
                _ => Err(format!("leaders {leaders:?}, states {names:?}")),
            }
        })
    }

    /// What the sidecar calls itself to the brokers.
    fn client(&self, at: usize) -> String {
        self.sidecars[at].client.clone()
    }

    /// Takes the sidecar out of the team.
    fn take(&mut self, at: usize) -> Member {
        self.sidecars.remove(at)
    }

    /// Grows the input and waits until the internal topics have followed.
    #[track_caller]
    fn expand(&self, count: usize) {
        self.stage.grow(&[("orders", count)]);
        self.wait_followed(count);
    }

    #[track_caller]
    fn wait_followed(&self, count: usize) {
        self.stage.wait_internal(&[("k-repartition", count), ("st-changelog", count)]);
    }

    /// The CreatePartitions requests so far: sender, and totals by short name. Repetitions are left out, because a sender whose
    /// broker is slow to show what was done asks again. Waits until a request with this total is among them.
    #[track_caller]
    fn requests_to(&self, count: u64) -> Vec<(String, BTreeMap<String, u64>)> {
        wait::until(PATIENCE, &format!("a logged request for {count} partitions"), || {
            let requests = self.requests();
            let last = requests.iter().any(|(_, totals)| totals.values().any(|total| *total == count));
            last.then_some(requests)
        })
    }

    fn requests(&self) -> Vec<(String, BTreeMap<String, u64>)> {
        let prefix = format!("{}-", self.stage.id);
        let mine = self.stage.cluster.requests("CREATE_PARTITIONS").into_iter();
        let mine =
            mine.filter(|request| request.topics().is_some_and(|names| names.iter().all(|name| name.starts_with(&prefix))));
        let mut requests: Vec<_> = mine
            .map(|request| {
                let topics = request.request["topics"].as_array().unwrap().iter();
                let total =
                    |topic: &Value| (topic["name"].as_str().unwrap().replacen(&prefix, "", 1), topic["count"].as_u64().unwrap());
                (request.client_id.clone(), topics.map(total).collect::<BTreeMap<_, _>>())
            })
            .collect();
        requests.sort_by_key(|(_, totals)| totals.values().max().copied());
        requests.dedup();
        requests
    }

    /// How often a sidecar logged this.
    fn lines(&self, at: usize, text: &str) -> usize {
        self.sidecars[at].log().lines().filter(|line| line.contains(text)).count()
    }
}

/// Totals of a request in which both internal topics grow to this count.
fn both(count: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([("k-repartition".to_owned(), count), ("st-changelog".to_owned(), count)])
}
