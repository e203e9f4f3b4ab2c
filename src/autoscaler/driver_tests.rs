//! The loop over a cluster in memory: what it sends, and when it sends nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kit::wait::{PATIENCE, until};

use crate::autoscaler::driver::{Control, Driver, Ended, Report, Setup};
use crate::autoscaler::machine::{Machine, Rules};
use crate::autoscaler::state::Event;
use crate::autoscaler::status::{HistoryEntry, StateName};
use crate::config::settings::{OnError, StaticCheck};
use crate::coordinator::office::{Alone, Office, Standing};
use crate::coordinator::records::Verdict;
use crate::coordinator::{Failure, Fingerprint, Key, Kind, Memory, Refusal, view};
use crate::kafka::group_bytes::Tasks;
use crate::kafka::memory::Memory as Kafka;
use crate::kafka::port::{ErrorClass, Group, KafkaError, Observation, Reply, TopicError, TopicState};
use crate::plan::partitioner::Keys;
use crate::plan::{Planner, Question};

/// Names of the states entered, and the troubles.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn wait(&self, text: &str) {
        until(PATIENCE, text, || self.0.lock().unwrap().iter().any(|heard| heard.contains(text)).then_some(()));
    }
}

impl Report for Heard {
    fn cluster(&mut self, _: String) {}
    fn unreachable(&mut self, _: &KafkaError) {}
    fn topology(&mut self, _: &Planner) {}
    fn topology_failed(&mut self, _: &str) {}
    fn questions(&mut self, _: Vec<Question>) {}
    fn observed(&mut self, _: Duration, _: Duration, _: &Result<Observation, KafkaError>) {}
    fn requesting(&mut self, _: Duration, _: &BTreeMap<String, u32>) {}
    fn replied(&mut self, _: Duration, _: Duration, _: &Result<Reply, KafkaError>) {}
    fn group(&mut self, _: Result<Option<&Group>, &KafkaError>, _: Option<&Tasks>) {}
    fn list_failed(&mut self, _: &KafkaError) {}

    fn step(&mut self, _: Duration, events: Vec<Event>, _: &Machine) {
        for event in events {
            if let Event::Entered(state) = event {
                self.note(format!("{:?}", state.name()));
            }
        }
    }

    fn leading(&mut self) {
        self.note("leading");
    }

    fn following(&mut self, _: &Memory, _: bool) {
        self.note("following");
    }

    fn contact(&mut self, _: Result<(), KafkaError>) {}
    fn coordination(&mut self, _: &Memory, _: &BTreeMap<Failure, u64>) {}

    fn trouble(&mut self, message: &str) {
        self.note(message);
    }

    fn ailing(&mut self, _: Vec<String>) {}

    fn take_history(&mut self) -> Vec<HistoryEntry> {
        Vec::new()
    }

    fn ended(&mut self, _: &Ended) {}
}

/// What a test decides about the office while the loop runs.
#[derive(Clone, Default)]
struct Allowed {
    leads: Arc<AtomicBool>,
    writes: Arc<AtomicBool>,
}

/// Leads once it may, and may then send or not.
struct Desk {
    alone: Alone,
    allowed: Allowed,
    may_send: bool,
    memory: Memory,
    /// The same, for the test.
    shown: Arc<Mutex<Memory>>,
}

impl Office for Desk {
    fn turn(&mut self, now: Duration, model: Fingerprint) -> Standing {
        if self.allowed.leads.load(Ordering::SeqCst) {
            return self.alone.turn(now, model);
        }
        self.alone = Alone::default();
        Standing::Follows
    }

    fn watch(&mut self, _: Duration) -> bool {
        false
    }

    fn may_send(&self, now: Duration, model: Fingerprint) -> Result<Duration, Refusal> {
        if self.may_send { self.alone.may_send(now, model) } else { Err(Refusal::MarginSpent) }
    }

    fn memory(&self) -> &Memory {
        &self.memory
    }

    fn remember(&mut self, _: Duration, change: &mut dyn FnMut(&mut Memory, u64)) -> bool {
        let writes = self.allowed.writes.load(Ordering::SeqCst);
        if writes {
            change(&mut self.memory, 0);
            *self.shown.lock().unwrap() = self.memory.clone();
        }
        writes
    }

    fn failures(&self) -> &BTreeMap<Failure, u64> {
        self.alone.failures()
    }
}

fn cluster() -> Kafka {
    Kafka::with([("orders", 3), ("shop-k-repartition", 3), ("shop-st-changelog", 3)])
}

fn denied() -> KafkaError {
    KafkaError::new(ErrorClass::Authentication, "denied")
}

/// A running loop.
struct Running {
    kafka: Kafka,
    heard: Heard,
    allowed: Allowed,
    memory: Arc<Mutex<Memory>>,
    control: Sender<Control>,
    thread: JoinHandle<Ended>,
}

impl Running {
    fn start(leads: bool, may_send: bool, static_check: StaticCheck) -> Self {
        Self::start_on(cluster(), leads, may_send, static_check)
    }

