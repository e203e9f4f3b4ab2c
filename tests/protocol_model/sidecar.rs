//! A sidecar: the code under test, and what the driver around it keeps.

use std::time::Duration;

use partition_autoscaler::coordinator::{Event, Fingerprint, Held, Leadership, Limits};

pub const SESSION: u8 = 3;
const RESERVE: u8 = 1;

pub fn seconds(n: u8) -> Duration {
    Duration::from_secs(n.into())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Process {
    Up,
    /// Runs, but its heartbeats do not arrive.
    Cut,
    /// Stands still with everything it believes.
    Paused,
    Gone,
}

/// A plan of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    pub epoch: u64,
    pub generation: u8,
}

/// A call that has begun. Between its beginning and its end anything may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    Init {
        term: u64,
    },
    /// The group has accepted the offsets; the end of the transaction is to come.
    Commit {
        term: u64,
        epoch: u64,
        intent: Intent,
        /// Which log it goes to.
        log: u8,
    },
    /// Likewise, of the marker that the log is read through.
    Mark {
        term: u64,
    },
    /// Allowed, and not sent yet (only with [`Flaw::SendsLate`]).
    Send(Request),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Intent {
    Standing(Fingerprint),
    Operator { generation: u8 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    pub input: u8,
    pub internal: u8,
    pub generation: u8,
    pub fingerprint: Fingerprint,
    /// When it was allowed.
    pub allowed: u8,
    /// It takes effect before this, or never.
    pub until: u8,
    /// Its sender had to give up the leadership meanwhile.
    pub overtaken: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sidecar {
    pub process: Process,
    pub leadership: Leadership,
    pub model: Fingerprint,
    pub lease: Option<Held>,
    pub wins: u64,
    /// Producer epoch of its writer.
    pub writer: Option<u8>,
    pub call: Option<Call>,
    /// What it has to carry out, committed under its own intent.
    pub plan: Option<Plan>,
    /// What it read of an earlier leader that did not finish.
    pub inherited: Option<Plan>,
    /// Which log it reads; of no account while it does not lead.
    pub log: u8,
    /// Which log there was when it won.
    pub won: u8,
    /// With [`Flaw::ReadsLogFirst`]: what it read before it had a writer.
    pub read_early: u64,
    /// With [`Flaw::FencedForGood`].
    pub fenced: bool,
}

impl Sidecar {
    /// A process that has just begun.
    pub fn new(model: Fingerprint, log: u8) -> Self {
        let mut leadership = Leadership::new(Limits { session: seconds(SESSION), reserve: seconds(RESERVE) });
        leadership.on(Event::Model(model));
        Self {
            process: Process::Up,
            leadership,
            model,
            lease: None,
            wins: 0,
            writer: None,
            call: None,
            plan: None,
            inherited: None,
            log,
            won: log,
            read_early: 0,
            fenced: false,
        }
    }
}
