//! Who leads, and what the brokers refuse to those who led.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Instant;

use kit::process::Process;
use kit::wait::{self, PATIENCE};
use kit::{Acl, Cluster, Operation, Resource};
use partition_autoscaler::kafka::Client;
use partition_autoscaler::kafka::coordination::{CommitError, Coordination, LostReason, MembershipEvent, SESSION};
use partition_autoscaler::kafka::port::{Cluster as _, ErrorClass};

use super::{Member, TIMEOUT, coordination, record};

#[test]
fn one_of_three_leads_and_newcomers_take_nothing_away() {
    let cluster = Cluster::shared();
    let coordination = coordination(&cluster.bootstrap(), "elect-three");
    coordination.ensure_topic(TIMEOUT).unwrap();
    let leader = Member::lead(&coordination);
    let first = leader.held().unwrap();
    assert_eq!(first.term, 1);
    assert!(first.margin(Instant::now()) <= SESSION);

    let second = Member::follow(&coordination);
    let third = Member::follow(&coordination);
    // After both have joined, the lease goes on under the same term, with metadata of the newest generation.
    let held = leader.wait_renewed();
    assert_eq!((held.term, leader.events.try_recv().ok()), (1, None));
    let metadata = leader.membership.lease().group_metadata(1).unwrap();
    let mut writer = coordination.writer(TIMEOUT).unwrap();
    writer.commit(&[record("a", "1")], Some(&metadata), TIMEOUT).unwrap();

    // One leaves: exactly one of the others leads.
    let lease = leader.membership.lease().clone();
    assert!(leader.membership.leave(TIMEOUT));
    assert_eq!((lease.held(), lease.group_metadata(1).is_none()), (None, true));
    let lost = leader.events.try_iter().find(|event| matches!(event, MembershipEvent::Lost { .. }));
    assert_eq!(lost, Some(MembershipEvent::Lost { term: 1, reason: LostReason::Revoked }));
    wait::until(PATIENCE, "one of the others to lead", || second.held().or(third.held()));
    let (next, other) = if second.held().is_some() { (second, third) } else { (third, second) };
    next.wait_renewed();
    assert_eq!(other.held(), None);
    // A follower that leaves is not noticed.
    assert!(other.membership.leave(TIMEOUT));
    assert_eq!(next.wait_renewed().term, 1);
}

/// A member that is only said to be gone would hold up the next rebalance until its session expires.
#[test]
fn whoever_has_left_is_no_member_any_more() {
    let cluster = Cluster::shared();
    let coordination = coordination(&cluster.bootstrap(), "elect-leave");
    coordination.ensure_topic(TIMEOUT).unwrap();
    let members = || {
        let mut client = Client::connect(&cluster.bootstrap(), &BTreeMap::new(), "members").unwrap();
        client.describe_group(coordination.name(), TIMEOUT).unwrap().map_or(0, |group| group.members.len())
    };
    let leader = Member::lead(&coordination);
    let follower = Member::follow(&coordination);
    leader.wait_renewed();
    wait::until(PATIENCE, "both members", || (members() == 2).then_some(()));
    assert!(follower.membership.leave(TIMEOUT));
    assert_eq!(members(), 1);
    leader.wait_renewed();
    assert!(leader.membership.leave(TIMEOUT));
    assert_eq!(members(), 0);
}

#[test]
fn metadata_of_an_earlier_generation_commits_nothing() {
    let cluster = Cluster::shared();
    let coordination = coordination(&cluster.bootstrap(), "elect-stale");
    coordination.ensure_topic(TIMEOUT).unwrap();
    let leader = Member::lead(&coordination);
    let old = leader.membership.lease().group_metadata(1).unwrap();
    assert!(leader.membership.leave(TIMEOUT));

    let mut writer = coordination.writer(TIMEOUT).unwrap();
    assert_eq!(writer.commit(&[record("a", "stale")], Some(&old), TIMEOUT), Err(CommitError::NotMember));
    // Nobody has taken over, so this writer goes on.
    assert!(!writer.is_finished());
    let next = Member::lead(&coordination);
    let metadata = next.membership.lease().group_metadata(1).unwrap();
    writer.commit(&[record("a", "fresh")], Some(&metadata), TIMEOUT).unwrap();
    let table = cluster.admin().read_table(coordination.name());
    assert_eq!(table, [("a".to_owned(), "fresh".to_owned())].into());
}

