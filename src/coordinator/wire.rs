//! Bytes of the rows of this program, in the layout of [`envelope`]. Compaction compares bytes, so a key counts only in the one
//! form in which it is written here.

use std::collections::BTreeMap;

use serde::de::IntoDeserializer;
use serde::de::value::Error as WordError;
use serde::{Deserialize, Serialize};

use super::envelope::{self, json};
use super::records::{
    Baseline, Change, CountedFailure, Fingerprint, HISTORY_SLOTS, HistoryRow, Intent, Key, Kind, Origin, Outcome, Row, Skipped,
    StandingIntent,
};
use crate::autoscaler::status::AssignorError;
use crate::kafka::port::TopicId;

/// Version of what is in `values`.
const VERSION: &str = "1";
/// Third part of the key of a type that has one row.
const ONLY: &str = "current";

/// Topic names have at most 249 characters, member names and identities of mismatches likewise.
const MAX_KEY: usize = 1 << 10;
/// `max.message.bytes` of a topic, by default.
const MAX_VALUE: usize = 1 << 20;
/// Longest text for people.
const MAX_WORDS: usize = 1 << 12;

impl Change {
    /// Key and value as bytes.
    pub fn encode(&self, origin: &Origin) -> (Vec<u8>, Option<Vec<u8>>) {
        match self {
            Self::Delete(key) => (key.encode(), None),
            Self::Set(row) => (row.key().encode(), Some(envelope::value(Values::of(row).0, origin))),
        }
    }

    /// A record, if it is one of this program.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Self, Skipped> {
        if key.len() > MAX_KEY || value.is_some_and(|value| value.len() > MAX_VALUE) {
            return Err(Skipped::TooLong);
        }
        let key = Key::decode(key)?;
        let Some(value) = value else { return Ok(Self::Delete(key)) };
        let row = envelope::values(value).map(Values).map_err(|_| Skipped::Malformed)?.row(&key)?;
        // What a row says about itself has to be what its key says.
        if row.key() == key { Ok(Self::Set(row)) } else { Err(Skipped::Malformed) }
    }
}

impl Key {
    fn parts(&self) -> (&'static str, String) {
        match self {
            Self::Baseline(topic) => ("set-baseline", topic.clone()),
            Self::FollowsInput(topic) => ("set-follows-input", topic.clone()),
            Self::RepartitionCount(topic) => ("set-repartition-count", topic.clone()),
            Self::Intent(kind) => ("set-intent", word(kind)),
            Self::StandingIntent => ("set-standing-intent", ONLY.to_owned()),
            Self::TakeOver => ("set-take-over", ONLY.to_owned()),
            Self::Outcome(kind) => ("set-outcome", word(kind)),
            Self::AssignorError => ("set-assignor-error", ONLY.to_owned()),
            Self::Topology => ("set-topology-fingerprint", ONLY.to_owned()),
            Self::Flag => ("set-flag", ONLY.to_owned()),
            Self::State => ("set-state", ONLY.to_owned()),
            Self::Failure(mismatch) => ("set-failure", mismatch.clone()),
            Self::History(slot) => ("set-history", slot.to_string()),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let (name, key) = self.parts();
        envelope::key(name, &key)
    }

    fn decode(bytes: &[u8]) -> Result<Self, Skipped> {
        let (version, name, text) = envelope::parse_key(bytes).map_err(|_| Skipped::NotAKey)?;
        if version != envelope::KEY_VERSION {
            return Err(Skipped::UnknownVersion);
        }
        let key = match name.as_str() {
            "set-baseline" => Self::Baseline(text),
            "set-follows-input" => Self::FollowsInput(text),
            "set-repartition-count" => Self::RepartitionCount(text),
            "set-intent" => Self::Intent(from_word(&text)?),
            "set-standing-intent" => Self::StandingIntent,
            "set-take-over" => Self::TakeOver,
            "set-outcome" => Self::Outcome(from_word(&text)?),
            "set-assignor-error" => Self::AssignorError,
            "set-topology-fingerprint" => Self::Topology,
            "set-flag" => Self::Flag,
            "set-state" => Self::State,
            "set-failure" => Self::Failure(text),
            "set-history" => {
                let slot = text.parse().ok().filter(|slot| *slot < HISTORY_SLOTS);
                Self::History(slot.ok_or(Skipped::Malformed)?)
            }
            _ => return Err(Skipped::UnknownType),
        };
        if key.encode() == bytes { Ok(key) } else { Err(Skipped::NotAKey) }
    }
}

/// What a row says, as text.
#[derive(Default)]
struct Values(BTreeMap<String, String>);

impl Values {
    fn of(row: &Row) -> Self {
        let values = Self::default().with("v", VERSION);
        match row {
            Row::Baseline(Baseline { partitions, id, .. }) | Row::RepartitionCount { partitions, id, .. } => {
                values.with("partitions", partitions).with_id(*id)
            }
            Row::FollowsInput { id, .. } => values.with_id(*id),
            Row::Intent(row) => values
                .with("epoch", row.epoch)
                .with("fingerprint", row.fingerprint)
                .with("targets", json(&row.targets))
                .with("topic-ids", json(&row.topic_ids)),
            Row::StandingIntent(row) => {
                values.with("epoch", row.epoch).with("fingerprint", row.fingerprint).with("member", &row.member)
            }
            Row::TakeOver { member } => values.with("member", member),
            Row::Outcome(row) => values
                .with("epoch", row.epoch)
                .with("result", word(&row.result))
                .with("errors", json(&row.errors))
                .with("took-ms", row.took_ms),
            Row::AssignorError { error, message } => {
                values.with("code", *error as u8).with("name", word(error)).with("message", words(message))
            }
            Row::Topology(fingerprint) => values.with("fingerprint", fingerprint),
            Row::Flag { enabled, since } => values.with("enabled", enabled).with("since", since),
            Row::State { name, since, details } => {
                values.with("state", word(name)).with("since", since).with("details", words(details))
            }
            Row::Failure(row) => values.with("number", row.number).with("at", row.at),
            Row::History(row) => values
                .with("number", row.number)
                .with("at", row.at)
                .with("event", words(&row.event))
                .with("message", words(&row.message)),
        }
    }

