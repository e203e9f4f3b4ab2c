//! From what was worked out to the decision: the first code that holds, and the words.

use std::collections::{BTreeMap, BTreeSet};

use super::copartition::Refusal;
use super::counts::{BASE, NOW};
use super::decision::{Change, Code, Conflict, Decision, Parallelism, Role, Verdict, Warning};
use super::model::Pins;
use super::planner::Case;
use super::questions::{self, listed};
use super::reasons::Reasons;
use super::snapshot::Knowledge;
use super::worlds::Plan;

/// More new partitions than the controller takes in one request (`QuorumController.MAX_RECORDS_PER_USER_OP`).
const HARD_LIMIT: u32 = 10_000;

/// A blocked decision because Kafka, or this program, could not run the topology.
pub(crate) fn unsupported(message: impl Into<String>) -> Decision {
    blocked(Code::Unsupported, message)
}

fn blocked(code: Code, message: impl Into<String>) -> Decision {
    Decision { decision: Verdict::Blocked, code: Some(code), ..Decision::none(message) }
}

/// Decides. `cases` are the topologies that the sources allow, the likeliest first.
pub(crate) fn decide(mut cases: Vec<Case>, knowledge: &Knowledge) -> Decision {
    if cases.iter().any(|case| case.answer.possible) {
        cases.retain(|case| case.answer.possible);
    }
    cases.sort_by_key(|case| !case.is_explained()); // stable
    let Some(first) = cases.first() else {
        return Decision::none("the topology has no subtopology with tasks, so nothing can grow");
    };
    let plans: Vec<Plan> = cases.iter().map(|case| Plan::of(&case.model, &case.facts, &case.answer.trial)).collect();
    let same = plans.iter().all(|plan| Some(plan) == plans.first());
    let certain = same && cases.iter().all(|case| case.is_explained() && case.answer.in_question.is_empty());
    let by_order = cases.iter().all(|case| case.depends_on_order() && case.answer.in_question.is_empty());
    let mut decision = first.missing().unwrap_or_else(|| match () {
        () if same && plans.first().is_some_and(Plan::is_refused) => first.refused(),
        () if !cases.iter().any(Case::is_explained) && !plans.iter().any(Plan::is_refused) => first.unexplained(),
        () if by_order => order_dependent(&cases),
        () if !certain => ambiguous(&cases, &plans, same),
        () => first.plan(knowledge),
    });
    decision.warnings.extend(first.warnings());
    if decision.subtopologies.is_empty() {
        decision.subtopologies = first.subtopologies(false);
    }
    decision
}

/// The ways that fit lead to different plans.
fn ambiguous(cases: &[Case], plans: &[Plan], same: bool) -> Decision {
    let mut pins: BTreeMap<&str, (&str, BTreeSet<u32>)> = BTreeMap::new();
    for case in cases {
        for &topic in &case.answer.in_question {
            let Some(of_topic) = case.model.topics.get(topic) else { continue };
            let counts = &mut pins.entry(&of_topic.raw).or_insert((&of_topic.name, BTreeSet::new())).1;
            counts.extend(case.facts.observed.get(topic));
            counts.extend(case.answer.trial.counts_of(topic));
        }
    }
    let raw: Vec<String> = pins.keys().map(|&raw| raw.to_owned()).collect();
    let mut possible_counts: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for (name, counts) in
        plans.iter().flat_map(Plan::targets).chain(pins.values().map(|(name, counts)| (*name, counts.iter().copied().collect())))
    {
        possible_counts.entry(name.to_owned()).or_default().extend(counts);
    }
    let mut questions = Vec::new();
    if !raw.is_empty() {
        let stated = cases.iter().all(Case::states_pins);
        questions.push(if stated { questions::pinned_counts(&raw) } else { questions::pinned(&raw) });
    }
    if !same {
        let all: Vec<Vec<Vec<String>>> = cases.iter().map(Case::groups).collect();
        let differing: BTreeSet<Vec<String>> =
            all.iter().flatten().filter(|group| !all.iter().all(|groups| groups.contains(group))).cloned().collect();
        questions.push(questions::copartition_groups(&differing.into_iter().collect::<Vec<_>>()));
    }
    let message = match questions.first() {
        Some(question) => format!("what is known allows more than one plan: {}", question.message),
        None => "what is known allows more than one plan".to_owned(),
    };
    let possible_counts = possible_counts.into_iter().filter(|(_, counts)| counts.len() > 1);
    Decision {
        possible_counts: possible_counts.map(|(name, counts)| (name, counts.into_iter().collect())).collect(),
        questions,
        ..blocked(Code::Ambiguous, message)
    }
}

