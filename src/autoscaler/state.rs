//! States of one application, and what happens between them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::autoscaler::counts::News;
use crate::autoscaler::status::{AssignorError, StateName};
use crate::kafka::port::TopicError;
use crate::plan::Decision;

/// Where one application stands. Times are measured from the start of the process.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Topology or first full observation missing.
    Starting,
    /// Every internal count equals the expected one.
    Steady,
    /// A CreatePartitions request is scheduled, or its outcome is not verified yet.
    Expanding(Expansion),
    /// Counts match, the group has not yet taken up the new partitions.
    Settling {
        /// When the counts were verified.
        since: Duration,
    },
    /// Copartitioned inputs differ that were equal before.
    Waiting {
        /// What the planner says.
        decision: Decision,
        /// When the mismatch was first seen.
        since: Duration,
    },
    /// Growing topics cannot help, or it would be unsafe.
    Blocked {
        /// What the planner says.
        decision: Decision,
    },
    /// The feature flag is off and counts do not fit.
    Disabled {
        /// What would be done.
        decision: Decision,
    },
    /// Gave up after the timeout.
    Failed {
        /// What was tried.
        decision: Decision,
        /// Latest error of each topic; empty where no request was answered.
        errors: BTreeMap<String, TopicError>,
    },
}

impl State {
    /// Name as in logs, status and metrics.
    pub fn name(&self) -> StateName {
        match self {
            Self::Starting => StateName::Starting,
            Self::Steady => StateName::Steady,
            Self::Expanding(_) => StateName::Expanding,
            Self::Settling { .. } => StateName::Settling,
            Self::Waiting { .. } => StateName::Waiting,
            Self::Blocked { .. } => StateName::Blocked,
            Self::Disabled { .. } => StateName::Disabled,
            Self::Failed { .. } => StateName::Failed,
        }
    }

    /// The decision of the planner that this state hangs on.
    pub fn decision(&self) -> Option<&Decision> {
        match self {
            Self::Starting | Self::Steady | Self::Settling { .. } => None,
            Self::Expanding(expansion) => Some(&expansion.decision),
            Self::Waiting { decision, .. }
            | Self::Blocked { decision }
            | Self::Disabled { decision }
            | Self::Failed { decision, .. } => Some(decision),
        }
    }
}

/// A plan on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct Expansion {
    /// The plan.
    pub decision: Decision,
    /// When the mismatch was first seen.
    pub started: Duration,
    /// Requests that were answered or broke.
    pub attempts: u32,
    /// Not before this moment goes the next request out.
    pub next_request: Duration,
    /// The counts were read since the latest request; until then there is no other one, as this one may have been carried out.
    pub reread: bool,
    /// When the latest request was accepted for every topic, as long as no later one said otherwise.
    pub accepted: Option<Duration>,
    /// Latest error of each topic.
    pub errors: BTreeMap<String, TopicError>,
    /// Latest failure of a request as a whole.
    pub request_error: Option<String>,
}

impl Expansion {
    /// Why each topic of the plan has not grown, as far as the broker said so.
    pub fn outstanding(&self) -> BTreeMap<String, TopicError> {
        let unknown =
            |message: &str| TopicError { code: -1, name: "UNKNOWN_SERVER_ERROR".to_owned(), message: message.to_owned() };
        let fallback = self.request_error.as_deref().unwrap_or("the request was accepted, but its effect is not visible");
        let topics = self.decision.changes.iter().map(|change| &change.topic);
        topics.map(|topic| (topic.clone(), self.errors.get(topic).cloned().unwrap_or_else(|| unknown(fallback)))).collect()
    }
}

/// What the driver has to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read all counts, not before this moment.
    Observe {
        /// Earliest moment.
        at: Duration,
    },
    /// Send these totals in one CreatePartitions request, now.
    Expand {
        /// Full topic name -> total.
        targets: BTreeMap<String, u32>,
    },
}

/// Something worth a log line, a metric and a place in the history.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A topic changed.
    News(News),
    /// The state has another name, or the same name for another reason.
    Entered(State),
    /// Counts are verified: how long it took from the first sight of the growth.
    Expanded {
        /// What grew.
        decision: Decision,
        /// From the first moment at which this leader could act on the mismatch to verified counts.
        took: Duration,
        /// That moment was the growth itself, within a poll interval. Else it had grown before: while the flag was off, or another led.
        seen_live: bool,
    },
    /// The broker refused a topic of the plan (said once for each topic and code).
    Refused {
        /// Full topic name.
        topic: String,
        /// Why.
        error: TopicError,
    },
    /// A count cannot be read (said once for each topic and code).
    Unreadable {
        /// Full topic name.
        topic: String,
        /// Why.
        error: TopicError,
    },
    /// The error that all sidecars are told, or that it is over.
    Assignor(AssignorError),
    /// The application gave up: `num-autoscaling-failures` goes up by one.
    GaveUp,
}
