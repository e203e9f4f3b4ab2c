//! The state machine of one application and the loop that drives it.
