//! The state machine under the faults that people met: every case of `tests/data/cases/{race,quota,acl}.json` that is about the
//! machine, told to it as observations and replies.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::collections::BTreeMap;
use std::time::Duration;

use partition_autoscaler::autoscaler::machine::{Machine, Rules};
use partition_autoscaler::autoscaler::state::{Command, Event, State};
use partition_autoscaler::autoscaler::status::{AssignorError, StateName};
use partition_autoscaler::config::settings::StaticCheck;
use partition_autoscaler::kafka::port::{ErrorClass, KafkaError, Observation, Reply, TopicError, TopicId, TopicState};
use partition_autoscaler::plan::partitioner::Keys;
use partition_autoscaler::plan::{Code, Planner, Snapshot};
use serde_json::Value;

fn rules(timeout: Duration) -> Rules {
    Rules {
        enabled: true,
        timeout,
        poll_interval: Duration::from_millis(500),
        max_new_partitions: 5000,
        static_check: StaticCheck::Warn,
    }
}

/// An application "shop" whose input "orders" feeds the given internal topics, one after another.
fn planner(repartition: &[String], changelogs: &[String]) -> Planner {
    let raw = |name: &String| name.trim_start_matches("shop-").to_owned();
    let stores: Vec<String> = changelogs.iter().map(|name| raw(name).trim_end_matches("-changelog").to_owned()).collect();
    let repartition: Vec<String> = repartition.iter().map(raw).collect();
    let mut sources = repartition.clone();
    sources.push("orders".to_owned());
    let snapshot = serde_json::json!({
        "application_id": "shop",
        "topology": {
            "subtopologies": [
                {"id": 0, "sources": ["orders"], "sinks": repartition, "stores": []},
                {"id": 1, "sources": sources, "sinks": [], "stores": stores}],
            "repartition_topics": repartition, "copartition_groups": [], "global_topics": [], "pinned": []},
        "partitions": {}
    });
    let snapshot: Snapshot = serde_json::from_value(snapshot).unwrap();
    Planner::new(&snapshot).unwrap()
}

fn observation(counts: &BTreeMap<String, u32>, id: u128) -> Observation {
    let state = |partitions| TopicState::Present { id: Some(TopicId(id)), partitions };
    counts.iter().map(|(topic, n)| (topic.clone(), state(*n))).collect()
}

/// Names of the case -> names that Kafka Streams would give.
fn full_name(name: &str) -> String {
    let name = name.trim_start_matches("shop-");
    if name.ends_with("-repartition") || name.ends_with("-changelog") {
        format!("shop-{name}")
    } else {
        format!("shop-{name}-changelog")
    }
}

fn error(code: i16, name: &str, message: &str) -> TopicError {
    TopicError { code, name: name.to_owned(), message: message.to_owned() }
}

/// Kafka's answer for one topic, as the case writes it.
fn answer(said: &Value) -> Result<(), TopicError> {
    let (name, message) = match said {
        Value::String(name) => (name.as_str(), ""),
        said => (said["code"].as_str().unwrap(), said["message"].as_str().unwrap()),
    };
    let code = match name {
        "NONE" => return Ok(()),
        "REQUEST_TIMED_OUT" => 7,
        "TOPIC_AUTHORIZATION_FAILED" => 29,
        "INVALID_PARTITIONS" => 37,
        "NOT_CONTROLLER" => 41,
        "POLICY_VIOLATION" => 44,
        "REASSIGNMENT_IN_PROGRESS" => 60,
        "THROTTLING_QUOTA_EXCEEDED" => 89,
        other => panic!("no code for {other}"),
    };
    Err(error(code, name, message))
}

struct Played {
    machine: Machine,
    requests: Vec<Vec<String>>,
    request_times: Vec<Duration>,
    events: Vec<Event>,
}

