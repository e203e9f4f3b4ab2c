//! Kinds of values: how they are read, shown and described.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::raw::Value;
use crate::topology::{Pinned, Subtopology};

/// The empty list, where lists are written as text.
pub const NONE: &str = "none";

/// The longest name Kafka takes for a topic.
pub(super) const LONGEST_NAME: usize = 249;

/// What values a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// true or false
    Switch,
    /// A time, in milliseconds unless a unit is written.
    Millis {
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
    },
    /// A whole number.
    Count {
        /// Least value.
        min: u32,
        /// Greatest value.
        max: u32,
    },
    /// Any text but the empty one.
    Text,
    /// What may be part of a topic name.
    Name,
    /// One of several words.
    Choice(&'static [Choice]),
    /// `host:port,...`
    Servers,
    /// `host:port`
    Address,
    /// Path of a file.
    Path,
    /// http or https URL.
    Url,
    /// Topics or stores.
    Names,
    /// Groups of topics.
    Groups,
    /// store -> topic
    Pairs,
    /// Topics, or topic -> count.
    Pinned,
    /// Tables; only in TOML.
    Subtopologies,
    /// A setting of librdkafka: text, number or truth value.
    Property,
}

/// A word of [`Kind::Choice`].
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The word.
    pub name: &'static str,
    /// Set for a word that this version does not know how to obey: what to use in its place.
    pub instead: Option<&'static str>,
}

impl Choice {
    pub(super) const fn yes(name: &'static str) -> Self {
        Self { name, instead: None }
    }

    pub(super) const fn not_yet(name: &'static str, instead: &'static str) -> Self {
        Self { name, instead: Some(instead) }
    }
}

/// A value that is known to be of its key's kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Parsed {
    Switch(bool),
    Millis(u64),
    Count(u32),
    Text(String),
    Names(Vec<String>),
    Groups(Vec<Vec<String>>),
    Pairs(BTreeMap<String, String>),
    Pinned(Pinned),
    Subtopologies(Vec<Subtopology>),
}

impl Kind {
    /// Why a value is refused although it is well formed, and what to do.
    pub fn refusal(&self, value: &Value) -> Option<String> {
        match (self, value) {
            (Self::Choice(choices), Value::Text(text)) => {
                let choice = choices.iter().find(|choice| choice.name.eq_ignore_ascii_case(text.trim()))?;
                choice.instead.map(|instead| format!("`{}` is not available in this version; use {instead}", choice.name))
            }
            _ => None,
        }
    }

    /// Reads a value. The error says what is wrong with it, not what was expected.
    pub fn parse(&self, value: &Value) -> Result<Parsed, String> {
        match (self, value) {
            (Self::Subtopologies, Value::Subtopologies(tables)) => Ok(Parsed::Subtopologies(tables.clone())),
            (Self::Subtopologies, _) => Err("is not an array of tables".to_owned()),
            (Self::Switch, Value::Switch(on)) => Ok(Parsed::Switch(*on)),
            (Self::Millis { min, max }, _) => millis(value, *min, *max),
            (Self::Count { min, max }, _) => count(value, *min, *max).map(Parsed::Count),
            (Self::Names, _) => names(value).map(Parsed::Names),
            (Self::Groups, _) => groups(value).map(Parsed::Groups),
            (Self::Pairs, _) => pairs(value).map(Parsed::Pairs),
            (Self::Pinned, _) => pinned(value).map(Parsed::Pinned),
            (Self::Servers, Value::List(_)) => servers(&names(value)?.join(",")),
            // Trimmed as the Java client does; what has to keep its spaces stands in a file of its own.
            (Self::Property, Value::Text(text)) => Ok(Parsed::Text(text.trim().to_owned())),
            (Self::Property, Value::Switch(_) | Value::Integer(_)) => Ok(Parsed::Text(value.plain())),
            (_, Value::Text(text)) if text.trim().is_empty() => Err("is empty".to_owned()),
            (_, Value::Text(text)) => self.parse_text(text.trim()),
            _ => Err(format!("{} is not text", value.shown())),
        }
    }

