//! Control messages through a real topic that grows.

use std::time::Duration;

use kit::Cluster;
use kit::wait::{self, PATIENCE};
use partition_autoscaler::control::sender::{Producer, send_to_all};
use partition_autoscaler::control::wire::{self, Message};
use partition_autoscaler::control::{Body, Checkpoint, ControlMessage, Event, Partition, Reconciler, WireFormat};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Message as _, Offset, TopicPartitionList};

const TOPIC: &str = "control-messages.mid";

/// What the documentation of the trait shows.
struct Rdkafka(BaseProducer);

impl Producer for Rdkafka {
    type Error = KafkaError;

    fn partition_count(&mut self, topic: &str) -> Result<u32, KafkaError> {
        let metadata = self.0.client().fetch_metadata(Some(topic), PATIENCE)?;
        let found = metadata.topics().first().filter(|topic| topic.error().is_none());
        let found = found.ok_or(KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopicOrPartition))?;
        Ok(u32::try_from(found.partitions().len()).unwrap())
    }

    fn send(&mut self, topic: &str, partition: u32, value: &[u8]) -> Result<(), KafkaError> {
        let record = BaseRecord::<(), [u8]>::to(topic).partition(i32::try_from(partition).unwrap()).payload(value);
        self.0.send(record).map_err(|(error, _)| error)
    }
}

fn says(task: &str, body: Body) -> ControlMessage {
    ControlMessage { task_name: Some(task.to_owned()), task_count: Some(2), body }
}

fn mid(number: u32) -> Partition {
    Partition::new("kafka", TOPIC, number)
}

/// A downstream task that goes on where it was saved, until its partitions fulfil the condition; it saves behind every record.
fn downstream(cluster: &Cluster, partitions: u32, saved: &mut Vec<u8>, done: impl Fn(&Reconciler) -> bool) -> Vec<Event> {
    let checkpoint = if saved.is_empty() { Checkpoint::default() } else { serde_json::from_slice(saved).unwrap() };
    let mut task = Reconciler::restore((0..partitions).map(mid), &checkpoint);
    let mut offsets = checkpoint.offsets;
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", cluster.bootstrap())
        .set("group.id", "control-messages")
        .set("enable.auto.commit", "false")
        .create()
        .unwrap();
    let mut assignment = TopicPartitionList::new();
    for number in 0..partitions {
        let next = offsets.get(&mid(number)).copied().unwrap_or(0);
        assignment.add_partition_offset(TOPIC, i32::try_from(number).unwrap(), Offset::Offset(next)).unwrap();
    }
    consumer.assign(&assignment).unwrap();
    let mut events = Vec::new();
    wait::until(PATIENCE, "the control messages", || {
        if let Some(record) = consumer.poll(Duration::from_millis(50)).transpose().unwrap() {
            let partition = mid(u32::try_from(record.partition()).unwrap());
            if let Message::Control(message) = wire::decode(record.payload().unwrap()).unwrap() {
                events.extend(task.hear(&partition, &message).unwrap());
            }
            offsets.insert(partition, record.offset() + 1);
            *saved = serde_json::to_vec(&task.checkpoint(offsets.clone())).unwrap();
        }
        done(&task).then_some(())
    });
    events
}

#[test]
fn control_messages_reach_partitions_that_came_later_and_survive_a_restart() {
    let cluster = Cluster::shared();
    cluster.admin().create(&[(TOPIC, 2)]);
    let producer = ClientConfig::new().set("bootstrap.servers", cluster.bootstrap()).create().unwrap();
    let mut upstream = Rdkafka(producer);
    upstream.send(TOPIC, 0, &wire::encode(&Message::User(b"a record"), WireFormat::Seed)).unwrap();
    let mut saved = Vec::new();
    let mut send = |task: &str, body: Body| {
        let sent = send_to_all(&mut upstream, TOPIC, &says(task, body), WireFormat::Seed).unwrap();
        upstream.0.flush(PATIENCE).unwrap();
        sent
    };

    assert_eq!(send("t0", Body::Watermark { timestamp: 50 }), 2);
    assert_eq!(send("t1", Body::Watermark { timestamp: 40 }), 2);
    let stream = mid(0).stream;
    let first = downstream(cluster, 2, &mut saved, |task| task.stream_watermarks()[&stream] == 40);
    assert_eq!(first.len(), 2, "{first:?}");

    cluster.admin().grow(&[(TOPIC, 4)]);
    cluster.admin().wait_counts(&[(TOPIC, 4)]);
    assert_eq!(send("t0", Body::EndOfStream { stream_id: None }), 4);
    let before = downstream(cluster, 4, &mut saved, |task| task.ends().values().all(|heard| heard.tasks.len() == 1));
    assert_eq!(before, []);
    assert_eq!(send("t1", Body::EndOfStream { stream_id: None }), 4);
    let mut ended = downstream(cluster, 4, &mut saved, |task| task.has_ended(&stream));
    ended.sort_by_key(ToString::to_string);
    let expected: Vec<Event> = (0..4).map(|number| Event::EndOfStream { partition: mid(number) }).collect();
    assert_eq!(ended, expected);
}
