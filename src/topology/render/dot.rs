//! Graphviz DOT.

use std::fmt::Write as _;

use super::graph::{self, Kind, Line};
use crate::topology::Overview;

/// The graph of an overview. Dashed: inferred, or not known before run time.
pub fn render(overview: &Overview) -> String {
    let graph = graph::of(overview);
    let mut out = String::from("digraph topology {\n  rankdir=LR;\n");
    for (index, node) in graph.nodes.iter().enumerate() {
        let shape = match node.kind {
            Kind::Subtopology => "box",
            Kind::GlobalStore => "box3d",
            Kind::Topic | Kind::Pattern => "ellipse",
            Kind::Repartition => "hexagon",
            Kind::Store => "cylinder",
        };
        let style = if node.dashed { ", style=dashed" } else { "" };
        let _ = writeln!(out, "  n{index} [label=\"{}\", shape={shape}{style}];", escaped(&node.label));
    }
    for edge in &graph.edges {
        let attributes = match edge.kind {
            Line::Flow => "",
            Line::Keeps => " [dir=none]",
            Line::Copartition { inferred: true } => {
                " [dir=none, style=dotted, constraint=false, label=\"copartition, inferred\"]"
            }
            Line::Copartition { inferred: false } => " [dir=none, style=dotted, constraint=false, label=\"copartition\"]",
        };
        let _ = writeln!(out, "  n{} -> n{}{attributes};", edge.from, edge.to);
    }
    out.push_str("}\n");
    out
}

/// A text inside the double quotes of DOT.
fn escaped(label: &str) -> String {
    let mut out = String::with_capacity(label.len());
    for c in label.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
