//! From librdkafka's codes to one sentence that names the thing, what was expected and what to do.

use std::collections::BTreeMap;
use std::time::Duration;

use super::native::{Fault, describe_code, local};
use super::port::{ErrorClass, KafkaError, TopicError};

/// What a call was about, for its error.
pub struct Call<'a> {
    /// `bootstrap.servers`.
    pub bootstrap: &'a str,
    /// What was tried, to follow "while", e.g. `describing topics`.
    pub doing: &'a str,
    /// How long it was tried.
    pub timeout: Duration,
    /// `security.protocol`.
    pub protocol: &'a str,
}

/// The latest error of each broker since the last request that went through.
#[derive(Debug, Default)]
pub struct Heard {
    by_broker: BTreeMap<String, Fault>,
    /// A request has gone through, so `bootstrap.servers` and the security settings are right.
    proven: bool,
}

impl Heard {
    /// Takes in what the connections reported. A broker keeps its latest error only.
    pub fn note(&mut self, troubles: Vec<Fault>) {
        for Fault { code, reason } in troubles {
            if code != local::ALL_BROKERS_DOWN {
                let (broker, reason) = split(&reason);
                self.by_broker.insert(broker, Fault { code, reason });
            }
        }
    }

    /// Forgets everything: a request went through.
    pub fn clear(&mut self) {
        self.by_broker.clear();
        self.proven = true;
    }

    /// The error that tells most: a refused login says more than a closed connection.
    fn cause(&self) -> Option<(&str, &Fault)> {
        let rank = |fault: &Fault| match fault.code {
            local::AUTHENTICATION => 0,
            local::SSL => 1,
            local::RESOLVE => 3,
            local::TRANSPORT => 4,
            local::UNSUPPORTED_FEATURE => 5,
            _ => 2,
        };
        self.by_broker.iter().min_by_key(|(_, fault)| rank(fault)).map(|(broker, fault)| (broker.as_str(), fault))
    }
}

/// Takes the name of the broker off a text like `sasl_ssl://kafka:9092/bootstrap: Connect to ... failed`.
fn split(text: &str) -> (String, String) {
    let Some((broker, reason)) = text.split_once(": ") else { return ("a broker".to_owned(), text.to_owned()) };
    let address = broker.rsplit_once("://").map_or(broker, |(_, address)| address);
    let address = address.split_once('/').map_or(address, |(address, _)| address);
    // The reason repeats the address of a broker that is named by its role.
    let reason = reason.strip_prefix(address).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(reason);
    (address.to_owned(), reason.to_owned())
}

/// The error of a call that failed as a whole.
pub fn explain(call: &Call<'_>, fault: &Fault, heard: &Heard) -> KafkaError {
    let doing = call.doing;
    match fault.code {
        local::TIMED_OUT | local::TIMED_OUT_QUEUE | local::ALL_BROKERS_DOWN | local::TRANSPORT | local::BAD_MSG => {
            match heard.cause() {
                Some((_, cause)) if cause.code == local::UNSUPPORTED_FEATURE => explain(call, cause, &Heard::default()),
                Some((broker, cause)) => connection(call, broker, cause, heard.proven),
                None if fault.code == local::TRANSPORT => KafkaError::new(
                    ErrorClass::Unreachable,
                    format!("the connection to Kafka at {} broke while {doing}; it is tried again", call.bootstrap),
                ),
                None => KafkaError::new(
                    ErrorClass::TimedOut,
                    format!(
                        "Kafka at {} did not answer within {} ms while {doing}; see whether bootstrap.servers names its brokers, and \
                         whether they are overloaded or paused",
                        call.bootstrap,
                        call.timeout.as_millis()
                    ),
                ),
            }
        }
        local::UNSUPPORTED_FEATURE | 35 => KafkaError::new(
            ErrorClass::TooOld,
            format!(
                "Kafka at {} does not support {doing}; bootstrap.servers must name brokers (not controllers) of Kafka 2.8 or newer",
                call.bootstrap
            ),
        ),
        local::INVALID_ARG => KafkaError::new(ErrorClass::Config, format!("the client refuses {doing}: {}", fault.reason)),
        29..=31 | 53 => KafkaError::new(
            ErrorClass::Authorization,
            format!("Kafka refused {doing}: {}; grant the right, then it goes on", kafka_name(fault.code)),
        ),
        local::AUTHENTICATION | local::SSL | local::RESOLVE => connection(call, call.bootstrap, fault, heard.proven),
        code => KafkaError::new(ErrorClass::Other, format!("Kafka failed {doing} with {}: {}", kafka_name(code), fault.reason)),
    }
}

