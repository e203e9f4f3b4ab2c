//! The line parser. Indentation means nothing: what a line is, its first word says.

use std::collections::HashSet;

use super::references;
use super::{Block, Description, NodeKind, ParseError};

const HEADER: &str = "Topologies:";
const NAMED_HEADER: &str = "Topology:";
const BLOCK: &str = "Sub-topology:";
const GLOBAL: &str = "for global store (will not generate tasks)";
const SUCCESSORS: &str = "-->";
const PREDECESSORS: &str = "<--";
const NODE_EXPECTED: &str = "expected \"Source: NAME (topics: ...)\", \"Processor: NAME (stores: [...])\", \"Sink: NAME (topic: ...)\" or \"Sub-topology: N\"";

/// The names behind an arrow, and the line they stand on.
pub(super) struct Arrow {
    pub(super) line: usize,
    pub(super) names: Vec<String>,
}

/// A node while its lines are being read.
pub(super) struct Draft {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) kind: NodeKind,
    pub(super) successors: Option<Arrow>,
    pub(super) predecessors: Option<Arrow>,
    /// The text of an extractor is free, and may go over several lines; this is set until its closing parenthesis.
    open_extractor: bool,
}

struct DraftBlock {
    line: usize,
    block: Block,
    nodes: Vec<Draft>,
}

#[derive(Default)]
struct Reader {
    topology: Option<String>,
    blocks: Vec<Block>,
    ids: HashSet<(Option<String>, u32)>,
    block: Option<DraftBlock>,
    node: Option<Draft>,
}

/// Whether a text starts as a description does.
pub(super) fn looks_like_description(text: &str) -> bool {
    let start = text.trim_start_matches(|c: char| c == '\u{feff}' || c.is_whitespace());
    [HEADER, NAMED_HEADER, BLOCK].iter().any(|word| start.starts_with(word))
}

/// Reads a plain text.
pub(super) fn parse(text: &str) -> Result<Description, ParseError> {
    let mut reader = Reader::default();
    let mut last = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() {
            reader.line(index + 1, line, last.is_none())?;
            last = Some(index + 1);
        }
    }
    let Some(last) = last else {
        return Err(ParseError::new(1, format!("found nothing, expected \"{HEADER}\" or \"{BLOCK} N\"")));
    };
    reader.end_block(last, "the text ends")?;
    Ok(Description { blocks: reader.blocks })
}

impl Reader {
    fn line(&mut self, number: usize, line: &str, first: bool) -> Result<(), ParseError> {
        if line == HEADER {
            self.end_block(number, "a header follows")?;
            self.topology = None;
        } else if let Some(name) = line.strip_prefix(NAMED_HEADER) {
            self.end_block(number, "a header follows")?;
            self.topology = Some(topology_name(name).ok_or_else(|| unexpected(number, line, "expected \"Topology: NAME:\""))?);
        } else if let Some(rest) = line.strip_prefix(BLOCK) {
            self.end_block(number, "a subtopology follows")?;
            self.start_block(number, line, rest.trim())?;
        } else if let Some(names) = line.strip_prefix(SUCCESSORS) {
            self.arrow(number, line, names, |node| &mut node.successors)?;
        } else if let Some(names) = line.strip_prefix(PREDECESSORS) {
            self.arrow(number, line, names, |node| &mut node.predecessors)?;
        } else if let Some(node) = node(line) {
            self.end_node(number, "a node follows")?;
            let (name, kind, open_extractor) = node.map_err(|expected| unexpected(number, line, expected))?;
            if self.block.is_none() {
                return Err(unexpected(number, line, "expected \"Sub-topology: N\" before the first node"));
            }
            self.node = Some(Draft { line: number, name, kind, successors: None, predecessors: None, open_extractor });
        } else if let Some(node) = self.node.as_mut().filter(|node| node.may_go_on()) {
            node.open_extractor = !line.ends_with(')');
        } else if first && line.starts_with('<') {
            return Err(ParseError::new(
                number,
                format!("found an HTML or XML page, expected the text of Topology#describe() (\"{HEADER}\" or \"{BLOCK} N\")"),
            ));
        } else if self.block.is_none() {
            return Err(unexpected(number, line, "expected \"Topologies:\" or \"Sub-topology: N\""));
        } else {
            return Err(unexpected(number, line, NODE_EXPECTED));
        }
        Ok(())
    }

