//! `leader.election=none` means that there is no other sidecar: looks whether one is at work that elects a leader with others.

use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use tracing::debug;

use crate::autoscaler::driver::Control;
use crate::cli::live;
use crate::config::Settings;
use crate::config::settings::LeaderElection;
use crate::kafka::port::{Cluster, ErrorClass, KafkaError};

/// Between two looks.
const PACE: Duration = Duration::from_secs(30);

/// Looks from time to time, and ends the loop where there is company. Ends with the process.
pub fn follow(settings: Settings, control: Sender<Control>) {
    if settings.leader_election != LeaderElection::None {
        return;
    }
    thread::spawn(move || {
        loop {
            thread::sleep(PACE);
            match refuse(&settings) {
                Err(error) if error.class == ErrorClass::Config => {
                    let _ = control.send(Control::Refuse(error)); // a loop that has ended needs no telling
                    return;
                }
                Err(error) => {
                    debug!(application_id = settings.application_id, "other sidecars cannot be seen: {}", error.message)
                }
                Ok(()) => {}
            }
        }
    });
}

/// An error of class [`ErrorClass::Config`] if another sidecar is at work. Without the right to see, none is seen.
pub fn refuse(settings: &Settings) -> Result<(), KafkaError> {
    let name = live::client_id(&settings.application_id);
    let mut client = crate::kafka::Client::connect(&settings.bootstrap_servers, &settings.kafka, &name)?;
    match client.describe_group(&name, live::TIMEOUT) {
        Ok(group) if group.as_ref().is_none_or(|group| group.members.is_empty()) => Ok(()),
        Err(error) if matches!(error.class, ErrorClass::Authorization | ErrorClass::TooOld) => Ok(()), // the observation will tell
        Err(error) => Err(error),
        Ok(_) => Err(KafkaError::new(
            ErrorClass::Config,
            format!(
                "another sidecar of {} with leader.election=kafka is at work, so one with leader.election=none must not act beside it; \
                 stop it, or set leader.election to kafka here",
                settings.application_id
            ),
        )),
    }
}
