//! The settings of a Kafka Streams application that a `.properties` file may hold beside ours: which of them tell how to
//! reach the brokers, and what to write where librdkafka knows a thing by another name than the Java client.

use super::{Entry, Value, Warning};
use crate::config::error::Origin;

/// Same name and meaning in the Java client and in librdkafka, or known to librdkafka alone.
const SAME: &[&str] = &[
    "sasl.kerberos.keytab",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.principal",
    "sasl.kerberos.service.name",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.crl.location",
    "ssl.curves.list",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.sigalgs.list",
];

/// A setting that only the Java client understands.
struct JavaOnly {
    name: &'static str,
    /// What to write, to follow the words "write here".
    instead: &'static str,
    /// Any of these makes the warning pointless.
    unless: &'static [&'static str],
}

const JAVA_ONLY: &[JavaOnly] = &[
    JavaOnly {
        name: "sasl.jaas.config",
        instead: "kafka.sasl.username and kafka.sasl.password.file",
        unless: &["kafka.sasl.username", "kafka.sasl.kerberos.keytab", "kafka.sasl.oauthbearer.method"],
    },
    JavaOnly {
        name: "sasl.login.callback.handler.class",
        instead: "kafka.sasl.oauthbearer.method=oidc with client id, secret and token endpoint",
        unless: &["kafka.sasl.oauthbearer.method"],
    },
    JavaOnly {
        name: "ssl.truststore.location",
        instead: "kafka.ssl.ca.location with the certificates as a PEM file",
        unless: &["kafka.ssl.ca.location", "kafka.ssl.ca.pem"],
    },
    JavaOnly {
        name: "ssl.truststore.certificates",
        instead: "kafka.ssl.ca.pem with the same text",
        unless: &["kafka.ssl.ca.location", "kafka.ssl.ca.pem"],
    },
    JavaOnly {
        name: "ssl.keystore.location",
        instead: "kafka.ssl.keystore.location with a PKCS#12 file, or kafka.ssl.certificate.location and \
                  kafka.ssl.key.location with PEM files",
        unless: &["kafka.ssl.keystore.location", "kafka.ssl.certificate.location", "kafka.ssl.certificate.pem"],
    },
    JavaOnly {
        name: "ssl.keystore.certificate.chain",
        instead: "kafka.ssl.certificate.pem with the same text",
        unless: &["kafka.ssl.certificate.location", "kafka.ssl.certificate.pem"],
    },
    JavaOnly {
        name: "ssl.keystore.key",
        instead: "kafka.ssl.key.pem.file with the same text in a file",
        unless: &["kafka.ssl.key.location", "kafka.ssl.key.pem"],
    },
    JavaOnly {
        name: "ssl.cipher.suites",
        instead: "kafka.ssl.cipher.suites with the names that OpenSSL gives them",
        unless: &["kafka.ssl.cipher.suites"],
    },
];

/// What became of the settings of the application.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Translated {
    /// `kafka.*` settings that mean the same.
    pub entries: Vec<Entry>,
    /// Where librdkafka needs something else.
    pub warnings: Vec<Warning>,
    /// Names of the others, each once.
    pub unused: Vec<String>,
}

/// Sorts the settings of an application.
pub fn translate(foreign: Vec<Entry>) -> Translated {
    let mut translated = Translated::default();
    let store_type = |name: &str| {
        let found = foreign.iter().rev().find(|entry| entry.key == name);
        found.map_or_else(|| "JKS".to_owned(), |entry| entry.value.plain().trim().to_ascii_uppercase())
    };
    let truststore_is_pem = store_type("ssl.truststore.type") == "PEM";
    let keystore_is_pkcs12 = store_type("ssl.keystore.type") == "PKCS12";
    for entry in foreign {
        let name = entry.key.as_str();
        let kafka = match name {
            "ssl.truststore.location" if truststore_is_pem => Some("kafka.ssl.ca.location".to_owned()),
            "ssl.keystore.location" | "ssl.keystore.password" if keystore_is_pkcs12 => Some(format!("kafka.{name}")),
            _ => SAME.contains(&name).then(|| format!("kafka.{name}")),
        };
        match (kafka, JAVA_ONLY.iter().find(|java| java.name == name)) {
            (Some(key), _) => translated.entries.push(Entry { key, value: value(name, entry.value), origin: entry.origin }),
            (None, Some(java)) => translated.warnings.push(warning(&entry.origin, java)),
            (None, None) if !translated.unused.contains(&entry.key) => translated.unused.push(entry.key),
            (None, None) => {}
        }
    }
    translated
}

/// The Java client switches the check of host names off with an empty text, librdkafka with `none`.
fn value(name: &str, value: Value) -> Value {
    if name == "ssl.endpoint.identification.algorithm" && value.plain().trim().is_empty() {
        return Value::Text("none".to_owned());
    }
    value
}

fn warning(origin: &Origin, java: &JavaOnly) -> Warning {
    let text = format!("{origin}: {} is for the Java client only; write here {}", java.name, java.instead);
    Warning { text, unless: java.unless }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(settings: &[(&str, &str)]) -> Translated {
        translate(
            settings
                .iter()
                .map(|(key, value)| Entry {
                    key: (*key).to_owned(),
                    value: Value::Text((*value).to_owned()),
                    origin: Origin::Flag,
                })
                .collect(),
        )
    }

    fn entries(translated: &Translated) -> Vec<(&str, String)> {
        translated.entries.iter().map(|entry| (entry.key.as_str(), entry.value.plain())).collect()
    }

    #[test]
    fn what_librdkafka_knows_is_taken_over() {
        let result = translated(&[
            ("security.protocol", "SASL_SSL"),
            ("sasl.mechanism", "SCRAM-SHA-512"),
            ("ssl.endpoint.identification.algorithm", ""),
            ("ssl.truststore.type", "PEM"),
            ("ssl.truststore.location", "ca.pem"),
            ("ssl.keystore.type", "pkcs12"),
            ("ssl.keystore.location", "me.p12"),
            ("ssl.keystore.password", "x"),
        ]);
        assert_eq!(
            entries(&result),
            [
                ("kafka.security.protocol", "SASL_SSL".to_owned()),
                ("kafka.sasl.mechanism", "SCRAM-SHA-512".to_owned()),
                ("kafka.ssl.endpoint.identification.algorithm", "none".to_owned()),
                ("kafka.ssl.ca.location", "ca.pem".to_owned()),
                ("kafka.ssl.keystore.location", "me.p12".to_owned()),
                ("kafka.ssl.keystore.password", "x".to_owned()),
            ]
        );
        assert_eq!(result.warnings, []);
    }

    #[test]
    fn java_only_settings_are_answered_and_their_values_kept_out() {
        let result = translated(&[
            ("sasl.jaas.config", "required username=me password=hunter2;"),
            ("ssl.truststore.location", "trust.jks"),
            ("ssl.keystore.location", "key.jks"),
            ("ssl.keystore.password", "hunter2"),
        ]);
        assert_eq!(result.entries, []);
        let warnings: Vec<&str> = result.warnings.iter().map(|warning| warning.text.as_str()).collect();
        assert!(warnings[0].contains("sasl.jaas.config") && warnings[0].contains("kafka.sasl.password.file"), "{warnings:?}");
        assert_eq!(warnings.len(), 3);
        assert!(!warnings.concat().contains("hunter2"));
        assert_eq!(result.unused, ["ssl.keystore.password"]);
    }
}