    fn start_block(&mut self, number: usize, line: &str, rest: &str) -> Result<(), ParseError> {
        let (id, global) = match rest.split_once(' ') {
            None => (rest, false),
            Some((id, GLOBAL)) => (id, true),
            Some(_) => return Err(unexpected(number, line, &format!("expected \"{BLOCK} N\" or \"{BLOCK} N {GLOBAL}\""))),
        };
        let digits = id.bytes().all(|b| b.is_ascii_digit());
        let id = id
            .parse()
            .ok()
            .filter(|_| digits)
            .ok_or_else(|| unexpected(number, line, "expected a number after \"Sub-topology:\""))?;
        if !self.ids.insert((self.topology.clone(), id)) {
            return Err(ParseError::new(
                number,
                format!("found subtopology {id} for the second time, expected the description of one application"),
            ));
        }
        let block = Block { id, topology: self.topology.clone(), global, nodes: Vec::new() };
        self.block = Some(DraftBlock { line: number, block, nodes: Vec::new() });
        Ok(())
    }

    fn arrow(
        &mut self,
        number: usize,
        line: &str,
        names: &str,
        side: fn(&mut Draft) -> &mut Option<Arrow>,
    ) -> Result<(), ParseError> {
        let Some(node) = self.node.as_mut() else {
            return Err(unexpected(number, line, "expected a node before its arrows"));
        };
        if node.open_extractor {
            return Err(unexpected(number, line, &format!("expected the \")\" that ends line {} first", node.line)));
        }
        let names =
            names_of(names).ok_or_else(|| unexpected(number, line, "expected \"none\" or names with \", \" between them"))?;
        let side = side(node);
        if let Some(earlier) = side {
            return Err(unexpected(
                number,
                line,
                &format!("expected one such line for each node, and line {} is one", earlier.line),
            ));
        }
        *side = Some(Arrow { line: number, names });
        Ok(())
    }

    /// Ends the node that is being read; `number` and `what` say where and why it ends.
    fn end_node(&mut self, number: usize, what: &str) -> Result<(), ParseError> {
        let Some(node) = self.node.take() else { return Ok(()) };
        if let Some(missing) = node.missing() {
            return Err(ParseError::new(
                number,
                format!("{what} in the middle of {} (line {}), expected {missing} first", node.title(), node.line),
            ));
        }
        if let Some(block) = self.block.as_mut() {
            block.nodes.push(node);
        }
        Ok(())
    }

    fn end_block(&mut self, number: usize, what: &str) -> Result<(), ParseError> {
        self.end_node(number, what)?;
        let Some(DraftBlock { line, mut block, nodes }) = self.block.take() else { return Ok(()) };
        if nodes.is_empty() {
            return Err(ParseError::new(
                number,
                format!("{what} before the first node of subtopology {} (line {line}), {NODE_EXPECTED}", block.id),
            ));
        }
        block.nodes = references::check(block.id, nodes)?;
        self.blocks.push(block);
        Ok(())
    }
}

impl Draft {
    pub(super) fn title(&self) -> String {
        let kind = match self.kind {
            NodeKind::Source { .. } => "source",
            NodeKind::Processor { .. } => "processor",
            NodeKind::Sink { .. } => "sink",
        };
        format!("{kind} {}", quoted(&self.name))
    }

    /// What has not been read yet.
    fn missing(&self) -> Option<&'static str> {
        let (wants_successors, wants_predecessors) = match self.kind {
            NodeKind::Source { .. } => (true, false),
            NodeKind::Processor { .. } => (true, true),
            NodeKind::Sink { .. } => (false, true),
        };
        if self.open_extractor {
            Some("the closing \")\"")
        } else if wants_successors && self.successors.is_none() {
            Some("its line \"--> ...\"")
        } else if wants_predecessors && self.predecessors.is_none() {
            Some("its line \"<-- ...\"")
        } else {
            None
        }
    }

    /// Whether a line that is nothing else can belong to the text of an extractor.
    fn may_go_on(&self) -> bool {
        self.kind == NodeKind::Sink { topic: None } && self.successors.is_none() && self.predecessors.is_none()
    }
}

