//! What the loops publish and the routes show.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::config::{Change, Remote};
use super::metrics::Metrics;
use crate::autoscaler::status::ApplicationStatus;
use crate::config::Secret;

/// The latest status of each application, what readiness waits for, and the metrics. Clones share all of it.
#[derive(Clone)]
pub struct Shared {
    state: Arc<Mutex<State>>,
    metrics: Metrics,
}

#[derive(Default)]
struct State {
    applications: BTreeMap<String, ApplicationStatus>,
    /// Open latches by number, with what each waits for.
    missing: BTreeMap<u64, String>,
    latches: u64,
    /// The settings, for programs.
    config: Option<Value>,
    /// `None` = nothing can be changed by a request.
    remote: Option<Remote>,
}

impl Shared {
    /// Nothing published, and nothing to wait for.
    pub fn new(metrics: Metrics) -> Self {
        Self { state: Arc::default(), metrics }
    }

    /// The metrics of the process.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Replaces the status of an application.
    pub fn publish(&self, status: ApplicationStatus) {
        self.state().applications.insert(status.application_id.clone(), status);
    }

    /// Replaces the settings that are shown. Secrets are redacted already.
    pub fn publish_config(&self, config: Value) {
        self.state().config = Some(config);
    }

    /// From now on those who bear the token may change settings; each change comes out here.
    pub fn accept(&self, token: Secret) -> UnboundedReceiver<Change> {
        let (changes, out) = unbounded_channel();
        self.state().remote = Some(Remote { token, changes, refusals: Arc::default() });
        out
    }

    pub(super) fn config(&self) -> Option<Value> {
        self.state().config.clone()
    }

    pub(super) fn remote(&self) -> Option<Remote> {
        self.state().remote.clone()
    }

    /// Makes the sidecar unready until the latch is dropped. `missing` says what is waited for, e.g. `shop: the topology`.
    #[must_use = "the sidecar is ready as soon as the latch is dropped"]
    pub fn latch(&self, missing: impl Into<String>) -> Latch {
        let missing = missing.into();
        let mut state = self.state();
        let number = state.latches;
        state.latches += 1;
        state.missing.insert(number, missing.clone());
        Latch { state: Arc::clone(&self.state), number, missing }
    }

    /// What readiness still waits for.
    pub(super) fn missing(&self) -> Vec<String> {
        self.state().missing.values().cloned().collect()
    }

    /// Every application in full, by id.
    pub(super) fn applications(&self) -> Vec<ApplicationStatus> {
        self.state().applications.values().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that has to happen before the sidecar is ready; it has happened when this is dropped.
pub struct Latch {
    state: Arc<Mutex<State>>,
    number: u64,
    missing: String,
}

impl Latch {
    /// Shows why it has not happened yet; `None` where nothing is wrong.
    pub fn explain(&self, reason: Option<&str>) {
        let missing = match reason {
            Some(reason) => format!("{}: {reason}", self.missing),
            None => self.missing.clone(),
        };
        self.state.lock().unwrap_or_else(PoisonError::into_inner).missing.insert(self.number, missing);
    }
}

impl Drop for Latch {
    fn drop(&mut self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).missing.remove(&self.number);
    }
}
