//! What helm makes of the chart and values.

use std::io::Write;
use std::process::Command;

use kit::{Sidecar, sidecar};
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::stage::BINARY;

/// The objects of one installation.
pub struct Rendered {
    objects: Vec<Value>,
}

impl Rendered {
    /// Renders the chart with these values; `helm/tools.sh` installs what that needs.
    pub fn of(values: &Value) -> Self {
        let mut file = NamedTempFile::new().expect("a temporary file");
        file.write_all(values.to_string().as_bytes()).expect("a temporary file");
        let mut command = Command::new("helm/tools.sh");
        command.args(["python", "-B", "helm/test/render.py"]).arg(file.path()).current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = command.output().expect("helm/tools.sh starts");
        assert!(output.status.success(), "the chart is not rendered: {}", String::from_utf8_lossy(&output.stderr));
        Self { objects: serde_json::from_slice(&output.stdout).expect("a list in JSON") }
    }

    fn all(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    /// The only object of a kind.
    #[track_caller]
    pub fn one(&self, kind: &str) -> &Value {
        let found: Vec<&Value> = self.all(kind).collect();
        assert_eq!(found.len(), 1, "{kind}");
        found[0]
    }

    /// Its name.
    #[track_caller]
    pub fn name(&self, kind: &str) -> &str {
        text(&self.one(kind)["metadata"]["name"])
    }

    fn pod(&self) -> &Value {
        &self.one("Deployment")["spec"]["template"]["spec"]
    }

    /// The only container of the pod.
    pub fn container(&self) -> &Value {
        assert_eq!(list(&self.pod()["containers"]).len(), 1);
        &self.pod()["containers"][0]
    }

    /// The port of the container that the Service, and so the ServiceMonitor, leads to.
    pub fn port(&self) -> u64 {
        let named = |ports: &Value, name: &Value| list(ports).iter().find(|port| port["name"] == *name).expect("a port").clone();
        let service = named(&self.one("Service")["spec"]["ports"], &self.endpoint()["port"]);
        let port = named(&self.container()["ports"], &service["targetPort"]);
        port["containerPort"].as_u64().expect("a number")
    }

    /// What the ServiceMonitor says about a scrape.
    pub fn endpoint(&self) -> &Value {
        &self.one("ServiceMonitor")["spec"]["endpoints"][0]
    }

    /// The program with arguments, variables and files of the container. Its folder stands for the one that is mounted, which is
    /// also the working directory of the container.
    pub fn sidecar(&self) -> sidecar::Builder {
        let container = self.container();
        let [mount] = list(&container["volumeMounts"]) else { panic!("one mount") };
        let folder = text(&mount["mountPath"]);
        assert_eq!(container["workingDir"], folder);
        let volume = list(&self.pod()["volumes"]).iter().find(|volume| volume["name"] == mount["name"]).expect("its volume");
        let [source] = list(&volume["projected"]["sources"]) else { panic!("one source") };
        let map =
            self.all("ConfigMap").find(|map| map["metadata"]["name"] == source["configMap"]["name"]).expect("its ConfigMap");

        let [command, arguments @ ..] = list(&container["args"]) else { panic!("no arguments") };
        assert_eq!(command, "run");
        let mut sidecar = Sidecar::builder(BINARY).clear_env().env("HOSTNAME", "pod"); // every container has the latter
        for (name, content) in map["data"].as_object().expect("files") {
            sidecar = sidecar.file(name, text(content));
        }
        for variable in list(&container["env"]) {
            sidecar = sidecar.env(text(&variable["name"]), text(&variable["value"]));
        }
        for argument in arguments.iter().map(text) {
            sidecar = sidecar.arg(argument.strip_prefix(&format!("{folder}/")).unwrap_or(argument));
        }
        sidecar
    }

    /// The text of a file in a ConfigMap.
    #[track_caller]
    pub fn file(&self, name: &str) -> &str {
        text(self.all("ConfigMap").find_map(|map| map["data"].get(name)).expect("a file"))
    }

    /// The rules of the PrometheusRule, groups and all.
    pub fn rule_file(&self) -> &Value {
        &self.one("PrometheusRule")["spec"]
    }

    /// All rules in it.
    pub fn rules(&self) -> Vec<Value> {
        list(&self.rule_file()["groups"]).iter().flat_map(|group| list(&group["rules"]).to_vec()).collect()
    }

    /// The Grafana dashboard.
    pub fn dashboard(&self) -> Value {
        serde_json::from_str(self.file("partition-autoscaler.json")).expect("JSON")
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
