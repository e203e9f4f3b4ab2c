//! The closed sets of label values.

use crate::autoscaler::status::{AssignorError, StateName};
use crate::coordinator::{Failure, Skipped};
use crate::kafka::port::ErrorClass;
use crate::plan::{Code, Role, Verdict};

/// A label whose values are known beforehand, so that every series can exist from the start.
pub trait Label: Copy + PartialEq + 'static {
    /// All values with their texts.
    const ALL: &'static [(Self, &'static str)];

    /// The text of this value.
    fn text(self) -> &'static str {
        Self::ALL.iter().find(|(value, _)| *value == self).map_or("other", |(_, text)| text)
    }
}

/// How an observation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservationResult {
    /// Every topic was answered.
    Ok,
    /// The count of some topic is not known.
    Partial,
    /// No answer at all.
    Error,
}

/// How an expansion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpansionResult {
    /// All counts verified.
    Done,
    /// Given up after `partition.autoscaling.timeout.ms`.
    Failed,
    /// Another change, or another leader, took its place.
    Superseded,
}

/// A part of a reaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReactionPart {
    /// From the observation to the plan.
    Plan,
    /// The CreatePartitions requests.
    Request,
    /// From the last reply to verified counts.
    Verify,
}

/// What a sidecar became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// It acts from now on.
    Leading,
    /// It does not act any more.
    Following,
}

impl Label for Transition {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Leading, "leading"), (Self::Following, "following")];
}

impl Label for Failure {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Fenced, "fenced"), (Self::NotMember, "not_member"), (Self::TimedOut, "timed_out"), (Self::Other, "other")];
}

impl Label for Skipped {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::NotAKey, "not_a_key"),
        (Self::UnknownVersion, "unknown_version"),
        (Self::UnknownType, "unknown_type"),
        (Self::Malformed, "malformed"),
        (Self::TooLong, "too_long"),
        (Self::TooMany, "too_many"),
    ];
}

impl Label for ObservationResult {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Ok, "ok"), (Self::Partial, "partial"), (Self::Error, "error")];
}

impl Label for ExpansionResult {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Done, "done"), (Self::Failed, "failed"), (Self::Superseded, "superseded")];
}

impl Label for ReactionPart {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Plan, "plan"), (Self::Request, "request"), (Self::Verify, "verify")];
}

impl Label for StateName {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Starting, "starting"),
        (Self::Steady, "steady"),
        (Self::Expanding, "expanding"),
        (Self::Settling, "settling"),
        (Self::Waiting, "waiting"),
        (Self::Blocked, "blocked"),
        (Self::Disabled, "disabled"),
        (Self::Failed, "failed"),
    ];
}

impl Label for AssignorError {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::None, "NONE"),
        (Self::IncompleteSourceTopicMetadata, "INCOMPLETE_SOURCE_TOPIC_METADATA"),
        (Self::VersionProbing, "VERSION_PROBING"),
        (Self::AssignmentError, "ASSIGNMENT_ERROR"),
        (Self::ShutdownRequested, "SHUTDOWN_REQUESTED"),
    ];
}

impl Label for Verdict {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::None, "none"), (Self::Expand, "expand"), (Self::Waiting, "waiting"), (Self::Blocked, "blocked")];
}

impl Label for Role {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Input, "input"), (Self::Repartition, "repartition"), (Self::Changelog, "changelog")];
}

impl Label for ErrorClass {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Unreachable, "unreachable"),
        (Self::TimedOut, "timed_out"),
        (Self::Authentication, "authentication"),
        (Self::Authorization, "authorization"),
        (Self::TooOld, "too_old"),
        (Self::Config, "config"),
        (Self::Other, "other"),
    ];
}

impl Label for Code {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::MissingSourceTopics, "MISSING_SOURCE_TOPICS"),
        (Self::PinnedConflict, "PINNED_CONFLICT"),
        (Self::CopartitionMismatch, "COPARTITION_MISMATCH"),
        (Self::WaitingForCopartition, "WAITING_FOR_COPARTITION"),
        (Self::BaselineMismatch, "BASELINE_MISMATCH"),
        (Self::NoBaseline, "NO_BASELINE"),
        (Self::Ambiguous, "AMBIGUOUS"),
        (Self::OrderDependent, "ORDER_DEPENDENT"),
        (Self::WouldShrink, "WOULD_SHRINK"),
        (Self::LimitExceeded, "LIMIT_EXCEEDED"),
        (Self::Unsupported, "UNSUPPORTED"),
        (Self::Timeout, "TIMEOUT"),
        (Self::KeysWillMove, "KEYS_WILL_MOVE"),
    ];
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    /// The texts are those of the JSON, and no value is left out.
    fn as_in_json<L: Label + Serialize + std::fmt::Debug>(count: usize) {
        assert_eq!(L::ALL.len(), count);
        for (value, text) in L::ALL {
            let json = serde_json::to_value(value).unwrap();
            assert_eq!(json.as_str().unwrap().to_lowercase(), text.to_lowercase());
            assert_eq!(value.text(), *text);
        }
    }

    #[test]
    fn labels_say_what_the_json_says() {
        as_in_json::<StateName>(StateName::Failed as usize + 1);
        as_in_json::<AssignorError>(AssignorError::ShutdownRequested as usize + 1);
        as_in_json::<Verdict>(Verdict::Blocked as usize + 1);
        as_in_json::<Role>(Role::Changelog as usize + 1);
        as_in_json::<ErrorClass>(ErrorClass::Other as usize + 1);
        as_in_json::<Code>(Code::KeysWillMove as usize + 1);
    }
}
