//! From values to settings: what is required, and what has to fit together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::{Origin, Problem};
use super::keys;
use super::kinds::{LONGEST_NAME, Parsed};
use super::layers::{Effective, Values};
use super::raw;
use super::redact::{self, KafkaProperties, Secret, Url};
use super::settings::{
    LeaderElection, LogFormat, LogLevel, OnError, Partial, Settings, StaticCheck, TopologySettings, TopologySource,
};
use crate::topology::{Pinned, Stated, Subtopology, Topology};

/// What the name of the coordinator topic has behind the `application.id`.
const COORDINATOR: &str = "-partition-autoscaler";

/// The settings of one application; `None` only when a value is missing or was refused.
pub fn settings(values: &Values, problems: &mut Vec<Problem>) -> Option<Settings> {
    let kafka = kafka(values, problems);
    let http_token = token(values, problems);
    let partial = partial(values);
    let bootstrap_servers = required(values, "bootstrap.servers", problems);
    let application_id = required(values, "application.id", problems);
    let partial = partial?;
    check_source(values, &partial.topology, problems);
    check_id(values, problems);
    Some(Settings {
        bootstrap_servers: bootstrap_servers?,
        application_id: application_id?,
        enabled: get(values, "partition.autoscaling.enabled")?,
        timeout: get(values, "partition.autoscaling.timeout.ms")?,
        poll_interval: get(values, "partition.autoscaling.poll.interval.ms")?,
        on_error: get(values, "partition.autoscaling.on.error")?,
        leader_election: get(values, "leader.election")?,
        static_check: partial.static_check,
        topology: partial.topology,
        baseline: partial.baseline,
        max_new_partitions: partial.max_new_partitions,
        expected_cluster_id: get(values, "expected.cluster.id"),
        http_listen: get(values, "http.listen")?,
        http_token,
        log_level: get(values, "log.level")?,
        log_format: get(values, "log.format")?,
        kafka,
        warnings: partial.warnings,
    })
}

/// The part that planning needs; `None` only when a value was refused.
pub fn partial(values: &Values) -> Option<Partial> {
    let mut warnings = values.warnings.clone();
    if let Some(Effective { parsed: Parsed::Text(reset), origin }) = values.get("auto.offset.reset")
        && reset.eq_ignore_ascii_case("latest")
    {
        warnings.push(format!(
            "{origin}: auto.offset.reset=latest: the application misses what is written to a new partition before it first reads \
             it; use earliest"
        ));
    }
    let baseline =
        values.family("baseline.").filter_map(|(topic, value)| Some((topic.to_owned(), u32::from_parsed(&value.parsed)?)));
    Some(Partial {
        application_id: get(values, "application.id"),
        topology: topology(values),
        baseline: baseline.collect(),
        max_new_partitions: get(values, "max.new.partitions")?,
        static_check: get(values, "partition.autoscaling.static.partitioning.check")?,
        warnings,
    })
}

/// Every application has an id of its own.
pub fn check_ids(all: &[Settings], values: &[Values], problems: &mut Vec<Problem>) {
    let mut seen: BTreeMap<&str, Option<&Origin>> = BTreeMap::new();
    for (settings, values) in all.iter().zip(values) {
        let origin = values.get("application.id").map(|effective| &effective.origin);
        if seen.insert(&settings.application_id, origin).is_some() {
            let message = format!("`{}` is given to two applications, expected one id for each", settings.application_id);
            problems.push(Problem::of_key(origin.cloned(), "application.id", message));
        }
    }
}

/// A value of a certain type. Which type a key has is settled by its kind.
trait FromParsed: Sized {
    fn from_parsed(parsed: &Parsed) -> Option<Self>;
}

fn get<T: FromParsed>(values: &Values, key: &str) -> Option<T> {
    values.get(key).and_then(|effective| T::from_parsed(&effective.parsed))
}

fn required(values: &Values, key: &str, problems: &mut Vec<Problem>) -> Option<String> {
    let value = get(values, key);
    if value.is_none() && !values.cut_short && !values.refused.contains(key) {
        let expected = keys::find(key).map(super::keys::Key::expected).unwrap_or_default();
        problems.push(Problem::of_key(values.place.clone(), key, format!("is missing, {expected}")));
    }
    value
}

macro_rules! from_parsed {
    ($type:ty, $variant:ident($value:ident) => $result:expr) => {
        impl FromParsed for $type {
            fn from_parsed(parsed: &Parsed) -> Option<Self> {
                if let Parsed::$variant($value) = parsed { $result } else { None }
            }
        }
    };
}