    fn start_on(kafka: Kafka, leads: bool, may_send: bool, static_check: StaticCheck) -> Self {
        let snapshot = serde_json::json!({
            "application_id": "shop",
            "topology": {
                "subtopologies": [
                    {"id": 0, "sources": ["orders"], "sinks": ["k-repartition"]},
                    {"id": 1, "sources": ["k-repartition"], "stores": ["st"]}],
                "repartition_topics": ["k-repartition"], "pinned": []},
            "partitions": {}
        });
        let planner = Planner::new(&serde_json::from_value(snapshot).unwrap()).unwrap();
        let allowed = Allowed::default();
        allowed.leads.store(leads, Ordering::SeqCst);
        allowed.writes.store(true, Ordering::SeqCst);
        let memory = Arc::<Mutex<Memory>>::default();
        let make = {
            let (allowed, memory) = (allowed.clone(), Arc::clone(&memory));
            move |_: Instant| {
                let (alone, allowed, shown) = (Alone::default(), allowed.clone(), Arc::clone(&memory));
                Ok(Box::new(Desk { alone, allowed, may_send, memory: Memory::default(), shown }) as Box<dyn Office>)
            }
        };
        let setup = Setup {
            application_id: "shop".to_owned(),
            expected_cluster_id: None,
            on_error: OnError::Log,
            rules: Rules {
                enabled: true,
                timeout: Duration::from_secs(900),
                poll_interval: Duration::from_millis(1),
                max_new_partitions: 5000,
                static_check,
            },
            baseline: BTreeMap::new(),
            planner: Some(planner),
            office: Box::new(make),
        };
        let (control, told) = mpsc::channel();
        let heard = Heard::default();
        let driver = Driver::new(kafka.clone(), setup, told, heard.clone());
        Self { kafka, heard, allowed, memory, control, thread: thread::spawn(move || driver.run()) }
    }

    fn wait_memory(&self, what: &str, holds: impl Fn(&Memory) -> bool) {
        until(PATIENCE, what, || holds(&self.memory.lock().unwrap()).then_some(()));
    }

    fn stop(self) -> Ended {
        self.control.send(Control::Stop).unwrap();
        self.thread.join().unwrap()
    }
}

#[test]
fn one_growth_is_one_request_with_everything() {
    let running = Running::start(true, true, StaticCheck::Warn);
    running.heard.wait("Steady");
    running.kafka.grow("orders", 6);
    running.heard.wait("Settling");
    let wanted = BTreeMap::from([("shop-k-repartition".to_owned(), 6), ("shop-st-changelog".to_owned(), 6)]);
    assert_eq!(running.kafka.requests(), [wanted]);
    assert_eq!(running.stop(), Ended::Stopped);
}

#[test]
fn without_margin_nothing_is_sent_and_that_is_told() {
    let running = Running::start(true, false, StaticCheck::Warn);
    running.heard.wait("Steady");
    running.kafka.grow("orders", 6);
    running.heard.wait("the request is not sent");
    assert_eq!(running.kafka.requests(), []);
    assert_eq!(running.stop(), Ended::Stopped);
}

#[test]
fn what_is_told_while_following_counts_once_it_leads() {
    let running = Running::start(false, true, StaticCheck::Enforce);
    let keys = BTreeMap::from([("orders".to_owned(), Keys::Placed), ("shop-k-repartition".to_owned(), Keys::MoveWhenGrown)]);
    running.control.send(Control::Keys(keys)).unwrap();
    running.allowed.leads.store(true, Ordering::SeqCst);
    running.heard.wait("Steady");
    running.kafka.grow("orders", 6);
    running.heard.wait("Blocked");
    assert_eq!(running.kafka.requests(), []);
    assert_eq!(running.stop(), Ended::Stopped);
}

#[test]
fn what_could_not_be_written_outlives_the_leadership() {
    let running = Running::start(true, true, StaticCheck::Warn);
    running.wait_memory("the first state", |memory| view::state(memory).is_some());
    running.allowed.writes.store(false, Ordering::SeqCst);
    running.kafka.grow("orders", 6);
    running.heard.wait("Settling");
    running.allowed.leads.store(false, Ordering::SeqCst);
    running.heard.wait("following");
    assert_eq!(running.memory.lock().unwrap().outcome(Kind::Reaction), None);
    running.allowed.writes.store(true, Ordering::SeqCst);
    running.allowed.leads.store(true, Ordering::SeqCst);
    let expanded = |memory: &Memory| memory.outcome(Kind::Reaction).is_some_and(|outcome| outcome.result == Verdict::Expanded);
    running.wait_memory("the outcome", expanded);
    assert_eq!(running.stop(), Ended::Stopped);
}

#[test]
fn a_leader_that_has_seen_no_count_says_nothing_of_the_application() {
    let kafka = cluster();
    let error = TopicError { code: 29, name: "TOPIC_AUTHORIZATION_FAILED".to_owned(), message: String::new() };
    kafka.set("shop-k-repartition", TopicState::Failed(error));
    let running = Running::start_on(kafka, true, true, StaticCheck::Warn);
    running.wait_memory("the flag", |memory| view::enabled(memory).is_some());
    assert_eq!(running.memory.lock().unwrap().get(&Key::AssignorError), None);
    running.kafka.set("shop-k-repartition", TopicState::Present { id: None, partitions: 3 });
    running.wait_memory("the state", |memory| view::state(memory).is_some_and(|state| state.name == StateName::Steady));
    assert_eq!(running.stop(), Ended::Stopped);
}

/// Once it knows its topics, a denied login is an outage like any other: all sidecars would end of it, one after the other.
#[test]
fn a_login_that_is_refused_later_ends_nobody() {
    let running = Running::start(false, true, StaticCheck::Warn);
    running.heard.wait("following");
    running.kafka.script_observation(Err(denied()));
    running.kafka.script_observation(Err(denied()));
    running.allowed.leads.store(true, Ordering::SeqCst);
    running.heard.wait("Steady");
    assert_eq!(running.stop(), Ended::Stopped);
}

#[test]
fn a_login_that_is_refused_at_the_start_ends_it() {
    let kafka = cluster();
    kafka.script_observation(Err(denied()));
    let running = Running::start_on(kafka, false, true, StaticCheck::Warn);
    assert_eq!(running.thread.join().unwrap(), Ended::Refused(denied()));
}
