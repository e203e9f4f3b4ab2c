use super::*;
use crate::kafka::port::GroupMember;

/// Writes what the members would write.
#[derive(Clone, Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn i16(mut self, n: i16) -> Self {
        self.0.extend(n.to_be_bytes());
        self
    }
    fn i32(mut self, n: i32) -> Self {
        self.0.extend(n.to_be_bytes());
        self
    }
    fn i64(mut self, n: i64) -> Self {
        self.0.extend(n.to_be_bytes());
        self
    }
    fn text(mut self, text: &str) -> Self {
        self = self.i16(text.len() as i16);
        self.0.extend(text.as_bytes());
        self
    }
    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
    fn sized(self, bytes: &[u8]) -> Self {
        self.i32(bytes.len() as i32).raw(bytes)
    }
    fn task(self, version: i32, subtopology: i32, partition: i32, topology: &str) -> Self {
        let bytes = self.i32(subtopology).i32(partition);
        if version < 10 {
            return bytes;
        }
        let units: Vec<u16> = topology.encode_utf16().collect();
        units.iter().fold(bytes.i32(units.len() as i32), |bytes, unit| bytes.i16(*unit as i16))
    }
}

/// Active 0_0 and 0_1 of `orders`, standby 1_0 of `shop-k-repartition`, one host.
fn assignment_bytes(version: i32, error_code: i32, next: i64, topology: &str) -> Vec<u8> {
    let mut info = Bytes::default().i32(version);
    if version >= 3 {
        info = info.i32(version);
    }
    info = info.i32(2).task(version, 0, 0, topology).task(version, 0, 1, topology);
    info = info.i32(1).task(version, 1, 0, topology).i32(1).text("shop-k-repartition").i32(0);
    info = match version {
        1 => info,
        2..=4 => info.i32(1).text("host").i32(8080).i32(1).text("orders").i32(0),
        _ => {
            let hosts = |bytes: Bytes| bytes.i32(1).text("host").i32(8080).i32(1).i32(0).i32(0);
            let info = hosts(info.i32(1).i32(0).text("orders"));
            if version >= 6 { hosts(info) } else { info }
        }
    };
    if version >= 4 {
        info = info.i32(error_code);
    }
    if version >= 7 {
        info = info.i64(next);
    }
    Bytes::default().i16(3).i32(1).text("orders").i32(2).i32(1).i32(0).sized(&info.0).0
}

fn subscription_bytes(version: i32) -> Vec<u8> {
    let mut info = Bytes::default().i32(version);
    if version >= 3 {
        info = info.i32(11);
    }
    info = info.raw(&[7; 16]);
    info = match version {
        1 => info.i32(1).i32(0).i32(0).i32(0),
        2..=6 => info.i32(1).i32(0).i32(0).i32(0).sized(b"host:1"),
        7..=9 => info.sized(b"host:1").i32(1).i32(0).i32(1).i32(0).i64(-2),
        _ => info.sized(b"host:1").i32(2).i32(0).i32(0).i64(-2).i16(-1).i32(0).i32(1).i64(9).text("named"),
    };
    if version >= 8 {
        info = info.raw(&[1]);
    }
    if version >= 9 {
        info = info.i32(4);
    }
    if version >= 11 {
        info = info.i32(1).sized(b"zone").sized(b"a");
    }
    // Owned partitions, generation and rack follow the user data and do not matter.
    Bytes::default().i16(3).i32(2).text("orders").text("shop-k-repartition").sized(&info.0).i32(0).i32(5).i16(-1).0
}

#[test]
fn reads_every_version_of_an_assignment() {
    for version in 1..=11 {
        let topology = if version >= 10 { "named" } else { "" };
        let read = assignment(&assignment_bytes(version, 0, 1_700_000_000_000, topology)).unwrap().unwrap();
        let task = |subtopology, partition| TaskId { topology: topology.into(), subtopology, partition };
        assert_eq!(read.partitions, [("orders".to_owned(), 0), ("orders".to_owned(), 1)], "version {version}");
        assert_eq!(read.active, [task(0, 0), task(0, 1)], "version {version}");
        assert_eq!(read.standby, BTreeMap::from([(task(1, 0), vec![("shop-k-repartition".to_owned(), 0)])]));
        assert_eq!(read.error_code, 0);
        assert_eq!(read.next_rebalance_ms, (version >= 7).then_some(1_700_000_000_000), "version {version}");
    }
    let read = assignment(&assignment_bytes(11, 0, i64::MAX, "")).unwrap().unwrap();
    assert_eq!(read.next_rebalance_ms, None);
    assert_eq!(assignment(&[]), Ok(None));
}

