//! Brokers that are not there, not brokers, or not to be worked with. What a person has to mend ends `run` at once; what may come
//! right by itself is tried again for ever, and told once.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use kit::{Acl, Cluster, Operation, Resource, Sidecar};
use serde_json::Value;

use super::files::closed;
use super::{ALL, Desk, FROM_CLUSTER, old_broker};
use crate::kafka_client::{TlsServer, http_server};
use crate::stage::BINARY;

const TEXT: &str = "topology.file = \"shop.txt\"";
const FATAL: &[&str] = &["run", "plan", "snapshot"];

/// `run` against something that may become a broker: it goes on, and says why it waits in log, status and readiness.
fn waits(mut desk: Desk, name: &str, reason: &str) {
    desk.run_each(FROM_CLUSTER);
    let config = std::fs::read_to_string(desk.path().join("shop.toml")).unwrap();
    let text = desk.path().join("shop.txt").display().to_string();
    let sidecar = Sidecar::builder(BINARY).config(&config.replace("shop.txt", &text)).start();
    let status = sidecar.wait_status("the reason", |status| {
        status["applications"][0]["last_error"].as_str().is_some_and(|error| error.contains(reason))
    });
    // Several attempts on, it has still been said once.
    kit::wait::until(kit::wait::PATIENCE, "four attempts", || {
        let metrics = sidecar.metrics();
        let errors = metrics.lines().filter(|line| line.starts_with("partition_autoscaler_kafka_errors_total{"));
        let count: f64 = errors.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
        (count >= 4.0).then_some(())
    });
    let log = sidecar.log();
    assert_eq!(log.matches(reason).count(), 1, "{log}");
    let (code, ready) = sidecar.get("/readyz");
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let state = &status["applications"][0]["state"];
    desk.note(&format!("/readyz of run: {code} {:#}", ready["missing"]));
    desk.note(&format!("/v1/status of run: {} {}", state["name"], state["details"]));
    sidecar.process().terminate();
    assert_eq!(sidecar.wait_exit().code(), Some(0), "{}", sidecar.log());
    desk.check(name);
}

#[test]
fn nothing_listens() {
    let address = closed();
    waits(Desk::new().with_config(&address, TEXT).hide(&address, "BROKER:PORT"), "broker_unreachable", "nothing listens at");
    let mut desk = Desk::new().with_config(&address, TEXT).hide(&address, "BROKER:PORT");
    desk.run("topology --config shop.toml").check("broker_unreachable_topology");
}

#[test]
fn a_web_server_is_no_broker() {
    let address = http_server();
    let desk = Desk::new().with_config(&address, TEXT).hide(&address, "WEB:PORT");
    waits(desk, "broker_is_a_web_server", "is a web server");
}

/// The application may start after its sidecar: the text is asked for until it is there, and why it is not is said once.
#[test]
fn the_text_is_waited_for() {
    let cluster = Cluster::shared();
    cluster.admin().create(&[("unhurried.orders", 3)]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(AtomicUsize::new(0));
    let is_up = Arc::new(AtomicBool::new(false));
    let (count, up) = (Arc::clone(&asked), Arc::clone(&is_up));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]); // what is asked for does not matter
            count.fetch_add(1, Ordering::SeqCst);
            let text = "Topologies:\n   Sub-topology: 0\n    Source: a (topics: [unhurried.orders])\n      --> none\n";
            let status = if up.load(Ordering::SeqCst) { "200 OK" } else { "503 Service Unavailable" };
            let _ = write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}", text.len());
        }
    });
    let config = format!(
        "bootstrap.servers = \"{}\"\napplication.id = \"unhurried\"\nleader.election = \"none\"\nhttp.listen = \"127.0.0.1:0\"\n\
         topology.url = \"http://{address}/topology\"\n",
        cluster.bootstrap()
    );
    let sidecar = Sidecar::builder(BINARY).config(&config).start();
    let reason = format!("http://{address}/topology answered 503 Service Unavailable, expected 200");
    let says = |text: &Value| text.as_str().is_some_and(|text| text.contains(&reason));
    sidecar.wait_status("the reason", |status| says(&status["applications"][0]["state"]["details"]));
    kit::wait::until(kit::wait::PATIENCE, "three attempts", || (asked.load(Ordering::SeqCst) >= 3).then_some(()));
    let (code, ready) = sidecar.get("/readyz");
    let ready: Value = serde_json::from_str(&ready).unwrap();
    assert_eq!((code, says(&ready["missing"][0])), (503, true), "{ready}");
    is_up.store(true, Ordering::SeqCst);
    sidecar.wait_status("the watch", |status| status["applications"][0]["state"]["name"] == "Steady");
    assert_eq!(sidecar.get("/readyz").0, 200);
    assert_eq!(sidecar.log().matches(&reason).count(), 1, "{}", sidecar.log());
}