/// The error of a call without a usable connection.
fn connection(call: &Call<'_>, broker: &str, cause: &Fault, proven: bool) -> KafkaError {
    use ErrorClass::{Authentication, Unreachable};
    let reason = plain(&cause.reason);
    let has = |part: &str| cause.reason.contains(part);
    let protocol = call.protocol.to_ascii_uppercase();
    // A broker that expects TLS or a login says so only by closing the connection early.
    let closed_in = |state: &str| !proven && has("Disconnected") && has(&format!("in state {state}"));
    let (class, message) = match cause.code {
        local::RESOLVE => (
            Unreachable,
            format!(
                "the host name of the broker {broker} does not resolve ({reason}); correct bootstrap.servers or the name service"
            ),
        ),
        local::AUTHENTICATION => (
            Authentication,
            format!(
                "the broker {broker} refused the login ({reason}); check kafka.sasl.mechanism, kafka.sasl.username, \
                 kafka.sasl.password and kafka.security.protocol"
            ),
        ),
        // The log line of the same failure may come first, and lacks the guess at a plaintext listener.
        local::SSL | local::TRANSPORT if has("wrong version number") || has("PLAINTEXT broker") || closed_in("SSL_HANDSHAKE") => {
            (
                Authentication,
                format!(
                    "the broker {broker} does not speak TLS, but kafka.security.protocol asks for it; name a TLS listener in \
                 bootstrap.servers, or change kafka.security.protocol"
                ),
            )
        }
        // OpenSSL's words also come with the code of a broken connection.
        code if code == local::SSL || has("SSL routines") => (
            Authentication,
            format!(
                "TLS with the broker {broker} failed ({}); check kafka.ssl.ca.location and the host name in its certificate",
                words_of_tls(reason)
            ),
        ),
        _ if has("Connection refused") => (
            Unreachable,
            format!("nothing listens at {broker}; start Kafka there, or correct bootstrap.servers ({})", call.bootstrap),
        ),
        _ if closed_in("APIVERSION_QUERY") && !protocol.ends_with("SSL") => (
            Authentication,
            format!(
                "the broker {broker} closed the connection at once; it probably expects TLS: set kafka.security.protocol=SSL or \
                 SASL_SSL, or name a plaintext listener in bootstrap.servers"
            ),
        ),
        _ if closed_in("UP") && !protocol.starts_with("SASL") => (
            Authentication,
            format!(
                "the broker {broker} closed the connection after the first request; it probably expects a login: set \
                 kafka.security.protocol=SASL_PLAINTEXT or SASL_SSL, kafka.sasl.mechanism, kafka.sasl.username and kafka.sasl.password"
            ),
        ),
        local::BAD_MSG => {
            let what = if has(HTTP_AS_A_SIZE) { "a web server".to_owned() } else { format!("no Kafka broker ({reason})") };
            (Unreachable, format!("what answers at {broker} is {what}; correct bootstrap.servers ({})", call.bootstrap))
        }
        _ => (Unreachable, format!("no connection to the broker {broker} ({reason}); see bootstrap.servers and the network")),
    };
    KafkaError::new(class, message)
}

/// The first four bytes of an HTTP answer, taken for the size of a Kafka answer.
const HTTP_AS_A_SIZE: &str = "response size 1213486160 ";

/// What OpenSSL says, without the codes in front and without librdkafka's advice, which does not know our settings.
fn words_of_tls(reason: &str) -> &str {
    let words = reason.rsplit_once("SSL routines::").map_or(reason, |(_, words)| words);
    words.split_once(": broker certificate").map_or(words, |(words, _)| words)
}

/// A reason of librdkafka without the notes on time and state at its end.
fn plain(reason: &str) -> &str {
    let reason = reason.rsplit_once(" (after ").map_or(reason, |(front, _)| front);
    reason.trim_end_matches(['.', ' '])
}

/// The error of one topic.
pub fn topic_error(fault: &Fault) -> TopicError {
    let message = if fault.reason.is_empty() { describe_code(fault.code) } else { fault.reason.clone() };
    TopicError { code: i16::try_from(fault.code).unwrap_or(-1), name: kafka_name(fault.code), message }
}

