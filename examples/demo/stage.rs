//! What the story is played on: Kafka's jars, a broker, the application, the sidecar.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use kit::process::target_dir;
use kit::{App, Cluster, Sidecar, jars};
use serde_json::Value;
use tempfile::TempDir;

use crate::narrator::Narrator;

/// The input that grows.
pub const ORDERS: &str = "orders";
/// What the application writes.
pub const COUNTS: &str = "customer-counts";
/// `application.id`
pub const APPLICATION: &str = "shop";
/// Counts of [`ORDERS`] before and after.
pub const BEFORE: usize = 3;
pub const AFTER: usize = 6;
/// How often the application looks for changes; Kafka's default would make a long story.
pub const METADATA_AGE_MS: u64 = 10_000;

/// Fetches and compiles what is missing, and starts the broker.
pub fn broker(narrator: &Narrator) -> Result<Arc<Cluster>, String> {
    let started = Instant::now();
    narrator.begin(
        "Kafka's jars and the application: if they are missing they are fetched with Maven and compiled, which takes some minutes",
    );
    jars::fixture().map_err(|error| error.to_string())?;
    let took = started.elapsed().as_secs();
    let after = if took > 2 { format!(" (after {took} s)") } else { String::new() };
    narrator.done(&format!("Kafka {} and a stock Kafka Streams application are here{after}", jars::KAFKA));

    narrator.begin("starting a broker (the first time it also notes what makes later starts fast, half a minute)");
    let cluster = Cluster::builder().start();
    cluster.admin().create(&[(ORDERS, BEFORE), (COUNTS, 1)]);
    narrator.done(&format!("a Kafka broker runs at {}, with {ORDERS} in {BEFORE} partitions", cluster.bootstrap()));
    Ok(Arc::new(cluster))
}

/// Starts the application and waits until it works.
pub fn application(narrator: &Narrator, cluster: &Cluster) -> App {
    narrator.begin("starting the application");
    // With two members a growth that is followed within a heartbeat is followed in time.
    let app = App::builder(APPLICATION).threads(2).metadata_age_ms(METADATA_AGE_MS).static_partitioner();
    // A member that dies stays in the group until its session ends, and the others wait for it; 45 s are too long for a story.
    let app = app.property("session.timeout.ms", "6000").property("heartbeat.interval.ms", "2000").start(cluster);
    app.wait_tasks(2 * BEFORE);
    narrator.done(&format!(
        "the application {APPLICATION} runs, two threads, {} tasks: it counts the {ORDERS} of each customer",
        app.tasks().len()
    ));
    app
}

/// The sidecar, with the folder of its topology.
pub struct Watching {
    pub sidecar: Sidecar,
    _folder: TempDir,
}

/// Starts the sidecar and waits until it is ready.
pub fn sidecar(narrator: &Narrator, program: &Path, cluster: &Cluster, app: &App) -> Result<Watching, String> {
    narrator.begin("starting the sidecar");
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder can be made: {error}"))?;
    let topology = folder.path().join("topology.txt");
    std::fs::write(&topology, app.describe()).map_err(|error| format!("{} cannot be written: {error}", topology.display()))?;
    let config = format!(
        "bootstrap.servers = \"{}\"\napplication.id = \"{APPLICATION}\"\npartition.autoscaling.enabled = true\n\
         http.listen = \"127.0.0.1:0\"\ntopology.file = \"{}\"\ntopology.pinned = []\n",
        cluster.bootstrap(),
        topology.display()
    );
    let sidecar = Sidecar::builder(program).config(&config).start();
    let status = sidecar.wait_status("steady", |status| told(status, "/state/name") == "Steady");
    let watched = told(&status, "/partitions").as_object().map_or(0, serde_json::Map::len);
    narrator.done(&format!("the sidecar watches {watched} topics of it; look at {0}/metrics and {0}/v1/status", sidecar.url()));
    Ok(Watching { sidecar, _folder: folder })
}

/// A part of what `/v1/status` tells of the application, by JSON pointer; null where it is not there.
pub fn told<'a>(status: &'a Value, pointer: &str) -> &'a Value {
    status.pointer("/applications/0").and_then(|application| application.pointer(pointer)).unwrap_or(&Value::Null)
}

/// The sidecar's program, built with the profile of this example; Cargo builds examples without it. That can take minutes, so Cargo
/// shows how it gets on, and nothing else may be written meanwhile.
pub fn built() -> Result<PathBuf, String> {
    let here = env::current_exe().map_err(|error| format!("this program cannot find itself: {error}"))?;
    let folder = here.parent().and_then(Path::parent).ok_or("this program does not lie in a build folder")?;
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        None | Some("debug") => "dev",
        Some(other) => other,
    };
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Named together with this example, it gets the dependencies that are built already.
    let both = ["build", "--bin", "partition-autoscaler", "--example", "demo"];
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(both);
    cargo.args(["--profile", profile, "--target-dir"]).arg(target_dir());
    let status = cargo.status().map_err(|error| format!("`cargo build` did not start: {error}"))?;
    if !status.success() {
        return Err("the sidecar could not be built; `cargo build` says why above".to_owned());
    }
    Ok(folder.join("partition-autoscaler"))
}
