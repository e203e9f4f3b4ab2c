//! Bytes and messages.

use fastrand::Rng;
use partition_autoscaler::control::wire::{self, Message};
use partition_autoscaler::control::{Body, ControlMessage, WireFormat};
use serde_json::{Value, json};

use super::{cases, from_hex, message, watermark};

/// Vectors that we answer otherwise: the message instead, or `None` for an error.
fn deviation(case: &str) -> Option<Option<ControlMessage>> {
    let told = |task_count, body| Some(ControlMessage { task_name: Some("t".to_owned()), task_count, body });
    let mark = Body::Watermark { timestamp: 5 };
    match case {
        // Versions exist to be checked.
        "wm_unknown_version_accepted" => Some(None),
        // Null counts as absent; there is no version 0.
        "wm_version_null_is_0" => Some(told(None, mark)),
        // Leniency of Jackson, no layout that was ever written.
        "wm_timestamp_numeric_string_coerced" | "wm_trailing_tokens_ignored" => Some(None),
        // Null is no message.
        "wm_json_null_yields_null_message" | "eos_json_null" => Some(None),
        // Every historical layout is read.
        "wm_0_13_1_layout_rejected" => Some(told(Some(4), mark)),
        "eos_taskCount_rejected" => Some(told(Some(2), Body::EndOfStream { stream_id: None })),
        _ => None,
    }
}

#[test]
fn decodes_as_samza_does_but_for_the_deviations() {
    let (mut checked, mut deviations) = (0, 0);
    for case in cases("vectors/samza/intermediate_serde_decode.json") {
        let name = case["case"].as_str().unwrap();
        let Some(hex) = case["input"]["bytes_hex"].as_str() else { continue };
        let bytes = from_hex(hex);
        let mut user = Vec::new();
        let expected = match deviation(name) {
            Some(ours) => {
                deviations += 1;
                ours.map(Message::Control)
            }
            None => case["expected"].get("message").map(|expected| message(expected, &mut user)),
        };
        assert_eq!(wire::decode(&bytes).ok(), expected, "{name}");
        checked += 1;
    }
    assert_eq!((checked, deviations), (27, 8));
}

#[test]
fn encodes_as_samza_does() {
    let mut checked = 0;
    for case in cases("vectors/samza/intermediate_serde_encode.json") {
        let (name, input, expected) = (&case["case"], &case["input"]["message"], &case["expected"]);
        if input.is_null() {
            continue; // no message at all cannot be asked for
        }
        let mut user = Vec::new();
        let message = message(input, &mut user);
        let bytes = wire::encode(&message, WireFormat::Samza);
        assert_eq!(u64::from(bytes[0]), expected["type_byte"], "{name}");
        let same = match &message {
            Message::User(_) => bytes == from_hex(expected["bytes_hex"].as_str().unwrap()),
            Message::Control(_) => json_of(&bytes) == json_of(&from_hex(expected["bytes_hex"].as_str().unwrap())),
        };
        assert!(same, "{name}: {}", String::from_utf8_lossy(&bytes));
        assert_eq!(wire::decode(&bytes).unwrap(), message, "{name}");
        checked += 1;
    }
    assert_eq!(checked, 8);
}

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(&bytes[1..]).unwrap()
}

#[test]
fn samza_is_spared_what_it_refuses() {
    let task = |body| Message::Control(ControlMessage { task_name: Some("t".to_owned()), task_count: Some(3), body });
    let run_id = Some("r".to_owned());
    for (body, seed, samza) in [
        (
            Body::Watermark { timestamp: 5 },
            json!({"version": 1, "taskName": "t", "taskCount": 3, "timestamp": 5}),
            json!({"version": 1, "taskName": "t", "timestamp": 5}),
        ),
        (
            Body::EndOfStream { stream_id: Some("orders".to_owned()) },
            json!({"version": 1, "taskName": "t", "taskCount": 3, "streamId": "orders"}),
            json!({"version": 1, "taskName": "t"}),
        ),
        (
            Body::Drain { run_id },
            json!({"version": 1, "taskName": "t", "taskCount": 3, "runId": "r"}),
            json!({"version": 1, "taskName": "t", "runId": "r"}),
        ),
    ] {
        let message = task(body);
        assert_eq!(json_of(&wire::encode(&message, WireFormat::Seed)), seed);
        assert_eq!(json_of(&wire::encode(&message, WireFormat::Samza)), samza);
    }
}

