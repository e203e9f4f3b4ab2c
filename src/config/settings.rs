//! Checked settings of one application.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::redact::{KafkaProperties, Secret, Url};
use crate::topology::{Stated, Topology};

/// Everything `run` needs for one application, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `bootstrap.servers`
    pub bootstrap_servers: String,
    /// `application.id`
    pub application_id: String,
    /// `partition.autoscaling.enabled`
    pub enabled: bool,
    /// `partition.autoscaling.timeout.ms`
    pub timeout: Duration,
    /// `partition.autoscaling.poll.interval.ms`
    pub poll_interval: Duration,
    /// `partition.autoscaling.on.error`
    pub on_error: OnError,
    /// `partition.autoscaling.static.partitioning.check`
    pub static_check: StaticCheck,
    /// `topology.*`
    pub topology: TopologySettings,
    /// `baseline.<topic>`: full topic name -> count
    pub baseline: BTreeMap<String, u32>,
    /// `max.new.partitions`
    pub max_new_partitions: u32,
    /// `leader.election`
    pub leader_election: LeaderElection,
    /// `expected.cluster.id`
    pub expected_cluster_id: Option<String>,
    /// `http.listen`, `host:port`
    pub http_listen: String,
    /// Content of `http.token.file`
    pub http_token: Option<Secret>,
    /// `log.level`
    pub log_level: LogLevel,
    /// `log.format`
    pub log_format: LogFormat,
    /// `kafka.*` without the prefix: settings of librdkafka, those of `kafka.*.file` read from their files
    pub kafka: KafkaProperties,
    /// What the operator should know of the configuration, a sentence each
    pub warnings: Vec<String>,
}

/// Where the topology comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologySettings {
    /// `topology.source`; `None` = the first that is configured
    pub source: Option<TopologySource>,
    /// `topology.file`: text of `Topology#describe()`
    pub file: Option<PathBuf>,
    /// `topology.url`: where the application serves that text
    pub url: Option<Url>,
    /// `topology.prefix`
    pub prefix: Option<String>,
    /// The `[topology]` table when it lists `subtopologies`; holds whatever is stated beside them
    pub complete: Option<Topology>,
    /// What is stated beside a text (`topology.pinned`, ...); empty when `complete` is there
    pub stated: Stated,
}

/// The part of the settings that planning needs: what `plan --snapshot` takes from the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// `application.id`, where it is set
    pub application_id: Option<String>,
    /// `topology.*`
    pub topology: TopologySettings,
    /// `baseline.<topic>`: full topic name -> count
    pub baseline: BTreeMap<String, u32>,
    /// `max.new.partitions`
    pub max_new_partitions: u32,
    /// `partition.autoscaling.static.partitioning.check`
    pub static_check: StaticCheck,
    /// What the operator should know of the configuration, a sentence each
    pub warnings: Vec<String>,
}

/// `topology.source`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TopologySource {
    Config,
    Describe,
}

/// `partition.autoscaling.on.error`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Say it and go on.
    Log,
    /// End with exit code 6.
    Exit,
}

/// `partition.autoscaling.static.partitioning.check`: what to do when keys would move away from their state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticCheck {
    /// Do not look.
    Off,
    /// Say it and go on.
    Warn,
    /// Block the stateful subtopologies.
    Enforce,
}

/// `leader.election`: how the sidecars of an application agree on the one that acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderElection {
    /// By a consumer group on the coordinator topic.
    Kafka,
    /// There is only one sidecar.
    None,
}

/// `log.level`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// `log.format`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LogFormat {
    Text,
    Json,
}
