//! What the commands that meet a live application share: its topology, a client, and its counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::origin::Origin;
use super::{Common, Failure, exit, remembered};
use crate::autoscaler::{record, words};
use crate::config::settings::LeaderElection;
use crate::config::{self, Settings, Sources};
use crate::coordinator::{Key, Row};
use crate::kafka::port::{Cluster, ErrorClass, KafkaError, TopicId, TopicState};
use crate::kafka::{Client, group_bytes, sample};
use crate::plan::partitioner::{self, Keys};
use crate::plan::{Code, Knowledge, Planner, Snapshot, Verdict, Warning, Watched};

/// Bound of each request of a command.
pub const TIMEOUT: Duration = Duration::from_secs(10);

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Self {
        let code = if error.class == ErrorClass::Config { exit::USAGE } else { exit::FAILED };
        Self { code, message: error.message }
    }
}

/// `client.id` of everything that works for an application.
pub fn client_id(application_id: &str) -> String {
    format!("{application_id}-partition-autoscaler")
}

/// A client with the settings of the application. Does not wait for a connection.
pub fn connect(settings: &Settings) -> Result<Client, Failure> {
    Ok(Client::connect(&settings.bootstrap_servers, &settings.kafka, &client_id(&settings.application_id))?)
}

/// A live application as it is now.
pub struct Application {
    /// Its planner.
    pub planner: Planner,
    /// Its topology, the stated baseline, and the counts of every topic that exists.
    pub snapshot: Snapshot,
    /// The connection to its cluster.
    pub client: Client,
    /// Ids of the topics that exist, where the broker tells them.
    ids: BTreeMap<String, TopicId>,
    /// Repartition topics that followed an input once, so are known not to be pinned.
    followers: BTreeSet<String>,
}

/// Reads topology and counts of a live application.
pub fn observe(settings: &Settings) -> Result<Application, Failure> {
    let (planner, mut snapshot) = Origin::of(settings)?.planner(settings)?;
    let mut client = connect(settings)?;
    let cluster_id = client.cluster_id(TIMEOUT)?;
    if let Some(expected) = settings.expected_cluster_id.as_ref().filter(|expected| **expected != cluster_id) {
        return Err(Failure::usage(words::other_cluster(&cluster_id, expected)));
    }
    let Watched { mut names, patterns } = planner.watched();
    if !patterns.is_empty() {
        let topics = client.list_topics(TIMEOUT)?;
        names.extend(topics.into_iter().filter(|topic| patterns.iter().any(|pattern| pattern.matches(topic))));
    }
    let names: Vec<String> = names.into_iter().collect();
    let seen = client.describe_topics(&names, TIMEOUT)?;
    let mut unreadable = Vec::new();
    let mut ids = BTreeMap::new();
    for (topic, state) in seen {
        match state {
            TopicState::Present { partitions, id } => {
                ids.extend(id.map(|id| (topic.clone(), id)));
                snapshot.partitions.insert(topic, partitions);
            }
            TopicState::Missing => {}
            TopicState::Failed(error) => unreadable.push((topic, error)),
        }
    }
    unreadable.retain(|(topic, _)| !planner.is_ruled_out(topic, &snapshot.partitions));
    // A short name is hardly one that is only possible, with the prefix of the application before the name of an input.
    unreadable.sort_by_key(|(topic, _)| topic.len());
    match unreadable.split_first() {
        Some(((topic, error), [])) => Err(Failure::failed(words::unreadable(topic, error))),
        Some(((topic, error), others)) => {
            let others: Vec<String> = others.iter().map(|(topic, _)| topic.clone()).collect();
            let first = words::unreadable(topic, error);
            Err(Failure::failed(format!("{first}; nor can be read: {}", words::shortened(&others))))
        }
        None => Ok(Application { planner, snapshot, client, ids, followers: BTreeSet::new() }),
    }
}

impl Application {
    /// Takes what the sidecars have learned, as one of them does that begins to lead: what was learned with this topology, of topics
    /// that are still the same. What is stated counts where that explains nothing.
    pub fn recall(&mut self, settings: &Settings) {
        if settings.leader_election == LeaderElection::None {
            return; // such a sidecar does not look there either
        }
        let memory = match remembered::find(settings, &mut self.client) {
            Ok(Some(memory)) => memory,
            Ok(None) => return,
            Err(failure) => {
                eprintln!("note: the baseline that the sidecars remember is not known: {}", failure.message);
                return;
            }
        };
        if memory.get(&Key::Topology) == Some(&Row::Topology(record::topology(&self.planner))) {
            let stated = self.snapshot.baseline.clone();
            self.snapshot.baseline.extend(memory.baseline(&self.ids));
            self.followers = memory.followers(&self.snapshot.partitions, &self.ids).into_keys().collect();
            let mut mixed = self.snapshot.baseline.clone();
            mixed.extend(stated);
            if !self.explains(&self.snapshot.baseline, settings) && self.explains(&mixed, settings) {
                self.snapshot.baseline = mixed;
            }
        }
    }

