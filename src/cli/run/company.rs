//! `leader.election=none` means that there is no other sidecar: looks whether one is at work that elects a leader with others.

use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use tracing::{debug, warn};

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
            match has_company(&settings) {
                Ok(true) => {
                    let _ = control.send(Control::Refuse(refusal(&settings))); // a loop that has ended needs no telling
                    return;
                }
                Ok(false) => {}
                Err(error) => {
                    debug!(application_id = settings.application_id, "other sidecars cannot be seen: {}", error.message)
                }
            }
        }
    });
}

/// An error if another sidecar is at work, or if that cannot be found out now. A group that this account may not describe is mostly not
/// listed at all, so it cannot be told from none.
pub fn refuse(settings: &Settings) -> Result<(), KafkaError> {
    match has_company(settings) {
        Ok(false) => Ok(()),
        Ok(true) => Err(refusal(settings)),
        Err(error) if matches!(error.class, ErrorClass::Authorization | ErrorClass::TooOld) => {
            warn!(
                application_id = settings.application_id,
                "whether another sidecar is at work cannot be seen; make sure that there is none: {}", error.message
            );
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn has_company(settings: &Settings) -> Result<bool, KafkaError> {
    let name = live::client_id(&settings.application_id); // which is the name of the group as well
    let mut client = crate::kafka::Client::connect(&settings.bootstrap_servers, &settings.kafka, &name)?;
    let group = client.describe_group(&name, live::TIMEOUT)?;
    Ok(group.is_some_and(|group| !group.members.is_empty()))
}

fn refusal(settings: &Settings) -> KafkaError {
    KafkaError::new(
        ErrorClass::Config,
        format!(
            "another sidecar of {} with leader.election=kafka is at work, so one with leader.election=none must not act beside it; \
             stop it, or set leader.election to kafka here",
            settings.application_id
        ),
    )
}