from_parsed!(bool, Switch(on) => Some(*on));
from_parsed!(u32, Count(count) => Some(*count));
from_parsed!(Duration, Millis(ms) => Some(Duration::from_millis(*ms)));
from_parsed!(String, Text(text) => Some(text.clone()));
from_parsed!(Url, Text(text) => Some(Url::from(text.clone())));
from_parsed!(PathBuf, Text(text) => Some(PathBuf::from(text)));
from_parsed!(Vec<String>, Names(names) => Some(names.clone()));
from_parsed!(Vec<Vec<String>>, Groups(groups) => Some(groups.clone()));
from_parsed!(BTreeMap<String, String>, Pairs(pairs) => Some(pairs.clone()));
from_parsed!(Pinned, Pinned(pinned) => Some(pinned.clone()));
from_parsed!(Vec<Subtopology>, Subtopologies(tables) => Some(tables.clone()));
from_parsed!(OnError, Text(text) => match text.as_str() {
    "log" => Some(Self::Log),
    "exit" => Some(Self::Exit),
    _ => None,
});
from_parsed!(StaticCheck, Text(text) => match text.as_str() {
    "off" => Some(Self::Off),
    "warn" => Some(Self::Warn),
    "enforce" => Some(Self::Enforce),
    _ => None,
});
from_parsed!(LeaderElection, Text(text) => match text.as_str() {
    "kafka" => Some(Self::Kafka),
    "none" => Some(Self::None),
    _ => None,
});
from_parsed!(TopologySource, Text(text) => match text.as_str() {
    "config" => Some(Self::Config),
    "describe" => Some(Self::Describe),
    _ => None,
});
from_parsed!(LogLevel, Text(text) => match text.as_str() {
    "error" => Some(Self::Error),
    "warn" => Some(Self::Warn),
    "info" => Some(Self::Info),
    "debug" => Some(Self::Debug),
    "trace" => Some(Self::Trace),
    _ => None,
});
from_parsed!(LogFormat, Text(text) => match text.as_str() {
    "text" => Some(Self::Text),
    "json" => Some(Self::Json),
    _ => None,
});

fn topology(values: &Values) -> TopologySettings {
    let mut stated = Stated {
        pinned: get(values, "topology.pinned"),
        copartition_groups: get(values, "topology.copartition.groups"),
        global_topics: get(values, "topology.global.topics"),
        repartition_topics: get(values, "topology.repartition.topics"),
        logging_disabled: get(values, "topology.logging.disabled"),
        source_changelogs: get(values, "topology.source.changelogs"),
    };
    let complete = get(values, "topology.subtopologies").map(|subtopologies| {
        let stated = std::mem::take(&mut stated);
        Topology {
            subtopologies,
            repartition_topics: stated.repartition_topics.unwrap_or_default(),
            copartition_groups: stated.copartition_groups.unwrap_or_default(),
            global_topics: stated.global_topics.unwrap_or_default(),
            pinned: stated.pinned,
            logging_disabled: stated.logging_disabled.unwrap_or_default(),
            source_changelogs: stated.source_changelogs.unwrap_or_default(),
        }
    });
    TopologySettings {
        source: get(values, "topology.source"),
        file: get(values, "topology.file"),
        url: get(values, "topology.url"),
        prefix: get(values, "topology.prefix"),
        complete,
        stated,
    }
}

/// Whether the named source is there, and only once.
fn check_source(values: &Values, topology: &TopologySettings, problems: &mut Vec<Problem>) {
    let mut problem = |key: &str, message: &str| {
        let origin = values.get(key).map(|effective| effective.origin.clone());
        problems.push(Problem::of_key(origin, key, message));
    };
    if topology.file.is_some() && topology.url.is_some() {
        problem("topology.url", "cannot be used together with topology.file, expected one of them");
    }
    if topology.file.as_deref() == Some(Path::new("-")) {
        problem(
            "topology.file",
            "`-` is standard input, which cannot be read again when it changes, expected the path of a file",
        );
    }
    match topology.source {
        Some(TopologySource::Config) if topology.complete.is_none() => {
            problem(
                "topology.source",
                "`config` needs the topology written out, expected [[topology.subtopologies]] tables in a TOML file",
            );
        }
        Some(TopologySource::Describe) if topology.file.is_none() && topology.url.is_none() => {
            problem("topology.source", "`describe` needs a text, expected topology.file or topology.url");
        }
        _ => {}
    }
}

/// Whether there is room for the name of the coordinator topic.
fn check_id(values: &Values, problems: &mut Vec<Problem>) {
    let longest = LONGEST_NAME - COORDINATOR.len();
    let id: Option<String> = get(values, "application.id");
    let length = id.map_or(0, |id| id.len());
    if length > longest && get(values, "leader.election") != Some(LeaderElection::None) {
        let origin = values.get("application.id").map(|effective| effective.origin.clone());
        let message = format!(
            "has {length} characters, expected at most {longest}, since the name of the topic <application.id>{COORDINATOR} may \
             have {LONGEST_NAME}; an application with a single sidecar can do without that topic: leader.election=none"
        );
        problems.push(Problem::of_key(origin, "application.id", message));
    }
}

