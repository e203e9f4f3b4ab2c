//! Large topologies end in an answer: nothing grows with the number of visiting orders.

use partition_autoscaler::plan::{Code, Decision, Knowledge, Planner, Role, Snapshot, Verdict};
use serde_json::{Map, Value, json};

/// A topology in the making: subtopologies, and counts by full name.
#[derive(Default)]
struct Builder {
    subtopologies: Vec<Value>,
    repartition: Vec<String>,
    baseline: Map<String, Value>,
    partitions: Map<String, Value>,
}

impl Builder {
    fn add(&mut self, sources: &[String], sinks: &[String], store: Option<(&str, u32)>) {
        if let Some((store, count)) = store {
            self.partitions.insert(format!("a-{store}-changelog"), json!(count));
        }
        let stores: Vec<&str> = store.iter().map(|(store, _)| *store).collect();
        let id = self.subtopologies.len();
        self.subtopologies.push(json!({"id": id, "sources": sources, "sinks": sinks, "stores": stores}));
    }

    fn input(&mut self, name: &str, before: u32, now: u32) -> String {
        self.baseline.insert(name.to_owned(), json!(before));
        self.partitions.insert(name.to_owned(), json!(now));
        name.to_owned()
    }

    fn repartition(&mut self, name: String, count: u32) -> String {
        self.partitions.insert(format!("a-{name}"), json!(count));
        self.repartition.push(name.clone());
        name
    }

    fn decide(self, pinned: Value) -> Decision {
        let snapshot: Snapshot = serde_json::from_value(json!({
            "application_id": "a", "baseline": self.baseline, "partitions": self.partitions,
            "topology": {"subtopologies": self.subtopologies, "repartition_topics": self.repartition, "pinned": pinned}
        }))
        .unwrap();
        let unlimited = Knowledge { max_new_partitions: u32::MAX, ..Knowledge::default() };
        Planner::new(&snapshot).unwrap().decide(&snapshot.baseline, &snapshot.partitions, &unlimited)
    }
}

/// `in` -> 5,000 repartition topics in a row, each with a store behind it.
fn chain() -> Builder {
    let mut builder = Builder::default();
    let mut source = builder.input("in", 3, 4);
    for at in 0..5_000 {
        let next = builder.repartition(format!("r{at}-repartition"), 3);
        let store = format!("s{at}");
        builder.add(&[source], std::slice::from_ref(&next), (at > 0).then_some((store.as_str(), 3)));
        source = next;
    }
    builder.add(&[source], &[], Some(("last", 3)));
    builder
}

/// One subtopology reads `in` and a repartition topic of another input, and writes 5,000 repartition topics.
fn star(input: u32, hub: u32) -> Builder {
    let mut builder = Builder::default();
    let (input, other) = (builder.input("in", 3, input), builder.input("other", 3, hub));
    let hub = builder.repartition("hub-repartition".to_owned(), 3);
    builder.add(&[other], std::slice::from_ref(&hub), None);
    let arms: Vec<String> = (0..5_000).map(|at| builder.repartition(format!("r{at}-repartition"), 3)).collect();
    builder.add(&[input, hub], &arms, None);
    for (at, arm) in arms.into_iter().enumerate() {
        builder.add(&[arm], &[], Some((&format!("s{at}"), 3)));
    }
    builder
}

/// 40 subtopologies in a ring, each with an input of its own; every count depends on the order of the visit.
fn ring(widths: impl Fn(u32) -> (u32, u32), observed: u32) -> Builder {
    let mut builder = Builder::default();
    let topics: Vec<[String; 2]> =
        (0..40).map(|at| ["r", "q"].map(|kind| builder.repartition(format!("{kind}{at}-repartition"), observed))).collect();
    for at in 0..40 {
        let (before, now) = widths(at);
        let at = at as usize;
        let mut sources = vec![builder.input(&format!("e{at}"), before, now)];
        sources.extend(topics[(at + 39) % 40].clone());
        builder.add(&sources, &topics[at].clone(), Some((&format!("s{at}"), observed)));
    }
    builder
}

#[test]
fn a_long_chain() {
    let decision = chain().decide(json!([]));
    assert_eq!((decision.decision, decision.changes.len()), (Verdict::Expand, 10_000));
    let deepest = decision.changes.iter().find(|change| change.topic == "a-r4999-repartition").unwrap();
    assert_eq!((deepest.role, deepest.from, deepest.to), (Role::Repartition, 3, 4));
    assert_eq!(deepest.because.first().unwrap(), "in 3 -> 4");
    assert!(deepest.because.len() < 12, "{:?}", deepest.because);
}

#[test]
fn a_long_chain_whose_pins_are_not_known() {
    let decision = chain().decide(Value::Null);
    assert_eq!(decision.code, Some(Code::Ambiguous));
    assert_eq!(decision.questions[0].setting, "topology.pinned");
    assert_eq!(decision.questions[0].about.len(), 5_000);
}

#[test]
fn a_star_that_grows_as_one() {
    let decision = star(6, 6).decide(json!([]));
    assert_eq!((decision.code, decision.changes.len()), (Some(Code::LimitExceeded), 0));
}

#[test]
fn a_star_whose_arms_depend_on_the_order() {
    let decision = star(3, 4).decide(json!([]));
    assert_eq!(decision.code, Some(Code::OrderDependent));
    assert_eq!(decision.possible_counts["a-r77-repartition"], [3, 4]);
    assert_eq!(decision.possible_counts["a-s77-changelog"], [3, 4]);
    assert_eq!(decision.possible_counts.len(), 10_000);
}

#[test]
fn a_star_whose_pins_are_not_known() {
    assert_eq!(star(3, 4).decide(Value::Null).code, Some(Code::Ambiguous));
}

#[test]
fn forty_coupled_subtopologies() {
    let together = ring(|_| (3, 6), 3).decide(json!([]));
    assert_eq!((together.decision, together.changes.len()), (Verdict::Expand, 120));
    let one = ring(|at| (3, if at == 7 { 9 } else { 3 }), 3).decide(json!([]));
    assert_eq!(one.code, Some(Code::OrderDependent));
    assert_eq!(one.possible_counts["a-r20-repartition"], [3, 9]);
    let all_different = ring(|at| (2 + at * 7 % 13, 2 * (2 + at * 7 % 13)), 3).decide(json!([]));
    assert_eq!(all_different.code, Some(Code::BaselineMismatch));
}
