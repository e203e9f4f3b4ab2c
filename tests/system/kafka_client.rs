//! The Kafka client against real brokers: what it asks, what it reads, and what it says when something is wrong.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use kit::wait::{self, PATIENCE};
use kit::{Acl, App, Cluster, Operation, Resource};
use partition_autoscaler::kafka::port::{Cluster as _, ErrorClass, KafkaError, TopicState};
use partition_autoscaler::kafka::{Client, group_bytes};

const TIMEOUT: Duration = Duration::from_secs(30);
/// For calls to a broker that is paused, so that nothing but the time ends them.
const SHORT: Duration = Duration::from_millis(500);

fn connect(bootstrap: &str, client_id: &str, settings: &[(&str, &str)]) -> Client {
    let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Client::connect(bootstrap, &settings, client_id).unwrap()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn targets(targets: &[(&str, u32)]) -> BTreeMap<String, u32> {
    targets.iter().map(|(topic, count)| ((*topic).to_owned(), *count)).collect()
}

fn count(state: &TopicState) -> Option<u32> {
    match state {
        TopicState::Present { partitions, .. } => Some(*partitions),
        _ => None,
    }
}

#[test]
fn observes_all_topics_in_one_request_and_creates_none() {
    let cluster = Cluster::builder().log_requests().property("auto.create.topics.enable", "true").start();
    cluster.admin().create(&[("seen-a", 3), ("seen-b", 1)]);
    let mut client = connect(&cluster.bootstrap(), "observer", &[]);
    let asked = names(&["seen-a", "seen-b", "seen-nowhere", "not/valid"]);
    let seen = client.describe_topics(&asked, TIMEOUT).unwrap();
    assert_eq!(seen.len(), 4);
    let TopicState::Present { id: Some(first_id), partitions: 3 } = seen["seen-a"] else { panic!("{seen:?}") };
    assert_eq!(count(&seen["seen-b"]), Some(1));
    assert_eq!(seen["seen-nowhere"], TopicState::Missing);
    let TopicState::Failed(error) = &seen["not/valid"] else { panic!("{seen:?}") };
    assert_eq!(error.name, "INVALID_TOPIC_EXCEPTION");

    // A second observation keeps the id of a topic, a recreated topic gets another one.
    assert_eq!(client.describe_topics(&asked, TIMEOUT).unwrap(), seen);
    cluster.admin().delete(&["seen-a"]);
    cluster.admin().create(&[("seen-a", 2)]);
    let TopicState::Present { id: Some(second_id), partitions: 2 } = client.describe_topics(&asked, TIMEOUT).unwrap()["seen-a"]
    else {
        panic!("no new topic")
    };
    assert_ne!(first_id, second_id);

    let mut listed = client.list_topics(TIMEOUT).unwrap();
    listed.sort();
    assert_eq!(listed, ["seen-a", "seen-b"]);
    assert!(!client.cluster_id(TIMEOUT).unwrap().is_empty());
    let by_name = || cluster.requests("METADATA").into_iter().filter(|request| request.client_id == "observer");
    let by_name = || by_name().filter_map(|request| Some(request.topics()?.iter().map(|name| (*name).to_owned()).collect()));
    let is_full = |topics: &Vec<String>| !topics.is_empty();
    let requests = wait::until(PATIENCE, "three requests in the log", || {
        let requests: Vec<Vec<String>> = by_name().filter(is_full).collect();
        (requests.len() >= 3).then_some(requests)
    });
    assert_eq!(requests, [asked.clone(), asked.clone(), asked]);
}

#[test]
fn grows_all_topics_in_one_request() {
    let cluster = Cluster::shared();
    cluster.admin().create(&[("grow-a", 3), ("grow-b", 3), ("grow-c", 3)]);
    let mut client = connect(&cluster.bootstrap(), "grower", &[]);
    let wanted = targets(&[("grow-b", 6), ("grow-a", 5), ("grow-c", 2), ("grow-nowhere", 4)]);
    let reply = client.create_partitions(&wanted, TIMEOUT).unwrap();
    let error = |topic: &str| reply.topics[topic].as_ref().err().map(|error| (error.code, error.name.as_str()));
    assert_eq!((error("grow-a"), error("grow-b")), (None, None));
    assert_eq!(error("grow-c"), Some((37, "INVALID_PARTITIONS")));
    assert_eq!(error("grow-nowhere"), Some((3, "UNKNOWN_TOPIC_OR_PARTITION")));
    assert_eq!(
        reply.topics["grow-c"].as_ref().unwrap_err().message,
        "The topic grow-c currently has 3 partition(s); 2 would not be an increase."
    );
    assert_eq!(reply.throttle, Duration::ZERO);
    cluster.admin().wait_counts(&[("grow-a", 5), ("grow-b", 6), ("grow-c", 3)]);

    let requests = wait::until(PATIENCE, "the request in the log", || {
        let mut requests = cluster.requests("CREATE_PARTITIONS");
        requests.retain(|request| request.client_id == "grower");
        (!requests.is_empty()).then_some(requests)
    });
    // Version 0 is what keeps a plan whole under a quota.
    let sent: Vec<_> = requests.iter().map(|request| (request.version, request.topics().unwrap())).collect();
    assert_eq!(sent, [(0, vec!["grow-a", "grow-b", "grow-c", "grow-nowhere"])]);
}

#[test]
fn an_older_broker_is_understood() {
    let cluster = Cluster::builder().version("3.9.2").start();
    cluster.admin().create(&[("orders", 3)]);
    let mut client = connect(&cluster.bootstrap(), "c", &[]);
    let seen = client.describe_topics(&names(&["orders"]), TIMEOUT).unwrap();
    assert!(matches!(seen["orders"], TopicState::Present { id: Some(_), partitions: 3 }), "{seen:?}");
    let reply = client.create_partitions(&targets(&[("orders", 4)]), TIMEOUT).unwrap();
    assert_eq!(reply.topics["orders"], Ok(()));
    cluster.admin().wait_counts(&[("orders", 4)]);
}

#[test]
fn a_quota_delays_but_never_tears_a_plan() {
    let cluster = Cluster::shared();
    cluster.admin().create(&[("quota-a", 1), ("quota-b", 1)]);
    cluster.limit_mutations("throttled", 1);
    let mut client = connect(&cluster.bootstrap(), "throttled", &[]);
    // The burst is 11 partitions; a quota takes a moment to reach the controller, so grow until it bites.
    let mut total = 1;
    let throttle = wait::until(PATIENCE, "the quota to bite", || {
        total += 20;
        let reply = client.create_partitions(&targets(&[("quota-a", total), ("quota-b", total)]), TIMEOUT).unwrap();
        assert!(reply.topics.values().all(Result::is_ok), "{reply:?}");
        (!reply.throttle.is_zero()).then_some(reply.throttle)
    });
    // The broker keeps silent on the connection that sent the request; the counts can be read nevertheless.
    client.describe_topics(&names(&["quota-a", "quota-b"]), throttle.min(TIMEOUT)).unwrap();
    cluster.admin().wait_counts(&[("quota-a", total as usize), ("quota-b", total as usize)]);
}

#[test]
fn missing_rights_are_told_by_topic() {
    let cluster = Cluster::builder().user("scaler", "secret").start();
    let admin = cluster.admin();
    admin.create(&[("open", 1), ("hidden", 1), ("seen", 1)]);
    admin.allow(&[
        Acl::new("scaler", Operation::Describe, Resource::Topic, "seen"),
        Acl::new("scaler", Operation::Describe, Resource::Topic, "open"),
        Acl::new("scaler", Operation::Alter, Resource::Topic, "open"),
    ]);
    let login = |password| {
        [
            ("security.protocol", "SASL_PLAINTEXT"),
            ("sasl.mechanism", "PLAIN"),
            ("sasl.username", "scaler"),
            ("sasl.password", password),
        ]
    };
    let mut client = connect(&cluster.sasl_bootstrap(), "scaler", &login("secret"));
    let seen = client.describe_topics(&names(&["open", "hidden", "seen"]), TIMEOUT).unwrap();
    assert_eq!((count(&seen["open"]), count(&seen["seen"])), (Some(1), Some(1)));
    let TopicState::Failed(error) = &seen["hidden"] else { panic!("{seen:?}") };
    assert_eq!((error.code, error.name.as_str()), (29, "TOPIC_AUTHORIZATION_FAILED"));
    let reply = client.create_partitions(&targets(&[("open", 2), ("seen", 2)]), TIMEOUT).unwrap();
    assert_eq!(reply.topics["open"], Ok(()));
    assert_eq!(reply.topics["seen"].as_ref().unwrap_err().name, "TOPIC_AUTHORIZATION_FAILED");
    let error = client.describe_group("others", TIMEOUT);
    assert!(matches!(error, Ok(None)), "groups without the right to describe are not listed: {error:?}");

    let sasl = cluster.sasl_bootstrap();
    let wrong = failure(&mut connect(&sasl, "scaler", &login("wrong")), TIMEOUT);
    assert_says(&wrong, ErrorClass::Authentication, &["127.0.0.1:", "refused the login", "kafka.sasl.password"]);
    let none = failure(&mut connect(&sasl, "scaler", &[]), TIMEOUT);
    assert_says(&none, ErrorClass::Authentication, &["expects a login", "kafka.sasl.mechanism"]);
}

#[test]
fn reads_the_tasks_of_a_stock_application() {
    let cluster = Cluster::shared();
    cluster.admin().create(&[("tasks-orders", 3), ("tasks-customer-counts", 1)]);
    let mut client = connect(&cluster.bootstrap(), "reader", &[]);
    assert_eq!(client.describe_group("tasks", TIMEOUT).unwrap(), None);
    let app = App::builder("tasks").prefix("tasks-").threads(2).start(cluster);
    app.wait_tasks(6);
    let tasks = wait::until_ok(PATIENCE, "all tasks in the bytes of the group", || {
        let group = client.describe_group("tasks", TIMEOUT).unwrap().ok_or("no group")?;
        let tasks = group_bytes::tasks(&group).map_err(|_| "bytes of another state")?;
        let owned: usize = tasks.assigned.values().map(|partitions| partitions.len()).sum();
        if group.state == "Stable" && owned == 6 { Ok((group, tasks)) } else { Err("not settled") }
    });
    let (group, tasks) = tasks;
    assert_eq!((group.protocol_type.as_str(), group.protocol.as_str(), group.members.len()), ("consumer", "stream", 2));
    assert_eq!(tasks.counts, BTreeMap::from([("0".into(), 3), ("1".into(), 3)]));
    let sources: Vec<_> = tasks.sources.values().flatten().cloned().collect();
    assert_eq!(sources, ["tasks-orders", "tasks-by-customer-repartition"]);
    assert_eq!((tasks.error_code, tasks.in_transition), (0, false));
    let subscriptions = group.members.iter().map(|member| group_bytes::subscription(&member.metadata).unwrap());
    let subscriptions: Vec<_> = subscriptions.collect();
    assert_eq!(subscriptions[0].process_id, subscriptions[1].process_id);
    assert_eq!(subscriptions[0].version, 11);
    assert_eq!(subscriptions[0].error_code, 0);
}

#[test]
fn an_outage_is_told_and_survived() {
    let cluster = Cluster::builder().log_requests().start();
    cluster.admin().create(&[("orders", 3)]);
    let address = cluster.bootstrap();
    let mut client = connect(&address, "survivor", &[]);
    let orders = names(&["orders"]);
    assert_eq!(count(&client.describe_topics(&orders, TIMEOUT).unwrap()["orders"]), Some(3));

    cluster.pause(1);
    let silent = wait::until(PATIENCE, "the pause to be felt", || client.describe_topics(&orders, SHORT).err());
    assert_says(&silent, ErrorClass::TimedOut, &[&address, "did not answer within 500 ms", "describing topics"]);
    let unknown = client.create_partitions(&targets(&[("orders", 4)]), SHORT).unwrap_err();
    assert_says(&unknown, ErrorClass::TimedOut, &["growing topics (the outcome is not known)"]);
    cluster.resume(1);
    wait::until(PATIENCE, "an answer after the pause", || client.describe_topics(&orders, TIMEOUT).ok());

    cluster.kill(1);
    let gone = wait::until(PATIENCE, "the outage to be told", || {
        client.describe_topics(&orders, TIMEOUT).err().filter(|error| error.message.contains("nothing listens"))
    });
    assert_says(&gone, ErrorClass::Unreachable, &[&address, "bootstrap.servers"]);
    cluster.restart(1);
    wait::until(PATIENCE, "an answer after the restart", || client.describe_topics(&orders, TIMEOUT).ok());

    // Looking for another broker is no reason to ask for all topics of the cluster.
    let requests = cluster.requests("METADATA").into_iter().filter(|request| request.client_id == "survivor");
    let topics: Vec<usize> = requests.map(|request| request.topics().expect("never all topics").len()).collect();
    assert!(topics.contains(&0) && topics.contains(&1), "{topics:?}");
}

#[test]
fn nodes_may_go() {
    let cluster = Cluster::builder().nodes(3).start();
    cluster.admin().create(&[("orders", 3)]);
    let mut client = connect(&cluster.bootstrap(), "survivor", &[]);
    let orders = names(&["orders"]);
    client.describe_topics(&orders, TIMEOUT).unwrap();
    for node in 1..=2 {
        cluster.kill(node);
        // What was on its way to the node is lost; after that, each answer may name the dead node as the one to ask next.
        for _ in 0..10 {
            wait::until(PATIENCE, "an observation", || client.describe_topics(&orders, TIMEOUT).ok());
        }
        let reply = client.create_partitions(&targets(&[("orders", 3 + node as u32)]), TIMEOUT).unwrap();
        assert_eq!(reply.topics["orders"], Ok(()));
        cluster.admin().wait_counts(&[("orders", 3 + node)]);
        cluster.restart(node);
    }
}

#[test]
fn what_is_no_broker_is_told() {
    let cluster = Cluster::shared();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let error = failure(&mut connect(&closed, "c", &[]), TIMEOUT);
    assert_says(&error, ErrorClass::Unreachable, &[&format!("nothing listens at {closed}"), "bootstrap.servers"]);

    let error = failure(&mut connect("no-such-host.invalid:9092", "c", &[]), TIMEOUT);
    assert_says(&error, ErrorClass::Unreachable, &["no-such-host.invalid:9092 does not resolve", "bootstrap.servers"]);

    let web = http_server();
    let error = failure(&mut connect(&web, "c", &[]), TIMEOUT);
    assert_says(&error, ErrorClass::Unreachable, &[&format!("{web} is a web server"), "bootstrap.servers"]);

    let error = failure(&mut connect(&cluster.bootstrap(), "c", &[("security.protocol", "SSL")]), TIMEOUT);
    assert_says(&error, ErrorClass::Authentication, &["does not speak TLS", "kafka.security.protocol"]);

    let tls = TlsServer::start();
    let error = failure(&mut connect(&tls.address, "c", &[]), TIMEOUT);
    assert_says(&error, ErrorClass::Authentication, &["expects TLS", "kafka.security.protocol=SSL"]);
    let error = failure(&mut connect(&tls.address, "c", &[("security.protocol", "SSL")]), TIMEOUT);
    assert_says(&error, ErrorClass::Authentication, &["certificate", "kafka.ssl.ca.location"]);
}

#[test]
fn settings_that_cannot_be_used_are_refused() {
    let refusal = |key: &str, value: &str| {
        let settings = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        Client::connect("127.0.0.1:1", &settings, "c").err().unwrap()
    };
    for (key, value, parts) in [
        ("no.such.setting", "hunter2", &["no.such.setting"] as &[&str]),
        ("bootstrap.servers", "hunter2", &["kafka.bootstrap.servers", "bootstrap.servers"]),
        ("allow.auto.create.topics", "true", &["kafka.allow.auto.create.topics"]),
        ("sasl.mechanism", "OAUTHBEARER", &["OAUTHBEARER", "SCRAM"]),
        ("socket.timeout.ms", "soon", &["socket.timeout.ms"]),
    ] {
        let error = refusal(key, value);
        assert_says(&error, ErrorClass::Config, parts);
        assert!(!error.message.contains("hunter2"), "a value may be a secret: {error}");
    }
    let empty = Client::connect(" ", &BTreeMap::new(), "c").err().unwrap();
    assert_says(&empty, ErrorClass::Config, &["bootstrap.servers is empty"]);
}

fn failure(client: &mut Client, timeout: Duration) -> KafkaError {
    client.describe_topics(&names(&["orders"]), timeout).unwrap_err()
}

#[track_caller]
fn assert_says(error: &KafkaError, class: ErrorClass, parts: &[&str]) {
    assert_eq!(error.class, class, "{error}");
    for part in parts {
        assert!(error.message.contains(part), "{part:?} is missing in: {error}");
    }
}

/// Answers every request as a web server does that was not asked in HTTP.
pub fn http_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut some = [0; 8];
            if stream.read_exact(&mut some).is_ok() {
                // The other side may be gone already.
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        }
    });
    address
}

/// Something that speaks TLS, with a certificate that nobody trusts.
pub struct TlsServer {
    pub address: String,
    process: Child,
    _dir: tempfile::TempDir,
}

impl TlsServer {
    pub fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name).display().to_string();
        let (key, certificate) = (file("key.pem"), file("cert.pem"));
        let mut made = Command::new("openssl");
        made.args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=localhost",
            "-keyout",
            &key,
            "-out",
            &certificate,
        ]);
        let made = made.stderr(Stdio::null()).status().expect("openssl is needed: apt-get install openssl");
        assert!(made.success());
        let mut server = Command::new("openssl");
        server.args(["s_server", "-accept", "127.0.0.1:0", "-key", &key, "-cert", &certificate]);
        let mut process = server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.into_iter().find_map(|line| Some(line.strip_prefix("ACCEPT ")?.to_owned())).unwrap();
        Self { address, process, _dir: dir }
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
