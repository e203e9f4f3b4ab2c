//! Tests against real Kafka brokers and a stock Kafka Streams application.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod chart;
mod control;
mod coordination;
mod documents;
mod election;
mod failures;
mod follow;
mod kafka_client;
mod kit_selftest;
mod kitchen;
mod leadership;
mod live_plan;
mod operator;
mod pauses;
mod recompute;
mod stage;
