//! The effective configuration, for people and programs; secrets redacted.

use serde_json::{Map, Value as Json, json};

use super::error::{ConfigErrors, Origin};
use super::keys::TABLE;
use super::layers::{self, Effective, Values};
use super::{Sources, redact};

/// One line of `config show`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Name of the key.
    pub key: String,
    /// In the form that `--set` takes; `None` = not set.
    pub text: Option<String>,
    /// For programs: times as numbers of milliseconds, lists as arrays; null = not set.
    pub json: Json,
    /// Where it came from.
    pub origin: Origin,
}

/// Every key of every application, in the order of the table. Nothing is required; what is there has to be well formed.
pub fn show(sources: &Sources) -> Result<Vec<Vec<Shown>>, ConfigErrors> {
    let mut problems = Vec::new();
    let values = layers::values(sources, &mut problems);
    ConfigErrors::check(problems)?;
    Ok(values.iter().map(rows).collect())
}

/// The values of each application, with their origins.
pub fn json(applications: &[Vec<Shown>]) -> Vec<Json> {
    let value = |row: &Shown| (row.key.clone(), json!({"value": row.json, "origin": row.origin.to_string()}));
    applications.iter().map(|rows| json!({"values": rows.iter().map(value).collect::<Map<String, Json>>()})).collect()
}

fn rows(values: &Values) -> Vec<Shown> {
    let mut rows = Vec::new();
    for key in TABLE {
        match key.prefix() {
            None => rows.push(row(key.name.to_owned(), values.get(key.name))),
            Some(prefix) => {
                rows.extend(values.family(prefix).map(|(rest, effective)| row(format!("{prefix}{rest}"), Some(effective))));
            }
        }
    }
    rows
}

fn row(key: String, effective: Option<&Effective>) -> Shown {
    let Some(Effective { parsed, origin }) = effective else {
        return Shown { key, text: None, json: Json::Null, origin: Origin::Default };
    };
    let text = parsed.text();
    let shown = redact::shown(&key, &text);
    let json = if shown == text.as_str() { parsed.json() } else { json!(shown) };
    let text = shown.into_owned();
    Shown { key, text: Some(text), json, origin: origin.clone() }
}