    fn row(&self, key: &Key) -> Result<Row, Skipped> {
        if self.text("v")? != VERSION {
            return Err(Skipped::UnknownVersion);
        }
        Ok(match key.clone() {
            Key::Baseline(topic) => {
                Row::Baseline(Baseline { topic, partitions: self.parse("partitions")?, id: self.topic_id()? })
            }
            Key::RepartitionCount(topic) => {
                Row::RepartitionCount { topic, partitions: self.parse("partitions")?, id: self.topic_id()? }
            }
            Key::FollowsInput(topic) => Row::FollowsInput { topic, id: self.topic_id()? },
            Key::Intent(kind) => Row::Intent(self.intent(kind)?),
            Key::StandingIntent => Row::StandingIntent(StandingIntent {
                epoch: self.parse("epoch")?,
                fingerprint: self.fingerprint()?,
                member: self.words("member")?,
            }),
            Key::TakeOver => Row::TakeOver { member: self.words("member")? },
            Key::Outcome(kind) => Row::Outcome(Outcome {
                kind,
                epoch: self.parse("epoch")?,
                result: from_word(self.text("result")?)?,
                errors: serde_json::from_str(self.text("errors")?).map_err(|_| Skipped::Malformed)?,
                took_ms: self.parse("took-ms")?,
            }),
            // The code decides; the name is for people.
            Key::AssignorError => {
                Row::AssignorError { error: assignor_error(self.parse("code")?)?, message: self.words("message")? }
            }
            Key::Topology => Row::Topology(self.fingerprint()?),
            Key::Flag => Row::Flag { enabled: self.parse("enabled")?, since: self.parse("since")? },
            Key::State => {
                Row::State { name: from_word(self.text("state")?)?, since: self.parse("since")?, details: self.words("details")? }
            }
            Key::Failure(mismatch) => Row::Failure(CountedFailure { mismatch, number: self.number()?, at: self.parse("at")? }),
            Key::History(_) => Row::History(HistoryRow {
                number: self.number()?,
                at: self.parse("at")?,
                event: self.words("event")?,
                message: self.words("message")?,
            }),
        })
    }

    fn intent(&self, kind: Kind) -> Result<Intent, Skipped> {
        let ids: BTreeMap<String, String> = serde_json::from_str(self.text("topic-ids")?).map_err(|_| Skipped::Malformed)?;
        let ids = ids.into_iter().map(|(topic, id)| Ok((topic, topic_id(&id)?)));
        Ok(Intent {
            kind,
            epoch: self.parse("epoch")?,
            fingerprint: self.fingerprint()?,
            targets: serde_json::from_str(self.text("targets")?).map_err(|_| Skipped::Malformed)?,
            topic_ids: ids.collect::<Result<_, Skipped>>()?,
        })
    }

    fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.0.insert(name.to_owned(), value.to_string());
        self
    }

    fn with_id(self, id: Option<TopicId>) -> Self {
        match id {
            Some(id) => self.with("topic-id", id),
            None => self,
        }
    }

