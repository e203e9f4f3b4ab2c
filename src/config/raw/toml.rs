//! TOML files.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::{Entry, File, Value, duplicates, unknown_key};
use crate::config::error::{Origin, Problem};
use crate::config::keys::{self, Scope};
use crate::config::kinds::Kind;
use crate::topology::Subtopology;

/// The tables of several applications in one file.
const APPLICATION: &str = "application";
/// The one table whose fields are not written with dots.
const TOPOLOGY: &str = "topology.";

/// Reads a TOML file. Nested tables and dotted keys are the same.
pub fn parse(text: &str, path: &Path) -> File {
    let mut reader = Reader { text, path, file: File::default() };
    let (document, errors) = DeTable::parse_recoverable(text);
    reader.file.cut_short = !errors.is_empty();
    for error in &errors {
        reader.syntax(error);
    }
    if !reader.file.cut_short {
        reader.document(document.into_inner());
    }
    reader.file
}

struct Reader<'a> {
    text: &'a str,
    path: &'a Path,
    file: File,
}

impl<'a> Reader<'a> {
    fn syntax(&mut self, error: &toml::de::Error) {
        let span = error.span().unwrap_or_default();
        let origin = self.origin(span.clone());
        // Not the error's own text: that quotes the line, which may hold a secret.
        let message = error.message();
        let problem = match self.text.get(span) {
            Some(APPLICATION) if message == "duplicate key" => {
                let message = "application.id cannot stand above [[application]] tables, expected an id in each of them";
                Problem::of_key(Some(origin), APPLICATION, message)
            }
            Some(key) if message == "duplicate key" => {
                let message = "is given twice, expected once; in TOML dotted keys and a table of the same name are the same";
                Problem::of_key(Some(origin), key, message)
            }
            _ => Problem::new(origin, format!("is not valid TOML: {}", message.replace('\n', ", "))),
        };
        self.file.problems.push(problem);
    }

    fn document(&mut self, mut document: DeTable<'a>) {
        // A table of that name is `application.id` with its dot.
        let applications = match document.get(APPLICATION).map(Spanned::get_ref) {
            Some(DeValue::Array(_)) => document.remove(APPLICATION),
            _ => None,
        };
        self.file.shared = self.entries(document);
        if let Some(DeValue::Array(applications)) = applications.map(Spanned::into_inner) {
            for application in applications {
                self.application(application);
            }
        }
    }

    fn application(&mut self, application: Spanned<DeValue<'a>>) {
        let origin = self.origin(application.span());
        let DeValue::Table(table) = application.into_inner() else {
            let message = "is not a table, expected [[application]] tables";
            self.file.problems.push(Problem::of_key(Some(origin), APPLICATION, message));
            return;
        };
        let entries = self.entries(table);
        for entry in &entries {
            if keys::find(&entry.key).is_some_and(|key| key.scope == Scope::Process) {
                let message = "counts for all applications, expected above the first [[application]]";
                self.file.problems.push(Problem::of_key(Some(entry.origin.clone()), &entry.key, message));
            }
        }
        self.file.applications.push(entries);
    }

    fn entries(&mut self, table: DeTable<'a>) -> Vec<Entry> {
        let mut entries = Vec::new();
        self.table(table, "", &mut entries);
        self.file.problems.extend(duplicates(&entries));
        entries
    }

    /// Adds the entries of a table whose keys all start with `prefix`.
    fn table(&mut self, table: DeTable<'a>, prefix: &str, entries: &mut Vec<Entry>) {
        for (name, value) in table {
            let origin = self.origin(name.span());
            let written = format!("{prefix}{}", name.as_ref());
            let key = canonical(&written);
            match (keys::find(&key), value.get_ref()) {
                (Some(found), _) if matches!(found.kind, Kind::Subtopologies) => {
                    let value = self.subtopologies(&key, value);
                    entries.push(Entry { key, value, origin });
                }
                (Some(found), DeValue::Table(_)) if matches!(found.kind, Kind::Pairs | Kind::Pinned) => {
                    entries.push(Entry { key, value: plain(value.into_inner()), origin });
                }
                (_, DeValue::Table(_)) => {
                    if let DeValue::Table(inner) = value.into_inner() {
                        self.table(inner, &format!("{written}."), entries);
                    }
                }
                (Some(_), _) => entries.push(Entry { key, value: plain(value.into_inner()), origin }),
                (None, _) => self.file.problems.push(unknown_key(origin, &written)),
            }
        }
    }

