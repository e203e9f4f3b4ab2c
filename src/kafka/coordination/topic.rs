//! The coordinator topic: created on the first start, checked on every other.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use super::denied;
use crate::kafka::client::Client;
use crate::kafka::port::{Cluster as _, ErrorClass, KafkaError, TopicError, TopicId, TopicState};

const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const TOPIC_ALREADY_EXISTS: i16 = 36;
const TOPIC_AUTHORIZATION_FAILED: i16 = 29;
const CLUSTER_AUTHORIZATION_FAILED: i16 = 31;

/// Between two looks at a topic that is not served yet.
const PAUSE: Duration = Duration::from_millis(20);

/// Small segments, because Kafka never compacts the one that is written to.
const SETTINGS: &[(&str, &str)] = &[("cleanup.policy", "compact"), ("segment.bytes", "16777216")];

/// The coordinator topic as it was found or created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoordinatorTopic {
    /// Its id; `None` where the broker is too old to tell.
    pub id: Option<TopicId>,
    /// This call created it.
    pub created: bool,
}

/// See [`Coordination::ensure_topic`](super::Coordination::ensure_topic).
pub fn ensure(
    bootstrap: &str,
    settings: &BTreeMap<String, String>,
    name: &str,
    timeout: Duration,
) -> Result<CoordinatorTopic, KafkaError> {
    let deadline = Instant::now() + timeout;
    let left = || deadline.saturating_duration_since(Instant::now());
    // A client of its own, which is gone afterwards: nobody needs it again before the next start.
    let mut client = Client::connect(bootstrap, settings, name)?;
    let names = [name.to_owned()];
    let (mut asked, mut created) = (false, false);
    let id = loop {
        match client.describe_topics(&names, left())?.remove(name) {
            Some(TopicState::Present { id, partitions: 1 }) => break id,
            Some(TopicState::Present { partitions, .. }) => {
                return Err(KafkaError::new(ErrorClass::Config, grown(name, partitions)));
            }
            Some(TopicState::Failed(error)) => return Err(not_seen(name, &error)),
            Some(TopicState::Missing) | None if !asked => {
                asked = true;
                match client.create_topic(name, 1, SETTINGS, left())? {
                    Ok(()) => created = true,
                    // Another sidecar was faster.
                    Err(error) if error.code == TOPIC_ALREADY_EXISTS => {}
                    Err(error) => return Err(not_created(name, &error)),
                }
            }
            // Created is not yet served.
            Some(TopicState::Missing) | None if left().is_zero() => return Err(not_served(name, timeout)),
            Some(TopicState::Missing) | None => thread::sleep(PAUSE),
        }
    };
    if !created {
        check_policy(&mut client, name, &left)?;
    }
    Ok(CoordinatorTopic { id, created })
}

fn check_policy(client: &mut Client, name: &str, left: &dyn Fn() -> Duration) -> Result<(), KafkaError> {
    loop {
        match client.topic_setting(name, "cleanup.policy", left())? {
            Ok(Some(policy)) if policy != "compact" => {
                let message = format!(
                    "the coordinator topic {name} has cleanup.policy={policy}, so Kafka would delete what the sidecars have to \
                     remember; set it to compact"
                );
                return Err(KafkaError::new(ErrorClass::Config, message));
            }
            Ok(_) => return Ok(()),
            // Another broker may not know yet what one has created just now.
            Err(error) if error.code == UNKNOWN_TOPIC_OR_PARTITION && !left().is_zero() => thread::sleep(PAUSE),
            Err(error) if error.code == TOPIC_AUTHORIZATION_FAILED => return Err(denied("DESCRIBE_CONFIGS", "topic", name)),
            Err(error) => return Err(of_topic("the settings of the coordinator topic", name, "cannot be read", &error)),
        }
    }
}

/// What a person is told of a coordinator topic that was grown.
pub fn grown(name: &str, partitions: u32) -> String {
    format!(
        "the coordinator topic {name} has {partitions} partitions, but has to have 1; delete the topic while the sidecars run, and they \
         create it anew and write down what they know"
    )
}

fn not_seen(name: &str, error: &TopicError) -> KafkaError {
    if error.code == TOPIC_AUTHORIZATION_FAILED {
        return denied("DESCRIBE", "topic", name);
    }
    of_topic("the coordinator topic", name, "cannot be looked at", error)
}

fn not_created(name: &str, error: &TopicError) -> KafkaError {
    if matches!(error.code, TOPIC_AUTHORIZATION_FAILED | CLUSTER_AUTHORIZATION_FAILED) {
        return KafkaError::new(
            ErrorClass::Authorization,
            format!(
                "Kafka denies CREATE on the topic {name}, which the sidecars coordinate by; grant it to the user of this program, or \
                 create the topic with 1 partition and cleanup.policy=compact"
            ),
        );
    }
    of_topic("the coordinator topic", name, "cannot be created", error)
}

fn not_served(name: &str, timeout: Duration) -> KafkaError {
    KafkaError::new(
        ErrorClass::TimedOut,
        format!(
            "the coordinator topic {name} is created, but no broker serves it after {} ms; see whether the brokers are well, then it goes on",
            timeout.as_millis()
        ),
    )
}

fn of_topic(what: &str, name: &str, failed: &str, error: &TopicError) -> KafkaError {
    KafkaError::new(ErrorClass::Other, format!("{what} {name} {failed}: {} ({})", error.message, error.name))
}
