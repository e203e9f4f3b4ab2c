//! What sidecars of one application tell one another and those who look from outside, on real brokers.

use std::fs;
use std::process::{Command, Output};

use kit::{Record, Sidecar, sidecar, wait};
use serde_json::{Value, json};

use crate::documents::assert_documented;
use crate::election::TOPOLOGY;
use crate::failures::rights::{USER, guarded};
use crate::stage::{BINARY, Stage, metric, wait_state};

const KAFKA: (&str, &str) = ("leader.election", "\"kafka\"");
const OFF: (&str, &str) = ("partition.autoscaling.enabled", "false");

/// An application of which only the topics exist.
fn stage(id: &'static str) -> Stage<'static> {
    let stage = Stage::shared(id);
    stage.create(&[("orders", 3)]);
    let internal = ["k-repartition", "st-changelog"].map(|name| stage.internal(name));
    stage.cluster.admin().create(&[(&internal[0], 3), (&internal[1], 3)]);
    stage
}

fn config(stage: &Stage<'_>, keys: &[(&str, &str)]) -> String {
    let settings = stage.config(keys);
    let settings: Vec<&str> = settings.lines().filter(|line| !line.starts_with("topology.")).collect();
    format!("{}\n{}", settings.join("\n"), TOPOLOGY.replace("ORDERS", &stage.topic("orders")))
}

fn sidecar(stage: &Stage<'_>, keys: &[(&str, &str)]) -> sidecar::Builder {
    Sidecar::builder(BINARY).config(&config(stage, keys))
}

/// Waits until the only application of a sidecar looks like this.
#[track_caller]
fn wait_application(sidecar: &Sidecar, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    sidecar.wait_status(what, |status| wanted(&status["applications"][0]))["applications"][0].take()
}

fn leads(application: &Value) -> bool {
    application["leader"] == true && application["state"]["name"] != "Starting"
}

fn follows(application: &Value) -> bool {
    application["leader"] == false && application["state"]["name"] != "Starting"
}

/// Runs a command with this configuration.
fn command(config: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.toml");
    fs::write(&file, config).unwrap();
    Command::new(BINARY).args(arguments).arg("--config").arg(file).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn refused(output: &Output) -> String {
    refused_with(output, 1)
}

fn refused_with(output: &Output, code: i32) -> String {
    assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn what_is_remembered_is_read_from_outside() {
    let stage = stage("outside");
    let config = config(&stage, &[KAFKA]);
    let missing = refused(&command(&config, &["history"]));
    assert!(missing.contains("there is no coordinator topic outside-partition-autoscaler"), "{missing}");
    assert_eq!(missing.lines().count(), 1, "{missing}");

    let running = sidecar(&stage, &[KAFKA]).env("HOSTNAME", "pod-a").start();
    wait_application(&running, "a leader", leads);
    let garbage = [Record::new("garbage", "{}"), Record::new(r#"[1,"set-of-tomorrow","x"]"#, "{}")];
    stage.cluster.admin().produce("outside-partition-autoscaler", &garbage);
    stage.grow(&[("orders", 6)]);
    wait_state(&running, "Settling");

    let history = wait::until(wait::PATIENCE, "the outcome", || {
        let history = json(&command(&config, &["history", "--output", "json"]));
        (history["plans"][0]["outcome"]["result"] == "expanded").then_some(history)
    });
    assert_documented("history", &history);
    assert_eq!(history["plans"][0]["targets"], json!({"outside-k-repartition": 6, "outside-st-changelog": 6}));
    let port = running.url().rsplit_once(':').unwrap().1.to_owned();
    assert_eq!((&history["leader"]["member"], &history["enabled"]), (&json!(format!("pod-a:{port}")), &json!(true)));
    assert_eq!(history["baseline"], json!({"outside.orders": 6}));
    assert_eq!(history["skipped"], json!({"not_a_key": 1, "unknown_type": 1}));
    let events: Vec<&str> = history["history"].as_array().unwrap().iter().filter_map(|entry| entry["event"].as_str()).collect();
    assert!(events.contains(&"leading") && events.contains(&"expanded"), "{events:?}");

    let text = String::from_utf8(command(&config, &["history"]).stdout).unwrap();
    for part in [
        &format!("pod-a:{port} took over last"),
        &format!("this sidecar leads (pod-a:{port})"),
        "expanded after",
        "2 records that this program cannot read",
        "topic-grew",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let metrics = running.metrics();
    for reason in ["not_a_key", "unknown_type"] {
        let sample =
            format!("partition_autoscaler_coordinator_records_skipped_total{{application_id=\"outside\",reason=\"{reason}\"}}");
        assert_eq!(metric(&metrics, &sample), 1.0);
    }
    assert_eq!(
        metric(&metrics, "partition_autoscaler_leader_epoch{application_id=\"outside\"}"),
        history["leader"]["epoch"].as_f64().unwrap()
    );

    let told = |code: i32| {
        let output = command(&config, &["status", "--output", "json"]);
        let status = json(&output);
        assert_documented("status", &status);
        let application = status["applications"][0].clone();
        assert_eq!((&application["state"]["name"], &application["leader"]), (&json!("Settling"), &json!(false)));
        assert_eq!(application["baseline"], json!({"outside.orders": 6}));
        (output.status.code() == Some(code)).then_some(application["warnings"].clone())
    };
    assert_eq!(told(0), Some(json!([])));

    // Nobody needs to run. The group notices at the end of the session that its member was killed.
    running.process().kill();
    running.wait_exit();
    let warnings = wait::until(wait::PATIENCE, "the end of the sidecar", || told(1));
    assert_eq!(warnings[0]["code"], "NO_SIDECAR", "{warnings}");
    let text = String::from_utf8(command(&config, &["status"]).stdout).unwrap();
    for part in [&format!("pod-a:{port} took over last"), "none is alive", " ago\n", "grant DESCRIBE"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_plan_from_outside_knows_what_the_sidecars_know() {
    let stage = stage("mindful");
    let config = config(&stage, &[KAFKA, OFF]);
    let running = sidecar(&stage, &[KAFKA, OFF]).start();
    wait::until(wait::PATIENCE, "the baseline", || {
        let output = command(&config, &["history", "--output", "json"]);
        (output.status.success() && json(&output)["baseline"] == json!({"mindful.orders": 3})).then_some(())
    });
    stage.grow(&[("orders", 6)]);
    wait_state(&running, "Disabled");
    let output = command(&config, &["plan", "--output", "json"]);
    let plan = json(&output);
    assert_documented("plan", &plan);
    assert_eq!((output.status.code(), &plan["decision"], &plan["warnings"]), (Some(3), &json!("expand"), &json!([])), "{plan:#}");
    let snapshot = json(&command(&config, &["snapshot"]));
    assert_eq!(snapshot["baseline"], json!({"mindful.orders": 3}));

    // What was learned with another topology does not count, and what is stated is not asked for.
    let other = config.replace(r#"stores = ["st"]"#, r#"stores = ["st", "other"]"#);
    let plan = json(&command(&other, &["plan", "--output", "json"]));
    assert_eq!(plan["code"], "NO_BASELINE", "{plan:#}");
    let asked: Vec<&Value> = plan["questions"].as_array().unwrap().iter().map(|question| &question["setting"]).collect();
    assert_eq!(asked, ["baseline.mindful.orders"]);
    let output = command(&other, &["plan", "--set", "baseline.mindful.orders=3"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn an_application_of_which_nothing_can_be_seen_is_warned_about() {
    let stage = stage("guessed");
    let config = config(&stage, &[KAFKA]);
    let wrong = ["--set", "application.id=guessedd"];
    let output = command(&config, &[&["plan", "--output", "json"][..], &wrong].concat());
    let plan = json(&output);
    assert_eq!((output.status.code(), &plan["warnings"][0]["code"]), (Some(0), &json!("NO_INTERNAL_TOPICS")), "{plan:#}");
    for arguments in [&["snapshot"][..], &["topology"]] {
        let output = command(&config, &[arguments, &wrong].concat());
        let warned =
            String::from_utf8_lossy(&output.stderr).starts_with("warning: none of the internal topics of guessedd exists");
        assert!(output.status.success() && warned, "{output:?}");
    }
    let output = command(&config, &["plan", "--set-count", "guessed.ordres=6"]);
    assert_eq!(
        refused_with(&output, 2),
        "error: --set-count guessed.ordres=6: guessed does not use a topic guessed.ordres; did you mean guessed.orders?\n"
    );
}

#[test]
fn without_rights_one_sentence_says_which() {
    let stage = Stage::on(guarded(), "unread");
    stage.cluster.admin().create(&[("unread-partition-autoscaler", 1)]);
    let bootstrap = format!("{:?}", stage.cluster.sasl_bootstrap());
    let user = format!("{USER:?}");
    let login = [
        ("bootstrap.servers", bootstrap.as_str()),
        ("kafka.security.protocol", "\"SASL_PLAINTEXT\""),
        ("kafka.sasl.mechanism", "\"PLAIN\""),
        ("kafka.sasl.username", &user),
        ("kafka.sasl.password", "\"secret\""),
    ];
    for arguments in [&["history"][..], &["status"]] {
        let error = refused(&command(&config(&stage, &login), arguments));
        let sentence =
            "error: Kafka denies DESCRIBE on the coordinator topic unread-partition-autoscaler; grant DESCRIBE and READ";
        assert!(error.starts_with(sentence) && error.lines().count() == 1, "{error}");
    }
    let describe = |topic: &str| kit::Acl::new(USER, kit::Operation::Describe, kit::Resource::Topic, topic);
    let topics = ["unread.orders", "unread-k-repartition", "unread-st-changelog"];
    stage.cluster.admin().create(&topics.map(|topic| (topic, 3)));
    stage.cluster.admin().allow(&topics.map(describe));
    wait::until(wait::PATIENCE, "a plan without the baseline", || {
        let output = command(&config(&stage, &[&login[..], &[KAFKA]].concat()), &["plan"]);
        let note = "note: the baseline that the sidecars remember is not known: Kafka denies DESCRIBE on the coordinator topic";
        (output.status.success() && String::from_utf8_lossy(&output.stderr).starts_with(note)).then_some(())
    });
    stage.cluster.admin().allow(&[describe("unread-partition-autoscaler")]);
    wait::until(wait::PATIENCE, "the other right", || {
        let error = refused(&command(&config(&stage, &login), &["history"]));
        error.starts_with("error: Kafka denies READ on the coordinator topic unread-partition-autoscaler").then_some(())
    });
}

pub(crate) fn put(sidecar: &Sidecar, token: &str, body: &Value) -> (u16, Value) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let request = agent.put(format!("{}/v1/config", sidecar.url())).header("Authorization", format!("Bearer {token}"));
    let mut answer = request.send_json(body).unwrap();
    (answer.status().as_u16(), answer.body_mut().read_json().unwrap())
}

#[test]
fn a_request_changes_settings_until_the_files_change() {
    let stage = stage("asked");
    let keys = [OFF, ("http.token.file", "\"token\""), ("kafka.sasl.password", "\"hunter3\"")];
    let running = sidecar(&stage, &keys).file("token", "hunter2\n").start();
    wait_state(&running, "Steady");
    stage.grow(&[("orders", 6)]);
    wait_state(&running, "Disabled");

    let shown = || {
        let (code, text) = running.get("/v1/config");
        assert_eq!((code, text.contains("hunter")), (200, false), "{text}");
        serde_json::from_str::<Value>(&text).unwrap()["applications"][0]["values"].take()
    };
    let before = shown();
    assert_eq!(before["partition.autoscaling.enabled"]["value"], false);
    assert_eq!(before["kafka.sasl.password"]["value"], "[redacted]");

    assert_eq!(put(&running, "hunter", &json!({"partition.autoscaling.enabled": true})).0, 401);
    for (wrong, sentence) in [
        (json!({"partition.autoscaling.enabled": true, "log.level": "loud"}), "PUT /v1/config: log.level: `loud` "),
        (json!({"partition.autoscaling.timeout.ms": -1}), "PUT /v1/config: partition.autoscaling.timeout.ms: "),
        (json!({"partition.autoscaling.poll.interval.ms": null}), "PUT /v1/config: partition.autoscaling.poll.interval.ms: "),
        (json!({"application.id": "other"}), "PUT /v1/config: application.id: cannot be changed by a request, expected one of "),
    ] {
        let (code, answer) = put(&running, "hunter2", &wrong);
        assert_eq!(code, 400, "{answer}");
        assert!(answer["error"].as_str().unwrap().starts_with(sentence), "{answer}");
    }
    assert_eq!(shown(), before);
    assert_eq!(stage.cluster.admin().count(&stage.internal("k-repartition")), Some(3));

    let wanted = json!({"partition.autoscaling.enabled": true, "partition.autoscaling.timeout.ms": "5m", "log.level": "debug"});
    let (code, answer) = put(&running, "hunter2", &wanted);
    assert_eq!(code, 200, "{answer}");
    stage.wait_internal(&[("k-repartition", 6), ("st-changelog", 6)]);
    let values = shown();
    assert_eq!(answer["applications"][0]["values"], values);
    assert_eq!(values["partition.autoscaling.enabled"], json!({"value": true, "origin": "PUT /v1/config"}));
    assert_eq!(values["partition.autoscaling.timeout.ms"]["value"], 300_000);
    let audit = running.wait_log("changes until the files change");
    assert!(audit.contains("partition.autoscaling.enabled=true") && audit.contains("127.0.0.1:"), "{audit}");

    // what is asked for while only errors are logged leaves no line
    for wanted in [json!({"log.level": "error"}), json!({"partition.autoscaling.timeout.ms": "6m"}), json!({"log.level": "info"})]
    {
        assert_eq!(put(&running, "hunter2", &wanted).0, 200);
    }
    running.wait_log("changes until the files change: log.level=\"error\"");
    running.wait_log("changes until the files change: log.level=\"info\"");
    assert!(!running.log().contains("6m"), "{}", running.log());
    let values = shown();

    // files that are wrong change nothing, others replace what was asked for
    let reload = "partition_autoscaler_config_last_reload_success";
    running.write_config("partition.autoscaling.enabeld = true\n");
    running.wait_log("the old one stays in force");
    assert_eq!(metric(&running.metrics(), reload), 0.0);
    assert_eq!(shown(), values);
    running.write_config(&config(&stage, &keys));
    wait_application(&running, "the file's flag", |application| application["enabled"] == false);
    running.wait_log("partition.autoscaling.enabled: true (PUT /v1/config) -> false (");
    assert_eq!(shown(), before);
    assert_eq!(metric(&running.metrics(), reload), 1.0);
}

#[test]
fn a_shorter_poll_interval_counts_at_once() {
    let stage = stage("impatient");
    let keys = [("http.token.file", "\"token\""), ("partition.autoscaling.poll.interval.ms", "\"1h\"")];
    let running = sidecar(&stage, &keys).file("token", "hunter2").start();
    wait_state(&running, "Steady");
    stage.grow(&[("orders", 6)]);
    assert_eq!(put(&running, "hunter2", &json!({"partition.autoscaling.poll.interval.ms": 100})).0, 200);
    stage.wait_internal(&[("k-repartition", 6), ("st-changelog", 6)]);
}

/// A name that is mistyped looks like an application without topics, for which everything fits.
#[test]
fn an_application_of_which_nothing_exists_is_told() {
    let stage = Stage::shared("nowhere");
    stage.create(&[("orders", 3)]);
    let running = sidecar(&stage, &[]).start();
    let told = |application: &Value| application["warnings"].to_string().contains("NO_INTERNAL_TOPICS");
    wait_application(&running, "the warning", told);
    running.wait_log("is application.id right, or has the application not started yet?");
    let internal = ["k-repartition", "st-changelog"].map(|name| stage.internal(name));
    stage.cluster.admin().create(&[(&internal[0], 3), (&internal[1], 3)]);
    wait_application(&running, "no warning", |application| !told(application));
}

#[test]
fn a_sidecar_without_election_refuses_company() {
    let stage = stage("company");
    let elected = sidecar(&stage, &[KAFKA]).start();
    wait_application(&elected, "a leader", leads);
    let alone = sidecar(&stage, &[]).start();
    assert_eq!(alone.wait_exit().code(), Some(2));
    alone.wait_log("error: another sidecar of company with leader.election=kafka is at work");
    elected.process().terminate();
    elected.wait_exit();

    // One that comes later is seen as well.
    let alone = sidecar(&stage, &[]).start();
    wait_state(&alone, "Steady");
    let _elected = sidecar(&stage, &[KAFKA]).start();
    assert_eq!(alone.wait_exit().code(), Some(2));
    alone.wait_log("error: another sidecar of company with leader.election=kafka is at work");
}

#[test]
fn followers_hear_of_the_leaders_error_and_flag() {
    let stage = stage("heard");
    let exits = ("partition.autoscaling.on.error", "\"exit\"");
    let leader = sidecar(&stage, &[KAFKA, OFF]).start();
    wait_application(&leader, "a leader", leads);
    let [logs, differs] = [&[KAFKA, OFF][..], &[KAFKA]].map(|keys| sidecar(&stage, keys).start());
    let ends = sidecar(&stage, &[KAFKA, OFF, exits]).start();
    for follower in [&logs, &differs, &ends] {
        wait_application(follower, "a follower", follows);
    }
    let mismatch = |application: &Value| application["warnings"].to_string().contains("FLAG_MISMATCH");
    wait_application(&differs, "the other flag", mismatch);
    assert!(!mismatch(&logs.status()["applications"][0]));
    let has_state = |sidecar: &Sidecar| sidecar.metrics().contains("partition_autoscaler_state{");
    assert_eq!([has_state(&leader), has_state(&logs)], [true, false], "only the leader shows what only it sees");

    stage.grow(&[("orders", 6)]);
    assert_eq!(ends.wait_exit().code(), Some(6), "{}", ends.log());
    let error = json!({"code": 1, "name": "INCOMPLETE_SOURCE_TOPIC_METADATA"});
    let is_told = |application: &Value| application["assignor_error"] == error;
    wait_application(&logs, "the error", is_told);
    logs.wait_log("the leader says INCOMPLETE_SOURCE_TOPIC_METADATA");
    let sample = "partition_autoscaler_assignor_error{application_id=\"heard\",code=\"INCOMPLETE_SOURCE_TOPIC_METADATA\"}";
    assert_eq!(metric(&logs.metrics(), sample), 1.0);
    let (code, ready) = logs.get("/readyz");
    assert_eq!(code, 200, "{ready}");
    assert_eq!(serde_json::from_str::<Value>(&ready).unwrap()["applications"][0]["assignor_error"], error);

    // One that comes later stays: what was told before it came cannot end whoever is to mend it.
    let late = sidecar(&stage, &[KAFKA, exits]).start();
    wait_application(&late, "the error", is_told);

    // Somebody mends it by hand, and all of them hear of that too.
    let topics = ["k-repartition", "st-changelog"].map(|name| stage.internal(name));
    stage.cluster.admin().grow(&[(&topics[0], 6), (&topics[1], 6)]);
    for follower in [&logs, &late] {
        wait_application(follower, "no error", |application| application["assignor_error"]["code"] == 0);
    }
    assert_eq!(metric(&logs.metrics(), sample), 0.0);

    // The leader's flag counts; who differs from it is warned, whichever way.
    leader.write_config(&config(&stage, &[KAFKA]));
    wait_application(&differs, "the same flag", |application| !mismatch(application));
    wait_application(&logs, "the other flag", mismatch);
}

#[test]
fn who_ceases_to_lead_shows_no_more_of_what_a_leader_sees() {
    let stage = stage("ceased");
    let first = sidecar(&stage, &[KAFKA]).start();
    wait_application(&first, "a leader", leads);
    let second = sidecar(&stage, &[KAFKA]).start();
    wait_application(&second, "a follower", follows);
    let epoch = |sidecar: &Sidecar| metric(&sidecar.metrics(), "partition_autoscaler_leader_epoch{application_id=\"ceased\"}");
    let before = epoch(&first);

    first.process().pause();
    wait_application(&second, "a successor", leads);
    first.process().resume();
    wait_application(&first, "a follower", follows);
    let changed = |sidecar: &Sidecar, to: &str| {
        let sample = format!("partition_autoscaler_leadership_transitions_total{{application_id=\"ceased\",to=\"{to}\"}}");
        metric(&sidecar.metrics(), &sample)
    };
    assert_eq!([changed(&first, "leading"), changed(&first, "following")], [1.0, 1.0]);
    assert_eq!([changed(&second, "leading"), changed(&second, "following")], [1.0, 0.0]);
    assert!(epoch(&second) > before);
    for family in
        ["partition_autoscaler_state{", "_subtopology_parallelism{", "partition_autoscaler_last_observation_timestamp_seconds{"]
    {
        assert_eq!([&first, &second].map(|sidecar| sidecar.metrics().contains(family)), [false, true], "{family}");
    }
}

/// The one that told the error is replaced by one whose flag is on, as in a rolling deploy.
#[test]
fn an_error_is_over_everywhere_once_a_successor_has_mended_it() {
    let stage = stage("mended");
    let first = sidecar(&stage, &[KAFKA, OFF]).start();
    wait_application(&first, "a leader", leads);
    let second = sidecar(&stage, &[KAFKA]).start();
    wait_application(&second, "a follower", follows);
    let sample = "partition_autoscaler_flag_mismatch{application_id=\"mended\"}";
    assert_eq!([&first, &second].map(|sidecar| metric(&sidecar.metrics(), sample)), [0.0, 1.0]);
    second.wait_log("partition.autoscaling.enabled is true here and false at the leader");

    stage.grow(&[("orders", 6)]);
    wait_application(&second, "the error", |application| application["assignor_error"]["code"] == 1);
    first.process().terminate();
    first.wait_exit();
    stage.wait_internal(&[("k-repartition", 6), ("st-changelog", 6)]);
    let application = wait_application(&second, "no error", |application| application["assignor_error"]["code"] == 0);
    assert_eq!((&application["leader"], &application["state"]["name"]), (&true.into(), &"Settling".into()));
    let text = second.metrics();
    for (code, value) in [("INCOMPLETE_SOURCE_TOPIC_METADATA", 0.0), ("NONE", 1.0)] {
        let sample = format!("partition_autoscaler_assignor_error{{application_id=\"mended\",code=\"{code}\"}}");
        assert_eq!(metric(&text, &sample), value, "{text}");
    }
    assert_eq!(metric(&text, sample), 0.0);
}

/// Its application may start later than the sidecar, or never.
#[test]
fn a_sidecar_that_does_not_know_its_topology_keeps_nobody_from_leading() {
    let stage = stage("unknown-topology");
    let settings = stage.config(&[KAFKA, ("topology.url", "\"http://127.0.0.1:1/topology\"")]);
    let settings: Vec<&str> = settings.lines().filter(|line| !line.starts_with("topology.file")).collect();
    let first = Sidecar::builder(BINARY).config(&settings.join("\n")).start();
    first.wait_log("the topology cannot be read, trying again");
    let second = sidecar(&stage, &[KAFKA]).start();
    wait_application(&second, "a leader", leads);
    stage.grow(&[("orders", 6)]);
    stage.wait_internal(&[("k-repartition", 6), ("st-changelog", 6)]);
    assert_eq!(first.status()["applications"][0]["leader"], false);
}
