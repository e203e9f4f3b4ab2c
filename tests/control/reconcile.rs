//! What a task makes of what it hears.

use partition_autoscaler::control::{
    Body, Checkpoint, ControlMessage, Event, NO_WATERMARK, Partition, ReconcileError, Reconciler,
};
use serde_json::{Value, json};

use super::{cases, end, partition, text, watermark};

fn mid(number: u32) -> Partition {
    Partition::new("kafka", "mid", number)
}

fn rose(partition: &Partition, timestamp: i64) -> Option<Event> {
    Some(Event::Watermark { partition: partition.clone(), timestamp })
}

/// Tells one partition these watermarks of (task, number of tasks, timestamp); what came of each.
fn watermarks(told: &[(&str, u32, i64)]) -> Vec<i64> {
    let mut task = Reconciler::new([mid(0)]);
    let mut after = |&(name, count, timestamp): &(&str, u32, i64)| {
        task.hear(&mid(0), &watermark(Some(name), count, timestamp)).unwrap();
        task.watermarks()[&mid(0)].watermark
    };
    told.iter().map(&mut after).collect()
}

/// Vectors of Samza's `WatermarkStates` and `EndOfStreamStates`, with the count on the message that Samza takes from the job model.
fn replay(case: &Value, body: impl Fn(&Value) -> Body) -> Option<Vec<(Partition, Reconciler)>> {
    let input = &case["input"];
    let mut task = Reconciler::new(input["ssps"].as_array().unwrap().iter().map(partition));
    let mut states = Vec::new();
    for step in input["steps"].as_array().unwrap() {
        let partition = partition(&step["ssp"]);
        let task_count = input["producer_task_counts"][partition.stream.to_string()].as_u64();
        let task_count = task_count.map(|count| u32::try_from(count).unwrap());
        let said = ControlMessage { task_name: text(&step["task"]), task_count, body: body(step) };
        match task.hear(&partition, &said) {
            // A named task always tells the number; without one Samza waits for the partition itself to speak.
            Ok(_) | Err(ReconcileError::NoTaskCount { .. }) => states.push((partition, task.clone())),
            Err(ReconcileError::UnknownPartition(_)) => return None,
        }
    }
    Some(states)
}

