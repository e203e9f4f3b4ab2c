//! Reading the coordinator topic.

use kit::Cluster;
use kit::wait::{self, PATIENCE};
use partition_autoscaler::kafka::coordination::{LogError, LogReader, LogRecord};

use super::{TIMEOUT, coordination, record};

fn texts(records: &[LogRecord]) -> Vec<(String, Option<String>)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    records.iter().map(|record| (text(&record.key), record.value.as_deref().map(text))).collect()
}

fn pair(key: &str, value: &str) -> (String, Option<String>) {
    (key.to_owned(), Some(value.to_owned()))
}

#[test]
fn everything_committed_is_read_in_order() {
    let cluster = Cluster::shared();
    let coordination = coordination(&cluster.bootstrap(), "log-order");
    let topic = coordination.ensure_topic(TIMEOUT).unwrap();
    let mut reader = coordination.reader(topic.id).unwrap();
    assert_eq!(reader.read_to_end(TIMEOUT), Ok(Vec::new()));
    assert_eq!(reader.read_to_end(TIMEOUT), Ok(Vec::new()), "the end is told again");

    let mut writer = coordination.writer(TIMEOUT).unwrap();
    writer.commit(&[record("a", "1"), record("b", "1")], None, TIMEOUT).unwrap();
    let last = writer.commit(&[(b"a".to_vec(), None)], None, TIMEOUT).unwrap();
    let read = reader.read_through(last, TIMEOUT).unwrap();
    assert_eq!(texts(&read), [pair("a", "1"), pair("b", "1"), ("a".to_owned(), None)]);
    assert_eq!(read.last().map(|record| record.offset), Some(last));
    assert_eq!(reader.read_through(last, TIMEOUT), Ok(Vec::new()), "it was read before");

    // At no call is the end of an earlier time taken for the present one.
    for round in 0..10 {
        let value = round.to_string();
        writer.commit(&[record("c", &value)], None, TIMEOUT).unwrap();
        assert_eq!(texts(&reader.read_to_end(TIMEOUT).unwrap()), [pair("c", &value)]);
    }
    writer.commit(&[record("d", "1")], None, TIMEOUT).unwrap();
    let polled = wait::until(PATIENCE, "the record", || Some(reader.poll(TIMEOUT).unwrap()).filter(|read| !read.is_empty()));
    assert_eq!(texts(&polled), [pair("d", "1")]);
    let from_start = coordination.reader(topic.id).unwrap().read_to_end(TIMEOUT).unwrap();
    assert_eq!(from_start.len(), 14);
}

#[test]
fn an_uncommitted_record_is_not_read() {
    let cluster = Cluster::shared();
    let coordination = coordination(&cluster.bootstrap(), "log-open");
    let topic = coordination.ensure_topic(TIMEOUT).unwrap();
    let mut first = coordination.writer(TIMEOUT).unwrap();
    first.commit(&[record("a", "1")], None, TIMEOUT).unwrap();
    // Its metadata is of a group that nobody is in, so the transaction is aborted after the record was sent.
    let stray = super::Member::lead(&coordination);
    let metadata = stray.membership.lease().group_metadata(1).unwrap();
    assert!(stray.membership.leave(TIMEOUT));
    first.commit(&[record("a", "aborted")], Some(&metadata), TIMEOUT).unwrap_err();
    let last = first.commit(&[record("b", "1")], None, TIMEOUT).unwrap();
    let mut reader = coordination.reader(topic.id).unwrap();
    assert_eq!(texts(&reader.read_through(last, TIMEOUT).unwrap()), [pair("a", "1"), pair("b", "1")]);
}

#[test]
fn a_topic_that_was_deleted_is_noticed_and_read_anew() {
    let cluster = Cluster::shared();
    let coordination = coordination(&cluster.bootstrap(), "log-deleted");
    let topic = coordination.ensure_topic(TIMEOUT).unwrap();
    let mut writer = coordination.writer(TIMEOUT).unwrap();
    let last = writer.commit(&[record("a", "old")], None, TIMEOUT).unwrap();
    let mut reader = coordination.reader(topic.id).unwrap();
    reader.read_through(last, TIMEOUT).unwrap();

    cluster.admin().delete(&[coordination.name()]);
    wait::until(PATIENCE, "the deletion to be noticed", || restarted(&mut reader).then_some(()));
    assert!(coordination.ensure_topic(TIMEOUT).unwrap().created);
    coordination.writer(TIMEOUT).unwrap().commit(&[record("a", "new")], None, TIMEOUT).unwrap();
    let read = wait::until(PATIENCE, "the new topic to be read", || {
        reader.read_to_end(TIMEOUT).ok().filter(|records| !records.is_empty())
    });
    assert_eq!(texts(&read), [pair("a", "new")]);
}

fn restarted(reader: &mut LogReader) -> bool {
    match reader.poll(TIMEOUT / 30) {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error, LogError::Restarted);
            true
        }
    }
}

#[test]
fn a_topic_that_was_recreated_at_once_is_known_by_its_id() {
    let cluster = Cluster::shared();
    let coordination = coordination(&cluster.bootstrap(), "log-recreated");
    let old = coordination.ensure_topic(TIMEOUT).unwrap().id.unwrap();
    let mut writer = coordination.writer(TIMEOUT).unwrap();
    let last = writer.commit(&[record("a", "old")], None, TIMEOUT).unwrap();
    let mut reader = coordination.reader(Some(old)).unwrap();
    assert_eq!(texts(&reader.read_through(last, TIMEOUT).unwrap()), [pair("a", "old")]);
    assert_eq!(reader.confirm(old), Ok(()));

    cluster.admin().delete(&[coordination.name()]);
    let new = coordination.ensure_topic(TIMEOUT).unwrap().id.unwrap();
    assert_eq!(reader.confirm(new), Err(LogError::Restarted));
    assert_eq!(reader.confirm(new), Ok(()));
    let mut writer = coordination.writer(TIMEOUT).unwrap();
    writer.commit(&[record("b", "new")], None, TIMEOUT).unwrap();
    let read = wait::until(PATIENCE, "the new topic to be read", || {
        reader.read_to_end(TIMEOUT).ok().filter(|records| !records.is_empty())
    });
    assert_eq!(texts(&read), [pair("b", "new")]);
}
