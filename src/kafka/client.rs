//! The cluster over librdkafka.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::ClientConfig;
use tracing::warn;

use super::errors::{Call, Heard, explain, kafka_name, topic_error};
use super::native::{Fault, Handle, local};
use super::port::{Cluster, ErrorClass, Group, KafkaError, Observation, Reply, TopicError, TopicId, TopicState};

/// What suits a program that polls a few topics for years. A `kafka.*` setting of the user wins.
const DEFAULTS: &[(&str, &str)] = &[
    // The polling itself refreshes what is needed; librdkafka need not do it as well.
    ("topic.metadata.refresh.interval.ms", "-1"),
    // No client telemetry (KIP-714): it costs a request on each connection.
    ("enable.metrics.push", "false"),
    // A broker that restarts is to be found again at once, and an expansion is not to wait ten seconds for it.
    ("reconnect.backoff.ms", "50"),
    ("reconnect.backoff.max.ms", "1000"),
    ("socket.connection.setup.timeout.ms", "5000"),
    ("socket.keepalive.enable", "true"),
    ("socket.nagle.disable", "true"),
    // What the other side closes, e.g. because it expects a login, is told in the log only.
    ("log.connection.close", "true"),
];

/// Keys that are not the user's to set, and why.
const OWNED: &[(&str, &str)] = &[
    ("bootstrap.servers", "it is set without the prefix: bootstrap.servers"),
    ("metadata.broker.list", "the brokers are set with bootstrap.servers"),
    ("allow.auto.create.topics", "asking for a topic must never create it"),
    ("log.queue", "the log lines go to the program's own log"),
    ("enabled_events", "the program chooses what it hears"),
    ("group.instance.id", "the sidecars of one configuration would throw one another out of the group that elects their leader"),
    ("statistics.interval.ms", "the statistics of librdkafka are not read; the program has metrics of its own"),
];

/// A client of one cluster: one librdkafka handle, used from one thread at a time.
///
/// Whether the cluster runs on KRaft cannot be seen here: librdkafka hands out neither features nor `metadata.version`. Brokers from
/// 4.0 on always do. A broker that gives its topics no id is older than 2.8, so it certainly does not, and is refused.
pub struct Client {
    handle: Handle,
    config: ClientConfig,
    bootstrap: String,
    heard: Heard,
    /// A broker has answered through this handle.
    answered: bool,
}

impl Client {
    /// Makes a client. It connects with the first call, so an unreachable cluster is not an error here.
    ///
    /// `settings` are those of librdkafka (`kafka.*` without the prefix); `client_id` holds unless they name another one.
    pub fn connect(bootstrap: &str, settings: &BTreeMap<String, String>, client_id: &str) -> Result<Self, KafkaError> {
        let mut config = client_config(bootstrap, settings, client_id)?;
        config.set("log.queue", "true");
        let handle = Handle::new(&config).map_err(|fault| settings_refused(&fault))?;
        Ok(Self { handle, config, bootstrap: bootstrap.to_owned(), heard: Heard::default(), answered: false })
    }

    /// Creates a topic with as many replicas as the brokers give by default.
    pub(super) fn create_topic(
        &mut self,
        topic: &str,
        partitions: u32,
        settings: &[(&str, &str)],
        timeout: Duration,
    ) -> Result<Result<(), TopicError>, KafkaError> {
        let outcome = self.ready().create_topic(topic, partitions, settings, timeout);
        let answer = self.settle(&format!("creating the topic {topic} (the outcome is not known)"), timeout, outcome)?;
        Ok(answer.map_err(|fault| topic_error(&fault)))
    }

    /// One setting of a topic, as it is in force; `None` if the broker does not know it.
    pub(super) fn topic_setting(
        &mut self,
        topic: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<Result<Option<String>, TopicError>, KafkaError> {
        let outcome = self.ready().topic_setting(topic, key, timeout);
        let answer = self.settle(&format!("reading the settings of the topic {topic}"), timeout, outcome)?;
        Ok(answer.map_err(|fault| topic_error(&fault)))
    }

    /// The handle for the next call.
    fn ready(&mut self) -> &mut Handle {
        self.listen();
        &mut self.handle
    }

    /// Takes in what the connections told, and starts over if they are all gone: as long as nothing listens where the brokers were, a
    /// request that waits for one, even if it was given up, makes librdkafka connect without a pause, whatever
    /// `reconnect.backoff.ms` says. Without a broker that it knows it does not.
    fn listen(&mut self) {
        let troubles = self.handle.take_troubles();
        let down = troubles.iter().any(|trouble| trouble.code == local::ALL_BROKERS_DOWN);
        self.heard.note(troubles);
        if down && self.answered {
            self.renew("the connections to all brokers are gone");
        }
    }

    /// Starts over with new connections. A broker that has just come back may answer that the cluster has no broker at all;
    /// librdkafka then forgets the one it knows, and may wait forever for another.
    fn renew(&mut self, why: &str) {
        match Handle::new(&self.config) {
            Ok(handle) => (self.handle, self.answered) = (handle, false),
            Err(fault) => warn!(reason = fault.reason, "no new connection, although {why}"),
        }
    }

    /// Turns the outcome of a call into what the port promises, with the reasons that the connections gave meanwhile.
    fn settle<T>(&mut self, doing: &str, timeout: Duration, outcome: Result<T, Fault>) -> Result<T, KafkaError> {
        self.answered |= outcome.is_ok();
        self.listen();
        match outcome {
            Ok(answer) => {
                self.heard.clear();
                Ok(answer)
            }
            Err(fault) => {
                if matches!(fault.code, local::TIMED_OUT | local::TIMED_OUT_QUEUE) {
                    self.renew("nobody answered");
                }
                let protocol = self.config.get("security.protocol").unwrap_or("plaintext");
                let call = Call { bootstrap: &self.bootstrap, doing, timeout, protocol };
                Err(explain(&call, &fault, &self.heard))
            }
        }
    }
}

impl Cluster for Client {
    fn cluster_id(&mut self, timeout: Duration) -> Result<String, KafkaError> {
        let outcome = self.ready().cluster_id(timeout).and_then(|id| {
            id.ok_or_else(|| Fault { code: local::UNSUPPORTED_FEATURE, reason: "the cluster has no id".to_owned() })
        });
        self.settle("asking for the cluster id", timeout, outcome)
    }