/// Lets "orders" grow, and plays the replies and observations of a case until the machine comes to rest or `until` has passed.
fn play(input: &Value, until: Duration) -> Played {
    let plan = input["plan"].as_object();
    let reply_names = || input["replies"][0].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let names: Vec<String> = match plan {
        Some(plan) => plan.keys().cloned().collect(),
        None => reply_names().collect(),
    };
    let target = |name: &String| plan.map_or(6, |plan| u32::try_from(plan[name]["to"].as_u64().unwrap()).unwrap());
    let full: Vec<String> = names.iter().map(|name| full_name(name)).collect();
    let (repartition, changelogs): (Vec<_>, Vec<_>) = full.iter().cloned().partition(|name| name.ends_with("-repartition"));
    let timeout = Duration::from_millis(input["timeout_ms"].as_u64().unwrap_or(900_000));
    let mut machine = Machine::new(rules(timeout), planner(&repartition, &changelogs), BTreeMap::new());

    let mut counts: BTreeMap<String, u32> = full.iter().map(|name| (name.clone(), 3)).collect();
    counts.insert("orders".to_owned(), 3);
    let mut now = Duration::from_secs(1);
    machine.observed(now, &observation(&counts, 1));
    assert_eq!(machine.state(), &State::Steady);
    counts.insert("orders".to_owned(), 6);
    now += Duration::from_millis(500);
    machine.observed(now, &observation(&counts, 1));

    let mut played = Played { machine, requests: Vec::new(), request_times: Vec::new(), events: Vec::new() };
    let mut replies = 0;
    while now < until && matches!(played.machine.state(), State::Expanding(_)) {
        match played.machine.command(now) {
            Command::Expand { targets } => {
                played.requests.push(targets.keys().cloned().collect());
                played.request_times.push(now);
                let said = &input["replies"][replies.min(input["replies"].as_array().map_or(0, |all| all.len() - 1))]; // the last one stays
                let everywhere = if input["replies"].is_string() {
                    Some(Value::from("THROTTLING_QUOTA_EXCEEDED"))
                } else {
                    said.get("*").cloned()
                };
                let topics = targets.keys().map(|topic| {
                    let own = names.iter().find(|name| full_name(name) == *topic).and_then(|name| said.get(name));
                    (topic.clone(), own.or(everywhere.as_ref()).map_or(Ok(()), answer))
                });
                let topics: BTreeMap<_, _> = topics.collect();
                let throttle = said["throttle_time_ms"].as_u64().unwrap_or(if input["replies"].is_string() { 500 } else { 0 });
                if input.get("observed").is_none() {
                    for (topic, answer) in &topics {
                        if answer.is_ok() {
                            counts.insert(topic.clone(), targets[topic]);
                        }
                    }
                }
                replies += 1;
                now += Duration::from_millis(20);
                played.machine.replied(now, &Ok(Reply { topics, throttle: Duration::from_millis(throttle) }), 0.5);
            }
            Command::Observe { at } => {
                now = now.max(at) + Duration::from_millis(2);
                if let Some(observed) = input["observed"].as_array() {
                    // each request brings the next observation of the case into sight; the last one stays
                    let shown = played.requests.len().saturating_sub(1).min(observed.len() - 1);
                    let shown = observed[shown].as_object().unwrap();
                    counts.extend(shown.iter().map(|(name, n)| (full_name(name), u32::try_from(n.as_u64().unwrap()).unwrap())));
                }
                played.machine.observed(now, &observation(&counts, 1));
            }
        }
        played.events.extend(played.machine.take_events());
    }
    assert!(names.iter().all(|name| target(name) == 6), "the cases grow to 6");
    played
}

fn cases(kind: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/cases/{kind}.json", env!("CARGO_MANIFEST_DIR"));
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    file["cases"].as_array().unwrap().clone()
}

fn case(kind: &str, id: &str) -> Value {
    cases(kind).into_iter().find(|case| case["id"] == id).unwrap()
}

