//! The two loops that are measured, each in its own process.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use kit::output::Output;
use kit::process::Process;
use kit::wait::{self, PATIENCE};
use kit::{Cluster, Sidecar, jars};
use serde_json::Value;

use crate::POLL;
use crate::figures::Moments;

/// Heap of the JVM in MB: small, as one would want it for a sidecar.
const HEAP_MB: u32 = 64;

/// The sidecar's own pace of reading back, for the loop in Java.
const VERIFY_PAUSE_MS: u64 = 10;

/// Whose loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// This product, alone.
    Sidecar,
    /// The same as the leader that several sidecars would elect.
    Elected,
    /// `ReactionLoop.java`.
    Java,
}

impl Kind {
    /// In the order of the tables.
    pub const BOTH: [Self; 2] = [Self::Sidecar, Self::Java];

    /// Name for messages and topics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sidecar => "sidecar",
            Self::Elected => "elected",
            Self::Java => "java",
        }
    }
}

/// Topics as an application has them that counts by another key: an input, one repartition topic, and changelogs.
pub struct Application {
    id: String,
    input: String,
    stores: Vec<String>,
}

impl Application {
    /// With `topics` topics, at least three.
    pub fn new(id: &str, topics: usize) -> Self {
        let stores = (0..topics - 2).map(|number| format!("store-{number}")).collect();
        Self { id: id.to_owned(), input: format!("{id}.input"), stores }
    }

    /// Makes the topics, with one partition each.
    pub fn create(&self, cluster: &Cluster) {
        let topics = self.topics();
        cluster.admin().create(&topics.iter().map(|topic| (topic.as_str(), 1)).collect::<Vec<_>>());
    }

    /// The topic that grows.
    pub fn input(&self) -> &str {
        &self.input
    }

    fn topics(&self) -> Vec<String> {
        let internal = ["by-key-repartition".to_owned()].into_iter();
        let internal = internal.chain(self.stores.iter().map(|store| format!("{store}-changelog")));
        let internal = internal.map(|name| format!("{}-{name}", self.id));
        [self.input.clone()].into_iter().chain(internal).collect()
    }

    fn config(&self, cluster: &Cluster, election: &str) -> String {
        format!(
            "bootstrap.servers = {:?}\napplication.id = {:?}\npartition.autoscaling.enabled = true\n\
             partition.autoscaling.poll.interval.ms = {}\nhttp.listen = \"127.0.0.1:0\"\nlog.format = \"json\"\n\
             leader.election = {election:?}\n[topology]\npinned = []\nrepartition_topics = [\"by-key-repartition\"]\n\
             [[topology.subtopologies]]\nid = 0\nsources = [{:?}]\nsinks = [\"by-key-repartition\"]\n\
             [[topology.subtopologies]]\nid = 1\nsources = [\"by-key-repartition\"]\nstores = {:?}\n",
            cluster.bootstrap(),
            self.id,
            POLL.as_millis(),
            self.input,
            self.stores
        )
    }
}

/// A running loop; killed when dropped.
pub enum Subject {
    /// This product.
    Sidecar(Sidecar),
    /// `ReactionLoop.java`.
    Java(Process, Output),
}

impl Subject {
    /// Starts a loop for an application and waits until it watches.
    pub fn start(kind: Kind, cluster: &Cluster, application: &Application) -> Self {
        match kind {
            Kind::Sidecar | Kind::Elected => {
                let election = if kind == Kind::Elected { "kafka" } else { "none" };
                let sidecar = Sidecar::builder(env!("CARGO_BIN_EXE_partition-autoscaler"));
                let sidecar = sidecar.config(&application.config(cluster, election)).start();
                sidecar.wait_status("steady", |status| status.pointer("/applications/0/state/name") == Some(&"Steady".into()));
                Self::Sidecar(sidecar)
            }
            Kind::Java => {
                let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/reaction/ReactionLoop.java");
                let jar = jars::compiled("reaction-loop", &[source]).unwrap_or_else(|error| panic!("{error}"));
                let mut java = jars::java(HEAP_MB, jars::KAFKA, Some(&jar)).unwrap_or_else(|error| panic!("{error}"));
                java.arg(format!("-Dverify.pause.ms={VERIFY_PAUSE_MS}"));
                java.args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "ReactionLoop", &cluster.bootstrap()]);
                java.arg(POLL.as_millis().to_string()).args(application.topics());
                java.stdin(Stdio::null()).stdout(Stdio::piped());
                let process = Process::start("the loop in Java", java);
                let output = Output::of(&mut process.child());
                let subject = Self::Java(process, output);
                wait::until(PATIENCE, "the loop in Java to watch", || {
                    subject.lines().iter().any(|line| line.get("ready").is_some()).then_some(())
                });
                subject
            }
        }
    }

    /// Process id.
    pub fn pid(&self) -> i32 {
        match self {
            Self::Sidecar(sidecar) => sidecar.process().pid(),
            Self::Java(process, _) => process.pid(),
        }
    }

    /// Waits until the input was followed for the `number`th time, and returns when what happened.
    pub fn wait_followed(&self, number: usize) -> Moments {
        wait::until(PATIENCE, "the internal topics to follow", || self.followed().into_iter().nth(number - 1))
    }

    fn followed(&self) -> Vec<Moments> {
        let lines = self.lines();
        match self {
            Self::Java(..) => lines.iter().filter_map(java_moments).collect(),
            Self::Sidecar(_) => {
                let mut followed = Vec::new();
                let (mut requested, mut replied) = (None, None);
                for line in &lines {
                    let message = text(line, "message").unwrap_or_default();
                    if message.starts_with("one CreatePartitions request") {
                        requested = requested.or(moment(line));
                    } else if message.starts_with("answered after") {
                        replied = moment(line);
                    } else if let Some(plan) = plan_time(message) {
                        let moments = (requested.take(), replied.take(), moment(line));
                        if let (Some(requested), Some(replied), Some(verified)) = moments {
                            followed.push(Moments { seen: requested - plan, requested, replied, verified });
                        }
                    }
                }
                followed
            }
        }
    }

    /// What it has printed in JSON.
    fn lines(&self) -> Vec<Value> {
        let lines = match self {
            Self::Sidecar(sidecar) => sidecar.log().lines().map(str::to_owned).collect(),
            Self::Java(process, output) => output.lines(process),
        };
        lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

fn java_moments(line: &Value) -> Option<Moments> {
    let moment = |name| Some(SystemTime::UNIX_EPOCH + Duration::from_micros(line.get(name)?.as_u64()?));
    Some(Moments {
        seen: moment("seen")?,
        requested: moment("requested")?,
        replied: moment("replied")?,
        verified: moment("verified")?,
    })
}

fn text<'a>(line: &'a Value, field: &str) -> Option<&'a str> {
    line.get(field)?.as_str()
}

fn moment(line: &Value) -> Option<SystemTime> {
    humantime::parse_rfc3339(text(line, "timestamp")?).ok()
}

/// How long the sidecar took from sight to request, by the line that tells of a finished expansion.
fn plan_time(message: &str) -> Option<Duration> {
    let (_, parts) = message.split_once("(plan ")?;
    let millis: f64 = parts.split_once(',')?.0.parse().ok()?;
    Some(Duration::from_secs_f64(millis / 1000.0))
}
