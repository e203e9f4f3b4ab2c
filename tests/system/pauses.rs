//! A leader that stands still for longer than its session, at each point between taking over and the answer to a request, and wakes up
//! after its successor has acted.

use std::fs;
use std::thread;

use kit::requests::Request;
use kit::wait::{self, PATIENCE};
use kit::{Cluster, Sidecar, sidecar};
use serde_json::Value;

use crate::stage::{BINARY, Stage};

/// Where it stands still, and what may be found of it afterwards.
struct Point {
    name: &'static str,
    id: &'static str,
    /// It is reached only with a growth to follow; else while taking over.
    reacts: bool,
    /// Codes in the answers to the requests of the leader that stood still: 0, or INVALID_PARTITIONS for counts that are there already.
    answers: &'static [i64],
    /// What it says about itself when it wakes up.
    says: &'static str,
}

const NO_LONGER: &str = "this sidecar does not lead any more";
const GIVEN_UP: &str = "this sidecar writes no more to the coordinator topic";

const POINTS: [Point; 6] = [
    Point { name: "before-intent", id: "paused-before-intent", reacts: false, answers: &[], says: GIVEN_UP },
    Point { name: "after-intent", id: "paused-after-intent", reacts: false, answers: &[], says: GIVEN_UP },
    Point { name: "after-observation", id: "paused-after-observation", reacts: true, answers: &[], says: NO_LONGER },
    Point { name: "before-margin-check", id: "paused-before-check", reacts: true, answers: &[], says: "the request is not sent" },
    // The one moment that no check can cover. What comes late is too low, as counts only grow.
    Point { name: "after-margin-check", id: "paused-after-check", reacts: true, answers: &[37, 37], says: NO_LONGER },
    Point { name: "after-request", id: "paused-after-request", reacts: true, answers: &[0, 0], says: NO_LONGER },
];

fn builder(stage: &Stage<'_>, client: &str) -> sidecar::Builder {
    let client = format!("{client:?}");
    let settings = stage.config(&[("leader.election", "\"kafka\""), ("kafka.client.id", &client)]);
    let settings: Vec<&str> = settings.lines().filter(|line| !line.starts_with("topology.")).collect();
    let topology = format!(
        "[topology]\nrepartition_topics = [\"k-repartition\"]\npinned = []\n\
         [[topology.subtopologies]]\nid = 0\nsources = [{:?}]\nsinks = [\"k-repartition\"]\n\
         [[topology.subtopologies]]\nid = 1\nsources = [\"k-repartition\"]\nstores = [\"st\"]\n",
        stage.topic("orders")
    );
    Sidecar::builder(BINARY).config(&format!("{}\n{topology}", settings.join("\n")))
}

fn wait_stopped(sidecar: &Sidecar) {
    let stat = format!("/proc/{}/stat", sidecar.process().pid());
    wait::until(PATIENCE, "the leader to stand still", || {
        // the name of the program, in parentheses, may hold anything
        let stat = fs::read_to_string(&stat).unwrap();
        (stat.rsplit_once(") ")?.1.split(' ').next() == Some("T")).then_some(())
    });
}

fn wait_role(sidecar: &Sidecar, leads: bool, state: Option<&str>) {
    let wanted = |status: &Value| {
        let application = &status["applications"][0];
        application["leader"] == leads && state.is_none_or(|state| application["state"]["name"] == state)
    };
    sidecar.wait_status(&format!("leader: {leads}, {state:?}"), wanted);
}

fn grow(stage: &Stage<'_>, count: usize) {
    stage.grow(&[("orders", count)]);
}

fn wait_followed(stage: &Stage<'_>, count: usize) {
    stage.wait_internal(&[("k-repartition", count), ("st-changelog", count)]);
}

/// Requests of one sidecar: the counts that were asked for, and the codes in the answers.
fn asked(cluster: &Cluster, client: &str) -> Vec<(i64, i64)> {
    let requests = cluster.requests("CREATE_PARTITIONS").into_iter().filter(|request| request.client_id == client);
    let field = |list: &Value, name: &str| -> Vec<i64> {
        list.as_array().unwrap().iter().map(|entry| entry[name].as_i64().unwrap()).collect()
    };
    let pairs = |request: Request| {
        let counts = field(&request.request["topics"], "count");
        counts.into_iter().zip(field(&request.response["results"], "errorCode")).collect::<Vec<_>>()
    };
    requests.flat_map(pairs).collect()
}

/// How often it was kept from acting, of whatever kind.
fn fenced(sidecar: &Sidecar, id: &str) -> f64 {
    let (metrics, sample) = (sidecar.metrics(), format!("partition_autoscaler_fenced_total{{application_id=\"{id}\","));
    let samples = metrics.lines().filter(|line| line.starts_with(&sample));
    samples.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

fn pause_at(point: &Point) {
    let stage = Stage::shared(point.id);
    stage.create(&[("orders", 3)]);
    stage.cluster.admin().create(&[(&stage.internal("k-repartition"), 3), (&stage.internal("st-changelog"), 3)]);
    let clients = ["paused", "successor"].map(|name| format!("{}-{name}", point.id));
    let old = builder(&stage, &clients[0]).env("PARTITION_AUTOSCALER_PAUSE_AT", point.name).start();
    let new = || builder(&stage, &clients[1]).start();

    let new = if point.reacts {
        wait_role(&old, true, Some("Steady"));
        let new = new();
        wait_role(&new, false, Some("Steady"));
        grow(&stage, 6);
        wait_stopped(&old);
        new
    } else {
        wait_stopped(&old);
        let new = new();
        wait_role(&new, true, Some("Steady"));
        grow(&stage, 6);
        wait_followed(&stage, 6);
        new
    };
    grow(&stage, 9);
    wait_followed(&stage, 9);
    wait_role(&new, true, None);

    old.process().resume();
    old.wait_log(point.says);
    old.wait_log(GIVEN_UP);
    wait_role(&old, false, None);
    grow(&stage, 12);
    wait_followed(&stage, 12);
    wait_role(&old, false, None);
    wait_role(&new, true, None);

    let codes = |client: &str| -> Vec<i64> { asked(stage.cluster, client).into_iter().map(|(_, code)| code).collect() };
    wait::until(PATIENCE, "the last request in the log of the broker", || {
        asked(stage.cluster, &clients[1]).contains(&(12, 0)).then_some(())
    });
    assert_eq!(codes(&clients[0]), point.answers, "{}: {:?}", point.name, asked(stage.cluster, &clients[0]));
    assert!(asked(stage.cluster, &clients[0]).iter().all(|(count, _)| *count == 6), "only what it saw before it stood still");
    assert!(codes(&clients[1]).iter().all(|code| *code == 0), "{}: {:?}", point.name, asked(stage.cluster, &clients[1]));
    if point.name == "before-intent" {
        wait::until(PATIENCE, "a failed call in the metrics", || (fenced(&old, point.id) >= 1.0).then_some(()));
        assert!(!old.log().contains("this sidecar leads"), "{}", old.log());
    }
}

#[test]
fn a_leader_that_wakes_up_after_its_successor_has_acted_sends_nothing_wrong_and_follows() {
    thread::scope(|scope| {
        for point in &POINTS {
            let name = format!("paused {}", point.name);
            thread::Builder::new().name(name).spawn_scoped(scope, || pause_at(point)).unwrap();
        }
    });
}
