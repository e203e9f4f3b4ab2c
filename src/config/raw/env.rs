//! Settings from the environment.

use super::{Entry, Value, unknown_key};
use crate::config::error::{Origin, Problem};
use crate::config::keys;

/// What `KAFKA_...` variables of ours go on with. A container has many others of that name: of the image of a broker
/// (`KAFKA_HEAP_OPTS`) or, where a service is called `kafka`, of Kubernetes (`KAFKA_PORT_9092_TCP_ADDR`).
const OF_LIBRDKAFKA: [&str; 16] = [
    "API_VERSION_",
    "BROKER_",
    "CLIENT_",
    "CONNECTIONS_MAX_IDLE_MS",
    "DEBUG",
    "ENABLE_",
    "HTTPS_",
    "MESSAGE_MAX_BYTES",
    "METADATA_",
    "RECEIVE_MESSAGE_MAX_BYTES",
    "RECONNECT_",
    "RETRY_",
    "SASL_",
    "SECURITY_PROTOCOL",
    "SOCKET_",
    "SSL_",
];

/// What no other program's variable starts with.
const OURS: &str = "PARTITION_AUTOSCALING_";

/// The settings among the variables. An empty variable counts as not set, as charts and compose files write it.
pub fn parse(variables: &[(String, String)], problems: &mut Vec<Problem>) -> Vec<Entry> {
    let known: Vec<(String, &str)> = keys::TABLE.iter().filter_map(|key| Some((key.variable()?, key.name))).collect();
    let mut entries = Vec::new();
    for (name, value) in variables.iter().filter(|(_, value)| !value.is_empty()) {
        let origin = Origin::Environment(name.clone());
        let dotted = || name.to_ascii_lowercase().replace('_', ".");
        let property = name.strip_prefix("KAFKA_");
        let key = match known.iter().find(|(variable, _)| variable == name) {
            Some((_, key)) => (*key).to_owned(),
            None if property.is_some_and(|rest| OF_LIBRDKAFKA.iter().any(|start| rest.starts_with(start))) => dotted(),
            None => {
                if name.starts_with(OURS) {
                    problems.push(unknown_key(origin, &dotted()));
                }
                continue;
            }
        };
        entries.push(Entry { key, value: Value::Text(value.clone()), origin });
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_others_are_left_alone() {
        let variables = [
            ("PARTITION_AUTOSCALING_ENABLED", "true"),
            ("KAFKA_SASL_PASSWORD_FILE", "/run/secret"),
            ("KAFKA_PORT_9092_TCP_ADDR", "10.0.0.1"),
            ("KAFKA_HEAP_OPTS", "-Xmx1g"),
            ("APPLICATION_ID", ""),
            ("HOME", "/root"),
            ("PARTITION_AUTOSCALING_ENABLE", "true"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut problems = Vec::new();
        let entries = parse(&variables, &mut problems);
        let keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["partition.autoscaling.enabled", "kafka.sasl.password.file"]);
        assert_eq!(
            problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "environment variable PARTITION_AUTOSCALING_ENABLE: partition.autoscaling.enable: is not a known key, did you mean \
              partition.autoscaling.enabled?"
            ]
        );
    }
}
