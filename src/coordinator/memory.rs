//! What the coordinator topic adds up to, for leader and followers alike.

use std::collections::BTreeMap;

use super::records::{Baseline, Change, CountedFailure, HistoryRow, Intent, Key, Kind, Outcome, Row, Skipped, StandingIntent};
use crate::kafka::port::TopicId;

/// Rows kept for each type that has a row for each topic.
const MAX_TOPICS: usize = 20_000;
/// Failures kept. Own writers stay far below.
const MAX_FAILURES: usize = 1_000;
/// Failures that a writer keeps.
const KEPT: usize = 100;

/// All rows, and how far the topic was read.
///
/// To write, clone it, change the clone, and commit what [`diff`](Self::diff) tells; the memory itself changes only by what is read back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    rows: BTreeMap<Key, Row>,
    /// Offset of the latest record read.
    read: Option<i64>,
    skipped: BTreeMap<Skipped, u64>,
}

/// What a record did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// A row is new, different or gone.
    Changed,
    /// Nothing is different.
    Unchanged,
    /// The record was read before.
    Repeated,
}

impl Memory {
    /// Takes in the next record. Records are told in the order of their offsets; one that comes again changes nothing.
    pub fn apply(&mut self, offset: i64, key: &[u8], value: Option<&[u8]>) -> Result<Applied, Skipped> {
        if self.read.is_some_and(|read| offset <= read) {
            return Ok(Applied::Repeated);
        }
        self.read = Some(offset);
        let done = Change::decode(key, value).and_then(|change| self.take(change));
        if let Err(skipped) = done {
            let count = self.skipped.entry(skipped).or_default();
            *count = count.saturating_add(1);
        }
        done
    }

    fn take(&mut self, change: Change) -> Result<Applied, Skipped> {
        let changed = match change {
            Change::Delete(key) => self.rows.remove(&key).is_some(),
            Change::Set(row) => {
                let key = row.key();
                if !self.rows.contains_key(&key) && self.is_full(&key) {
                    return Err(Skipped::TooMany);
                }
                self.rows.get(&key) != Some(&row) && {
                    self.rows.insert(key, row);
                    true
                }
            }
        };
        Ok(if changed { Applied::Changed } else { Applied::Unchanged })
    }

    fn is_full(&self, key: &Key) -> bool {
        let like =
            |first: Key, limit| self.rows.range(first..).take(limit).filter(|(other, _)| same_type(key, other)).count() >= limit;
        match key {
            Key::Baseline(_) => like(Key::Baseline(String::new()), MAX_TOPICS),
            Key::FollowsInput(_) => like(Key::FollowsInput(String::new()), MAX_TOPICS),
            Key::RepartitionCount(_) => like(Key::RepartitionCount(String::new()), MAX_TOPICS),
            Key::Failure(_) => like(Key::Failure(String::new()), MAX_FAILURES),
            _ => false, // a closed set of keys
        }
    }

    /// Offset of the latest record read; `None` before the first.
    pub fn read_to(&self) -> Option<i64> {
        self.read
    }

    /// Records passed over, by reason.
    pub fn skipped(&self) -> &BTreeMap<Skipped, u64> {
        &self.skipped
    }

    /// What has to be written so that this memory becomes the wanted one.
    pub fn diff(&self, wanted: &Self) -> Vec<Change> {
        let set = wanted.rows.iter().filter(|(key, row)| self.rows.get(key) != Some(row));
        let gone = self.rows.keys().filter(|key| !wanted.rows.contains_key(key));
        set.map(|(_, row)| Change::Set(row.clone())).chain(gone.map(|key| Change::Delete(key.clone()))).collect()
    }
}

/// What is known.
impl Memory {
    /// Input counts when everything fitted last, by full topic name, for topics that are still the same.
    ///
    /// `ids` are the present ones; a topic that was recreated has no baseline. Where either side knows no id, the name decides.
    pub fn baseline(&self, ids: &BTreeMap<String, TopicId>) -> BTreeMap<String, u32> {
        let rows = self.rows.values().filter_map(|row| if let Row::Baseline(row) = row { Some(row) } else { None });
        let same = rows.filter(|row| match (row.id, ids.get(&row.topic)) {
            (Some(then), Some(now)) => then == *now,
            _ => true,
        });
        same.map(|row| (row.topic.clone(), row.partitions)).collect()
    }

