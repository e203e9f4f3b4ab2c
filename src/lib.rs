//! Grows the internal topics of Kafka Streams applications when their inputs grow (KIP-878), from beside the application.
//!
//! The rooms, from the top down: [`cli`] and [`http`] are thin shells; [`autoscaler`] holds the state machine and the loop that
//! drives it; [`coordinator`] is what the sidecars of one application agree on; [`plan`] and [`topology`] are pure (no client, no
//! clock, no input or output); [`kafka`] is the only place that talks to a broker; [`topology_source`] fetches texts; [`config`]
//! turns what a user wrote into settings that cannot be wrong. Two rooms are libraries of their own, pure: [`job`] says which task of
//! a job consumes which partitions (SEP-5), [`control`] is for stream processors that send control messages (SEP-6).

pub mod autoscaler;
pub mod cli;
pub mod config;
pub mod control;
pub mod coordinator;
pub mod http;
pub mod job;
pub mod kafka;
mod pause_point;
pub mod plan;
mod regular;
mod table;
pub mod topology;
pub mod topology_source;
