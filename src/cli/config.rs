//! `partition-autoscaler config`.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value as Json, json};

use super::origin::Origin;
use super::{Common, Failure, Output, exit, print};
use crate::config::{self, ConfigErrors, Problem, Settings, Shown, Sources, docs};
use crate::table;

/// Options of `config`.
#[derive(Debug, Args)]
#[command(after_long_help = config::help_text())]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check the configuration as `run` would, without touching the cluster
    Check,
    /// Show every setting, its value and where that came from
    Show,
    /// Print the reference of all settings
    #[command(hide = true)]
    Docs {
        /// What to print
        #[arg(long, value_enum, default_value_t = Format::Markdown)]
        format: Format,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// For people
    Markdown,
    /// JSON schema of a TOML file
    Schema,
}

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        Self::usage(errors.to_string())
    }
}

/// Runs the command.
pub fn run(args: &ConfigArgs, common: &Common) -> Result<u8, Failure> {
    let sources = Sources::new(&common.config, &common.set);
    let text = match args.command {
        Command::Check => match (config::load(&sources), common.output) {
            (Ok(all), output) => match (all.iter().try_for_each(check_topology), output) {
                (Ok(()), output) => passed(&all, output),
                (Err(failure), Output::Text) => return Err(failure),
                (Err(failure), Output::Json) => {
                    let error = json!({"place": null, "key": "topology", "message": failure.message});
                    return refused(vec![error]);
                }
            },
            (Err(errors), Output::Text) => return Err(errors.into()),
            (Err(errors), Output::Json) => return refused(problems(&errors)),
        },
        Command::Show => {
            let applications = config::show(&sources)?;
            match common.output {
                Output::Text => shown(&applications),
                Output::Json => format!("{:#}\n", values(&applications)),
            }
        }
        Command::Docs { format: Format::Markdown } => docs::markdown(),
        Command::Docs { format: Format::Schema } => docs::json_schema(),
    };
    print(&text)?;
    Ok(exit::OK)
}

/// Reads the topology as `run` does at its start. An application that serves it need not run yet.
fn check_topology(settings: &Settings) -> Result<(), Failure> {
    match Origin::of(settings)? {
        Origin::Url(_) => Ok(()),
        origin => origin.planner(settings).map(|_| ()),
    }
}

fn passed(all: &[Settings], output: Output) -> String {
    let mut warnings: Vec<&str> = Vec::new();
    for warning in all.iter().flat_map(|settings| &settings.warnings) {
        if !warnings.contains(&warning.as_str()) {
            warnings.push(warning);
        }
    }
    if output == Output::Json {
        let applications: Vec<Json> = all
            .iter()
            .map(|settings| {
                json!({
                    "application_id": settings.application_id,
                    "bootstrap_servers": settings.bootstrap_servers,
                    "enabled": settings.enabled,
                    "topology": topology(settings),
                })
            })
            .collect();
        return format!("{:#}\n", json!({"ok": true, "applications": applications, "errors": [], "warnings": warnings}));
    }
    let summary = all.iter().map(|settings| {
        let growing = if settings.enabled { "grows internal topics" } else { "watches only" };
        let (id, servers) = (&settings.application_id, &settings.bootstrap_servers);
        format!("{id}: {growing}, on {servers}, topology from {}\n", topology(settings))
    });
    let warnings = warnings.iter().map(|warning| format!("warning: {warning}\n"));
    std::iter::once("ok\n".to_owned()).chain(summary).chain(warnings).collect()
}

/// In the order in which `run` looks.
fn topology(settings: &Settings) -> String {
    use config::settings::TopologySource::Describe;

    let topology = &settings.topology;
    match (&topology.complete, &topology.file, &topology.url) {
        (Some(_), _, _) if topology.source != Some(Describe) => "the configuration".to_owned(),
        (_, Some(file), _) => file.display().to_string(),
        (_, _, Some(url)) => url.to_string(),
        _ => "nowhere".to_owned(),
    }
}

fn problems(errors: &ConfigErrors) -> Vec<Json> {
    let problem = |problem: &Problem| {
        let place = problem.origin.as_ref().map(ToString::to_string);
        json!({"place": place, "key": problem.key, "message": problem.message})
    };
    errors.problems().iter().map(problem).collect()
}

fn refused(errors: Vec<Json>) -> Result<u8, Failure> {
    print(&format!("{:#}\n", json!({"ok": false, "applications": [], "errors": errors, "warnings": []})))?;
    Ok(exit::USAGE)
}

fn shown(applications: &[Vec<Shown>]) -> String {
    let tables = applications.iter().map(|rows| {
        let cells = |row: &Shown| [row.key.clone(), row.text.clone().unwrap_or_else(|| "-".to_owned()), row.origin.to_string()];
        table::borderless(["KEY", "VALUE", "ORIGIN"], rows.iter().map(cells))
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// `{"values": ...}` for one application, `{"applications": [{"values": ...}, ...]}` for several.
fn values(applications: &[Vec<Shown>]) -> Json {
    let mut all = config::json(applications);
    match (all.pop(), all.is_empty()) {
        (Some(only), true) => only,
        (last, _) => json!({"applications": all.into_iter().chain(last).collect::<Vec<_>>()}),
    }
}
