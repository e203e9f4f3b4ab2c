//! `partition-autoscaler status`: what a running sidecar says of itself, or what the leader has told all of them.

use std::time::{Duration, SystemTime};

use clap::Args;
use comfy_table::{Table, presets};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Common, Failure, Output, exit, live, print, remembered};
use crate::autoscaler::status::{ApplicationStatus, AssignorError, StateName};
use crate::config::{Settings, Sources};
use crate::coordinator::view;
use crate::http::Label;

/// A sidecar answers from memory, so one that takes longer is as good as none.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Options of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Where the sidecar serves (`http.listen` of its configuration) [default: http://127.0.0.1:9878,
    /// or with --config the coordinator topic is read instead]
    #[arg(long)]
    url: Option<String>,
}

/// Where a sidecar serves unless its configuration says otherwise.
const DEFAULT_URL: &str = "http://127.0.0.1:9878";

#[derive(Deserialize, Serialize)]
struct Answer {
    applications: Vec<ApplicationStatus>,
}

/// Runs the command. The exit code is that of the application that stands worst.
pub fn run(args: &StatusArgs, common: &Common) -> Result<u8, Failure> {
    let (json, answer) = match &args.url {
        None if !common.config.is_empty() => from_topics(common)?,
        url => from_sidecar(url.as_deref().unwrap_or(DEFAULT_URL))?,
    };
    print(&match common.output {
        Output::Json => format!("{json:#}\n"),
        Output::Text => text(&answer.applications),
    })?;
    Ok(answer.applications.iter().map(|status| exit_code(status.state.name)).max().unwrap_or(exit::OK))
}

/// As JSON it is shown as it came: a newer sidecar may have more to say.
fn from_sidecar(url: &str) -> Result<(Value, Answer), Failure> {
    let json = fetch(url)?;
    let answer = Answer::deserialize(&json).map_err(|error| {
        Failure::failed(format!("{url} is not a sidecar of this version ({error}); correct --url, or use its own version"))
    })?;
    Ok((json, answer))
}

fn from_topics(common: &Common) -> Result<(Value, Answer), Failure> {
    let all = live::load(common, &Sources::new(&common.config, &common.set))?;
    let answer = Answer { applications: all.iter().map(as_remembered).collect::<Result<_, _>>()? };
    let json = serde_json::to_value(&answer);
    Ok((json.map_err(|error| Failure::failed(format!("cannot write the status as JSON: {error}")))?, answer))
}

fn as_remembered(settings: &Settings) -> Result<ApplicationStatus, Failure> {
    let found = remembered::read(settings)?;
    let enabled = view::enabled(&found.memory).unwrap_or(settings.enabled);
    let mut status = ApplicationStatus::starting(&settings.application_id, enabled, SystemTime::now());
    status.cluster_id = Some(found.cluster_id);
    view::fill(&mut status, &found.memory);
    Ok(status)
}

fn fetch(url: &str) -> Result<Value, Failure> {
    let unreachable = |error: ureq::Error| {
        Failure::failed(format!(
            "no sidecar answers at {url} ({error}); start `partition-autoscaler run`, or name its http.listen with --url"
        ))
    };
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).build().into();
    let mut response = agent.get(format!("{}/v1/status", url.trim_end_matches('/'))).call().map_err(unreachable)?;
    response.body_mut().read_json().map_err(unreachable)
}

/// The codes rise with how bad the state is.
fn exit_code(state: StateName) -> u8 {
    match state {
        StateName::Starting | StateName::Steady | StateName::Expanding | StateName::Settling => exit::OK,
        StateName::Disabled => exit::CHANGES,
        StateName::Waiting | StateName::Blocked => exit::BLOCKED,
        StateName::Failed => exit::TIMED_OUT,
    }
}

fn text(applications: &[ApplicationStatus]) -> String {
    if applications.is_empty() {
        return "No application is watched yet.\n".to_owned();
    }
    applications.iter().map(application).collect::<Vec<_>>().join("\n")
}