#[test]
fn watermarks_are_samzas_but_for_the_deviations() {
    let mut checked = 0;
    for case in cases("vectors/samza/watermark_states.json") {
        let name = case["case"].as_str().unwrap();
        if case["input"]["idle_timeout_ms"].as_i64().unwrap() > 0 {
            continue; // we have no clock
        }
        let states = replay(&case, |step| Body::Watermark { timestamp: step["timestamp"].as_i64().unwrap() });
        let Some(states) = states else {
            assert_eq!(name, "unknown_ssp_logged_and_ignored"); // refused
            continue;
        };
        let mut expected = case["expected"]["steps"].clone();
        if name == "more_tasks_than_expected_freezes_watermark" {
            // A name too many does not block.
            expected[3] = json!({"ssp_watermark": 12, "stream_watermark": {"system.intermediate": 12}});
            expected[4] = json!({"ssp_watermark": 14, "stream_watermark": {"system.intermediate": 14}});
        }
        for (n, ((partition, task), expected)) in states.iter().zip(expected.as_array().unwrap()).enumerate() {
            if let Some(watermark) = expected["ssp_watermark"].as_i64() {
                assert_eq!(task.watermarks()[partition].watermark, watermark, "{name}, step {n}");
            }
            for (stream, watermark) in task.stream_watermarks() {
                if let Some(expected) = expected["stream_watermark"].get(stream.to_string()) {
                    assert_eq!(watermark, expected, "{name}, step {n}: {stream}");
                }
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 28);
}

#[test]
fn ends_are_samzas_but_for_the_deviations() {
    let mut checked = 0;
    for case in cases("vectors/samza/end_of_stream_states.json") {
        let name = case["case"].as_str().unwrap();
        let Some(states) = replay(&case, |_| Body::EndOfStream { stream_id: None }) else {
            assert_eq!(name, "unknown_ssp_throws");
            continue;
        };
        let mut ended = false;
        for (n, (partition, task)) in states.iter().enumerate() {
            let expected = &case["expected"]["steps"][n][&partition.stream.stream];
            // What has ended stays so, whoever speaks after that.
            ended |= name == "extra_task_flips_back_to_not_ended" && expected == true;
            assert_eq!(task.has_ended(&partition.stream), ended || expected == true, "{name}, step {n}");
            checked += 1;
        }
    }
    assert_eq!(checked, 14);
}

#[test]
fn tasks_that_come_are_waited_for_and_tasks_that_go_are_not() {
    // From two to three: the third is waited for, and nothing is lowered.
    assert_eq!(
        watermarks(&[("t0", 2, 10), ("t1", 2, 20), ("t0", 3, 30), ("t1", 3, 40), ("t2", 3, 5), ("t2", 3, 35)]),
        [-1, 10, 10, 10, 10, 30]
    );
    // From three to two: t2 is gone and counts until both of the others were heard under the new number.
    assert_eq!(
        watermarks(&[("t0", 3, 10), ("t1", 3, 20), ("t2", 3, 30), ("t0", 2, 40), ("t1", 2, 50), ("t0", 2, 60)]),
        [-1, -1, 10, 20, 40, 50]
    );
    // A number that falls completes what was heard before.
    assert_eq!(watermarks(&[("t0", 3, 10), ("t1", 3, 20), ("t1", 2, 20)]), [-1, -1, 10]);
    // A name too many is one of those whose least counts.
    assert_eq!(watermarks(&[("t0", 1, 10), ("old", 1, 5), ("t0", 1, 20), ("old", 1, 15)]), [10, 10, 10, 15]);
}

#[test]
fn an_end_needs_as_many_as_the_newest_message_says() {
    for (told, expected) in [
        (&[("t0", 2), ("t0", 2), ("t1", 2), ("t2", 2)][..], &[false, false, true, true][..]),
        (&[("t0", 2), ("t1", 3), ("t2", 3)], &[false, false, true]),
        (&[("t0", 3), ("t1", 3), ("t1", 2)], &[false, false, true]),
        (&[("t0", 4), ("t1", 4), ("t2", 4), ("t2", 2)], &[false, false, false, true]),
        (&[("t0", 1), ("t1", 9)], &[true, true]),
    ] {
        let mut task = Reconciler::new([mid(0)]);
        let mut emitted = 0;
        for ((name, count), expected) in told.iter().zip(expected) {
            let event = task.hear(&mid(0), &end(Some(name), *count)).unwrap();
            emitted += i32::from(event.is_some());
            assert_eq!(task.ends()[&mid(0)].ended, *expected, "{told:?}");
        }
        assert_eq!(emitted, 1, "{told:?}");
    }
}

#[test]
fn a_partition_that_speaks_for_itself_is_believed_at_once() {
    let mut task = Reconciler::new([mid(0)]);
    assert_eq!(task.hear(&mid(0), &watermark(Some("t0"), 2, 70)).unwrap(), None);
    assert_eq!(task.hear(&mid(0), &watermark(None, 0, 50)).unwrap(), rose(&mid(0), 50));
    assert_eq!(task.hear(&mid(0), &watermark(None, 0, 40)).unwrap(), None);
    assert_eq!(task.hear(&mid(0), &watermark(Some("t1"), 2, 60)).unwrap(), rose(&mid(0), 60));
    assert_eq!(task.hear(&mid(0), &end(None, 0)).unwrap(), Some(Event::EndOfStream { partition: mid(0) }));
    assert_eq!(task.hear(&mid(0), &end(None, 0)).unwrap(), None);
}

#[test]
fn several_partitions_of_a_stream_are_each_on_their_own() {
    let mut task = Reconciler::new([mid(0), mid(2)]);
    let stream = mid(0).stream;
    task.hear(&mid(0), &watermark(None, 0, 9)).unwrap();
    assert_eq!((task.stream_watermarks()[&stream], task.has_ended(&stream)), (NO_WATERMARK, false));
    task.hear(&mid(2), &watermark(None, 0, 7)).unwrap();
    assert_eq!(task.stream_watermarks()[&stream], 7);
    for (number, all) in [(0, false), (2, true)] {
        task.hear(&mid(number), &end(None, 0)).unwrap();
        assert_eq!(task.has_ended(&stream), all);
    }
    // A partition that is added after that takes nothing back.
    task.add(mid(4));
    task.add(mid(0));
    assert_eq!((task.stream_watermarks()[&stream], task.has_ended(&stream)), (7, true));
    assert_eq!(task.ends().values().map(|heard| heard.ended).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn what_cannot_be_taken_into_account_changes_nothing() {
    let mut task = Reconciler::new([mid(0)]);
    let before = task.clone();
    let error = task.hear(&mid(1), &watermark(None, 0, 5)).unwrap_err();
    assert_eq!(error, ReconcileError::UnknownPartition(mid(1)));
    for task_count in [None, Some(0)] {
        let message = ControlMessage { task_count, ..watermark(Some("t0"), 1, 5) };
        let error = task.hear(&mid(0), &message).unwrap_err();
        assert_eq!(error, ReconcileError::NoTaskCount { partition: mid(0), task: "t0".to_owned() });
    }
    let drain = ControlMessage { body: Body::Drain { run_id: None }, ..watermark(Some("t0"), 1, 5) };
    assert_eq!(task.hear(&mid(0), &drain).unwrap(), None);
    assert_eq!(task, before);
}

#[test]
fn a_checkpoint_of_another_time_is_refused() {
    let mut task = Reconciler::new([mid(0)]);
    task.hear(&mid(0), &watermark(Some("t0"), 2, 5)).unwrap();
    task.hear(&mid(0), &end(Some("t0"), 2)).unwrap();
    let checkpoint = task.checkpoint([(mid(0), 42)]);
    let saved = json!({
        "offsets": [[["kafka", "mid", 0], 42]],
        "end_of_stream": {
            "version": 1,
            "partitions": [[["kafka", "mid", 0], {"task_count": 2, "tasks": ["t0"], "ended": false}]],
            "ended_streams": []
        },
        "watermark": {
            "version": 1,
            "partitions": [[["kafka", "mid", 0],
                {"task_count": 2, "tasks": {"t0": {"timestamp": 5, "task_count": 2}}, "watermark": -1}]],
            "streams": [[["kafka", "mid"], -1]]
        }
    });
    assert_eq!(serde_json::to_value(&checkpoint).unwrap(), saved);
    assert_eq!(serde_json::from_value::<Checkpoint>(saved.clone()).unwrap(), checkpoint);
    for (pointer, value, words) in [
        ("/watermark/version", json!(2), "version 2, expected 1"),
        ("/end_of_stream/version", json!(0), "version 0, expected 1"),
        ("/end_of_stream", json!({"version": 1}), "missing field"),
        ("/watermark/partitions/0/1", json!({"more": 1}), "unknown field `more`"),
    ] {
        let mut other = saved.clone();
        *other.pointer_mut(pointer).unwrap() = value;
        let error = serde_json::from_value::<Checkpoint>(other).unwrap_err().to_string();
        assert!(error.contains(words), "{pointer}: {error}");
    }
}
