//! Where a value came from, and what is wrong with it.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// Where a value came from. The order is that of the layers: a later one wins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A configuration file; line 0 stands for the file as a whole.
    File {
        /// As it was named on the command line.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
    /// An environment variable.
    Environment(String),
    /// `--set`
    Flag,
    /// `PUT /v1/config`
    Request,
}

impl Origin {
    /// The file as a whole.
    pub fn file(path: &Path) -> Self {
        Self::File { path: path.to_owned(), line: 0 }
    }

    /// Whether both belong to the same layer.
    pub fn same_layer(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line: 0 } => write!(f, "{}", path.display()),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Flag => f.write_str("--set"),
            Self::Request => f.write_str("PUT /v1/config"),
        }
    }
}

/// One thing that is wrong, in one line: `file:line: key: what is wrong, what was expected`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `None` where nobody said anything, for example when a required key is missing.
    pub origin: Option<Origin>,
    /// `None` where a file could not be read at all.
    pub key: Option<String>,
    /// What was wrong and what was expected. Never holds a secret.
    pub message: String,
}

impl Problem {
    /// A problem with a file or an argument as a whole.
    pub fn new(origin: Origin, message: impl Into<String>) -> Self {
        Self { origin: Some(origin), key: None, message: message.into() }
    }

    /// A problem with the value of a key, or with the key itself.
    pub fn of_key(origin: Option<Origin>, key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { origin, key: Some(key.into()), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        // One line, whatever was quoted.
        self.message.chars().try_for_each(|c| if c.is_control() { write!(f, "{}", c.escape_debug()) } else { f.write_char(c) })
    }
}

/// Everything that is wrong with a configuration; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<Problem>);

impl ConfigErrors {
    /// `Ok` when there are no problems. Sorts them by place and drops repetitions: a shared value is checked once for
    /// each application.
    pub(super) fn check(mut problems: Vec<Problem>) -> Result<(), Self> {
        problems.sort_by_key(|problem| (problem.origin.is_none(), problem.origin.clone()));
        problems.dedup();
        if problems.is_empty() { Ok(()) } else { Err(Self(problems)) }
    }

    /// The problems, sorted by place.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [problem] = self.0.as_slice() {
            return write!(f, "{problem}");
        }
        write!(f, "the configuration has {} problems", self.0.len())?;
        self.0.iter().try_for_each(|problem| write!(f, "\n{problem}"))
    }
}

impl std::error::Error for ConfigErrors {}
