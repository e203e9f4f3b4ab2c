//! Bytes of the coordinator topic: Samza's coordinator-stream layout (`CoordinatorStreamMessage`).
//!
//! The key is the compact JSON array `[1,"TYPE","KEY"]`, the value a JSON object whose `values` map text to text; no value deletes
//! the row. Compaction compares bytes, so a key counts only in the one form in which it is written here.

use std::collections::BTreeMap;

use serde::de::IntoDeserializer;
use serde::de::value::Error as WordError;
use serde::{Deserialize, Serialize};

use super::records::{
    Baseline, Change, CountedFailure, Fingerprint, HISTORY_SLOTS, HistoryRow, Intent, Key, Kind, Origin, Outcome, Row, Skipped,
    StandingIntent,
};
use crate::autoscaler::status::AssignorError;
use crate::kafka::port::TopicId;

const KEY_VERSION: u64 = 1;
/// Version of what is in `values`.
const VERSION: &str = "1";
const SOURCE: &str = "partition-autoscaler";
/// Third part of the key of a type that has one row.
const ONLY: &str = "current";

/// Topic names have at most 249 characters, member names and identities of mismatches likewise.
const MAX_KEY: usize = 1 << 10;
/// `max.message.bytes` of a topic, by default.
const MAX_VALUE: usize = 1 << 20;
/// Longest text for people.
const MAX_WORDS: usize = 1 << 12;

/// In the order in which Samza writes it.
#[derive(Serialize, Deserialize)]
struct Envelope {
    #[serde(default)]
    host: String,
    #[serde(default)]
    source: String,
    values: Values,
    #[serde(default)]
    username: String,
    #[serde(default)]
    timestamp: u64,
}

impl Change {
    /// Key and value as bytes.
    pub fn encode(&self, origin: &Origin) -> (Vec<u8>, Option<Vec<u8>>) {
        match self {
            Self::Delete(key) => (key.encode(), None),
            Self::Set(row) => {
                let envelope = Envelope {
                    host: origin.host.clone(),
                    source: SOURCE.to_owned(),
                    values: Values::of(row),
                    username: origin.username.clone(),
                    timestamp: origin.timestamp,
                };
                (row.key().encode(), Some(json(&envelope).into_bytes()))
            }
        }
    }

    /// A record, if it is one of this program.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Self, Skipped> {
        if key.len() > MAX_KEY || value.is_some_and(|value| value.len() > MAX_VALUE) {
            return Err(Skipped::TooLong);
        }
        let key = Key::decode(key)?;
        let Some(value) = value else { return Ok(Self::Delete(key)) };
        let envelope: Envelope = serde_json::from_slice(value).map_err(|_| Skipped::Malformed)?;
        let row = envelope.values.row(&key)?;
        // What a row says about itself has to be what its key says.
        if row.key() == key { Ok(Self::Set(row)) } else { Err(Skipped::Malformed) }
    }
}

