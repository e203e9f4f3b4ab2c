//! Samza's coordinator-stream layout (`CoordinatorStreamMessage`), whatever the type of the row.
//!
//! The key is the compact JSON array `[1,"TYPE","KEY"]`, the value a JSON object whose `values` map text to text; no value deletes
//! the row. Compaction compares the bytes of keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::records::Origin;

/// Version of the layout of keys.
pub const KEY_VERSION: u64 = 1;
const SOURCE: &str = "partition-autoscaler";

/// In the order in which Samza writes it.
#[derive(Serialize)]
struct Envelope<'a> {
    host: &'a str,
    source: &'a str,
    values: BTreeMap<String, String>,
    username: &'a str,
    timestamp: u64,
}

/// What counts of it when it is read: the rest may be anyone's.
#[derive(Deserialize)]
struct Content {
    values: BTreeMap<String, String>,
}

/// Bytes of a key.
pub fn key(kind: &str, key: &str) -> Vec<u8> {
    json(&(KEY_VERSION, kind, key)).into_bytes()
}

/// Version, type and key of a row.
pub fn parse_key(bytes: &[u8]) -> serde_json::Result<(u64, String, String)> {
    serde_json::from_slice(bytes)
}

/// Bytes of a value.
pub fn value(values: BTreeMap<String, String>, origin: &Origin) -> Vec<u8> {
    let Origin { host, username, timestamp } = origin;
    json(&Envelope { host, source: SOURCE, values, username, timestamp: *timestamp }).into_bytes()
}

/// What a value says.
pub fn values(bytes: &[u8]) -> serde_json::Result<BTreeMap<String, String>> {
    serde_json::from_slice(bytes).map(|content: Content| content.values)
}

/// Plain data with text as keys always has a JSON form.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
