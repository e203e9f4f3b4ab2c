//! Real Kafka clusters in KRaft mode, on loopback, one or three combined nodes.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tempfile::TempDir;

use crate::admin::Admin;
use crate::class_data::ClassData;
use crate::process::{self, Process};
use crate::proxy::Proxy;
use crate::requests::{self, Request};
use crate::wait::{self, PATIENCE};
use crate::{jars, ports, wire};

const HEAP_MB: u32 = 256;
const BOOT_ATTEMPTS: usize = 5;

/// How a cluster is to be built; see [`Cluster::builder`].
#[derive(Debug, Clone)]
pub struct Builder {
    nodes: usize,
    version: String,
    properties: Vec<(String, String)>,
    users: Vec<(String, String)>,
    super_users: Vec<String>,
    log_requests: bool,
    cuttable: bool,
    class_data: ClassData,
}

impl Builder {
    /// Number of combined nodes, 1 (the default) or 3.
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Kafka release of the brokers.
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    /// One more line of `server.properties`; wins over the kit's own.
    pub fn property(mut self, key: &str, value: &str) -> Self {
        self.properties.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Adds a `SASL_PLAINTEXT` listener with mechanism `PLAIN`, this user, and ACLs that deny by default.
    /// The plain listener stays and belongs to a super user, so that the kit can set up and look at everything.
    pub fn user(mut self, name: &str, password: &str) -> Self {
        self.users.push((name.to_owned(), password.to_owned()));
        self
    }

    /// A [`user`](Self::user) who may do everything.
    pub fn super_user(mut self, name: &str, password: &str) -> Self {
        self.super_users.push(name.to_owned());
        self.user(name, password)
    }

    /// Lets the brokers log every request, for [`Cluster::requests`].
    pub fn log_requests(mut self) -> Self {
        self.log_requests = true;
        self
    }

    /// Adds a listener that [`Cluster::cut`] can cut off; clients reach it by [`Cluster::cuttable_bootstrap`].
    pub fn cuttable(mut self) -> Self {
        self.cuttable = true;
        self
    }

    pub(crate) fn record_class_data(mut self, dir: &Path) -> Self {
        self.class_data = ClassData::Record(dir.to_owned());
        self
    }

    /// Starts the cluster and returns when every node serves metadata that lists all nodes.
    ///
    /// # Panics
    /// When Java or Maven is missing, or the cluster does not come up; with the reason.
    pub fn start(self) -> Cluster {
        (1..=BOOT_ATTEMPTS).find_map(|_| Cluster::boot(&self)).expect("a cluster that found its ports taken five times over")
    }

    fn has_sasl(&self) -> bool {
        !self.users.is_empty()
    }
}

struct Node {
    id: usize,
    dir: PathBuf,
    port: u16,
    sasl_port: Option<u16>,
    controller_port: u16,
    /// Port of the listener behind the line that can be cut, and the line.
    line: Option<(u16, Proxy)>,
    process: Mutex<Option<Process>>,
}

impl Node {
    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn log(&self) -> String {
        fs::read(self.dir.join("log")).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_running(&self) -> bool {
        self.process().as_ref().is_some_and(Process::is_alive)
    }
}

/// A running cluster; stopped and removed when dropped. Nodes are called by their `node.id`, from 1.
pub struct Cluster {
    id: String,
    plan: Builder,
    nodes: Vec<Node>,
    _dir: TempDir,
}

impl Cluster {
    /// One node of the newest release, or of the one in `PARTITION_AUTOSCALER_BROKER`, without authentication.
    pub fn builder() -> Builder {
        Builder {
            nodes: 1,
            version: jars::broker(),
            properties: Vec::new(),
            users: Vec::new(),
            super_users: Vec::new(),
            log_requests: false,
            cuttable: false,
            class_data: ClassData::Map,
        }
    }

    /// The one-node cluster all tests of a binary may share, with logged requests; tests keep apart by topic and application
    /// names. It ends with the process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::builder().log_requests().start())
    }

