//! The only room that knows a Kafka client.
//!
//! [`port`] is what the rest of the program may ask; [`Client`] answers it over librdkafka.

mod client;
pub mod coordination;
mod errors;
pub mod group_bytes;
#[cfg(test)]
pub mod memory;
mod native;
pub mod port;
pub mod sample;

pub use client::Client;
