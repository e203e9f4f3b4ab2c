//! The table of keys. Help, documents, schema, `config show` and `config check` are all made from it.

use super::kinds::{Choice, Kind, NONE, Parsed};
use super::raw::Value;

/// One key, or with a name that ends in `<...>` a family of keys.
#[derive(Debug)]
pub struct Key {
    /// As it is written in a file.
    pub name: &'static str,
    /// What values it takes; carries the unit and the limits.
    pub kind: Kind,
    /// As it would be written in a `.properties` file; `None` = not set.
    pub default: Option<&'static str>,
    /// A value that would pass, for messages and documents.
    pub example: &'static str,
    /// Whether most operators, some, or hardly any need to think of it.
    pub importance: Importance,
    /// Whether a running sidecar takes up a new value.
    pub reload: Reload,
    /// Whether applications of one process may differ in it.
    pub scope: Scope,
    /// Whether it can hold a secret; which of a family do is decided by name (see [`super::redact`]).
    pub secret: bool,
    /// Its name inside the `[topology]` table, where that is not simply the rest of the name.
    pub field: Option<&'static str>,
    /// Whole sentences for documents and help.
    pub help: &'static str,
}

/// Whether most operators, some, or hardly any need to think of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Importance {
    High,
    Medium,
    Low,
}

impl Importance {
    /// As documents write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// When a new value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// In the running process.
    Running,
    /// At the next start.
    Start,
}

impl Reload {
    /// As documents write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "at once, when the file changes or on SIGHUP",
            Self::Start => "at the next start",
        }
    }
}

/// Whether applications of one process may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// May stand in an `[[application]]` table.
    Application,
    /// One for all applications of the process.
    Process,
}

/// What most keys have in common.
const KEY: Key = Key {
    name: "",
    kind: Kind::Text,
    default: None,
    example: "",
    importance: Importance::Medium,
    reload: Reload::Start,
    scope: Scope::Application,
    secret: false,
    field: None,
    help: "",
};

/// No limit that anybody meets: a year. Keeps sums of times far from overflow.
const LONGEST_MS: u64 = 365 * 24 * 60 * 60 * 1000;

/// Records that the controller writes for one request, and so the most partitions it adds in one.
const RECORD_LIMIT: u32 = 10_000;

