//! Random topologies with the counts that Kafka's own classes demand (`tests/data/vectors/oracle_public.jsonl`).

use std::collections::{BTreeMap, BTreeSet};

use partition_autoscaler::plan::{Knowledge, decide};
use serde_json::{Map, Value, json};

use super::{Changes, changes, expected_tasks, json as answer_of, read, snapshot};

/// How an answer stands to Kafka's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Score {
    Exact,
    /// Another refusal that the rules allow.
    Accepted,
    /// Refused for another reason than Kafka's.
    Refused,
    Wrong,
}

/// What the model is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Topology,
    /// The text, with the explicit counts stated.
    Text,
    /// The text alone.
    TextAlone,
}

/// Kafka's answer in our words.
struct Wanted {
    decision: &'static str,
    code: Value,
    changes: Changes,
    tasks: Map<String, Value>,
    /// Counts that must be among the possible ones.
    possible: BTreeMap<String, BTreeSet<u64>>,
    /// Further codes that the rules allow.
    accepted: Vec<&'static str>,
}

#[test]
fn agrees_with_kafka_on_an_exact_topology() {
    let scores = scores(Way::Topology);
    assert_eq!(scores.get(&Score::Refused), None, "{scores:?}");
    assert!(scores[&Score::Exact] >= 390, "{scores:?}");
}

#[test]
fn is_exact_or_says_what_is_missing_with_a_text_and_the_pins() {
    let scores = scores(Way::Text);
    assert!(scores[&Score::Exact] >= 290 && scores.values().sum::<usize>() == 316, "{scores:?}");
}

#[test]
fn never_guesses_from_a_text_alone() {
    let scores = scores(Way::TextAlone);
    assert!(scores[&Score::Exact] >= 210, "{scores:?}");
}

/// Scores of all lines; a wrong answer fails at once.
fn scores(way: Way) -> BTreeMap<Score, usize> {
    let mut scores = BTreeMap::new();
    for line in read("vectors/oracle_public.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let Some((input, wanted)) = case(&line, way) else { continue };
        let answer = answer_of(&decide(&snapshot(&input), &Knowledge::default()));
        let score = score(&answer, &wanted);
        assert!(score != Score::Wrong, "{} {way:?}: {answer:#} but Kafka {} {}", line["id"], wanted.decision, wanted.code);
        *scores.entry(score).or_default() += 1;
    }
    scores
}

/// The snapshot of a line; `None` where the application was not sound at the baseline, or the text cannot tell.
fn case(line: &Value, way: Way) -> Option<(Value, Wanted)> {
    let (kafka, inputs, topology) = (&line["classic"], &line["inputs"], &line["topology"]);
    if kafka["baseline"]["status"] != "ok" || (way != Way::Topology && line["describe"].is_null()) {
        return None;
    }
    let gone = |topic: &Value| inputs["new"][topic.as_str().unwrap()].is_null();
    let mut matched =
        topology["source_patterns"].as_object().into_iter().flatten().flat_map(|(_, topics)| topics.as_array().unwrap());
    if way != Way::Topology && matched.any(gone) {
        return None;
    }
    let mut partitions = line["other_topics"].as_object().cloned().unwrap_or_default();
    for counts in [&inputs["new"], &kafka["baseline"]["counts"]] {
        partitions.extend(counts.as_object().unwrap().clone());
    }
    let mut input = json!({"application_id": line["application_id"], "baseline": inputs["baseline"], "partitions": partitions});
    if let Some(prefix) = line.get("topic_prefix") {
        input["prefix"] = prefix.clone();
    }
    if way == Way::Topology {
        let mut exact = topology.clone();
        exact.as_object_mut().unwrap().remove("source_patterns"); // their topics stand in `sources` already
        input["topology"] = exact;
    } else {
        input["describe"] = line["describe"].clone();
    }
    if way == Way::Text {
        input["stated"] = json!({"pinned": topology["pinned"]});
    }
    Some((input, wanted(line)))
}

fn wanted(line: &Value) -> Wanted {
    let (kafka, topology) = (&line["classic"], &line["topology"]);
    let have = kafka["baseline"]["counts"].as_object().unwrap();
    let new = &kafka["new"];
    let mut wanted = Wanted {
        decision: "blocked",
        code: Value::Null,
        changes: Changes::new(),
        tasks: Map::new(),
        possible: BTreeMap::new(),
        accepted: Vec::new(),
    };
    if new["status"] != "ok" {
        wanted.code = match new["error"].as_str().unwrap() {
            "COPARTITION_MISMATCH" => {
                wanted.decision = "waiting";
                wanted.accepted.push("PINNED_CONFLICT");
                json!("WAITING_FOR_COPARTITION")
            }
            "COUNTS_DIFFER" | "UNRESOLVABLE" => json!("UNSUPPORTED"),
            same => json!(same),
        };
        return wanted;
    }
    let fitting = kafka["new_possible_given_baseline"].as_array().cloned().unwrap_or_else(|| vec![new.clone()]);
    let counts = new["counts"].as_object().unwrap();
    let grown = counts.iter().filter(|(topic, count)| count.as_u64() > have[*topic].as_u64());
    let changes: Changes =
        grown.map(|(topic, count)| (topic.clone(), have[topic].as_u64().unwrap(), count.as_u64().unwrap())).collect();
    if fitting.len() > 1 {
        wanted.code = json!("ORDER_DEPENDENT");
        for (topic, count) in fitting.iter().filter_map(|outcome| outcome["counts"].as_object()).flatten() {
            wanted.possible.entry(topic.clone()).or_default().insert(count.as_u64().unwrap());
        }
        wanted.possible.retain(|_, counts| counts.len() > 1);
    } else if counts.iter().any(|(topic, count)| count.as_u64() < have[topic].as_u64()) {
        wanted.code = json!("WOULD_SHRINK");
    } else {
        wanted.decision = if changes.is_empty() { "none" } else { "expand" };
        wanted.changes = changes;
        wanted.tasks = new["tasks"].as_object().unwrap().clone();
    }
    // many subtopologies: Kafka's orders were only sampled; unequal joined inputs: Kafka does not look without a repartition topic
    if topology["subtopologies"].as_array().unwrap().len() > 5 {
        wanted.accepted.push("ORDER_DEPENDENT");
    }
    if line["unequal_copartitioned_inputs"].as_array().is_some_and(|groups| !groups.is_empty()) {
        wanted.accepted.extend(["WAITING_FOR_COPARTITION", "COPARTITION_MISMATCH"]);
    }
    wanted
}

fn score(answer: &Value, wanted: &Wanted) -> Score {
    let possible = |topic: &str| -> BTreeSet<u64> {
        answer["possible_counts"][topic].as_array().into_iter().flatten().map(|count| count.as_u64().unwrap()).collect()
    };
    if answer["decision"] == wanted.decision && answer["code"] == wanted.code {
        let same = changes(answer) == wanted.changes
            && wanted.tasks.iter().all(|(id, tasks)| expected_tasks(answer, id) == *tasks)
            && wanted.possible.iter().all(|(topic, counts)| counts.is_subset(&possible(topic)));
        return if same { Score::Exact } else { Score::Wrong };
    }
    let refused = ["blocked", "waiting"].iter().any(|verdict| answer["decision"] == *verdict);
    match answer["code"].as_str() {
        Some(code) if refused && changes(answer).is_empty() => {
            if wanted.accepted.contains(&code) {
                Score::Accepted
            } else {
                Score::Refused
            }
        }
        _ => Score::Wrong,
    }
}
