//! Sends control messages to every partition of an intermediate topic, as SEP-6 has it.
//!
//! The number of partitions is read at each sending, so partitions that were added later are reached. Samza 0.14.1 and newer send to
//! one partition, whose owner tells the others, and keep the number of partitions for the life of the process.

use std::error::Error;

use super::wire::{self, Body, ControlMessage, Message, WireFormat};

/// What sending needs of a producer; to be implemented over whichever Kafka client the stream processor uses. With rdkafka:
///
/// ```no_run
/// use std::time::Duration;
///
/// use partition_autoscaler::control::sender::Producer;
/// use rdkafka::error::KafkaError;
/// use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
/// use rdkafka::types::RDKafkaErrorCode;
///
/// struct Rdkafka(BaseProducer);
///
/// impl Producer for Rdkafka {
///     type Error = KafkaError;
///
///     fn partition_count(&mut self, topic: &str) -> Result<u32, KafkaError> {
///         let metadata = self.0.client().fetch_metadata(Some(topic), Duration::from_secs(10))?;
///         let found = metadata.topics().first().filter(|topic| topic.error().is_none());
///         let found = found.ok_or(KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopicOrPartition))?;
///         Ok(found.partitions().len() as u32)
///     }
///
///     fn send(&mut self, topic: &str, partition: u32, value: &[u8]) -> Result<(), KafkaError> {
///         let record = BaseRecord::<(), [u8]>::to(topic).partition(partition as i32).payload(value);
///         self.0.send(record).map_err(|(error, _)| error)
///     }
/// }
/// ```
pub trait Producer {
    /// Error of the client.
    type Error: Error + 'static;

    /// The number of partitions that the topic has now: asked of the cluster, not remembered. A topic that does not exist is an error.
    fn partition_count(&mut self, topic: &str) -> Result<u32, Self::Error>;

    /// Sends a record with this value and without a key to exactly this partition, behind everything that was sent to it before. It
    /// may return before the record is written; then an error that comes later is for the owner of the producer to see before offsets
    /// are committed.
    fn send(&mut self, topic: &str, partition: u32, value: &[u8]) -> Result<(), Self::Error>;
}

/// A message did not reach every partition. It may be sent again as it is: hearing it twice changes nothing.
#[derive(Debug, thiserror::Error)]
pub enum SendError<E: Error + 'static> {
    /// It is not known how many partitions there are.
    #[error(
        "the number of partitions of {topic} cannot be read, so after {sent} partitions it is not known which are left: {source}"
    )]
    Count {
        /// The intermediate topic.
        topic: String,
        /// How many partitions have the message.
        sent: u32,
        /// Why.
        source: E,
    },
    /// The producer says that there is nothing to send to.
    #[error("{topic} has no partitions, expected an intermediate topic that exists; create it first")]
    NoPartitions {
        /// The intermediate topic.
        topic: String,
    },
    /// One partition failed; those before it have the message.
    #[error("{topic}#{partition} did not take the message, nor was it sent to the partitions after it: {source}")]
    Partition {
        /// The intermediate topic.
        topic: String,
        /// The partition.
        partition: u32,
        /// Why.
        source: E,
    },
}

