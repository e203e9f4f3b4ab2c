//! The planner: a pure function from a snapshot to a decision.

pub mod decision;
pub mod snapshot;

pub use decision::{Change, Code, Conflict, Decision, Parallelism, Question, Role, Verdict, Warning};
pub use snapshot::{Knowledge, Protocol, Snapshot};

/// Works out which topics have to grow. Never fails: what cannot be planned is a blocked or waiting decision that says why.
pub fn decide(_snapshot: &Snapshot, _knowledge: &Knowledge) -> Decision {
    Decision::none("nothing to do")
}
