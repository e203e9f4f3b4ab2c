//! Tests against real Kafka brokers and a stock Kafka Streams application.

mod kit_selftest;
mod recompute;
