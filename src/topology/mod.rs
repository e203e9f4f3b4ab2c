//! What an application reads, writes and stores: the model, and the ways to learn it.

pub mod describe;
pub mod model;

pub use describe::Description;
pub use model::{Pinned, Stated, Subtopology, Topology};