    /// Repartition topics that followed an input, with their ids where they are known: that a leader has seen it, or that they
    /// have more partitions now than it last saw. A topic that was made anew is another one.
    pub fn followers(
        &self,
        partitions: &BTreeMap<String, u32>,
        ids: &BTreeMap<String, TopicId>,
    ) -> BTreeMap<String, Option<TopicId>> {
        let topics = self.rows.values().filter_map(|row| match row {
            Row::FollowsInput { topic, id } => Some((topic, id)),
            Row::RepartitionCount { topic, partitions: then, id } => (partitions.get(topic) > Some(then)).then_some((topic, id)),
            _ => None,
        });
        let same = topics.filter(|(topic, id)| id.zip(ids.get(*topic).copied()).is_none_or(|(then, now)| then == now));
        same.map(|(topic, id)| (topic.clone(), *id)).collect()
    }

    /// The latest plan of this kind.
    pub fn intent(&self, kind: Kind) -> Option<&Intent> {
        if let Row::Intent(row) = self.rows.get(&Key::Intent(kind))? { Some(row) } else { None }
    }

    /// What became of the latest plan of this kind that ended.
    pub fn outcome(&self, kind: Kind) -> Option<&Outcome> {
        if let Row::Outcome(row) = self.rows.get(&Key::Outcome(kind))? { Some(row) } else { None }
    }

    /// A plan that a person started and that has not ended: the next leader has to finish or to drop it.
    ///
    /// A reaction needs no such thing: whoever leads sees the same growth.
    pub fn unfinished(&self) -> Option<&Intent> {
        let ended = self.outcome(Kind::Operator).map(|outcome| outcome.epoch);
        self.intent(Kind::Operator).filter(|intent| Some(intent.epoch) != ended)
    }

    /// The leader's permission to react.
    pub fn standing_intent(&self) -> Option<&StandingIntent> {
        if let Row::StandingIntent(row) = self.rows.get(&Key::StandingIntent)? { Some(row) } else { None }
    }

    /// The highest number that an intent has; 0 before the first. Every new intent takes a higher one.
    pub fn last_epoch(&self) -> u64 {
        let intents = [Kind::Operator, Kind::Reaction].into_iter().filter_map(|kind| self.intent(kind)).map(|row| row.epoch);
        intents.chain(self.standing_intent().map(|row| row.epoch)).max().unwrap_or_default()
    }

    /// Any row of a type that has only one.
    pub fn get(&self, key: &Key) -> Option<&Row> {
        self.rows.get(key)
    }

    /// Failed expansions ever, over all leaders.
    pub fn failures(&self) -> u64 {
        self.counted().map(|row| row.number).max().unwrap_or_default()
    }

    fn counted(&self) -> impl Iterator<Item = &CountedFailure> {
        self.rows.values().filter_map(|row| if let Row::Failure(row) = row { Some(row) } else { None })
    }

    /// What happened, oldest first.
    pub fn history(&self) -> Vec<&HistoryRow> {
        let rows = self.rows.values().filter_map(|row| if let Row::History(row) = row { Some(row) } else { None });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|row| row.number);
        rows
    }
}

/// Changes to a clone, to be written.
impl Memory {
    /// A row is so from now on.
    pub fn set(&mut self, row: Row) {
        self.rows.insert(row.key(), row);
    }

    /// These are the inputs for which everything fits; baselines of other topics are gone.
    pub fn set_baseline(&mut self, inputs: impl IntoIterator<Item = Baseline>) {
        self.rows.retain(|key, _| !matches!(key, Key::Baseline(_)));
        inputs.into_iter().for_each(|input| self.set(Row::Baseline(input)));
    }

    /// These are the repartition topics that followed an input; of others it is not known any more.
    pub fn set_followers(&mut self, topics: impl IntoIterator<Item = (String, Option<TopicId>)>) {
        self.rows.retain(|key, _| !matches!(key, Key::FollowsInput(_)));
        topics.into_iter().for_each(|(topic, id)| self.set(Row::FollowsInput { topic, id }));
    }

    /// Another topology: what was learned with the former one does not hold any more.
    pub fn forget_topology(&mut self) {
        let learned =
            |key: &Key| matches!(key, Key::Baseline(_) | Key::FollowsInput(_) | Key::RepartitionCount(_) | Key::Topology);
        self.rows.retain(|key, _| !learned(key));
    }

    /// Counts a failure, unless this mismatch was counted before. Tells whether it was new.
    pub fn count_failure(&mut self, mismatch: &str, at: u64) -> bool {
        if self.rows.contains_key(&Key::Failure(mismatch.to_owned())) {
            return false;
        }
        let number = self.failures().saturating_add(1);
        self.set(Row::Failure(CountedFailure { mismatch: mismatch.to_owned(), number, at }));
        let mut numbered: Vec<(u64, Key)> = self.counted().map(|row| (row.number, Key::Failure(row.mismatch.clone()))).collect();
        numbered.sort();
        for (_, key) in numbered.iter().rev().skip(KEPT) {
            self.rows.remove(key);
        }
        true
    }

