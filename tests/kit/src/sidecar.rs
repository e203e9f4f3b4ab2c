//! The program under test, `partition-autoscaler run`, in its own process.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use ureq::Agent;

use crate::cluster::tail;
use crate::output::Output;
use crate::process::{self, Process};
use crate::wait::{self, PATIENCE};

const LISTENING: &str = "listening on http://";
const HTTP_TIMEOUT: Duration = Duration::from_secs(30);

/// Connections are not used again after this; the sidecar closes them after 10 s, paused or not.
const MAX_IDLE: Duration = Duration::from_secs(5);

/// How a sidecar is to be started; see [`Sidecar::builder`].
#[derive(Debug, Clone)]
pub struct Builder {
    program: PathBuf,
    configs: Vec<String>,
    files: Vec<(String, String)>,
    args: Vec<OsString>,
    clear_env: bool,
    envs: Vec<(String, String)>,
}

impl Builder {
    /// Text of a configuration file (TOML); may be repeated. Say `http.listen = "127.0.0.1:0"` in it to use the HTTP calls.
    pub fn config(mut self, text: &str) -> Self {
        self.configs.push(text.to_owned());
        self
    }

    /// A file in its folder, which is also the one it works in; may be repeated.
    pub fn file(mut self, name: &str, text: &str) -> Self {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// One more argument behind `run`; may be repeated.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// One more environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.envs.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Leaves it no variables but those of [`Self::env`].
    pub fn clear_env(mut self) -> Self {
        self.clear_env = true;
        self
    }

    /// Starts the program and returns at once.
    pub fn start(self) -> Sidecar {
        let dir = process::work_dir("sidecar");
        let mut command = Command::new(&self.program);
        if self.clear_env {
            command.env_clear();
        }
        command.arg("run").current_dir(dir.path()).envs(self.envs).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, text) in &self.files {
            fs::write(dir.path().join(name), text).expect("our own folder");
        }
        let configs = self.configs.iter().enumerate().map(|(index, text)| {
            let path = dir.path().join(format!("config-{index}.toml"));
            fs::write(&path, text).expect("our own folder");
            path
        });
        let configs: Vec<PathBuf> = configs.collect();
        for path in &configs {
            command.arg("--config").arg(path);
        }
        command.args(self.args);
        let process = Process::start("the sidecar", command);
        let output = Output::of(&mut process.child());
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(HTTP_TIMEOUT));
        let config = config.max_idle_age(MAX_IDLE);
        Sidecar { process, output, configs, agent: config.build().into(), dir }
    }
}

/// A started sidecar; killed when dropped.
pub struct Sidecar {
    process: Process,
    output: Output,
    configs: Vec<PathBuf>,
    agent: Agent,
    dir: TempDir,
}

impl Sidecar {
    /// A sidecar of this program; a test passes `env!("CARGO_BIN_EXE_partition-autoscaler")`.
    pub fn builder(program: impl AsRef<Path>) -> Builder {
        Builder {
            program: program.as_ref().to_owned(),
            configs: Vec::new(),
            files: Vec::new(),
            args: Vec::new(),
            clear_env: false,
            envs: Vec::new(),
        }
    }

    /// Everything it has printed, both outputs, in the order of arrival.
    pub fn log(&self) -> String {
        self.output.lines(&self.process).join("\n")
    }

    /// Waits for a line of the log that contains `text`, past ones included, and returns the line.
    #[track_caller]
    pub fn wait_log(&self, text: &str) -> String {
        self.wait(&format!("{text:?} in the log"), || {
            self.output.lines(&self.process).into_iter().find(|line| line.contains(text))
        })
    }

    #[track_caller]
    fn wait<T>(&self, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
        wait::until_ok(PATIENCE, &format!("{what} of the sidecar"), || {
            // Asked first, so that what a dying process printed last is still seen.
            let ended = self.process.exit_status();
            let answer = probe();
            assert!(answer.is_some() || ended.is_none(), "the sidecar ended ({ended:?}) before {what}:\n{}", tail(&self.log()));
            answer.ok_or_else(|| format!("end of its log:\n{}", tail(&self.log())))
        })
    }

    /// `http://127.0.0.1:<port>`, as logged once the port is open.
    #[track_caller]
    pub fn url(&self) -> String {
        let line = self.wait_log(LISTENING);
        let address = line.split(LISTENING).nth(1).unwrap_or_default();
        let end = address.find(|c: char| !c.is_ascii_digit() && !['.', ':'].contains(&c)).unwrap_or(address.len());
        format!("http://{}", address.get(..end).unwrap_or_default())
    }

    /// `GET` of a path: status code and body.
    #[track_caller]
    pub fn get(&self, path: &str) -> (u16, String) {
        let answer = self.agent.get(format!("{}{path}", self.url())).call();
        let mut answer = answer.unwrap_or_else(|error| panic!("GET {path}: {error}\n{}", tail(&self.log())));
        (answer.status().as_u16(), answer.body_mut().read_to_string().expect("a text"))
    }

    /// `POST` of JSON to a path, with a bearer token if given: status code and body.
    #[track_caller]
    pub fn post(&self, path: &str, token: Option<&str>, body: &Value) -> (u16, String) {
        let mut request = self.agent.post(format!("{}{path}", self.url()));
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let answer = request.send_json(body);
        let mut answer = answer.unwrap_or_else(|error| panic!("POST {path}: {error}\n{}", tail(&self.log())));
        (answer.status().as_u16(), answer.body_mut().read_to_string().expect("a text"))
    }

    /// `GET /v1/status`.
    #[track_caller]
    pub fn status(&self) -> Value {
        let (code, body) = self.get("/v1/status");
        assert_eq!(code, 200, "{body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("the status is no JSON: {error}\n{body}"))
    }

    /// Waits until the status satisfies `wanted`, and returns it.
    #[track_caller]
    pub fn wait_status(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait::until_ok(PATIENCE, &format!("{what} in the status"), || {
            let status = self.status();
            if wanted(&status) { Ok(status) } else { Err(status.to_string()) }
        })
    }

    /// `GET /metrics`.
    #[track_caller]
    pub fn metrics(&self) -> String {
        let (code, body) = self.get("/metrics");
        assert_eq!(code, 200, "{body}");
        body
    }

    /// Replaces its configuration file (the first one), in one step.
    pub fn write_config(&self, text: &str) {
        replace(self.configs.first().expect("a sidecar with a configuration file"), text);
    }

    /// Replaces a file of [`Builder::file`], in one step.
    pub fn write_file(&self, name: &str, text: &str) {
        replace(&self.dir.path().join(name), text);
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub fn wait_exit(&self) -> ExitStatus {
        self.process.wait_exit(PATIENCE)
    }

    /// Its process, to send signals to.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).expect("our own folder");
}
