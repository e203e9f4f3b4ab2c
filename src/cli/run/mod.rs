//! `partition-autoscaler run`.

mod company;
mod keys;
mod logging;
mod reload;
mod topology;

use std::net::SocketAddr;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tracing::{info, warn};

use super::{Common, Failure, exit, live};
use crate::autoscaler::driver::{Control, Driver, Ended, MakeOffice, Setup};
use crate::autoscaler::machine::Rules;
use crate::config::settings::LeaderElection;
use crate::config::{self, Settings, Sources};
use crate::coordinator::{Alone, Elected, Office};
use crate::http::{Change, Metrics, Reporter, Server, Shared};
use crate::kafka::Client;
use crate::kafka::coordination::Coordination;

/// How long the loops may take to finish the current step; below the 30 s that Kubernetes grants.
const GRACE: Duration = Duration::from_secs(20);

/// Signals that come this soon after the first are its echo.
const ECHO: Duration = Duration::from_millis(500);

/// Options of `run`.
#[derive(Debug, Args)]
#[command(after_long_help = config::help_text())]
pub struct RunArgs {}

/// One application at work.
struct Worker {
    /// The settings it was started with.
    settings: Settings,
    control: Sender<Control>,
}

/// Runs until a signal comes, or until every application has ended.
pub fn run(_args: &RunArgs, common: &Common) -> Result<u8, Failure> {
    let sources = Sources::new(&common.config, &common.set);
    let all = live::load(common, &sources)?;
    let (listen, level, format, token) = match all.first() {
        Some(first) => (first.http_listen.clone(), first.log_level, first.log_format, first.http_token.clone()),
        None => return Err(Failure::usage("no application is configured; set application.id and bootstrap.servers")),
    };
    let log = logging::init(level, format)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("the runtime cannot be started: {error}")))?;
    // First of all: as the first process of a container it would not even hear a signal that it does not handle.
    let no_signals = |error| Failure::failed(format!("signals cannot be received: {error}"));
    let (mut signals, mut hang_up) = {
        let _runtime = runtime.enter();
        (Signals::new().map_err(no_signals)?, signal(SignalKind::hangup()).map_err(no_signals)?)
    };
    let metrics = Metrics::new().map_err(|error| Failure::failed(format!("the metrics cannot be registered: {error}")))?;
    let shared = Shared::new(metrics);
    let started = all.clone();
    let applications = all.into_iter().map(Application::prepare).collect::<Result<Vec<_>, _>>()?;
    let mut changes = token.map(|token| shared.accept(token));
    let server = Server::start(&listen, shared.clone()).map_err(|error| Failure::usage(error.to_string()))?;
    info!(address = %server.address(), "listening on http://{}", server.address());

    let member = member(server.address());
    runtime.block_on(async {
        let (ended, mut endings) = unbounded_channel();
        let workers: Vec<Worker> =
            applications.into_iter().map(|application| application.start(&shared, &member, &ended)).collect::<Result<_, _>>()?;
        drop(ended);
        let mut reload = reload::Reload::new(sources, started, log, shared.clone());
        let mut left = workers.len();
        while left > 0 {
            tokio::select! {
                ending = endings.recv() => {
                    left = left.saturating_sub(1);
                    let Some(ending) = ending else { break };
                    let ending = ending.outcome(workers.len() > 1);
                    // one application that cannot go on ends the process, so that somebody notices
                    if !matches!(ending, Ok(exit::OK)) {
                        stop(&workers, left, &mut endings, &mut signals).await;
                        return ending;
                    }
                }
                name = signals.end() => {
                    info!("{name} asks to stop");
                    stop(&workers, left, &mut endings, &mut signals).await;
                    return Ok(exit::OK);
                }
                Some(change) = next(&mut changes) => tell(&workers, &reload.change(change)),
                () = reload.due(&mut hang_up) => tell(&workers, &reload.read()),
            }
        }
        Ok(exit::OK)
    })
}

/// The next change that is asked for; never any without a token.
async fn next(changes: &mut Option<UnboundedReceiver<Change>>) -> Option<Change> {
    match changes {
        Some(changes) => changes.recv().await,
        None => std::future::pending().await,
    }
}

/// Ends the loops; a second signal, or the end of the grace, ends without them.
async fn stop(workers: &[Worker], mut left: usize, endings: &mut UnboundedReceiver<Ending>, signals: &mut Signals) {
    for worker in workers {
        let _ = worker.control.send(Control::Stop); // a loop that has ended needs no telling
    }
    let all = async {
        while left > 0 {
            left = left.saturating_sub(1);
            let _ = endings.recv().await; // what else ends says nothing new
        }
    };
    // Some send one signal to the process and to its group, which is not a second wish.
    let begun = Instant::now();
    let again = async {
        loop {
            let name = signals.end().await;
            if begun.elapsed() > ECHO {
                return name;
            }
        }
    };
    tokio::select! {
        outcome = timeout(GRACE, all) => {
            if outcome.is_err() {
                warn!("the current step did not end in time; ending without it");
            }
        }
        name = again => warn!("{name} again: ending at once"),
    }
}