    fn parse_text(&self, text: &str) -> Result<Parsed, String> {
        match self {
            Self::Switch => match text.to_ascii_lowercase().as_str() {
                "true" => Ok(Parsed::Switch(true)),
                "false" => Ok(Parsed::Switch(false)),
                _ => Err(format!("`{text}` is neither true nor false")),
            },
            Self::Choice(choices) => match choices.iter().find(|choice| choice.name.eq_ignore_ascii_case(text)) {
                Some(choice) => Ok(Parsed::Text(choice.name.to_owned())),
                None => Err(format!("`{text}` is not known")),
            },
            Self::Name => name(text).map(Parsed::Text),
            Self::Servers => servers(text),
            Self::Address => address(text).map(|()| Parsed::Text(text.to_owned())),
            // Not quoted: it may hold a password.
            Self::Url if !is_url(text) => Err("is not a URL".to_owned()),
            _ => Ok(Parsed::Text(text.to_owned())),
        }
    }

    /// Whether the text form is a list, so that `none` is a value.
    pub fn is_list(&self) -> bool {
        matches!(self, Self::Names | Self::Groups | Self::Pairs | Self::Pinned)
    }

    /// What was expected, to follow the word "expected".
    pub fn expected(&self) -> String {
        match self {
            Self::Switch => "true or false".to_owned(),
            Self::Millis { min, max: _ } => format!("a time of {min} ms or more, in milliseconds or with a unit"),
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::Text => "text".to_owned(),
            Self::Name => "letters, digits, `.`, `_` and `-`".to_owned(),
            Self::Choice(choices) => {
                let available: Vec<&str> =
                    choices.iter().filter(|choice| choice.instead.is_none()).map(|choice| choice.name).collect();
                available.join(" or ")
            }
            Self::Servers => "host:port, or several separated by commas".to_owned(),
            Self::Address => "host:port".to_owned(),
            Self::Path => "the path of a file".to_owned(),
            Self::Url => "an http or https URL".to_owned(),
            Self::Names => "names separated by commas".to_owned(),
            Self::Groups => "groups separated by semicolons, of names separated by commas".to_owned(),
            Self::Pairs => "store:topic pairs separated by commas".to_owned(),
            Self::Pinned => "names separated by commas, each with or without :count".to_owned(),
            Self::Subtopologies => "tables with id, sources, sinks and stores in a TOML file".to_owned(),
            Self::Property => "text, a number, true or false".to_owned(),
        }
    }
}

impl Parsed {
    /// One line for people, in the form that `--set` takes.
    pub fn text(&self) -> String {
        let or_none = |text: String| if text.is_empty() { NONE.to_owned() } else { text };
        match self {
            Self::Switch(on) => on.to_string(),
            Self::Millis(ms) => ms.to_string(),
            Self::Count(count) => count.to_string(),
            Self::Text(text) => text.clone(),
            Self::Names(names) | Self::Pinned(Pinned::Names(names)) => or_none(names.join(",")),
            Self::Groups(groups) => or_none(groups.iter().map(|group| group.join(",")).collect::<Vec<_>>().join(";")),
            Self::Pairs(pairs) => {
                or_none(pairs.iter().map(|(store, topic)| format!("{store}:{topic}")).collect::<Vec<_>>().join(","))
            }
            Self::Pinned(Pinned::Counts(counts)) => {
                let topic = |(name, count): (&String, &Option<u32>)| match count {
                    Some(count) => format!("{name}:{count}"),
                    None => name.clone(),
                };
                or_none(counts.iter().map(topic).collect::<Vec<_>>().join(","))
            }
            Self::Subtopologies(tables) => format!("{} subtopologies", tables.len()),
        }
    }

    /// For programs. Times are numbers of milliseconds.
    pub fn json(&self) -> Json {
        match self {
            Self::Switch(on) => json!(on),
            Self::Millis(ms) => json!(ms),
            Self::Count(count) => json!(count),
            Self::Text(text) => json!(text),
            Self::Names(names) => json!(names),
            Self::Groups(groups) => json!(groups),
            Self::Pairs(pairs) => json!(pairs),
            Self::Pinned(pinned) => json!(pinned),
            Self::Subtopologies(tables) => json!(tables),
        }
    }
}

fn millis(value: &Value, min: u64, max: u64) -> Result<Parsed, String> {
    let plain = value.plain();
    let text = plain.trim();
    let ms = match (value, text.parse::<i128>()) {
        (Value::Integer(_) | Value::Text(_), Ok(ms)) => ms,
        (Value::Text(_), Err(_)) => {
            let time: Duration = humantime::parse_duration(text).map_err(|_| format!("{} is not a time", value.shown()))?;
            if !time.subsec_nanos().is_multiple_of(1_000_000) {
                return Err(format!("{} is not a whole number of milliseconds", value.shown()));
            }
            i128::try_from(time.as_millis()).unwrap_or(i128::MAX)
        }
        _ => return Err(format!("{} is not a time", value.shown())),
    };
    match u64::try_from(ms) {
        Err(_) if ms < 0 => Err(format!("{text} is negative")),
        Ok(ms) if ms < min => Err(format!("{text} is too short")),
        Ok(ms) if ms <= max => Ok(Parsed::Millis(ms)),
        _ => Err(format!("{text} is more than {max} ms")),
    }
}

