//! Keeps secrets out of everything that is shown.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

/// What stands in the place of a secret.
const REDACTED: &str = "[redacted]";

/// Parts of names of librdkafka and Java settings whose value nobody may see.
const SECRET_PARTS: [&str; 7] =
    ["password", "passphrase", "secret", "key.pem", "jaas.config", "oauthbearer.config", "keystore.key"];

/// Settings of librdkafka that name a file themselves; for any other `kafka.<property>.file` we read the file.
const NAMES_A_FILE: [&str; 3] = [
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.jwt.template.file",
];

/// The property that `kafka.<property>.file` stands for, given the name without `kafka.`.
pub fn read_from_file(property: &str) -> Option<&str> {
    if NAMES_A_FILE.contains(&property) { None } else { property.strip_suffix(".file") }
}

/// Whether the value of a key is a secret. The path of a file that holds one is not.
pub fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    !key.ends_with(".file") && SECRET_PARTS.iter().any(|part| key.contains(part))
}

/// A value as it may be shown: secrets replaced, and so are user name and password of a URL.
pub fn shown<'a>(key: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret(key) {
        return REDACTED.into();
    }
    without_user(value)
}

fn without_user(value: &str) -> Cow<'_, str> {
    match value.split_once("://") {
        Some((scheme, rest)) => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
            match authority.rfind('@').and_then(|at| rest.get(at..)) {
                Some(host) => format!("{scheme}://{REDACTED}{host}").into(),
                None => value.into(),
            }
        }
        None => value.into(),
    }
}

/// A secret that a user has to know; hides itself when it is printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Whether this is it. How long that takes depends on nothing but the secret's own length, so that it cannot be found out
    /// piece by piece.
    pub fn is(&self, given: &str) -> bool {
        let padded = given.bytes().chain(std::iter::repeat(0));
        let differing = self.0.bytes().zip(padded).fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
        differing == 0 && self.0.len() == given.len()
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Self(secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// A URL that may hold user and password; hides them when it is printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Url(String);

impl Url {
    /// The whole URL, to open it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Url {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_user(&self.0))
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Settings of librdkafka, by name; hides secrets when it is printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KafkaProperties(BTreeMap<String, String>);

impl fmt::Debug for KafkaProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(key, value)| (key, shown(key, value)))).finish()
    }
}

impl Deref for KafkaProperties {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<BTreeMap<String, String>> for KafkaProperties {
    fn from(properties: BTreeMap<String, String>) -> Self {
        Self(properties)
    }
}

impl FromIterator<(String, String)> for KafkaProperties {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(properties: I) -> Self {
        Self(properties.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a KafkaProperties {
    type Item = (&'a String, &'a String);
    type IntoIter = std::collections::btree_map::Iter<'a, String, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for secret in [
            "kafka.sasl.password",
            "kafka.ssl.key.password",
            "kafka.ssl.keystore.password",
            "kafka.ssl.key.pem",
            "kafka.sasl.oauthbearer.client.secret",
            "kafka.sasl.oauthbearer.config",
            "kafka.sasl.oauthbearer.assertion.private.key.passphrase",
            "sasl.jaas.config",
            "ssl.keystore.key",
        ] {
            assert!(is_secret(secret), "{secret}");
        }
        for open in ["kafka.sasl.username", "kafka.ssl.key.location", "kafka.sasl.password.file", "application.id"] {
            assert!(!is_secret(open), "{open}");
        }
    }

    #[test]
    fn a_url_is_shown_without_its_user() {
        for (url, expected) in [
            ("http://app:8080/topology", "http://app:8080/topology"),
            ("http://me:pa@ss@app/topology?x=@", "http://[redacted]@app/topology?x=@"),
            ("http://app/mail@example", "http://app/mail@example"),
        ] {
            assert_eq!(shown("topology.url", url), expected);
        }
    }

    #[test]
    fn debug_hides_secrets() {
        let properties: KafkaProperties = [("sasl.username", "me"), ("sasl.password", "hunter2")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into_iter()
            .collect();
        assert_eq!(format!("{properties:?}"), r#"{"sasl.password": "[redacted]", "sasl.username": "me"}"#);
    }

    #[test]
    fn a_secret_is_known_by_itself_only() {
        let secret = Secret::from("hunter2".to_owned());
        assert!(secret.is("hunter2"));
        for other in ["", "hunter", "hunter22", "hunter2\0", "Hunter2", "hunter3"] {
            assert!(!secret.is(other), "{other:?}");
        }
        assert_eq!(format!("{secret:?}"), "[redacted]");
    }

    #[test]
    fn only_our_own_file_suffix_is_read() {
        assert_eq!(read_from_file("sasl.password.file"), Some("sasl.password"));
        assert_eq!(read_from_file("sasl.oauthbearer.assertion.file"), None);
        assert_eq!(read_from_file("ssl.ca.location"), None);
    }
}