#[test]
fn every_case_with_a_plan_and_replies() {
    let mut seen = Vec::new();
    for case in ["race", "quota", "acl"].iter().flat_map(|kind| cases(kind)) {
        let (id, input, expected) = (case["id"].as_str().unwrap(), &case["input"], &case["expected"]);
        if input.get("plan").is_none() || input.get("replies").is_none() || input.get("leadership_lost_after_request").is_some() {
            continue;
        }
        let until = Duration::from_millis(input["timeout_ms"].as_u64().unwrap_or(9_000).min(9_000) + 8_000);
        let played = play(input, until);
        let state = expected["state"].as_str().unwrap_or("Settling");
        assert_eq!(format!("{:?}", played.machine.state().name()), state, "{id}: {:?}", played.machine.state());
        if let Some(requests) = expected["requests"].as_array() {
            let wanted = requests.iter().map(|topics| {
                let mut topics: Vec<String> =
                    topics.as_array().unwrap().iter().map(|name| full_name(name.as_str().unwrap())).collect();
                topics.sort();
                topics
            });
            assert_eq!(played.requests, wanted.collect::<Vec<_>>(), "{id}");
        }
        if let Some(most) = expected["requests_max"].as_u64() {
            assert!(played.requests.len() as u64 <= most, "{id}: {} requests", played.requests.len());
        }
        if let Some(failures) = expected["failures"].as_u64() {
            assert_eq!(played.machine.failures(), failures, "{id}");
        }
        if let Some(code) = expected.get("code") {
            let decision = played.machine.state().decision().unwrap();
            assert_eq!(serde_json::to_value(decision.code).unwrap(), *code, "{id}");
        }
        if let Some(least) = expected["wait_before_second_ms_min"].as_u64() {
            let wait = played.request_times[1] - played.request_times[0];
            assert!(wait >= Duration::from_millis(least), "{id}: second request after {wait:?}");
        }
        if let Some(outstanding) = expected["outstanding"].as_array() {
            let State::Expanding(expansion) = played.machine.state() else { panic!("{id}: not expanding") };
            let left: Vec<_> = expansion.decision.changes.iter().map(|change| change.topic.clone()).collect();
            let wanted: Vec<_> = outstanding.iter().map(|name| full_name(name.as_str().unwrap())).collect();
            assert_eq!(left, wanted, "{id}");
            assert_eq!(expansion.errors.keys().cloned().collect::<Vec<_>>(), wanted, "{id}");
        }
        for mention in expected["mentions"].as_array().into_iter().flatten().filter(|_| expected["state"] == "Blocked") {
            let text = serde_json::to_string(played.machine.state().decision().unwrap()).unwrap();
            assert!(text.contains(mention.as_str().unwrap()), "{id}: {text} does not mention {mention}");
        }
        seen.push(id.to_owned());
    }
    assert_eq!(seen, ["X01", "X02", "X04", "X05", "X08", "X10", "X15", "Q01", "Q05", "A04"]);
}

#[test]
fn a_missing_right_is_not_retried_fast_and_is_told_once() {
    let input = &case("acl", "A01")["input"];
    let always: Value = serde_json::json!({"replies": [input["replies"][0], input["replies"][0], input["replies"][0]]});
    let played = play(&always, Duration::from_secs(25));
    assert_eq!(played.machine.failures(), 0);
    assert_eq!(played.request_times.len(), 3, "first at once, then at the ceiling of the back-off");
    let refused =
        played.events.iter().filter(|event| matches!(event, Event::Refused { topic, .. } if topic == "shop-k-repartition"));
    assert_eq!(refused.count(), 1);
}

#[test]
fn a_policy_of_the_broker_is_quoted() {
    let input = &case("acl", "A08")["input"];
    let played = play(input, Duration::from_secs(3));
    let State::Expanding(expansion) = played.machine.state() else { panic!("{:?}", played.machine.state()) };
    assert_eq!(expansion.errors["shop-k-repartition"].message, "max 12 partitions");
}

/// A machine at rest: orders 3, everything else 3.
fn steady(timeout: Duration) -> (Machine, BTreeMap<String, u32>, Duration) {
    let repartition = "shop-k-repartition".to_owned();
    let mut machine = Machine::new(
        rules(timeout),
        planner(std::slice::from_ref(&repartition), &["shop-st-changelog".to_owned()]),
        BTreeMap::new(),
    );
    let counts: BTreeMap<String, u32> =
        [("orders", 3), ("shop-k-repartition", 3), ("shop-st-changelog", 3)].map(|(t, n)| (t.to_owned(), n)).into();
    let now = Duration::from_secs(1);
    machine.observed(now, &observation(&counts, 1));
    machine.take_events();
    (machine, counts, now)
}

