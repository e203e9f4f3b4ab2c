//! `cargo bench --bench handover`: how long an application is without a leader when its leader ends. Prints numbers and asserts none of
//! them.
#![allow(clippy::expect_used, clippy::panic, reason = "a measurement that cannot be made ends by panicking")]

use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use kit::{Cluster, Sidecar, wait};

/// Between two looks at a status: the error of a measurement.
const LOOK: Duration = Duration::from_millis(2);

/// Measures from the signal to the leader until the status of the other sidecar says that it leads.
#[derive(Debug, Parser)]
#[command(name = "cargo bench --bench handover --")]
struct Arguments {
    /// Leaders to stop in good order
    #[arg(long, default_value_t = 10)]
    stops: usize,
    /// Leaders to kill
    #[arg(long, default_value_t = 3)]
    kills: usize,
    /// What Cargo passes to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    let cluster = Cluster::builder().start();
    cluster.admin().create(&[("orders", 1), ("handover-by-key-repartition", 1)]);
    let mut leader = start(&cluster);
    wait_leads(&leader);
    let mut measure = |what: &str, times: usize, end: fn(&Sidecar)| {
        let mut took: Vec<Duration> = (1..=times)
            .map(|number| {
                let follower = start(&cluster);
                follower
                    .wait_status("a follower", |status| status.pointer("/applications/0/state/name") == Some(&"Steady".into()));
                let begun = Instant::now();
                end(&leader);
                wait_leads(&follower);
                let took = begun.elapsed();
                eprintln!("{what}: {number} of {times}, {} ms", took.as_millis());
                leader = follower;
                took
            })
            .collect();
        took.sort();
        let millis = |time: Option<&Duration>| time.map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0);
        println!(
            "{what}, {times} times: the next one leads after {:.0} ms (median), {:.0} ms (longest)",
            millis(took.get(times / 2)),
            millis(took.last())
        );
    };
    measure("leader stopped", arguments.stops, |leader| leader.process().terminate());
    measure("leader killed", arguments.kills, |leader| leader.process().kill());
}

fn start(cluster: &Cluster) -> Sidecar {
    let config = format!(
        "bootstrap.servers = {:?}\napplication.id = \"handover\"\npartition.autoscaling.enabled = true\n\
         http.listen = \"127.0.0.1:0\"\nleader.election = \"kafka\"\n[topology]\npinned = []\nrepartition_topics = [\"by-key-repartition\"]\n\
         [[topology.subtopologies]]\nid = 0\nsources = [\"orders\"]\nsinks = [\"by-key-repartition\"]\n\
         [[topology.subtopologies]]\nid = 1\nsources = [\"by-key-repartition\"]\n",
        cluster.bootstrap()
    );
    Sidecar::builder(env!("CARGO_BIN_EXE_partition-autoscaler")).config(&config).start()
}

fn wait_leads(sidecar: &Sidecar) {
    let begun = Instant::now();
    while sidecar.status().pointer("/applications/0/leader") != Some(&true.into()) {
        assert!(begun.elapsed() < wait::PATIENCE, "the other sidecar does not lead:\n{}", sidecar.log());
        thread::sleep(LOOK);
    }
}
