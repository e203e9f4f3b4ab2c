//! The stock Kafka Streams application of `tests/fixture`, in its own JVM.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use tempfile::TempDir;

use crate::class_data::ClassData;
use crate::cluster::{Cluster, tail};
use crate::jars;
use crate::output::Output;
use crate::process::{self, Process};
use crate::wait::{self, PATIENCE};

const HEAP_MB: u32 = 128;

/// What the application reports about itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// The text of `Topology#describe()`.
    Describe {
        /// The text.
        text: String,
    },
    /// `KafkaStreams.State` changed.
    State {
        /// Before.
        from: String,
        /// Now.
        to: String,
    },
    /// A stream thread died; told to an application with a handler only.
    Uncaught {
        /// The exception and its causes.
        message: String,
    },
    /// The active tasks changed.
    Tasks {
        /// Their ids, such as `0_2`.
        tasks: Vec<String>,
    },
    /// The application has closed and is about to exit.
    Exit {
        /// Exit code.
        code: i32,
    },
}

/// How an application is to be started; see [`App::builder`].
#[derive(Debug, Clone)]
pub struct Builder {
    id: String,
    version: String,
    user: Option<(String, String)>,
    options: Vec<(String, String)>,
    class_data: ClassData,
}

impl Builder {
    /// Topology by name, see `Topologies.java`; `simple` unless set.
    pub fn topology(self, name: &str) -> Self {
        self.option("topology", name)
    }

    /// Number of aggregations of the topology `wide`; each has two internal topics.
    pub fn width(self, width: usize) -> Self {
        self.option("width", &width.to_string())
    }

    /// What all input and output topics start with; nothing unless set.
    pub fn prefix(self, prefix: &str) -> Self {
        self.option("prefix", prefix)
    }

    /// `classic` (the default) or `streams`.
    pub fn protocol(self, protocol: &str) -> Self {
        self.option("protocol", protocol)
    }

    /// Number of stream threads.
    pub fn threads(self, threads: usize) -> Self {
        self.option("threads", &threads.to_string())
    }

    /// `metadata.max.age.ms` of all its clients.
    pub fn metadata_age_ms(self, age: u64) -> Self {
        self.option("metadata-age", &age.to_string())
    }

    /// What to do when a thread dies: `none`, or a name of `StreamThreadExceptionResponse`. `SHUTDOWN_CLIENT`, which is also what
    /// Kafka does without a handler, unless set.
    pub fn handler(self, handler: &str) -> Self {
        self.option("handler", handler)
    }

    /// Uses the static partitioner everywhere: a key such as `2:anna` stays in partition 2.
    pub fn static_partitioner(self) -> Self {
        self.option("partitioner", "static")
    }

    /// Connects to the authenticated listener as this user.
    pub fn user(mut self, name: &str, password: &str) -> Self {
        self.user = Some((name.to_owned(), password.to_owned()));
        self
    }

    /// One more property of the application; may be repeated.
    pub fn property(self, key: &str, value: &str) -> Self {
        self.option("prop", &format!("{key}={value}"))
    }

    /// Release of the client library.
    pub fn client_version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    pub(crate) fn record_class_data(mut self, dir: &Path) -> Self {
        self.class_data = ClassData::Record(dir.to_owned());
        self
    }

    fn option(mut self, name: &str, value: &str) -> Self {
        self.options.push((format!("--{name}"), value.to_owned()));
        self
    }

    /// Starts the application and returns at once.
    ///
    /// # Panics
    /// When Java or Maven is missing, with the line that installs them.
    pub fn start(self, cluster: &Cluster) -> App {
        let dir = process::work_dir("app");
        let fixture = jars::fixture().unwrap_or_else(|error| panic!("{error}"));
        let mut java = jars::java(HEAP_MB, &self.version, Some(&fixture)).unwrap_or_else(|error| panic!("{error}"));
        java.args(self.class_data.option(&self.version, "app.jsa").unwrap_or_else(|error| panic!("{error}")));
        java.arg("StreamsFixture").args(["--app", &self.id]);
        match &self.user {
            None => java.args(["--bootstrap", &cluster.bootstrap()]),
            Some((name, password)) => {
                let login = format!(
                    "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
                     username=\"{name}\" password=\"{password}\";"
                );
                java.args(["--bootstrap", &cluster.sasl_bootstrap(), "--prop", "security.protocol=SASL_PLAINTEXT"]);
                java.args(["--prop", "sasl.mechanism=PLAIN", "--prop", &login])
            }
        };
        java.arg("--state-dir").arg(dir.path().join("state"));
        for (name, value) in &self.options {
            java.arg(name).arg(value);
        }
        let log = dir.path().join("log");
        java.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&log).expect("our own folder"));
        let process = Process::start(&format!("application {}", self.id), java);
        let stdin = process.child().stdin.take();
        let output = Output::of(&mut process.child());
        App { id: self.id, process, stdin: Mutex::new(stdin), output, log, _dir: dir }
    }
}

