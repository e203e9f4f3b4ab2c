//! What a user wrote, turned into settings that cannot be wrong.
//!
//! One table ([`keys`]) says which keys there are. Files, environment and `--set` are read into entries with their places
//! (`raw`), laid over one another (`layers`), and checked as a whole (`check`). Help, documents and schema are made
//! from the same table ([`docs`]).

use std::collections::BTreeMap;
use std::path::PathBuf;

pub mod docs;
pub mod error;
pub mod keys;
pub mod kinds;
pub mod redact;
pub mod settings;

mod check;
mod layers;
mod raw;
mod schema;
mod show;

pub use docs::help_text;
pub use error::{ConfigErrors, Origin, Problem};
pub use raw::fingerprint;
pub use redact::{KafkaProperties, Secret, Url};
pub use settings::{Partial, Settings};
pub use show::{Shown, json, show};

/// Where settings may stand, in rising order of precedence.
///
/// Not `Debug`: the environment is full of secrets.
#[derive(Clone, Default)]
pub struct Sources {
    /// `--config`; each file is at least one application.
    pub files: Vec<PathBuf>,
    /// Name and value of all environment variables.
    pub environment: Vec<(String, String)>,
    /// `--set`: `key=value`
    pub set: Vec<String>,
    /// What a running process was asked for (`PUT /v1/config`), as JSON.
    pub requested: BTreeMap<String, serde_json::Value>,
}

impl Sources {
    /// What the command line names, and the environment of this process.
    pub fn new(files: &[PathBuf], set: &[String]) -> Self {
        // A variable that is not Unicode is none of ours.
        let unicode =
            |(name, value): (std::ffi::OsString, std::ffi::OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Self {
            files: files.to_vec(),
            environment: std::env::vars_os().filter_map(unicode).collect(),
            set: set.to_vec(),
            requested: BTreeMap::new(),
        }
    }
}

/// The settings of every application; never empty.
pub fn load(sources: &Sources) -> Result<Vec<Settings>, ConfigErrors> {
    let mut problems = Vec::new();
    let values = layers::values(sources, &mut problems);
    let all: Vec<Settings> = values.iter().filter_map(|values| check::settings(values, &mut problems)).collect();
    if problems.is_empty() {
        check::check_ids(&all, &values, &mut problems);
    }
    ConfigErrors::check(problems)?;
    Ok(all)
}

/// What planning without a broker needs. Nothing is required, neither an application id nor brokers.
pub fn load_partial(sources: &Sources) -> Result<Vec<Partial>, ConfigErrors> {
    let mut problems = Vec::new();
    let values = layers::values(sources, &mut problems);
    let all = values.iter().filter_map(check::partial).collect();
    ConfigErrors::check(problems)?;
    Ok(all)
}
