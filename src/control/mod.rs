//! SEP-6, control messages: watermarks and ends of streams that travel in-band through the intermediate topics of a stream processor.
//!
//! Every upstream task sends its control messages to every partition of the intermediate topic ([`sender`]), between the user's
//! records and in the same form ([`wire`]). A downstream task puts together what the upstream tasks said, partition by partition
//! ([`Reconciler`]), and saves that with its input offsets ([`checkpoint`]), so that a restart neither forgets nor repeats anything.
//! The design is [SEP-6](https://cwiki.apache.org/confluence/display/SAMZA/SEP-6+Support+Control+Message+Across+Intermediate+Streams); Apache Samza ships a
//! part of it, and the modules say where they do otherwise. All of it is pure: no client, no clock.
//!
//! A stream processor that reads one partition of the intermediate topic `mid`, and is restarted:
//!
//! ```
//! use partition_autoscaler::control::wire::{self, Body, ControlMessage, Message, WireFormat};
//! use partition_autoscaler::control::{Checkpoint, Event, Partition, Reconciler};
//! # fn process(_record: &[u8]) {}
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let says = |task: &str, timestamp| {                    // one of two upstream tasks; `sender` sends it to every partition
//!     let body = Body::Watermark { timestamp };
//!     Message::Control(ControlMessage { task_name: Some(task.to_owned()), task_count: Some(2), body })
//! };
//! let log = [Message::User(b"a record"), says("t0", 50), says("t1", 40), says("t1", 70)]
//!     .map(|message| wire::encode(&message, WireFormat::Seed));
//!
//! let input = Partition::new("kafka", "mid", 0);
//! let (mut saved, mut events) = (Vec::new(), Vec::new());
//! for _start in ["first", "after a crash behind the third record"] {
//!     let checkpoint: Checkpoint = if saved.is_empty() { Checkpoint::default() } else { serde_json::from_slice(&saved)? };
//!     let mut reconciler = Reconciler::restore([input.clone()], &checkpoint);
//!     let next = checkpoint.offsets.get(&input).copied().unwrap_or(0);
//!     for (offset, record) in (0..).zip(&log).filter(|(offset, _)| *offset >= next).take(3) {
//!         match wire::decode(record)? {
//!             Message::User(payload) => process(payload),
//!             Message::Control(message) => events.extend(reconciler.hear(&input, &message)?),
//!         }
//!         saved = serde_json::to_vec(&reconciler.checkpoint([(input.clone(), offset + 1)]))?;
//!     }
//! }
//! let watermark = |timestamp| Event::Watermark { partition: input.clone(), timestamp };
//! assert_eq!(events, [watermark(40), watermark(50)]);
//! # Ok(())
//! # }
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

pub mod checkpoint;
pub mod reconcile;
pub mod sender;
pub mod wire;

pub use checkpoint::{Checkpoint, EndOfStreamCheckpoint, WatermarkCheckpoint};
pub use reconcile::{Event, NO_WATERMARK, ReconcileError, Reconciler};
pub use wire::{Body, ControlMessage, WireFormat};

/// A stream of a system; for Kafka a topic of a cluster. As JSON `["kafka", "orders"]`, as text `kafka.orders`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(String, String)", into = "(String, String)")]
pub struct Stream {
    /// Name of the system.
    pub system: String,
    /// Name of the stream within it.
    pub stream: String,
}

impl From<(String, String)> for Stream {
    fn from((system, stream): (String, String)) -> Self {
        Self { system, stream }
    }
}

impl From<Stream> for (String, String) {
    fn from(Stream { system, stream }: Stream) -> Self {
        (system, stream)
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.system, self.stream)
    }
}

/// A partition of a stream (Samza's `SystemStreamPartition`). As JSON `["kafka", "orders", 0]`, as text `kafka.orders#0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(String, String, u32)", into = "(String, String, u32)")]
pub struct Partition {
    /// The stream that it is a part of.
    pub stream: Stream,
    /// Its number, from 0.
    pub number: u32,
}

impl Partition {
    /// The partition with this number.
    pub fn new(system: impl Into<String>, stream: impl Into<String>, number: u32) -> Self {
        Self { stream: Stream { system: system.into(), stream: stream.into() }, number }
    }
}

impl From<(String, String, u32)> for Partition {
    fn from((system, stream, number): (String, String, u32)) -> Self {
        Self::new(system, stream, number)
    }
}

impl From<Partition> for (String, String, u32) {
    fn from(Partition { stream: Stream { system, stream }, number }: Partition) -> Self {
        (system, stream, number)
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.stream, self.number)
    }
}