    /// Whether the present counts can have come about from this baseline.
    fn explains(&self, baseline: &BTreeMap<String, u32>, settings: &Settings) -> bool {
        let decision = self.planner.decide(baseline, &self.snapshot.partitions, &self.knowledge(settings));
        !matches!(decision.code, Some(Code::BaselineMismatch | Code::NoBaseline))
    }

    /// Where every count fits, the present inputs are the baseline.
    pub fn take_baseline(&mut self, settings: &Settings) {
        let Snapshot { baseline, partitions, .. } = &self.snapshot;
        if self.planner.decide(baseline, partitions, &self.knowledge(settings)).decision == Verdict::None {
            self.snapshot.baseline = self.planner.inputs(partitions);
        }
    }

    /// What the planner is told beside the snapshot.
    pub fn knowledge(&self, settings: &Settings) -> Knowledge {
        Knowledge { max_new_partitions: settings.max_new_partitions, not_pinned: self.followers.clone() }
    }

    /// A warning if nothing on the cluster belongs to the application: neither an internal topic nor a member of its group.
    pub fn absence(&mut self) -> Option<Warning> {
        let Snapshot { partitions, application_id, .. } = &self.snapshot;
        let example = self.planner.lacks_internal_topics(partitions)?;
        let group = self.client.describe_group(application_id, TIMEOUT).ok()?;
        if group.is_some_and(|group| !group.members.is_empty()) {
            return None;
        }
        Some(Warning { code: "NO_INTERNAL_TOPICS".to_owned(), message: words::absent(application_id, &example) })
    }
}

/// Number of tasks of each subtopology that the group runs; empty where there is no stable group, or it cannot be read.
pub fn tasks(client: &mut Client, application_id: &str) -> BTreeMap<String, u32> {
    let group = client.describe_group(application_id, TIMEOUT).ok().flatten();
    let tasks = group.filter(|group| group.state == "Stable").and_then(|group| group_bytes::tasks(&group).ok());
    tasks.map(|tasks| tasks.counts).unwrap_or_default()
}

/// The settings of the one application that a command is to meet.
pub fn settings(common: &Common) -> Result<Settings, Failure> {
    let sources = Sources::new(&common.config, &common.set);
    only(load(common, &sources)?)
}

/// The settings of every application.
pub fn load(common: &Common, sources: &Sources) -> Result<Vec<Settings>, Failure> {
    if nothing_configured(common, sources) {
        return Err(Failure::usage("no application is configured; expected its configuration, name it with --config FILE"));
    }
    Ok(config::load(sources)?)
}

/// Whether neither the command line nor the environment names an application.
pub fn nothing_configured(common: &Common, sources: &Sources) -> bool {
    common.config.is_empty()
        && common.set.is_empty()
        && config::load_partial(sources).is_ok_and(|all| all.iter().all(|partial| partial.application_id.is_none()))
}

/// Commands that show one application refuse several.
pub fn only<T>(all: Vec<T>) -> Result<T, Failure> {
    let mut all = all.into_iter();
    match (all.next(), all.next()) {
        (Some(settings), None) => Ok(settings),
        (None, _) => Err(Failure::usage("no application is configured; set application.id and bootstrap.servers")),
        (Some(_), Some(_)) => {
            Err(Failure::usage("several applications are configured; expected the configuration of one, with --config"))
        }
    }
}

/// How the keys of the topics that feed state are spread, for those that are not `known` well enough. Best effort: what cannot be
/// read is [`Keys::Unknown`] with the reason.
pub fn sample_keys(settings: &Settings, application: &Application, known: &BTreeMap<String, Keys>) -> BTreeMap<String, Keys> {
    let partitions = &application.snapshot.partitions;
    let client_id = format!("{}-sample", client_id(&settings.application_id));
    let open = |topic: &String| known.get(topic).is_none_or(|keys| matches!(keys, Keys::Unknown(_)));
    let topics = application.planner.read_by_state(partitions).into_iter().filter(open);
    topics
        .map(|topic| {
            let count = partitions.get(&topic).copied().unwrap_or_default();
            let records = sample::keys(&settings.bootstrap_servers, &settings.kafka, &client_id, &topic, count, TIMEOUT);
            let keys = records.map_or_else(|error| Keys::Unknown(error.message), |records| partitioner::judge(&records, count));
            (topic, keys)
        })
        .collect()
}
