//! The tables and the histogram.

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use kit::jars;

use crate::POLL;
use crate::figures::{Reaction, Sample};
use crate::rest::Rest;

const BAR: usize = 40;
const BUCKETS: usize = 12;

/// What we want to be: milliseconds, MB, percent of a core.
const GOAL_OWN_P99: f64 = 5.0;
const GOAL_MEMORY: f64 = 15.0;
const GOAL_PROCESSOR: f64 = 0.3;

type Part = (&'static str, fn(&Reaction) -> Duration);

const PARTS: [Part; 6] = [
    ("reaction", Reaction::whole),
    ("- wait for the next poll", |reaction| reaction.poll_wait),
    ("- plan", |reaction| reaction.plan),
    ("- CreatePartitions", |reaction| reaction.request),
    ("- verification", |reaction| reaction.verification),
    ("own share (plan + verification)", Reaction::own),
];

/// Prints everything.
pub fn print(reactions: &[Vec<Reaction>; 2], elected: &[Reaction], at_rest: &[Rest], rest: Duration, nodes: usize) {
    let [sidecar, java] = reactions;
    println!(
        "\nKafka {}, {nodes} node(s) on the same machine; both loops look every {} ms; JVM with a heap of 64 MB, serial collector, C1",
        jars::KAFKA,
        POLL.as_millis()
    );
    println!("\nFrom the growth of an input to verified counts, {} growths each, in ms", sidecar.len());
    let mut table = table(&["", "sidecar p50", "p99", "Java p50", "p99", "sidecar/Java p50", "p99"]);
    for (name, part) in PARTS {
        let (ours, theirs) = (Sample::of(sidecar, part), Sample::of(java, part));
        let figures = [&ours, &theirs].into_iter().flat_map(|sample| [sample.percentile(0.5), sample.percentile(0.99)]);
        let ratios = [0.5, 0.99].map(|share| format!("{:.2}", ours.percentile(share) / theirs.percentile(share)));
        table.add_row([name.to_owned()].into_iter().chain(figures.map(|ms| format!("{ms:.1}"))).chain(ratios));
    }
    println!("{}", aligned(table));
    histogram(sidecar, java);
    election(sidecar, elected);

    println!("\nAt rest, over {} s", rest.as_secs());
    let mut table = self::table(&["", "sidecar", "Java", "sidecar/Java"]);
    for Rest { topics, costs: [ours, theirs] } in at_rest {
        let row = |name: &str, unit: &str, ours: f64, theirs: f64| {
            [
                format!("{topics} topics, {name}"),
                format!("{ours:.2} {unit}"),
                format!("{theirs:.2} {unit}"),
                format!("{:.3}", ours / theirs),
            ]
        };
        table.add_row(row("resident memory", "MB", ours.memory, theirs.memory));
        table.add_row(row("of a core", "%", ours.processor, theirs.processor));
    }
    println!("{}", aligned(table));

    println!("\nGoals of the sidecar");
    goal("own share, p99, ms", Sample::of(sidecar, Reaction::own).percentile(0.99), GOAL_OWN_P99);
    for Rest { topics, costs: [ours, _] } in at_rest {
        goal(&format!("memory with {topics} topics, MB"), ours.memory, GOAL_MEMORY);
        goal(&format!("of a core with {topics} topics, %"), ours.processor, GOAL_PROCESSOR);
    }
}

/// The permission to react is committed before the growth, so election costs a reaction no request.
fn election(off: &[Reaction], on: &[Reaction]) {
    println!("\nWith leader.election=kafka beside none, {} growths each, in ms", on.len());
    let mut table = table(&["", "none p50", "p99", "kafka p50", "p99", "difference p50", "p99"]);
    for (name, part) in PARTS {
        let samples = [off, on].map(|reactions| Sample::of(reactions, part));
        let [off, on] = samples.map(|sample| [sample.percentile(0.5), sample.percentile(0.99)]);
        let difference = [on[0] - off[0], on[1] - off[1]];
        let figures = [off, on].concat().into_iter().map(|ms| format!("{ms:.1}"));
        let figures = figures.chain(difference.map(|ms| format!("{ms:+.1}")));
        table.add_row([name.to_owned()].into_iter().chain(figures));
    }
    println!("{}", aligned(table));
}

fn goal(what: &str, figure: f64, goal: f64) {
    let word = if figure < goal { "met" } else { "MISSED" };
    println!("  {what}: {figure:.2}, below {goal} is the goal: {word}");
}

fn histogram(sidecar: &[Reaction], java: &[Reaction]) {
    let samples = [("sidecar", Sample::of(sidecar, Reaction::whole)), ("Java", Sample::of(java, Reaction::whole))];
    let longest = samples.iter().map(|(_, sample)| sample.percentile(1.0)).fold(0.0, f64::max);
    let width = (longest / BUCKETS as f64 / 10.0).ceil().max(1.0) * 10.0;
    println!("\nReactions by length");
    for bucket in 0..BUCKETS {
        let (from, to) = (bucket as f64 * width, (bucket + 1) as f64 * width);
        for (row, (name, sample)) in samples.iter().enumerate() {
            let range = if row == 0 { format!("{from:.0}-{to:.0} ms") } else { String::new() };
            let n = sample.between(from, to);
            println!("{range:>14} {name:<8} {} {n}", "#".repeat((n * BAR).div_ceil(sidecar.len().max(1))));
        }
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header(header);
    table
}

fn aligned(mut table: Table) -> Table {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
