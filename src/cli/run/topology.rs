//! Where the topology of a running sidecar comes from, and how it stays up to date.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use crate::autoscaler::driver::Control;
use crate::cli::{Failure, live};
use crate::config::Settings;
use crate::plan::Planner;
use crate::topology_source;

/// How often the text is read again: the application may have been deployed with another topology.
const PACE: Duration = Duration::from_secs(30);
/// How often it is asked for while there is none yet.
const PACE_AT_START: Duration = Duration::from_secs(1);

/// Where the topology comes from.
pub enum Origin {
    /// Written out in the configuration.
    Stated,
    /// A file with the text of `Topology#describe()`.
    File(PathBuf),
    /// A URL of the application with that text.
    Url(String),
}

impl Origin {
    /// The first source that is configured, or the one that `topology.source` names.
    pub fn of(settings: &Settings) -> Result<Self, Failure> {
        live::origin(settings)
    }

    /// Name for the status.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stated => "config",
            Self::File(_) | Self::Url(_) => "describe",
        }
    }

    /// What can be read before the application runs; `None` for a URL, since the application may start later than its sidecar.
    pub fn read_at_start(&self, settings: &Settings) -> Result<Option<Planner>, Failure> {
        match self {
            Self::Url(_) => Ok(None),
            Self::Stated | Self::File(_) => live::planner(settings, self).map(|(planner, _)| Some(planner)),
        }
    }

    /// Reads the text again from time to time, and hands over what changed. Ends with the process.
    pub fn follow(self, settings: Settings, control: Sender<Control>) {
        if matches!(self, Self::Stated) {
            return;
        }
        thread::spawn(move || {
            let mut known = match &self {
                Self::File(path) => topology_source::read(path).ok(),
                _ => None,
            };
            let mut complaint = None;
            loop {
                let pace = if known.is_some() { PACE } else { PACE_AT_START };
                if known.is_some() {
                    thread::sleep(pace);
                }
                match live::text_and_planner(&settings, &self) {
                    Ok((text, planner)) => {
                        complaint = None;
                        if known.as_ref() != Some(&text) {
                            known = Some(text);
                            if control.send(Control::Topology(Box::new(planner))).is_err() {
                                return; // the loop has ended
                            }
                        }
                    }
                    Err(failure) => {
                        // Said once for each reason.
                        if complaint.as_ref() != Some(&failure.message) {
                            complaint = Some(failure.message.clone());
                            if control.send(Control::NoTopology(failure.message)).is_err() {
                                return; // the loop has ended
                            }
                        }
                        if known.is_none() {
                            thread::sleep(pace);
                        }
                    }
                }
            }
        });
    }
}