#[test]
fn a_second_writer_fences_the_first() {
    let cluster = Cluster::shared();
    let coordination = coordination(&cluster.bootstrap(), "elect-fence");
    coordination.ensure_topic(TIMEOUT).unwrap();
    let mut first = coordination.writer(TIMEOUT).unwrap();
    first.commit(&[record("a", "first")], None, TIMEOUT).unwrap();
    let mut second = coordination.writer(TIMEOUT).unwrap();
    assert_eq!(first.commit(&[record("a", "late")], None, TIMEOUT), Err(CommitError::Fenced));
    assert!(first.is_finished());
    assert_eq!(first.commit(&[record("a", "later")], None, TIMEOUT), Err(CommitError::Fenced));
    second.commit(&[record("b", "second")], None, TIMEOUT).unwrap();
    let table = cluster.admin().read_table(coordination.name());
    assert_eq!(table, [("a".to_owned(), "first".to_owned()), ("b".to_owned(), "second".to_owned())].into());
}

#[test]
fn a_killed_leader_is_followed_by_another() {
    let cluster = Cluster::shared();
    let coordination = coordination(&cluster.bootstrap(), "elect-kill");
    coordination.ensure_topic(TIMEOUT).unwrap();
    let leader = member_process(&coordination, &cluster.bootstrap());
    wait::until(PATIENCE, "the other process to lead", || {
        (cluster.admin().group_state(coordination.name())? == "Stable").then_some(())
    });
    let follower = Member::follow(&coordination);
    leader.kill();
    follower.wait_for(|event| *event == MembershipEvent::Won { term: 1 });
}

#[test]
fn a_leader_that_was_stopped_too_long_finds_itself_replaced() {
    let cluster = Cluster::shared();
    let coordination = coordination(&cluster.bootstrap(), "elect-stop");
    coordination.ensure_topic(TIMEOUT).unwrap();
    let leader = member_process(&coordination, &cluster.bootstrap());
    wait::until(PATIENCE, "the other process to lead", || {
        (cluster.admin().group_state(coordination.name())? == "Stable").then_some(())
    });
    let follower = Member::follow(&coordination);
    leader.pause();
    follower.wait_for(|event| *event == MembershipEvent::Won { term: 1 });
    leader.resume();
    follower.wait_renewed();
    // The one that came back is a member again, and the leader stays.
    assert_eq!(follower.wait_renewed().term, 1);
    leader.kill();
}

/// Another process that is a member, so that it can be killed and stopped.
fn member_process(coordination: &Coordination, bootstrap: &str) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "coordination::election::a_member_for_others"]);
    command.env("MEMBER_OF", coordination.name()).env("MEMBER_BOOTSTRAP", bootstrap);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Process::start("member", command)
}

/// No test, but the process of [`member_process`].
#[test]
fn a_member_for_others() {
    let (Ok(name), Ok(bootstrap)) = (std::env::var("MEMBER_OF"), std::env::var("MEMBER_BOOTSTRAP")) else { return };
    let application = name.strip_suffix("-partition-autoscaler").unwrap();
    let member = Member::join(&coordination(&bootstrap, application));
    for event in &member.events {
        println!("{event:?}");
    }
}

#[test]
fn only_the_owner_of_partition_0_leads() {
    let cluster = Cluster::shared();
    let coordination = coordination(&cluster.bootstrap(), "elect-grown");
    coordination.ensure_topic(TIMEOUT).unwrap();
    let leader = Member::lead(&coordination);
    let follower = Member::follow(&coordination);
    cluster.admin().grow(&[(coordination.name(), 2)]);
    // The follower gets the new partition; that is a new assignment, and still no leadership.
    follower.wait_for(|event| *event == MembershipEvent::NotLeading);
    assert_eq!((leader.wait_renewed().term, follower.held()), (1, None));
    let error = coordination.ensure_topic(TIMEOUT).unwrap_err();
    assert_eq!(error.class, ErrorClass::Config);
    assert!(error.message.contains("elect-grown-partition-autoscaler has 2 partitions, but has to have 1"), "{error}");
}

