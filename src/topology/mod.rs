//! What an application reads, writes and stores: the model, and the ways to learn it.

pub mod copartition_hints;
pub mod describe;
pub mod infer;
pub mod model;
pub mod names;
pub mod pattern;

pub use describe::Description;
pub use model::{Pinned, Stated, Subtopology, Topology};