    /// `None` when another process took one of the ports.
    fn boot(plan: &Builder) -> Option<Self> {
        let format = format_of(&plan.version).unwrap_or_else(|error| panic!("{error}"));
        let dir = process::work_dir("cluster");
        let mut ports = ports::free(4 * plan.nodes).into_iter();
        let mut port = || ports.next().expect("as many as asked for");
        let nodes = (1..=plan.nodes).map(|id| Node {
            id,
            dir: dir.path().join(format!("n{id}")),
            port: port(),
            controller_port: port(),
            sasl_port: Some(port()).filter(|_| plan.has_sasl()),
            line: Some(port()).filter(|_| plan.cuttable).map(|port| (port, Proxy::to(SocketAddr::from(([127, 0, 0, 1], port))))),
            process: Mutex::new(None),
        });
        let cluster = Self { id: random_id(), plan: plan.clone(), nodes: nodes.collect(), _dir: dir };
        for node in &cluster.nodes {
            let data = node.dir.join("data");
            copy_dir(&format, &data);
            let meta = format!("version=1\ncluster.id={}\nnode.id={}\ndirectory.id={}\n", cluster.id, node.id, random_id());
            write(&data.join("meta.properties"), &meta);
            write(&node.dir.join("server.properties"), &cluster.server_properties(node));
            cluster.launch(node);
        }
        let all: Vec<&Node> = cluster.nodes.iter().collect();
        cluster.wait_ready(&all).then_some(cluster)
    }

