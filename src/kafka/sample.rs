//! A look at the latest records of a topic: their keys and partitions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use super::client::{client_config, settings_refused};
use super::native::refused;
use super::port::{ErrorClass, KafkaError};

/// Records that are looked at in each partition, from the end.
const PER_PARTITION: i64 = 50;
/// Records that are looked at in all.
const MOST: usize = 1000;
/// Partitions that are looked at.
const PARTITIONS: u32 = 32;

/// Keys and partitions of the latest keyed records. Joins no group and commits nothing; needs READ on the topic.
pub fn keys(
    bootstrap: &str,
    settings: &BTreeMap<String, String>,
    client_id: &str,
    topic: &str,
    partitions: u32,
    timeout: Duration,
) -> Result<Vec<(Vec<u8>, i32)>, KafkaError> {
    let failed = |error: ClientError| explain(topic, &error);
    let mut config = client_config(bootstrap, settings, client_id)?;
    config
        .set("group.id", client_id) // the client wants one; it is never joined
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("enable.partition.eof", "true")
        .set("queued.max.messages.kbytes", "4096")
        .set("fetch.message.max.bytes", "262144");
    let consumer: BaseConsumer = config.create().map_err(|error| settings_refused(&refused(error)))?;
    let deadline = Instant::now() + timeout;
    let mut wanted = TopicPartitionList::new();
    let mut open = BTreeSet::new();
    for partition in (0..partitions.min(PARTITIONS)).filter_map(|partition| i32::try_from(partition).ok()) {
        let left = deadline.saturating_duration_since(Instant::now());
        let (low, high) = consumer.fetch_watermarks(topic, partition, left).map_err(failed)?;
        if high > low {
            wanted.add_partition_offset(topic, partition, Offset::Offset(low.max(high - PER_PARTITION))).map_err(failed)?;
            open.insert(partition);
        }
    }
    consumer.assign(&wanted).map_err(failed)?;
    let mut records = Vec::new();
    while !open.is_empty() && records.len() < MOST && Instant::now() < deadline {
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                if let Some(key) = message.key() {
                    records.push((key.to_vec(), message.partition()));
                }
            }
            Some(Err(ClientError::PartitionEOF(partition))) => {
                open.remove(&partition);
            }
            Some(Err(error)) if error.rdkafka_error_code() == Some(RDKafkaErrorCode::TopicAuthorizationFailed) => {
                return Err(failed(error));
            }
            Some(Err(_)) | None => {} // the client goes on by itself
        }
    }
    Ok(records)
}

fn explain(topic: &str, error: &ClientError) -> KafkaError {
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::TopicAuthorizationFailed) => KafkaError::new(
            ErrorClass::Authorization,
            format!(
                "the account has no READ right on {topic}, so whether its keys move cannot be seen; \
                 grant READ, or set partition.autoscaling.static.partitioning.check=off"
            ),
        ),
        _ => KafkaError::new(ErrorClass::Other, format!("the keys of {topic} cannot be sampled: {error}")),
    }
}
