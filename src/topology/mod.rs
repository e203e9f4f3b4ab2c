//! What an application reads, writes and stores: the model, and the ways to learn it.

pub mod copartition_hints;
pub mod describe;
pub mod infer;
pub mod model;
pub mod names;
pub mod overview;
pub mod pattern;
pub mod render;
pub mod text_hints;

pub use describe::Description;
pub use model::{Pinned, Stated, Subtopology, Topology};
pub use overview::Overview;