    fn server_properties(&self, node: &Node) -> String {
        let count = self.nodes.len();
        let voters: Vec<String> =
            self.nodes.iter().map(|node| format!("{}@127.0.0.1:{}", node.id, node.controller_port)).collect();
        let mut listeners = format!("PLAINTEXT://{},CONTROLLER://127.0.0.1:{}", node.address(), node.controller_port);
        let mut text = String::new();
        let mut put = |key: &str, value: &str| writeln!(text, "{key}={value}").expect("strings take everything");
        if let Some(port) = node.sasl_port {
            write!(listeners, ",SASL://127.0.0.1:{port}").expect("strings take everything");
            let users: String = self.plan.users.iter().map(|(name, password)| format!(" user_{name}=\"{password}\"")).collect();
            let jaas = format!("org.apache.kafka.common.security.plain.PlainLoginModule required{users};");
            put("listener.name.sasl.plain.sasl.jaas.config", &jaas);
            put("sasl.enabled.mechanisms", "PLAIN");
            put("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
            let supers: String = self.plan.super_users.iter().map(|name| format!(";User:{name}")).collect();
            put("super.users", &format!("User:ANONYMOUS{supers}"));
        }
        if let Some((port, line)) = &node.line {
            write!(listeners, ",CUTTABLE://127.0.0.1:{port}").expect("strings take everything");
            let sasl = node.sasl_port.map(|port| format!(",SASL://127.0.0.1:{port}")).unwrap_or_default();
            let advertised = format!("PLAINTEXT://{},CUTTABLE://127.0.0.1:{}{sasl}", node.address(), line.port());
            put("advertised.listeners", &advertised);
        }
        put("process.roles", "broker,controller");
        put("node.id", &node.id.to_string());
        put("listeners", &listeners);
        put("controller.listener.names", "CONTROLLER");
        put("inter.broker.listener.name", "PLAINTEXT");
        put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,CUTTABLE:PLAINTEXT,SASL:SASL_PLAINTEXT");
        put("controller.quorum.voters", &voters.join(","));
        put("log.dirs", &node.dir.join("data").display().to_string());
        let replicas = count.to_string();
        put("default.replication.factor", &replicas);
        put("offsets.topic.replication.factor", &replicas);
        put("offsets.topic.num.partitions", &replicas);
        put("transaction.state.log.replication.factor", &replicas);
        put("transaction.state.log.min.isr", if count > 1 { "2" } else { "1" });
        put("transaction.state.log.num.partitions", "1");
        put("group.initial.rebalance.delay.ms", "0");
        put("auto.create.topics.enable", "false");
        put("log.retention.ms", "-1"); // tests choose their timestamps
        put("num.network.threads", "2");
        put("num.io.threads", "2");
        put("num.recovery.threads.per.data.dir", "1");
        put("background.threads", "2");
        put("log.cleaner.dedupe.buffer.size", "4194304");
        self.plan.properties.iter().for_each(|(key, value)| put(key, value));
        text
    }

    fn launch(&self, node: &Node) {
        let mut java = jars::java(HEAP_MB, &self.plan.version, None).unwrap_or_else(|error| panic!("{error}"));
        java.args(self.plan.class_data.option(&self.plan.version, "broker.jsa").unwrap_or_else(|error| panic!("{error}")));
        if self.plan.log_requests {
            java.arg("-Dorg.slf4j.simpleLogger.log.kafka.request.logger=debug");
        }
        java.arg("kafka.Kafka").arg(node.dir.join("server.properties"));
        let log = OpenOptions::new().create(true).append(true).open(node.dir.join("log")).expect("our own folder");
        java.stdin(Stdio::null()).stdout(log.try_clone().expect("one more handle")).stderr(log);
        *node.process() = Some(Process::start(&format!("broker {}", node.id), java));
    }

    /// False when a node ended because one of its ports was taken.
    fn wait_ready(&self, nodes: &[&Node]) -> bool {
        wait::until_ok(PATIENCE, "the cluster to serve metadata", || {
            for node in nodes {
                if !node.is_running() {
                    let log = node.log();
                    if log.contains("java.net.BindException") {
                        return Ok(false);
                    }
                    panic!("broker {} ended while starting; end of its log:\n{}", node.id, tail(&log));
                }
                let listed =
                    wire::metadata(&node.address(), Some(&[])).map_err(|error| format!("node {}: {error}", node.id))?.brokers;
                let running = self.nodes.iter().filter(|node| node.is_running()).count();
                if listed < running {
                    return Err(format!("node {} lists {listed} of {running} brokers", node.id));
                }
            }
            Ok(true)
        })
    }

    /// The cluster id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// `bootstrap.servers` of the plain listener.
    pub fn bootstrap(&self) -> String {
        let addresses: Vec<String> = self.nodes.iter().map(Node::address).collect();
        addresses.join(",")
    }

    /// `bootstrap.servers` of the authenticated listener.
    ///
    /// # Panics
    /// When the cluster was built without users.
    pub fn sasl_bootstrap(&self) -> String {
        let port = |node: &Node| node.sasl_port.expect("a cluster with users");
        let addresses: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", port(node))).collect();
        addresses.join(",")
    }

    /// `bootstrap.servers` of the listener that can be cut off.
    ///
    /// # Panics
    /// When the cluster was built without [`Builder::cuttable`].
    pub fn cuttable_bootstrap(&self) -> String {
        let addresses: Vec<String> = self.lines().map(|line| format!("127.0.0.1:{}", line.port())).collect();
        addresses.join(",")
    }

    /// Lets nothing through any more, either way, for clients of the cuttable listener; their connections stay open.
    pub fn cut(&self) {
        self.lines().for_each(|line| line.set_cut(true));
    }

    /// Ends [`cut`](Self::cut); what was sent meanwhile arrives.
    pub fn mend(&self) {
        self.lines().for_each(|line| line.set_cut(false));
    }

    fn lines(&self) -> impl Iterator<Item = &Proxy> {
        self.nodes.iter().map(|node| node.line.as_ref().map(|(_, line)| line).expect("a cluster that was built cuttable"))
    }

    /// Addresses of the controllers, which no client should be given.
    pub fn controllers(&self) -> String {
        let addresses: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.controller_port)).collect();
        addresses.join(",")
    }

