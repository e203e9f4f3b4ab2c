//! API, metrics and health over HTTP.

mod config;
mod labels;
mod metrics;
mod process;
mod report;
mod serve;
mod server;
mod shared;

pub use config::Change;
pub use labels::{ExpansionResult, Label, ObservationResult, ReactionPart};
pub use metrics::{AppMetrics, FAMILIES, Family, Metrics};
pub use report::Reporter;
pub use server::{ListenError, Server};
pub use shared::{Latch, Shared};
