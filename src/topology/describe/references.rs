//! Checks that the arrows of a block agree: Kafka Streams prints every edge twice, so an edge that is there only once, or that
//! leads nowhere, shows that lines or names were lost.

use std::collections::{HashMap, HashSet};

use super::lines::{Arrow, Draft, quoted};
use super::{Node, ParseError};

/// The nodes of a block, once every edge is printed on both ends.
pub(super) fn check(block: u32, drafts: Vec<Draft>) -> Result<Vec<Node>, ParseError> {
    let mut by_name: HashMap<&str, &Draft> = HashMap::with_capacity(drafts.len());
    for draft in &drafts {
        if let Some(earlier) = by_name.insert(&draft.name, draft) {
            return Err(ParseError::new(
                draft.line,
                format!(
                    "found node {} for the second time (first on line {}), expected unique names",
                    quoted(&draft.name),
                    earlier.line
                ),
            ));
        }
    }
    let down = edges(&drafts, |draft| draft.successors.as_ref());
    let up = edges(&drafts, |draft| draft.predecessors.as_ref());
    for draft in &drafts {
        let name = draft.name.as_str();
        let sides = [(&draft.successors, &up, "its \"<--\""), (&draft.predecessors, &down, "its \"-->\"")];
        for (arrow, other_way, other_side) in sides {
            let Some(arrow) = arrow else { continue };
            for other in &arrow.names {
                let Some(found) = by_name.get(other.as_str()) else {
                    return Err(ParseError::new(
                        arrow.line,
                        format!(
                            "found the name {}, expected a node of subtopology {block}; the text is cut or was edited",
                            quoted(other)
                        ),
                    ));
                };
                if !other_way.contains(&(other.as_str(), name)) {
                    return Err(ParseError::new(
                        arrow.line,
                        format!(
                            "found {} (line {}) next to {}, expected the same from {other_side}; the text is cut or was edited",
                            found.title(),
                            found.line,
                            draft.title()
                        ),
                    ));
                }
            }
        }
    }
    Ok(drafts.into_iter().map(node).collect())
}

/// Edges as seen from one end: (this node, the other one).
fn edges(drafts: &[Draft], side: fn(&Draft) -> Option<&Arrow>) -> HashSet<(&str, &str)> {
    drafts
        .iter()
        .flat_map(|draft| {
            side(draft).into_iter().flat_map(|arrow| arrow.names.iter().map(|other| (draft.name.as_str(), other.as_str())))
        })
        .collect()
}

fn node(draft: Draft) -> Node {
    let names = |arrow: Option<Arrow>| arrow.map(|arrow| arrow.names).unwrap_or_default();
    Node { name: draft.name, kind: draft.kind, successors: names(draft.successors), predecessors: names(draft.predecessors) }
}