/// A started application; killed when dropped.
pub struct App {
    id: String,
    process: Process,
    stdin: Mutex<Option<ChildStdin>>,
    output: Output,
    log: PathBuf,
    _dir: TempDir,
}

impl App {
    /// An application by its `application.id`.
    pub fn builder(id: &str) -> Builder {
        let builder =
            Builder { id: id.to_owned(), version: jars::client(), user: None, options: Vec::new(), class_data: ClassData::Map };
        builder.handler("SHUTDOWN_CLIENT")
    }

    /// Its `application.id`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// All events so far.
    pub fn events(&self) -> Vec<Event> {
        let lines = self.output.lines(&self.process);
        // Whatever else a library prints is not ours.
        lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits for the first event `wanted` accepts, past ones included.
    #[track_caller]
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&Event) -> bool) -> Event {
        self.wait(what, || self.events().into_iter().find(&wanted))
    }

    /// Waits for state `RUNNING`.
    #[track_caller]
    pub fn wait_running(&self) {
        self.wait("state RUNNING", || (self.state() == "RUNNING").then_some(()));
    }

    /// Waits until it has as many active tasks as said, and is running.
    #[track_caller]
    pub fn wait_tasks(&self, count: usize) {
        self.wait(&format!("{count} active tasks"), || (self.state() == "RUNNING" && self.tasks().len() == count).then_some(()));
    }

    /// Waits until it has died of an exception, and returns the exception with its causes. Not for handler `none`, which hears
    /// of no exception, nor for `REPLACE_THREAD`, which survives them.
    #[track_caller]
    pub fn wait_dead(&self) -> String {
        self.process.wait_exit(PATIENCE);
        self.wait("a last word", || self.exceptions().pop())
    }

    #[track_caller]
    fn wait<T>(&self, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
        wait::until_ok(PATIENCE, &format!("{what} of application {}", self.id), || {
            // Asked first, so that what a dying process printed last is still seen.
            let ended = self.process.exit_status();
            let answer = probe();
            if let (None, Some(status)) = (&answer, ended) {
                let (id, exceptions, log) = (&self.id, self.exceptions(), self.log());
                panic!(
                    "application {id} ended ({status}) before {what}, exceptions {exceptions:?}; end of its log:\n{}",
                    tail(&log)
                );
            }
            answer.ok_or_else(|| format!("{}, tasks {:?}; end of its log:\n{}", self.state(), self.tasks(), tail(&self.log())))
        })
    }

    /// Present `KafkaStreams.State`; `CREATED` at first.
    pub fn state(&self) -> String {
        let last = self.events().into_iter().rev().find_map(|event| match event {
            Event::State { to, .. } => Some(to),
            _ => None,
        });
        last.unwrap_or_else(|| "CREATED".to_owned())
    }

    /// Ids of its active tasks.
    pub fn tasks(&self) -> Vec<String> {
        let last = self.events().into_iter().rev().find_map(|event| match event {
            Event::Tasks { tasks } => Some(tasks),
            _ => None,
        });
        last.unwrap_or_default()
    }

    /// The text of its `Topology#describe()`.
    pub fn describe(&self) -> String {
        self.wait("its description", || {
            self.events().into_iter().find_map(|event| match event {
                Event::Describe { text } => Some(text),
                _ => None,
            })
        })
    }

    /// Exceptions its threads died of, with their causes.
    pub fn exceptions(&self) -> Vec<String> {
        let messages = self.events().into_iter().filter_map(|event| match event {
            Event::Uncaught { message } => Some(message),
            _ => None,
        });
        messages.collect()
    }

    /// Whether the process runs and its threads have not given up.
    pub fn is_alive(&self) -> bool {
        self.process.is_alive() && !["PENDING_ERROR", "ERROR", "NOT_RUNNING"].contains(&self.state().as_str())
    }

    /// Everything the client library has logged.
    pub fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Closes it in good order and waits for the end of the process.
    #[track_caller]
    pub fn close(&self) {
        drop(self.stdin.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.process.wait_exit(PATIENCE);
    }

    /// Kills it.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Freezes it.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Ends [`pause`](Self::pause).
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Process id.
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }
}
