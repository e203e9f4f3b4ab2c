//! How sure it is that this process leads, for every thread to see.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::ConsumerGroupMetadata;

use super::SESSION;

/// Membership in the group at the time of an assignment: what ties a transaction to it. Cheap to clone.
#[derive(Clone)]
pub struct GroupMetadata(Arc<ConsumerGroupMetadata>);

impl GroupMetadata {
    pub(super) fn new(metadata: ConsumerGroupMetadata) -> Self {
        Self(Arc::new(metadata))
    }

    pub(super) fn get(&self) -> &ConsumerGroupMetadata {
        &self.0
    }
}

/// This process leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// How often this process has won; another number means that it did not lead in between.
    pub term: u64,
    /// When the last request was sent that the group's coordinator answered as to a member.
    pub renewed: Instant,
}

impl Held {
    /// How long nobody else can lead: what is left of the session at this time. Zero if nothing is sure any more.
    pub fn margin(&self, now: Instant) -> Duration {
        (self.renewed + SESSION).saturating_duration_since(now)
    }
}

/// A view of the leadership of this process, kept up by its [`Membership`](super::Membership). Cheap to clone and to ask.
#[derive(Clone, Default)]
pub struct Lease(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    wins: u64,
    owned: Option<Owned>,
}

/// Partition 0 is ours.
struct Owned {
    /// `None` until the coordinator has answered once in this term.
    renewed: Option<Instant>,
    metadata: Option<GroupMetadata>,
}

impl Lease {
    /// Whether this process leads, and since when that is proven. Ask [`Held::margin`] before acting.
    pub fn held(&self) -> Option<Held> {
        let state = self.state();
        let renewed = state.owned.as_ref()?.renewed?;
        Some(Held { term: state.wins, renewed })
    }

    /// The group metadata for transactions of this term; `None` once the term is over.
    ///
    /// It was taken while partition 0 was ours. Metadata fetched at any other time would prove membership, not leadership.
    pub fn group_metadata(&self, term: u64) -> Option<GroupMetadata> {
        let state = self.state();
        state.owned.as_ref().filter(|_| state.wins == term)?.metadata.clone()
    }

    /// Partition 0 has become ours.
    pub(super) fn win(&self, metadata: Option<GroupMetadata>) {
        let mut state = self.state();
        state.wins += 1;
        state.owned = Some(Owned { renewed: None, metadata });
    }

    /// A later generation of the group, in which partition 0 is still ours.
    pub(super) fn refresh(&self, metadata: Option<GroupMetadata>) {
        if let Some(owned) = &mut self.state().owned {
            owned.metadata = metadata;
        }
    }

    /// Partition 0 is no longer ours. Tells the term that ends.
    pub(super) fn lose(&self) -> Option<u64> {
        let mut state = self.state();
        state.owned.take().map(|_| state.wins)
    }

    /// The coordinator answered a request of this term that was sent at this time. Tells whether it is the first one of the term.
    pub(super) fn renew(&self, term: u64, sent: Instant) -> bool {
        let mut state = self.state();
        let current = state.wins == term;
        let Some(owned) = state.owned.as_mut().filter(|_| current) else { return false };
        let first = owned.renewed.is_none();
        owned.renewed = owned.renewed.max(Some(sent));
        first
    }

    /// The present term, proven or not.
    pub(super) fn term(&self) -> Option<u64> {
        let state = self.state();
        state.owned.as_ref().map(|_| state.wins)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_held_from_its_first_proof_to_its_loss() {
        let lease = Lease::default();
        let start = Instant::now();
        let second = Duration::from_secs(1);
        assert_eq!((lease.held(), lease.term(), lease.lose()), (None, None, None));

        lease.win(None);
        assert_eq!((lease.held(), lease.term()), (None, Some(1)), "owned, not proven");
        assert!(lease.renew(1, start), "the first proof");
        assert_eq!(lease.held(), Some(Held { term: 1, renewed: start }));
        assert!(!lease.renew(1, start + second));
        assert!(!lease.renew(1, start), "answers may overtake one another");
        assert_eq!(lease.held(), Some(Held { term: 1, renewed: start + second }));

        assert_eq!(lease.lose(), Some(1));
        assert!(!lease.renew(1, start + 2 * second), "an answer after the end of the term");
        assert_eq!((lease.held(), lease.lose()), (None, None));
        lease.win(None);
        assert!(!lease.renew(1, start + 3 * second), "an answer to the previous term");
        assert_eq!(lease.held(), None);
        assert!(lease.renew(2, start + 3 * second));
        assert_eq!(lease.held().map(|held| held.term), Some(2));
    }

    #[test]
    fn the_margin_is_what_is_left_of_the_session() {
        let start = Instant::now();
        let held = Held { term: 1, renewed: start };
        let seconds = Duration::from_secs;
        assert_eq!(held.margin(start + seconds(3)), seconds(7));
        assert_eq!(held.margin(start + SESSION), Duration::ZERO);
        assert_eq!(held.margin(start + seconds(60)), Duration::ZERO);
    }
}