impl Key {
    fn parts(&self) -> (&'static str, String) {
        match self {
            Self::Baseline(topic) => ("set-baseline", topic.clone()),
            Self::FollowsInput(topic) => ("set-follows-input", topic.clone()),
            Self::Intent(kind) => ("set-intent", word(kind)),
            Self::StandingIntent => ("set-standing-intent", ONLY.to_owned()),
            Self::Outcome(kind) => ("set-outcome", word(kind)),
            Self::AssignorError => ("set-assignor-error", ONLY.to_owned()),
            Self::Topology => ("set-topology-fingerprint", ONLY.to_owned()),
            Self::Flag => ("set-flag", ONLY.to_owned()),
            Self::MemberFlag(member) => ("set-member-flag", member.clone()),
            Self::State => ("set-state", ONLY.to_owned()),
            Self::Failure(mismatch) => ("set-failure", mismatch.clone()),
            Self::History(slot) => ("set-history", slot.to_string()),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let (name, key) = self.parts();
        json(&(KEY_VERSION, name, key)).into_bytes()
    }

    fn decode(bytes: &[u8]) -> Result<Self, Skipped> {
        let (version, name, text): (u64, String, String) = serde_json::from_slice(bytes).map_err(|_| Skipped::NotAKey)?;
        if version != KEY_VERSION {
            return Err(Skipped::UnknownVersion);
        }
        let key = match name.as_str() {
            "set-baseline" => Self::Baseline(text),
            "set-follows-input" => Self::FollowsInput(text),
            "set-intent" => Self::Intent(from_word(&text)?),
            "set-standing-intent" => Self::StandingIntent,
            "set-outcome" => Self::Outcome(from_word(&text)?),
            "set-assignor-error" => Self::AssignorError,
            "set-topology-fingerprint" => Self::Topology,
            "set-flag" => Self::Flag,
            "set-member-flag" => Self::MemberFlag(text),
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
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Values(BTreeMap<String, String>);

impl Values {
    fn of(row: &Row) -> Self {
        let values = Self::default().with("v", VERSION);
        match row {
            Row::Baseline(row) => {
                let values = values.with("partitions", row.partitions);
                match row.id {
                    Some(id) => values.with("topic-id", id),
                    None => values,
                }
            }
            Row::FollowsInput { .. } => values,
            Row::Intent(row) => values
                .with("epoch", row.epoch)
                .with("fingerprint", row.fingerprint)
                .with("targets", json(&row.targets))
                .with("topic-ids", json(&row.topic_ids)),
            Row::StandingIntent(row) => {
                values.with("epoch", row.epoch).with("fingerprint", row.fingerprint).with("member", &row.member)
            }
            Row::Outcome(row) => values
                .with("epoch", row.epoch)
                .with("result", word(&row.result))
                .with("errors", json(&row.errors))
                .with("took-ms", row.took_ms),
            Row::AssignorError { error, message } => {
                values.with("code", *error as u8).with("name", word(error)).with("message", words(message))
            }
            Row::Topology(fingerprint) => values.with("fingerprint", fingerprint),
            Row::Flag { enabled, since } | Row::MemberFlag { enabled, since, .. } => {
                values.with("enabled", enabled).with("since", since)
            }
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
                let id = self.0.get("topic-id").map(|id| topic_id(id)).transpose()?;
                Row::Baseline(Baseline { topic, partitions: self.parse("partitions")?, id })
            }
            Key::FollowsInput(topic) => Row::FollowsInput { topic },
            Key::Intent(kind) => Row::Intent(self.intent(kind)?),
            Key::StandingIntent => Row::StandingIntent(StandingIntent {
                epoch: self.parse("epoch")?,
                fingerprint: self.fingerprint()?,
                member: self.words("member")?,
            }),
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
            Key::MemberFlag(member) => Row::MemberFlag { member, enabled: self.parse("enabled")?, since: self.parse("since")? },
            Key::State => {
                Row::State { name: from_word(self.text("state")?)?, since: self.parse("since")?, details: self.words("details")? }
            }
            Key::Failure(mismatch) => {
                Row::Failure(CountedFailure { mismatch, number: self.parse("number")?, at: self.parse("at")? })
            }
            Key::History(_) => Row::History(HistoryRow {
                number: self.parse("number")?,
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

    fn text(&self, name: &str) -> Result<&str, Skipped> {
        self.0.get(name).map(String::as_str).ok_or(Skipped::Malformed)
    }

    fn words(&self, name: &str) -> Result<String, Skipped> {
        let text = self.text(name)?;
        if text.len() > MAX_WORDS { Err(Skipped::TooLong) } else { Ok(text.to_owned()) }
    }

    fn parse<T: std::str::FromStr>(&self, name: &str) -> Result<T, Skipped> {
        self.text(name)?.parse().map_err(|_| Skipped::Malformed)
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

/// Plain data with text as keys always has a JSON form.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The name of an enum's value, as serde gives it.
fn word(value: &impl Serialize) -> String {
    json(value).trim_matches('"').to_owned()
}

fn from_word<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Skipped> {
    let text = IntoDeserializer::<WordError>::into_deserializer(text);
    T::deserialize(text).map_err(|_| Skipped::Malformed)
}
