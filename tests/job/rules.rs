//! What holds for every job, over thousands of random ones.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use partition_autoscaler::coordinator::Origin;
use partition_autoscaler::job::{Answer, Assignment, Code, Grouper, Partition, Request, Tasks};
use serde_json::{Value, json};

use super::read;

/// A job whose streams grow.
struct Job {
    grouper: Grouper,
    counts: BTreeMap<&'static str, u32>,
    buckets: Option<u32>,
    broadcast: BTreeSet<Partition>,
    previous: Option<Tasks>,
}

fn partition(stream: &str, id: u32, bucket: Option<u32>) -> Partition {
    Partition { system: "kafka".to_owned(), stream: stream.to_owned(), id, bucket }
}

impl Job {
    fn random(rng: &mut Rng) -> Self {
        let streams = ["orders", "payments", "clicks"];
        let counts = streams.into_iter().take(rng.usize(1..=3)).map(|stream| (stream, rng.u32(1..=6))).collect();
        Self {
            grouper: if rng.bool() { Grouper::GroupByPartition } else { Grouper::GroupBySystemStreamPartition },
            counts,
            buckets: rng.bool().then(|| rng.u32(1..=3)),
            broadcast: (0..rng.u32(0..=2)).map(|id| partition("rules", id, None)).collect(),
            previous: None,
        }
    }

    fn own(&self) -> impl Iterator<Item = Partition> {
        let ids = self.counts.iter().flat_map(|(stream, count)| (0..*count).map(move |id| (stream, id)));
        ids.flat_map(|(stream, id)| match self.buckets {
            None => vec![partition(stream, id, None)],
            Some(buckets) => (0..buckets).map(|bucket| partition(stream, id, Some(bucket))).collect(),
        })
    }

    fn request(&self) -> Request {
        Request {
            grouper: self.grouper,
            fixed_task_count: Some(true),
            stateful: Some(true),
            previous: self.previous.clone(),
            partitions: self.own().collect(),
            broadcast: self.broadcast.clone(),
            power_of_two: false,
            processors: BTreeSet::new(),
        }
    }

    fn grouped(&mut self) -> Answer {
        let answer = self.request().group().unwrap();
        assert_eq!(answer.code, None, "{}", answer.message);
        self.previous = Some(answer.tasks.clone());
        answer
    }
}

/// The one task of each partition that is not broadcast.
fn owners(tasks: &Tasks, broadcast: &BTreeSet<Partition>) -> BTreeMap<Partition, String> {
    let mut owners = BTreeMap::new();
    for (task, partitions) in &tasks.0 {
        assert!(broadcast.is_subset(partitions), "{task} lacks what is broadcast");
        for partition in partitions.difference(broadcast) {
            let other = owners.insert(partition.clone(), task.clone());
            assert_eq!(other, None, "{partition} has two tasks");
        }
    }
    owners
}

#[test]
fn a_key_keeps_its_task_over_all_growths() {
    let mut rng = Rng::with_seed(0x5e9_0005);
    for _ in 0..500 {
        let mut job = Job::random(&mut rng);
        let first = job.grouped().tasks;
        let (first_counts, first_owners) = (job.counts.clone(), owners(&first, &job.broadcast));
        for _ in 0..3 {
            let before = job.counts.clone();
            for count in job.counts.values_mut() {
                *count *= rng.u32(1..=3);
            }
            let answer = job.grouped();
            assert_eq!(answer.changed, before != job.counts);
            assert!(answer.tasks.0.keys().eq(first.0.keys()), "growth never changes the set of tasks");
            let now = owners(&answer.tasks, &job.broadcast);
            assert!(now.keys().cloned().eq(job.own().collect::<BTreeSet<_>>()), "every partition has a task, and no other");
            for (partition, task) in &now {
                let first_parent = Partition { id: partition.id % first_counts[partition.stream.as_str()], ..partition.clone() };
                assert_eq!(*task, first_owners[&first_parent], "{partition}");
            }
            assert!(!job.grouped().changed, "asked again, nothing changes");
        }
    }
}

#[test]
fn a_growth_that_would_move_keys_is_refused_and_changes_nothing() {
    let mut rng = Rng::with_seed(0x5e9_0006);
    let mut codes = BTreeMap::new();
    for _ in 0..500 {
        let mut job = Job::random(&mut rng);
        let before = job.grouped().tasks;
        let (from, to) = (job.counts["orders"], rng.u32(1..=20));
        job.counts.insert("orders", to);
        let answer = Request { power_of_two: true, ..job.request() }.group().unwrap();
        let expected = match (to / from, to % from) {
            _ if to < from => Some(Code::StreamShrank),
            (factor, 0) if factor.is_power_of_two() => None,
            (_, 0) => Some(Code::NotAPowerOfTwo),
            _ => Some(Code::NotAMultiple),
        };
        assert_eq!(answer.code, expected, "{from} -> {to}");
        if expected.is_some() {
            assert_eq!((&answer.tasks, answer.changed), (&before, false));
            for word in ["kafka.orders", &format!("from {from} to {to}")] {
                assert!(answer.message.contains(word), "{}", answer.message);
            }
        }
        *codes.entry(expected).or_insert(0) += 1;
    }
    assert_eq!(codes.len(), 4, "{codes:?}");
}

