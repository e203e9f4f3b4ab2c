//! The planner: a pure function from a snapshot to a decision.
//!
//! [`Planner`] reads a topology once and plans often. A topology is compiled (`model`), its counts are worked out by Kafka's rules
//! (`counts`, `orders` for what depends on the order of the visit, `copartition`) and held against what is observed (`settle`).
//! What the sources do not tell is tried every way that fits (`worlds`); `verdict` finds the first code that holds, `reasons` and
//! `questions` the words.

mod copartition;
mod counts;
pub mod decision;
mod model;
mod orders;
pub mod partitioner;
mod planner;
mod questions;
mod reasons;
mod settle;
pub mod snapshot;
mod verdict;
mod worlds;

pub use decision::{Change, Code, Conflict, Decision, Parallelism, Question, Role, Verdict, Warning};
pub use planner::{CountsByName, Planner, Watched};
pub use snapshot::{Knowledge, Protocol, Snapshot};

/// Works out which topics have to grow. Never fails: what cannot be planned is a blocked or waiting decision that says why.
pub fn decide(snapshot: &Snapshot, knowledge: &Knowledge) -> Decision {
    match Planner::new(snapshot) {
        Ok(planner) => planner.decide(&snapshot.baseline, &snapshot.partitions, knowledge),
        Err(message) => verdict::unsupported(message),
    }
}
