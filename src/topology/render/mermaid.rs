//! Mermaid flowcharts.

use std::fmt::Write as _;

use super::graph::{self, Kind, Line};
use crate::topology::Overview;

/// The flowchart of an overview. Dashed: inferred, or not known before run time.
pub fn render(overview: &Overview) -> String {
    let graph = graph::of(overview);
    let mut out = String::from("flowchart LR\n");
    for (index, node) in graph.nodes.iter().enumerate() {
        let (open, close) = match node.kind {
            Kind::Subtopology => ("[", "]"),
            Kind::GlobalStore => ("[[", "]]"),
            Kind::Topic | Kind::Pattern => ("([", "])"),
            Kind::Repartition => ("{{", "}}"),
            Kind::Store => ("[(", ")]"),
        };
        let class = if node.dashed { ":::inferred" } else { "" };
        let _ = writeln!(out, "  n{index}{open}\"{}\"{close}{class}", escaped(&node.label));
    }
    for edge in &graph.edges {
        let line = match edge.kind {
            Line::Flow => "-->",
            Line::Keeps => "---",
            Line::Copartition { inferred: true } => "-.-|\"copartition, inferred\"|",
            Line::Copartition { inferred: false } => "-.-|\"copartition\"|",
        };
        let _ = writeln!(out, "  n{} {line} n{}", edge.from, edge.to);
    }
    if graph.nodes.iter().any(|node| node.dashed) {
        out.push_str("  classDef inferred stroke-dasharray: 5 5\n");
    }
    out
}

/// Everything that could mean something to Mermaid becomes its entity code.
fn escaped(label: &str) -> String {
    let mut out = String::with_capacity(label.len());
    for c in label.chars() {
        if c.is_alphanumeric() || matches!(c, ' ' | '.' | '_' | '-' | '/' | ',') {
            out.push(c);
        } else {
            let _ = write!(out, "#{};", u32::from(c));
        }
    }
    out
}
