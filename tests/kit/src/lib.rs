//! The test kit: real Kafka brokers, a stock Kafka Streams application and the program under test, each in its own process
//! on loopback. Nothing here outlives the test process.
//!
//! Broken expectations panic with a sentence: this is test code, and a panic is how a test fails.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

pub mod acl;
pub mod admin;
pub mod app;
mod class_data;
pub mod cluster;
pub mod jars;
pub mod output;
mod ports;
pub mod process;
mod proxy;
pub mod requests;
pub mod sidecar;
pub mod wait;
mod wire;

pub use acl::{Acl, Operation, Resource};
pub use admin::{Admin, Read, Record};
pub use app::{App, Event};
pub use cluster::Cluster;
/// Waits for an answer of an `rdkafka` admin client.
pub use futures_executor::block_on;
pub use ports::free as free_ports;
pub use sidecar::Sidecar;

/// `client.id` of all of the kit's own clients.
pub const CLIENT_ID: &str = "kit";
