//! A client that sets tests up and looks at what came of it. It goes through the plain listener and may do everything.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication, TopicResult};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

use crate::acl::{self, Acl};
use crate::cluster::Cluster;
use crate::wait::{self, PATIENCE};
use crate::{CLIENT_ID, wire};

const TIMEOUT: Duration = Duration::from_secs(30);
/// Bound of one attempt of a request about topics.
const ADMIN_TIMEOUT: Duration = Duration::from_secs(10);

/// A record to produce.
#[derive(Debug, Clone, Default)]
pub struct Record {
    key: Option<String>,
    value: Option<String>,
    partition: Option<i32>,
    timestamp: Option<i64>,
}

impl Record {
    /// A record that goes where Kafka's default partitioner puts its key.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: Some(key.into()), value: Some(value.into()), ..Self::default() }
    }

    /// A record that deletes its key from a table.
    pub fn tombstone(key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..Self::default() }
    }

    /// Sends it to this partition.
    pub fn to(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Sends it to the partition its key starts with, as in `2:anna`: what the fixture's static partitioner does.
    ///
    /// # Panics
    /// When the key does not start so.
    pub fn to_own(self) -> Self {
        let own = self.key.as_deref().and_then(|key| key.split_once(':')?.0.parse().ok());
        self.to(own.expect("a key such as 2:anna"))
    }

    /// Sets the timestamp, in milliseconds since 1970. Brokers refuse what is more than an hour ahead.
    pub fn at(mut self, timestamp: i64) -> Self {
        self.timestamp = Some(timestamp);
        self
    }
}

/// A record that was read; bytes that are no UTF-8 are replaced.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    /// Partition it was in.
    pub partition: i32,
    /// Key, if it has one.
    pub key: Option<String>,
    /// Value; `None` deletes the key.
    pub value: Option<String>,
}

/// See the module; made by [`Cluster::admin`].
pub struct Admin<'a> {
    cluster: &'a Cluster,
    client: AdminClient<DefaultClientContext>,
}

impl<'a> Admin<'a> {
    pub(crate) fn new(cluster: &'a Cluster) -> Self {
        let client = config(cluster).create().expect("a valid configuration");
        Self { cluster, client }
    }

    /// Creates topics on all nodes' replicas and waits until every node lists them.
    pub fn create(&self, topics: &[(&str, usize)]) {
        let replicas = i32::try_from(self.cluster.size()).expect("a small cluster");
        let new: Vec<NewTopic<'_>> = topics
            .iter()
            .map(|(name, count)| {
                NewTopic::new(name, i32::try_from(*count).expect("a small count"), TopicReplication::Fixed(replicas))
            })
            .collect();
        self.ask("create topics", RDKafkaErrorCode::TopicAlreadyExists, |client| {
            block_on(client.create_topics(&new, &options()))
        });
        self.wait_counts(topics);
    }

    /// Grows topics to these counts in one request and waits until every node shows them.
    pub fn grow(&self, topics: &[(&str, usize)]) {
        let new: Vec<NewPartitions<'_>> = topics.iter().map(|(name, count)| NewPartitions::new(name, *count)).collect();
        self.ask("grow topics", RDKafkaErrorCode::InvalidPartitions, |client| {
            block_on(client.create_partitions(&new, &options()))
        });
        self.wait_counts(topics);
    }

    /// Deletes topics and waits until no node lists them.
    pub fn delete(&self, topics: &[&str]) {
        self.ask("delete topics", RDKafkaErrorCode::UnknownTopic, |client| block_on(client.delete_topics(topics, &options())));
        self.wait_view("deleted topics to be gone", None, |counts| topics.iter().all(|topic| !counts.contains_key(*topic)));
    }