/// Whatever else is not known, the order of the visit decides.
fn order_dependent(cases: &[Case]) -> Decision {
    let mut possible_counts: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    let mut inputs = BTreeSet::new();
    for case in cases {
        for topic in case.internal_topics() {
            possible_counts.entry(topic.name.to_owned()).or_default().extend(topic.targets);
        }
        let varying: Vec<usize> = case.answer.trial.settled.possible.keys().copied().collect();
        inputs.extend(case.inputs_feeding(&varying));
    }
    let possible_counts: BTreeMap<String, Vec<u32>> = possible_counts
        .into_iter()
        .filter(|(_, counts)| counts.len() > 1)
        .map(|(name, counts)| (name, counts.into_iter().collect()))
        .collect();
    let words = listed(
        possible_counts
            .iter()
            .map(|(name, counts)| format!("{name} {}", counts.iter().map(u32::to_string).collect::<Vec<_>>().join(" or "))),
    );
    let message = format!(
        "counts depend on the order in which Kafka Streams visits the subtopologies, which cannot be seen: {words}; \
         grow the inputs so that every order gives the same"
    );
    let questions = vec![questions::order(&inputs.into_iter().collect::<Vec<_>>())];
    Decision { possible_counts, questions, ..blocked(Code::OrderDependent, message) }
}

impl Case {
    fn is_explained(&self) -> bool {
        self.answer.trial.settled.unexplained.is_empty()
    }

    /// It is stated which repartition topics have an explicit count, so nobody is asked.
    fn states_pins(&self) -> bool {
        matches!(self.model.pins, Pins::Stated(_))
    }

    fn name(&self, topic: usize) -> &str {
        self.model.topics.get(topic).map_or("", |topic| topic.name.as_str())
    }

    fn raw(&self, topic: usize) -> &str {
        self.model.topics.get(topic).map_or("", |topic| topic.raw.as_str())
    }

    fn input(&self, topic: usize, at: usize) -> u32 {
        self.facts.inputs.get(topic).and_then(|counts| counts.get(at)).copied().unwrap_or(0)
    }

    fn groups(&self) -> Vec<Vec<String>> {
        self.model.groups.iter().map(|group| group.iter().map(|&topic| self.raw(topic).to_owned()).collect()).collect()
    }

    fn missing(&self) -> Option<Decision> {
        let topics = self.model.topics.iter().enumerate();
        let missing: Vec<usize> = topics
            .filter(|(id, topic)| !topic.repartition && !topic.optional && self.input(*id, NOW) == 0)
            .map(|(id, _)| id)
            .collect();
        if missing.is_empty() {
            return None;
        }
        let names = listed(missing.iter().map(|&topic| self.name(topic).to_owned()));
        let message =
            format!("source topic {names} does not exist, so the application cannot run; create it, or correct the topology");
        let known = missing.iter().filter(|&&topic| self.input(topic, BASE) > 0);
        let conflicts =
            known.map(|&topic| (self.name(topic).to_owned(), Conflict { found: 0, expected: self.input(topic, BASE) }));
        Some(Decision { conflicts: conflicts.collect(), ..blocked(Code::MissingSourceTopics, message) })
    }