/// Name, kind, and whether the text of an extractor is still open; the error is what was expected.
type NodeLine = Result<(String, NodeKind, bool), &'static str>;

/// `None` when the line does not start a node.
fn node(line: &str) -> Option<NodeLine> {
    if let Some(rest) = line.strip_prefix("Source:") {
        Some(
            source(rest)
                .map(|(name, kind)| (name, kind, false))
                .ok_or("expected \"Source: NAME (topics: [TOPIC, ...])\" or \"Source: NAME (topics: PATTERN)\""),
        )
    } else if let Some(rest) = line.strip_prefix("Processor:") {
        Some(processor(rest).map(|(name, kind)| (name, kind, false)).ok_or("expected \"Processor: NAME (stores: [STORE, ...])\""))
    } else if let Some(rest) = line.strip_prefix("Sink:") {
        Some(sink(rest).ok_or("expected \"Sink: NAME (topic: TOPIC)\" or \"Sink: NAME (extractor class: ...)\""))
    } else {
        None
    }
}

fn source(rest: &str) -> Option<(String, NodeKind)> {
    let (name, topics) = split_name(rest, " (topics: ")?;
    let topics = topics.strip_suffix(')')?;
    // A pattern is printed bare, and may itself start with a bracket: only legal names make a list.
    let list = topics
        .strip_prefix('[')
        .and_then(|t| t.strip_suffix(']'))
        .and_then(list_of)
        .filter(|l| l.iter().all(|t| is_topic_name(t)));
    match list {
        Some(topics) => Some((name, NodeKind::Source { topics, pattern: None })),
        None if topics.is_empty() => None,
        None => Some((name, NodeKind::Source { topics: Vec::new(), pattern: Some(topics.to_owned()) })),
    }
}

fn processor(rest: &str) -> Option<(String, NodeKind)> {
    let (name, stores) = split_name(rest, " (stores: [")?;
    let stores = list_of(stores.strip_suffix("])")?)?;
    Some((name, NodeKind::Processor { stores }))
}

fn sink(rest: &str) -> Option<(String, NodeKind, bool)> {
    const TOPIC: &str = " (topic: ";
    const EXTRACTOR: &str = " (extractor class:";
    // The text of an extractor may hold anything, even what looks like a topic: the first mark counts.
    let extractor_at = rest.find(EXTRACTOR);
    if extractor_at.is_some_and(|at| rest.find(TOPIC).is_none_or(|topic| at < topic)) {
        let (name, text) = split_name(rest, EXTRACTOR)?;
        return Some((name, NodeKind::Sink { topic: None }, !text.ends_with(')')));
    }
    let (name, topic) = split_name(rest, TOPIC)?;
    let topic = topic.strip_suffix(')').filter(|t| !t.is_empty())?;
    Some((name, NodeKind::Sink { topic: Some(topic.to_owned()) }, false))
}

fn split_name<'a>(rest: &'a str, mark: &str) -> Option<(String, &'a str)> {
    let (name, rest) = rest.split_once(mark)?;
    let name = name.trim();
    (!name.is_empty()).then(|| (name.to_owned(), rest))
}

fn topology_name(rest: &str) -> Option<String> {
    let name = rest.trim().strip_suffix(':')?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// `none`, or at least one name.
fn names_of(text: &str) -> Option<Vec<String>> {
    match text.trim() {
        "none" => Some(Vec::new()),
        "" => None,
        names => list_of(names),
    }
}

/// The elements of a list; `None` when one of them is empty, which is what a cut leaves behind.
fn list_of(text: &str) -> Option<Vec<String>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(", ").map(|element| (!element.is_empty() && !element.ends_with(',')).then(|| element.to_owned())).collect()
}

/// Kafka's rule for topic names (`org.apache.kafka.common.internals.Topic`).
fn is_topic_name(name: &str) -> bool {
    (1..=249).contains(&name.len())
        && name != "."
        && name != ".."
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn unexpected(line: usize, found: &str, expected: &str) -> ParseError {
    ParseError::new(line, format!("found {}, {expected}", quoted(found)))
}

/// Text of the user in a message: escaped, and short enough for one line.
pub(super) fn quoted(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or(text)),
        None => format!("{text:?}"),
    }
}
