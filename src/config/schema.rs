//! JSON schema of a TOML configuration file, made from the table of keys.

#![allow(clippy::indexing_slicing, reason = "assigns to fields of objects made here")]

use serde_json::{Map, Value as Json, json};

use super::keys::{Key, Scope, TABLE};
use super::kinds::Kind;

/// The schema. Nested tables and dotted keys are the same thing in TOML, so each part of a name is a level.
pub fn schema() -> Json {
    let mut properties = tree(|_| true);
    let applications = json!({
        "type": "array",
        "description": "One table for each application.",
        "items": object(tree(|key| key.scope == Scope::Application)),
    });
    // Next to `application.id`, where there is only one.
    let one = properties.remove("application");
    properties.insert("application".to_owned(), json!({"anyOf": [one, applications]}));
    let mut schema = object(properties);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("Configuration of partition-autoscaler");
    schema
}

fn object(properties: Map<String, Json>) -> Json {
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

fn tree(wanted: impl Fn(&Key) -> bool) -> Map<String, Json> {
    let mut properties = Map::new();
    for key in TABLE.iter().filter(|key| wanted(key)) {
        let parts = match (key.field, key.prefix()) {
            (Some(field), _) => vec!["topology", field],
            (None, Some(prefix)) => vec![prefix.trim_end_matches('.')],
            (None, None) => key.name.split('.').collect(),
        };
        insert(&mut properties, &parts, describe(key));
    }
    properties
}

fn insert(properties: &mut Map<String, Json>, parts: &[&str], value: Json) {
    match parts {
        [] => {}
        [last] => {
            properties.insert((*last).to_owned(), value);
        }
        [first, rest @ ..] => {
            let inner = properties.entry(*first).or_insert_with(|| object(Map::new()));
            if let Some(Json::Object(inner)) = inner.get_mut("properties") {
                insert(inner, rest, value);
            }
        }
    }
}

fn describe(key: &Key) -> Json {
    let mut schema = if key.prefix().is_some() { family(key.kind) } else { value(key.kind) };
    schema["description"] = json!(key.help);
    if let Some(default) = key.default {
        schema["default"] = key.parse(&super::raw::Value::Text(default.to_owned())).map_or(Json::Null, |parsed| parsed.json());
    }
    schema
}

/// Names of topics and properties have dots of their own, so a family is as deep as they like.
fn family(kind: Kind) -> Json {
    json!({"type": "object", "additionalProperties": {"anyOf": [value(kind), {"type": "object"}]}})
}

fn value(kind: Kind) -> Json {
    let text = json!({"type": "string", "minLength": 1});
    let names = json!({"type": "array", "items": text});
    match kind {
        Kind::Switch => json!({"type": "boolean"}),
        Kind::Millis { min, max } => json!({"anyOf": [{"type": "integer", "minimum": min, "maximum": max}, text]}),
        Kind::Count { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Choice(choices) => {
            let available: Vec<&str> =
                choices.iter().filter(|choice| choice.instead.is_none()).map(|choice| choice.name).collect();
            json!({"enum": available})
        }
        Kind::Name => json!({"type": "string", "pattern": "^[A-Za-z0-9._-]{1,249}$"}),
        Kind::Text | Kind::Path => text,
        Kind::Address => json!({"type": "string", "pattern": ":[0-9]+$"}),
        Kind::Url => json!({"type": "string", "pattern": "^https?://."}),
        Kind::Servers => json!({"anyOf": [text, names]}),
        Kind::Names => names,
        Kind::Groups => json!({"type": "array", "items": names}),
        Kind::Pairs => json!({"type": "object", "additionalProperties": text}),
        Kind::Pinned => {
            json!({"anyOf": [names, {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}}]})
        }
        Kind::Property => json!({"type": ["string", "integer", "boolean", "number"]}),
        Kind::Subtopologies => json!({"type": "array", "items": {
            "type": "object",
            "additionalProperties": false,
            "required": ["id"],
            "properties": {
                "id": {"type": "integer", "minimum": 0},
                "topology": text,
                "sources": names,
                "source_patterns": {"type": "object", "additionalProperties": names},
                "sinks": names,
                "stores": names,
            },
        }}),
    }
}