    /// A client that may do everything.
    pub fn admin(&self) -> Admin<'_> {
        Admin::new(self)
    }

    /// Addresses of the nodes that run.
    pub fn live_addresses(&self) -> Vec<String> {
        self.nodes.iter().filter(|node| node.is_running()).map(Node::address).collect()
    }

    /// Which of the running nodes coordinates a group; `None` while no node says so.
    pub fn coordinator(&self, group: &str) -> Option<usize> {
        let running = self.nodes.iter().filter(|node| node.is_running());
        let mut coordinators =
            running.filter(|node| wire::groups(&node.address()).is_ok_and(|groups| groups.contains_key(group)));
        coordinators.next().map(|node| node.id)
    }

    /// Number of nodes, running or not.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// Stops a node in good order.
    pub fn stop(&self, id: usize) {
        self.with(id, |process| {
            process.terminate();
            process.wait_exit(PATIENCE);
        });
    }

    /// Kills a node.
    pub fn kill(&self, id: usize) {
        self.with(id, Process::kill);
    }

    /// Starts a stopped or killed node again, with its data and ports, and waits until it serves.
    pub fn restart(&self, id: usize) {
        let node = self.node(id);
        assert!(!node.is_running(), "broker {id} is still running");
        self.launch(node);
        assert!(self.wait_ready(&[node]), "a port of broker {id} was taken while it was down");
    }

    /// Freezes a node; its connections stay open.
    pub fn pause(&self, id: usize) {
        self.with(id, Process::pause);
    }

    /// Ends [`pause`](Self::pause).
    pub fn resume(&self, id: usize) {
        self.with(id, Process::resume);
    }

    /// Process id of a node.
    pub fn pid(&self, id: usize) -> i32 {
        self.with(id, Process::pid)
    }

    /// Everything a node has logged.
    pub fn log(&self, id: usize) -> String {
        self.node(id).log()
    }

    /// All requests of one kind the nodes have answered for clients other than the kit, by their name in Kafka's protocol,
    /// such as `CREATE_PARTITIONS`; needs [`Builder::log_requests`]. A request is logged a moment after its answer has gone out.
    pub fn requests(&self, api: &str) -> Vec<Request> {
        assert!(self.plan.log_requests, "this cluster was built without log_requests()");
        self.nodes.iter().flat_map(|node| requests::parse(&node.log(), api)).collect()
    }

    /// Gives clients of this `client.id` a quota of so many partition mutations a second; it reaches the brokers a moment later.
    ///
    /// # Panics
    /// When Kafka's own tool fails.
    pub fn limit_mutations(&self, client_id: &str, rate: u32) {
        let mut tool = jars::java(128, jars::KAFKA, None).unwrap_or_else(|error| panic!("{error}"));
        tool.args(["org.apache.kafka.tools.ConfigCommand", "--bootstrap-server", &self.bootstrap(), "--alter", "--add-config"]);
        tool.args([&format!("controller_mutation_rate={rate}"), "--entity-type", "clients", "--entity-name", client_id]);
        jars::run("java", tool).unwrap_or_else(|error| panic!("{error}"));
    }

    fn node(&self, id: usize) -> &Node {
        self.nodes.iter().find(|node| node.id == id).unwrap_or_else(|| panic!("no node {id} in a cluster of {}", self.size()))
    }

    fn with<T>(&self, id: usize, act: impl FnOnce(&Process) -> T) -> T {
        act(self.node(id).process().as_ref().expect("every node was started"))
    }
}

/// A formatted data folder of a release. It depends on neither node nor cluster but for `meta.properties`, so it is made once.
fn format_of(version: &str) -> Result<PathBuf, jars::Error> {
    let dir = jars::cache().join(version);
    jars::once(&dir, "format", "1".to_owned(), |data| {
        let work = process::work_dir("format");
        let config = work.path().join("server.properties");
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:1\n\
             listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1\ncontroller.listener.names=CONTROLLER\nlog.dirs={}\n",
            data.display()
        );
        write(&config, &text);
        let mut tool: Command = jars::java(HEAP_MB, version, None)?;
        tool.args(["kafka.tools.StorageTool", "format", "-t", &random_id(), "-c"]).arg(&config);
        jars::run("java", tool)
    })
}

/// A random id in Kafka's notation: 22 characters of base 64 for 128 bits.
fn random_id() -> String {
    let bits = RandomState::new().hash_one(0);
    // Kafka refuses some reserved ids at the low end and ids that start with a dash; the fixed tail keeps clear of both.
    format!("K{bits:016x}AAAAA")
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("our own folder");
    for entry in fs::read_dir(from).expect("the formatted folder").flatten() {
        let target = to.join(entry.file_name());
        match entry.path() {
            dir if dir.is_dir() => copy_dir(&dir, &target),
            file => drop(fs::copy(file, target).expect("our own folder")),
        }
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The last lines of a log, for messages.
pub(crate) fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines.get(lines.len().saturating_sub(30)..).unwrap_or_default().join("\n")
}