#[test]
fn one_unknown_answer_of_three_is_nothing() {
    let (mut machine, counts, now) = steady(Duration::from_secs(900));
    let mut unknown = observation(&counts, 1);
    unknown.insert("orders".to_owned(), TopicState::Missing);
    for (seconds, seen) in [(1, observation(&counts, 1)), (2, unknown), (3, observation(&counts, 1))] {
        machine.observed(now + Duration::from_secs(seconds), &seen);
        assert_eq!(machine.state(), &State::Steady);
    }
    assert_eq!(machine.take_events(), []);
}

#[test]
fn a_lagging_broker_does_not_shrink_the_target() {
    let (mut machine, mut counts, now) = steady(Duration::from_secs(900));
    for orders in [6, 3, 6] {
        counts.insert("orders".to_owned(), orders);
        machine.observed(now, &observation(&counts, 1));
        let Command::Expand { targets } = machine.command(now) else { panic!("nothing to send") };
        assert!(targets.values().all(|to| *to == 6), "{targets:?}");
    }
}

#[test]
fn an_input_that_was_recreated_narrower_blocks_and_says_so() {
    let (mut machine, mut counts, now) = steady(Duration::from_secs(900));
    counts.insert("orders".to_owned(), 2);
    let mut seen = observation(&counts, 1);
    seen.insert("orders".to_owned(), TopicState::Present { id: Some(TopicId(2)), partitions: 2 });
    machine.observed(now, &seen);
    let State::Blocked { decision } = machine.state() else { panic!("{:?}", machine.state()) };
    assert_eq!(decision.code, Some(Code::WouldShrink));
    assert!(decision.message.contains("recreated"), "{}", decision.message);
    assert!(serde_json::to_string(decision).unwrap().contains("shop-k-repartition"));
    assert!(matches!(machine.command(now), Command::Observe { .. }));
}

#[test]
fn the_plan_of_a_former_topology_is_not_sent() {
    let (mut machine, mut counts, now) = steady(Duration::from_secs(900));
    counts.insert("orders".to_owned(), 6);
    machine.observed(now, &observation(&counts, 1));
    assert!(matches!(machine.command(now), Command::Expand { .. }));

    let other = planner(&["shop-k-repartition".to_owned()], &[]);
    machine.change_topology(now, other, &["orders", "shop-k-repartition"].map(str::to_owned).into());
    assert_eq!(machine.command(now), Command::Observe { at: now });
    machine.observed(now, &observation(&counts, 1));
    let targets = [("shop-k-repartition".to_owned(), 6)].into();
    assert_eq!(machine.command(now), Command::Expand { targets }, "planned anew");
}

#[test]
fn a_request_whose_effect_stays_invisible_is_not_looked_for_at_full_speed_for_ever() {
    let (mut machine, mut counts, now) = steady(Duration::from_secs(900));
    counts.insert("orders".to_owned(), 6);
    machine.observed(now, &observation(&counts, 1));
    let Command::Expand { targets } = machine.command(now) else { panic!("nothing to send") };
    let topics = targets.into_keys().map(|topic| (topic, Ok(()))).collect();
    machine.replied(now, &Ok(Reply { topics, throttle: Duration::from_secs(60) }), 0.0);
    for (after, pace) in [(Duration::ZERO, Duration::from_millis(10)), (Duration::from_secs(2), Duration::from_millis(500))] {
        machine.observed(now + after, &observation(&counts, 1));
        assert_eq!(machine.command(now + after), Command::Observe { at: now + after + pace });
    }
}