/// Every key there is, in the order of the documents.
pub const TABLE: &[Key] = &[
    Key {
        name: "bootstrap.servers",
        kind: Kind::Servers,
        example: "kafka-1:9092,kafka-2:9092",
        importance: Importance::High,
        help: "Brokers to start from, host:port each. Required.",
        ..KEY
    },
    Key {
        name: "application.id",
        kind: Kind::Name,
        example: "shop",
        importance: Importance::High,
        help: "The application.id of the Kafka Streams application. Required.",
        ..KEY
    },
    Key {
        name: "partition.autoscaling.enabled",
        kind: Kind::Switch,
        default: Some("false"),
        example: "true",
        importance: Importance::High,
        reload: Reload::Running,
        help: "Whether internal topics are grown. When false, changes are found, planned and reported, and nothing is written.",
        ..KEY
    },
    Key {
        name: "partition.autoscaling.timeout.ms",
        kind: Kind::Millis { min: 0, max: LONGEST_MS },
        default: Some("900000"),
        example: "15m",
        reload: Reload::Running,
        help: "How long to go on trying after the counts were first found apart. 0 gives up at the first error.",
        ..KEY
    },
    Key {
        name: "partition.autoscaling.poll.interval.ms",
        kind: Kind::Millis { min: 1, max: LONGEST_MS },
        default: Some("500"),
        example: "500ms",
        reload: Reload::Running,
        help: "How often the partition counts are read. The shorter, the more likely the internal topics have grown before the \
               application looks. The alerts of the chart expect it well below a minute.",
        ..KEY
    },
    Key {
        name: "partition.autoscaling.on.error",
        kind: Kind::Choice(&[Choice::yes("log"), Choice::yes("exit")]),
        default: Some("log"),
        example: "exit",
        reload: Reload::Running,
        help: "What to do when an input has grown in a way that the application will not survive: log goes on watching, exit ends \
               with exit code 6.",
        ..KEY
    },
    Key {
        name: "partition.autoscaling.approval",
        kind: Kind::Choice(&[Choice::yes("auto"), Choice::not_yet("manual", "`auto`")]),
        default: Some("auto"),
        example: "auto",
        importance: Importance::Low,
        help: "Who releases a plan. In this version every plan is sent as soon as it is made.",
        ..KEY
    },
    Key {
        name: "partition.autoscaling.static.partitioning.check",
        kind: Kind::Choice(&[Choice::yes("off"), Choice::yes("warn"), Choice::yes("enforce")]),
        default: Some("warn"),
        example: "enforce",
        help: "Whether to look if growing an input moves keys away from their state: warn says so and goes on, enforce blocks \
               stateful subtopologies. A change between these two counts at once.",
        ..KEY
    },
    Key {
        name: "partition.autoscaling.rescue",
        kind: Kind::Choice(&[Choice::yes("off"), Choice::not_yet("on", "`off`")]),
        default: Some("off"),
        example: "off",
        importance: Importance::Low,
        help: "Whether dead members are evicted from the group of the application. In this version they never are.",
        ..KEY
    },
    Key {
        name: "topology.source",
        kind: Kind::Choice(&[
            Choice::yes("config"),
            Choice::yes("describe"),
            Choice::not_yet("streams-group", "`config` or `describe`"),
            Choice::not_yet("consumer-group", "`config` or `describe`"),
        ]),
        example: "describe",
        importance: Importance::High,
        help: "Where the topology comes from: config is the [topology] table with its subtopologies, describe is the text of \
               Topology#describe() in topology.file or at topology.url. Not set: the first of them that is configured.",
        ..KEY
    },
    Key {
        name: "topology.file",
        kind: Kind::Path,
        example: "/etc/shop/topology.txt",
        importance: Importance::High,
        help: "File with the text of Topology#describe(). A relative path starts at the working directory.",
        ..KEY
    },
    Key {
        name: "topology.url",
        kind: Kind::Url,
        example: "http://localhost:8080/topology",
        importance: Importance::High,
        secret: true,
        help: "Where the application serves the text of Topology#describe(), plain or as the JSON of Spring's actuator.",
        ..KEY
    },
    Key {
        name: "topology.prefix",
        kind: Kind::Name,
        example: "shop",
        importance: Importance::Low,
        help: "What the names of internal topics start with. Not set: application.id.",
        ..KEY
    },
    Key {
        name: "topology.pinned",
        kind: Kind::Pinned,
        example: "by-customer-repartition:12",
        importance: Importance::High,
        help: "Repartition topics whose count is written in the code of the application (Repartitioned.numberOfPartitions), without \
               prefix, with that count behind a colon where the one that is there is not to be trusted. They are never grown: \
               that would stop the application until its code changes. An empty list says that there are none.",
        ..KEY
    },
    Key {
        name: "topology.copartition.groups",
        kind: Kind::Groups,
        field: Some("copartition_groups"),
        example: "orders,customers;by-day-repartition,days",
        help: "Topics that are joined or merged with one another and need equal counts, in the order in which Kafka Streams enforces \
               them. Groups may overlap. What is stated is complete.",
        ..KEY
    },
    Key {
        name: "topology.repartition.topics",
        kind: Kind::Names,
        field: Some("repartition_topics"),
        example: "by-customer-repartition",
        help: "All repartition topics, without prefix. What is stated is complete.",
        ..KEY
    },
    Key {
        name: "topology.global.topics",
        kind: Kind::Names,
        field: Some("global_topics"),
        example: "currencies",
        importance: Importance::Low,
        help: "All topics of global stores. Their counts never matter. What is stated is complete.",
        ..KEY
    },
    Key {
        name: "topology.logging.disabled",
        kind: Kind::Names,
        field: Some("logging_disabled"),
        example: "cache-store",
        importance: Importance::Low,
        help: "All stores without a changelog. What is stated is complete.",
        ..KEY
    },
    Key {
        name: "topology.source.changelogs",
        kind: Kind::Pairs,
        field: Some("source_changelogs"),
        example: "customers-store:customers",
        importance: Importance::Low,
        help: "All stores whose changelog is the topic they are read from, store:topic each. Such topics are never grown. What is \
               stated is complete.",
        ..KEY
    },
    Key {
        name: "topology.subtopologies",
        kind: Kind::Subtopologies,
        example: "[[topology.subtopologies]]",
        help: "The whole topology, a TOML table for each subtopology with id, sources, sinks and stores. With it the [topology] \
               table is complete and no text is needed.",
        ..KEY
    },
    Key {
        name: "baseline.<topic>",
        kind: Kind::Count { min: 1, max: i32::MAX as u32 },
        example: "3",
        reload: Reload::Running,
        help: "The count of an input at a time when all internal topics fitted it. Needed once, when an input has grown before the \
               sidecar first saw it.",
        ..KEY
    },
    Key {
        name: "max.new.partitions",
        kind: Kind::Count { min: 1, max: RECORD_LIMIT },
        default: Some("5000"),
        example: "5000",
        reload: Reload::Running,
        help: "The most partitions one plan may add. A larger plan is refused as a whole: all its topics have to grow in one request, \
               and Kafka takes at most 10000 records in one.",
        ..KEY
    },
    Key {
        name: "leader.election",
        kind: Kind::Choice(&[Choice::yes("kafka"), Choice::yes("none")]),
        default: Some("kafka"),
        example: "none",
        importance: Importance::Low,
        help: "How the sidecars of an application agree on the one that acts. `kafka`: by a consumer group on the coordinator topic \
               `<application.id>-partition-autoscaler`, which also keeps the baseline over restarts. `none`: there is only one sidecar, \
               and its memory ends with it.",
        ..KEY
    },
    Key {
        name: "expected.cluster.id",
        kind: Kind::Text,
        example: "MkU3OEVBNTcwNTJENDM2Qg",
        importance: Importance::Low,
        help: "Id of the only cluster that may be touched. Not set: any.",
        ..KEY
    },
    Key {
        name: "auto.offset.reset",
        kind: Kind::Text,
        example: "earliest",
        importance: Importance::Low,
        help: "What the application does where it has no offset. The sidecar does not need it; it warns of latest, with which the \
               application misses what is written to a new partition before it looks.",
        ..KEY
    },
    Key {
        name: "http.listen",
        kind: Kind::Address,
        default: Some("127.0.0.1:9878"),
        example: "0.0.0.0:9878",
        scope: Scope::Process,
        help: "Where status, health and metrics are served, host:port. Port 0 takes a free one.",
        ..KEY
    },
    Key {
        name: "http.token.file",
        kind: Kind::Path,
        example: "/run/secrets/autoscaler-token",
        scope: Scope::Process,
        help: "File with the token that a request has to bear (Authorization: Bearer) which changes something, such as PUT \
               /v1/config. Not set: such requests are refused.",
        ..KEY
    },
    Key {
        name: "log.level",
        kind: Kind::Choice(&[
            Choice::yes("error"),
            Choice::yes("warn"),
            Choice::yes("info"),
            Choice::yes("debug"),
            Choice::yes("trace"),
        ]),
        default: Some("info"),
        example: "debug",
        scope: Scope::Process,
        reload: Reload::Running,
        help: "The least important messages that are still logged.",
        ..KEY
    },
    Key {
        name: "log.format",
        kind: Kind::Choice(&[Choice::yes("text"), Choice::yes("json")]),
        default: Some("text"),
        example: "json",
        scope: Scope::Process,
        help: "Lines for people or one JSON object a line.",
        ..KEY
    },
    Key {
        name: "kafka.<property>",
        kind: Kind::Property,
        example: "kafka.security.protocol=SASL_SSL",
        importance: Importance::High,
        secret: true,
        help: "Handed to librdkafka as it is, without the prefix. kafka.<property>.file names a file that holds the value, for \
               passwords: kafka.sasl.password.file.",
        ..KEY
    },
];

