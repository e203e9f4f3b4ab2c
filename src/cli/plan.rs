//! `partition-autoscaler plan`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{Common, Failure, Output, exit, live, print, snapshot};
use crate::autoscaler::words;
use crate::config::{self, Partial, Sources};
use crate::plan::{Decision, Knowledge, Planner, Snapshot, Verdict, Watched};
use crate::table;
use crate::topology::Stated;
use crate::topology_source;

/// Options of `plan`.
#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 nothing to do, 3 changes are needed, 4 blocked or waiting.")]
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
    let decision = match &args.snapshot {
        Some(file) => of_snapshot(file, &args.set_count, common)?,
        None => of_live_application(&args.set_count, common)?,
    };
    show(&decision, common.output)?;
    Ok(exit_code(&decision))
}

fn of_snapshot(file: &Path, what_if: &[String], common: &Common) -> Result<Decision, Failure> {
    let partial = live::only(config::load_partial(&Sources::new(&common.config, &common.set))?)?;
    let name = topology_source::name(file);
    let mut snapshot = snapshot::read(file)?;
    if let Some(other) = partial.application_id.as_ref().filter(|id| **id != snapshot.application_id) {
        let of = &snapshot.application_id;
        return Err(Failure::usage(format!(
            "{name} is a snapshot of {of}, but application.id is {other}; name the snapshot of {other}, or leave its configuration out"
        )));
    }
    let knowledge = Knowledge { max_new_partitions: partial.max_new_partitions, ..Knowledge::default() };
    overlay(&mut snapshot, partial);
    let planner = snapshot::planner(&name, &snapshot)?;
    set_counts(what_if, &planner, &mut snapshot)?;
    Ok(planner.decide(&snapshot.baseline, &snapshot.partitions, &knowledge))
}

fn of_live_application(what_if: &[String], common: &Common) -> Result<Decision, Failure> {
    let settings = live::settings(common)?;
    let mut application = live::observe(&settings)?;
    application.recall(&settings);
    application.take_baseline(&settings);
    let absence = application.absence();
    let knowledge = application.knowledge(&settings);
    set_counts(what_if, &application.planner, &mut application.snapshot)?;
    let live::Application { planner, snapshot, client, .. } = &mut application;
    let mut decision = planner.decide(&snapshot.baseline, &snapshot.partitions, &knowledge);
    decision.warnings.extend(absence);
    // The baseline stands in for a group that is not running, or cannot be read.
    let tasks = live::tasks(client, &settings.application_id);
    for subtopology in &mut decision.subtopologies {
        subtopology.current = tasks.get(&subtopology.id).copied().or(subtopology.current);
    }
    Ok(decision)
}

/// What is configured wins over what the snapshot says.
fn overlay(snapshot: &mut Snapshot, partial: Partial) {
    let Partial { topology: configured, baseline, .. } = partial;
    snapshot.baseline.extend(baseline);
    snapshot.prefix = configured.prefix.or(snapshot.prefix.take());
    if configured.complete.is_some() {
        snapshot.topology = configured.complete;
        snapshot.describe = None;
        snapshot.stated = None;
        return;
    }
    let Stated { pinned, copartition_groups, global_topics, repartition_topics, logging_disabled, source_changelogs } =
        configured.stated;
    if let Some(topology) = &mut snapshot.topology {
        topology.pinned = pinned.or(topology.pinned.take());
        replace(&mut topology.copartition_groups, copartition_groups);
        replace(&mut topology.global_topics, global_topics);
        replace(&mut topology.repartition_topics, repartition_topics);
        replace(&mut topology.logging_disabled, logging_disabled);
        replace(&mut topology.source_changelogs, source_changelogs);
    } else {
        let stated = snapshot.stated.get_or_insert_default();
        stated.pinned = pinned.or(stated.pinned.take());
        stated.copartition_groups = copartition_groups.or(stated.copartition_groups.take());
        stated.global_topics = global_topics.or(stated.global_topics.take());
        stated.repartition_topics = repartition_topics.or(stated.repartition_topics.take());
        stated.logging_disabled = logging_disabled.or(stated.logging_disabled.take());
        stated.source_changelogs = source_changelogs.or(stated.source_changelogs.take());
    }
}

fn replace<T>(value: &mut T, with: Option<T>) {
    if let Some(with) = with {
        *value = with;
    }
}

