//! API, metrics and health over HTTP.

mod labels;
mod metrics;
mod process;
mod server;
mod shared;

pub use labels::{ExpansionResult, ObservationResult, ReactionPart};
pub use metrics::{AppMetrics, Metrics};
pub use server::{ListenError, Server};
pub use shared::{Latch, Shared};