fn count(value: &Value, min: u32, max: u32) -> Result<u32, String> {
    let number = match value {
        Value::Integer(number) => i128::from(*number),
        Value::Text(text) => text.trim().parse().map_err(|_| format!("{} is not a whole number", value.shown()))?,
        _ => return Err(format!("{} is not a whole number", value.shown())),
    };
    match u32::try_from(number) {
        Ok(count) if count < min => Err(format!("{count} is less than {min}")),
        Ok(count) if count <= max => Ok(count),
        _ if number < 0 => Err(format!("{number} is negative")),
        _ => Err(format!("{number} is more than {max}")),
    }
}

fn name(text: &str) -> Result<String, String> {
    let text = text.trim();
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if text.is_empty() {
        Err("an empty name is in it".to_owned())
    } else if !text.chars().all(legal) {
        Err(format!("`{text}` cannot be part of a topic name"))
    } else if text.len() > LONGEST_NAME {
        Err(format!("`{text}` is longer than the {LONGEST_NAME} characters a topic name may have"))
    } else {
        Ok(text.to_owned())
    }
}

/// The items of a list: of a TOML array, or separated in a text, where `none` stands for the empty list.
fn items(value: &Value, separator: char) -> Result<Vec<Value>, String> {
    match value {
        Value::List(items) => Ok(items.clone()),
        Value::Text(text) if text.trim() == NONE => Ok(Vec::new()),
        Value::Text(text) if text.trim().is_empty() => Err("is empty".to_owned()),
        Value::Text(text) => Ok(text.split(separator).map(|item| Value::Text(item.trim().to_owned())).collect()),
        _ => Err(format!("{} is not a list", value.shown())),
    }
}

fn names(value: &Value) -> Result<Vec<String>, String> {
    items(value, ',')?.iter().map(text_of).collect()
}

fn text_of(item: &Value) -> Result<String, String> {
    match item {
        Value::Text(text) if text.is_empty() => Err("an empty name is in it".to_owned()),
        Value::Text(text) => Ok(text.clone()),
        _ => Err(format!("{} is not a name", item.shown())),
    }
}

fn groups(value: &Value) -> Result<Vec<Vec<String>>, String> {
    let groups: Vec<Vec<String>> = items(value, ';')?.iter().map(names).collect::<Result<_, _>>()?;
    // One name is what a list without its inner brackets looks like.
    match groups.iter().find(|group| group.len() < 2) {
        Some(group) => Err(format!("`{}` is a group of less than two", group.join(","))),
        None => Ok(groups),
    }
}

/// `left:right`; names hold no colon.
fn pair(item: &Value) -> Result<(String, String), String> {
    let text = text_of(item)?;
    match text.split_once(':') {
        Some((left, right)) if !left.is_empty() && !right.is_empty() => Ok((left.trim().to_owned(), right.trim().to_owned())),
        _ => Err(format!("`{text}` has no colon between two names")),
    }
}

fn pairs(value: &Value) -> Result<BTreeMap<String, String>, String> {
    match value {
        Value::Table(table) => table.iter().map(|(store, topic)| Ok((store.clone(), text_of(topic)?))).collect(),
        _ => items(value, ',')?.iter().map(pair).collect(),
    }
}

fn pinned(value: &Value) -> Result<Pinned, String> {
    let count = |value: &Value| count(value, 1, i32::MAX as u32);
    if let Value::Table(table) = value {
        let counts = table.iter().map(|(topic, number)| Ok((topic.clone(), Some(count(number)?))));
        return Ok(Pinned::Counts(counts.collect::<Result<_, String>>()?));
    }
    let names = names(value)?;
    if !names.iter().any(|name| name.contains(':')) {
        return Ok(Pinned::Names(names));
    }
    let counts = names.into_iter().map(|name| match name.split_once(':') {
        Some((topic, number)) => Ok((topic.trim().to_owned(), Some(count(&Value::Text(number.to_owned()))?))),
        None => Ok((name, None)),
    });
    Ok(Pinned::Counts(counts.collect::<Result<_, String>>()?))
}

