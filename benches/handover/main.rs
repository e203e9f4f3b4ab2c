//! `cargo bench --bench handover`: how long an application is without a leader when its leader ends. Prints numbers and asserts none of
//! them.
#![allow(clippy::expect_used, clippy::panic, reason = "a measurement that cannot be made ends by panicking")]

use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use kit::{Cluster, Sidecar, wait};

/// Between two looks at a status: the error of a measurement.
const LOOK: Duration = Duration::from_millis(2);

/// `heartbeat.interval.ms` of the sidecars: at the next one a follower learns that the leader has left.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// In which the sidecars elect.
const GROUP: &str = "handover-partition-autoscaler";

/// Measures from the signal to the leader until the status of another sidecar says that it leads.
#[derive(Debug, Parser)]
#[command(name = "cargo bench --bench handover --")]
struct Arguments {
    /// Sidecars of the application
    #[arg(long, default_value_t = 5)]
    sidecars: usize,
    /// Nodes of the cluster
    #[arg(long, default_value_t = 3)]
    nodes: usize,
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
    let cluster = Cluster::builder().nodes(arguments.nodes).start();
    cluster.admin().create(&[("orders", 1), ("handover-by-key-repartition", 1)]);
    println!("{} sidecars, Kafka cluster of {} node(s)", arguments.sidecars, arguments.nodes);
    let mut sidecars: Vec<Sidecar> = (0..arguments.sidecars).map(|_| start(&cluster)).collect();
    let mut measure = |what: &str, times: usize, end: fn(&Sidecar)| {
        let one = |number: usize| {
            sidecars.iter().for_each(wait_ready);
            wait::until(wait::PATIENCE, "a calm group", || (cluster.admin().group_state(GROUP)? == "Stable").then_some(()));
            // Anywhere between two heartbeats: a rebalance has put those of all members in step.
            thread::sleep(HEARTBEAT.mul_f64(fastrand::f64()));
            let leader = sidecars.remove(wait_leader(&sidecars));
            let begun = Instant::now();
            end(&leader);
            wait_leader(&sidecars);
            let took = begun.elapsed();
            eprintln!("{what}: {number} of {times}, {} ms", took.as_millis());
            sidecars.push(start(&cluster));
            took
        };
        let mut took: Vec<f64> = (1..=times).map(one).map(|time| time.as_secs_f64() * 1000.0).collect();
        took.sort_by(f64::total_cmp);
        println!(
            "{what}, {times} times: the next one leads after {:.0} ms (median), {:.0} ms (longest)",
            median(&took),
            took.last().copied().unwrap_or(f64::NAN)
        );
    };
    measure("leader stopped", arguments.stops, |leader| leader.process().terminate());
    measure("leader killed", arguments.kills, |leader| leader.process().kill());
}

/// Of sorted values: the middle one, or the mean of the two in the middle.
fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.get(half) {
        Some(upper) if sorted.len().is_multiple_of(2) => f64::midpoint(sorted.get(half - 1).copied().unwrap_or(*upper), *upper),
        Some(middle) => *middle,
        None => f64::NAN,
    }
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

/// Waits until it has heard where the application stands.
fn wait_ready(sidecar: &Sidecar) {
    sidecar.wait_status("Steady", |status| status.pointer("/applications/0/state/name") == Some(&"Steady".into()));
}

/// Which of them leads, once one does.
fn wait_leader(sidecars: &[Sidecar]) -> usize {
    let begun = Instant::now();
    loop {
        let leads = |sidecar: &Sidecar| sidecar.status().pointer("/applications/0/leader") == Some(&true.into());
        if let Some(leader) = sidecars.iter().position(leads) {
            return leader;
        }
        assert!(begun.elapsed() < wait::PATIENCE, "none of the sidecars leads");
        thread::sleep(LOOK);
    }
}
