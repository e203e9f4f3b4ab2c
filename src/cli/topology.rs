//! `partition-autoscaler topology`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::origin::Origin;
use super::{Common, Failure, Output, describe_text, exit, live, print, snapshot};
use crate::config::{self, Sources};
use crate::plan::Snapshot;
use crate::topology::{Overview, render};
use crate::topology_source;

/// Options of `topology`.
#[derive(Debug, Args)]
#[command(after_help = "Without --describe, --url or --snapshot the topology of the configuration is shown.")]
pub struct TopologyArgs {
    #[command(flatten)]
    given: Given,
    /// Form of the answer [default: table, or json with --output json]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct Given {
    /// Read the text of Topology#describe() from a file, or from standard input (-)
    #[arg(long, value_name = "FILE")]
    describe: Option<PathBuf>,
    /// Fetch the text of Topology#describe() from the running application
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Take topology and existing topics from a snapshot file, or from standard input (-)
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables for people
    Table,
    /// JSON for programs
    Json,
    /// A Mermaid flowchart
    Mermaid,
    /// A Graphviz graph
    Dot,
}

/// Runs the command.
pub fn run(args: &TopologyArgs, common: &Common) -> Result<u8, Failure> {
    let format = format(args.format, common.output)?;
    let overview = overview(&args.given, common)?;
    let text = match format {
        Format::Table => render::table::render(&overview),
        Format::Mermaid => render::mermaid::render(&overview),
        Format::Dot => render::dot::render(&overview),
        Format::Json => {
            let json = serde_json::to_string_pretty(&overview.answer());
            json.map_err(|e| Failure::failed(format!("cannot write the topology as JSON: {e}")))? + "\n"
        }
    };
    print(&text)?;
    Ok(exit::OK)
}

fn format(format: Option<Format>, output: Output) -> Result<Format, Failure> {
    match (format, output) {
        (None, Output::Text) => Ok(Format::Table),
        (None | Some(Format::Json), Output::Json) => Ok(Format::Json),
        (Some(format), Output::Text) => Ok(format),
        (Some(_), Output::Json) => Err(Failure::usage("--output json and --format ask for two forms, expected one of them")),
    }
}

fn overview(given: &Given, common: &Common) -> Result<Overview, Failure> {
    match given {
        Given { describe: Some(path), .. } => Ok(Overview::of_description(&describe_text::from_file(path)?)),
        Given { url: Some(url), .. } => Ok(Overview::of_description(&describe_text::from_url(url)?)),
        Given { snapshot: Some(path), .. } => from_snapshot(path),
        _ => from_configuration(common),
    }
}

fn from_snapshot(path: &Path) -> Result<Overview, Failure> {
    let name = topology_source::name(path);
    of_snapshot(&name, &snapshot::read(path)?)
}

fn of_snapshot(name: &str, snapshot: &Snapshot) -> Result<Overview, Failure> {
    let overview = match (&snapshot.topology, &snapshot.describe) {
        (Some(topology), None) => Overview::of_topology(topology),
        (None, Some(text)) => Overview::of_description(&describe_text::parse(&format!("the describe text of {name}"), text)?)
            .with_stated(&snapshot.stated.clone().unwrap_or_default()),
        _ => return Err(Failure::usage(format!("{name} is not a snapshot: expected either topology or describe in it"))),
    };
    if snapshot.partitions.is_empty() {
        return Ok(overview);
    }
    Ok(overview.with_topics(snapshot.prefix(), |topic| snapshot.partitions.contains_key(topic)))
}

/// The topology of the configuration; with a cluster in it too, the topics that exist confirm the candidates.
fn from_configuration(common: &Common) -> Result<Overview, Failure> {
    let sources = Sources::new(&common.config, &common.set);
    if live::nothing_configured(common, &sources) {
        return Err(Failure::usage(
            "no topology is given; expected one of --describe FILE, --url URL or --snapshot FILE, or --config FILE of an application",
        ));
    }
    let settings = live::only(config::load(&sources)?)?;
    match live::observe(&settings) {
        Ok(mut application) => {
            if let Some(warning) = application.absence() {
                eprintln!("warning: {} ({})", warning.message, warning.code);
            }
            of_snapshot("the configuration", &application.snapshot)
        }
        Err(failure) if failure.code == exit::USAGE => Err(failure),
        Err(failure) => {
            eprintln!("note: existing topics are not known: {}", failure.message);
            let (_, snapshot) = Origin::of(&settings)?.planner(&settings)?;
            of_snapshot("the configuration", &snapshot)
        }
    }
}
