//! What a user wrote, before anybody knows whether it makes sense.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _};
use std::path::Path;

use super::error::{Origin, Problem};
use crate::regular;
use crate::topology::Subtopology;

pub mod env;
pub mod flags;
mod properties;
pub mod request;
mod streams;
mod toml;

/// The most that is read of one file; far above any configuration, far below what hurts.
const LARGEST_FILE: u64 = 1 << 20;

/// A value as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Value {
    Text(String),
    Switch(bool),
    Integer(i64),
    List(Vec<Value>),
    Table(BTreeMap<String, Value>),
    Subtopologies(Vec<Subtopology>),
}

impl Value {
    /// A scalar as text; the kind of anything else.
    pub fn plain(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Switch(on) => on.to_string(),
            Self::Integer(number) => number.to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) | Self::Subtopologies(_) => "a table".to_owned(),
        }
    }

    /// For messages.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => format!("`{text}`"),
            _ => self.plain(),
        }
    }
}

/// A key and its value, and where that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// A name of [`super::keys::TABLE`], or one of a family.
    pub key: String,
    /// What was written.
    pub value: Value,
    /// Where.
    pub origin: Origin,
}

/// Something the operator should know, unless another setting already takes care of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// A sentence that starts with the place.
    pub text: String,
    /// Keys of which one is enough to make the warning pointless.
    pub unless: &'static [&'static str],
}

/// What one file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Outside of any `[[application]]`.
    pub shared: Vec<Entry>,
    /// The `[[application]]` tables.
    pub applications: Vec<Vec<Entry>>,
    /// Whether it could not be read to its end.
    pub cut_short: bool,
    /// See [`Warning`].
    pub warnings: Vec<Warning>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

impl File {
    /// Reads a file; what is wrong stands in [`File::problems`].
    pub fn read(path: &Path) -> Self {
        let parse = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => toml::parse,
            Some("properties") => properties::parse,
            _ => {
                return Self::unreadable(
                    path,
                    "is not known as a configuration, expected a name that ends in .toml or .properties",
                );
            }
        };
        match read_text(path) {
            Ok(text) => parse(&text, path),
            Err(message) => Self::unreadable(path, &message),
        }
    }

    fn unreadable(path: &Path, message: &str) -> Self {
        Self { cut_short: true, problems: vec![Problem::new(Origin::file(path), message)], ..Self::default() }
    }
}

/// The text of a file, or one sentence on why it cannot be had.
pub fn read_text(path: &Path) -> Result<String, String> {
    let cannot = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist, expected a file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "may not be read by this user, expected a readable file".to_owned(),
        std::io::ErrorKind::IsADirectory => "is a directory, expected a file".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    let bytes = read(path).map_err(cannot)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(format!("is larger than {LARGEST_FILE} bytes, expected a configuration"));
    }
    match String::from_utf8(bytes) {
        // The mark that some editors put in front is not part of the text.
        Ok(text) if !text.contains('\0') => Ok(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned)),
        _ => Err("is not text, expected UTF-8".to_owned()),
    }
}

/// What stands for the content of a file when it is only compared.
pub fn fingerprint(path: &Path) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    read(path)?.hash(&mut hasher);
    Ok(hasher.finish())
}

/// A byte more than is allowed shows that there is more.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular::open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The problem with a key that is not known.
fn unknown_key(origin: Origin, key: &str) -> Problem {
    let message = match super::keys::nearest(key) {
        Some(known) => format!("is not a known key, did you mean {known}?"),
        None => "is not a known key; `config show` lists those that are".to_owned(),
    };
    Problem::of_key(Some(origin), key, message)
}

/// One problem for each key that stands twice among the entries of a file.
fn duplicates(entries: &[Entry]) -> Vec<Problem> {
    let mut first = BTreeMap::new();
    let mut problems = Vec::new();
    for entry in entries {
        if let Some(earlier) = first.insert(&entry.key, &entry.origin) {
            problems.push(Problem::of_key(
                Some(entry.origin.clone()),
                &entry.key,
                format!("is given twice, the other time at {earlier}, expected once"),
            ));
        }
    }
    problems
}