fn servers(text: &str) -> Result<Parsed, String> {
    let servers: Vec<&str> = text.split(',').map(str::trim).collect();
    for server in &servers {
        // Kafka and librdkafka both take a listener's security protocol in front.
        address(server.split_once("://").map_or(server, |(_, rest)| rest))?;
    }
    Ok(Parsed::Text(servers.join(",")))
}

fn is_url(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
}

/// Checks `host:port`, where the host may be `[::1]`.
fn address(text: &str) -> Result<(), String> {
    let (host, port) = text.rsplit_once(':').ok_or_else(|| format!("`{text}` has no port"))?;
    let bracketed = host.starts_with('[') && host.ends_with(']');
    if host.contains(':') && !bracketed {
        // Most likely an IPv6 address whose last group was taken for the port.
        return Err(format!("`{text}` has no port behind an address in brackets"));
    }
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err(format!("`{text}` has no host"));
    }
    port.parse::<u16>().map(|_| ()).map_err(|_| format!("`{text}` has no port from 0 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY_TIME: Kind = Kind::Millis { min: 0, max: u64::MAX };

    fn text(kind: Kind, text: &str) -> Result<String, String> {
        kind.parse(&Value::Text(text.to_owned())).map(|parsed| parsed.text())
    }

    #[test]
    fn values_are_read_from_text() {
        for (kind, written, read) in [
            (Kind::Switch, " TRUE ", "true"),
            (ANY_TIME, "15m", "900000"),
            (ANY_TIME, "1h 30s", "3630000"),
            (ANY_TIME, "0", "0"),
            (Kind::Count { min: 1, max: 9 }, "9", "9"),
            (Kind::Names, "a, b", "a,b"),
            (Kind::Names, "none", "none"),
            (Kind::Groups, "a,b;c,d", "a,b;c,d"),
            (Kind::Pairs, "s:t,u:v", "s:t,u:v"),
            (Kind::Pinned, "r", "r"),
            (Kind::Pinned, "r:4,q", "q,r:4"),
            (Kind::Servers, "a:1, SSL://[::1]:2", "a:1,SSL://[::1]:2"),
            (Kind::Address, "0.0.0.0:0", "0.0.0.0:0"),
            (Kind::Property, " x ", "x"),
        ] {
            assert_eq!(text(kind, written).as_deref(), Ok(read), "{kind:?} {written}");
        }
    }

    #[test]
    fn bad_values_are_named() {
        for (kind, written, wrong) in [
            (Kind::Switch, "1", "`1` is neither true nor false"),
            (ANY_TIME, "-1", "-1 is negative"),
            (ANY_TIME, "99999999999999999999", "99999999999999999999 is more than 18446744073709551615 ms"),
            (ANY_TIME, "5us", "`5us` is not a whole number of milliseconds"),
            (ANY_TIME, "soon", "`soon` is not a time"),
            (Kind::Count { min: 1, max: 9 }, "10", "10 is more than 9"),
            (Kind::Count { min: 1, max: 9 }, "-4", "-4 is negative"),
            (Kind::Count { min: 1, max: 9 }, "1.5", "`1.5` is not a whole number"),
            (Kind::Name, "my shop", "`my shop` cannot be part of a topic name"),
            (Kind::Names, "", "is empty"),
            (Kind::Names, "a,,b", "an empty name is in it"),
            (Kind::Groups, "a;b", "`a` is a group of less than two"),
            (Kind::Pairs, "s", "`s` has no colon between two names"),
            (Kind::Pinned, "r:0", "0 is less than 1"),
            (Kind::Servers, "a:1,b", "`b` has no port"),
            (Kind::Servers, "a:1,", "`` has no port"),
            (Kind::Servers, "::1", "`::1` has no port behind an address in brackets"),
            (Kind::Address, "a:70000", "`a:70000` has no port from 0 to 65535"),
            (Kind::Url, "me:hunter2@app", "is not a URL"),
        ] {
            assert_eq!(text(kind, written), Err(wrong.to_owned()), "{kind:?} {written}");
        }
    }

    #[test]
    fn what_is_shown_can_be_set() {
        for (kind, written) in [(Kind::Names, "none"), (Kind::Groups, "a,b;c,d"), (Kind::Pairs, "s:t"), (Kind::Pinned, "q,r:4")] {
            let shown = text(kind, written).unwrap();
            assert_eq!(text(kind, &shown), Ok(shown.clone()), "{kind:?}");
        }
    }
}