/// One line end is the editor's, not the secret's.
fn without_line_end(content: &str) -> &str {
    content.strip_suffix('\n').map_or(content, |content| content.strip_suffix('\r').unwrap_or(content))
}

/// The token in `http.token.file`.
fn token(values: &Values, problems: &mut Vec<Problem>) -> Option<Secret> {
    const KEY: &str = "http.token.file";
    let effective = values.get(KEY)?;
    let path: PathBuf = get(values, KEY)?;
    let read = raw::read_text(&path).and_then(|content| match without_line_end(&content) {
        token if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Secret::from(token.to_owned())),
        _ => Err("holds no token, expected one line of visible ASCII characters without blanks".to_owned()),
    });
    match read {
        Ok(token) => Some(token),
        Err(message) => {
            problems.push(Problem::of_key(Some(effective.origin.clone()), KEY, format!("{} {message}", path.display())));
            None
        }
    }
}

/// The settings of librdkafka, those in files read.
fn kafka(values: &Values, problems: &mut Vec<Problem>) -> KafkaProperties {
    let mut properties: BTreeMap<String, (&Effective, String)> = BTreeMap::new();
    for (property, effective) in values.family("kafka.") {
        let Parsed::Text(text) = &effective.parsed else { continue };
        let mut problem = |message: String| {
            problems.push(Problem::of_key(Some(effective.origin.clone()), format!("kafka.{property}"), message));
        };
        if ["bootstrap.servers", "metadata.broker.list"].contains(&property) {
            problem("has a key of its own, expected bootstrap.servers".to_owned());
            continue;
        }
        let (name, text) = match redact::read_from_file(property) {
            None => (property, text.clone()),
            Some(name) => match raw::read_text(Path::new(text)) {
                Ok(content) => (name, without_line_end(&content).to_owned()),
                Err(message) => {
                    problem(format!("{text} {message}"));
                    continue;
                }
            },
        };
        match properties.get(name) {
            Some((other, _)) if other.origin.same_layer(&effective.origin) => {
                problem(format!("kafka.{name} is set as well at {}, expected one of them", other.origin));
            }
            Some((other, _)) if other.origin > effective.origin => {}
            _ => {
                properties.insert(name.to_owned(), (effective, text));
            }
        }
    }
    properties.into_iter().map(|(name, (_, text))| (name, text)).collect()
}

#[cfg(test)]
mod tests {
    use crate::config::keys::TABLE;
    use crate::config::kinds::Kind;
    use crate::config::{Sources, load};

    fn loaded(set: &[&str]) -> Result<Vec<super::Settings>, String> {
        let set = ["application.id=shop", "bootstrap.servers=a:1", "topology.file=x"].iter().chain(set);
        let sources = Sources { set: set.map(|setting| (*setting).to_owned()).collect(), ..Sources::default() };
        load(&sources).map_err(|errors| errors.to_string())
    }

    #[test]
    fn every_word_of_the_table_has_a_setting() {
        for key in TABLE {
            let Kind::Choice(choices) = key.kind else { continue };
            for choice in choices.iter().filter(|choice| choice.instead.is_none() && choice.name != "config") {
                let all = loaded(&[&format!("{}={}", key.name, choice.name)]).unwrap();
                assert_eq!(all.len(), 1, "{}={}", key.name, choice.name);
                let text = format!("{:?}", all[0]).to_lowercase();
                let unused = ["partition.autoscaling.approval", "partition.autoscaling.rescue"];
                assert!(unused.contains(&key.name) || text.contains(choice.name), "{}={}", key.name, choice.name);
            }
        }
    }

    #[test]
    fn a_secret_has_one_source_in_each_layer() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/rustfmt.toml");
        let errors = loaded(&["kafka.sasl.password=x", &format!("kafka.sasl.password.file={file}")]).unwrap_err();
        assert_eq!(errors, "--set: kafka.sasl.password.file: kafka.sasl.password is set as well at --set, expected one of them");
    }

    #[test]
    fn a_topology_that_changes_is_not_read_from_standard_input() {
        let errors = loaded(&["topology.file=-"]).unwrap_err();
        assert!(errors.starts_with("--set: topology.file: `-` is standard input"), "{errors}");
    }

    #[test]
    fn an_id_leaves_room_for_the_name_of_the_coordinator_topic() {
        for (length, election, accepted) in
            [(228, "kafka", true), (229, "kafka", false), (249, "none", true), (250, "none", false)]
        {
            let id = format!("application.id={}", "a".repeat(length));
            let loaded = loaded(&[&id, &format!("leader.election={election}")]);
            assert_eq!(loaded.is_ok(), accepted, "{length} {election}: {loaded:?}");
        }
    }

    #[test]
    fn the_brokers_are_named_in_one_place() {
        let errors = loaded(&["kafka.bootstrap.servers=b:1"]).unwrap_err();
        assert_eq!(errors, "--set: kafka.bootstrap.servers: has a key of its own, expected bootstrap.servers");
    }
}