/// Sends the message to every partition of the topic; returns their number.
///
/// After an end of stream or a drain the number is read again, and partitions that came meanwhile get it too, for no further message
/// would tell them. A watermark is followed by the next one.
pub fn send_to_all<P: Producer>(
    producer: &mut P,
    topic: &str,
    message: &ControlMessage,
    format: WireFormat,
) -> Result<u32, SendError<P::Error>> {
    let value = wire::encode(&Message::Control(message.clone()), format);
    let is_last_word = !matches!(message.body, Body::Watermark { .. });
    let mut sent = 0;
    loop {
        let count =
            producer.partition_count(topic).map_err(|source| SendError::Count { topic: topic.to_owned(), sent, source })?;
        if count == 0 && sent == 0 {
            return Err(SendError::NoPartitions { topic: topic.to_owned() });
        }
        if count <= sent {
            return Ok(sent);
        }
        for partition in sent..count {
            producer.send(topic, partition, &value).map_err(|source| SendError::Partition {
                topic: topic.to_owned(),
                partition,
                source,
            })?;
        }
        sent = count;
        if !is_last_word {
            return Ok(sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each reading of the count takes the next one; the last stays.
    struct Fake {
        counts: Vec<u32>,
        sent: Vec<(u32, Vec<u8>)>,
        broken: Option<u32>,
    }

    impl Fake {
        fn with(counts: &[u32]) -> Self {
            Self { counts: counts.to_vec(), sent: Vec::new(), broken: None }
        }

        fn partitions(&self) -> Vec<u32> {
            self.sent.iter().map(|(partition, _)| *partition).collect()
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("broken")]
    struct Broken;

    impl Producer for Fake {
        type Error = Broken;

        fn partition_count(&mut self, _topic: &str) -> Result<u32, Broken> {
            let count = self.counts.first().copied().ok_or(Broken)?;
            if self.counts.len() > 1 {
                self.counts.remove(0);
            }
            Ok(count)
        }

        fn send(&mut self, _topic: &str, partition: u32, value: &[u8]) -> Result<(), Broken> {
            if self.broken == Some(partition) {
                return Err(Broken);
            }
            self.sent.push((partition, value.to_vec()));
            Ok(())
        }
    }

    fn of(body: Body) -> ControlMessage {
        ControlMessage { task_name: Some("t0".to_owned()), task_count: Some(2), body }
    }

    fn watermark() -> ControlMessage {
        of(Body::Watermark { timestamp: 5 })
    }

    #[test]
    fn every_partition_gets_the_same_message() {
        let mut fake = Fake::with(&[3]);
        assert_eq!(send_to_all(&mut fake, "mid", &watermark(), WireFormat::Seed).unwrap(), 3);
        assert_eq!(fake.partitions(), [0, 1, 2]);
        for (_, value) in &fake.sent {
            assert_eq!(wire::decode(value).unwrap(), Message::Control(watermark()));
        }
    }

    #[test]
    fn the_count_is_read_at_each_sending() {
        let mut fake = Fake::with(&[1, 2]);
        for sent in [1, 2, 2] {
            assert_eq!(send_to_all(&mut fake, "mid", &watermark(), WireFormat::Samza).unwrap(), sent);
        }
        assert_eq!(fake.partitions(), [0, 0, 1, 0, 1]);
    }

    #[test]
    fn a_partition_that_comes_while_the_last_word_is_sent_gets_it_too() {
        for body in [Body::EndOfStream { stream_id: None }, Body::Drain { run_id: None }] {
            let mut fake = Fake::with(&[2, 4, 4]);
            assert_eq!(send_to_all(&mut fake, "mid", &of(body), WireFormat::Seed).unwrap(), 4);
            assert_eq!(fake.partitions(), [0, 1, 2, 3]);
        }
    }

    #[test]
    fn errors_say_how_far_it_came() {
        let mut fake = Fake { broken: Some(1), ..Fake::with(&[3]) };
        let error = send_to_all(&mut fake, "mid", &watermark(), WireFormat::Seed).unwrap_err();
        assert_eq!(error.to_string(), "mid#1 did not take the message, nor was it sent to the partitions after it: broken");
        assert_eq!(fake.partitions(), [0]);
        let error = send_to_all(&mut Fake::with(&[]), "mid", &watermark(), WireFormat::Seed).unwrap_err();
        assert!(matches!(error, SendError::Count { sent: 0, .. }), "{error}");
        let error = send_to_all(&mut Fake::with(&[0]), "mid", &watermark(), WireFormat::Seed).unwrap_err();
        assert!(matches!(error, SendError::NoPartitions { .. }), "{error}");
    }
}
