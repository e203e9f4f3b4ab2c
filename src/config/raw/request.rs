//! `PUT /v1/config`: what a running process is asked for.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{Entry, Value};
use crate::config::error::{Origin, Problem};

/// The keys that a request may change.
const KEYS: [&str; 4] =
    ["partition.autoscaling.enabled", "partition.autoscaling.timeout.ms", "partition.autoscaling.poll.interval.ms", "log.level"];

/// The settings that were asked for.
pub fn parse(requested: &BTreeMap<String, Json>, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (key, json) in requested {
        if !KEYS.contains(&key.as_str()) {
            let message = format!("cannot be changed by a request, expected one of {}", KEYS.join(", "));
            problems.push(Problem::of_key(Some(Origin::Request), key, message));
            continue;
        }
        let value = match json {
            Json::String(text) => Value::Text(text.clone()),
            Json::Bool(on) => Value::Switch(*on),
            Json::Number(number) => number.as_i64().map_or_else(|| Value::Text(number.to_string()), Value::Integer),
            // none of them can be one, and each kind says what it expects
            Json::Null | Json::Array(_) | Json::Object(_) => Value::Text(json.to_string()),
        };
        entries.push(Entry { key: key.clone(), value, origin: Origin::Request });
    }
    entries
}
