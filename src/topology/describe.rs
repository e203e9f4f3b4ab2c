//! Reads the text of `Topology#describe()`.
//!
//! Kafka Streams 2.x to 4.x print the same grammar (`InternalTopologyBuilder.TopologyDescription`). Texts in the wild have lost
//! their indentation, header or final newline, or come wrapped in JSON by a Spring actuator or a JMX bridge; all of that is
//! accepted. What is not understood to the last line is an error: a lost sink would hide a repartition topic.

mod lines;
mod references;

use serde::Serialize;
use serde_json::Value;

/// A parsed text. Topic and store names are raw, as printed: without the application's prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Subtopologies and global stores, in the order of the text.
    pub blocks: Vec<Block>,
}

/// A subtopology or a global store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// The number in the text; unique within a (named) topology, global stores count along.
    pub id: u32,
    /// Name of the named topology, where the text says one.
    pub topology: Option<String>,
    /// A global store: it has no tasks, and the count of its topic does not matter.
    pub global: bool,
    /// The nodes, in the order of the text; never empty.
    pub nodes: Vec<Node>,
}

/// A node of the processor graph. Successors and predecessors are nodes of the same block, and agree with each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Unique within its block.
    pub name: String,
    /// What the node does, and on what.
    pub kind: NodeKind,
    /// Names behind `-->`; empty for `none`.
    pub successors: Vec<String>,
    /// Names behind `<--`; empty for `none`.
    pub predecessors: Vec<String>,
}

/// The three sorts of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum NodeKind {
    /// Reads topics: a fixed list, or those that match a pattern.
    Source {
        /// The fixed list; empty for a pattern.
        topics: Vec<String>,
        /// The regular expression (Java syntax) of a pattern source.
        pattern: Option<String>,
    },
    /// Handles records.
    Processor {
        /// The state stores it touches.
        stores: Vec<String>,
    },
    /// Writes a topic.
    Sink {
        /// `None` when an extractor chooses the topic for each record.
        topic: Option<String>,
    },
}

/// Why a text is not a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ParseError {
    /// Line of the text, from 1. For a text wrapped in JSON: of the text inside, once the JSON itself is sound.
    pub line: usize,
    /// What was found, and what was expected.
    pub message: String,
}

impl ParseError {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// Reads a description, plain or inside JSON.
pub fn parse(text: &str) -> Result<Description, ParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with(['[', '{', '"']) { lines::parse(&unwrap_json(text)?) } else { lines::parse(text) }
}

/// The one description inside a JSON string, array or object, at any depth.
///
/// An actuator answers with an array (all applications of the process) or a string (one of them), a JMX bridge with an object.
fn unwrap_json(text: &str) -> Result<String, ParseError> {
    let value: Value = serde_json::from_str(text).map_err(|e| {
        let found = "found neither a description (\"Topologies:\" or \"Sub-topology: N\") nor sound JSON around one";
        ParseError::new(e.line().max(1), format!("{found}: {e}"))
    })?;
    let mut texts = Vec::new();
    collect_texts(value, &mut texts);
    match (texts.pop(), texts.len()) {
        (Some(only), 0) => Ok(only),
        (None, _) => Err(ParseError::new(
            1,
            "found JSON without a description, expected a text with \"Topologies:\" or \"Sub-topology:\" in it",
        )),
        (Some(_), others) => Err(ParseError::new(
            1,
            format!(
                "found {} descriptions in one JSON answer, expected that of one application; ask for it by its name",
                others + 1
            ),
        )),
    }
}

fn collect_texts(value: Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) if lines::looks_like_description(&text) => texts.push(text),
        Value::Array(items) => items.into_iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(fields) => fields.into_iter().for_each(|(_, item)| collect_texts(item, texts)),
        _ => {}
    }
}
