//! How the topology of a running sidecar stays up to date.

use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use crate::autoscaler::driver::Control;
use crate::cli::Failure;
use crate::cli::origin::Origin;
use crate::config::Settings;
use crate::plan::Planner;

/// How often the text is read again: the application may have been deployed with another topology.
const PACE: Duration = Duration::from_secs(30);
/// How often it is asked for while there is none yet.
const PACE_AT_START: Duration = Duration::from_secs(1);

/// The topology of an application as it was read last.
pub struct Followed {
    origin: Origin,
    /// The text of `Topology#describe()`; `None` while it is not known, and for a topology that the configuration states.
    text: Option<String>,
}

impl Followed {
    /// Reads what can be read before the application runs. The planner is `None` for a URL, since the application may start later
    /// than its sidecar.
    pub fn begin(settings: &Settings) -> Result<(Self, Option<Planner>), Failure> {
        let origin = Origin::of(settings)?;
        if matches!(origin, Origin::Url(_)) {
            return Ok((Self { origin, text: None }, None));
        }
        let (planner, snapshot) = origin.planner(settings)?;
        Ok((Self { origin, text: snapshot.describe }, Some(planner)))
    }

    /// Name of the source for the status.
    pub fn source(&self) -> &'static str {
        self.origin.name()
    }

    /// Reads the text again from time to time, and hands over what changed. Ends with the process.
    pub fn follow(mut self, settings: Settings, control: Sender<Control>) {
        if matches!(self.origin, Origin::Stated) {
            return;
        }
        thread::spawn(move || {
            let mut complaint = None;
            if self.text.is_some() {
                thread::sleep(PACE);
            }
            loop {
                let news = match self.origin.planner(&settings) {
                    Ok((planner, snapshot)) => {
                        complaint = None;
                        let changed = self.text != snapshot.describe;
                        self.text = snapshot.describe;
                        changed.then(|| Control::Topology(Box::new(planner)))
                    }
                    // Said once for each reason.
                    Err(Failure { message, .. }) => {
                        let changed = complaint.as_ref() != Some(&message);
                        complaint = Some(message.clone());
                        changed.then_some(Control::NoTopology(message))
                    }
                };
                if news.is_some_and(|news| control.send(news).is_err()) {
                    return; // the loop has ended
                }
                thread::sleep(if self.text.is_some() { PACE } else { PACE_AT_START });
            }
        });
    }
}
