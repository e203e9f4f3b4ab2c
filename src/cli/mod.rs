//! The command line: one file per command.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub mod completions;
pub mod config;
pub mod control;
pub mod describe_text;
pub mod history;
pub mod job;
mod live;
mod origin;
pub mod plan;
mod remembered;
pub mod run;
pub mod snapshot;
pub mod status;
pub mod topology;

/// Exit codes, the same for every command.
pub mod exit {
    /// Done, or nothing to do.
    pub const OK: u8 = 0;
    /// The command failed.
    pub const FAILED: u8 = 1;
    /// Usage, configuration or unreadable input.
    pub const USAGE: u8 = 2;
    /// `plan`: changes are needed.
    pub const CHANGES: u8 = 3;
    /// Blocked or waiting.
    pub const BLOCKED: u8 = 4;
    /// Timed out.
    pub const TIMED_OUT: u8 = 5;
    /// `run` ended because of an assignor error (`partition.autoscaling.on.error=exit`).
    pub const ASSIGNOR_ERROR: u8 = 6;
}

/// Why a command ended badly: one sentence and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// See [`exit`].
    pub code: u8,
    /// One sentence that names the thing, what was expected and what to do.
    pub message: String,
}

impl Failure {
    /// Usage, configuration or unreadable input.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: exit::USAGE, message: message.into() }
    }

    /// Anything else.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { code: exit::FAILED, message: message.into() }
    }
}

/// Writes an answer to standard output.
fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        // The reader (`head`) has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Grows the internal topics of Kafka Streams applications when their inputs grow.
#[derive(Debug, Parser)]
#[command(name = "partition-autoscaler", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
    /// The habit of Kafka's own tools; answered with what to write here.
    #[arg(long, alias = "bootstrap-servers", value_name = "HOST:PORT", hide = true, global = true)]
    bootstrap_server: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Watch the inputs of an application and grow its internal topics when they grow
    ///
    /// SIGTERM and SIGINT end it in good order, a second one ends it at once. SIGHUP reads the configuration again, which also happens
    /// when one of its files changes; topology.file or topology.url is read again every 30 s.
    ///
    /// Exit code: 0 stopped by a signal, 1 failed, 2 usage or configuration, 6 an assignor error with
    /// partition.autoscaling.on.error=exit.
    Run(run::RunArgs),
    /// Show what would grow, and why; never changes anything
    Plan(plan::PlanArgs),
    /// Show the topology of an application as far as it is known
    Topology(topology::TopologyArgs),
    /// Save topology, baseline and counts of a live application, for `plan --snapshot`
    Snapshot(snapshot::SnapshotArgs),
    /// Show the status of a running sidecar, or with --config what its leader has told
    Status(status::StatusArgs),
    /// Show what the sidecars of a live application remember: leader, plans, events
    History(history::HistoryArgs),
    /// Work out which task of a job consumes which partitions (SEP-5)
    Job(job::JobArgs),
    /// Read, write and reconcile control messages (watermarks, ends of streams)
    Control(control::ControlArgs),
    /// Check or show the configuration
    Config(config::ConfigArgs),
    /// Print the completion script of a shell
    Completions(completions::CompletionsArgs),
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// Configuration file (.toml or .properties)
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Vec<std::path::PathBuf>,
    /// One setting, over file and environment; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", global = true)]
    pub set: Vec<String>,
    /// Tables for people or JSON for programs
    #[arg(long, value_enum, default_value_t = Output::Text, global = true)]
    pub output: Output,
}

/// Form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Tables for people.
    Text,
    /// Stable JSON for programs.
    Json,
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let common = &cli.common;
    let result: Result<u8, Failure> = match &cli.command {
        _ if cli.bootstrap_server.is_some() => Err(Failure::usage(
            "--bootstrap-server is not an option of this program; use --set bootstrap.servers=HOST:PORT, or write it in --config FILE",
        )),
        Command::Run(_) if common.output == Output::Json => {
            Err(Failure::usage("run gives no answer that --output json could change; set log.format=json for a log in JSON"))
        }
        Command::Run(args) => run::run(args, common),
        Command::Plan(args) => plan::run(args, common),
        Command::Topology(args) => topology::run(args, common),
        Command::Snapshot(args) => snapshot::run(args, common),
        Command::Status(args) => status::run(args, common),
        Command::History(args) => history::run(args, common),
        Command::Job(args) => job::run(args, common),
        Command::Control(args) => control::run(args, common),
        Command::Config(args) => config::run(args, common),
        Command::Completions(args) => completions::run(args, Cli::command()),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("error: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}
