//! Situations that people meet (`tests/data/cases`).

use serde_json::Value;

use super::{decode, differences, encode, group, read, rows, sets};

#[test]
fn cases_are_answered_as_written_down() {
    let file = read("cases/grouper.json");
    let mut wrong = Vec::new();
    for case in file["cases"].as_array().unwrap() {
        let runs = case["runs"].as_array().cloned().unwrap_or_else(|| vec![case.clone()]);
        for (run, number) in runs.iter().zip(1..) {
            let command = if run["command"].is_null() { &case["command"] } else { &run["command"] };
            let found = check(command, run);
            wrong.extend(found.into_iter().map(|what| format!("{} call {number}: {what}", case["id"])));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(command: &Value, run: &Value) -> Vec<String> {
    let (input, expected) = (&run["input"], &run["expected"]);
    let words: Vec<&str> = command.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    match words[..] {
        ["job", "group"] => differences(&group(input), expected, run["exit_code"].as_i64().unwrap()),
        ["job", "assignment", "--encode"] => {
            let found = encode(input);
            if found == rows(&expected["rows"]) { Vec::new() } else { vec![format!("{found:?}")] }
        }
        ["job", "assignment", "--decode"] => {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let record = |record: &Value| (text(&record["key"]).unwrap(), text(&record["value"]));
            let records: Vec<_> = input.as_array().unwrap().iter().map(record).collect();
            let (code, answer) = decode(&records);
            let fits = code == 0 && sets(&answer["tasks"]) == sets(&expected["tasks"]);
            if fits { Vec::new() } else { vec![format!("exit code {code}: {answer}")] }
        }
        _ => vec![format!("the command {command} is not known")],
    }
}