    /// What failed so far is over. The same mismatch is another failure from now on; how many there were stays known.
    pub fn close_failures(&mut self) {
        let Some(last) = self.counted().max_by_key(|row| row.number).cloned() else { return };
        self.rows.retain(|key, _| !matches!(key, Key::Failure(_)));
        self.set(Row::Failure(CountedFailure { mismatch: String::new(), ..last }));
    }

    /// Adds to the history; the oldest entry makes room.
    pub fn add_history(&mut self, at: u64, event: &str, message: &str) {
        let number = self.history().last().map_or(0, |row| row.number.wrapping_add(1));
        self.set(Row::History(HistoryRow { number, at, event: event.to_owned(), message: message.to_owned() }));
    }
}

fn same_type(key: &Key, other: &Key) -> bool {
    std::mem::discriminant(key) == std::mem::discriminant(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::records::{Fingerprint, HISTORY_SLOTS, Origin, Verdict};

    /// A log, as one leader after another writes it.
    #[derive(Default)]
    struct Log(Vec<(Vec<u8>, Option<Vec<u8>>)>);

    impl Log {
        /// A process that starts now.
        fn read(&self) -> Memory {
            let mut memory = Memory::default();
            for (offset, (key, value)) in (0..).zip(&self.0) {
                memory.apply(offset, key, value.as_deref()).unwrap();
            }
            memory
        }

        fn change(&mut self, change: impl FnOnce(&mut Memory)) -> Memory {
            let memory = self.read();
            let mut wanted = memory.clone();
            change(&mut wanted);
            let origin = Origin { host: String::new(), username: String::new(), timestamp: 0 };
            self.0.extend(memory.diff(&wanted).iter().map(|change| change.encode(&origin)));
            let read = self.read();
            assert_eq!(read.rows, wanted.rows, "what is read back is what was wanted");
            assert_eq!(read.diff(&wanted), []);
            read
        }
    }

    fn intent(kind: Kind, epoch: u64) -> Row {
        let targets = BTreeMap::from([("orders".to_owned(), 6)]);
        Row::Intent(Intent { kind, epoch, fingerprint: Fingerprint(1), targets, topic_ids: BTreeMap::new() })
    }

    fn outcome(kind: Kind, epoch: u64) -> Row {
        Row::Outcome(Outcome { kind, epoch, result: Verdict::Expanded, errors: BTreeMap::new(), took_ms: 1 })
    }

    #[test]
    fn a_baseline_holds_for_the_topic_it_was_seen_of() {
        let row = |topic: &str, id: Option<u128>| Baseline { topic: topic.into(), partitions: 3, id: id.map(TopicId) };
        let mut log = Log::default();
        log.change(|wanted| wanted.set_baseline([row("gone", Some(9))]));
        let memory = log.change(|wanted| wanted.set_baseline([row("same", Some(1)), row("other", Some(2)), row("old", None)]));
        let ids = [("same", 1), ("other", 3), ("old", 4)].map(|(topic, id)| (topic.to_owned(), TopicId(id)));
        let expected = BTreeMap::from([("same".to_owned(), 3), ("old".to_owned(), 3)]);
        assert_eq!(memory.baseline(&BTreeMap::from(ids)), expected);

        let followers = [("kept", Some(TopicId(1))), ("remade", Some(TopicId(1))), ("no-id", None)];
        log.change(|wanted| wanted.set_followers([("earlier".to_owned(), None)]));
        log.change(|wanted| wanted.set_followers(followers.map(|(topic, id)| (topic.to_owned(), id))));
        for topic in ["grown", "same", "other"] {
            let row = Row::RepartitionCount { topic: topic.into(), partitions: 3, id: Some(TopicId(1)) };
            log.change(|wanted| wanted.set(row));
        }
        let partitions = BTreeMap::from([("grown", 6), ("same", 3), ("other", 6)].map(|(topic, n)| (topic.to_owned(), n)));
        let ids = [("grown", 1), ("same", 1), ("other", 2), ("kept", 1), ("remade", 2), ("no-id", 3)];
        let ids = BTreeMap::from(ids.map(|(topic, id)| (topic.to_owned(), TopicId(id))));
        let followed = [("grown", Some(TopicId(1))), ("kept", Some(TopicId(1))), ("no-id", None)];
        assert_eq!(log.read().followers(&partitions, &ids), followed.map(|(topic, id)| (topic.to_owned(), id)).into());
        let memory = log.change(Memory::forget_topology);
        assert_eq!((memory.baseline(&BTreeMap::new()).len(), memory.followers(&partitions, &ids).len()), (0, 0));
    }

    #[test]
    fn a_plan_is_unfinished_until_its_own_outcome_is_written() {
        let mut log = Log::default();
        log.change(|wanted| wanted.set(intent(Kind::Operator, 2)));
        log.change(|wanted| wanted.set(outcome(Kind::Reaction, 2)));
        assert_eq!(log.read().unfinished().map(|intent| intent.epoch), Some(2));
        log.change(|wanted| wanted.set(outcome(Kind::Operator, 2)));
        assert_eq!(log.read().unfinished(), None);
        log.change(|wanted| wanted.set(intent(Kind::Reaction, 5)));
        assert_eq!(log.read().unfinished(), None, "a reaction is seen anew by whoever leads");
        log.change(|wanted| wanted.set(intent(Kind::Operator, 3)));
        assert_eq!(log.read().unfinished().map(|intent| intent.epoch), Some(3));
        assert_eq!(log.read().last_epoch(), 5);
        let standing = StandingIntent { epoch: 6, fingerprint: Fingerprint(1), member: "a".into() };
        let memory = log.change(|wanted| wanted.set(Row::StandingIntent(standing.clone())));
        assert_eq!((memory.last_epoch(), memory.standing_intent()), (6, Some(&standing)));
    }

    #[test]
    fn a_failure_counts_once_over_all_leaders_until_it_is_over() {
        let mut log = Log::default();
        for n in 0..130_u64 {
            log.change(|wanted| assert!(wanted.count_failure(&format!("mismatch {n}"), n)));
            log.change(|wanted| assert!(!wanted.count_failure(&format!("mismatch {n}"), n + 1), "the next leader"));
        }
        let memory = log.read();
        assert_eq!((memory.failures(), memory.counted().count()), (130, KEPT));
        let closed = log.change(Memory::close_failures);
        assert_eq!((closed.failures(), closed.counted().count()), (130, 1));
        assert_eq!(log.change(Memory::close_failures), closed, "nothing to write");
        log.change(|wanted| assert!(wanted.count_failure("mismatch 129", 200), "it failed again"));
        assert_eq!(log.read().failures(), 131);
    }

    #[test]
    fn the_history_is_a_ring_in_order() {
        let mut log = Log::default();
        for n in 0..130 {
            log.change(|wanted| wanted.add_history(n, "expanded", "in words"));
        }
        let memory = log.read();
        let times: Vec<u64> = memory.history().iter().map(|row| row.at).collect();
        assert_eq!(times, (130 - HISTORY_SLOTS..130).collect::<Vec<_>>());
    }

    #[test]
    fn repeated_and_unknown_records_change_nothing() {
        let mut log = Log::default();
        let memory = log.change(|wanted| wanted.set(Row::Flag { enabled: true, since: 1 }));
        let (key, value) = &log.0[0];
        let mut again = memory.clone();
        assert_eq!(again.apply(0, key, None), Ok(Applied::Repeated), "an earlier offset is no news");
        assert_eq!(again, memory);
        assert_eq!(again.apply(1, key, value.as_deref()), Ok(Applied::Unchanged));
        assert_eq!(again.apply(2, b"garbage", None), Err(Skipped::NotAKey));
        assert_eq!(again.apply(3, br#"[1,"set-config","x"]"#, None), Err(Skipped::UnknownType));
        assert_eq!(again.apply(4, b"garbage", Some(b"{}")), Err(Skipped::NotAKey));
        assert_eq!(again.skipped(), &BTreeMap::from([(Skipped::NotAKey, 2), (Skipped::UnknownType, 1)]));
        assert_eq!((again.rows.clone(), again.read_to()), (memory.rows, Some(4)));
        assert_eq!(again.apply(5, key, None), Ok(Applied::Changed));
        assert_eq!(again.apply(6, key, None), Ok(Applied::Unchanged));
    }

    #[test]
    fn a_flood_fills_its_own_type_only() {
        let mut memory = Memory::default();
        let origin = Origin { host: String::new(), username: String::new(), timestamp: 0 };
        let limit = i64::try_from(MAX_FAILURES).unwrap();
        let failure = |mismatch: String, number| Row::Failure(CountedFailure { mismatch, number, at: 0 });
        for n in 0..limit + 10 {
            let row = failure(format!("mismatch {n}"), 0);
            let (key, value) = Change::Set(row).encode(&origin);
            let applied = memory.apply(n, &key, value.as_deref());
            assert_eq!(applied, if n < limit { Ok(Applied::Changed) } else { Err(Skipped::TooMany) });
        }
        let known = failure("mismatch 1".into(), 1);
        let other = Row::Flag { enabled: true, since: 0 };
        for (offset, row) in (2 * limit..).zip([known, other]) {
            let (key, value) = Change::Set(row).encode(&origin);
            assert_eq!(memory.apply(offset, &key, value.as_deref()), Ok(Applied::Changed));
        }
    }
}