    /// Partition counts of all topics, as one node sees them.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let node = self.cluster.live_addresses().into_iter().next().expect("a running node");
        wire::metadata(&node, None).unwrap_or_else(|error| panic!("metadata of {node}: {error}")).counts
    }

    /// Partition count of a topic; `None` when there is no such topic.
    pub fn count(&self, topic: &str) -> Option<usize> {
        self.counts().get(topic).copied()
    }

    /// Partition counts of the topics an application made for itself, by full name.
    pub fn internal_counts(&self, application_id: &str) -> BTreeMap<String, usize> {
        let prefix = format!("{application_id}-");
        let is_internal = |topic: &str| {
            topic.starts_with(&prefix) && ["-repartition", "-changelog", "-topic"].iter().any(|suffix| topic.ends_with(suffix))
        };
        self.counts().into_iter().filter(|(topic, _)| is_internal(topic)).collect()
    }

    /// Waits until every running node shows exactly these counts.
    #[track_caller]
    pub fn wait_counts(&self, topics: &[(&str, usize)]) {
        let names: Vec<&str> = topics.iter().map(|(name, _)| *name).collect();
        self.wait_view(&format!("the counts {topics:?}"), Some(&names), |counts| {
            topics.iter().all(|(name, count)| counts.get(*name) == Some(count))
        });
    }

    #[track_caller]
    fn wait_view(&self, what: &str, topics: Option<&[&str]>, holds: impl Fn(&BTreeMap<String, usize>) -> bool) {
        wait::until_ok(PATIENCE, what, || {
            for node in self.cluster.live_addresses() {
                let counts = wire::metadata(&node, topics).map_err(|error| format!("{node}: {error}"))?.counts;
                if !holds(&counts) {
                    return Err(format!("{node}: {counts:?}"));
                }
            }
            Ok(())
        });
    }

    /// Produces records, in order, and returns when the brokers have them.
    pub fn produce(&self, topic: &str, records: &[Record]) {
        self.produce_all(&[(topic, records)]);
    }

    /// Like [`produce`](Self::produce), to several topics.
    pub fn produce_all(&self, topics: &[(&str, &[Record])]) {
        let mut config = config(self.cluster);
        config.set("partitioner", "murmur2_random").set("linger.ms", "5");
        let producer: ThreadedProducer<Deliveries> =
            config.create_with_context(Deliveries::default()).expect("a valid configuration");
        for (topic, record) in topics.iter().flat_map(|(topic, records)| records.iter().map(move |record| (*topic, record))) {
            let mut message = BaseRecord::<String, String>::to(topic);
            message.key = record.key.as_ref();
            message.payload = record.value.as_ref();
            message.partition = record.partition;
            message.timestamp = record.timestamp;
            producer.send(message).unwrap_or_else(|(error, _)| panic!("produce to {topic}: {error}"));
        }
        let names: Vec<&str> = topics.iter().map(|(topic, _)| *topic).collect();
        producer.flush(TIMEOUT).unwrap_or_else(|error| panic!("produce to {names:?}: {error}"));
        let failed = producer.context().failed.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(failed.is_empty(), "produce to {names:?}: {failed:?}");
    }

    /// All committed records of a topic up to its present end, partition after partition.
    pub fn read_all(&self, topic: &str) -> Vec<Read> {
        let consumer = self.consumer("kit-reader");
        // Asked through the consumer, which then knows the leaders when it begins to read.
        let metadata =
            consumer.fetch_metadata(Some(topic), TIMEOUT).unwrap_or_else(|error| panic!("metadata of {topic}: {error}"));
        let count = metadata.topics().first().map_or(0, |topic| topic.partitions().len());
        assert!(count > 0, "there is no topic {topic}");
        let mut partitions = TopicPartitionList::new();
        for partition in 0..i32::try_from(count).expect("a small count") {
            partitions.add_partition_offset(topic, partition, Offset::Beginning).expect("a valid offset");
        }
        consumer.assign(&partitions).expect("a valid assignment");
        let (mut read, mut ended) = (Vec::new(), 0);
        while ended < count {
            match consumer.poll(TIMEOUT).unwrap_or_else(|| panic!("no answer while reading {topic}")) {
                Ok(message) => read.push(Read {
                    partition: message.partition(),
                    key: message.key().map(lossy),
                    value: message.payload().map(lossy),
                }),
                Err(KafkaError::PartitionEOF(_)) => ended += 1,
                Err(error) => panic!("read {topic}: {error}"),
            }
        }
        read.sort_by_key(|record| record.partition); // stable: the order inside a partition stays
        read
    }

    /// The last value of each key of a topic; keys deleted last are left out.
    pub fn read_table(&self, topic: &str) -> BTreeMap<String, String> {
        let mut table = BTreeMap::new();
        for record in self.read_all(topic) {
            let key = record.key.unwrap_or_else(|| panic!("a record without key in {topic}"));
            match record.value {
                Some(value) => table.insert(key, value),
                None => table.remove(&key),
            };
        }
        table
    }

    /// Records of a topic a group has not committed yet; a partition without commit counts from its start.
    pub fn lag(&self, group: &str, topic: &str) -> i64 {
        self.lag_seen_by(&self.consumer(group), topic)
    }

    fn lag_seen_by(&self, consumer: &BaseConsumer, topic: &str) -> i64 {
        let count = self.count(topic).unwrap_or_else(|| panic!("there is no topic {topic}"));
        let mut partitions = TopicPartitionList::new();
        partitions.add_partition_range(topic, 0, i32::try_from(count).expect("a small count") - 1);
        let committed = consumer.committed_offsets(partitions, TIMEOUT);
        let committed = committed.unwrap_or_else(|error| panic!("committed offsets in {topic}: {error}"));
        let lag = committed.elements().into_iter().map(|element| {
            let watermarks = consumer.fetch_watermarks(topic, element.partition(), TIMEOUT);
            let (low, high) = watermarks.unwrap_or_else(|error| panic!("end of {topic}: {error}"));
            match element.offset() {
                // A repartition topic loses its records once they are consumed.
                Offset::Offset(offset) => high - offset.max(low),
                _ => high - low,
            }
        });
        lag.sum()
    }

    /// Waits until a group has committed everything in these topics. Name topics in the direction the records flow: a stage
    /// commits only after its results are in the next topic, so one pass in that order proves that nothing is under way.
    #[track_caller]
    pub fn wait_caught_up(&self, group: &str, topics: &[&str]) {
        let consumer = self.consumer(group);
        wait::until_ok(PATIENCE, &format!("{group} to process everything"), || {
            let behind = topics.iter().map(|topic| (topic, self.lag_seen_by(&consumer, topic))).find(|(_, lag)| *lag > 0);
            behind.map_or(Ok(()), |(topic, lag)| Err(format!("{lag} records left in {topic}")))
        });
    }

    /// Node that leads the first partition of a topic; `None` while it has no leader.
    pub fn leader(&self, topic: &str) -> Option<usize> {
        let metadata = self.client.inner().fetch_metadata(Some(topic), TIMEOUT).ok()?;
        let partition = metadata.topics().first()?.partitions().first()?;
        usize::try_from(partition.leader()).ok()
    }

    /// State of a group of any kind as its coordinator names it, such as `Stable`; `None` when there is no such group.
    pub fn group_state(&self, group: &str) -> Option<String> {
        let nodes = self.cluster.live_addresses();
        nodes.iter().find_map(|node| wire::groups(node).ok()?.remove(group))
    }

    /// Gives permissions and waits until every node acts by them.
    #[track_caller]
    pub fn allow(&self, acls: &[Acl]) {
        self.change_acls(acls, acl::create, true);
    }

    /// Takes permissions away and waits until every node acts by it.
    #[track_caller]
    pub fn revoke(&self, acls: &[Acl]) {
        self.change_acls(acls, acl::delete, false);
    }

    #[track_caller]
    fn change_acls(&self, acls: &[Acl], change: fn(&str, &Acl) -> io::Result<()>, shall_exist: bool) {
        let nodes = self.cluster.live_addresses();
        let first = nodes.first().expect("a running node");
        for acl in acls {
            change(first, acl).unwrap_or_else(|error| panic!("{acl:?}: {error}"));
        }
        wait::until_ok(PATIENCE, "the permissions to be in force", || {
            for (node, acl) in nodes.iter().flat_map(|node| acls.iter().map(move |acl| (node, acl))) {
                if acl::exists(node, acl).map_err(|error| format!("{node}: {error}"))? != shall_exist {
                    return Err(format!("{node}: not yet {acl:?}"));
                }
            }
            Ok(())
        });
    }

    /// The underlying client.
    pub fn client(&self) -> &AdminClient<DefaultClientContext> {
        &self.client
    }

    /// Asks until there is an answer. librdkafka sends such requests to what it takes for the controller, which with KRaft is just
    /// some broker, and waits for ever if that one is gone; so every attempt after the first has a client of its own. `done`: what
    /// is answered if an earlier attempt was carried out after all.
    #[track_caller]
    fn ask(
        &self,
        what: &str,
        done: RDKafkaErrorCode,
        request: impl Fn(&AdminClient<DefaultClientContext>) -> Result<Vec<TopicResult>, KafkaError>,
    ) {
        let mut results = request(&self.client);
        let again = results.is_err();
        if again {
            results = Ok(wait::until_ok(PATIENCE, what, || {
                let client = config(self.cluster).create().expect("a valid configuration");
                request(&client).map_err(|error| error.to_string())
            }));
        }
        let failed = results.into_iter().flatten().filter_map(Result::err).filter(|(_, code)| !(again && *code == done));
        let failed: Vec<(String, RDKafkaErrorCode)> = failed.collect();
        assert!(failed.is_empty(), "{what}: {failed:?}");
    }

    fn consumer(&self, group: &str) -> BaseConsumer {
        let mut config = config(self.cluster);
        config.set("group.id", group).set("enable.auto.commit", "false").set("enable.partition.eof", "true");
        config.set("fetch.wait.max.ms", "10"); // the end of a partition is told by an empty fetch
        config.create().expect("a valid configuration")
    }
}

/// Remembers the records that did not arrive.
#[derive(Default)]
struct Deliveries {
    failed: Mutex<Vec<KafkaError>>,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(error.clone());
        }
    }
}

fn config(cluster: &Cluster) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", cluster.bootstrap()).set("client.id", CLIENT_ID);
    // Brokers that a test stops are no news.
    config.set("log.connection.close", "false").set_log_level(rdkafka::config::RDKafkaLogLevel::Emerg);
    config
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(ADMIN_TIMEOUT)).operation_timeout(Some(ADMIN_TIMEOUT))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
