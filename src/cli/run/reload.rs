//! Settings that change while `run` runs: by a changed file, by SIGHUP, or by a request.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::signal::unix::Signal;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::{error, info, warn};

use super::logging::Level;
use crate::config::settings::StaticCheck;
use crate::config::{self, ConfigErrors, Settings, Shown, Sources};
use crate::http::{Change, Shared};

/// How often the files are looked at. Their content is compared, since a mounted ConfigMap changes behind symbolic links.
const PACE: Duration = Duration::from_secs(1);

/// The sources of the configuration, and what they said last.
pub struct Reload {
    sources: Sources,
    /// The settings that the process was started with.
    started: Vec<Settings>,
    log: Level,
    shared: Shared,
    ticks: Interval,
    /// A fingerprint of each file; `None` where it could not be read.
    seen: Vec<Option<u64>>,
}

impl Reload {
    /// Watches the files of these sources, from which these settings came, from now on.
    pub fn new(sources: Sources, started: Vec<Settings>, log: Level, shared: Shared) -> Self {
        let mut ticks = interval(PACE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let seen = look(&sources.files, &[]);
        let this = Self { sources, started, log, shared, ticks, seen };
        this.publish(&this.started);
        this
    }

    /// Returns when the settings are to be read again.
    pub async fn due(&mut self, hang_up: &mut Signal) {
        loop {
            tokio::select! {
                _ = self.ticks.tick() => {
                    let now = look(&self.sources.files, &self.seen);
                    if now != self.seen {
                        self.seen = now;
                        return;
                    }
                }
                _ = hang_up.recv() => return,
            }
        }
    }

    /// The settings as they are written now, without what was asked for since; none if they are wrong, and then the old ones stay
    /// in force.
    pub fn read(&mut self) -> Vec<Settings> {
        let before = self.shown();
        match self.take(BTreeMap::new()) {
            Ok(all) => {
                let changes = differences(&before, &self.shown());
                if changes.is_empty() {
                    info!("the configuration was read again, nothing has changed");
                } else {
                    let changes: Vec<String> = changes.into_iter().collect();
                    info!("the configuration was read again: {}", changes.join(", "));
                }
                self.in_force(&all);
                all
            }
            Err(errors) => {
                self.shared.metrics().config_read(None);
                error!("the configuration is wrong, so the old one stays in force: {errors}");
                Vec::new()
            }
        }
    }

    /// The settings with what is asked for, on top of the files and of what was asked for before; none if something is wrong, and
    /// then nothing changes. Answers the request.
    pub fn change(&mut self, change: Change) -> Vec<Settings> {
        let Change { settings, from, answer } = change;
        let list: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let list = list.join(", ");
        let mut requested = self.sources.requested.clone();
        requested.extend(settings);
        let (all, outcome) = match self.take(requested) {
            Ok(all) => {
                // The line is written if the level before or the one now asks for it.
                all.first().inspect(|first| self.log.include(first.log_level));
                warn!(%from, "PUT /v1/config from {from} changes until the files change: {list}");
                self.in_force(&all);
                (all, Ok(()))
            }
            Err(errors) => {
                warn!(%from, "refused, from {from}: {errors}");
                (Vec::new(), Err(errors.to_string()))
            }
        };
        let _ = answer.send(outcome); // nobody waits if the connection is gone
        all
    }

    fn take(&mut self, requested: BTreeMap<String, Value>) -> Result<Vec<Settings>, ConfigErrors> {
        let sources = Sources { requested, ..self.sources.clone() };
        let all = config::load(&sources)?;
        self.sources = sources;
        Ok(all)
    }

    fn shown(&self) -> Vec<Vec<Shown>> {
        config::show(&self.sources).unwrap_or_default()
    }

    fn in_force(&self, all: &[Settings]) {
        if let Some(first) = all.first() {
            self.log.set(first.log_level);
        }
        self.publish(all);
    }

    /// Shows the settings, and which of them wait for the next start.
    fn publish(&self, all: &[Settings]) {
        let shown = self.shown();
        if !shown.is_empty() {
            let mut applications = config::json(&shown);
            for (application, settings) in applications.iter_mut().filter_map(Value::as_object_mut).zip(all) {
                let old = self.started.iter().find(|old| old.application_id == settings.application_id);
                let waiting = old.map(|old| at_next_start(old, settings)).unwrap_or_default();
                application.insert("at_next_start".to_owned(), json!(waiting));
            }
            self.shared.publish_config(json!({"applications": applications}));
            self.shared.metrics().config_read(Some(SystemTime::now()));
        }
    }
}

/// Keys whose new values count at the next start only.
pub fn at_next_start(old: &Settings, new: &Settings) -> Vec<&'static str> {
    let pairs = [
        ("bootstrap.servers", old.bootstrap_servers != new.bootstrap_servers),
        (
            "partition.autoscaling.static.partitioning.check",
            old.static_check == StaticCheck::Off && old.static_check != new.static_check,
        ),
        ("topology.*", old.topology != new.topology),
        ("leader.election", old.leader_election != new.leader_election),
        ("expected.cluster.id", old.expected_cluster_id != new.expected_cluster_id),
        ("http.listen", old.http_listen != new.http_listen),
        ("http.token.file", old.http_token != new.http_token),
        ("log.format", old.log_format != new.log_format),
        ("kafka.*", old.kafka != new.kafka),
    ];
    pairs.into_iter().filter_map(|(key, changed)| changed.then_some(key)).collect()
}

