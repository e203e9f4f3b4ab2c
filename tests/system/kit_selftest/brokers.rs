//! Brokers: several of them, several releases, with users, and what becomes of them when the test process dies.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use kit::wait::{self, PATIENCE};
use kit::{Acl, App, Cluster, Operation, Record, Resource};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions};
use rdkafka::client::DefaultClientContext;

#[test]
fn the_brokers_tell_what_they_were_asked() {
    let cluster = Cluster::shared();
    let admin = cluster.admin();
    admin.create(&[("kit-asked-a", 1), ("kit-asked-b", 1)]);
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", cluster.bootstrap()).set("client.id", "kit-asker");
    let client: AdminClient<DefaultClientContext> = config.create().unwrap();
    client.inner().fetch_metadata(Some("kit-asked-a"), PATIENCE).unwrap();
    let grown = [NewPartitions::new("kit-asked-a", 2), NewPartitions::new("kit-asked-b", 3)];
    kit::block_on(client.create_partitions(&grown, &AdminOptions::new())).unwrap();

    let requests = wait::until(PATIENCE, "the request in the log", || {
        let all = cluster.requests("CREATE_PARTITIONS");
        let ours: Vec<_> = all.into_iter().filter(|request| request.client_id == "kit-asker").collect();
        (!ours.is_empty()).then_some(ours)
    });
    let topics: Vec<_> = requests.iter().map(|request| request.topics().unwrap()).collect();
    assert_eq!(topics, [["kit-asked-a", "kit-asked-b"]]);
    let metadata = cluster.requests("METADATA");
    let by_name = metadata.iter().filter(|request| request.client_id == "kit-asker").filter_map(|request| request.topics());
    assert!(by_name.into_iter().any(|topics| topics == ["kit-asked-a"]));
}

#[test]
fn three_nodes_come_and_go() {
    let cluster = Cluster::builder().nodes(3).start();
    let admin = cluster.admin();
    admin.create(&[("t", 3)]);
    cluster.kill(2);
    assert_eq!(cluster.live_addresses().len(), 2);
    admin.grow(&[("t", 4)]);
    cluster.restart(2);
    admin.wait_counts(&[("t", 4)]);
    cluster.stop(1);
    cluster.restart(1);
    cluster.pause(3);
    cluster.resume(3);
    admin.grow(&[("t", 5)]);
    assert!(cluster.log(1).contains("Kafka Server started"));
}

#[test]
fn older_brokers_and_clients_run() {
    for (broker, client) in [("3.9.2", "4.0.2"), ("4.0.2", "4.4.0")] {
        let cluster = Cluster::builder().version(broker).log_requests().start();
        let admin = cluster.admin();
        admin.create(&[("orders", 1), ("customer-counts", 1)]);
        let app = App::builder("old").client_version(client).start(&cluster);
        app.wait_tasks(2);
        admin.produce("orders", &[Record::new("1", "c1,p1")]);
        admin.wait_caught_up("old", &["orders", "old-by-customer-repartition"]);
        assert_eq!(admin.read_table("customer-counts").into_iter().collect::<Vec<_>>(), [("c1".to_owned(), "1".to_owned())]);
        assert!(!cluster.requests("CREATE_TOPICS").is_empty(), "{broker} logs its requests");
    }
}

#[test]
fn users_may_do_what_they_are_allowed() {
    let cluster = Cluster::builder().user("shop", "secret").super_user("root", "secret").start();
    let admin = cluster.admin();
    admin.create(&[("orders", 1), ("customer-counts", 1)]);
    let app = App::builder("users").user("shop", "secret").start(&cluster);
    app.wait_for("an exception", |event| matches!(event, kit::Event::Uncaught { message } if message.contains("Authorization")));

    let everything =
        [Resource::Topic, Resource::Group].map(|resource| Acl::new("shop", Operation::All, resource, "users").prefixed());
    let topics = ["orders", "customer-counts"].map(|topic| Acl::new("shop", Operation::All, Resource::Topic, topic));
    admin.allow(&everything);
    admin.allow(&topics);
    App::builder("users").user("shop", "secret").start(&cluster).wait_tasks(2);

    admin.revoke(&topics);
    let app = App::builder("users").user("shop", "secret").start(&cluster);
    app.wait_for("an exception", |event| matches!(event, kit::Event::Uncaught { .. }));
}

const CHILD: &str = "KIT_SELFTEST_CHILD";

/// Runs itself as a child process that starts a broker, prints its process id and aborts.
#[test]
fn no_broker_outlives_a_test_process_that_aborts() {
    if std::env::var_os(CHILD).is_some() {
        let cluster = Cluster::builder().start();
        println!("\nbroker {}", cluster.pid(1));
        std::process::abort();
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kit_selftest::brokers::no_broker_outlives_a_test_process_that_aborts", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let pid: u32 = lines.find_map(|line| line.strip_prefix("broker ")?.parse().ok()).unwrap();
    assert!(!child.wait().unwrap().success());
    wait::until(PATIENCE, "the broker to be gone", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
}

#[test]
fn no_broker_outlives_a_panic() {
    let panic = std::panic::catch_unwind(|| {
        let cluster = Cluster::builder().start();
        std::panic::panic_any(cluster.pid(1));
    });
    let pid = panic.unwrap_err().downcast::<i32>().unwrap();
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}