#[test]
fn reads_every_version_of_a_subscription() {
    for version in 1..=11 {
        let read = subscription(&subscription_bytes(version)).unwrap();
        assert_eq!(read.topics, ["orders", "shop-k-repartition"], "version {version}");
        assert_eq!(read.version, version);
        assert_eq!(read.process_id, Some(u128::from_be_bytes([7; 16])), "version {version}");
        assert_eq!(read.error_code, if version >= 9 { 4 } else { 0 }, "version {version}");
    }
}

#[test]
fn a_newer_version_is_told_from_garbage() {
    let info = Bytes::default().i32(12).i32(12).0;
    let newer = Bytes::default().i16(9).i32(0).sized(&info).0;
    assert_eq!(assignment(&newer), Err(Unreadable::TooNew(12)));
    let read = subscription(&newer).unwrap();
    assert_eq!((read.version, read.process_id), (12, None));
    let zero = Bytes::default().i16(3).i32(0).sized(&Bytes::default().i32(0).0).0;
    assert_eq!(assignment(&zero), Err(Unreadable::Invalid("the version of the assignment")));
    assert_eq!(subscription(&zero), Err(Unreadable::Invalid("the version of the subscription")));
}

/// Every truncation is an error, and no change of any byte is worse than an error or another answer.
#[test]
fn garbage_is_an_error_value() {
    for version in 1..=11 {
        let whole = assignment_bytes(version, 0, 0, "n");
        for length in 1..whole.len() {
            assert!(assignment(&whole[..length]).is_err(), "version {version}, first {length} bytes");
        }
        for position in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[position] = value;
                let _ = assignment(&changed);
                let mut changed = subscription_bytes(version);
                if let Some(byte) = changed.get_mut(position) {
                    *byte = value;
                }
                let _ = subscription(&changed);
            }
        }
    }
    let huge = Bytes::default().i16(3).i32(i32::MAX).0;
    assert_eq!(assignment(&huge), Err(Unreadable::Truncated("the assigned partitions")));
    assert_eq!(subscription(&huge), Err(Unreadable::Truncated("the topics")));
}

fn group(assignments: impl IntoIterator<Item = Vec<u8>>) -> Group {
    let member = |assignment| GroupMember {
        id: "m".into(),
        client_id: "c".into(),
        host: "/127.0.0.1".into(),
        metadata: Vec::new(),
        assignment,
    };
    Group {
        state: "Stable".into(),
        protocol_type: "consumer".into(),
        protocol: "stream".into(),
        members: assignments.into_iter().map(member).collect(),
    }
}

#[test]
fn counts_the_tasks_of_a_group() {
    let none = Vec::new();
    let read = tasks(&group([assignment_bytes(11, 0, i64::MAX, ""), none])).unwrap();
    assert_eq!(read.counts, BTreeMap::from([("0".into(), 2), ("1".into(), 1)]));
    assert_eq!(read.sources["1"], BTreeSet::from(["shop-k-repartition".to_owned()]));
    // A standby owns nothing.
    assert_eq!(read.assigned, BTreeMap::from([("orders".into(), BTreeSet::from([0, 1]))]));
    assert_eq!((read.error_code, read.in_transition), (0, false));

    let moving = tasks(&group([assignment_bytes(11, 0, 0, "")])).unwrap();
    assert!(moving.in_transition);

    let named = tasks(&group([assignment_bytes(10, 0, i64::MAX, "named")])).unwrap();
    assert_eq!(named.counts.keys().collect::<Vec<_>>(), ["named/0", "named/1"]);
}

#[test]
fn an_error_assignment_counts_no_tasks() {
    let info = Bytes::default().i32(11).i32(11).i32(0).i32(0).i32(0).i32(0).i32(0).i32(1).i64(i64::MAX).0;
    let error = Bytes::default().i16(3).i32(0).sized(&info).0;
    assert_eq!(tasks(&group([error])), Ok(Tasks { error_code: 1, ..Tasks::default() }));
}

#[test]
fn a_misreading_is_noticed() {
    let info = Bytes::default().i32(1).i32(1).task(1, 0, 5, "").i32(0).0;
    let bytes = Bytes::default().i16(0).i32(1).text("orders").i32(1).i32(2).sized(&info).0;
    assert_eq!(tasks(&group([bytes])), Err(Unreadable::Invalid("the pairing of tasks and partitions")));
    let info = Bytes::default().i32(1).i32(0).i32(0).0;
    let bytes = Bytes::default().i16(0).i32(1).text("orders").i32(1).i32(2).sized(&info).0;
    assert_eq!(assignment(&bytes), Err(Unreadable::Invalid("the number of active tasks")));
}
