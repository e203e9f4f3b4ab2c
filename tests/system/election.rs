//! Several sidecars of one application: one acts, and what it knows outlives it.

use kit::{Sidecar, wait};
use serde_json::Value;

use crate::stage::{BINARY, Stage, metric, wait_state};

/// Topics without an application are enough: who leads does not depend on it.
pub const TOPOLOGY: &str = r#"
[topology]
repartition_topics = ["k-repartition"]
pinned = []
[[topology.subtopologies]]
id = 0
sources = ["ORDERS"]
sinks = ["k-repartition"]
[[topology.subtopologies]]
id = 1
sources = ["k-repartition"]
stores = ["st"]
"#;

fn sidecar(stage: &Stage<'_>) -> Sidecar {
    let settings = stage.config(&[("leader.election", "\"kafka\"")]);
    let settings: Vec<&str> = settings.lines().filter(|line| !line.starts_with("topology.")).collect();
    let topology = TOPOLOGY.replace("ORDERS", &stage.topic("orders"));
    Sidecar::builder(BINARY).config(&format!("{}\n{topology}", settings.join("\n"))).start()
}

fn application(sidecar: &Sidecar) -> Value {
    sidecar.status()["applications"][0].clone()
}

/// Which of them leads, once exactly one does and the others have heard of it.
fn wait_leader(sidecars: &[Sidecar]) -> usize {
    wait::until(wait::PATIENCE, "exactly one leader", || {
        let states: Vec<Value> = sidecars.iter().map(application).collect();
        let leaders: Vec<usize> = (0..states.len()).filter(|&at| states[at]["leader"] == true).collect();
        (leaders.len() == 1 && states.iter().all(|state| state["state"]["name"] == "Steady")).then(|| leaders[0])
    })
}

fn requests(sidecars: &[Sidecar]) -> Vec<f64> {
    let name = "partition_autoscaler_create_partitions_requests_total";
    let sample = |sidecar: &Sidecar| {
        let text = sidecar.metrics();
        text.lines().find(|line| line.starts_with(name)).and_then(|line| line.rsplit(' ').next()).unwrap().parse().unwrap()
    };
    sidecars.iter().map(sample).collect()
}

#[test]
fn one_of_three_acts_and_its_successor_knows_what_it_knew() {
    let stage = Stage::shared("elected");
    stage.create(&[("orders", 3)]);
    let admin = stage.cluster.admin();
    admin.create(&[(&stage.internal("k-repartition"), 3), (&stage.internal("st-changelog"), 3)]);
    let mut sidecars: Vec<Sidecar> = (0..3).map(|_| sidecar(&stage)).collect();
    let leader = wait_leader(&sidecars);

    stage.grow(&[("orders", 6)]);
    stage.wait_internal(&[("k-repartition", 6), ("st-changelog", 6)]);
    let sent = requests(&sidecars);
    assert!(sent.iter().enumerate().all(|(at, n)| (*n > 0.0) == (at == leader)), "{sent:?}, leader {leader}");

    // the memory outlives the leader: the baseline of 6 is known to whoever comes next
    let old = sidecars.remove(leader);
    old.process().terminate();
    assert!(old.wait_exit().success());
    let leader = wait_leader(&sidecars);
    wait::until(wait::PATIENCE, "the baseline", || {
        (application(&sidecars[leader])["baseline"][stage.topic("orders")] == 6).then_some(())
    });
    assert_eq!(metric(&sidecars[leader].metrics(), "partition_autoscaler_leader{application_id=\"elected\"}"), 1.0);

    // and it outlives all of them: an input that grows while nobody runs is followed later
    for sidecar in &sidecars {
        sidecar.process().kill();
        sidecar.wait_exit();
    }
    stage.grow(&[("orders", 9)]);
    let late = sidecar(&stage);
    stage.wait_internal(&[("k-repartition", 9), ("st-changelog", 9)]);
    wait_state(&late, "Settling");
}