/// What differs, a phrase for each key; secrets are redacted in both.
fn differences(before: &[Vec<Shown>], now: &[Vec<Shown>]) -> BTreeSet<String> {
    let rows = |all: &[Vec<Shown>]| -> BTreeMap<(usize, String), Shown> {
        let rows = all.iter().enumerate().flat_map(|(at, rows)| rows.iter().map(move |row| ((at, row.key.clone()), row.clone())));
        rows.collect()
    };
    let (before, now) = (rows(before), rows(now));
    let text = |row: Option<&Shown>| row.and_then(|row| row.text.clone());
    let words = |row: Option<&Shown>| match (row, text(row)) {
        (Some(row), Some(text)) => format!("{text} ({})", row.origin),
        _ => "not set".to_owned(),
    };
    let pairs = before.keys().chain(now.keys()).map(|key| (&key.1, before.get(key), now.get(key)));
    let changed = pairs.filter(|(_, old, new)| text(*old) != text(*new));
    changed.map(|(key, old, new)| format!("{key}: {} -> {}", words(old), words(new))).collect()
}

/// The fingerprints of the files now.
fn look(files: &[PathBuf], before: &[Option<u64>]) -> Vec<Option<u64>> {
    let before = before.iter().copied().chain(std::iter::repeat(None));
    files.iter().zip(before).map(|(file, before)| seen(config::fingerprint(file), before)).collect()
}

/// A process that is out of descriptors knows nothing new.
fn seen(read: io::Result<u64>, before: Option<u64>) -> Option<u64> {
    match read {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => before,
        read => read.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_changed_with_its_content_or_when_it_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let files = [directory.path().join("shop.toml")];
        let mut before = look(&files, &[]);
        assert_eq!(before, [None]);
        for content in ["a", "ab", "b"] {
            std::fs::write(&files[0], content).unwrap();
            let now = look(&files, &before);
            assert_ne!(now, before, "{content}");
            assert_eq!(look(&files, &now), now, "{content}");
            before = now;
        }
        std::fs::remove_file(&files[0]).unwrap();
        assert_eq!(look(&files, &before), [None]);
    }

    #[test]
    fn what_is_neither_small_nor_regular_is_not_kept_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let files = ["zero.toml", "large.toml"].map(|name| directory.path().join(name));
        std::os::unix::fs::symlink("/dev/zero", &files[0]).unwrap();
        std::fs::File::create(&files[1]).unwrap().set_len(1 << 40).unwrap();
        assert!(matches!(look(&files, &[])[..], [None, Some(_)]));
    }

    #[test]
    fn a_lack_of_descriptors_is_no_change() {
        for (code, expected) in [(libc::EMFILE, Some(1)), (libc::ENFILE, Some(1)), (libc::ENOENT, None), (libc::EACCES, None)] {
            assert_eq!(seen(Err(io::Error::from_raw_os_error(code)), Some(1)), expected, "{code}");
        }
    }
}
