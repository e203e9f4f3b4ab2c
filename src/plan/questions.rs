//! What the operator is asked for, with the line to write.

use super::decision::Question;

/// Inputs for which a question spells out the line to write.
const SHOWN: usize = 3;
/// Names in a sentence.
const LISTED: usize = 10;

/// The first few of a list in words.
pub(crate) fn listed(words: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = words.collect();
    let rest = all.len().saturating_sub(LISTED);
    let shown = all.into_iter().take(LISTED).collect::<Vec<_>>().join(", ");
    if rest > 0 { format!("{shown} and {rest} more") } else { shown }
}

/// Which repartition topics have an explicit count?
pub(crate) fn pinned(raw: &[String]) -> Question {
    Question {
        setting: "topology.pinned".to_owned(),
        about: raw.to_vec(),
        message: format!(
            "does the application's code give {} an explicit partition count? write topology.pinned = [\"...\"] with those that have one, \
             or topology.pinned = [] if none has",
            listed(raw.iter().cloned())
        ),
    }
}

/// Which explicit counts do these topics have, that are stated as pinned and do not exist yet?
pub(crate) fn pinned_counts(raw: &[String]) -> Question {
    let lines = listed(raw.iter().map(|topic| format!("{topic:?} = 6")));
    Question {
        setting: "topology.pinned".to_owned(),
        about: raw.to_vec(),
        message: format!(
            "which partition count does the application's code give {}? it is pinned and does not exist yet, so write the count, \
             as in topology.pinned = {{ {lines} }}",
            listed(raw.iter().cloned())
        ),
    }
}

/// Which topics must have equal counts?
pub(crate) fn copartition_groups(groups: &[Vec<String>]) -> Question {
    let lists = groups.iter().map(|group| format!("[{}]", group.join(", ")));
    Question {
        setting: "topology.copartition_groups".to_owned(),
        about: groups.iter().flatten().cloned().collect(),
        message: format!(
            "does the application join the topics of {}? state topology.copartition_groups with every group of joined source topics",
            listed(lists)
        ),
    }
}

/// What were the counts of the inputs when everything was last right?
pub(crate) fn baseline(inputs: &[String], example: u32) -> Question {
    Question {
        setting: inputs.first().map_or_else(|| "baseline".to_owned(), |input| format!("baseline.{input}")),
        about: inputs.to_vec(),
        message: format!("how many partitions did the inputs have before they grew? write {}", baseline_lines(inputs, example)),
    }
}

/// `baseline.orders=3`, for each input.
pub(crate) fn baseline_lines(inputs: &[String], example: u32) -> String {
    let mut lines: Vec<String> = inputs.iter().take(SHOWN).map(|input| format!("baseline.{input}={example}")).collect();
    if inputs.len() > SHOWN {
        lines.push("and so on".to_owned());
    }
    lines.join(", ")
}

/// Which order does the application visit its subtopologies in? Only counts that differ can tell.
pub(crate) fn order(inputs: &[String]) -> Question {
    Question {
        setting: inputs.first().map_or_else(|| "baseline".to_owned(), |input| format!("baseline.{input}")),
        about: inputs.to_vec(),
        message: format!(
            "did the inputs ever have counts that differed while the application ran well? state them as baseline.<topic>=<count>; \
             otherwise grow {} to one count",
            listed(inputs.iter().cloned())
        ),
    }
}
