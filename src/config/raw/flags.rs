//! `--set key=value`.

use super::{Entry, Value, unknown_key};
use crate::config::error::{Origin, Problem};
use crate::config::keys;

/// The settings of the command line; of one that is given several times the last counts.
pub fn parse(arguments: &[String], problems: &mut Vec<Problem>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for argument in arguments {
        match argument.split_once('=') {
            Some((key, value)) => {
                let key = key.trim();
                match keys::find(key) {
                    Some(_) => {
                        entries.push(Entry { key: key.to_owned(), value: Value::Text(value.to_owned()), origin: Origin::Flag });
                    }
                    None => problems.push(unknown_key(Origin::Flag, key)),
                }
            }
            None => {
                // Not the whole argument: who writes `kafka.sasl.password:x` wrote a secret.
                let key: String =
                    argument.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')).collect();
                let message = "has no value, expected key=value, e.g. --set log.level=debug";
                problems.push(Problem::of_key(Some(Origin::Flag), key, message));
            }
        }
    }
    entries
}
