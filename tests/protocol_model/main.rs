//! Every order of events that two sidecars, the broker and the outside world can get into, within a few seconds of model time:
//! the leader election of `coordinator::protocol`, checked exhaustively. The code under test makes every decision; around it stand a
//! group coordinator, a transaction coordinator, a log and two topics.
//!
//! Deliberate flaws show that the properties have teeth: with each of them the checker must find a counterexample.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "in a test a panic is the message")]

mod sidecar;
mod steps;
mod world;

use stateright::{Checker, HasDiscoveries, Model, Property};
use steps::{BOTH, Broken, Faults, Flaw, STEPS, Step};
use world::World;

/// Where a run begins and ends.
#[derive(Clone, Copy)]
struct Span {
    /// Whether the first leader has taken over already.
    in_office: bool,
    /// Seconds of model time after which nothing goes wrong any more.
    horizon: u8,
}

const WHOLE: Span = Span { in_office: false, horizon: 6 };
/// For several faults together: long enough that one session runs out.
const BRIEF: Span = Span { in_office: true, horizon: 4 };

struct Election {
    faults: Faults,
    flaw: Flaw,
    span: Span,
}

impl Model for Election {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let mut world = World::new(self.faults, self.flaw);
        if self.span.in_office {
            for step in [Step::Work(0), Step::Finish(0)].repeat(3) {
                world.step(step, self.flaw).unwrap();
            }
        }
        vec![world]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        if world.broken.is_some() {
            return;
        }
        steps.extend(BOTH.iter().flat_map(|i| STEPS.iter().map(|step| step(*i))));
        steps.extend([Step::Grow, Step::Recreate, Step::Shrink, Step::LoseLog]);
        if world.now < self.span.horizon {
            steps.push(Step::Tick);
        }
        steps.retain(|step| world.might(*step));
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        next.step(step, self.flaw).filter(|()| next != *world)?;
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no topic grows above what a correct leader wants", |_, world: &World| {
                world.broken != Some(Broken::Overgrown)
            }),
            Property::always("no count falls while the topic is the same", |_, world: &World| {
                world.broken != Some(Broken::Shrunk)
            }),
            Property::always("a request takes effect only under the present leader's intent", |_, world: &World| {
                world.broken != Some(Broken::NotExclusive)
            }),
            Property::always("no two intents in one log have the same number", |_, world: &World| {
                world.broken != Some(Broken::EpochReused)
            }),
            Property::sometimes("growth is followed", |_, world: &World| {
                world.topics.internal > 1 && world.topics.internal == world.topics.input
            }),
            Property::always("once the faults end, everything is repaired", |model: &Self, world: &World| {
                world.now < model.span.horizon || world.broken.is_some() || world.is_repaired_in_the_end(model.flaw)
            }),
        ]
    }
}

fn check(name: &str, faults: Faults) {
    check_within(WHOLE, name, faults);
}

fn check_briefly(name: &str, faults: Faults) {
    check_within(BRIEF, name, faults);
}

fn check_within(span: Span, name: &str, faults: Faults) {
    let checker = Election { faults, flaw: Flaw::None, span }.checker().threads(2).spawn_bfs().join();
    println!("{name}: {} states, depth {}", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

/// With this flaw the property must fall.
fn finds(flaw: Flaw, property: &'static str, faults: Faults) {
    let builder = Election { faults, flaw, span: WHOLE }.checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
    let checker = builder.spawn_bfs().join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("{flaw:?} was not found out"));
    println!("{flaw:?}: {} states, {:?}", checker.unique_state_count(), path.into_actions());
}

const OVERGROWN: &str = "no topic grows above what a correct leader wants";
const NOT_EXCLUSIVE: &str = "a request takes effect only under the present leader's intent";
const EPOCH_REUSED: &str = "no two intents in one log have the same number";
const SHRUNK: &str = "no count falls while the topic is the same";
const NOT_REPAIRED: &str = "once the faults end, everything is repaired";

#[test]
fn pauses_and_growth() {
    check("pause", Faults { pauses: 1, growths: 1, ..Faults::default() });
}

#[test]
fn a_leader_cut_off_from_the_group() {
    check("cut", Faults { cuts: 1, growths: 1, models: 1, ..Faults::default() });
}

#[test]
fn the_end_of_a_leader_with_an_unfinished_plan() {
    check("end", Faults { ends: 1, plans: 1, growths: 1, ..Faults::default() });
}

#[test]
fn a_plan_that_another_model_overtakes() {
    check("model", Faults { plans: 1, models: 2, growths: 1, ..Faults::default() });
}

#[test]
fn commits_of_unknown_outcome() {
    check("timeout", Faults { timeouts: 1, pauses: 1, plans: 1, ..Faults::default() });
}

#[test]
fn recreated_topics() {
    check("recreated", Faults { recreations: 1, plans: 1, pauses: 1, ..Faults::default() });
}

#[test]
fn a_request_for_fewer_partitions() {
    check("shrink", Faults { shrinks: 1, growths: 1, plans: 1, ..Faults::default() });
}

#[test]
fn a_coordinator_topic_that_begins_anew() {
    check("lost", Faults { losses: 1, growths: 1, ..Faults::default() });
}

#[test]
fn a_coordinator_topic_that_begins_anew_while_a_leader_stands_still() {
    check_briefly("lost, pause", Faults { losses: 1, pauses: 1, growths: 1, ..Faults::default() });
}

#[test]
fn an_end_a_pause_growth_and_recreation_together() {
    check_briefly("together", Faults { pauses: 1, ends: 1, growths: 1, recreations: 1, ..Faults::default() });
}

/// A process that stands still between the check and the request cannot be stopped by anybody. Its totals are old, so too low at worst.
#[test]
fn a_late_request_grows_nothing_too_far() {
    let faults = Faults { pauses: 1, growths: 2, ..Faults::default() };
    let checker = Election { faults, flaw: Flaw::SendsLate, span: WHOLE }.checker().threads(2).spawn_bfs().join();
    println!("late: {} states", checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn flaws_are_found_out() {
    let pause = Faults { pauses: 1, growths: 1, ..Faults::default() };
    finds(Flaw::IgnoresMargin, NOT_EXCLUSIVE, pause);
    finds(Flaw::ReadsLogFirst, EPOCH_REUSED, pause);
    finds(Flaw::FencedForGood, NOT_REPAIRED, pause);
    finds(Flaw::IgnoresTopicIds, OVERGROWN, Faults { recreations: 1, plans: 1, ..Faults::default() });
    finds(Flaw::EvictsTheDead, NOT_EXCLUSIVE, Faults { ends: 1, growths: 1, ..Faults::default() });
    finds(Flaw::IgnoresLostLog, NOT_REPAIRED, Faults { losses: 1, growths: 1, ..Faults::default() });
    finds(Flaw::ObeysAnyCount, SHRUNK, Faults { shrinks: 1, growths: 1, ..Faults::default() });
    // The one thing that remains: Kafka has no request that names the topic by its id.
    finds(Flaw::SendsLate, OVERGROWN, Faults { recreations: 1, ..pause });
}