fn set_counts(what_if: &[String], planner: &Planner, snapshot: &mut Snapshot) -> Result<(), Failure> {
    let Watched { names, patterns } = planner.watched();
    for entry in what_if {
        let parsed = entry.rsplit_once('=').filter(|(topic, _)| !topic.is_empty());
        let count =
            parsed.and_then(|(topic, count)| count.parse::<u32>().ok().filter(|&count| count > 0).map(|count| (topic, count)));
        let Some((topic, count)) = count else {
            return Err(Failure::usage(format!(
                "--set-count {entry}: expected TOPIC=COUNT with a count of 1 or more, as in orders=12"
            )));
        };
        let is_used = names.contains(topic) || patterns.iter().any(|pattern| pattern.matches(topic));
        if !is_used && !snapshot.partitions.contains_key(topic) {
            let known = planner.inputs(&snapshot.partitions).into_keys().collect::<Vec<_>>();
            let hint = match nearest(topic, known.iter().chain(&names)) {
                Some(near) => format!("did you mean {near}?"),
                None if known.is_empty() => "none of its inputs exists yet".to_owned(),
                None => format!("its inputs are {}", words::shortened(&known)),
            };
            return Err(Failure::usage(format!(
                "--set-count {entry}: {} does not use a topic {topic}; {hint}",
                snapshot.application_id
            )));
        }
        snapshot.partitions.insert(topic.to_owned(), count);
    }
    Ok(())
}

/// The name that looks most like a mistyped one, if any looks alike; of equals the first.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    let (distance, near) =
        known.map(|known| (strsim::damerau_levenshtein(name, known), known)).min_by_key(|(distance, _)| *distance)?;
    (distance <= (near.len() / 3).max(2)).then_some(near)
}

/// Exit code of a decision.
pub fn exit_code(decision: &Decision) -> u8 {
    match decision.decision {
        Verdict::None => exit::OK,
        Verdict::Expand => exit::CHANGES,
        Verdict::Waiting | Verdict::Blocked => exit::BLOCKED,
    }
}

fn show(decision: &Decision, output: Output) -> Result<(), Failure> {
    let text = match output {
        Output::Json => serde_json::to_string_pretty(decision).map_err(|error| Failure::failed(error.to_string()))? + "\n",
        Output::Text => text(decision),
    };
    print(&text)
}

/// The decision for people.
fn text(decision: &Decision) -> String {
    let changes = decision.changes.iter().map(|change| {
        let role = format!("{:?}", change.role).to_lowercase();
        [change.topic.clone(), role, change.from.to_string(), change.to.to_string(), change.because.join("\n")]
    });
    let count = |count: Option<u32>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let subtopologies = decision.subtopologies.iter();
    let subtopologies = subtopologies.map(|sub| [sub.id.clone(), count(sub.current), count(sub.expected)]);
    let mut parts = vec![
        format!("{}\n", headline(decision)),
        table::borderless(["TOPIC", "ROLE", "FROM", "TO", "BECAUSE"], changes),
        table::borderless(["SUBTOPOLOGY", "CURRENT TASKS", "EXPECTED TASKS"], subtopologies),
        notes(decision),
    ];
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// What there is to say beside the tables, a line each.
fn notes(decision: &Decision) -> String {
    let conflicts = decision.conflicts.iter();
    let conflicts = conflicts.map(|(topic, of)| format!("conflict: {topic} has {}, expected {}\n", of.found, of.expected));
    let possible = decision.possible_counts.iter().map(|(topic, counts)| {
        let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
        format!("possible: {topic} {}\n", counts.join(" or "))
    });
    let questions = decision.questions.iter().map(|question| format!("question ({}): {}\n", question.setting, question.message));
    let warnings = decision.warnings.iter().map(|warning| format!("warning ({}): {}\n", warning.code, warning.message));
    conflicts.chain(possible).chain(questions).chain(warnings).collect()
}

fn headline(decision: &Decision) -> String {
    let verdict = format!("{:?}", decision.decision).to_lowercase();
    match decision.code.and_then(|code| serde_json::to_value(code).ok()) {
        Some(code) => format!("{verdict} ({}): {}", code.as_str().unwrap_or_default(), decision.message),
        None => format!("{verdict}: {}", decision.message),
    }
}
