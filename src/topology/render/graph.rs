//! The picture that Mermaid and DOT draw: topics, subtopologies and stores, with the certainty of what is inferred.

use std::collections::BTreeMap;

use crate::topology::overview::{Origin, Overview, Standing};

/// A picture. Nodes are known by their index.
pub(super) struct Graph {
    pub(super) nodes: Vec<Shape>,
    pub(super) edges: Vec<Edge>,
}

/// A node.
pub(super) struct Shape {
    pub(super) kind: Kind,
    pub(super) label: String,
    /// Not certain: drawn with a dashed line.
    pub(super) dashed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Subtopology,
    GlobalStore,
    Topic,
    Repartition,
    Pattern,
    Store,
}

/// A line between two nodes.
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) kind: Line,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// Records flow.
    Flow,
    /// A subtopology keeps a store.
    Keeps,
    /// Two topics have to have equal counts.
    Copartition {
        /// As opposed to stated.
        inferred: bool,
    },
}

/// Draws an overview.
pub(super) fn of(overview: &Overview) -> Graph {
    let mut graph = Graph { nodes: Vec::new(), edges: Vec::new() };
    let mut topics: BTreeMap<&str, usize> = BTreeMap::new();
    for part in &overview.subtopologies {
        let (kind, title) = if part.global { (Kind::GlobalStore, "global store") } else { (Kind::Subtopology, "subtopology") };
        let hub = graph.add(kind, format!("{title} {}", part.label()), false);
        for topic in &part.sources {
            let source = graph.topic(overview, &mut topics, topic);
            graph.edges.push(Edge { from: source, to: hub, kind: Line::Flow });
        }
        for pattern in &part.source_patterns {
            let source = graph.add(Kind::Pattern, format!("topics that match {pattern}"), true);
            graph.edges.push(Edge { from: source, to: hub, kind: Line::Flow });
        }
        for store in &part.stores {
            let store = graph.add(Kind::Store, store.clone(), false);
            graph.edges.push(Edge { from: hub, to: store, kind: Line::Keeps });
        }
        for topic in &part.sinks {
            let sink = graph.topic(overview, &mut topics, topic);
            graph.edges.push(Edge { from: hub, to: sink, kind: Line::Flow });
        }
        if part.dynamic_sinks {
            let sink = graph.add(Kind::Pattern, "topic chosen for each record".to_owned(), true);
            graph.edges.push(Edge { from: hub, to: sink, kind: Line::Flow });
        }
    }
    let inferred = overview.groups_from == Origin::Text;
    for group in &overview.copartition_groups {
        let members: Vec<usize> = group.iter().map(|topic| graph.topic(overview, &mut topics, topic)).collect();
        for (&from, &to) in members.iter().zip(members.iter().skip(1)) {
            graph.edges.push(Edge { from, to, kind: Line::Copartition { inferred } });
        }
    }
    graph
}

impl Graph {
    fn add(&mut self, kind: Kind, label: String, dashed: bool) -> usize {
        self.nodes.push(Shape { kind, label, dashed });
        self.nodes.len() - 1
    }

    fn topic<'a>(&mut self, overview: &Overview, topics: &mut BTreeMap<&'a str, usize>, topic: &'a str) -> usize {
        *topics.entry(topic).or_insert_with(|| match overview.repartition_topics.get(topic) {
            None | Some(Standing::UserTopic) => self.add(Kind::Topic, topic.to_owned(), false),
            Some(standing) => {
                let certain = matches!(standing, Standing::Stated | Standing::Confirmed);
                self.add(Kind::Repartition, topic.to_owned(), !certain)
            }
        })
    }
}