/// Hands on what may change at run time, and says what may not. Nothing is written now: everything stays in force.
fn tell(workers: &[Worker], all: &[Settings]) {
    for settings in all {
        let application_id = &settings.application_id;
        let Some(worker) = workers.iter().find(|worker| worker.settings.application_id == *application_id) else {
            warn!(application_id, "this application is new in the configuration; it is served after a restart");
            continue;
        };
        let waiting = reload::at_next_start(&worker.settings, settings);
        if !waiting.is_empty() {
            warn!(application_id, "changed in the configuration, but in force only after a restart: {}", waiting.join(", "));
        }
        let told = Control::Settings { rules: rules(settings), baseline: settings.baseline.clone(), on_error: settings.on_error };
        let _ = worker.control.send(told); // a loop that has ended needs no telling
    }
    for Worker { settings, .. } in workers.iter().filter(|_| !all.is_empty()) {
        let application_id = &settings.application_id;
        if !all.iter().any(|settings| settings.application_id == *application_id) {
            warn!(application_id, "this application is not in the configuration any more; it is served until the next restart");
        }
    }
}

/// What the sidecar is called beside others: where a person finds it.
fn member(address: SocketAddr) -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    let host = host.unwrap_or_else(|| gethostname::gethostname().to_string_lossy().into_owned());
    format!("{host}:{}", address.port())
}

/// How this sidecar stands among those of its application: alone, or one of an election.
fn office(settings: &Settings, member: &str) -> MakeOffice {
    let (settings, member) = (settings.clone(), member.to_owned());
    if settings.leader_election == LeaderElection::None {
        return Box::new(move |_| company::refuse(&settings).map(|()| Box::<Alone>::default() as Box<dyn Office>));
    }
    Box::new(move |clock| {
        let coordination = Coordination::new(&settings.bootstrap_servers, &settings.kafka, &settings.application_id);
        let user = std::env::var("USER").unwrap_or_default();
        Ok(Box::new(Elected::join(coordination, clock, member.clone(), user)?))
    })
}

fn rules(settings: &Settings) -> Rules {
    Rules {
        enabled: settings.enabled,
        timeout: settings.timeout,
        poll_interval: settings.poll_interval,
        max_new_partitions: settings.max_new_partitions,
        static_check: settings.static_check,
    }
}

/// The end of one loop.
struct Ending {
    application_id: String,
    /// `None`: it has panicked.
    ended: Option<Ended>,
}

impl Ending {
    /// What it means for the process. `named`: there are several applications, so the sentence says which.
    fn outcome(self, named: bool) -> Result<u8, Failure> {
        match self.ended {
            None => Err(Failure::failed(format!(
                "the loop of {} has panicked, which is a fault of this program; the log shows where, please report it",
                self.application_id
            ))),
            Some(Ended::Stopped) => Ok(exit::OK),
            Some(Ended::AssignorError) => Ok(exit::ASSIGNOR_ERROR),
            Some(Ended::Refused(error)) => {
                let Failure { code, message } = error.into();
                Err(Failure { code, message: if named { format!("{}: {message}", self.application_id) } else { message } })
            }
        }
    }
}

/// An application whose settings, topology and client stand.
struct Application {
    settings: Settings,
    topology: topology::Followed,
    planner: Option<crate::plan::Planner>,
    client: Client,
}

impl Application {
    fn prepare(settings: Settings) -> Result<Self, Failure> {
        let (topology, planner) = topology::Followed::begin(&settings)?;
        let client = live::connect(&settings)?;
        Ok(Self { settings, topology, planner, client })
    }

    fn start(self, shared: &Shared, member: &str, endings: &UnboundedSender<Ending>) -> Result<Worker, Failure> {
        let Self { settings, topology, planner, client } = self;
        let application_id = settings.application_id.clone();
        for warning in &settings.warnings {
            warn!(application_id, "{warning}");
        }
        let metrics = shared.metrics().application(&application_id, &live::client_id(&application_id));
        let reporter =
            Reporter::new(shared, metrics, member, &application_id, settings.enabled, topology.source(), &settings.warnings);
        info!(
            application_id,
            enabled = settings.enabled,
            "watching; partition.autoscaling.enabled is {}",
            if settings.enabled { "true" } else { "false, so nothing will be changed" }
        );
        let (control, told) = mpsc::channel();
        let setup = Setup {
            application_id: application_id.clone(),
            expected_cluster_id: settings.expected_cluster_id.clone(),
            on_error: settings.on_error,
            rules: rules(&settings),
            baseline: settings.baseline.clone(),
            planner,
            office: office(&settings, member),
        };
        company::follow(settings.clone(), control.clone());
        keys::follow(settings.clone(), control.clone());
        topology.follow(settings.clone(), control.clone());
        let (endings, name) = (endings.clone(), application_id.clone());
        let work = move || {
            let driver = Driver::new(client, setup, told, reporter);
            // Nothing of it is used after a panic, and its end must not go unnoticed beside the loops of other applications.
            let ended = panic::catch_unwind(AssertUnwindSafe(|| driver.run())).ok();
            let _ = endings.send(Ending { application_id: name, ended }); // nobody listens any more once the process ends
        };
        let thread = thread::Builder::new().name(format!("autoscaler-{application_id}")).spawn(work);
        thread.map_err(|error| Failure::failed(format!("no thread can be started: {error}")))?;
        Ok(Worker { settings, control })
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Name of the one that came.
    async fn end(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