    fn describe_topics(&mut self, names: &[String], timeout: Duration) -> Result<Observation, KafkaError> {
        if names.is_empty() {
            return Ok(Observation::new());
        }
        let outcome = self.ready().describe_topics(names, timeout);
        let mut answers = self.settle("describing topics", timeout, outcome)?;
        if answers.values().flatten().any(|topic| topic.id == 0) {
            return Err(KafkaError::new(
                ErrorClass::TooOld,
                format!(
                    "Kafka at {} gives its topics no id, so it is older than 2.8 or runs on ZooKeeper; expected a KRaft cluster, \
                     name its brokers in bootstrap.servers",
                    self.bootstrap
                ),
            ));
        }
        let mut state = |name: &String| match answers.remove(name) {
            Some(Ok(topic)) => match u32::try_from(topic.partitions) {
                Ok(partitions @ 1..) => TopicState::Present { id: (topic.id != 0).then_some(TopicId(topic.id)), partitions },
                _ => TopicState::Failed(unanswered("the broker told no number of partitions")),
            },
            Some(Err(fault)) if fault.code == 3 => TopicState::Missing,
            Some(Err(fault)) => TopicState::Failed(topic_error(&fault)),
            None => TopicState::Failed(unanswered("the broker left the topic out of its answer")),
        };
        Ok(names.iter().map(|name| (name.clone(), state(name))).collect())
    }

    fn list_topics(&mut self, timeout: Duration) -> Result<Vec<String>, KafkaError> {
        let outcome = self.ready().list_topics(timeout);
        self.settle("listing topics", timeout, outcome)
    }

    fn create_partitions(&mut self, targets: &BTreeMap<String, u32>, timeout: Duration) -> Result<Reply, KafkaError> {
        if targets.is_empty() {
            return Ok(Reply { topics: BTreeMap::new(), throttle: Duration::ZERO });
        }
        let outcome = self.ready().create_partitions(targets, timeout);
        let (mut answers, throttle) = self.settle("growing topics (the outcome is not known)", timeout, outcome)?;
        let mut result = |topic: &String| match answers.remove(topic) {
            Some(answer) => answer.map_err(|fault| topic_error(&fault)),
            None => Err(unanswered("the broker left the topic out of its answer")),
        };
        let topics = targets.keys().map(|topic| (topic.clone(), result(topic))).collect();
        if !throttle.is_zero() {
            // The broker mutes this connection for that long; what comes next is to read the counts, which must not wait.
            self.renew("the broker is silent while it throttles");
        }
        Ok(Reply { topics, throttle })
    }

    fn describe_group(&mut self, group: &str, timeout: Duration) -> Result<Option<Group>, KafkaError> {
        let outcome = self.ready().describe_group(group, timeout);
        let found = self.settle(&format!("describing the group {group}"), timeout, outcome)?;
        // Asked for by name, a group that does not exist is "Dead".
        Ok(found.filter(|group| group.state != "Dead"))
    }
}

/// What every client of this cluster has in common: the defaults above, and what the user says.
pub(super) fn client_config(
    bootstrap: &str,
    settings: &BTreeMap<String, String>,
    client_id: &str,
) -> Result<ClientConfig, KafkaError> {
    let refuse = |message: String| Err(KafkaError::new(ErrorClass::Config, message));
    if let Some((key, why)) = OWNED.iter().find(|(key, _)| settings.contains_key(*key)) {
        return refuse(format!("the setting kafka.{key} cannot be used: {why}"));
    }
    if bootstrap.trim().is_empty() {
        return refuse("bootstrap.servers is empty; name at least one broker as host:port".to_owned());
    }
    let mechanism = settings.get("sasl.mechanism").or_else(|| settings.get("sasl.mechanisms"));
    if mechanism.is_some_and(|name| name.eq_ignore_ascii_case("OAUTHBEARER"))
        && settings.get("enable.sasl.oauthbearer.unsecure.jwt").is_none_or(|on| on != "true")
    {
        return refuse("kafka.sasl.mechanism=OAUTHBEARER is not supported; use PLAIN, SCRAM or a client certificate".to_owned());
    }
    let mut config = ClientConfig::new();
    for (key, value) in DEFAULTS {
        config.set(*key, *value);
    }
    config.set("client.id", client_id);
    for (key, value) in settings {
        config.set(key, value);
    }
    config.set("bootstrap.servers", bootstrap);
    Ok(config)
}

/// The error of a client that could not be made.
pub(super) fn settings_refused(fault: &Fault) -> KafkaError {
    KafkaError::new(ErrorClass::Config, format!("the Kafka client refuses its settings (kafka.*): {}", fault.reason))
}

/// A topic without a usable answer.
fn unanswered(message: &str) -> TopicError {
    TopicError { code: -1, name: kafka_name(-1), message: message.to_owned() }
}
