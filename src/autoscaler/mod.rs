//! The state machine of one application (pure), and the loop that drives it.

mod backoff;
pub mod counts;
mod decisions;
pub mod driver;
#[cfg(test)]
mod driver_tests;
mod lead;
pub mod machine;
pub(crate) mod record;
pub mod state;
pub mod status;
pub mod words;