    fn subtopologies(&mut self, key: &str, value: Spanned<DeValue<'a>>) -> Value {
        let tables = match value.into_inner() {
            DeValue::Array(tables) => tables,
            other => return plain(other),
        };
        let mut subtopologies = Vec::new();
        for table in tables {
            let span = table.span();
            match Subtopology::deserialize(table.into_deserializer()) {
                Ok(subtopology) => subtopologies.push(subtopology),
                Err(error) => {
                    let origin = self.origin(error.span().unwrap_or(span));
                    let message = error.message().replace('\n', ", ");
                    self.file.problems.push(Problem::of_key(Some(origin), key, message));
                }
            }
        }
        Value::Subtopologies(subtopologies)
    }

    fn origin(&self, span: Range<usize>) -> Origin {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        Origin::File { path: self.path.to_owned(), line: 1 + before.iter().filter(|byte| **byte == b'\n').count() }
    }
}

/// Inside `[topology]` the words of a name are joined as in a snapshot file: `global_topics` for `global.topics`.
fn canonical(written: &str) -> String {
    match written.strip_prefix(TOPOLOGY) {
        Some(field) => format!("{TOPOLOGY}{}", field.replace('_', ".")),
        None => written.to_owned(),
    }
}

fn plain(value: DeValue<'_>) -> Value {
    let list = |items: DeArray<'_>| items.into_iter().map(|item| plain(item.into_inner())).collect();
    match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Boolean(on) => Value::Switch(on),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::Text(number.to_string()),
        },
        DeValue::Float(number) => Value::Text(number.to_string()),
        DeValue::Datetime(time) => Value::Text(time.to_string()),
        DeValue::Array(items) => Value::List(list(items)),
        DeValue::Table(table) => {
            let entries = table.into_iter().map(|(name, value)| (name.into_inner().into_owned(), plain(value.into_inner())));
            Value::Table(entries.collect::<BTreeMap<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> File {
        parse(text, Path::new("shop.toml"))
    }

    fn lines(file: &File) -> Vec<String> {
        file.shared.iter().map(|entry| format!("{} {} {}", entry.origin, entry.key, entry.value.shown())).collect()
    }

    #[test]
    fn tables_and_dots_are_the_same() {
        let file =
            read("log.level = 'warn'\nbaseline.\"a.b\" = 3\n[kafka.sasl]\nusername = 'me'\n[topology]\nglobal_topics = []\n");
        assert_eq!(file.problems, []);
        assert_eq!(
            lines(&file),
            [
                "shop.toml:2 baseline.a.b 3",
                "shop.toml:4 kafka.sasl.username `me`",
                "shop.toml:1 log.level `warn`",
                "shop.toml:6 topology.global.topics a list"
            ]
        );
    }

    #[test]
    fn each_bad_subtopology_is_a_problem_of_its_line() {
        let file = read("[[topology.subtopologies]]\nid = 0\nsource = ['a']\n\n[[topology.subtopologies]]\nid = 'x'\n");
        let problems: Vec<String> = file.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 2);
        assert!(problems[0].starts_with("shop.toml:3: topology.subtopologies: unknown field `source`"), "{problems:?}");
        assert!(problems[1].starts_with("shop.toml:6: topology.subtopologies: invalid type"), "{problems:?}");
    }

    #[test]
    fn the_same_key_written_in_two_ways_is_found() {
        let file = read("'log.level' = 'warn'\nlog.level = 'info'\n");
        let problems: Vec<String> = file.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("log.level: is given twice"), "{problems:?}");
    }

    #[test]
    fn a_syntax_error_does_not_quote_the_line() {
        let file = read("kafka.sasl.password = hunter2\n");
        let problems: Vec<String> = file.problems.iter().map(ToString::to_string).collect();
        assert!(problems[0].starts_with("shop.toml:1: is not valid TOML"), "{problems:?}");
        assert!(!problems.iter().any(|problem| problem.contains("hunter2")), "{problems:?}");
    }
}
