//! The chart beside a real application: what helm renders is run as the pod would run it, and what it brings to watch the sidecars
//! is asked of a real Prometheus.

mod panels;
mod prometheus;
mod rendered;

use std::process::Command;

use kit::wait::{self, PATIENCE};
use kit::{App, Cluster, Sidecar, free_ports};
use prometheus::Prometheus;
use rendered::Rendered;
use serde_json::{Value, json};

use crate::stage::{BINARY, Stage};

/// The values of an installation. What a pod has of its own in a cluster is its port here.
fn values(stage: &Stage<'_>, app: &App, port: u16) -> Value {
    json!({
        "config": {
            "application": {"id": stage.id},
            "bootstrap": {"servers": stage.cluster.bootstrap()},
            "topology": {"file": "shop.txt", "pinned": []},
            "partition": {"autoscaling": {"enabled": true}},
            "http": {"listen": format!("0.0.0.0:{port}")},
        },
        "topology": {"files": {"shop.txt": app.describe()}},
        "extraEnv": [{"name": "LOG_FORMAT", "value": "json"}],
        "serviceMonitor": {"enabled": true, "interval": "2s", "scrapeTimeout": "2s"},
        "prometheusRule": {"enabled": true},
        "dashboard": {"enabled": true},
    })
}

#[test]
fn two_pods_autoscale_and_prometheus_sees_it() {
    let cluster = Cluster::builder().log_requests().start(); // of its own: it is paused below
    let stage = Stage::on(&cluster, "charted");
    let app = stage.start_simple(stage.app().metadata_age_ms(3000));
    let pods: Vec<Rendered> = free_ports(2).into_iter().map(|port| Rendered::of(&values(&stage, &app, port))).collect();
    assert_eq!(pods[0].one("Deployment")["spec"]["replicas"], pods.len());
    let sidecars: Vec<Sidecar> = pods.iter().map(|pod| pod.sidecar().start()).collect();
    let prometheus = Prometheus::start(&pods);
    prometheus
        .wait("count(count_over_time(partition_autoscaler_leader[1h]) >= 2) == 2 and sum(partition_autoscaler_leader) == 1");
    for (pod, sidecar) in pods.iter().zip(&sidecars) {
        assert_probes(pod, sidecar);
        assert!(sidecar.log().lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "LOG_FORMAT counts");
    }

    stage.grow_after_refresh("charted-", &[("orders", 6)]);
    app.wait_tasks(12);
    // one moment for all questions: the growth is over, and the leader says so (a follower shows no state)
    let seen = prometheus.wait(
        "count(partition_autoscaler_leader) == 2 and sum(partition_autoscaler_leader) == 1 \
         and sum(partition_autoscaler_state{state=\"steady\"}) == 1 and sum(partition_autoscaler_settling_seconds_count) == 1",
    );
    panels::assert_dashboard(&prometheus, &pods[0].dashboard(), seen);
    let rules = pods[0].rules();
    for rule in &rules {
        let answer = prometheus.query(rule["expr"].as_str().expect("a text"), seen);
        assert!(answer.is_empty(), "{} is not quiet: {answer:?}", rule["alert"]);
    }
    for pod in &pods {
        assert_helm_test_passes(pod);
    }

    let fires = |alert: &str, labels: &Value| {
        let rule = rules.iter().find(|rule| rule["alert"] == alert).expect("an alert of the chart");
        let moment = prometheus.wait(rule["expr"].as_str().expect("a text"));
        assert_eq!(&prometheus.query(rule["expr"].as_str().expect("a text"), moment)[0]["metric"], labels, "{alert}");
        prometheus.wait_rule(alert, "pending");
    };
    let labels = json!({"namespace": "streams", "application_id": "charted"});

    // A ConfigMap that has reached one of the two pods.
    let on = pods[0].file("config.toml");
    sidecars[0].write_file("config.toml", &on.replace("autoscaling.enabled = true", "autoscaling.enabled = false"));
    fires("PartitionAutoscalerFlagMismatch", &labels);
    sidecars[0].write_file("config.toml", on);
    prometheus.wait_rule("PartitionAutoscalerFlagMismatch", "inactive");

    // Sidecars without a broker: nobody can prove that it leads.
    cluster.pause(1);
    fires("PartitionAutoscalerNoLeader", &labels);
    prometheus.wait("count(up == 1) == 2");
    prometheus.wait_rule("PartitionAutoscalerGone", "inactive");
    cluster.resume(1);
    prometheus.wait("sum(partition_autoscaler_leader) == 1");
    prometheus.wait_rule("PartitionAutoscalerNoLeader", "inactive");

    // No sidecar at all: there is nobody who could say that he does not lead.
    for sidecar in &sidecars {
        sidecar.process().kill();
    }
    fires("PartitionAutoscalerGone", &labels);
    prometheus.wait_rule("PartitionAutoscalerNoLeader", "inactive");
    prometheus.assert_no_rule_failed(rules.len());
}

/// The probes of the container get their answer on the port they name, from leader and follower alike.
fn assert_probes(pod: &Rendered, sidecar: &Sidecar) {
    assert!(sidecar.url().ends_with(&format!(":{}", pod.port())));
    for probe in ["livenessProbe", "readinessProbe"] {
        let call = &pod.container()[probe]["httpGet"];
        assert!([json!("autoscaler"), json!(pod.port())].contains(&call["port"]), "{call}");
        let path = call["path"].as_str().expect("a text");
        wait::until_ok(PATIENCE, probe, || match sidecar.get(path) {
            (200, _) => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }
}

/// `helm test` asks the Service; each of the pods could be the one that answers.
fn assert_helm_test_passes(pod: &Rendered) {
    let container = &pod.one("Pod")["spec"]["containers"][0];
    let service = format!("http://{}:{}", pod.name("Service"), pod.one("Service")["spec"]["ports"][0]["port"]);
    let arguments = container["args"].as_array().expect("a list").iter().map(|argument| argument.as_str().expect("a text"));
    let here = format!("http://127.0.0.1:{}", pod.port());
    let arguments = arguments.map(|argument| if argument == service { here.as_str() } else { argument });
    let output = Command::new(BINARY).args(arguments).output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
