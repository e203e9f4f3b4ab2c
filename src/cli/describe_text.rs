//! Texts of `Topology#describe()` for commands: the errors of [`topology_source`] and of the parser as failures.

use std::path::Path;

use super::Failure;
use crate::topology::{Description, describe};
use crate::topology_source::{self, SourceError};

/// The text of a file, or of standard input for `-`.
pub fn read(path: &Path) -> Result<String, Failure> {
    Ok(topology_source::read(path)?)
}

/// The description in a file, or on standard input for `-`.
pub fn from_file(path: &Path) -> Result<Description, Failure> {
    parse(&topology_source::name(path), &read(path)?)
}

/// The description that an application serves.
pub fn from_url(url: &str) -> Result<Description, Failure> {
    parse(&topology_source::without_credentials(url), &topology_source::fetch(url)?)
}

/// Parses a text; `name` is what the user knows it by.
pub fn parse(name: &str, text: &str) -> Result<Description, Failure> {
    describe::parse(text).map_err(|error| Failure::usage(format!("{name}, {error}")))
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self::usage(error.to_string())
    }
}
