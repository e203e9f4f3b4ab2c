//! Grows the internal topics of Kafka Streams applications when their inputs grow (KIP-878), from beside the application.
//!
//! The rooms, from the top down: [`cli`] and [`http`] are thin shells; [`autoscaler`] holds the state machine and the loop that
//! drives it; [`coordinator`] is what the sidecars of one application agree on; [`plan`] and [`topology`] are pure (no client, no
//! clock, no input or output); [`kafka`] is the only place that talks to a broker; [`topology_source`] fetches texts; [`config`]
//! turns what a user wrote into settings that cannot be wrong. [`control`] is a library of its own, for stream processors (SEP-6).

pub mod autoscaler;
pub mod cli;
pub mod config;
pub mod control;
pub mod coordinator;
pub mod http;
pub mod kafka;
mod pause_point;
pub mod plan;
pub mod topology;
pub mod topology_source;
