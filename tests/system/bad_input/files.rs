//! Bad files, options and addresses of texts: no broker is needed to tell.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

use super::{ALL, Desk, TOPOLOGY};

/// Nothing listens there, and nothing has to: these commands end before they connect.
const NOWHERE: &str = "127.0.0.1:1";

#[test]
fn a_broken_configuration() {
    let desk = Desk::new()
        .with_config(NOWHERE, "partition.autoscaling.enable = true\nmax.new.partitions = \"many\"\ntopology.file = \"shop.txt\"");
    { desk }.run_each(ALL).check("configuration");
}

#[test]
fn a_broken_text() {
    let broken = TOPOLOGY.replacen("--> KSTREAM-SINK-0000000001", "==> KSTREAM-SINK-0000000001", 1);
    let mut desk = Desk::new().with("broken.txt", broken).with_config(NOWHERE, "topology.file = \"broken.txt\"");
    desk.run_each(ALL).run("topology --describe broken.txt").check("describe_text");
}

#[test]
fn a_text_that_is_not_there() {
    let mut desk = Desk::new().with_config(NOWHERE, "topology.file = \"gone.txt\"");
    desk.run_each(ALL).run("topology --describe gone.txt").check("describe_text_missing");
}

/// A pipe would be waited for, and be empty when it is read again.
#[test]
fn a_text_in_a_pipe() {
    let mut desk = Desk::new().with_config(NOWHERE, "topology.file = \"pipe.txt\"");
    let made = Command::new("mkfifo").arg(desk.path().join("pipe.txt")).status().unwrap();
    assert!(made.success());
    desk.run_each(ALL).check("describe_text_pipe");
}

#[test]
fn no_topology() {
    Desk::new().with_config(NOWHERE, "").run_each(ALL).check("no_topology");
}

#[test]
fn a_broken_snapshot() {
    let good = r#"{"application_id": "bad", "topology": {"subtopologies": [{"id": 0, "sources": ["bad.orders"]}]}, "partitions": {"bad.orders": 3}}"#;
    let cases = [
        ("syntax.json", good.replace("\"partitions\":", "\"partitions\"")),
        ("unknown.json", good.replace("\"partitions\"", "\n\"partition\"")),
        ("count.json", good.replace(": 3}", ": \"three\"}")),
        ("half.json", good[..40].to_owned()),
        ("both.json", good.replace("\"partitions\"", "\"describe\": \"Topologies:\", \"partitions\"")),
        ("neither.json", r#"{"application_id": "bad", "partitions": {}}"#.to_owned()),
        (
            "text.json",
            r#"{"application_id": "bad", "describe": "Topologies:\n   Sub-topology: zero\n", "partitions": {}}"#.to_owned(),
        ),
    ];
    let mut desk = cases.iter().fold(Desk::new(), |desk, (name, text)| desk.with(name, text));
    for (name, _) in &cases {
        desk.run(&format!("plan --snapshot {name}")).run(&format!("topology --snapshot {name}"));
    }
    desk.run("plan --snapshot gone.json").check("snapshot");
}

#[test]
fn options_that_do_not_fit_the_snapshot() {
    let snapshot = r#"{"application_id": "bad", "topology": {"subtopologies": [{"id": 0, "sources": ["bad.orders"]}]}, "partitions": {"bad.orders": 3}}"#;
    let mut desk = Desk::new().with("s.json", snapshot);
    for options in [
        "--set-count bad.orders",
        "--set-count bad.orders=0",
        "--set-count bad.ordres=6",
        "--set topology.pined=none",
        "--set max.new.partitions=0",
        "--set baseline.bad.orders=many",
        "--set application.id=other",
    ] {
        desk.run(&format!("plan --snapshot s.json {options}"));
    }
    desk.run("plan").run("snapshot").run("run").run("run --output json").run("plan --bootstrap-server localhost:9092");
    desk.check("options");
}

/// Answers every request with this, and closes.
fn web(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // The other side may be gone already.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

/// Nothing listens at the port of a listener that is gone.
pub fn closed() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn an_address_without_the_text() {
    let head = "Connection: close\r\nContent-Length:";
    let html = format!("HTTP/1.1 200 OK\r\n{head} 36\r\n\r\n<!doctype html>\n<html>Welcome</html>\n");
    let answers = [
        ("topology_url_html", web(html.leak())),
        ("topology_url_empty", web(format!("HTTP/1.1 200 OK\r\n{head} 0\r\n\r\n").leak())),
        ("topology_url_404", web(format!("HTTP/1.1 404 Not Found\r\n{head} 0\r\n\r\n").leak())),
        ("topology_url_no_http", web("hello\r\n")),
        ("topology_url_closes", web("")),
        ("topology_url_refused", closed()),
    ];
    for (name, address) in answers {
        let config = format!("topology.url = \"http://user:secret@{address}/topology\"");
        let mut desk = Desk::new().with_config(NOWHERE, &config).hide(&address, "TOPOLOGY:PORT");
        desk.run_each(&["plan", "snapshot", "topology"]).run(&format!("topology --url http://{address}/topology")).check(name);
    }
}

#[test]
fn an_address_that_cannot_be_listened_on() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut desk = Desk::new().with_config(NOWHERE, "topology.file = \"shop.txt\"").hide(&address, "TAKEN:PORT");
    for listen in [address.as_str(), "9878", "127.0.0.1:http", "203.0.113.1:9878"] {
        desk.run(&format!("run --config shop.toml --set http.listen={listen}"));
    }
    desk.check("http_listen");
}
