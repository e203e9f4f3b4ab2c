//! Brokers that pause and go.

use std::time::{Duration, Instant};

use kit::Cluster;
use kit::wait::{self, PATIENCE};
use partition_autoscaler::kafka::coordination::CommitError;

use super::{Member, TIMEOUT, coordination, record};

#[test]
fn a_lease_runs_out_while_the_broker_is_silent() {
    let cluster = Cluster::builder().start();
    let coordination = coordination(&cluster.bootstrap(), "outage-pause");
    coordination.ensure_topic(TIMEOUT).unwrap();
    let leader = Member::lead(&coordination);
    let mut writer = coordination.writer(TIMEOUT).unwrap();
    let mut reader = coordination.reader(None).unwrap();
    assert_eq!(reader.read_to_end(TIMEOUT), Ok(Vec::new()));
    cluster.pause(1);
    let paused = Instant::now();
    let metadata = leader.membership.lease().group_metadata(1);
    let late = writer.commit(&[record("a", "1")], metadata.as_ref(), Duration::from_secs(1));
    assert_eq!(late, Err(CommitError::TimedOut));
    assert!(writer.is_finished());
    assert_eq!(reader.poll(Duration::ZERO), Ok(Vec::new()));
    // Neither waits for the broker to answer.
    drop(writer);
    drop(reader);
    // Whether or not the client has given up the partition by itself: the margin is gone, and no proof is younger than the pause.
    let margin = || leader.held().map_or(Duration::ZERO, |held| held.margin(Instant::now()));
    wait::until(PATIENCE, "the margin to run out", || margin().is_zero().then_some(()));
    assert!(leader.held().is_none_or(|held| held.renewed <= paused));

    cluster.resume(1);
    let held = leader.wait_renewed();
    // The writer that timed out is settled by a new one.
    let mut writer = wait::until(PATIENCE, "a new writer", || coordination.writer(TIMEOUT).ok());
    let metadata = leader.membership.lease().group_metadata(held.term);
    writer.commit(&[record("a", "2")], metadata.as_ref(), TIMEOUT).unwrap();
}

#[test]
fn leaving_is_bounded_when_nobody_answers() {
    let cluster = Cluster::builder().start();
    let coordination = coordination(&cluster.bootstrap(), "outage-leave");
    coordination.ensure_topic(TIMEOUT).unwrap();
    let leader = Member::lead(&coordination);
    let lease = leader.membership.lease().clone();
    cluster.pause(1);
    leader.membership.leave(Duration::from_millis(500));
    assert_eq!(lease.held(), None);
    cluster.resume(1);
}

#[test]
fn the_group_survives_the_loss_of_any_broker() {
    let cluster = Cluster::builder().nodes(3).start();
    let coordination = coordination(&cluster.bootstrap(), "outage-kill");
    coordination.ensure_topic(TIMEOUT).unwrap();
    let leader = Member::lead(&coordination);
    let follower = Member::follow(&coordination);
    let mut reader = coordination.reader(None).unwrap();
    for node in 1..=3 {
        cluster.kill(node);
        // One of the two leads, perhaps the same one, and its transactions are committed and read.
        let last = wait::until(PATIENCE, "a transaction of the leader", || {
            let (member, held) = [&leader, &follower].into_iter().find_map(|member| Some((member, member.held()?)))?;
            let metadata = member.membership.lease().group_metadata(held.term)?;
            if held.margin(Instant::now()).is_zero() {
                return None;
            }
            let mut writer = coordination.writer(TIMEOUT).ok()?;
            writer.commit(&[record("node", &node.to_string())], Some(&metadata), TIMEOUT).ok()
        });
        let read = wait::until(PATIENCE, "the record", || reader.read_through(last, TIMEOUT).ok());
        assert_eq!(read.last().and_then(|record| record.value.clone()), Some(node.to_string().into_bytes()));
        assert!(leader.held().is_none() || follower.held().is_none());
        cluster.restart(node);
    }
}
