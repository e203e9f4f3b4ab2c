//! What the sidecars of one application agree on, pure: the records of the coordinator topic, what they add up to, and the rules
//! by which one sidecar may act. The Kafka side (membership, writer, reader) lives in [`crate::kafka`].

pub mod envelope;
pub mod memory;
pub mod protocol;
pub mod records;
mod wire;

pub use memory::Memory;
pub use protocol::{Action, Event, Failure, Held, Leadership, Limits, Refusal};
pub use records::{Change, Fingerprint, Key, Kind, Origin, Row, Skipped};

pub mod office;
pub mod view;

pub use office::{Alone, Elected, Office, Standing};