#[test]
fn nobody_leads_while_the_topic_is_gone() {
    let cluster = Cluster::shared();
    let coordination = coordination(&cluster.bootstrap(), "elect-deleted");
    coordination.ensure_topic(TIMEOUT).unwrap();
    let leader = Member::lead(&coordination);
    cluster.admin().delete(&[coordination.name()]);
    leader.wait_for(|event| matches!(event, MembershipEvent::Lost { term: 1, .. }));
    assert_eq!(leader.held(), None);
    assert!(coordination.ensure_topic(TIMEOUT).unwrap().created);
    leader.wait_for(|event| *event == MembershipEvent::Won { term: 2 });
    let metadata = leader.membership.lease().group_metadata(2);
    coordination.writer(TIMEOUT).unwrap().commit(&[record("a", "1")], metadata.as_ref(), TIMEOUT).unwrap();
}

#[test]
fn rights_that_are_missing_are_named() {
    let cluster = Cluster::builder().user("sidecar", "secret").start();
    let settings = [
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanism", "PLAIN"),
        ("sasl.username", "sidecar"),
        ("sasl.password", "secret"),
    ];
    let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let coordination = Coordination::new(&cluster.sasl_bootstrap(), &settings, "shop");
    let (admin, name) = (cluster.admin(), "shop-partition-autoscaler");
    let allow = |operation, resource| admin.allow(&[Acl::new("sidecar", operation, resource, name)]);
    let assert_denied = |error: &str, right: &str| {
        assert!(error.contains(&format!("denies {right} {name}")), "{right} is not in: {error}");
    };

    let error = coordination.ensure_topic(TIMEOUT).unwrap_err();
    assert_denied(&error.message, "DESCRIBE on the topic");
    allow(Operation::Describe, Resource::Topic);
    let error = coordination.ensure_topic(TIMEOUT).unwrap_err();
    assert_denied(&error.message, "CREATE on the topic");
    assert_eq!(error.class, ErrorClass::Authorization);
    allow(Operation::Create, Resource::Topic);
    assert!(coordination.ensure_topic(TIMEOUT).unwrap().created);
    let error = coordination.ensure_topic(TIMEOUT).unwrap_err();
    assert_denied(&error.message, "DESCRIBE_CONFIGS on the topic");
    allow(Operation::DescribeConfigs, Resource::Topic);
    coordination.ensure_topic(TIMEOUT).unwrap();

    let member = Member::join(&coordination);
    let told = |event: &MembershipEvent, right: &str| matches!(event, MembershipEvent::Error(error) if error.message.contains(&format!("denies {right}")));
    member.wait_for(|event| told(event, "READ on the group"));
    allow(Operation::Read, Resource::Group);
    // A member it becomes, but the proof needs the right to read the topic.
    member.wait_for(|event| told(event, "READ on the topic"));
    assert_eq!(member.held(), None);

    let mut reader = coordination.reader(None).unwrap();
    let denied = reader.read_to_end(TIMEOUT).unwrap_err().to_string();
    assert_denied(&denied, "READ on the topic");
    allow(Operation::Read, Resource::Topic);
    wait::until(PATIENCE, "the right to be seen", || reader.read_to_end(TIMEOUT).ok());
    member.wait_for(|event| matches!(event, MembershipEvent::Won { .. }));

    let Err(CommitError::Denied(error)) = coordination.writer(TIMEOUT) else { panic!("no right, and yet a writer") };
    assert_denied(&error.message, "WRITE on the transactional id");
    allow(Operation::Write, Resource::TransactionalId);
    let mut writer = coordination.writer(TIMEOUT).unwrap();
    let Err(CommitError::Denied(error)) = writer.commit(&[record("a", "1")], None, TIMEOUT) else { panic!("no right") };
    assert_denied(&error.message, "WRITE on the topic");
    allow(Operation::Write, Resource::Topic);
    let mut writer = coordination.writer(TIMEOUT).unwrap();
    let metadata = member.membership.lease().group_metadata(1).unwrap();
    writer.commit(&[record("a", "1")], Some(&metadata), TIMEOUT).unwrap();
}
