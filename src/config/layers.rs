//! Defaults < file < environment < flags < what a running process was asked for: one set of values for each application.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Sources;
use super::error::{Origin, Problem};
use super::keys::{self, Key, Scope};
use super::kinds::Parsed;
use super::raw::{self, Entry, Value, Warning};

/// A value that counts, and where it came from.
#[derive(Clone)]
pub struct Effective {
    /// Of its key's kind.
    pub parsed: Parsed,
    /// Where it came from.
    pub origin: Origin,
}

/// The values of one application.
#[derive(Clone, Default)]
pub struct Values {
    /// The file it stands in, to point at where something is missing.
    pub place: Option<Origin>,
    /// Whether the file could not be read to its end, so that what is missing may stand in it.
    pub cut_short: bool,
    /// Keys of which some value was refused.
    pub refused: BTreeSet<String>,
    /// Every key that has a value.
    pub effective: BTreeMap<String, Effective>,
    /// What the operator should know, a sentence each.
    pub warnings: Vec<String>,
}

impl Values {
    /// The value of a key that is in the table.
    pub fn get(&self, key: &str) -> Option<&Effective> {
        debug_assert!(keys::find(key).is_some(), "{key} is not in the table");
        self.effective.get(key)
    }

    /// The members of a family, without its prefix.
    pub fn family(&self, prefix: &'static str) -> impl Iterator<Item = (&str, &Effective)> {
        self.effective.iter().filter_map(move |(key, effective)| Some((key.strip_prefix(prefix)?, effective)))
    }

    /// Adds the entries of a layer over what is there.
    fn add(&mut self, entries: &[Entry], problems: &mut Vec<Problem>) {
        for entry in entries {
            let Some(key) = keys::find(&entry.key) else { continue };
            let origin = entry.origin.clone();
            match key.parse(&entry.value) {
                Ok(parsed) => {
                    self.effective.insert(entry.key.clone(), Effective { parsed, origin });
                }
                Err(message) => {
                    problems.push(Problem::of_key(Some(origin), &entry.key, message));
                    self.refused.insert(entry.key.clone());
                }
            }
        }
    }

    fn warn(&mut self, warnings: &[Warning]) {
        let has = |key: &str| self.effective.contains_key(key) || self.effective.contains_key(&format!("{key}.file"));
        let open = warnings.iter().filter(|warning| !warning.unless.iter().any(|key| has(key)));
        let texts: Vec<String> = open.map(|warning| warning.text.clone()).collect();
        self.warnings.extend(texts);
    }
}

/// The values of each application that the sources name; at least one.
pub fn values(sources: &Sources, problems: &mut Vec<Problem>) -> Vec<Values> {
    let environment = raw::env::parse(&sources.environment, problems);
    let flags = raw::flags::parse(&sources.set, problems);
    let requested = raw::request::parse(&sources.requested, problems);
    let mut files: Vec<(&Path, raw::File)> = sources.files.iter().map(|path| (path.as_path(), raw::File::read(path))).collect();
    for (_, file) in &mut files {
        problems.append(&mut file.problems);
    }
    let process = process_wide(&files, problems);

    let mut base = Values::default();
    base.add(&defaults(), problems);
    base.add(&process, problems);
    let over = |mut values: Values, problems: &mut Vec<Problem>| {
        values.add(&environment, problems);
        values.add(&flags, problems);
        values.add(&requested, problems);
        values
    };
    if files.is_empty() {
        return vec![over(base, problems)];
    }
    let mut all = Vec::new();
    for (path, file) in &files {
        let mut shared = Values { place: Some(Origin::file(path)), cut_short: file.cut_short, ..base.clone() };
        shared.add(&file.shared, problems);
        let applications = if file.applications.is_empty() { vec![Vec::new()] } else { file.applications.clone() };
        for application in &applications {
            let mut values = shared.clone();
            values.add(application, problems);
            let mut values = over(values, problems);
            values.warn(&file.warnings);
            all.push(values);
        }
    }
    all
}

fn defaults() -> Vec<Entry> {
    let entry = |key: &Key| {
        let value = Value::Text(key.default?.to_owned());
        Some(Entry { key: key.name.to_owned(), value, origin: Origin::Default })
    };
    keys::TABLE.iter().filter_map(entry).collect()
}

/// The settings of the process, from whichever file has them. Two files may not differ in one.
fn process_wide(files: &[(&Path, raw::File)], problems: &mut Vec<Problem>) -> Vec<Entry> {
    let mut found: BTreeMap<&str, &Entry> = BTreeMap::new();
    for entry in files.iter().flat_map(|(_, file)| &file.shared) {
        if keys::find(&entry.key).is_none_or(|key| key.scope != Scope::Process) {
            continue;
        }
        match found.get(entry.key.as_str()) {
            Some(first) if first.value != entry.value && first.origin != entry.origin => {
                let message = format!("differs from {}, expected one value for all applications of the process", first.origin);
                problems.push(Problem::of_key(Some(entry.origin.clone()), &entry.key, message));
            }
            _ => {
                found.insert(&entry.key, entry);
            }
        }
    }
    found.into_values().cloned().collect()
}
