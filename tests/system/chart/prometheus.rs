//! A Prometheus that scrapes the sidecars as the chart says.

use std::fs;
use std::process::{Command, Stdio};

use kit::free_ports;
use kit::process::{self, Process};
use kit::wait::{self, PATIENCE};
use serde_json::{Value, json};
use tempfile::TempDir;
use ureq::Agent;

use super::rendered::Rendered;

/// A running Prometheus; killed and removed when dropped.
pub struct Prometheus {
    process: Process,
    url: String,
    agent: Agent,
    dir: TempDir,
}

impl Prometheus {
    /// Starts one with a target for each pod, labelled as the operator of Prometheus does, and the rules of the first.
    pub fn start(pods: &[Rendered]) -> Self {
        let dir = process::work_dir("prometheus");
        let endpoint = pods[0].endpoint();
        let targets: Vec<Value> = (0..).zip(pods).map(target).collect();
        let config = json!({
            "global": {"scrape_interval": endpoint["interval"], "scrape_timeout": endpoint["scrapeTimeout"], "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [
                {"job_name": pods[0].name("Service"), "metrics_path": endpoint["path"], "static_configs": targets},
            ],
        });
        // JSON is YAML
        fs::write(dir.path().join("prometheus.yaml"), config.to_string()).expect("our own folder");
        fs::write(dir.path().join("rules.yaml"), pods[0].rule_file().to_string()).expect("our own folder");
        let log = fs::File::create(dir.path().join("log")).expect("our own folder");
        let address = format!("127.0.0.1:{}", free_ports(1)[0]);
        let mut command = Command::new(program());
        command.args(["--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--log.level=warn"]);
        command.arg(format!("--web.listen-address={address}")).current_dir(dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = Process::start("prometheus", command);
        let agent = Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build().into();
        let prometheus = Self { process, url: format!("http://{address}"), agent, dir };
        wait::until_ok(PATIENCE, "Prometheus", || {
            assert!(prometheus.process.is_alive(), "Prometheus ended: {}", prometheus.log());
            prometheus
                .agent
                .get(format!("{}/-/ready", prometheus.url))
                .call()
                .map_err(|error| error.to_string())
                .and_then(|answer| if answer.status() == 200 { Ok(()) } else { Err(answer.status().to_string()) })
        });
        prometheus
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// The data of an answer of its API.
    #[track_caller]
    fn api(&self, path: &str, parameters: &[(&str, &str)]) -> Value {
        let request = self.agent.get(format!("{}/api/v1/{path}", self.url)).query_pairs(parameters.iter().copied());
        let answer = request.call().and_then(|mut answer| answer.body_mut().read_json::<Value>());
        let mut answer = answer.unwrap_or_else(|error| panic!("{path} {parameters:?}: {error}\n{}", self.log()));
        assert_eq!(answer["status"], "success", "{path} {parameters:?}: {answer}");
        answer["data"].take()
    }

    /// The series of an expression at a time in seconds.
    #[track_caller]
    pub fn query(&self, expression: &str, at: f64) -> Vec<Value> {
        array(self.api("query", &[("query", expression), ("time", &at.to_string())])["result"].take())
    }

    /// The series of an expression from one time to another, one sample a second.
    #[track_caller]
    pub fn query_range(&self, expression: &str, from: f64, to: f64) -> Vec<Value> {
        let (from, to) = (from.to_string(), to.to_string());
        let parameters = [("query", expression), ("start", &from), ("end", &to), ("step", "1")];
        array(self.api("query_range", &parameters)["result"].take())
    }

    /// The values that a label of these series has.
    pub fn label_values(&self, series: &str, label: &str) -> Value {
        self.api(&format!("label/{label}/values"), &[("match[]", series)])
    }

    /// Waits until an expression has a result, and returns the time of it.
    #[track_caller]
    pub fn wait(&self, expression: &str) -> f64 {
        wait::until_ok(PATIENCE, expression, || {
            let answer = self.api("query", &[("query", expression)]);
            let time = answer["result"][0]["value"][0].as_f64();
            time.ok_or_else(|| self.api("query", &[("query", "{__name__=~\"up|partition_autoscaler_(leader|state)\"} == 1")]))
        })
    }

    /// Waits until an alert is `inactive`, `pending` or `firing`.
    #[track_caller]
    pub fn wait_rule(&self, alert: &str, state: &str) {
        wait::until_ok(PATIENCE, &format!("{alert} to be {state}"), || {
            let rule = self.rules().into_iter().find(|rule| rule["name"] == alert).expect("an alert of the chart");
            if rule["state"] == state { Ok(()) } else { Err(rule) }
        });
    }

    /// It has taken this many rules, and could evaluate all of them.
    pub fn assert_no_rule_failed(&self, count: usize) {
        let rules = self.rules();
        assert_eq!(rules.len(), count);
        assert!(rules.iter().all(|rule| rule["health"] == "ok"), "{rules:#?}");
    }

    fn rules(&self) -> Vec<Value> {
        array(self.api("rules", &[])["groups"].take()).into_iter().flat_map(|mut group| array(group["rules"].take())).collect()
    }
}

fn target((number, pod): (usize, &Rendered)) -> Value {
    let labels = json!({"namespace": "streams", "instance": format!("pod-{number}")});
    json!({"targets": [format!("127.0.0.1:{}", pod.port())], "labels": labels})
}

fn array(value: Value) -> Vec<Value> {
    serde_json::from_value(value).expect("a list")
}

/// Its path, or the way to get it.
fn program() -> &'static str {
    let found = Command::new("prometheus").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(found.is_ok_and(|status| status.success()), "Prometheus is missing: apt-get install -y prometheus");
    "prometheus"
}
