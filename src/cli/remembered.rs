//! Reads the coordinator topic of a live application from outside: joins no group, creates nothing.

use crate::config::Settings;
use crate::coordinator::Memory;
use crate::kafka::Client;
use crate::kafka::coordination::{Coordination, LogError};
use crate::kafka::port::{Cluster, TopicState};

use super::Failure;
use super::live::{TIMEOUT, connect};
use crate::autoscaler::words;

/// `TOPIC_AUTHORIZATION_FAILED`
const DENIED: i16 = 29;

/// What the sidecars of an application remember.
pub struct Remembered {
    /// Id of the cluster.
    pub cluster_id: String,
    /// Name of the coordinator topic.
    pub topic: String,
    /// Everything in it.
    pub memory: Memory,
}

/// Reads the topic to its end.
pub fn read(settings: &Settings) -> Result<Remembered, Failure> {
    let topic = name(settings);
    let mut client = connect(settings)?;
    let cluster_id = client.cluster_id(TIMEOUT)?;
    if let Some(expected) = settings.expected_cluster_id.as_ref().filter(|expected| **expected != cluster_id) {
        return Err(Failure::usage(words::other_cluster(&cluster_id, expected)));
    }
    let memory = find(settings, &mut client)?.ok_or_else(|| missing(settings, &topic))?;
    Ok(Remembered { cluster_id, topic, memory })
}

/// Everything in the topic, `None` if there is none.
pub fn find(settings: &Settings, client: &mut Client) -> Result<Option<Memory>, Failure> {
    let topic = name(settings);
    let id = match client.describe_topics(std::slice::from_ref(&topic), TIMEOUT)?.remove(&topic) {
        Some(TopicState::Present { id, .. }) => id,
        Some(TopicState::Missing) | None => return Ok(None),
        Some(TopicState::Failed(error)) if error.code == DENIED => {
            return Err(denied("DESCRIBE", &topic));
        }
        Some(TopicState::Failed(error)) => {
            return Err(Failure::failed(format!(
                "the coordinator topic {topic} cannot be looked at: {} ({})",
                error.message, error.name
            )));
        }
    };
    let mut memory = Memory::default();
    for record in coordination(settings).reader(id)?.read_to_end(TIMEOUT).map_err(|error| unread(&topic, error))? {
        // One that is passed over is counted in the memory.
        let _ = memory.apply(record.offset, &record.key, record.value.as_deref());
    }
    Ok(Some(memory))
}

fn coordination(settings: &Settings) -> Coordination {
    Coordination::new(&settings.bootstrap_servers, &settings.kafka, &settings.application_id)
}

fn name(settings: &Settings) -> String {
    coordination(settings).name().to_owned()
}

fn missing(settings: &Settings, topic: &str) -> Failure {
    Failure::failed(format!(
        "there is no coordinator topic {topic}: no sidecar with leader.election=kafka has run for {} on this cluster; start one, or ask \
         a sidecar with leader.election=none itself (`status --url`)",
        settings.application_id
    ))
}

fn denied(right: &str, topic: &str) -> Failure {
    Failure::failed(format!(
        "Kafka denies {right} on the coordinator topic {topic}; grant DESCRIBE and READ on it to the user of this command"
    ))
}

fn unread(topic: &str, error: LogError) -> Failure {
    match error {
        LogError::Denied(_) => denied("READ", topic),
        LogError::Restarted => Failure::failed(format!("the coordinator topic {topic} was deleted while it was read; try again")),
        LogError::TimedOut => {
            Failure::failed(format!("the coordinator topic {topic} could not be read to its end in time; try again"))
        }
        LogError::Other(error) => error.into(),
    }
}
