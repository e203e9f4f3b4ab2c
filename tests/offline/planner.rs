//! The planner as the loop uses it: what to watch, what to ask before anything grows, what it has learnt.

use std::collections::{BTreeMap, BTreeSet};

use partition_autoscaler::plan::{Code, CountsByName, Knowledge, Planner, Verdict};
use serde_json::{Value, json};

use super::snapshot;

const JOIN: &str = "Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
      --> KSTREAM-KEY-SELECT-0000000001
    Processor: KSTREAM-KEY-SELECT-0000000001 (stores: [])
      --> KSTREAM-SINK-0000000002
      <-- KSTREAM-SOURCE-0000000000
    Sink: KSTREAM-SINK-0000000002 (topic: by-customer-repartition)
      <-- KSTREAM-KEY-SELECT-0000000001

  Sub-topology: 1
    Source: KSTREAM-SOURCE-0000000003 (topics: [by-customer-repartition])
      --> KSTREAM-AGGREGATE-0000000004
    Source: KSTREAM-SOURCE-0000000005 (topics: late-.*)
      --> KSTREAM-AGGREGATE-0000000004
    Processor: KSTREAM-AGGREGATE-0000000004 (stores: [totals])
      --> none
      <-- KSTREAM-SOURCE-0000000003, KSTREAM-SOURCE-0000000005
";

fn planner(extra: Value) -> Planner {
    let mut input = json!({"application_id": "shop", "describe": JOIN, "partitions": {}});
    input.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    Planner::new(&snapshot(&input)).unwrap()
}

fn counts(entries: &[(&str, u32)]) -> CountsByName {
    entries.iter().map(|(topic, count)| ((*topic).to_owned(), *count)).collect()
}

fn present() -> CountsByName {
    counts(&[("orders", 3), ("shop-by-customer-repartition", 3), ("shop-totals-changelog", 3), ("late-eu", 2)])
}

/// Before the first start of an application, or under a wrong name.
#[test]
fn an_application_without_its_internal_topics_is_noticed() {
    let planner = planner(json!({}));
    let missing = planner.lacks_internal_topics(&counts(&[("orders", 3)]));
    assert_eq!(missing.as_deref(), Some("shop-by-customer-repartition"));
    assert_eq!(planner.lacks_internal_topics(&present()), None);
}

#[test]
fn watches_inputs_internal_topics_and_patterns() {
    let watched = planner(json!({})).watched();
    for name in ["orders", "shop-by-customer-repartition", "shop-totals-changelog"] {
        assert!(watched.names.contains(name), "{name} in {:?}", watched.names);
    }
    assert_eq!(watched.patterns.len(), 1);
    assert!(watched.patterns[0].matches("late-eu") && !watched.patterns[0].matches("orders"));

    let named = Planner::new(&snapshot(&json!({
        "application_id": "shop", "partitions": {},
        "topology": {"subtopologies": [{"id": 0, "topology": "eu", "sources": ["a", "lookup"], "sinks": ["k-repartition"]},
                                       {"id": 1, "topology": "eu", "sources": ["k-repartition"], "stores": ["s", "memory"]}],
                     "repartition_topics": ["k-repartition"], "global_topics": ["lookup"], "logging_disabled": ["memory"]}
    })))
    .unwrap();
    let expected = ["a", "shop-eu-k-repartition", "shop-eu-s-changelog"];
    assert_eq!(named.watched().names, expected.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>());
}

#[test]
fn a_pattern_takes_in_what_it_matches() {
    let planner = planner(json!({"stated": {"pinned": []}}));
    let mut grown = present();
    grown.insert("late-us".to_owned(), 8); // did not exist before
    let decision = planner.decide(&counts(&[("orders", 3), ("late-eu", 2)]), &grown, &Knowledge::default());
    let changes: BTreeMap<&str, u32> = decision.changes.iter().map(|change| (change.topic.as_str(), change.to)).collect();
    assert_eq!((decision.decision, changes), (Verdict::Expand, BTreeMap::from([("shop-totals-changelog", 8)])));
}

#[test]
fn asks_at_the_start_for_what_would_hold_up_an_expansion() {
    let questions = planner(json!({})).rehearse(&present(), &Knowledge::default());
    assert_eq!(questions.len(), 1, "{questions:?}");
    assert_eq!(
        (questions[0].setting.as_str(), &questions[0].about),
        ("topology.pinned", &vec!["by-customer-repartition".to_owned()])
    );
    assert_eq!(planner(json!({"stated": {"pinned": []}})).rehearse(&present(), &Knowledge::default()), []);
}