#[test]
fn what_was_learned_outlives_a_statement_that_is_read_again() {
    let repartition = ["shop-k-repartition".to_owned()];
    let stated: BTreeMap<String, u32> = [("orders".to_owned(), 3)].into();
    let learned: BTreeMap<String, u32> = [("orders".to_owned(), 6)].into();
    let mut machine = Machine::new(rules(Duration::from_secs(900)), planner(&repartition, &[]), stated.clone());
    machine = machine.knowing(learned, BTreeMap::new());
    let counts = [("orders".to_owned(), 12), ("shop-k-repartition".to_owned(), 6)].into();
    let now = Duration::from_secs(1);
    machine.observed(now, &observation(&counts, 1));
    machine.state_baseline(now, stated);
    let targets = [("shop-k-repartition".to_owned(), 12)].into();
    assert_eq!(machine.command(now), Command::Expand { targets });
}

#[test]
fn the_flag_off_tells_everybody_once_and_sends_nothing() {
    let (mut machine, mut counts, now) = steady(Duration::from_secs(900));
    machine.reconfigure(now, Rules { enabled: false, ..rules(Duration::from_secs(900)) });
    assert_eq!(machine.take_events(), []);
    counts.insert("orders".to_owned(), 6);
    for _ in 0..5 {
        machine.observed(now, &observation(&counts, 1));
        assert!(matches!(machine.command(now), Command::Observe { .. }));
    }
    assert_eq!(machine.assignor_error(), AssignorError::IncompleteSourceTopicMetadata);
    let events = machine.take_events();
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Entered(State::Disabled { .. }))).count(), 1);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Assignor(_))).count(), 1);

    machine.reconfigure(now, rules(Duration::from_secs(900)));
    assert!(matches!(machine.command(now), Command::Expand { .. }), "switching the flag on is enough");
    assert_eq!(machine.assignor_error(), AssignorError::None);
}

#[test]
fn a_failed_plan_is_left_alone_until_the_input_grows_again() {
    let (mut machine, mut counts, mut now) = steady(Duration::ZERO);
    counts.insert("orders".to_owned(), 6);
    machine.observed(now, &observation(&counts, 1));
    let Command::Expand { targets } = machine.command(now) else { panic!("a timeout of zero still tries once") };
    let denied = Err(error(29, "TOPIC_AUTHORIZATION_FAILED", ""));
    let topics = targets.into_keys().map(|topic| (topic, denied.clone())).collect();
    machine.replied(now, &Ok(Reply { topics, throttle: Duration::ZERO }), 0.0);
    for _ in 0..100 {
        now += Duration::from_secs(1);
        machine.observed(now, &observation(&counts, 1));
        assert!(matches!(machine.command(now), Command::Observe { .. }));
    }
    let State::Failed { errors, decision } = machine.state() else { panic!("{:?}", machine.state()) };
    assert_eq!((machine.failures(), errors.len(), decision.code), (1, 2, Some(Code::Timeout)));
    machine.reconfigure(now, Rules { enabled: false, ..rules(Duration::from_secs(60)) });
    machine.reconfigure(now, rules(Duration::from_secs(60)));
    let State::Expanding(expansion) = machine.state() else { panic!("toggling the flag gives another chance") };
    assert_eq!(expansion.started, now, "and the whole timeout again");
    machine.reconfigure(now, Rules { enabled: false, ..rules(Duration::ZERO) });
    counts.insert("orders".to_owned(), 9);
    machine.observed(now, &observation(&counts, 1));
    machine.reconfigure(now, rules(Duration::ZERO));
    assert!(matches!(machine.command(now), Command::Expand { .. }));
}

#[test]
fn growth_during_an_expansion_is_part_of_the_next_request() {
    let (mut machine, mut counts, now) = steady(Duration::from_secs(900));
    counts.insert("orders".to_owned(), 6);
    machine.observed(now, &observation(&counts, 1));
    let Command::Expand { targets } = machine.command(now) else { panic!("nothing to send") };
    let topics = targets.into_keys().map(|topic| (topic, Ok(()))).collect();
    machine.replied(now, &Ok(Reply { topics, throttle: Duration::ZERO }), 0.0);
    for n in counts.values_mut() {
        *n = 6;
    }
    counts.insert("orders".to_owned(), 12);
    machine.observed(now, &observation(&counts, 1));
    let Command::Expand { targets } = machine.command(now) else { panic!("nothing to send") };
    assert!(targets.values().all(|to| *to == 12), "{targets:?}");
}

