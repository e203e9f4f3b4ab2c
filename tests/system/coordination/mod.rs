//! Leader election and the coordinator topic on real brokers.

mod election;
mod log;
mod outages;
mod topic;

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use kit::wait::{self, PATIENCE};
use partition_autoscaler::kafka::coordination::{Coordination, Held, Membership, MembershipEvent};

const TIMEOUT: Duration = Duration::from_secs(30);

fn coordination(bootstrap: &str, application: &str) -> Coordination {
    Coordination::new(bootstrap, &BTreeMap::new(), application)
}

/// A member with what it was told.
struct Member {
    membership: Membership,
    events: Receiver<MembershipEvent>,
}

impl Member {
    fn join(coordination: &Coordination) -> Self {
        let (sender, events) = mpsc::channel();
        let membership = coordination.join(move |event| drop(sender.send(event))).unwrap();
        Self { membership, events }
    }

    /// Joins, and waits until it leads.
    fn lead(coordination: &Coordination) -> Self {
        let member = Self::join(coordination);
        member.wait_for(|event| matches!(event, MembershipEvent::Won { .. }));
        member
    }

    /// Joins, and waits until it is a member that does not lead.
    fn follow(coordination: &Coordination) -> Self {
        let member = Self::join(coordination);
        member.wait_for(|event| *event == MembershipEvent::NotLeading);
        member
    }

    /// Waits for an event and drops those before it.
    #[track_caller]
    fn wait_for(&self, wanted: impl Fn(&MembershipEvent) -> bool) -> MembershipEvent {
        loop {
            let event = self.events.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("an event that did not come"));
            if wanted(&event) {
                return event;
            }
        }
    }

    fn held(&self) -> Option<Held> {
        self.membership.lease().held()
    }

    /// Waits for a proof of membership that was sent after now.
    #[track_caller]
    fn wait_renewed(&self) -> Held {
        let now = std::time::Instant::now();
        wait::until(PATIENCE, "a renewal of the lease", || self.held().filter(|held| held.renewed > now))
    }
}

fn record(key: &str, value: &str) -> (Vec<u8>, Option<Vec<u8>>) {
    (key.into(), Some(value.into()))
}
