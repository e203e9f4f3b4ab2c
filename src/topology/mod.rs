//! What an application reads, writes and stores: the model, and the ways to learn it.

pub mod describe;
mod text_hints;
pub mod model;
pub mod overview;
pub mod render;

pub use describe::Description;
pub use model::{Pinned, Stated, Subtopology, Topology};
pub use overview::Overview;