    fn text(&self, name: &str) -> Result<&str, Skipped> {
        self.0.get(name).map(String::as_str).ok_or(Skipped::Malformed)
    }

    fn words(&self, name: &str) -> Result<String, Skipped> {
        let text = self.text(name)?;
        if text.len() > MAX_WORDS {
            return Err(Skipped::TooLong);
        }
        // They are shown on terminals and in logs, where a line is a line.
        Ok(text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect())
    }

    /// A number that counts on: one that leaves it no room is nobody's.
    fn number(&self) -> Result<u64, Skipped> {
        const MOST: u64 = 1 << 53;
        self.parse("number").and_then(|number| if number <= MOST { Ok(number) } else { Err(Skipped::Malformed) })
    }

    fn parse<T: std::str::FromStr>(&self, name: &str) -> Result<T, Skipped> {
        self.text(name)?.parse().map_err(|_| Skipped::Malformed)
    }

    fn topic_id(&self) -> Result<Option<TopicId>, Skipped> {
        self.0.get("topic-id").map(|id| topic_id(id)).transpose()
    }

    fn fingerprint(&self) -> Result<Fingerprint, Skipped> {
        let hex = hex_digits(self.text("fingerprint")?, 16)?;
        u64::from_str_radix(hex, 16).map(Fingerprint).map_err(|_| Skipped::Malformed)
    }
}

fn topic_id(text: &str) -> Result<TopicId, Skipped> {
    u128::from_str_radix(hex_digits(text, 32)?, 16).map(TopicId).map_err(|_| Skipped::Malformed)
}

fn hex_digits(text: &str, length: usize) -> Result<&str, Skipped> {
    let fits = text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then_some(text).ok_or(Skipped::Malformed)
}

fn assignor_error(code: u8) -> Result<AssignorError, Skipped> {
    use AssignorError::{AssignmentError, IncompleteSourceTopicMetadata, None, ShutdownRequested, VersionProbing};
    let all = [None, IncompleteSourceTopicMetadata, VersionProbing, AssignmentError, ShutdownRequested];
    all.into_iter().find(|error| *error as u8 == code).ok_or(Skipped::Malformed)
}

/// As much of a text for people as is kept.
fn words(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_WORDS)).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// The name of an enum's value, as serde gives it.
fn word(value: &impl Serialize) -> String {
    json(value).trim_matches('"').to_owned()
}

