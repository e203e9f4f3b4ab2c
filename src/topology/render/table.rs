//! Tables for the terminal.

use std::fmt::Write as _;

use crate::table;
use crate::topology::Pinned;
use crate::topology::overview::{Origin, Overview, Part, Standing};

/// The overview as text: each part under a title that says how well it is known.
pub fn render(overview: &Overview) -> String {
    let mut out = String::new();
    subtopologies(&mut out, overview);
    repartition_topics(&mut out, overview);
    copartition_groups(&mut out, overview);
    changelogs(&mut out, overview);
    global_topics(&mut out, overview);
    pinned(&mut out, overview.pinned.as_ref());
    warnings(&mut out, overview);
    out
}

fn subtopologies(out: &mut String, overview: &Overview) {
    let known = match overview.origin {
        Origin::Text => "certain, from the text",
        Origin::Stated => "stated",
    };
    title(out, "Subtopologies", if overview.subtopologies.is_empty() { "none" } else { known });
    let rows = overview.subtopologies.iter().map(|part| {
        let kind = if part.global { "global store" } else { "tasks" };
        let nodes = part.nodes.map_or_else(|| "-".to_owned(), |n| n.to_string());
        [part.label(), kind.to_owned(), reads(part), writes(part), lines(part.stores.iter().cloned()), nodes]
    });
    table(out, ["ID", "KIND", "READS", "WRITES", "STORES", "NODES"], rows);
}

fn reads(part: &Part) -> String {
    lines(part.sources.iter().cloned().chain(part.source_patterns.iter().map(|pattern| format!("{pattern} (pattern)"))))
}

fn writes(part: &Part) -> String {
    lines(part.sinks.iter().cloned().chain(part.dynamic_sinks.then(|| "(chosen for each record)".to_owned())))
}

fn repartition_topics(out: &mut String, overview: &Overview) {
    if overview.repartition_topics.is_empty() {
        return title(out, "Repartition topics", "none");
    }
    title(out, "Repartition topics", "");
    let rows = overview.repartition_topics.iter().map(|(topic, standing)| {
        let full = overview.full_names(topic).join(" or ");
        let known = match standing {
            Standing::Stated => "stated".to_owned(),
            Standing::Inferred => format!("inferred, confirmed when {full} exists"),
            Standing::Confirmed => format!("confirmed, {full} exists"),
            Standing::UserTopic => format!("a user topic: {full} does not exist, {topic} does"),
            Standing::Unclear => format!("unclear, both {topic} and {full} exist: state repartition_topics"),
            Standing::Missing => format!("inferred, {full} does not exist yet"),
        };
        [topic.clone(), known]
    });
    table(out, ["TOPIC", "KNOWN"], rows);
}

fn copartition_groups(out: &mut String, overview: &Overview) {
    let known = match (overview.groups_from, overview.copartition_groups.is_empty()) {
        (Origin::Text, false) => "inferred from shared stores",
        (Origin::Text, true) => "none, inferred from shared stores",
        (Origin::Stated, false) => "stated",
        (Origin::Stated, true) => "none, stated",
    };
    title(out, "Copartition groups", known);
    let rows = overview.copartition_groups.iter().enumerate();
    table(out, ["GROUP", "TOPICS"], rows.map(|(index, group)| [(index + 1).to_string(), lines(group.iter().cloned())]));
}

fn changelogs(out: &mut String, overview: &Overview) {
    match &overview.changelogs {
        None => title(out, "Changelogs", "unknown, a store has one when <prefix>-<store>-changelog exists"),
        Some(topics) if topics.is_empty() => title(out, "Changelogs", "none, there are no stores"),
        Some(topics) => {
            title(out, "Changelogs", "certain, from the topics that exist");
            let rows = topics
                .iter()
                .map(|(topic, exists)| [topic.clone(), if *exists { "exists" } else { "does not exist, left alone" }.to_owned()]);
            table(out, ["TOPIC", "KNOWN"], rows);
        }
    }
}

fn global_topics(out: &mut String, overview: &Overview) {
    if !overview.global_topics.is_empty() {
        title(out, "Global topics", "stated");
        table(out, ["TOPIC"], overview.global_topics.iter().map(|topic| [topic.clone()]));
    }
}

fn pinned(out: &mut String, pinned: Option<&Pinned>) {
    let counts: Vec<(&String, Option<u32>)> = match pinned {
        None => return title(out, "Pinned counts", "unknown, state topology.pinned (none = no topic has a count in the code)"),
        Some(Pinned::Names(names)) => names.iter().map(|name| (name, None)).collect(),
        Some(Pinned::Counts(counts)) => counts.iter().map(|(name, count)| (name, *count)).collect(),
    };
    if counts.is_empty() {
        return title(out, "Pinned counts", "none, stated");
    }
    title(out, "Pinned counts", "stated");
    let rows = counts
        .into_iter()
        .map(|(name, count)| [name.clone(), count.map_or_else(|| "as it is now".to_owned(), |n| n.to_string())]);
    table(out, ["TOPIC", "PARTITIONS"], rows);
}

fn warnings(out: &mut String, overview: &Overview) {
    if !overview.warnings.is_empty() {
        title(out, "Warnings", "");
        table(out, ["CODE", "MESSAGE"], overview.warnings.iter().map(|w| [w.code.to_owned(), w.message.clone()]));
    }
}

fn title(out: &mut String, name: &str, known: &str) {
    let gap = if out.is_empty() { "" } else { "\n" };
    let colon = if known.is_empty() { "" } else { ": " };
    let _ = writeln!(out, "{gap}{name}{colon}{known}");
}

fn table<const N: usize>(out: &mut String, header: [&str; N], rows: impl Iterator<Item = [String; N]>) {
    *out += &table::borderless(header, rows);
}

fn lines(items: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = items.collect();
    if lines.is_empty() { "-".to_owned() } else { lines.join("\n") }
}
