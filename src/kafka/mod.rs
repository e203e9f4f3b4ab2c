//! The only room that knows a Kafka client.

pub mod port;