#[test]
fn the_order_of_the_input_means_nothing() {
    let mut rng = Rng::with_seed(0x5e9_0007);
    for _ in 0..100 {
        let mut job = Job::random(&mut rng);
        job.grouped();
        job.counts.values_mut().for_each(|count| *count *= 2);
        let mut lists = [job.own().collect::<Vec<_>>(), job.broadcast.iter().cloned().collect()];
        for list in &mut lists {
            list.extend(list.first().cloned()); // a second mention means nothing either
            rng.shuffle(list);
        }
        let mut tasks: Vec<_> = job.previous.clone().unwrap().0.into_iter().collect();
        rng.shuffle(&mut tasks);
        let texts = tasks.into_iter().map(|(task, partitions)| {
            let mut list: Vec<_> = partitions.into_iter().collect();
            rng.shuffle(&mut list);
            format!("{}: {}", json!(task), json!(list))
        });
        let text = format!(
            r#"{{"previous": {{{}}}, "partitions": {}, "broadcast": {}, "grouper": {}, "stateful": true, "fixed_task_count": true}}"#,
            texts.collect::<Vec<_>>().join(", "),
            json!(lists[0]),
            json!(lists[1]),
            json!(job.grouper),
        );
        let shuffled: Request = serde_json::from_str(&text).unwrap();
        assert_eq!(shuffled.group(), job.request().group());
    }
}

#[test]
fn the_rows_of_every_step_add_up_to_the_tasks() {
    let mut rng = Rng::with_seed(0x5e9_0008);
    let origin = Origin { host: String::new(), username: String::new(), timestamp: 0 };
    for _ in 0..100 {
        let (mut stored, mut topic) = (Assignment::default(), BTreeMap::new());
        let mut job = Job::random(&mut rng);
        for _ in 0..4 {
            let wanted = Assignment::from(&job.grouped().tasks);
            for (key, value) in wanted.encode(&stored, &origin) {
                stored.apply(&key, value.as_deref()).unwrap();
                // Compaction.
                match value {
                    Some(value) => topic.insert(key, value),
                    None => topic.remove(&key),
                };
            }
            let mut read = Assignment::default();
            topic.iter().for_each(|(key, value)| read.apply(key, Some(value)).unwrap());
            assert_eq!((&stored, &read), (&wanted, &wanted));
            assert_eq!(read.tasks(), *job.previous.as_ref().unwrap());
            // A stream goes, another grows.
            if job.counts.len() > 1 && rng.bool() {
                job.counts.pop_first();
            }
            job.counts.values_mut().for_each(|count| *count *= 2);
        }
    }
}

/// Replaces each part of each known question by what does not belong there: an answer or an error, never a panic.
#[test]
fn no_input_makes_it_panic() {
    let odd = [
        json!(null),
        json!(-1),
        json!(1e30),
        json!(u64::MAX),
        json!(0),
        json!(""),
        json!("Partition 0"),
        json!([]),
        json!({}),
        json!(true),
    ];
    let (mut answers, mut errors) = (0, 0);
    for case in read("cases/grouper.json")["cases"].as_array().unwrap() {
        for input in case["runs"].as_array().into_iter().flatten().chain([case]).map(|run| &run["input"]) {
            let mut pointers = Vec::new();
            collect(input, String::new(), &mut pointers);
            for (pointer, value) in pointers.iter().flat_map(|pointer| odd.iter().map(move |value| (pointer, value))) {
                let mut broken = input.clone();
                *broken.pointer_mut(pointer).unwrap() = value.clone();
                match serde_json::from_value::<Request>(broken).map(|request| request.group()) {
                    Ok(Ok(_)) => answers += 1,
                    _ => errors += 1,
                }
            }
        }
    }
    assert!(answers > 100 && errors > 1000, "{answers} {errors}");
}

fn collect(value: &Value, at: String, pointers: &mut Vec<String>) {
    match value {
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, inner)| collect(inner, format!("{at}/{index}"), pointers))
        }
        Value::Object(fields) => fields.iter().for_each(|(name, inner)| collect(inner, format!("{at}/{name}"), pointers)),
        _ => {}
    }
    pointers.push(at);
}
