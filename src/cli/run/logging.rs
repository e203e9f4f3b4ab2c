//! The log of `run`.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt};

use crate::cli::Failure;
use crate::config::settings::{LogFormat, LogLevel};

/// Changes the level of a running log.
pub struct Level(Handle<LevelFilter, Registry>);

impl Level {
    /// From now on only lines of this level and above are written.
    pub fn set(&self, level: LogLevel) {
        let _ = self.0.modify(|filter| *filter = filter_of(level)); // fails only when the log is gone
    }

    /// Lines of this level and above are written, whatever others are.
    pub fn include(&self, level: LogLevel) {
        let _ = self.0.modify(|filter| *filter = (*filter).max(filter_of(level)));
    }
}

/// Starts the log on standard error.
pub fn init(level: LogLevel, format: LogFormat) -> Result<Level, Failure> {
    let (filter, handle) = reload::Layer::new(filter_of(level));
    let registry = tracing_subscriber::registry().with(filter);
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let started = match format {
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
        LogFormat::Text => registry.with(lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))).try_init(),
    };
    started.map_err(|error| Failure::failed(format!("the log cannot be started: {error}")))?;
    Ok(Level(handle))
}

fn filter_of(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