impl Key {
    /// For a family: what its names start with.
    pub fn prefix(&self) -> Option<&'static str> {
        self.name.split_once('<').map(|(prefix, _)| prefix)
    }

    /// Whether this key, or this family, has the name.
    fn is(&self, name: &str) -> bool {
        match self.prefix() {
            Some(prefix) => name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()),
            None => self.name == name,
        }
    }

    /// Environment variable of the key. Families have none of their own: a topic name cannot be told from a variable name.
    pub fn variable(&self) -> Option<String> {
        (self.prefix().is_none() && !matches!(self.kind, Kind::Subtopologies)).then(|| variable(self.name))
    }

    /// Reads a value. The error is a message for the user, without the name of the key.
    pub(super) fn parse(&self, value: &Value) -> Result<Parsed, String> {
        match self.kind.refusal(value) {
            Some(refusal) => Err(refusal),
            None => self.kind.parse(value).map_err(|wrong| format!("{wrong}, {}", self.expected())),
        }
    }

    /// What was expected, with an example, to end a message with.
    pub fn expected(&self) -> String {
        let hint = if self.kind.is_list() { format!(", or {NONE}") } else { String::new() };
        format!("expected {}{hint}, e.g. {}", self.kind.expected(), self.example)
    }
}

/// Name of the environment variable of a key.
pub fn variable(name: &str) -> String {
    name.replace(['.', '-'], "_").to_ascii_uppercase()
}

