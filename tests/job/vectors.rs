//! What the classes of Apache Samza answer (`tests/data/vectors/samza`); `job_deviations.json` says where they should not be followed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Rows, decode, differences, encode, group, read, rows, sets};

const ROW: &str = "set-task-partition-assignment";

/// Calls `check` with name, input and expectation of each vector of a topic. Answers how many there are.
fn each(topic: &str, mut check: impl FnMut(&str, &Value, &Value)) -> usize {
    let file = read(&format!("vectors/samza/{topic}.json"));
    let cases = file["cases"].as_array().unwrap();
    for case in cases {
        check(case["case"].as_str().unwrap(), &case["input"], &case["expected"]);
    }
    cases.len()
}

fn deviations() -> BTreeMap<String, Value> {
    let file = read("vectors/samza/job_deviations.json");
    file.as_array().unwrap().iter().map(|entry| (entry["case"].as_str().unwrap().to_owned(), entry.clone())).collect()
}

#[test]
fn groups_as_samza_does() {
    let deviations = deviations();
    let (mut wrong, mut seen, mut deviated) = (Vec::new(), 0, 0);
    for topic in ["ssp_grouper", "ssp_grouper_proxy", "ssp_grouper_proxy_disabled", "sep5_unmerged_fixed_task_num"] {
        seen += each(topic, |name, input, expected| {
            let request = request(topic, input);
            let (expected, code) = match deviations.get(&format!("{topic}/{name}")) {
                Some(ours) => {
                    deviated += 1;
                    (ours["expected"].clone(), ours["exit_code"].as_i64().unwrap())
                }
                None => wanted(topic, &request, expected),
            };
            let found = differences(&group(&request), &expected, code);
            wrong.extend(found.into_iter().map(|what| format!("{topic}/{name}: {what}")));
        });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!((seen, deviated), (47, 5));
}

/// The question of a vector in the words of `job group`.
fn request(topic: &str, input: &Value) -> Value {
    let grouper = match input["grouper"].as_str() {
        Some("GroupBySystemStreamPartition") => "group-by-system-stream-partition",
        Some("AllSspToSingleTask") => "all-ssp-to-single-task",
        _ => "group-by-partition",
    };
    let mut partitions = input.get("ssps").or(input.get("current")).unwrap().as_array().unwrap().clone();
    let buckets = input["job.elasticity.factor"].as_u64().unwrap_or(1);
    if buckets > 1 {
        let divided = partitions.iter().flat_map(|p| (0..buckets).map(move |bucket| json!([p[0], p[1], p[2], bucket])));
        partitions = divided.collect();
    }
    let mut previous = input["previous"].clone();
    for owned in input["previous_ssp_to_task"].as_array().into_iter().flatten() {
        let task = owned[1].as_str().unwrap();
        if previous[task].is_null() {
            previous[task] = json!([]);
        }
        previous[task].as_array_mut().unwrap().push(owned[0].clone());
    }
    let processors = input["processor.list"].as_str().unwrap_or_default().split(',').filter(|name| !name.is_empty());
    let keeps_tasks = ["ssp_grouper_proxy", "sep5_unmerged_fixed_task_num"].contains(&topic);
    json!({
        "grouper": grouper, "previous": previous, "partitions": partitions,
        "fixed_task_count": keeps_tasks,
        "stateful": input["stateful"].as_bool().unwrap_or(topic.starts_with("sep5")),
        "power_of_two": topic.starts_with("sep5"),
        "broadcast": broadcast(input["task.broadcast.inputs"].as_str().unwrap_or_default()),
        "processors": processors.collect::<Vec<_>>(),
    })
}

/// `kafka.rules#[0-1], kafka.limits#0`.
fn broadcast(inputs: &str) -> Vec<Value> {
    let input = |input: &str| {
        let (stream, ids) = input.split_once('#').unwrap();
        let (system, stream) = stream.split_once('.').unwrap();
        let ids = ids.trim_matches(['[', ']']);
        let (first, last) = ids.split_once('-').unwrap_or((ids, ids));
        let all = first.parse::<u32>().unwrap()..=last.parse().unwrap();
        all.map(|id| json!([system, stream, id])).collect::<Vec<_>>()
    };
    inputs.split(',').map(str::trim).filter(|text| !text.is_empty()).flat_map(input).collect()
}

/// Samza's answer or exception in the words of `job group`, and the exit code.
fn wanted(topic: &str, request: &Value, expected: &Value) -> (Value, i64) {
    let before = if request["previous"].is_null() { json!({}) } else { request["previous"].clone() };
    let Some(error) = expected.get("error") else {
        let changed = sets(&expected["tasks"]) != sets(&before);
        return (json!({"tasks": expected["tasks"], "changed": changed, "code": null}), 0);
    };
    if topic == "ssp_grouper" {
        return (Value::Null, 2);
    }
    let text = error["cause_message"].as_str().or(error["message"].as_str()).unwrap_or_default();
    let numbers: Vec<u32> = text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    // "New partition count: 6 should be a multiple of previous partition count: 4." and "has increased from 4 to 6"
    let counts = if text.starts_with("New") { numbers.first().zip(numbers.last()) } else { numbers.last().zip(numbers.first()) };
    let code = match counts {
        None => "GROUPER_CHANGED",
        Some((to, from)) if to < from => "STREAM_SHRANK",
        Some((to, from)) if to % from != 0 => "NOT_A_MULTIPLE",
        Some(_) => "NOT_A_POWER_OF_TWO",
    };
    let mentions: Vec<String> = counts.map(|(to, from)| vec![to.to_string(), from.to_string()]).unwrap_or_default();
    (json!({"tasks": before, "changed": false, "code": code, "mentions": mentions}), 4)
}

#[test]
fn parents_are_those_of_samzas_mapper() {
    let seen = each("ssp_mapper_hash", |name, input, expected| {
        let number = |field: &str| input[field].as_u64().unwrap();
        let (from, to) = (number("previous_count"), number("current_count"));
        if number("partition") >= to {
            return; // a partition that the stream does not have
        }
        let previous: serde_json::Map<String, Value> =
            (0..from).map(|id| (format!("Partition {id}"), json!([["kafka", "A", id]]))).collect();
        let partitions: Vec<Value> = (0..to).map(|id| json!(["kafka", "A", id])).collect();
        let (_, answer) = group(&json!({"grouper": "group-by-partition", "fixed_task_count": true, "stateful": true,
            "previous": previous, "partitions": partitions}));
        match expected["partition"].as_u64() {
            None => assert_eq!(answer["code"], "NOT_A_MULTIPLE", "{name}"),
            Some(parent) => {
                let task = &sets(&answer["tasks"])[&format!("Partition {parent}")];
                assert!(task.contains(&json!(["kafka", "A", number("partition")]).to_string()), "{name}: {task:?}");
            }
        }
    });
    assert_eq!(seen, 5);
}

type Record = (String, Option<String>);

fn record(kind: &str, key: &str, values: &Value) -> Record {
    let value = json!({"host": "127.0.0.1", "source": "SamzaContainer", "values": values, "username": "samza", "timestamp": 1});
    (json!([1, kind, key]).to_string(), Some(value.to_string()))
}

/// The key as Samza writes it; by hand, since the order of its fields counts.
fn key(partition: &Value) -> String {
    let [system, stream, id] = [0, 1, 2].map(|part| &partition[part]);
    format!(r#"{{"system":{system},"partition":{id},"stream":{stream},"keyBucket":-1}}"#)
}

fn row(partition: &Value, tasks: &Value) -> Record {
    record(ROW, &key(partition), &json!({"taskNames": tasks.to_string()}))
}

fn by_task(rows: &Value) -> Value {
    let mut tasks = json!({});
    for row in rows.as_array().unwrap() {
        for task in row[1].as_array().unwrap() {
            let task = task.as_str().unwrap();
            let mut list = tasks[task].as_array().cloned().unwrap_or_default();
            list.push(row[0].clone());
            tasks[task] = Value::Array(list);
        }
    }
    tasks
}

#[track_caller]
fn assert_decoded(records: &[Record], tasks: &Value) {
    let (code, answer) = decode(records);
    assert_eq!(code, 0, "{records:?}");
    assert_eq!(sets(&answer["tasks"]), sets(tasks), "{records:?}");
}

#[test]
fn assignments_are_kept_as_samza_keeps_them() {
    let seen = each("task_partition_assignment_manager", |_, input, expected| {
        let mut log = Vec::new();
        for operation in input["ops"].as_array().unwrap() {
            for entry in operation[1].as_array().unwrap() {
                let (partition, tasks) = if operation[0] == "write" { (&entry[0], &entry[1]) } else { (entry, &Value::Null) };
                let is_gone = tasks.as_array().is_none_or(Vec::is_empty);
                let (key, value) = row(partition, tasks);
                log.push((key, if is_gone { None } else { value }));
            }
        }
        let tasks = by_task(&expected["read"]);
        assert_decoded(&log, &tasks);
        let kept =
            expected["read"].as_array().unwrap().iter().map(|entry| (row(&entry[0], &entry[1]).0, entry[1].clone())).collect();
        assert_eq!(encode(&json!({"tasks": tasks})), rows(&Value::Object(kept)));
    });
    assert_eq!(seen, 3);
}

#[test]
fn keys_are_samzas_byte_for_byte() {
    let mut checked = 0;
    each("coordinator_stream_key", |_, input, expected| {
        if input["ssp"].is_array() {
            let of_key: Rows = [(expected["json"].as_str().unwrap().to_owned(), Some(["T".to_owned()].into()))].into();
            assert_eq!(encode(&json!({"tasks": {"T": [input["ssp"]]}})), of_key);
            checked += 1;
        }
    });
    let deviations = deviations();
    each("samza_object_mapper", |name, input, expected| {
        let of = |inner: &Value| record(ROW, inner.as_str().unwrap(), &json!({"taskNames": "[\"T\"]"}));
        if input["ssp"].is_array() && expected["json"].is_string() {
            let of_key: Rows = [(of(&expected["json"]).0, Some(["T".to_owned()].into()))].into();
            assert_eq!(encode(&json!({"tasks": {"T": [input["ssp"]]}})), of_key);
        } else if input["json"].is_string() && expected["ssp"].is_array() {
            match deviations.get(&format!("samza_object_mapper/{name}")) {
                Some(ours) => assert_eq!(json!(decode(&[of(&input["json"])]).0), ours["exit_code"]),
                None => assert_decoded(&[of(&input["json"])], &json!({"T": [expected["ssp"]]})),
            }
        } else {
            return; // no record of an assignment
        }
        checked += 1;
    });
    assert_eq!(checked, 4);
}

#[test]
fn records_of_other_types_are_passed_over() {
    let beside = json!(["kafka", "beside", 0]);
    let seen = each("coordinator_stream_value", |_, input, expected| {
        let kind = input["type"].as_str().unwrap();
        let values = if expected["values"].is_null() { json!({"value": "v"}) } else { expected["values"].clone() };
        if kind == ROW {
            let names: Vec<String> = serde_json::from_str(values["taskNames"].as_str().unwrap()).unwrap();
            let tasks: serde_json::Map<String, Value> = names.into_iter().map(|name| (name, json!([beside]))).collect();
            assert_decoded(&[record(ROW, &key(&beside), &values)], &Value::Object(tasks));
        } else {
            assert_decoded(&[row(&beside, &json!(["T"])), record(kind, "k", &values)], &json!({"T": [beside]}));
        }
    });
    assert_eq!(seen, 7);
}