/// Kafka's name of a protocol code (`org.apache.kafka.common.protocol.Errors`), for the codes that the requests used here can bring.
pub fn kafka_name(code: i32) -> String {
    let name = match code {
        -1 => "UNKNOWN_SERVER_ERROR",
        0 => "NONE",
        1 => "OFFSET_OUT_OF_RANGE",
        2 => "CORRUPT_MESSAGE",
        3 => "UNKNOWN_TOPIC_OR_PARTITION",
        5 => "LEADER_NOT_AVAILABLE",
        6 => "NOT_LEADER_OR_FOLLOWER",
        7 => "REQUEST_TIMED_OUT",
        8 => "BROKER_NOT_AVAILABLE",
        9 => "REPLICA_NOT_AVAILABLE",
        13 => "NETWORK_EXCEPTION",
        14 => "COORDINATOR_LOAD_IN_PROGRESS",
        15 => "COORDINATOR_NOT_AVAILABLE",
        16 => "NOT_COORDINATOR",
        17 => "INVALID_TOPIC_EXCEPTION",
        22 => "ILLEGAL_GENERATION",
        24 => "INVALID_GROUP_ID",
        25 => "UNKNOWN_MEMBER_ID",
        26 => "INVALID_SESSION_TIMEOUT",
        27 => "REBALANCE_IN_PROGRESS",
        29 => "TOPIC_AUTHORIZATION_FAILED",
        30 => "GROUP_AUTHORIZATION_FAILED",
        31 => "CLUSTER_AUTHORIZATION_FAILED",
        33 => "UNSUPPORTED_SASL_MECHANISM",
        34 => "ILLEGAL_SASL_STATE",
        35 => "UNSUPPORTED_VERSION",
        36 => "TOPIC_ALREADY_EXISTS",
        37 => "INVALID_PARTITIONS",
        38 => "INVALID_REPLICATION_FACTOR",
        39 => "INVALID_REPLICA_ASSIGNMENT",
        40 => "INVALID_CONFIG",
        41 => "NOT_CONTROLLER",
        42 => "INVALID_REQUEST",
        44 => "POLICY_VIOLATION",
        47 => "INVALID_PRODUCER_EPOCH",
        51 => "CONCURRENT_TRANSACTIONS",
        53 => "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        54 => "SECURITY_DISABLED",
        55 => "OPERATION_NOT_ATTEMPTED",
        56 => "KAFKA_STORAGE_ERROR",
        58 => "SASL_AUTHENTICATION_FAILED",
        60 => "REASSIGNMENT_IN_PROGRESS",
        69 => "GROUP_ID_NOT_FOUND",
        72 => "LISTENER_NOT_FOUND",
        73 => "TOPIC_DELETION_DISABLED",
        89 => "THROTTLING_QUOTA_EXCEEDED",
        90 => "PRODUCER_FENCED",
        100 => "UNKNOWN_TOPIC_ID",
        103 => "INCONSISTENT_TOPIC_ID",
        116 => "UNKNOWN_CONTROLLER_ID",
        // Codes of librdkafka have no name in Kafka.
        code if code < -1 => return describe_code(code),
        code => return format!("ERROR_{code}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts as librdkafka 2.12 writes them, with the error that they end in.
    #[test]
    fn each_failure_names_its_remedy() {
        use ErrorClass::{Authentication, Authorization, Other, TimedOut, TooOld, Unreachable};
        let down = local::ALL_BROKERS_DOWN;
        let late = local::TIMED_OUT;
        let sasl = "sasl_plaintext://kafka:9092/bootstrap: SASL authentication error: Authentication failed: Invalid username or password (after 3ms in state AUTH_REQ)";
        let no_tls = "ssl://kafka:9092/bootstrap: SSL handshake failed: Disconnected: SSL connection closed by peer: connecting to a PLAINTEXT broker listener? (after 20ms in state SSL_HANDSHAKE)";
        let reset = "ssl://kafka:9092/bootstrap: Disconnected: connection reset by peer (after 20ms in state SSL_HANDSHAKE)";
        let tls = "kafka:9092/bootstrap: Disconnected: connection closed by peer: receive 0 after POLLIN (after 2ms in state APIVERSION_QUERY)";
        let login =
            "kafka:9092/bootstrap: Disconnected: connection closed by peer: receive 0 after POLLIN (after 9ms in state UP)";
        let ca = "ssl://kafka:9092/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: broker certificate could not be verified, verify that ssl.ca.location is correctly configured (after 5ms in state SSL_HANDSHAKE)";
        let http = "kafka:9092/bootstrap: Receive failed: Invalid response size 1213486160 (0..100000000): increase receive.message.max.bytes (after 1ms in state APIVERSION_QUERY)";
        let refused =
            "kafka:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)";
        type Case<'a> = (i32, &'a [(i32, &'a str)], ErrorClass, &'a [&'a str]);
        let cases: &[Case<'_>] = &[
            (down, &[(local::TRANSPORT, refused)], Unreachable, &["nothing listens at kafka:9092", "bootstrap.servers"]),
            (
                down,
                &[(
                    local::RESOLVE,
                    "kafka:9092/bootstrap: Failed to resolve 'kafka:9092': Name or service not known (after 1ms in state CONNECT)",
                )],
                Unreachable,
                &[
                    "kafka:9092 does not resolve",
                    "(Failed to resolve 'kafka:9092': Name or service not known)",
                    "bootstrap.servers",
                ],
            ),
            (down, &[(local::AUTHENTICATION, sasl)], Authentication, &["Invalid username or password)", "kafka.sasl.password"]),
            (down, &[(local::TRANSPORT, no_tls)], Authentication, &["kafka:9092 does not speak TLS", "kafka.security.protocol"]),
            (down, &[(local::TRANSPORT, reset)], Authentication, &["kafka:9092 does not speak TLS", "kafka.security.protocol"]),
            (down, &[(local::TRANSPORT, tls)], Authentication, &["expects TLS", "kafka.security.protocol=SSL"]),
            (down, &[(local::TRANSPORT, login)], Authentication, &["expects a login", "kafka.sasl.mechanism"]),
            (down, &[(local::SSL, ca)], Authentication, &["certificate verify failed", "kafka.ssl.ca.location"]),
            (down, &[(local::BAD_MSG, http)], Unreachable, &["kafka:9092 is a web server", "bootstrap.servers"]),
            // The refused login says more than the connection that another broker closed.
            (
                late,
                &[(local::TRANSPORT, refused), (local::AUTHENTICATION, &sasl.replace("kafka:", "other:"))],
                Authentication,
                &["other:9092"],
            ),
            (
                late,
                &[(
                    local::UNSUPPORTED_FEATURE,
                    "kafka:9093/bootstrap: Metadata request failed: Local: Required feature not supported by broker",
                )],
                TooOld,
                &["not controllers", "2.8"],
            ),
            (late, &[], TimedOut, &["seed:9092 did not answer within 3000 ms while describing topics"]),
            (local::TRANSPORT, &[], Unreachable, &["broke while describing topics"]),
            (local::UNSUPPORTED_FEATURE, &[], TooOld, &["2.8"]),
            (31, &[], Authorization, &["CLUSTER_AUTHORIZATION_FAILED", "grant"]),
            (41, &[], Other, &["NOT_CONTROLLER"]),
        ];
        for (code, heard, class, parts) in cases {
            let mut memory = Heard::default();
            memory.note(heard.iter().map(|(code, reason)| Fault { code: *code, reason: (*reason).to_owned() }).collect());
            let call = Call {
                bootstrap: "seed:9092",
                doing: "describing topics",
                timeout: Duration::from_secs(3),
                protocol: "plaintext",
            };
            let error = explain(&call, &Fault { code: *code, reason: describe_code(*code) }, &memory);
            assert_eq!(error.class, *class, "{error}");
            for part in *parts {
                assert!(error.message.contains(part), "{part:?} is missing in {error}");
            }
        }
    }

    /// Settings that have worked are not blamed for a connection that breaks.
    #[test]
    fn a_proven_connection_is_not_blamed_on_the_settings() {
        let mut heard = Heard::default();
        heard.clear();
        heard.note(vec![Fault { code: local::TRANSPORT, reason: "a:1/1: Disconnected (after 5ms in state UP)".to_owned() }]);
        let call = Call { bootstrap: "a:1", doing: "x", timeout: Duration::ZERO, protocol: "PLAINTEXT" };
        let error = explain(&call, &Fault { code: local::ALL_BROKERS_DOWN, reason: String::new() }, &heard);
        assert_eq!(error.message, "no connection to the broker a:1 (Disconnected); see bootstrap.servers and the network");
    }

    #[test]
    fn a_broker_keeps_its_latest_error() {
        let mut heard = Heard::default();
        let fault = |code, reason: &str| Fault { code, reason: reason.to_owned() };
        heard.note(vec![fault(local::TRANSPORT, "a:1/1: Disconnected"), fault(local::RESOLVE, "a:1/1: Failed to resolve")]);
        heard.note(vec![fault(local::ALL_BROKERS_DOWN, "1/1 brokers are down")]);
        assert_eq!(heard.cause(), Some(("a:1", &fault(local::RESOLVE, "Failed to resolve"))));
        heard.clear();
        assert_eq!(heard.cause(), None);
    }

    #[test]
    fn codes_have_the_names_of_kafka() {
        let named = [
            (29, "TOPIC_AUTHORIZATION_FAILED"),
            (89, "THROTTLING_QUOTA_EXCEEDED"),
            (-1, "UNKNOWN_SERVER_ERROR"),
            (999, "ERROR_999"),
        ];
        for (code, name) in named {
            assert_eq!(kafka_name(code), name);
        }
        let error = topic_error(&Fault { code: 37, reason: String::new() });
        assert_eq!((error.code, error.name.as_str()), (37, "INVALID_PARTITIONS"));
        assert!(!error.message.is_empty());
    }
}