#[test]
fn every_layout_is_read() {
    let count = |count| ControlMessage { task_count: count, ..watermark(Some("t"), 0, 5) };
    for (payload, expected) in [
        (r#"{"version":1,"taskName":"t","taskCount":4,"timestamp":5}"#, count(Some(4))),
        (r#"{"version":1,"task-name":"t","task-count":4,"timestamp":5}"#, count(Some(4))),
        (r#"{"version":1,"taskName":"t","task-name":"u","taskCount":4,"task-count":5,"timestamp":5}"#, count(Some(4))),
        (r#"{"taskName":null,"task-name":"t","taskCount":null,"timestamp":5}"#, count(None)),
        (r#" {"timestamp":5, "taskName":"t"} "#, count(None)),
        (r#"{"task-name":null,"task-count":0}"#, ControlMessage { task_count: Some(0), ..watermark(None, 0, 0) }),
    ] {
        let bytes = [b"\x01", payload.as_bytes()].concat();
        assert_eq!(wire::decode(&bytes).unwrap(), Message::Control(expected), "{payload}");
    }
    let bytes = br#"_{"stream-id":"orders"}"#.map(|byte| if byte == b'_' { 2 } else { byte });
    let Message::Control(ended) = wire::decode(&bytes).unwrap() else { panic!() };
    assert_eq!(ended.body, Body::EndOfStream { stream_id: Some("orders".to_owned()) });
}

#[test]
fn what_no_layout_has_is_an_error_that_says_so() {
    for (byte, payload, words) in [
        (1, r#"{"timestamp":5,"watermark":5}"#, "unknown field `watermark`"),
        (1, r#"{"runId":"r"}"#, "watermark messages have no runId"),
        (2, r#"{"timestamp":5}"#, "end-of-stream messages have no timestamp"),
        (3, r#"{"stream-id":"s"}"#, "drain messages have no streamId"),
        (1, r#"{"version":2}"#, "expected 1"),
        (1, r#"{"version":0}"#, "expected 1"),
        (1, r#"{"timestamp":5.9}"#, "floating point `5.9`"),
        (1, r#"{"timestamp":9223372036854775808}"#, "9223372036854775808"),
        (1, r#"{"taskCount":-1}"#, "-1"),
        (1, r#"{"taskName":7}"#, "expected a string"),
        (1, r#"["t"]"#, "watermark"),
        (2, r#"{"taskName":"t"}{}"#, "trailing characters"),
    ] {
        let error = wire::decode(&[&[byte], payload.as_bytes()].concat()).unwrap_err().to_string();
        assert!(error.contains(words), "{payload}: {error}");
    }
}

fn some(random: &mut Rng) -> String {
    (0..random.usize(..6)).map(|_| random.char(..)).collect()
}

fn any_message(random: &mut Rng) -> ControlMessage {
    let text = |random: &mut Rng| random.bool().then(|| some(random));
    let body = match random.u8(..3) {
        0 => Body::Watermark { timestamp: random.i64(..) },
        1 => Body::EndOfStream { stream_id: text(random) },
        _ => Body::Drain { run_id: text(random) },
    };
    ControlMessage { task_name: text(random), task_count: random.bool().then(|| random.u32(..)), body }
}

/// What either format holds comes back; and whatever becomes of the bytes, there is a message or an error.
#[test]
fn there_and_back_and_never_a_panic() {
    let mut random = Rng::with_seed(6);
    let mut refused = 0;
    for _ in 0..4000 {
        let message = any_message(&mut random);
        let bytes = wire::encode(&Message::Control(message.clone()), WireFormat::Seed);
        assert_eq!(wire::decode(&bytes).unwrap(), Message::Control(message.clone()));
        let body = match message.body.clone() {
            Body::EndOfStream { .. } => Body::EndOfStream { stream_id: None },
            body => body,
        };
        let less = Message::Control(ControlMessage { task_count: None, body, ..message });
        assert_eq!(wire::decode(&wire::encode(&less, WireFormat::Samza)).unwrap(), less);

        let mut mutated = bytes;
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..mutated.len());
            match random.u8(..3) {
                0 => mutated[at] = random.u8(..),
                1 => mutated.insert(at, random.u8(..)),
                _ => mutated.truncate(at.max(1)),
            }
        }
        let garbage: Vec<u8> = (0..random.usize(..40)).map(|_| random.u8(..)).collect();
        for bytes in [&mutated, &garbage] {
            match wire::decode(bytes) {
                Ok(Message::User(payload)) => assert_eq!((bytes[0], payload), (0, &bytes[1..])),
                Ok(message) => assert_eq!(wire::decode(&wire::encode(&message, WireFormat::Seed)).unwrap(), message),
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 4000, "{refused}");
}