    /// Kafka would refuse.
    fn refused(&self) -> Decision {
        let trial = &self.answer.trial;
        if !trial.unresolvable.is_empty() {
            let names = listed(trial.unresolvable.iter().map(|&topic| self.name(topic).to_owned()));
            return unsupported(format!(
                "no partition count can be worked out for repartition topic {names}: no subtopology that reads an input writes it, \
                 neither directly nor through other repartition topics; correct the topology"
            ));
        }
        let pin_of = |topic: usize| trial.pins.get(topic).copied().unwrap_or(0);
        let count = |topic: usize| self.input(topic, NOW).max(pin_of(topic));
        let pinned: Vec<(usize, usize)> = trial
            .refusals
            .iter()
            .filter_map(|refusal| match refusal {
                Refusal::Pinned { topic, other } => Some((*topic, *other)),
                Refusal::Inputs { .. } => None,
            })
            .collect();
        if let Some(&(topic, other)) = pinned.first() {
            let message = format!(
                "{} is pinned to {} partitions, but {} must have the same count and has {}; change the count in the application's code",
                self.name(topic),
                count(topic),
                self.name(other),
                count(other)
            );
            let conflicts = pinned
                .iter()
                .map(|&(topic, other)| (self.name(topic).to_owned(), Conflict { found: count(topic), expected: count(other) }));
            return Decision { conflicts: conflicts.collect(), ..blocked(Code::PinnedConflict, message) };
        }
        let mut conflicts = BTreeMap::new();
        let mut words = Vec::new();
        let mut waiting = true;
        for refusal in &trial.refusals {
            let Refusal::Inputs { topics, were_equal } = refusal else { continue };
            waiting &= were_equal;
            let widest = topics.iter().map(|&topic| count(topic)).max().unwrap_or(0);
            let narrow = topics.iter().filter(|&&topic| count(topic) < widest);
            conflicts
                .extend(narrow.map(|&topic| (self.name(topic).to_owned(), Conflict { found: count(topic), expected: widest })));
            let sentence =
                topics.iter().map(|&topic| format!("{} has {}", self.name(topic), count(topic))).collect::<Vec<_>>().join(", ");
            if !words.contains(&sentence) {
                words.push(sentence);
            }
        }
        let words = words.join("; ");
        let (decision, code, message) = match waiting {
            true => (
                Verdict::Waiting,
                Code::WaitingForCopartition,
                format!("waiting for copartitioned inputs to agree as before: {words}"),
            ),
            false => (
                Verdict::Blocked,
                Code::CopartitionMismatch,
                format!(
                    "copartitioned inputs differ: {words}; grow the narrower ones, for internal topics cannot make up for it"
                ),
            ),
        };
        Decision { decision, conflicts, ..blocked(code, message) }
    }

    fn unexplained(&self) -> Decision {
        let strange = &self.answer.trial.settled.unexplained;
        let mismatch = strange.values().any(|topic| !topic.no_baseline);
        let topics: Vec<usize> =
            strange.iter().filter(|(_, topic)| topic.no_baseline != mismatch).map(|(&topic, _)| topic).collect();
        let conflicts: BTreeMap<String, Conflict> =
            strange.iter().map(|(&topic, of)| (self.name(topic).to_owned(), of.conflict)).collect();
        let raw: Vec<String> = strange.keys().map(|&topic| self.raw(topic).to_owned()).collect();
        let words = |topic: &usize| {
            strange.get(topic).map_or_else(String::new, |of| {
                format!("{} has {} partitions instead of {}", self.name(*topic), of.conflict.found, of.conflict.expected)
            })
        };
        let words = listed(topics.iter().map(words));
        if mismatch {
            let (remedy, questions) = match self.states_pins() {
                true => ("correct topology.pinned, the topology or the baseline", Vec::new()),
                false => (
                    "name repartition topics with a fixed count in topology.pinned, or correct the topology or the baseline",
                    vec![questions::pinned(&raw)],
                ),
            };
            let message = format!("the model does not explain the counts before the change: {words}; {remedy}");
            return Decision { conflicts, questions, ..blocked(Code::BaselineMismatch, message) };
        }
        let inputs = self.inputs_above(&topics);
        let example = topics.first().and_then(|topic| strange.get(topic)).map_or(1, |of| of.conflict.found);
        let baseline = questions::baseline(&inputs, example);
        let lines = questions::baseline_lines(&inputs, example);
        let (message, questions) = match self.states_pins() {
            true => (
                format!(
                    "{words}, although it is stated not to be pinned, and it is not known whether it was left behind: state the \
                     counts before the growth ({lines}), or correct topology.pinned"
                ),
                vec![baseline],
            ),
            false => (
                format!(
                    "{words}, and it is not known whether it was left behind or is pinned: state the counts before the growth \
                     ({lines}), or name the topic in topology.pinned"
                ),
                vec![baseline, questions::pinned(&raw)],
            ),
        };
        Decision { conflicts, questions, ..blocked(Code::NoBaseline, message) }
    }

