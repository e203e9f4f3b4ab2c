//! Many topics: one plan is one request, and watching them asks for nothing else.

use std::collections::BTreeSet;

use kit::wait::{self, PATIENCE};

use crate::stage::{Stage, metric, wait_state};

const WIDTH: usize = 100;

#[test]
fn two_hundred_internal_topics_grow_in_one_request() {
    let stage = Stage::shared("wide");
    stage.create(&[("orders", 1), ("wide-counts", 1)]);
    let app = stage.app().topology("wide").width(WIDTH).start(stage.cluster);
    app.wait_tasks(1 + WIDTH);
    let sidecar = stage.sidecar(&app, &[]).start();
    wait_state(&sidecar, "Steady");
    stage.grow(&[("orders", 2)]);
    let internal: BTreeSet<String> = (0..WIDTH)
        .flat_map(|n| [stage.internal(&format!("wide-{n}-repartition")), stage.internal(&format!("wide-counts-{n}-changelog"))])
        .collect();
    let all: Vec<(&str, usize)> = internal.iter().map(|topic| (topic.as_str(), 2)).collect();
    stage.cluster.admin().wait_counts(&all);
    wait_state(&sidecar, "Settling");

    let by_sidecar = |api: &str| {
        let mut requests = stage.cluster.requests(api);
        requests.retain(|request| request.client_id == "wide-partition-autoscaler");
        requests
    };
    let expansions = by_sidecar("CREATE_PARTITIONS");
    let expanded: Vec<BTreeSet<&str>> =
        expansions.iter().map(|request| request.topics().expect("names").into_iter().collect()).collect();
    assert_eq!(expanded, [internal.iter().map(String::as_str).collect()]);

    let polls = || metric(&sidecar.metrics(), "partition_autoscaler_observations_total{application_id=\"wide\",result=\"ok\"}");
    let before = polls() as usize;
    // The text does not tell whether a topic that is read is internal, so each is asked for with and without the prefix.
    let orders = stage.topic("orders");
    let others = (0..WIDTH).map(|n| format!("wide-{n}-repartition")).chain([stage.internal(&orders), orders]);
    let watched: BTreeSet<String> = internal.iter().cloned().chain(others).collect();
    let observations = wait::until(PATIENCE, "all observations in the log of the broker", || {
        // A request without names asks for the brokers only, one without a list asks for all topics.
        let requests = by_sidecar("METADATA");
        let asked = requests.iter().map(|request| request.topics().expect("never all topics"));
        let asked: Vec<BTreeSet<&str>> = asked.filter(|names| !names.is_empty()).map(BTreeSet::from_iter).collect();
        assert!(asked.iter().all(|names| names.iter().eq(&watched)), "{asked:?}");
        (asked.len() >= before).then_some(asked.len())
    });
    let after = polls() as usize + 1; // one may be under way
    assert!(observations <= after, "{observations} requests for at most {after} observations");
    assert!(app.is_alive());
}
