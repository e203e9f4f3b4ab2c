//! `partition-autoscaler status`: what a running sidecar says of itself, or what the leader has told all of them.

use std::time::{Duration, SystemTime};

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::history::took_over;
use super::remembered::{self, Remembered};
use super::{Common, Failure, Output, exit, live, print};
use crate::autoscaler::status::{ApplicationStatus, AssignorError, StateName, Time};
use crate::config::{Settings, Sources};
use crate::coordinator::view;
use crate::http::Label;
use crate::kafka::port::{Cluster, KafkaError};
use crate::plan::Warning;
use crate::table;

/// A sidecar answers from memory, so one that takes longer is as good as none.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Options of `status`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code, of the application that stands worst: 0 Starting, Steady, Expanding, Settling, 3 Disabled, 4 Waiting, \
                  Blocked, 5 Failed; 1 no sidecar answers, or none is alive."
)]
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
    match &args.url {
        None if !common.config.is_empty() => from_topics(common),
        url => from_sidecar(url.as_deref().unwrap_or(DEFAULT_URL), common.output),
    }
}

fn worst<'a>(all: impl IntoIterator<Item = &'a ApplicationStatus>) -> u8 {
    all.into_iter().map(|status| exit_code(status.state.name)).max().unwrap_or(exit::OK)
}

/// As JSON it is shown as it came: a newer sidecar may have more to say.
fn from_sidecar(url: &str, output: Output) -> Result<u8, Failure> {
    let json = fetch(url)?;
    let answer = Answer::deserialize(&json).map_err(|error| {
        Failure::failed(format!("{url} is not a sidecar of this version ({error}); correct --url, or use its own version"))
    })?;
    print(&match output {
        Output::Json => format!("{json:#}\n"),
        Output::Text => text(&answer.applications),
    })?;
    Ok(worst(&answer.applications))
}

fn from_topics(common: &Common) -> Result<u8, Failure> {
    let all = live::load(common, &Sources::new(&common.config, &common.set))?;
    let told: Vec<Told> = all.iter().map(Told::read).collect::<Result<_, _>>()?;
    let text = match common.output {
        Output::Text => told.iter().map(Told::text).collect::<Vec<_>>().join("\n"),
        Output::Json => {
            let answer = Answer { applications: told.iter().map(|told| told.status.clone()).collect() };
            let json = serde_json::to_string_pretty(&answer);
            json.map_err(|error| Failure::failed(format!("cannot write the status as JSON: {error}")))? + "\n"
        }
    };
    print(&text)?;
    let alone = told.iter().any(|told| told.alive == Some(0));
    Ok(if alone { exit::FAILED } else { worst(told.iter().map(|told| &told.status)) })
}

/// What the leader has told in the coordinator topic.
struct Told {
    status: ApplicationStatus,
    /// Members of the group of the sidecars; `None` if that could not be found out.
    alive: Option<usize>,
    /// Who has told it; `None` if nobody has.
    leader: Option<String>,
    /// When, and how long ago that is.
    at: String,
}

impl Told {
    fn read(settings: &Settings) -> Result<Self, Failure> {
        let found = remembered::read(settings)?;
        let group = live::client_id(&settings.application_id); // which is the name of the group as well
        let alive = live::connect(settings)?.describe_group(&group, live::TIMEOUT);
        let alive = alive.map(|group| group.map_or(0, |group| group.members.len()));
        Ok(Self::of(settings, found, alive, SystemTime::now()))
    }

    fn of(settings: &Settings, found: Remembered, alive: Result<usize, KafkaError>, now: SystemTime) -> Self {
        let memory = &found.memory;
        let enabled = view::enabled(memory).unwrap_or(settings.enabled);
        let mut status = ApplicationStatus::starting(&settings.application_id, enabled, now);
        status.cluster_id = Some(found.cluster_id);
        view::fill(&mut status, memory);
        let last = view::state(memory).map(|state| state.since).max(status.history.last().map(|entry| entry.at));
        let at = last.map_or_else(|| "nothing has been told yet".to_owned(), |last| ago(last, now));
        let leader = memory.standing_intent().map(|row| row.member.clone());
        let group = live::client_id(&settings.application_id);
        let (code, message) = match &alive {
            Ok(0) => (
                "NO_SIDECAR",
                format!(
                    "no sidecar of {} is alive; this is what the last leader told: {at}. If one does run, it has \
                     leader.election=none (ask it with --url), or this account may not see the group {group} (grant DESCRIBE on it)",
                    settings.application_id
                ),
            ),
            Err(error) => ("SIDECARS_NOT_SEEN", format!("whether a sidecar is alive could not be seen: {}", error.message)),
            Ok(_) => return Self { status, alive: alive.ok(), leader, at },
        };
        status.warnings.push(Warning { code: code.to_owned(), message });
        Self { status, alive: alive.ok(), leader, at }
    }

    fn text(&self) -> String {
        let leader = self.leader.as_deref().map_or_else(|| "none yet".to_owned(), took_over);
        let sidecars = match self.alive {
            None => "not seen".to_owned(),
            Some(0) => "none is alive".to_owned(),
            Some(n) => format!("{n} alive"),
        };
        application(&self.status, &[("Leader", leader), ("Sidecars", sidecars), ("Told", self.at.clone())])
    }
}

/// A moment, and how long ago it is; a clock that is ahead of ours has no age.
fn ago(at: Time, now: SystemTime) -> String {
    match now.duration_since(at.0) {
        Ok(age) => format!("{at}, {} ago", humantime::format_duration(Duration::from_secs(age.as_secs()))),
        Err(_) => at.to_string(),
    }
}

