//! The state machine of one application and the loop that drives it.

pub mod status;