#[test]
fn what_only_a_person_can_mend() {
    let cluster = Cluster::shared();
    let admin = cluster.admin();
    let counts = [("bad.orders", 6), ("bad-by-customer-repartition", 3), ("bad-counts-changelog", 3)];
    admin.create(&counts);
    let (broker, controller, old, tls) = (cluster.bootstrap(), cluster.controllers(), old_broker::start(), TlsServer::start());
    let cases: &[(&str, &str, &str)] = &[
        ("broker_is_a_controller", &controller, ""),
        ("broker_too_old", &old, ""),
        ("broker_without_tls", &broker, "kafka.security.protocol = \"SSL\""),
        ("broker_with_tls", &tls.address, ""),
        ("broker_with_unknown_certificate", &tls.address, "kafka.security.protocol = \"SSL\""),
        ("broker_of_another_cluster", &broker, "expected.cluster.id = \"4L6g3nShT-eMCtK--X86sw\""),
        ("client_settings", &broker, "kafka.sasl.mechanism = \"OAUTHBEARER\""),
    ];
    for (name, address, more) in cases {
        let desk = Desk::new().with_config(address, &format!("{TEXT}\n{more}"));
        let mut desk = desk.hide(*address, "BROKER:PORT").hide(cluster.id(), "CLUSTER-ID");
        desk.run_each(FATAL).check(name);
    }
    let seen: BTreeMap<String, usize> = admin.counts();
    for (topic, count) in counts {
        assert_eq!(seen.get(topic), Some(&count), "{topic} has changed");
    }
}

#[test]
fn logins_and_rights() {
    let cluster = Cluster::builder().user("scaler", "secret").start();
    let counts = [("bad.orders", 6), ("bad-by-customer-repartition", 3), ("bad-counts-changelog", 3)];
    cluster.admin().create(&counts);
    let address = cluster.sasl_bootstrap();
    let login = |mechanism: &str, password: &str| {
        format!(
            "{TEXT}\nkafka.security.protocol = \"SASL_PLAINTEXT\"\nkafka.sasl.mechanism = \"{mechanism}\"\n\
             kafka.sasl.username = \"scaler\"\nkafka.sasl.password = \"{password}\""
        )
    };
    let desk =
        |more: &str| Desk::new().with_config(&address, more).hide(&address, "BROKER:PORT").hide(cluster.id(), "CLUSTER-ID");
    for (name, more) in [
        ("login_wrong", login("PLAIN", "hunter2")),
        ("login_missing", TEXT.to_owned()),
        ("login_mechanism", login("SCRAM-SHA-256", "secret")),
    ] {
        let mut desk = desk(&more);
        desk.run_each(FATAL).check(name);
        assert!(!desk.said.contains("hunter2"), "a password is shown");
    }
    let mut unseen = desk(&login("PLAIN", "secret"));
    unseen.run_each(FROM_CLUSTER).check("right_missing");
    let describe = |topic: &str| Acl::new("scaler", Operation::Describe, Resource::Topic, topic);
    cluster.admin().allow(&[describe("bad.orders"), describe("bad-counts-changelog")]);
    desk(&login("PLAIN", "secret")).run_each(ALL.get(1..).unwrap()).check("right_missing_for_one");
    cluster.admin().allow(&[describe("bad-by-customer-repartition")]);
    desk(&login("PLAIN", "secret")).run_each(ALL.get(1..).unwrap()).check("rights_suffice");
    let seen = cluster.admin().counts();
    for (topic, count) in counts {
        assert_eq!(seen.get(topic), Some(&count), "{topic} has changed");
    }
}