/// The key of that name.
pub fn find(name: &str) -> Option<&'static Key> {
    TABLE.iter().find(|key| key.is(name))
}

/// The known name that looks most like `name`, if any looks alike.
pub fn nearest(name: &str) -> Option<String> {
    if ["security.", "sasl.", "ssl."].iter().any(|prefix| name.starts_with(prefix)) {
        return Some(format!("kafka.{name}"));
    }
    TABLE
        .iter()
        .map(|key| (strsim::damerau_levenshtein(name, key.name), key.name))
        .min()
        .filter(|(distance, known)| *distance <= (known.len() / 3).max(2))
        .map(|(_, known)| known.to_owned())
}

/// Whether an unknown name in the application's own file is more likely a slip than a setting of the application.
pub fn is_slip(name: &str) -> bool {
    // A setting of StreamsConfig that happens to start like ours.
    const OF_THE_APPLICATION: &str = "topology.optimization";
    name != OF_THE_APPLICATION
        && (["partition.autoscaling", "topology.", "baseline.", "kafka."].iter().any(|prefix| name.starts_with(prefix))
            || TABLE.iter().any(|key| key.prefix().is_none() && strsim::damerau_levenshtein(name, key.name) <= 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_described_and_its_default_and_example_pass() {
        for key in TABLE {
            assert!(key.help.ends_with('.') && !key.help.contains("  "), "{}", key.name);
            assert!(!key.example.is_empty(), "{}", key.name);
            let texts = key.default.into_iter().chain((!matches!(key.kind, Kind::Subtopologies)).then_some(key.example));
            for text in texts {
                assert!(key.parse(&Value::Text(text.to_owned())).is_ok(), "{}={text}", key.name);
            }
        }
    }

    #[test]
    fn names_are_found_and_slips_are_answered() {
        assert_eq!(find("baseline.orders.v2").map(|key| key.name), Some("baseline.<topic>"));
        assert_eq!(find("baseline.").map(|key| key.name), None);
        for (slip, meant) in [
            ("partition.autoscaling.enable", Some("partition.autoscaling.enabled")),
            ("aplication.id", Some("application.id")),
            ("topology.global.topic", Some("topology.global.topics")),
            ("sasl.password", Some("kafka.sasl.password")),
            ("num.stream.threads", None),
        ] {
            assert_eq!(nearest(slip).as_deref(), meant, "{slip}");
        }
    }

    #[test]
    fn settings_of_the_application_are_no_slips() {
        for name in [
            "application.server",
            "client.id",
            "commit.interval.ms",
            "default.key.serde",
            "group.protocol",
            "metrics.recording.level",
            "num.standby.replicas",
            "num.stream.threads",
            "processing.guarantee",
            "replication.factor",
            "state.dir",
            "topology.optimization",
            "consumer.max.poll.records",
        ] {
            assert!(!is_slip(name), "{name}");
        }
        for name in ["aplication.id", "bootstrap.server", "partition.autoscaling.enable", "topology.fle", "loglevel"] {
            assert!(is_slip(name), "{name}");
        }
    }
}