#[test]
fn settling_ends_when_the_group_has_all_tasks() {
    let (mut machine, mut counts, now) = steady(Duration::from_secs(900));
    counts.insert("orders".to_owned(), 6);
    machine.observed(now, &observation(&counts, 1));
    for n in counts.values_mut() {
        *n = 6;
    }
    machine.observed(now, &observation(&counts, 1));
    assert_eq!(machine.state().name(), StateName::Settling);
    let news = machine.take_events().into_iter().filter(|event| matches!(event, Event::News(_))).count();
    assert_eq!(news, 1, "that a plan comes true is told once for all its topics");
    machine.group_observed([("0".to_owned(), 6), ("1".to_owned(), 3)].into());
    assert_eq!(machine.state().name(), StateName::Settling);
    assert_eq!(
        machine.parallelism().iter().map(|sub| (sub.current, sub.expected)).collect::<Vec<_>>(),
        [(Some(6), Some(6)), (Some(3), Some(6))]
    );
    machine.group_observed([("0".to_owned(), 6), ("1".to_owned(), 6)].into());
    assert_eq!(machine.state(), &State::Steady);
}

#[test]
fn keys_that_would_move_away_from_their_state_are_told_or_block() {
    let moving: BTreeMap<String, Keys> = [("shop-k-repartition".to_owned(), Keys::MoveWhenGrown)].into();
    for (check, state, warned) in [
        (StaticCheck::Off, StateName::Expanding, false),
        (StaticCheck::Warn, StateName::Expanding, true),
        (StaticCheck::Enforce, StateName::Blocked, false),
    ] {
        let (mut machine, mut counts, now) = steady(Duration::from_secs(900));
        machine.reconfigure(now, Rules { static_check: check, ..rules(Duration::from_secs(900)) });
        machine.keys_sampled(now, moving.clone());
        counts.insert("orders".to_owned(), 6);
        machine.observed(now, &observation(&counts, 1));
        assert_eq!(machine.state().name(), state, "{check:?}");
        let decision = machine.state().decision().unwrap();
        assert_eq!(decision.warnings.iter().any(|warning| warning.code == "KEYS_WILL_MOVE"), warned, "{check:?}");
        assert_eq!(decision.code == Some(Code::KeysWillMove), state == StateName::Blocked, "{check:?}");
    }
}

#[test]
fn what_may_have_been_carried_out_is_not_sent_again_before_the_counts_are_read() {
    let (mut machine, mut counts, mut now) = steady(Duration::from_secs(900));
    counts.insert("orders".to_owned(), 6);
    machine.observed(now, &observation(&counts, 1));
    let Command::Expand { targets } = machine.command(now) else { panic!("nothing to send") };
    machine.replied(now, &Err(KafkaError::new(ErrorClass::TimedOut, "no answer")), 0.0);
    for _ in 0..10 {
        now += Duration::from_secs(5);
        assert!(matches!(machine.command(now), Command::Observe { .. }));
        machine.observation_failed(now);
    }
    machine.observed(now, &observation(&counts, 1));
    assert_eq!(machine.command(now), Command::Expand { targets });
}

#[test]
fn a_topic_that_has_its_count_already_was_not_refused() {
    let (mut machine, mut counts, now) = steady(Duration::from_secs(900));
    counts.insert("orders".to_owned(), 6);
    machine.observed(now, &observation(&counts, 1));
    let Command::Expand { targets } = machine.command(now) else { panic!("nothing to send") };
    let already = error(37, "INVALID_PARTITIONS", "Topic already has 6 partition(s).");
    let topics = targets.into_keys().map(|topic| (topic, Err(already.clone()))).collect();
    machine.replied(now, &Ok(Reply { topics, throttle: Duration::ZERO }), 0.0);
    counts.values_mut().for_each(|n| *n = 6);
    machine.observed(now, &observation(&counts, 1));
    assert_eq!(machine.state().name(), StateName::Settling);
    let refused = |event: &Event| matches!(event, Event::Refused { .. });
    assert!(!machine.take_events().iter().any(refused));
}

