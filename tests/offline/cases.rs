//! Situations that people meet (`tests/data/cases`), each from the topology and, where there is one, from the text.

use partition_autoscaler::plan::{Knowledge, decide};
use serde_json::{Value, json};

use super::{changes, data, expected_tasks, json as answer_of, read, snapshot};

#[test]
fn cases_are_decided_as_written_down() {
    let mut wrong = Vec::new();
    for file in ["plan", "copartition"] {
        let cases: Value = serde_json::from_str(&read(&format!("cases/{file}.json"))).unwrap();
        for case in cases["cases"].as_array().unwrap() {
            wrong.extend(check(case, &case["snapshot"], "topology"));
            if let Some(text) = case["describe_file"].as_str() {
                wrong.extend(check(case, &described(&case["snapshot"], text), "describe"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same snapshot with the text in place of the topology.
fn described(with_topology: &Value, text: &str) -> Value {
    let mut described = with_topology.clone();
    let topology = described.as_object_mut().unwrap().remove("topology").unwrap();
    described["describe"] = json!(std::fs::read_to_string(data(text)).unwrap());
    described["stated"] = json!({ "pinned": topology["pinned"] });
    described
}

fn check(case: &Value, of: &Value, way: &str) -> Vec<String> {
    let expected = &case["expected"];
    let mut knowledge = Knowledge::default();
    if let Some(limit) = case["config"]["max.new.partitions"].as_u64() {
        knowledge.max_new_partitions = u32::try_from(limit).unwrap();
    }
    let answer = answer_of(&decide(&snapshot(of), &knowledge));
    let mut wrong = Vec::new();
    for field in ["decision", "code"] {
        if answer[field] != expected[field] {
            wrong.push(format!("{field} {} instead of {}: {}", answer[field], expected[field], answer["message"]));
        }
    }
    if changes(&answer) != changes(expected) {
        wrong.push(format!("changes {:?}", changes(&answer)));
    }
    for change in expected["changes"].as_array().into_iter().flatten() {
        let role = answer["changes"].as_array().unwrap().iter().find(|c| c["topic"] == change["topic"]).map(|c| &c["role"]);
        if role.is_some_and(|role| *role != change["role"]) {
            wrong.push(format!("role of {}", change["topic"]));
        }
    }
    for subtopology in expected["subtopologies"].as_array().into_iter().flatten() {
        if expected_tasks(&answer, subtopology["id"].as_str().unwrap()) != subtopology["expected"] {
            wrong.push(format!("tasks of {}", subtopology["id"]));
        }
    }
    for (topic, counts) in expected["possible_counts"].as_object().into_iter().flatten() {
        if answer["possible_counts"][topic] != *counts {
            wrong.push(format!("possible counts of {topic}: {}", answer["possible_counts"][topic]));
        }
    }
    let words = format!("{} {} {} {}", answer["message"], answer["conflicts"], answer["possible_counts"], answer["warnings"]);
    for field in ["conflict_topics", "mentions", "warnings"] {
        for word in expected[field].as_array().into_iter().flatten().filter(|word| !words.contains(word.as_str().unwrap())) {
            wrong.push(format!("does not mention {word}"));
        }
    }
    wrong.into_iter().map(|wrong| format!("{} from {way}: {wrong}", case["id"])).collect()
}
