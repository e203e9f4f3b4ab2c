//! Settings that change while `run` runs: by a changed file, or by SIGHUP.

use std::path::PathBuf;
use std::time::Duration;

use tokio::signal::unix::Signal;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::{error, info};

use super::logging::Level;
use crate::config::settings::StaticCheck;
use crate::config::{self, Settings, Sources};

/// How often the files are looked at. Content is compared, since a mounted ConfigMap changes behind symbolic links.
const PACE: Duration = Duration::from_secs(1);

/// The sources of the configuration, and what they said last.
pub struct Reload {
    sources: Sources,
    log: Level,
    ticks: Interval,
    seen: Vec<Option<Vec<u8>>>,
}

impl Reload {
    /// Watches the files of these sources from now on.
    pub fn new(sources: Sources, log: Level) -> Self {
        let mut ticks = interval(PACE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let seen = contents(&sources.files);
        Self { sources, log, ticks, seen }
    }

    /// Returns when the settings are to be read again.
    pub async fn due(&mut self, hang_up: &mut Signal) {
        loop {
            tokio::select! {
                _ = self.ticks.tick() => {
                    let now = contents(&self.sources.files);
                    if now != self.seen {
                        self.seen = now;
                        return;
                    }
                }
                _ = hang_up.recv() => return,
            }
        }
    }

    /// The settings as they are written now; none if they are wrong, and then the old ones stay in force.
    pub fn read(&self) -> Vec<Settings> {
        match config::load(&self.sources) {
            Ok(all) => {
                if let Some(first) = all.first() {
                    self.log.set(first.log_level);
                }
                info!("the configuration was read again");
                all
            }
            Err(errors) => {
                error!("the configuration is wrong, so the old one stays in force: {errors}");
                Vec::new()
            }
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
        ("log.format", old.log_format != new.log_format),
        ("kafka.*", old.kafka != new.kafka),
    ];
    pairs.into_iter().filter_map(|(key, changed)| changed.then_some(key)).collect()
}

/// Content of each file; `None` where it cannot be read.
fn contents(files: &[PathBuf]) -> Vec<Option<Vec<u8>>> {
    files.iter().map(|file| std::fs::read(file).ok()).collect()
}