fn from_word<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Skipped> {
    let text = IntoDeserializer::<WordError>::into_deserializer(text);
    T::deserialize(text).map_err(|_| Skipped::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscaler::status::StateName;
    use crate::coordinator::records::Verdict;
    use crate::kafka::port::TopicError;

    const ORIGIN: fn() -> Origin = || Origin { host: "pod-1".into(), username: "app".into(), timestamp: 1_700_000_000_000 };

    /// Every type once, with the bytes that every version of the program has to write and to read.
    fn golden() -> Vec<(Row, &'static str, &'static str)> {
        let error = TopicError { code: 29, name: "TOPIC_AUTHORIZATION_FAILED".into(), message: "no".into() };
        let targets = BTreeMap::from([("orders".to_owned(), 12), ("shop-totals-changelog".to_owned(), 12)]);
        vec![
            (
                Row::Baseline(Baseline { topic: "orders".into(), partitions: 3, id: Some(TopicId(0xab)) }),
                r#"[1,"set-baseline","orders"]"#,
                r#"{"partitions":"3","topic-id":"000000000000000000000000000000ab","v":"1"}"#,
            ),
            (
                Row::Baseline(Baseline { topic: "old".into(), partitions: 3, id: None }),
                r#"[1,"set-baseline","old"]"#,
                r#"{"partitions":"3","v":"1"}"#,
            ),
            (
                Row::RepartitionCount { topic: "shop-r".into(), partitions: 3, id: Some(TopicId(1)) },
                r#"[1,"set-repartition-count","shop-r"]"#,
                r#"{"partitions":"3","topic-id":"00000000000000000000000000000001","v":"1"}"#,
            ),
            (
                Row::FollowsInput { topic: "shop-r".into(), id: Some(TopicId(1)) },
                r#"[1,"set-follows-input","shop-r"]"#,
                r#"{"topic-id":"00000000000000000000000000000001","v":"1"}"#,
            ),
            (
                Row::Intent(Intent {
                    kind: Kind::Operator,
                    epoch: 7,
                    fingerprint: Fingerprint(0xfe),
                    targets,
                    topic_ids: BTreeMap::from([("orders".to_owned(), TopicId(1))]),
                }),
                r#"[1,"set-intent","operator"]"#,
                r#"{"epoch":"7","fingerprint":"00000000000000fe","targets":"{\"orders\":12,\"shop-totals-changelog\":12}","topic-ids":"{\"orders\":\"00000000000000000000000000000001\"}","v":"1"}"#,
            ),
            (
                Row::StandingIntent(StandingIntent { epoch: 8, fingerprint: Fingerprint(1), member: "pod-1".into() }),
                r#"[1,"set-standing-intent","current"]"#,
                r#"{"epoch":"8","fingerprint":"0000000000000001","member":"pod-1","v":"1"}"#,
            ),
            (Row::TakeOver { member: "pod-1".into() }, r#"[1,"set-take-over","current"]"#, r#"{"member":"pod-1","v":"1"}"#),
            (
                Row::Outcome(Outcome {
                    kind: Kind::Reaction,
                    epoch: 8,
                    result: Verdict::Failed,
                    errors: BTreeMap::from([("orders".to_owned(), error)]),
                    took_ms: 250,
                }),
                r#"[1,"set-outcome","reaction"]"#,
                r#"{"epoch":"8","errors":"{\"orders\":{\"code\":29,\"name\":\"TOPIC_AUTHORIZATION_FAILED\",\"message\":\"no\"}}","result":"failed","took-ms":"250","v":"1"}"#,
            ),
            (
                Row::AssignorError { error: AssignorError::IncompleteSourceTopicMetadata, message: "off".into() },
                r#"[1,"set-assignor-error","current"]"#,
                r#"{"code":"1","message":"off","name":"INCOMPLETE_SOURCE_TOPIC_METADATA","v":"1"}"#,
            ),
            (
                Row::Topology(Fingerprint(u64::MAX)),
                r#"[1,"set-topology-fingerprint","current"]"#,
                r#"{"fingerprint":"ffffffffffffffff","v":"1"}"#,
            ),
            (Row::Flag { enabled: true, since: 5 }, r#"[1,"set-flag","current"]"#, r#"{"enabled":"true","since":"5","v":"1"}"#),
            (
                Row::State { name: StateName::Steady, since: 9, details: "everything fits".into() },
                r#"[1,"set-state","current"]"#,
                r#"{"details":"everything fits","since":"9","state":"Steady","v":"1"}"#,
            ),
            (
                Row::Failure(CountedFailure { mismatch: "\"orders\"=12".into(), number: 2, at: 10 }),
                r#"[1,"set-failure","\"orders\"=12"]"#,
                r#"{"at":"10","number":"2","v":"1"}"#,
            ),
            (
                Row::History(HistoryRow { number: 101, at: 11, event: "expanded".into(), message: "grün".into() }),
                r#"[1,"set-history","1"]"#,
                r#"{"at":"11","event":"expanded","message":"grün","number":"101","v":"1"}"#,
            ),
        ]
    }

    fn value(values: &str) -> String {
        format!(
            r#"{{"host":"pod-1","source":"partition-autoscaler","values":{values},"username":"app","timestamp":1700000000000}}"#
        )
    }

    #[test]
    fn every_row_has_its_bytes_and_comes_back() {
        for (row, key, values) in golden() {
            let (key_bytes, value_bytes) = Change::Set(row.clone()).encode(&ORIGIN());
            let value_bytes = value_bytes.unwrap();
            assert_eq!(String::from_utf8(key_bytes.clone()).unwrap(), key);
            assert_eq!(String::from_utf8(value_bytes.clone()).unwrap(), value(values));
            assert_eq!(Change::decode(&key_bytes, Some(&value_bytes)), Ok(Change::Set(row.clone())));
            let delete = Change::Delete(row.key());
            assert_eq!(delete.encode(&ORIGIN()), (key_bytes.clone(), None));
            assert_eq!(Change::decode(&key_bytes, None), Ok(delete));
        }
    }

    #[test]
    fn the_envelope_may_be_anyones() {
        let foreign = br#"{"timestamp":1,"extra":null,"values":{"v":"1","later":"field"}}"#;
        let row = Row::FollowsInput { topic: "t".into(), id: None };
        assert_eq!(Change::decode(br#"[1,"set-follows-input","t"]"#, Some(foreign)), Ok(Change::Set(row)));
    }

    #[test]
    fn what_is_not_ours_is_skipped_with_a_reason() {
        let flag = r#"[1,"set-flag","current"]"#;
        let long = "x".repeat(MAX_KEY);
        let ok = r#"{"enabled":"true","since":"5","v":"1"}"#;
        for (key, values, skipped) in [
            ("", ok, Skipped::NotAKey),
            ("\u{0}\u{1}", ok, Skipped::NotAKey),
            ("null", ok, Skipped::NotAKey),
            (r#"[1,"set-flag"]"#, ok, Skipped::NotAKey),
            (r#"[1,"set-flag","current",1]"#, ok, Skipped::NotAKey),
            (r#"[1, "set-flag", "current"]"#, ok, Skipped::NotAKey),
            (r#"[1,"set-flag","other"]"#, ok, Skipped::NotAKey),
            (r#"[1,"set-history","01"]"#, ok, Skipped::NotAKey),
            (r#"[1,"set-history","100"]"#, ok, Skipped::Malformed),
            (r#"[1,"set-history","-1"]"#, ok, Skipped::Malformed),
            (r#"[1,"set-intent","nobody"]"#, ok, Skipped::Malformed),
            (r#"[2,"set-flag","current"]"#, ok, Skipped::UnknownVersion),
            (r#"[1,"set-config","current"]"#, ok, Skipped::UnknownType),
            (flag, r#"{"enabled":"true","since":"5","v":"2"}"#, Skipped::UnknownVersion),
            (flag, r#"{"enabled":"true","since":"5"}"#, Skipped::Malformed),
            (flag, r#"{"enabled":"yes","since":"5","v":"1"}"#, Skipped::Malformed),
            (flag, r#"{"enabled":true,"since":5,"v":"1"}"#, Skipped::Malformed),
            (flag, "7", Skipped::Malformed),
            (r#"[1,"set-history","2"]"#, r#"{"at":"1","event":"","message":"","number":"3","v":"1"}"#, Skipped::Malformed),
            (
                r#"[1,"set-history","2"]"#,
                r#"{"at":"1","event":"","message":"","number":"9999999999999902","v":"1"}"#,
                Skipped::Malformed,
            ),
            (r#"[1,"set-failure","m"]"#, r#"{"at":"1","number":"18446744073709551615","v":"1"}"#, Skipped::Malformed),
            (r#"[1,"set-assignor-error","current"]"#, r#"{"code":"5","message":"","v":"1"}"#, Skipped::Malformed),
            (r#"[1,"set-baseline","t"]"#, r#"{"partitions":"-1","v":"1"}"#, Skipped::Malformed),
            (r#"[1,"set-baseline","t"]"#, r#"{"partitions":"1","topic-id":"+b","v":"1"}"#, Skipped::Malformed),
            (long.as_str(), ok, Skipped::TooLong),
        ] {
            let key = if key == long { format!(r#"[1,"set-baseline","{long}"]"#) } else { key.to_owned() };
            assert_eq!(Change::decode(key.as_bytes(), Some(value(values).as_bytes())), Err(skipped), "{key} {values}");
        }
        let endless = value(&format!(r#"{{"v":"{}"}}"#, "x".repeat(MAX_VALUE)));
        assert_eq!(Change::decode(flag.as_bytes(), Some(endless.as_bytes())), Err(Skipped::TooLong));
        assert_eq!(Change::decode(flag.as_bytes(), Some(b"")), Err(Skipped::Malformed), "empty is not null");
        assert_eq!(Change::decode(flag.as_bytes(), Some(&[0xff, 0xfe])), Err(Skipped::Malformed));
    }

    #[test]
    fn words_are_cut_at_a_character() {
        let message = "ü".repeat(MAX_WORDS);
        let row = Row::AssignorError { error: AssignorError::None, message };
        let (key, value) = Change::Set(row).encode(&ORIGIN());
        let Ok(Change::Set(Row::AssignorError { message, .. })) = Change::decode(&key, value.as_deref()) else { panic!() };
        assert_eq!(message, "ü".repeat(MAX_WORDS / 2));
    }

    #[test]
    fn words_are_one_line_without_control_characters() {
        let row = |message: &str| Row::AssignorError { error: AssignorError::None, message: message.to_owned() };
        let (key, value) = Change::Set(row("a\nERROR b\u{1b}[31m")).encode(&ORIGIN());
        assert_eq!(Change::decode(&key, value.as_deref()), Ok(Change::Set(row("a ERROR b [31m"))));
    }

    #[test]
    fn fingerprints_are_the_same_in_every_version() {
        assert_eq!(Fingerprint::of([]).to_string(), "cbf29ce484222325");
        assert_eq!(Fingerprint::of(["a", "b"]), Fingerprint::of(["a", "b"]));
        assert_ne!(Fingerprint::of(["a", "b"]), Fingerprint::of(["ab"]));
        assert_ne!(Fingerprint::of(["a", "b"]), Fingerprint::of(["b", "a"]));
    }
}
