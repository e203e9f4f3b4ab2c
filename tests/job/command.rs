//! The `job` commands: what is printed where, and what is said of bad input.

use expect_test::expect;
use serde_json::{Value, json};

use super::{group, job};

fn grown() -> Value {
    json!({
        "grouper": "group-by-partition", "fixed_task_count": true, "stateful": true,
        "previous": {"Partition 0": [["kafka", "orders", 0]], "Partition 1": [["kafka", "orders", 1]]},
        "partitions": [["kafka", "orders", 0], ["kafka", "orders", 1], ["kafka", "orders", 2], ["kafka", "orders", 3]],
        "broadcast": [["kafka", "rules", 0]],
    })
}

fn with(pointer: &str, value: Value) -> Value {
    let mut input = grown();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    match input.pointer_mut(parent).unwrap() {
        Value::Object(fields) => drop(fields.insert(field.to_owned(), value)),
        Value::Array(list) => list[field.parse::<usize>().unwrap()] = value,
        _ => panic!("{pointer}"),
    }
    input
}

/// Text of an answer and the exit code.
fn said(arguments: &[&str], input: &str) -> String {
    let output = job(arguments, input);
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    let lines = text.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>();
    format!("{lines}exit code {}\n", output.status.code().unwrap())
}

#[test]
fn tables_are_for_people() {
    expect![[r#"
        changed: 2 tasks; partitions grew: kafka.orders from 2 to 4; each new one goes to the task of its parent; new streams: kafka.rules

        TASK         PARTITIONS
        Partition 0  kafka.orders 0 2
                     kafka.rules 0
        Partition 1  kafka.orders 1 3
                     kafka.rules 0
        exit code 0
    "#]].assert_eq(&said(&["group", "--input", "-"], &grown().to_string()));
    let refused = with("/partitions/3", json!(["kafka", "payments", 0]));
    expect![[r#"
        refused (NOT_A_MULTIPLE): kafka.orders grew from 2 to 3 partitions, expected a multiple of 2: grow it to 4; else keys of several tasks meet in one new partition; the previous tasks stay in force

        TASK         PARTITIONS
        Partition 0  kafka.orders 0
        Partition 1  kafka.orders 1
        exit code 4
    "#]].assert_eq(&said(&["group", "--input", "-"], &refused.to_string()));
}

#[test]
fn messages_say_what_is_different() {
    let orders = |count: u32| json!((0..count).map(|id| json!(["kafka", "orders", id])).collect::<Vec<_>>());
    let divided: Vec<Value> = (0..4).map(|n| json!(["kafka", "orders", n / 2, n % 2])).collect();
    let mut strict = with("/partitions", orders(6));
    strict["power_of_two"] = json!(true);
    let mut fewer_buckets = with("/partitions", json!([["kafka", "orders", 0, 0], ["kafka", "orders", 0, 1]]));
    fewer_buckets["previous"] = json!({"Partition 0 2": [["kafka", "orders", 0, 2]]});
    let mut several = with(
        "/partitions",
        json!([["kafka", "orders", 0], ["kafka", "payments", 0], ["kafka", "payments", 1], ["kafka", "payments", 2]]),
    );
    several["previous"]["Partition 0"] = json!([["kafka", "orders", 0], ["kafka", "payments", 0]]);
    several["previous"]["Partition 1"] = json!([["kafka", "orders", 1], ["kafka", "payments", 1]]);
    let mut both = several.clone();
    both["partitions"] = ["orders", "payments"].iter().flat_map(|s| (0..3).map(move |id| json!(["kafka", s, id]))).collect();
    let mut unchanged = with("/partitions", orders(2));
    unchanged["broadcast"] = json!([]);
    let mut all = String::new();
    for input in [
        with("/previous", Value::Null),
        with("/stateful", json!(false)),
        unchanged,
        with("/partitions", json!([["kafka", "clicks", 0], ["kafka", "clicks", 2]])),
        with("/partitions/0", json!(["kafka", "orders", 4])),
        with("/partitions", orders(1)),
        with("/partitions", orders(6)),
        strict,
        with("/broadcast", json!([["kafka", "orders", 0]])),
        with("/previous/Partition 0", json!([["kafka", "orders", 4]])),
        with("/previous/Partition 1", json!([["kafka", "orders", 4]])),
        with("/grouper", json!("group-by-system-stream-partition")),
        with("/partitions", json!(divided)),
        fewer_buckets,
        several,
        both,
    ] {
        let (_, answer) = group(&input);
        all += &format!("{}: {}\n", answer["code"].as_str().unwrap_or("-"), answer["message"].as_str().unwrap());
    }
    expect![[r#"
        -: 4 tasks
        -: 4 tasks; new streams: kafka.rules; new tasks: Partition 2, Partition 3
        -: 2 tasks, as before
        -: 2 tasks; new streams: kafka.clicks, kafka.rules; streams that are gone: kafka.orders; new tasks: Partition 2; tasks that are gone: Partition 1
        -: 2 tasks; partitions grew: kafka.orders from 2 to 4; each new one goes to the task of its parent; new streams: kafka.rules
        STREAM_SHRANK: kafka.orders shrank from 2 to 1 partitions; a topic never loses partitions: list all of them, or leave previous out if it was made anew and its state is gone; the previous tasks stay in force
        -: 2 tasks; partitions grew: kafka.orders from 2 to 6; each new one goes to the task of its parent; new streams: kafka.rules
        NOT_A_POWER_OF_TWO: kafka.orders grew from 2 to 6 partitions, expected a power of two times 2: grow it to 8; power_of_two asks for that; the previous tasks stay in force
        NO_PARENT: kafka.orders#2 is new, and kafka.orders had 2 partitions, so its keys were in kafka.orders#0, which is broadcast, so every task has its state: broadcast the new partition too, or no partition of the stream; the previous tasks stay in force
        NO_PARENT: kafka.orders#0 had no previous task, though kafka.orders had 2 partitions (likewise kafka.orders#2): complete previous, or leave it out if its state may be lost; the previous tasks stay in force
        NO_PARENT: kafka.orders#1 had no previous task, though kafka.orders had 2 partitions (likewise kafka.orders#3): complete previous, or leave it out if its state may be lost; the previous tasks stay in force
        GROUPER_CHANGED: the previous task "Partition 0" (kafka.orders#0) has a name that this grouper does not give: go back to what the job ran with, or leave previous out if its state may be lost; the previous tasks stay in force
        GROUPER_CHANGED: the previous task "Partition 0" (kafka.orders#0) was made without key buckets, and partitions come with them: go back to what the job ran with, or leave previous out if its state may be lost; the previous tasks stay in force
        GROUPER_CHANGED: the previous task "Partition 0 2" (kafka.orders#0/2) has a key bucket above 1, the highest of partitions now, so its keys would move away from their state: go back to what the job ran with, or leave previous out if its state may be lost; the previous tasks stay in force
        STREAM_SHRANK: kafka.orders shrank from 2 to 1 partitions; a topic never loses partitions: list all of them, or leave previous out if it was made anew and its state is gone; the previous tasks stay in force
        NOT_A_MULTIPLE: kafka.orders grew from 2 to 3 partitions, expected a multiple of 2: grow it to 4; kafka.payments grew from 2 to 3 partitions, expected a multiple of 2: grow it to 4; else keys of several tasks meet in one new partition; the previous tasks stay in force
    "#]].assert_eq(&all);
}

#[test]
fn what_was_broadcast_before_keeps_one_of_its_tasks() {
    let mut input = grown();
    input["previous"] = json!({"Partition 0": [["kafka", "orders", 0], ["kafka", "rules", 0], ["kafka", "rules", 1]],
        "Partition 1": [["kafka", "orders", 1], ["kafka", "rules", 0], ["kafka", "rules", 1]]});
    input["broadcast"] = json!([]);
    input["partitions"] = json!([["kafka", "orders", 0], ["kafka", "orders", 1], ["kafka", "rules", 0], ["kafka", "rules", 1]]);
    let (code, answer) = group(&input);
    assert_eq!(
        (code, &answer["tasks"]),
        (
            0,
            &json!({"Partition 0": [["kafka", "orders", 0], ["kafka", "rules", 0]],
                "Partition 1": [["kafka", "orders", 1], ["kafka", "rules", 1]]})
        )
    );
}

#[test]
fn a_broadcast_partition_without_bucket_stands_for_all_its_buckets() {
    let input = json!({"grouper": "group-by-partition", "stateful": false, "broadcast": [["kafka", "rules", 0]],
        "partitions": [["kafka", "orders", 0, 0], ["kafka", "orders", 0, 1], ["kafka", "rules", 0, 0], ["kafka", "rules", 0, 1]]});
    let tasks = json!({"Partition 0 0": [["kafka", "orders", 0, 0], ["kafka", "rules", 0]],
        "Partition 0 1": [["kafka", "orders", 0, 1], ["kafka", "rules", 0]]});
    assert_eq!(group(&input).1["tasks"], tasks);
}

#[test]
fn bad_input_is_named() {
    let mut all = String::new();
    let mut try_with = |input: &str| all += &said(&["group", "--input", "-"], input);
    for input in ["", "[]", "{", "{} {}", r#"{"grouper": "group-by-partition", "grouper": "group-by-partition"}"#] {
        try_with(input);
    }
    for (pointer, value) in [
        ("/groupers", json!("group-by-partition")),
        ("/grouper", json!("group-by-topic")),
        ("/partitions", json!("orders")),
        ("/partitions/2", json!(["kafka", "orders"])),
        ("/partitions/2", json!(["kafka", "orders", 0, 0, 0])),
        ("/partitions/2/2", json!(-1)),
        ("/partitions/2/2", json!(2_147_483_648_u64)),
        ("/partitions/2/2", json!(1e30)),
        ("/partitions/2/2", json!("2")),
        ("/partitions/2", json!(["kafka", "orders", 2, -2])),
        ("/partitions/2", json!(["kafka", "orders", 2, 0])),
        ("/partitions/2/1", json!("")),
        ("/previous/Partition 1", json!([["kafka", "orders", null]])),
        ("/stateful", json!("yes")),
        ("/stateful", json!(null)),
    ] {
        try_with(&with(pointer, value).to_string());
    }
    try_with(&grown().to_string().replace("\"Partition 1\"", "\"Partition 0\""));
    let mut twice = grown();
    twice["previous"] =
        json!({"Partition 0": [["kafka", "orders", 0]], "Partition 1": [["kafka", "orders", 0]], "Partition 2": []});
    try_with(&twice.to_string());
    twice["previous"] =
        json!({"Partition 0": [["kafka", "orders", 0]], "Partition 1": [["kafka", "orders", 0], ["kafka", "orders", 1]]});
    try_with(&twice.to_string());
    let mut large = grown();
    large["partitions"] = (0..2001).map(|id| json!(["kafka", "orders", id])).collect();
    large["broadcast"] = (0..2001).map(|id| json!(["kafka", "rules", id])).collect();
    large["previous"] = json!(null);
    try_with(&large.to_string());
    let mut single = with("/grouper", json!("all-ssp-to-single-task"));
    for (field, value) in
        [("processors", json!([""])), ("processors", json!(["0"])), ("broadcast", json!([])), ("partitions", json!([]))]
    {
        try_with(&single.to_string());
        single[field] = value;
    }
    try_with(&single.to_string());
    expect![[r#"
        error: standard input: it is not a JSON object; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: it is not a JSON object; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: EOF while parsing an object at line 1 column 1; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: missing field `grouper` at line 1 column 2; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: duplicate field `grouper` at line 1 column 43; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: groupers: unknown field `groupers`, expected one of `grouper`, `fixed_task_count`, `stateful`, `previous`, `partitions`, `broadcast`, `power_of_two`, `processors` at line 1 column 100; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: grouper: unknown variant `group-by-topic`, expected one of `group-by-partition`, `group-by-system-stream-partition`, `all-ssp-to-single-task` at line 1 column 85; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: partitions: invalid type: string "orders", expected a sequence at line 1 column 111; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: partitions[2]: invalid length 2, expected ["system", "stream", partition], with the key bucket as fourth element if there are any at line 1 column 164; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: partitions[2]: invalid length 5, expected ["system", "stream", partition], with the key bucket as fourth element if there are any at line 1 column 170; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: partitions[2][2]: invalid value: integer `-1`, expected a partition number from 0 to 2147483647 at line 1 column 167; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: partitions[2][2]: invalid value: integer `2147483648`, expected a partition number from 0 to 2147483647 at line 1 column 175; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: partitions[2][2]: invalid type: floating point `1e+30`, expected a partition number from 0 to 2147483647 at line 1 column 169; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: partitions[2][2]: invalid type: string "2", expected a partition number from 0 to 2147483647 at line 1 column 167; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: partitions[2][3]: invalid value: integer `-2`, expected a key bucket from 0 to 2147483647, or -1 for none at line 1 column 169; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: partitions: kafka.orders#2/0 has a key bucket and kafka.orders#0 has none, expected all or none of them to have one; correct whichever is wrong
        exit code 2
        error: standard input: partitions[2][1]: invalid value: string "", expected the name of a system or stream at line 1 column 158; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: previous.Partition 1[0][2]: invalid type: null, expected a partition number from 0 to 2147483647 at line 1 column 275; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: stateful: invalid type: string "yes", expected a boolean at line 1 column 292; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: stateful is missing, expected true or false: whether tasks keep their partitions hangs on it; say it
        exit code 2
        error: standard input: previous: the task "Partition 0" stands here twice, expected each task once at line 1 column 275; expected the input that docs/job-group-input.schema.json describes
        exit code 2
        error: standard input: previous: kafka.orders#0 stands in the tasks "Partition 0" and "Partition 1", expected it in one task, or in all if it was broadcast; correct previous
        exit code 2
        error: standard input: previous: kafka.orders#0 stands in the tasks "Partition 0" and "Partition 1", expected it in one task, or in all if it was broadcast; correct previous
        exit code 2
        error: standard input: 2001 partitions for each of 2001 tasks are too many, expected at most 4000000 in all; divide the job, or broadcast less
        exit code 2
        error: standard input: processors is missing or empty, expected the ids of the processors, since all-ssp-to-single-task makes a task for each; list them
        exit code 2
        error: standard input: processors has an empty text, expected the id of a processor; correct or remove it
        exit code 2
        error: standard input: broadcast is not empty, expected none with all-ssp-to-single-task, where every task has every partition anyway; move them to partitions
        exit code 2
        changed: 1 task; new tasks: Task-0; tasks that are gone: Partition 0, Partition 1

        TASK    PARTITIONS
        Task-0  kafka.orders 0 1 2 3
        exit code 0
        error: standard input: partitions is empty, expected at least one, since all-ssp-to-single-task gives them to every task; list them
        exit code 2
    "#]].assert_eq(&all);
}

#[test]
fn bad_records_are_named() {
    let key = |inner: &str| json!([1, "set-task-partition-assignment", inner]).to_string();
    let good = key(r#"{"system":"kafka","partition":0,"stream":"a","keyBucket":-1}"#);
    let value = |names: Value| json!(json!({"values": {"taskNames": names}}).to_string());
    let mut all = String::new();
    for (key, value) in [
        ("orders".to_owned(), json!(null)),
        (good.replace("[1", "[2"), json!(null)),
        (key("kafka.a.0"), json!(null)),
        (key(r#"["kafka","a",0]"#), json!(null)),
        (key(r#"{"system":"kafka","partition":-1,"stream":"a"}"#), json!(null)),
        (key(r#"{"system":"kafka","stream":"a"}"#), json!(null)),
        (good.clone(), json!("")),
        (good.clone(), json!({"values": {}})),
        (good.clone(), json!(r#"{"values":{}}"#)),
        (good.clone(), value(json!(["T"]))),
        (good.clone(), value(json!("T"))),
    ] {
        all += &said(&["assignment", "--decode", "-"], &json!({"key": key, "value": value}).to_string());
    }
    for line in
        [json!({"key": good}).to_string(), json!({"key": good, "value": null, "offset": 1}).to_string(), "\n\n{}".to_owned()]
    {
        all += &said(&["assignment", "--decode", "-"], &line);
    }
    expect![[r#"
        error: standard input, record in line 1: its key is no key of a coordinator stream (expected value at line 1 column 1), expected [1,"TYPE","KEY"]; correct the record, or leave it out
        exit code 2
        error: standard input, record in line 1: its key has the version 2, expected 1; correct the record, or leave it out
        exit code 2
        error: standard input, record in line 1: its key names no partition (expected value at line 1 column 1), expected [1,"set-task-partition-assignment","{\"system\":...,\"partition\":...,\"stream\":...,\"keyBucket\":...}"]; correct the record, or leave it out
        exit code 2
        error: standard input, record in line 1: its key names no partition (invalid type: sequence, expected a map at line 1 column 0), expected [1,"set-task-partition-assignment","{\"system\":...,\"partition\":...,\"stream\":...,\"keyBucket\":...}"]; correct the record, or leave it out
        exit code 2
        error: standard input, record in line 1: its key names no partition (invalid value: integer `-1`, expected a partition number from 0 to 2147483647), expected [1,"set-task-partition-assignment","{\"system\":...,\"partition\":...,\"stream\":...,\"keyBucket\":...}"]; correct the record, or leave it out
        exit code 2
        error: standard input, record in line 1: its key names no partition (missing field `partition`), expected [1,"set-task-partition-assignment","{\"system\":...,\"partition\":...,\"stream\":...,\"keyBucket\":...}"]; correct the record, or leave it out
        exit code 2
        error: standard input, record in line 1: its value cannot be read (EOF while parsing a value at line 1 column 0), expected an object whose values have texts; correct the record, or leave it out
        exit code 2
        error: standard input, record in line 1: value: invalid type: map, expected a string at line 1 column 156; expected {"key": "...", "value": "..." or null} with the texts of a record
        exit code 2
        error: standard input, record in line 1: its value names no tasks (it is missing), expected values.taskNames with a JSON array as text; correct the record, or leave it out
        exit code 2
        error: standard input, record in line 1: its value cannot be read (invalid type: sequence, expected a string at line 1 column 23), expected an object whose values have texts; correct the record, or leave it out
        exit code 2
        error: standard input, record in line 1: its value names no tasks (expected value at line 1 column 1), expected values.taskNames with a JSON array as text; correct the record, or leave it out
        exit code 2
        error: standard input, record in line 1: missing field `value` at line 1 column 148; expected {"key": "...", "value": "..." or null} with the texts of a record
        exit code 2
        error: standard input, record in line 1: offset: unknown field `offset`, expected `key` or `value` at line 1 column 156; expected {"key": "...", "value": "..." or null} with the texts of a record
        exit code 2
        error: standard input, record in line 3: missing field `key` at line 1 column 2; expected {"key": "...", "value": "..." or null} with the texts of a record
        exit code 2
    "#]].assert_eq(&all);
    let mut all = String::new();
    for input in ["{}", r#"{"tasks": []}"#, r#"{"tasks": {"T": [["kafka", "a", -1]]}}"#, r#"{"tasks": {}, "before": {}}"#] {
        all += &said(&["assignment", "--encode", "-"], input);
    }
    expect![[r#"
        error: standard input: missing field `tasks` at line 1 column 2; expected {"tasks": {...}, "previous": {...}} with a list of partitions for each task
        exit code 2
        error: standard input: tasks: invalid type: sequence, expected an object of task names, each with a list of partitions at line 1 column 10; expected {"tasks": {...}, "previous": {...}} with a list of partitions for each task
        exit code 2
        error: standard input: tasks.T[0][2]: invalid value: integer `-1`, expected a partition number from 0 to 2147483647 at line 1 column 35; expected {"tasks": {...}, "previous": {...}} with a list of partitions for each task
        exit code 2
        error: standard input: before: unknown field `before`, expected `tasks` or `previous` at line 1 column 22; expected {"tasks": {...}, "previous": {...}} with a list of partitions for each task
        exit code 2
    "#]].assert_eq(&all);
}

#[test]
fn one_way_is_asked_for() {
    for arguments in [
        &["assignment"][..],
        &["assignment", "--decode", "a", "--encode", "b"],
        &["group"],
        &["group", "--input", "no-such-file"],
    ] {
        let output = job(arguments, "");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
    }
}

#[test]
fn tasks_are_shown_by_stream() {
    let tasks = json!({"tasks": {"Partition 10": [["kafka", "a", 10], ["kafka", "a", 21], ["kafka", "b", 0, 1]], "Partition 2": [["kafka", "a", 2]]}});
    let records = job(&["assignment", "--encode", "-"], &tasks.to_string()).stdout;
    expect![[r#"
        TASK          PARTITIONS
        Partition 2   kafka.a 2
        Partition 10  kafka.a 10 21
                      kafka.b 0/1
        exit code 0
    "#]]
    .assert_eq(&said(&["assignment", "--decode", "-"], &String::from_utf8(records).unwrap()));
}
