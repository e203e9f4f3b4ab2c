//! `cargo bench --bench reaction`: how fast the internal topics follow, and what watching costs, beside the same loop written with
//! Java's AdminClient. Prints numbers and asserts none of them.
#![allow(clippy::expect_used, clippy::panic, reason = "a measurement that cannot be made ends by panicking")]

mod figures;
mod rest;
mod subject;
mod tables;

use std::time::{Duration, SystemTime};

use clap::Parser;
use kit::{Cluster, block_on, wait};
use rdkafka::admin::{AdminOptions, NewPartitions};

use figures::Reaction;
use subject::{Application, Kind, Subject};

/// Both loops look this often: the default of `partition.autoscaling.poll.interval.ms`.
pub const POLL: Duration = Duration::from_millis(500);

/// Growths under one process: it is started anew so that first requests count as well.
const GROWTHS_EACH: usize = 10;

/// Measures reaction, memory and processor time of the sidecar and of the same loop in Java.
#[derive(Debug, Parser)]
#[command(name = "cargo bench --bench reaction --")]
struct Arguments {
    /// Growths to measure of each
    #[arg(long, default_value_t = 100)]
    growths: usize,
    /// Seconds to measure each at rest
    #[arg(long, default_value_t = 30)]
    rest_seconds: u64,
    /// Nodes of the cluster
    #[arg(long, default_value_t = 1)]
    nodes: usize,
    /// What Cargo passes to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    let cluster = Cluster::builder().nodes(arguments.nodes).start();
    let rest = Duration::from_secs(arguments.rest_seconds);
    let at_rest = [10, 100].map(|topics| rest::measure(&cluster, topics, rest));
    let reactions = Kind::BOTH.map(|kind| reactions(&cluster, kind, arguments.growths));
    let elected = self::reactions(&cluster, Kind::Elected, arguments.growths);
    tables::print(&reactions, &elected, &at_rest, rest, arguments.nodes);
}

fn reactions(cluster: &Cluster, kind: Kind, growths: usize) -> Vec<Reaction> {
    let mut reactions = Vec::new();
    while reactions.len() < growths {
        let application = Application::new(&format!("{}-{}", kind.name(), reactions.len()), 3);
        application.create(cluster);
        let subject = Subject::start(kind, cluster, &application);
        let share = GROWTHS_EACH.min(growths - reactions.len());
        reactions.extend((1..=share).map(|number| reaction(cluster, &application, &subject, number)));
        eprintln!("{}: {} of {growths} growths", kind.name(), reactions.len());
    }
    reactions
}

/// Grows the input for the `number`th time and waits until it was followed.
fn reaction(cluster: &Cluster, application: &Application, subject: &Subject, number: usize) -> Reaction {
    // Anywhere between two looks.
    std::thread::sleep(POLL.mul_f64(fastrand::f64()));
    let admin = cluster.admin();
    let patience = AdminOptions::new().operation_timeout(Some(wait::PATIENCE));
    let target = NewPartitions::new(application.input(), 1 + number);
    let outcome = block_on(admin.client().create_partitions([&target], &patience)).expect("the broker answers");
    assert!(outcome.iter().all(Result::is_ok), "{outcome:?}");
    let grown = SystemTime::now();
    Reaction::new(grown, subject.wait_followed(number))
}