#[test]
fn what_has_followed_once_is_not_pinned() {
    let planner = planner(json!({}));
    let baseline = counts(&[("orders", 3), ("late-eu", 2)]);
    let mut grown = present();
    grown.insert("orders".to_owned(), 6);
    let unsure = planner.decide(&baseline, &grown, &Knowledge::default());
    assert_eq!(unsure.code, Some(Code::Ambiguous));
    assert_eq!(unsure.possible_counts["shop-by-customer-repartition"], [3, 6]);
    let knowledge = Knowledge { not_pinned: BTreeSet::from(["shop-by-customer-repartition".to_owned()]), ..Knowledge::default() };
    let sure = planner.decide(&baseline, &grown, &knowledge);
    assert_eq!((sure.decision, sure.changes.len()), (Verdict::Expand, 2));

    // It was grown to 4 in between, by a leader that could not write the baseline of that any more.
    for topic in ["shop-by-customer-repartition", "shop-totals-changelog"] {
        *grown.get_mut(topic).unwrap() = 4;
    }
    let later = planner.decide(&baseline, &grown, &knowledge);
    assert_eq!((later.decision, later.changes.len()), (Verdict::Expand, 2), "{}", later.message);
}

#[test]
fn what_kafka_could_not_run_is_unsupported() {
    let stuck = |sinks: Value| {
        let planner = Planner::new(&snapshot(&json!({
            "application_id": "shop", "partitions": {},
            "topology": {"subtopologies": [{"id": 0, "sources": ["in"]}, {"id": 1, "sources": ["k-repartition"], "sinks": sinks}],
                         "repartition_topics": ["k-repartition"], "pinned": []}
        })))
        .unwrap();
        planner.decide(&counts(&[]), &counts(&[("in", 3)]), &Knowledge::default())
    };
    for sinks in [json!([]), json!(["k-repartition"])] {
        let decision = stuck(sinks);
        assert_eq!((decision.decision, decision.code), (Verdict::Blocked, Some(Code::Unsupported)));
        assert!(decision.message.contains("shop-k-repartition"), "{}", decision.message);
    }
}

#[test]
fn the_whole_way_to_a_count_that_a_partner_holds_is_told() {
    let planner = Planner::new(&snapshot(&json!({
        "application_id": "A", "partitions": {},
        "topology": {"subtopologies": [{"id": 0, "sources": ["s"], "sinks": ["R-repartition"]},
                                       {"id": 1, "sources": ["R-repartition", "t"], "stores": ["t-store"]}],
                     "repartition_topics": ["R-repartition"], "copartition_groups": [["R-repartition", "t"]], "pinned": []}
    })))
    .unwrap();
    let decision = planner.decide(
        &counts(&[("s", 4), ("t", 6)]),
        &counts(&[("s", 4), ("t", 9), ("A-R-repartition", 6), ("A-t-store-changelog", 6)]),
        &Knowledge::default(),
    );
    assert_eq!(decision.changes[0].because, ["t 6 -> 9", "A-R-repartition is copartitioned with t -> 9"]);
    assert_eq!(decision.changes[1].because[0], "t 6 -> 9");
}

/// Where it is in doubt whether there is a group at all, no way but one knows it; the question names it all the same.
#[test]
fn the_question_for_a_join_names_its_topics() {
    const NAMED: &str = "Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
      --> enriched
    Source: KSTREAM-SOURCE-0000000001 (topics: [customers])
      --> KTABLE-SOURCE-0000000002
    Processor: enriched (stores: [customers-store])
      --> none
      <-- KSTREAM-SOURCE-0000000000
    Processor: KTABLE-SOURCE-0000000002 (stores: [customers-store])
      --> none
      <-- KSTREAM-SOURCE-0000000001
";
    let input = json!({"application_id": "shop", "describe": NAMED, "stated": {"pinned": []}, "partitions": {}});
    let planner = Planner::new(&snapshot(&input)).unwrap();
    let before = counts(&[("orders", 3), ("customers", 3)]);
    let grown = counts(&[("orders", 3), ("customers", 6), ("shop-customers-store-changelog", 3)]);
    let decision = planner.decide(&before, &grown, &Knowledge::default());
    assert_eq!(decision.code, Some(Code::Ambiguous), "{}", decision.message);
    assert_eq!(decision.questions[0].about, ["customers", "orders"]);
}

#[test]
fn a_name_as_the_code_gives_it_is_corrected() {
    let warnings = |pinned: &str| {
        let decision = planner(json!({"stated": {"pinned": [pinned]}})).decide(&counts(&[]), &present(), &Knowledge::default());
        decision.warnings.into_iter().map(|warning| warning.message).collect::<Vec<_>>().join("\n")
    };
    assert!(warnings("by-customer").contains("by-customer stands in"), "{}", warnings("by-customer"));
    assert!(warnings("by-customer").ends_with("; write by-customer-repartition"), "{}", warnings("by-customer"));
    assert!(warnings("nothing").ends_with("; correct the name or leave it out"), "{}", warnings("nothing"));
}
