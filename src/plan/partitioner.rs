//! Kafka's default partitioner, to tell whether growing a topic moves its keys.
//!
//! The default partitioner puts a key on `murmur2(key) mod count` (`BuiltInPartitioner#partitionForKey`), so another count sends
//! most keys elsewhere, away from the state that was built for them. A static partitioner keeps a key where it is (KIP-878).

use std::collections::BTreeMap;

/// Distinct keys that are needed for a judgement: with fewer, another partitioner could agree by accident.
const ENOUGH: usize = 10;

/// How the keys of a topic are spread over its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Every key lies where the default partitioner puts it: they move when the topic grows.
    MoveWhenGrown,
    /// Some key lies elsewhere: something else than the default partitioner writes the topic.
    Placed,
    /// It cannot be told; the sentence says why.
    Unknown(String),
}

/// Judges records by key and partition, read from a topic with this many partitions.
pub fn judge(records: &[(Vec<u8>, i32)], partitions: u32) -> Keys {
    if partitions < 2 {
        return Keys::Unknown("a topic with one partition does not show its partitioner".to_owned());
    }
    let keys: BTreeMap<&[u8], i32> = records.iter().map(|(key, partition)| (key.as_slice(), *partition)).collect();
    if keys.iter().any(|(key, partition)| i64::from(*partition) != i64::from(default_partition(key, partitions))) {
        return Keys::Placed;
    }
    match keys.len() {
        0 => Keys::Unknown("it has no records with keys".to_owned()),
        n if n < ENOUGH => Keys::Unknown(format!("{n} distinct keys are too few to tell")),
        _ => Keys::MoveWhenGrown,
    }
}

/// The partition of a key under Kafka's default partitioner; `partitions` is at least 1.
pub fn default_partition(key: &[u8], partitions: u32) -> u32 {
    (murmur2(key) & 0x7fff_ffff) % partitions.max(1)
}

/// `org.apache.kafka.common.utils.Utils#murmur2`.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    const R: u32 = 24;
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut hash = 0x9747_b28c ^ length;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> R;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0_u32, |tail, byte| tail << 8 | u32::from(*byte));
        hash = (hash ^ tail).wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of Kafka's own `UtilsTest#testMurmur2`.
    #[test]
    fn hashes_like_kafka() {
        let values: [(&str, i32); 6] = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ];
        for (key, hash) in values {
            assert_eq!(murmur2(key.as_bytes()), hash.cast_unsigned(), "{key}");
        }
    }

    fn records(partition_of: impl Fn(&[u8]) -> u32) -> Vec<(Vec<u8>, i32)> {
        let keys = (0..40).map(|n| format!("customer-{n}").into_bytes());
        keys.map(|key| (key.clone(), i32::try_from(partition_of(&key)).unwrap())).collect()
    }

    #[test]
    fn keys_move_only_if_all_lie_where_the_default_partitioner_puts_them() {
        let mut by_default = records(|key| default_partition(key, 6));
        assert_eq!(judge(&by_default, 6), Keys::MoveWhenGrown);
        let placed = records(|key| u32::from(key[key.len() - 1]) % 6);
        assert_eq!(judge(&placed, 6), Keys::Placed);
        by_default.truncate(9);
        assert!(matches!(judge(&by_default, 6), Keys::Unknown(_)));
        assert!(matches!(judge(&[], 6), Keys::Unknown(_)));
        assert!(matches!(judge(&records(|_| 0), 1), Keys::Unknown(_)));
    }
}
