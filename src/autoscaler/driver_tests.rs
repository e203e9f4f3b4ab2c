//! The loop over a cluster in memory: what it sends, and when it sends nothing.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kit::wait::{PATIENCE, until};

use crate::autoscaler::driver::{Control, Driver, Ended, Report, Setup};
use crate::autoscaler::machine::{Machine, Rules};
use crate::autoscaler::state::Event;
use crate::config::settings::{OnError, StaticCheck};
use crate::coordinator::office::{Alone, Office, Standing};
use crate::coordinator::{Failure, Fingerprint, Memory, Refusal};
use crate::kafka::group_bytes::Tasks;
use crate::kafka::memory::Memory as Kafka;
use crate::kafka::port::{Group, KafkaError, Observation, Reply};
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

    fn leading(&mut self) {}
    fn following(&mut self, _: &Memory, _: bool) {}
    fn coordination(&mut self, _: &Memory, _: &BTreeMap<Failure, u64>) {}

    fn trouble(&mut self, message: &str) {
        self.note(message);
    }

    fn ailing(&mut self, _: Vec<String>) {}

    fn take_history(&mut self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn ended(&mut self, _: &Ended) {}
}

/// Leads once it may, and may then send or not.
struct Desk {
    alone: Alone,
    leads: Arc<Mutex<bool>>,
    may_send: bool,
}

impl Office for Desk {
    fn turn(&mut self, now: Duration, model: Fingerprint) -> Standing {
        if *self.leads.lock().unwrap() { self.alone.turn(now, model) } else { Standing::Follows }
    }

    fn watch(&mut self, _: Duration) -> bool {
        false
    }

    fn may_send(&self, now: Duration, model: Fingerprint) -> Result<Duration, Refusal> {
        if self.may_send { self.alone.may_send(now, model) } else { Err(Refusal::MarginSpent) }
    }

    fn memory(&self) -> &Memory {
        self.alone.memory()
    }

    fn remember(&mut self, _: Duration, _: &mut dyn FnMut(&mut Memory, u64)) -> bool {
        true
    }

    fn failures(&self) -> &BTreeMap<Failure, u64> {
        self.alone.failures()
    }
}

/// A running loop.
struct Running {
    kafka: Kafka,
    heard: Heard,
    leads: Arc<Mutex<bool>>,
    control: Sender<Control>,
    thread: JoinHandle<Ended>,
}

impl Running {
    fn start(leads: bool, may_send: bool, static_check: StaticCheck) -> Self {
        let kafka = Kafka::with([("orders", 3), ("shop-k-repartition", 3), ("shop-st-changelog", 3)]);
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
        let leads = Arc::new(Mutex::new(leads));
        let office = Arc::clone(&leads);
        let make = move |_: Instant| {
            let office = Desk { alone: Alone::default(), leads: Arc::clone(&office), may_send };
            Ok(Box::new(office) as Box<dyn Office>)
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
        Self { kafka, heard, leads, control, thread: thread::spawn(move || driver.run()) }
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
    *running.leads.lock().unwrap() = true;
    running.heard.wait("Steady");
    running.kafka.grow("orders", 6);
    running.heard.wait("Blocked");
    assert_eq!(running.kafka.requests(), []);
    assert_eq!(running.stop(), Ended::Stopped);
}