#[test]
fn the_time_to_act_begins_when_acting_is_possible() {
    let hour = Duration::from_secs(3600);
    let on = rules(Duration::from_secs(900));
    let (mut machine, mut counts, mut now) = steady(on.timeout);
    machine.reconfigure(now, Rules { enabled: false, ..on.clone() });
    counts.insert("orders".to_owned(), 6);
    machine.observed(now, &observation(&counts, 1));
    now += hour;
    machine.reconfigure(now, on);
    let Command::Expand { targets } = machine.command(now) else { panic!("nothing to send") };
    let denied = Err(error(29, "TOPIC_AUTHORIZATION_FAILED", ""));
    let topics = targets.into_keys().map(|topic| (topic, denied.clone())).collect();
    machine.replied(now, &Ok(Reply { topics, throttle: Duration::ZERO }), 0.0);
    machine.observed(now + Duration::from_secs(10), &observation(&counts, 1));
    assert_eq!((machine.state().name(), machine.failures()), (StateName::Expanding, 0));
}

#[test]
fn a_baseline_that_is_stated_while_running_counts_once() {
    let repartition = "shop-k-repartition".to_owned();
    let mut machine = Machine::new(rules(Duration::from_secs(900)), planner(&[repartition], &[]), BTreeMap::new());
    let mut counts = BTreeMap::from([("orders".to_owned(), 6), ("shop-k-repartition".to_owned(), 3)]);
    let now = Duration::from_secs(1);
    machine.observed(now, &observation(&counts, 1));
    assert_eq!(machine.state().decision().and_then(|decision| decision.code), Some(Code::NoBaseline));
    let stated = BTreeMap::from([("orders".to_owned(), 3)]);
    machine.state_baseline(now, stated.clone());
    assert!(matches!(machine.command(now), Command::Expand { .. }), "{:?}", machine.state());
    counts.values_mut().for_each(|n| *n = 6);
    machine.observed(now, &observation(&counts, 1));
    machine.state_baseline(now, stated);
    assert_eq!(machine.baseline()["orders"], 6, "the same statement read again is outlived");
}

#[test]
fn growth_that_was_seen_beside_an_unknown_count_is_not_forgotten() {
    let (mut machine, mut counts, mut now) = steady(Duration::from_secs(900));
    let changelog = "shop-st-changelog".to_owned();
    counts.remove(&changelog);
    let with = |counts: &BTreeMap<String, u32>, state| {
        let mut seen = observation(counts, 1);
        seen.insert(changelog.clone(), state);
        seen
    };
    for _ in 0..2 {
        now += Duration::from_secs(11);
        machine.observed(now, &with(&counts, TopicState::Missing)); // gone at last
    }
    counts.insert("orders".to_owned(), 6);
    machine.observed(now, &with(&counts, TopicState::Failed(error(29, "TOPIC_AUTHORIZATION_FAILED", ""))));
    assert!(matches!(machine.command(now), Command::Observe { .. }), "an unknown count is neither zero nor missing");
    machine.observed(now, &with(&counts, TopicState::Missing));
    let Command::Expand { targets } = machine.command(now) else { panic!("{:?}", machine.state()) };
    assert_eq!(targets, BTreeMap::from([("shop-k-repartition".to_owned(), 6)]));
}

#[test]
fn what_was_accepted_is_not_sent_again_while_brokers_may_lag() {
    let (mut machine, mut counts, now) = steady(Duration::from_secs(900));
    counts.insert("orders".to_owned(), 6);
    machine.observed(now, &observation(&counts, 1));
    let Command::Expand { targets } = machine.command(now) else { panic!("nothing to send") };
    let topics = targets.keys().map(|topic| (topic.clone(), Ok(()))).collect();
    machine.replied(now, &Ok(Reply { topics, throttle: Duration::ZERO }), 0.0);
    let look = |machine: &mut Machine, after| {
        machine.observed(now + Duration::from_millis(after), &observation(&counts, 1));
        machine.command(now + Duration::from_millis(after))
    };
    assert!(matches!(look(&mut machine, 1900), Command::Observe { .. }));
    assert_eq!(look(&mut machine, 2000), Command::Expand { targets }, "one back-off step later it is sent once more");
}