    /// Inputs without a baseline that repartition topics take their counts from.
    fn inputs_above(&self, topics: &[usize]) -> Vec<String> {
        let (mut seen, mut open) = (BTreeSet::new(), topics.to_vec());
        let mut inputs = BTreeSet::new();
        while let Some(topic) = open.pop() {
            let Some(of_topic) = self.model.topics.get(topic).filter(|_| seen.insert(topic)) else { continue };
            if !of_topic.repartition && self.input(topic, BASE) == 0 {
                inputs.insert(of_topic.name.clone());
            }
            let writers = of_topic.writers.iter().filter_map(|&writer| self.model.subtopologies.get(writer));
            open.extend(writers.flat_map(|writer| &writer.sources));
            open.extend(self.model.groups.iter().filter(|group| group.contains(&topic)).flatten());
        }
        inputs.into_iter().collect()
    }

    /// Topics and changelogs that exist, with every count that they could have to have, and their present one.
    fn internal_topics(&self) -> Vec<Internal<'_>> {
        let trial = &self.answer.trial;
        let mut all = Vec::new();
        for (id, (topic, &found)) in self.model.topics.iter().zip(&self.facts.observed).enumerate() {
            let pinned = trial.pins.get(id).is_some_and(|&pin| pin > 0);
            if topic.repartition && found > 0 && !pinned {
                all.push(Internal { name: &topic.name, role: Role::Repartition, found, targets: trial.counts_of(id), of: id });
            }
        }
        for (log, &found) in self.model.changelogs.iter().zip(&self.facts.changelogs) {
            if found > 0 {
                let targets = trial.tasks_of(log.subtopology);
                all.push(Internal { name: &log.name, role: Role::Changelog, found, targets, of: log.subtopology });
            }
        }
        all.sort_by_key(|topic| topic.name);
        all.dedup_by_key(|topic| topic.name);
        all
    }

    fn depends_on_order(&self) -> bool {
        let runs = self.is_explained() && self.answer.trial.refused().is_none();
        runs && (!self.answer.trial.settled.complete || self.internal_topics().iter().any(|topic| topic.targets.len() > 1))
    }

    /// Inputs that these topics take their counts from.
    fn inputs_feeding(&self, topics: &[usize]) -> Vec<String> {
        let (mut seen, mut open) = (BTreeSet::new(), topics.to_vec());
        let mut inputs = BTreeSet::new();
        while let Some(topic) = open.pop() {
            let Some(of_topic) = self.model.topics.get(topic).filter(|_| seen.insert(topic)) else { continue };
            if !of_topic.repartition {
                inputs.insert(of_topic.name.clone());
            }
            open.extend(
                of_topic
                    .writers
                    .iter()
                    .filter_map(|&writer| self.model.subtopologies.get(writer))
                    .flat_map(|writer| &writer.sources),
            );
        }
        inputs.into_iter().collect()
    }

    fn plan(&self, knowledge: &Knowledge) -> Decision {
        let reasons = Reasons::of(&self.model, &self.facts, &self.answer.trial);
        let mut changes = Vec::new();
        let mut conflicts = BTreeMap::new();
        for topic in self.internal_topics() {
            let Some(&to) = topic.targets.first() else { continue };
            if to < topic.found {
                conflicts.insert(topic.name.to_owned(), Conflict { found: topic.found, expected: to });
            } else if to > topic.found {
                let because =
                    if topic.role == Role::Repartition { reasons.repartition(topic.of) } else { reasons.changelog(topic.of) };
                changes.push(Change { topic: topic.name.to_owned(), role: topic.role, from: topic.found, to, because });
            }
        }
        let subtopologies = self.subtopologies(true);
        if !conflicts.is_empty() {
            let words = listed(
                conflicts.iter().map(|(name, of)| format!("{name} has {} partitions, {} are needed", of.found, of.expected)),
            );
            let message = format!(
                "a topic cannot shrink: {words}; grow the input to match, or stop the application and delete the topic with \
                 kafka-streams-application-reset.sh"
            );
            return Decision { conflicts, subtopologies, ..blocked(Code::WouldShrink, message) };
        }
        let new: u64 = changes.iter().map(|change| u64::from(change.to - change.from)).sum();
        let limit = knowledge.max_new_partitions.min(HARD_LIMIT);
        if new > u64::from(limit) {
            let message = format!(
                "the plan adds {new} partitions to {} topics, more than max.new.partitions allows ({limit}, at most {HARD_LIMIT}); \
                 a plan is never split, so grow the input in smaller steps or raise the setting",
                changes.len()
            );
            return Decision { subtopologies, ..blocked(Code::LimitExceeded, message) };
        }
        if changes.is_empty() {
            return Decision { subtopologies, ..Decision::none("every internal topic that exists has the expected count") };
        }
        let message = format!("{} topics have to grow by {new} partitions in all", changes.len());
        Decision { decision: Verdict::Expand, changes, subtopologies, ..Decision::none(message) }
    }

    fn subtopologies(&self, planned: bool) -> Vec<Parallelism> {
        let trial = &self.answer.trial;
        let before = |topic: &usize| match self.model.topics.get(*topic) {
            Some(of_topic) if of_topic.repartition => {
                trial.settled.counts.get(*topic).and_then(|counts| counts.get(BASE)).copied().unwrap_or(0)
            }
            _ => self.input(*topic, BASE),
        };
        let of = |(index, subtopology): (usize, &super::model::Subtopology)| {
            let tasks = trial.tasks_of(index);
            Parallelism {
                id: subtopology.id.clone(),
                current: subtopology.sources.iter().map(before).max().filter(|&count| count > 0),
                expected: tasks.first().copied().filter(|_| planned && tasks.len() == 1),
            }
        };
        self.model.subtopologies.iter().enumerate().map(of).collect()
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if let Some(topic) = self.answer.assumed {
            let (name, found) = (self.name(topic), self.facts.observed.get(topic).copied().unwrap_or(0));
            let message = format!(
                "{name} is taken as pinned to {found} partitions, for nothing else explains its count; confirm it with topology.pinned={}",
                self.raw(topic)
            );
            warnings.push(Warning { code: "ASSUMED_PINNED".to_owned(), message });
        }
        for name in &self.model.unknown_names {
            let repartition = format!("{name}-repartition"); // what the code calls by the first part only
            let correction = match self.model.topics.iter().any(|topic| topic.raw == repartition) {
                true => format!("write {repartition}"),
                false => "correct the name or leave it out".to_owned(),
            };
            let message = format!("{name} stands in copartition_groups or pinned, but no subtopology reads it; {correction}");
            warnings.push(Warning { code: "UNKNOWN_NAME".to_owned(), message });
        }
        warnings
    }
}

/// An internal topic that exists.
struct Internal<'a> {
    name: &'a str,
    role: Role,
    found: u32,
    targets: Vec<u32>,
    /// The topic, or the subtopology of the changelog.
    of: usize,
}
