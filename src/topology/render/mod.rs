//! Forms of an [`Overview`](super::Overview) for people.

pub mod dot;
mod graph;
pub mod mermaid;
pub mod table;
