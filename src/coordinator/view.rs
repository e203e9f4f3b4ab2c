//! What the memory says of an application, for status and `history`.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use super::memory::Memory;
use super::records::{HistoryRow, Key, Row};
use crate::autoscaler::status::{ApplicationStatus, AssignorError, HistoryEntry, StateStatus, Time};

/// Puts into the status what the leader has told. What nobody has told stays as it is.
pub fn fill(status: &mut ApplicationStatus, memory: &Memory) {
    status.failures = memory.failures();
    status.baseline = memory.baseline(&BTreeMap::new());
    if let Some(state) = state(memory) {
        let details = format!("as the leader says: {}", state.details);
        status.state = StateStatus { details, ..state };
    }
    if let Some((error, _)) = assignor_error(memory) {
        status.assignor_error = error.into();
    }
    status.history = history(memory);
}

/// Where the leader's state machine stands.
pub fn state(memory: &Memory) -> Option<StateStatus> {
    match memory.get(&Key::State)? {
        Row::State { name, since, details } => Some(StateStatus { name: *name, since: time(*since), details: details.clone() }),
        _ => None,
    }
}

/// What the leader tells all sidecars, with a sentence for people.
pub fn assignor_error(memory: &Memory) -> Option<(AssignorError, &str)> {
    match memory.get(&Key::AssignorError)? {
        Row::AssignorError { error, message } => Some((*error, message)),
        _ => None,
    }
}

/// `partition.autoscaling.enabled` as the leader has it.
pub fn enabled(memory: &Memory) -> Option<bool> {
    match memory.get(&Key::Flag)? {
        Row::Flag { enabled, .. } => Some(*enabled),
        _ => None,
    }
}

/// What happened, oldest first.
pub fn history(memory: &Memory) -> Vec<HistoryEntry> {
    let entry = |row: &HistoryRow| HistoryEntry { at: time(row.at), event: row.event.clone(), message: row.message.clone() };
    memory.history().into_iter().map(entry).collect()
}

/// A moment, given in milliseconds since 1970. One that no clock can have is 1970.
fn time(milliseconds: u64) -> Time {
    // 9999-12-31: what is later cannot be written down
    const LATEST: u64 = 253_402_300_799_999;
    let since = if milliseconds <= LATEST { milliseconds } else { 0 };
    Time(SystemTime::UNIX_EPOCH + Duration::from_millis(since))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscaler::status::StateName;

    #[test]
    fn a_status_takes_what_the_leader_told_and_nothing_else() {
        let mut memory = Memory::default();
        let unknown = ApplicationStatus::starting("shop", true, SystemTime::UNIX_EPOCH);
        let mut status = unknown.clone();
        fill(&mut status, &memory);
        assert_eq!(status, unknown);

        let error = AssignorError::IncompleteSourceTopicMetadata;
        memory.set(Row::State { name: StateName::Disabled, since: 1_000, details: "off".to_owned() });
        memory.set(Row::AssignorError { error, message: "in words".to_owned() });
        memory.set(Row::Flag { enabled: false, since: 1_000 });
        memory.add_history(u64::MAX, "grew", "a clock that is wrong");
        fill(&mut status, &memory);
        assert_eq!((status.state.name, status.state.details.as_str()), (StateName::Disabled, "as the leader says: off"));
        assert_eq!(status.state.since.to_string(), "1970-01-01T00:00:01.000Z");
        assert_eq!((status.assignor_error.name, enabled(&memory)), (error, Some(false)));
        assert_eq!(status.history[0].at.to_string(), "1970-01-01T00:00:00.000Z");
    }
}