fn application(status: &ApplicationStatus) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push(format!("{name:<12} {value}"));
    line("Application", status.application_id.clone());
    line("State", format!("{:?} since {}", status.state.name, status.state.since));
    line("", status.state.details.clone());
    line("Autoscaling", if status.enabled { "enabled" } else { "disabled" }.to_owned());
    line("Leader", if status.leader { "this sidecar" } else { "another sidecar, or none" }.to_owned());
    line("Cluster", status.cluster_id.clone().unwrap_or_else(|| "not known yet".to_owned()));
    line("Topology", status.topology_source.clone().unwrap_or_else(|| "not known yet".to_owned()));
    if status.assignor_error.name != AssignorError::None {
        line("Error", format!("assignor error {} ({})", status.assignor_error.code, status.assignor_error.name.text()));
    }
    if let Some(error) = &status.last_error {
        line("Error", error.clone());
    }
    for (topic, error) in &status.topic_errors {
        line("Error", format!("{topic}: {} ({})", error.message, error.name));
    }
    for question in &status.questions {
        line("Question", question.message.clone());
    }
    for warning in &status.warnings {
        line("Warning", format!("{} ({})", warning.message, warning.code));
    }
    if let Some(expansion) = &status.last_expansion {
        line("Expanded", format!("{} topics in {} ms, seen {}", expansion.topics.len(), expansion.reaction_ms, expansion.seen));
    }
    if status.failures > 0 {
        line("Failures", status.failures.to_string());
    }
    let mut text = lines.iter().map(|line| format!("{}\n", line.trim_end())).collect::<String>();
    if !status.partitions.is_empty() {
        text += &format!("\n{}\n", topics(status));
    }
    text
}

fn topics(status: &ApplicationStatus) -> Table {
    let count = |count: Option<u32>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let mut table = Table::new();
    table.load_preset(presets::ASCII_BORDERS_ONLY_CONDENSED).set_header(["Topic", "Partitions", "Expected", ""]);
    for (topic, counts) in &status.partitions {
        let mark = match (counts.count, counts.expected) {
            (Some(found), Some(expected)) if found != expected => "differs",
            _ => "",
        };
        table.add_row([topic.clone(), count(counts.count), count(counts.expected), mark.to_owned()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::autoscaler::status::TopicCounts;
    use crate::http::{Metrics, Server, Shared};
    use crate::kafka::port::TopicError;

    fn failed() -> ApplicationStatus {
        let mut status = ApplicationStatus::starting("shop", true, SystemTime::UNIX_EPOCH);
        status.state.name = StateName::Failed;
        status.state.details = "gave up after 900000 ms".to_owned();
        status.leader = true;
        status.cluster_id = Some("4L6g3nShT-eMCtK--X86sx".to_owned());
        status.topology_source = Some("describe".to_owned());
        status.assignor_error = AssignorError::IncompleteSourceTopicMetadata.into();
        status.failures = 1;
        let error = TopicError { code: 29, name: "TOPIC_AUTHORIZATION_FAILED".into(), message: "grant ALTER".into() };
        status.topic_errors.insert("shop-k-repartition".into(), error);
        status.partitions.insert("orders".into(), TopicCounts { count: Some(6), expected: Some(6) });
        status.partitions.insert("shop-k-repartition".into(), TopicCounts { count: Some(3), expected: Some(6) });
        status
    }

    #[test]
    fn shows_a_table_for_people() {
        expect![[r#"
            Application  shop
            State        Failed since 1970-01-01T00:00:00.000Z
                         gave up after 900000 ms
            Autoscaling  enabled
            Leader       this sidecar
            Cluster      4L6g3nShT-eMCtK--X86sx
            Topology     describe
            Error        assignor error 1 (INCOMPLETE_SOURCE_TOPIC_METADATA)
            Error        shop-k-repartition: grant ALTER (TOPIC_AUTHORIZATION_FAILED)
            Failures     1

            +------------------------------------------------------+
            | Topic                Partitions   Expected           |
            +======================================================+
            | orders               6            6                  |
            | shop-k-repartition   3            6          differs |
            +------------------------------------------------------+
        "#]]
        .assert_eq(&text(&[failed()]));
        assert_eq!(text(&[]), "No application is watched yet.\n");
    }

    fn run_against(url: String) -> Result<u8, Failure> {
        let common = Common { config: Vec::new(), set: Vec::new(), output: Output::Json };
        run(&StatusArgs { url: Some(url) }, &common)
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst_state() {
        let shared = Shared::new(Metrics::new().unwrap());
        let server = Server::start("127.0.0.1:0", shared.clone()).unwrap();
        let url = format!("http://{}/", server.address());
        assert_eq!(run_against(url.clone()).unwrap(), exit::OK);
        let states = [
            (StateName::Steady, exit::OK),
            (StateName::Disabled, exit::CHANGES),
            (StateName::Blocked, exit::BLOCKED),
            (StateName::Failed, exit::TIMED_OUT),
        ];
        // The states are published one by one, so that each is the worst so far.
        for (state, code) in states {
            let mut status = ApplicationStatus::starting(format!("{state:?}"), true, SystemTime::UNIX_EPOCH);
            status.state.name = state;
            shared.publish(status);
            assert_eq!(run_against(url.clone()).unwrap(), code, "{state:?}");
        }
        drop(server);
        let failure = run_against(url.clone()).unwrap_err();
        assert_eq!(failure.code, exit::FAILED);
        assert!(failure.message.starts_with(&format!("no sidecar answers at {url} (")), "{}", failure.message);
    }
}
