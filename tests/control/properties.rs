//! What holds whatever is said, over many seeded histories.

use std::collections::BTreeMap;

use fastrand::Rng;
use partition_autoscaler::control::{Checkpoint, ControlMessage, Event, NO_WATERMARK, Partition, Reconciler};

use super::{end, watermark};

const NAMES: [&str; 5] = ["t0", "t1", "t2", "t3", "t4"];

#[derive(Clone, Debug)]
enum Step {
    Says(Partition, ControlMessage),
    Add(Partition),
}

/// A partition, of a stream with tasks upstream or of a source.
fn any_partition(random: &mut Rng) -> Partition {
    Partition::new("kafka", if random.bool() { "mid" } else { "clicks" }, random.u32(..3))
}

fn history(random: &mut Rng) -> Vec<Step> {
    let mut count = random.u32(1..4);
    let mut known: Vec<Partition> = vec![any_partition(random)];
    let mut steps = vec![Step::Add(known[0].clone())];
    for _ in 0..random.usize(..40) {
        if random.u8(..10) == 0 {
            let partition = any_partition(random);
            known.push(partition.clone());
            steps.push(Step::Add(partition));
            continue;
        }
        if random.u8(..10) == 0 {
            count = random.u32(1..5);
        }
        let name = (random.u8(..5) > 0).then(|| NAMES[random.usize(..NAMES.len())]);
        let said = if random.u8(..4) > 0 { watermark(name, count, random.i64(-3..60)) } else { end(name, count) };
        steps.push(Step::Says(known[random.usize(..known.len())].clone(), said));
    }
    steps
}

fn take(task: &mut Reconciler, step: &Step) -> Option<Event> {
    match step {
        Step::Says(partition, said) => task.hear(partition, said).unwrap(),
        Step::Add(partition) => {
            task.add(partition.clone());
            None
        }
    }
}

fn restarted(task: &Reconciler) -> Reconciler {
    let saved = serde_json::to_vec(&task.checkpoint([])).unwrap();
    let checkpoint: Checkpoint = serde_json::from_slice(&saved).unwrap();
    Reconciler::restore(task.ends().keys().cloned(), &checkpoint)
}

/// Watermark and end of each partition.
fn standing(task: &Reconciler) -> BTreeMap<Partition, (i64, bool)> {
    let heard = task.watermarks().iter().zip(task.ends().values());
    heard.map(|((partition, watermarks), ends)| (partition.clone(), (watermarks.watermark, ends.ended))).collect()
}

#[test]
fn nothing_is_taken_back_and_emitted_is_what_became_new() {
    for seed in 0..500 {
        let random = &mut Rng::with_seed(seed);
        let mut task = Reconciler::default();
        let (mut before, mut streams) = (standing(&task), task.stream_watermarks().clone());
        for step in history(random) {
            let event = take(&mut task, &step);
            let after = standing(&task);
            let mut new = Vec::new();
            for (partition, (watermark, ended)) in &after {
                let (old, had_ended) = before.get(partition).copied().unwrap_or((NO_WATERMARK, false));
                assert!(*watermark >= old && (*ended || !had_ended), "seed {seed}: {step:?}");
                if *watermark > old {
                    new.push(Event::Watermark { partition: partition.clone(), timestamp: *watermark });
                }
                if *ended && !had_ended {
                    new.push(Event::EndOfStream { partition: partition.clone() });
                }
            }
            assert_eq!(event.into_iter().collect::<Vec<_>>(), new, "seed {seed}: {step:?}");
            for (stream, watermark) in task.stream_watermarks() {
                assert!(streams.get(stream).is_none_or(|old| watermark >= old), "seed {seed}: {step:?}");
            }
            (before, streams) = (after, task.stream_watermarks().clone());
        }
    }
}

#[test]
fn a_restart_anywhere_changes_nothing_nor_does_the_last_word_heard_again() {
    for seed in 0..500 {
        let random = &mut Rng::with_seed(seed);
        let history = history(random);
        let (mut straight, mut interrupted) = (Reconciler::default(), Reconciler::default());
        for step in &history {
            assert_eq!(take(&mut straight, step), take(&mut interrupted, step), "seed {seed}: {step:?}");
            if random.bool() {
                interrupted = restarted(&interrupted);
            }
            assert_eq!(straight, interrupted, "seed {seed}: {step:?}");
        }
        // The last word again, as when offsets were saved without it.
        if let Some(step) = history.last() {
            assert_eq!(take(&mut interrupted, step), None, "seed {seed}: {step:?}");
            assert_eq!(straight, interrupted, "seed {seed}: {step:?}");
        }
    }
}

/// With an unchanged number of tasks, what each of them said counts, not in which order it came.
#[test]
fn the_order_of_arrival_makes_no_difference_in_the_end() {
    let partition = Partition::new("kafka", "mid", 0);
    for seed in 0..300 {
        let random = &mut Rng::with_seed(seed);
        let count = random.u32(1..4);
        let mut said: Vec<ControlMessage> = (0..random.usize(1..25))
            .map(|_| {
                let name = Some(NAMES[random.usize(..count as usize)]);
                if random.u8(..4) > 0 { watermark(name, count, random.i64(..60)) } else { end(name, count) }
            })
            .collect();
        let hear = |said: &[ControlMessage]| {
            let mut task = Reconciler::new([partition.clone()]);
            for message in said {
                task.hear(&partition, message).unwrap();
            }
            task
        };
        let once = hear(&said);
        random.shuffle(&mut said);
        assert_eq!(hear(&said), once, "seed {seed}");
    }
}
