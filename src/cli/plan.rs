//! `partition-autoscaler plan`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use comfy_table::{Table, presets};

use super::{Common, Failure, Output, exit};
use crate::plan::{Decision, Knowledge, Planner, Snapshot, Verdict};
use crate::topology::{Pinned, Stated};

/// Options of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Plan from a saved snapshot (`-` = standard input) instead of the live application
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// What if the topic had this count; may be repeated
    #[arg(long = "set-count", value_name = "TOPIC=COUNT")]
    set_count: Vec<String>,
}

/// Runs the command.
pub fn run(args: &PlanArgs, common: &Common) -> Result<u8, Failure> {
    let Some(file) = &args.snapshot else { return live(args, common) };
    let mut snapshot = read(file)?;
    let mut knowledge = Knowledge::default();
    for setting in &common.set {
        apply_setting(setting, &mut snapshot, &mut knowledge)?;
    }
    set_counts(&args.set_count, &mut snapshot.partitions)?;
    let planner = Planner::new(&snapshot).map_err(|message| Failure::usage(format!("{}: {message}", file.display())))?;
    let decision = planner.decide(&snapshot.baseline, &snapshot.partitions, &knowledge);
    show(&decision, common.output)?;
    Ok(exit_code(&decision))
}

/// The plan of the live application.
fn live(_args: &PlanArgs, _common: &Common) -> Result<u8, Failure> {
    Err(Failure::usage(
        "a plan of the live application needs the Kafka connection; give --snapshot FILE to plan from a saved snapshot",
    ))
}

/// Exit code of a decision.
pub fn exit_code(decision: &Decision) -> u8 {
    match decision.decision {
        Verdict::None => exit::OK,
        Verdict::Expand => exit::CHANGES,
        Verdict::Waiting | Verdict::Blocked => exit::BLOCKED,
    }
}

fn read(file: &Path) -> Result<Snapshot, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", file.display()));
    let mut text = String::new();
    match file.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text).map(drop),
        _ => std::fs::File::open(file).and_then(|mut file| file.read_to_string(&mut text)).map(drop),
    }
    .map_err(|error| unreadable(&error))?;
    serde_json::from_str(&text).map_err(|error| unreadable(&error))
}

fn set_counts(what_if: &[String], partitions: &mut BTreeMap<String, u32>) -> Result<(), Failure> {
    for entry in what_if {
        let parsed = entry.rsplit_once('=').filter(|(topic, _)| !topic.is_empty());
        let count =
            parsed.and_then(|(topic, count)| count.parse::<u32>().ok().filter(|&count| count > 0).map(|count| (topic, count)));
        let Some((topic, count)) = count else {
            return Err(Failure::usage(format!(
                "--set-count {entry}: expected TOPIC=COUNT with a count of 1 or more, as in orders=12"
            )));
        };
        partitions.insert(topic.to_owned(), count);
    }
    Ok(())
}

/// Applies the settings that bear on a plan; the others are none of its business.
fn apply_setting(setting: &str, snapshot: &mut Snapshot, knowledge: &mut Knowledge) -> Result<(), Failure> {
    let Some((key, value)) = setting.split_once('=') else {
        return Err(Failure::usage(format!("--set {setting}: expected KEY=VALUE")));
    };
    let number =
        || value.parse::<u32>().map_err(|_| Failure::usage(format!("--set {setting}: expected a number, found {value}")));
    match key {
        "max.new.partitions" => knowledge.max_new_partitions = number()?,
        "topology.prefix" => snapshot.prefix = Some(value.to_owned()),
        "topology.pinned" => {
            let names = value.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "none");
            let pinned = Some(Pinned::Names(names.map(str::to_owned).collect()));
            match &mut snapshot.topology {
                Some(topology) => topology.pinned = pinned,
                None => snapshot.stated.get_or_insert_with(Stated::default).pinned = pinned,
            }
        }
        _ => match key.strip_prefix("baseline.") {
            Some(topic) if !topic.is_empty() => _ = snapshot.baseline.insert(topic.to_owned(), number()?),
            _ => {
                return Err(Failure::usage(format!(
                    "--set {key}: with --snapshot only max.new.partitions, topology.pinned, topology.prefix and baseline.<topic> count"
                )));
            }
        },
    }
    Ok(())
}

fn show(decision: &Decision, output: Output) -> Result<(), Failure> {
    let text = match output {
        Output::Json => serde_json::to_string_pretty(decision).map_err(|error| Failure::failed(error.to_string()))?,
        Output::Text => text(decision),
    };
    println!("{text}");
    Ok(())
}

/// The decision for people.
fn text(decision: &Decision) -> String {
    let mut out = vec![headline(decision)];
    if !decision.changes.is_empty() {
        let mut table = table(&["topic", "role", "from", "to", "because"]);
        for change in &decision.changes {
            let role = format!("{:?}", change.role).to_lowercase();
            table.add_row([&change.topic, &role, &change.from.to_string(), &change.to.to_string(), &change.because.join("\n")]);
        }
        out.push(table.to_string());
    }
    if !decision.subtopologies.is_empty() {
        let count = |count: Option<u32>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
        let mut table = table(&["subtopology", "current tasks", "expected tasks"]);
        for subtopology in &decision.subtopologies {
            table.add_row([subtopology.id.clone(), count(subtopology.current), count(subtopology.expected)]);
        }
        out.push(table.to_string());
    }
    let conflicts = decision.conflicts.iter();
    out.extend(
        conflicts.map(|(topic, conflict)| format!("conflict: {topic} has {}, expected {}", conflict.found, conflict.expected)),
    );
    for (topic, counts) in &decision.possible_counts {
        let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
        out.push(format!("possible: {topic} {}", counts.join(" or ")));
    }
    out.extend(decision.questions.iter().map(|question| format!("question ({}): {}", question.setting, question.message)));
    out.extend(decision.warnings.iter().map(|warning| format!("warning ({}): {}", warning.code, warning.message)));
    out.join("\n")
}

fn headline(decision: &Decision) -> String {
    let verdict = format!("{:?}", decision.decision).to_lowercase();
    match decision.code.and_then(|code| serde_json::to_value(code).ok()) {
        Some(code) => format!("{verdict} ({}): {}", code.as_str().unwrap_or_default(), decision.message),
        None => format!("{verdict}: {}", decision.message),
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(header);
    table
}
