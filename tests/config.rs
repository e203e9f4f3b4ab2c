//! Configuration through the binary: broken files answer with golden texts, documents follow the table of keys, and the
//! configuration cases of the contract hold.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use expect_test::expect_file;
use partition_autoscaler::config::{Sources, docs, load, load_partial};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Runs the binary in a directory, with nothing but the given environment.
fn run(directory: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_partition-autoscaler"))
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .current_dir(directory)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A directory with one file in it, and the texts of a topology that configurations name.
fn directory(name: &str, content: impl AsRef<[u8]>) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let topology = "Topologies:\n   Sub-topology: 0\n    Source: S (topics: [orders])\n      --> none\n";
    for text in ["shop.txt", "topology.txt"] {
        std::fs::write(directory.path().join(text), topology).unwrap();
    }
    std::fs::write(directory.path().join(name), content).unwrap();
    directory
}

/// `config show --output json` of a configuration, which has to pass.
fn show(file: (&str, &str), arguments: &[&str], environment: &[(&str, &str)]) -> Value {
    let directory = directory(file.0, file.1);
    let arguments = [&["config", "show", "--output", "json", "--config", file.0], arguments].concat();
    let output = run(directory.path(), &arguments, environment);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Settings of the file of that name without an environment.
fn sources(directory: &TempDir, names: &[&str], set: &[&str]) -> Sources {
    Sources {
        files: names.iter().map(|name| directory.path().join(name)).collect(),
        environment: Vec::new(),
        set: set.iter().map(|setting| (*setting).to_owned()).collect(),
        requested: BTreeMap::new(),
    }
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

const MINIMAL: &str = "application.id = 'shop'\nbootstrap.servers = 'localhost:9092'\ntopology.file = 'shop.txt'\n";

/// A contract case, by its id.
fn case(id: &str) -> Value {
    let cases: Value = serde_json::from_str(include_str!("data/config.json")).unwrap();
    cases["cases"].as_array().unwrap().iter().find(|case| case["id"] == id).unwrap().clone()
}

fn mentions(text: &str, words: &Value) {
    for word in words.as_array().unwrap() {
        assert!(text.contains(word.as_str().unwrap()), "{word} is missing in: {text}");
    }
}

#[test]
fn documents_follow_the_table_of_keys() {
    expect_file!["../docs/configuration.md"].assert_eq(&docs::markdown());
    expect_file!["../docs/configuration.schema.json"].assert_eq(&docs::json_schema());
}

#[test]
fn documents_can_be_printed() {
    let directory = tempfile::tempdir().unwrap();
    for (format, expected) in [("markdown", docs::markdown()), ("schema", docs::json_schema())] {
        let output = run(directory.path(), &["config", "docs", "--format", format], &[]);
        assert_eq!(stdout(&output), expected);
    }
}

#[test]
fn the_example_files_pass() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    for name in ["partition-autoscaler.toml", "partition-autoscaler.properties"] {
        let directory = directory(name, std::fs::read(examples.join(name)).unwrap());
        let output = run(directory.path(), &["config", "check", "--config", name], &[]);
        expect_file![format!("golden/config/{name}.txt")].assert_eq(&stdout(&output));
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{name}");
    }
}

/// Commented lines of the example that are settings have to stay right, too.
#[test]
fn what_is_commented_out_in_an_example_passes() {
    let text = include_str!("../config/partition-autoscaler.properties").replace("\n#", "\n");
    let settings: Vec<&str> = text.lines().filter(|line| line.contains('=') && !line.contains(' ')).collect();
    let text = settings
        .join("\n")
        .replace("/run/secrets/kafka-password", "password")
        .replace("/run/secrets/autoscaler-token", "password");
    let directory = directory("shop.properties", text);
    std::fs::write(directory.path().join("password"), "x\n").unwrap();
    let output = run(directory.path(), &["config", "check", "--config", "shop.properties"], &[]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn broken_configurations_say_what_is_wrong() {
    let minimal = |more: &str| format!("{MINIMAL}{more}\n");
    let table: &[(&str, &str, Vec<u8>)] = &[
        ("unknown-key", "shop.toml", minimal("colour = 'red'").into()),
        ("typo", "shop.toml", minimal("partition.autoscaling.enable = true").into()),
        ("typo-properties", "shop.properties", "application.id=shop\nbootstrap.servers=a:1\nlog.levle=info\n".into()),
        ("bad-boolean", "shop.toml", minimal("partition.autoscaling.enabled = 'yes'").into()),
        ("negative-timeout", "shop.toml", minimal("partition.autoscaling.timeout.ms = -1").into()),
        ("zero-poll-interval", "shop.toml", minimal("partition.autoscaling.poll.interval.ms = 0").into()),
        ("bad-time", "shop.toml", minimal("partition.autoscaling.timeout.ms = '15 parsecs'").into()),
        ("too-many-partitions", "shop.toml", minimal("max.new.partitions = 10001").into()),
        ("no-port", "shop.toml", "application.id = 'shop'\nbootstrap.servers = 'kafka-1:9092,kafka-2'\n".into()),
        ("syntax", "shop.toml", minimal("log.level = info\n[kafka").into()),
        ("missing-application-id", "shop.toml", "bootstrap.servers = 'localhost:9092'\n".into()),
        ("empty-application-id", "shop.properties", "application.id=\nbootstrap.servers=a:1\n".into()),
        ("long-application-id", "shop.properties", format!("application.id={}\nbootstrap.servers=a:1\n", "a".repeat(229)).into()),
        ("illegal-application-id", "shop.properties", "application.id=my shop\nbootstrap.servers=a:1\n".into()),
        ("garbage-toml", "shop.toml", vec![0x7f, b'E', b'L', b'F', 0, 0xff]),
        ("garbage-properties", "shop.properties", vec![0x7f, b'E', b'L', b'F', 0, 0xff]),
        ("duplicate-toml", "shop.toml", minimal("log.level = 'info'\nlog.level = 'warn'").into()),
        ("duplicate-properties", "shop.properties", "application.id=a\nbootstrap.servers=a:1\napplication.id=b\n".into()),
        ("unknown-topology-field", "shop.toml", minimal("[topology]\nglobal_topic = ['x']").replace("topology.file = 'shop.txt'\n", "").into()),
        (
            "unknown-subtopology-field",
            "shop.toml",
            "application.id = 'shop'\nbootstrap.servers = 'a:1'\n[[topology.subtopologies]]\nid = 0\nsource = ['orders']\n".into(),
        ),
        ("not-available", "shop.toml", minimal(
            "leader.election = 'kafka'\npartition.autoscaling.rescue = 'on'\npartition.autoscaling.approval = 'manual'\ntopology.source = 'streams-group'",
        ).into()),
        ("source-without-topology", "shop.toml", minimal("topology.source = 'config'").into()),
        ("two-texts", "shop.toml", minimal("topology.url = 'http://localhost/topology'").into()),
        ("missing-secret-file", "shop.toml", minimal("kafka.sasl.password.file = 'nowhere'").into()),
        ("process-key-in-application", "shop.toml", "bootstrap.servers = 'a:1'
[[application]]
application.id = 'shop'
http.listen = 'a:1'
".into()),
        ("application-beside-applications", "shop.toml", minimal("[[application]]").into()),
("same-application-twice", "shop.toml", "bootstrap.servers = 'a:1'
[[application]]
application.id = 'shop'
[[application]]
application.id = 'shop'
".into()),
        ("extension", "shop.yaml", minimal("").into()),
    ];
    for (name, file, content) in table {
        let directory = directory(file, content);
        let output = run(directory.path(), &["config", "check", "--config", file], &[]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{name}");
        expect_file![format!("golden/config/{name}.txt")].assert_eq(&stderr(&output));
    }
}

#[test]
fn broken_arguments_say_what_is_wrong() {
    let directory = directory("shop.toml", MINIMAL);
    std::fs::create_dir(directory.path().join("folder.toml")).unwrap();
    pipe(&directory.path().join("pipe.toml"));
    type Row<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)]);
    let table: &[Row<'_>] = &[
        ("missing-file", &["--config", "nowhere.toml"], &[]),
        ("directory", &["--config", "folder.toml"], &[]),
        ("pipe", &["--config", "pipe.toml"], &[]),
        ("set-without-value", &["--config", "shop.toml", "--set", "kafka.sasl.password:hunter2"], &[]),
        ("set-unknown", &["--config", "shop.toml", "--set", "topology.pined=none"], &[]),
        ("bad-environment", &["--config", "shop.toml"], &[("PARTITION_AUTOSCALING_ENABLED", "maybe")]),
        ("several-problems", &["--config", "nowhere.toml", "--config", "shop.toml", "--set", "log.level=loud"], &[]),
    ];
    for (name, arguments, environment) in table {
        let output = run(directory.path(), &[&["config", "check"], *arguments].concat(), environment);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{name}");
        expect_file![format!("golden/config/{name}.txt")].assert_eq(&stderr(&output));
    }
}

#[test]
fn problems_as_json() {
    let directory = directory("shop.toml", "application.id = 'shop'\nlog.level = 'loud'\n");
    let output = run(directory.path(), &["config", "check", "--config", "shop.toml", "--output", "json"], &[]);
    assert_eq!(output.status.code(), Some(2));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["ok"], false);
    assert_eq!(
        answer["errors"],
        json!([
            {"place": "shop.toml", "key": "bootstrap.servers",
             "message": "is missing, expected host:port, or several separated by commas, e.g. kafka-1:9092,kafka-2:9092"},
            {"place": "shop.toml:2", "key": "log.level",
             "message": "`loud` is not known, expected error or warn or info or debug or trace, e.g. debug"},
        ])
    );
}

/// `config check` refuses what `run` would refuse.
#[test]
fn the_topology_is_read_as_run_does() {
    let directory = directory("shop.toml", "application.id = 'shop'\nbootstrap.servers = 'a:1'\n");
    let check =
        |arguments: &[&str]| run(directory.path(), &[&["config", "check", "--config", "shop.toml"], arguments].concat(), &[]);
    std::fs::write(directory.path().join("empty.txt"), "Topologies:\n").unwrap();
    let folder = directory.path().display().to_string();
    let mut said = String::new();
    for arguments in [&[][..], &["--set", "topology.file=gone.txt"], &["--set", "topology.file=empty.txt"]] {
        let output = check(arguments);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{arguments:?}");
        said += &stderr(&output).replace(&folder, "FOLDER");
    }
    expect_file!["golden/config/no-topology.txt"].assert_eq(&said);
    let output = check(&["--output", "json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &answer["ok"], &answer["errors"][0]["key"]), (Some(2), &json!(false), &json!("topology")));
    assert!(check(&["--set", "topology.url=http://127.0.0.1:1/topology"]).status.success());
}

#[test]
fn k01_defaults() {
    let shown = show(("shop.toml", ""), &[], &[]);
    for (key, value) in case("K01")["expected"].as_object().unwrap() {
        assert_eq!(shown["values"][key], json!({"value": value, "origin": "default"}), "{key}");
    }
}

#[test]
fn k03_a_time_limit_of_zero_is_legal_and_a_negative_one_is_not() {
    let case = case("K03");
    let key = case["input"]["key"].as_str().unwrap();
    for (value, verdict) in case["input"]["values"].as_object().unwrap() {
        let directory = directory("shop.toml", format!("{MINIMAL}{key} = {value}\n"));
        let output = run(directory.path(), &["config", "check", "--config", "shop.toml"], &[]);
        if verdict == "accepted" {
            assert!(output.status.success(), "{value}: {}", stderr(&output));
        } else {
            assert_eq!(output.status.code().map(Value::from), Some(case["expected"]["refused_exit_code"].clone()));
            mentions(&stderr(&output), &case["expected"]["mentions"]);
        }
    }
}

#[test]
fn k04_a_time_limit_with_a_unit() {
    let case = case("K04");
    for (key, value) in case["input"].as_object().unwrap() {
        let shown = show(("shop.toml", &format!("{key} = {value}\n")), &[], &[]);
        assert_eq!(shown["values"][key]["value"], case["expected"][key]);
    }
}

#[test]
fn k06_a_missing_application_id() {
    let case = case("K06");
    let directory = directory("shop.toml", "bootstrap.servers = 'a:1'\n");
    for arguments in [vec![], vec!["--set", "application.id="]] {
        let output = run(directory.path(), &[vec!["config", "check", "--config", "shop.toml"], arguments].concat(), &[]);
        assert_eq!(output.status.code().map(Value::from), Some(case["expected"]["exit_code"].clone()));
        mentions(&stderr(&output), &case["expected"]["mentions"]);
    }
}

#[test]
fn k07_latest_in_the_file_of_the_application_is_a_warning() {
    let text = "application.id=shop\nbootstrap.servers=a:1\ntopology.file=topology.txt\nauto.offset.reset=latest\n";
    let directory = directory("shop.properties", text);
    let output = run(directory.path(), &["config", "check", "--config", "shop.properties"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let answer = stdout(&output);
    let warning = answer.lines().find(|line| line.contains("auto.offset.reset")).unwrap();
    mentions(warning, &case("K07")["expected"]["warning_mentions"]);
}

#[test]
fn k13_an_unknown_key_is_answered_with_the_nearest_one() {
    let case = case("K13");
    for (key, value) in case["input"].as_object().unwrap() {
        let directory = directory("shop.toml", format!("{MINIMAL}{key} = {value}\n"));
        let output = run(directory.path(), &["config", "check", "--config", "shop.toml"], &[]);
        assert_eq!(output.status.code().map(Value::from), Some(case["expected"]["exit_code"].clone()));
        mentions(&stderr(&output), &case["expected"]["mentions"]);
    }
}

#[test]
fn k14_the_environment_wins_over_the_file_and_flags_over_both() {
    let case = case("K14");
    let key = "partition.autoscaling.enabled";
    let file = format!("{key} = {}\n", case["input"]["file"][key]);
    let variable = "PARTITION_AUTOSCALING_ENABLED";
    let environment = [(variable, case["input"]["environment"][variable].as_str().unwrap())];
    let enabled = |arguments: &[&str], environment: &[(&str, &str)]| {
        show(("shop.toml", &file), arguments, environment)["values"][key].clone()
    };

    assert_eq!(enabled(&[], &[]), json!({"value": false, "origin": "shop.toml:1"}));
    let expected = json!({"value": case["expected"][key], "origin": format!("environment variable {variable}")});
    assert_eq!(enabled(&[], &environment), expected);
    assert_eq!(enabled(&["--set", &format!("{key}=false")], &environment), json!({"value": false, "origin": "--set"}));
}

#[test]
fn secrets_are_shown_nowhere() {
    let file =
        "kafka.sasl.password = 'hunter2'\nkafka.ssl.key.pem = 'hunter2'\ntopology.url = 'http://me:hunter2@app/topology'\n";
    let directory = directory("shop.toml", format!("application.id = 'shop'\nbootstrap.servers = 'a:1'\n{file}"));
    for arguments in [
        &["config", "show", "--config", "shop.toml"][..],
        &["config", "show", "--config", "shop.toml", "--output", "json"],
        &["config", "check", "--config", "shop.toml"],
        &["config", "check", "--config", "shop.toml", "--output", "json"],
    ] {
        let output = run(directory.path(), arguments, &[("KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET", "hunter2")]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(!stdout(&output).contains("hunter2"), "{}", stdout(&output));
        assert!(stdout(&output).contains("[redacted]"), "{}", stdout(&output));
    }
    let settings = load(&sources(&directory, &["shop.toml"], &[])).unwrap();
    assert_eq!(settings[0].kafka["sasl.password"], "hunter2");
    assert!(!format!("{settings:?}").contains("hunter2"), "{settings:?}");
}

#[test]
fn a_secret_is_read_from_its_file() {
    let directory = directory("password", "hunter2\r\n");
    let password = directory.path().join("password");
    std::fs::write(directory.path().join("shop.toml"), MINIMAL).unwrap();
    let set = format!("kafka.sasl.password.file={}", password.display());
    let settings = load(&sources(&directory, &["shop.toml"], &[&set])).unwrap();
    assert_eq!(settings[0].kafka["sasl.password"], "hunter2");
    assert!(!settings[0].kafka.contains_key("sasl.password.file"));
}

#[test]
fn the_file_of_an_application_tells_how_to_connect() {
    let text = "application.id=shop\nbootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n\
                sasl.jaas.config=x required password=\"hunter2\";\nssl.truststore.location=trust.jks\nnum.stream.threads=2\n";
    let directory = directory("shop.properties", text);
    let settings = &load(&sources(&directory, &["shop.properties"], &[])).unwrap()[0];
    let kafka: Vec<(&str, &str)> = settings.kafka.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(kafka, [("sasl.mechanism", "PLAIN"), ("security.protocol", "SASL_SSL")]);
    let warnings = settings.warnings.join("\n");
    for part in
        ["sasl.jaas.config", "kafka.sasl.password.file", "ssl.truststore.location", "kafka.ssl.ca.location", "num.stream.threads"]
    {
        assert!(warnings.contains(part), "{part} is missing in: {warnings}");
    }

    // Once the operator has written what librdkafka needs, there is nothing left to say.
    let set = ["kafka.sasl.username=me", "kafka.ssl.ca.location=ca.pem"];
    let warnings = load(&sources(&directory, &["shop.properties"], &set)).unwrap()[0].warnings.join("\n");
    assert!(!warnings.contains("Java client"), "{warnings}");
}

#[test]
fn one_file_serves_several_applications() {
    let text = "bootstrap.servers = 'a:1'\nmax.new.partitions = 100\nhttp.listen = 'localhost:1'\n\
                [[application]]\napplication.id = 'shop'\nbaseline.orders = 3\n\
                [[application]]\napplication.id = 'billing'\nmax.new.partitions = 7\n";
    let directory = directory("both.toml", text);
    let all = load(&sources(&directory, &["both.toml"], &[])).unwrap();
    let ids: Vec<(&str, u32, usize)> =
        all.iter().map(|s| (s.application_id.as_str(), s.max_new_partitions, s.baseline.len())).collect();
    assert_eq!(ids, [("shop", 100, 1), ("billing", 7, 0)]);
    assert!(all.iter().all(|s| s.http_listen == "localhost:1" && s.bootstrap_servers == "a:1"));

    let output = run(directory.path(), &["config", "show", "--config", "both.toml", "--output", "json"], &[]);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["applications"][1]["values"]["max.new.partitions"], json!({"value": 7, "origin": "both.toml:9"}));
}

#[test]
fn several_files_are_several_applications_with_one_process() {
    let directory = directory("shop.toml", MINIMAL);
    let billing = "application.id=billing\nbootstrap.servers=b:1\nlog.level=warn\n";
    std::fs::write(directory.path().join("billing.properties"), billing).unwrap();
    let names = ["shop.toml", "billing.properties"];
    let all = load(&sources(&directory, &names, &[])).unwrap();
    assert_eq!(all.iter().map(|s| s.application_id.as_str()).collect::<Vec<_>>(), ["shop", "billing"]);
    assert_eq!(all[0].log_level, all[1].log_level);

    std::fs::write(directory.path().join("shop.toml"), format!("{MINIMAL}log.level = 'debug'\n")).unwrap();
    let errors = load(&sources(&directory, &names, &[])).unwrap_err();
    assert!(errors.to_string().contains("log.level: differs from"), "{errors}");
}

#[test]
fn the_topology_table_is_complete_or_stands_beside_a_text() {
    let text = "[topology]\nrepartition_topics = ['r']\npinned = { r = 4 }\nsource_changelogs = { s = 'customers' }\n";
    let directory = directory("stated.toml", text);
    let partial = &load_partial(&sources(&directory, &["stated.toml"], &[])).unwrap()[0];
    assert_eq!(partial.topology.complete, None);
    assert_eq!(
        serde_json::to_value(&partial.topology.stated).unwrap(),
        json!({"repartition_topics": ["r"], "pinned": {"r": 4}, "source_changelogs": {"s": "customers"}})
    );

    let complete = format!("{text}[[topology.subtopologies]]\nid = 0\nsources = ['orders']\nsinks = ['r']\n");
    std::fs::write(directory.path().join("complete.toml"), complete).unwrap();
    let partial = &load_partial(&sources(&directory, &["complete.toml"], &["topology.pinned=none"])).unwrap()[0];
    assert_eq!(serde_json::to_value(&partial.topology.stated).unwrap(), json!({}));
    assert_eq!(
        serde_json::to_value(partial.topology.complete.as_ref().unwrap()).unwrap(),
        json!({
            "subtopologies": [{"id": 0, "sources": ["orders"], "sinks": ["r"], "stores": []}],
            "repartition_topics": ["r"], "copartition_groups": [], "global_topics": [], "pinned": [],
            "source_changelogs": {"s": "customers"},
        })
    );
}

#[test]
fn planning_takes_settings_without_an_application() {
    let set = ["max.new.partitions=7", "topology.pinned=r:4,q", "topology.prefix=shop", "baseline.orders=3"];
    let directory = tempfile::tempdir().unwrap();
    let partial = &load_partial(&sources(&directory, &[], &set)).unwrap()[0];
    assert_eq!(partial.max_new_partitions, 7);
    assert_eq!(partial.topology.prefix.as_deref(), Some("shop"));
    assert_eq!(partial.baseline.get("orders"), Some(&3));
    assert_eq!(serde_json::to_value(&partial.topology.stated).unwrap(), json!({"pinned": {"q": null, "r": 4}}));

    let errors = load_partial(&sources(&directory, &[], &["max.new.partitions=0"])).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "--set: max.new.partitions: 0 is less than 1, expected a whole number from 1 to 10000, e.g. 5000"
    );
}