/// Where the status is, for an address as `http.listen` has it, a URL of the sidecar, or that of the status itself.
fn address(url: &str) -> String {
    const PATH: &str = "/v1/status";
    let scheme = if url.contains("://") { "" } else { "http://" };
    let base = url.trim_end_matches('/');
    format!("{scheme}{}{PATH}", base.strip_suffix(PATH).unwrap_or(base).trim_end_matches('/'))
}

fn fetch(url: &str) -> Result<Value, Failure> {
    let unreachable = |error: ureq::Error| {
        Failure::failed(format!(
            "no sidecar answers at {url} ({error}); start `partition-autoscaler run`, or name its http.listen with --url"
        ))
    };
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).build().into();
    let mut response = agent.get(address(url)).call().map_err(unreachable)?;
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
    let served = |status: &ApplicationStatus| {
        let leader = if status.leader { "this sidecar" } else { "another sidecar, or none" };
        let topology = status.topology_source.as_deref().unwrap_or("not known yet");
        application(status, &[("Leader", leader.to_owned()), ("Topology", topology.to_owned())])
    };
    applications.iter().map(served).collect::<Vec<_>>().join("\n")
}

/// A status for people, with `more` that depends on where it comes from.
fn application(status: &ApplicationStatus, more: &[(&str, String)]) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push(format!("{name:<12} {value}"));
    line("Application", status.application_id.clone());
    line("State", format!("{:?} since {}", status.state.name, status.state.since));
    line("", status.state.details.clone());
    line("Autoscaling", if status.enabled { "enabled" } else { "disabled" }.to_owned());
    line("Cluster", status.cluster_id.clone().unwrap_or_else(|| "not known yet".to_owned()));
    more.iter().for_each(|(name, value)| line(name, value.clone()));
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
        text += &format!("\n{}", topics(status));
    }
    text
}

fn topics(status: &ApplicationStatus) -> String {
    let count = |count: Option<u32>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let rows = status.partitions.iter().map(|(topic, counts)| {
        let mark = match (counts.count, counts.expected) {
            (Some(found), Some(expected)) if found != expected => "differs",
            _ => "",
        };
        [topic.clone(), count(counts.count), count(counts.expected), mark.to_owned()]
    });
    table::borderless(["TOPIC", "PARTITIONS", "EXPECTED", ""], rows)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::autoscaler::status::TopicCounts;
    use crate::coordinator::Memory;
    use crate::coordinator::records::{Fingerprint, Row, StandingIntent};
    use crate::http::{Metrics, Server, Shared};
    use crate::kafka::port::{ErrorClass, TopicError};

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
            Cluster      4L6g3nShT-eMCtK--X86sx
            Leader       this sidecar
            Topology     describe
            Error        assignor error 1 (INCOMPLETE_SOURCE_TOPIC_METADATA)
            Error        shop-k-repartition: grant ALTER (TOPIC_AUTHORIZATION_FAILED)
            Failures     1

            TOPIC               PARTITIONS  EXPECTED
            orders              6           6
            shop-k-repartition  3           6         differs
        "#]]
        .assert_eq(&text(&[failed()]));
        assert_eq!(text(&[]), "No application is watched yet.\n");
    }

    #[test]
    fn what_was_told_is_shown_with_its_age_and_who_is_alive() {
        let set = ["application.id=shop", "bootstrap.servers=a:1"].map(str::to_owned).to_vec();
        let settings = crate::config::load(&Sources { set, ..Sources::default() }).unwrap().remove(0);
        let mut memory = Memory::default();
        let standing = StandingIntent { epoch: 7, fingerprint: Fingerprint(1), member: "shop-0".into() };
        memory.set(Row::StandingIntent(standing));
        memory.set(Row::State { name: StateName::Steady, since: 1_000, details: "all is well".into() });
        memory.add_history(61_000, "steady", "all is well");
        let told = |memory: &Memory, alive| {
            let memory = memory.clone();
            let found = Remembered { cluster_id: "c".to_owned(), topic: String::new(), memory };
            Told::of(&settings, found, alive, SystemTime::UNIX_EPOCH + Duration::from_secs(3_661))
        };
        expect![[r#"
            Application  shop
            State        Steady since 1970-01-01T00:00:01.000Z
                         as the leader says: all is well
            Autoscaling  disabled
            Cluster      c
            Leader       shop-0 took over last
            Sidecars     none is alive
            Told         1970-01-01T00:01:01.000Z, 1h ago
            Warning      no sidecar of shop is alive; this is what the last leader told: 1970-01-01T00:01:01.000Z, 1h ago. If one does run, it has leader.election=none (ask it with --url), or this account may not see the group shop-partition-autoscaler (grant DESCRIBE on it) (NO_SIDECAR)
        "#]].assert_eq(&told(&memory, Ok(0)).text());
        let alive = told(&memory, Ok(2));
        assert!(alive.text().contains("Sidecars     2 alive\n") && alive.status.warnings.is_empty(), "{}", alive.text());
        let unseen = told(&memory, Err(KafkaError::new(ErrorClass::TimedOut, "no answer")));
        assert_eq!((unseen.alive, unseen.status.warnings[0].code.as_str()), (None, "SIDECARS_NOT_SEEN"));
        assert_eq!(told(&Memory::default(), Ok(0)).at, "nothing has been told yet");
    }

    #[test]
    fn a_sidecar_is_found_by_whatever_is_pasted() {
        for url in ["shop:9878", "http://shop:9878", "http://shop:9878/", "shop:9878/v1/status", "http://shop:9878/v1/status/"] {
            assert_eq!(address(url), "http://shop:9878/v1/status", "{url}");
        }
        assert_eq!(address("https://shop/sidecar/"), "https://shop/sidecar/v1/status");
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