#[test]
fn what_the_operator_states_counts_where_the_memory_explains_nothing() {
    let repartition = "shop-k-repartition".to_owned();
    let stated: BTreeMap<String, u32> = [("orders".to_owned(), 3)].into();
    let remembered: BTreeMap<String, u32> = [("orders".to_owned(), 4)].into();
    let planner = planner(std::slice::from_ref(&repartition), &["shop-st-changelog".to_owned()]);
    let counts: BTreeMap<String, u32> =
        [("orders", 6), ("shop-k-repartition", 3), ("shop-st-changelog", 3)].map(|(t, n)| (t.to_owned(), n)).into();
    let now = Duration::from_secs(1);

    let mut machine = Machine::new(rules(Duration::from_secs(900)), planner, stated).knowing(remembered, Default::default());
    machine.observed(now, &observation(&counts, 1));
    let Command::Expand { targets } = machine.command(now) else { panic!("{:?}", machine.state()) };
    assert!(targets.values().all(|to| *to == 6), "{targets:?}");
}

#[test]
fn a_topic_that_followed_and_was_made_anew_may_be_pinned() {
    let repartition = ["shop-k-repartition".to_owned()];
    let new = || Machine::new(rules(Duration::from_secs(900)), planner(&repartition, &[]), BTreeMap::new());
    let counts: BTreeMap<String, u32> = [("orders".to_owned(), 3), ("shop-k-repartition".to_owned(), 3)].into();
    let followers: BTreeMap<_, _> = [("shop-k-repartition".to_owned(), Some(TopicId(1)))].into();
    let mut machine = new().knowing(BTreeMap::new(), followers.clone());
    let mut now = Duration::from_secs(1);
    machine.observed(now, &observation(&counts, 1));
    assert_eq!(machine.followers(), followers);
    now += Duration::from_millis(500);
    machine.observed(now, &observation(&counts, 2));
    assert_eq!(machine.followers(), BTreeMap::new());
}

#[test]
fn a_leader_that_comes_while_the_group_settles_waits_for_it_too() {
    let counts: BTreeMap<String, u32> = [("orders".to_owned(), 3), ("shop-k-repartition".to_owned(), 3)].into();
    for (unsettled, state) in [(true, StateName::Settling), (false, StateName::Steady)] {
        let machine = Machine::new(rules(Duration::ZERO), planner(&["shop-k-repartition".to_owned()], &[]), BTreeMap::new());
        let mut machine = machine.unsettled(unsettled);
        machine.observed(Duration::from_secs(1), &observation(&counts, 1));
        assert_eq!(machine.state().name(), state);
        machine.group_observed([("0".to_owned(), 3), ("1".to_owned(), 3)].into());
        assert_eq!(machine.state(), &State::Steady);
    }
}

#[test]
fn a_growth_before_the_first_look_is_told_once_all_counts_are_known() {
    let stated: BTreeMap<String, u32> = [("orders".to_owned(), 3)].into();
    let mut machine = Machine::new(rules(Duration::ZERO), planner(&["shop-k-repartition".to_owned()], &[]), stated);
    let counts = [("orders".to_owned(), 6), ("shop-k-repartition".to_owned(), 3)].into();
    let known = observation(&counts, 1);
    let mut partial = known.clone();
    partial.insert("shop-k-repartition".to_owned(), TopicState::Failed(error(29, "TOPIC_AUTHORIZATION_FAILED", "")));
    for (second, seen) in (1..).zip([&partial, &partial, &partial, &known, &known]) {
        machine.observed(Duration::from_secs(second), seen);
    }
    let events = machine.take_events();
    assert_eq!(events.iter().filter(|event| matches!(event, Event::News(news) if news.topic() == "orders")).count(), 1);
}
