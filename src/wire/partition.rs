//! Which partition a run belongs to.
//!
//! Owns murmur2 as Java's default partitioner has it. Keeps: the partition of an identity is the one that a Java producer
//! gives a record with the key `tenant/run`, for ever; state stands where this function says.

use crate::position::Partition;
use crate::timer::identity::RunKey;

const SEED: u32 = 0x9747_b28c;
const MULTIPLIER: u32 = 0x5bd1_e995;
const SHIFT: u32 = 24;
/// Java takes the hash for a signed number and clears the sign.
const POSITIVE_MASK: u32 = 0x7fff_ffff;

/// Returns the partition of the run in a topic with so many partitions.
///
/// # Panics
/// When `partitions` is 0: no topic has none.
pub fn partition_of(run: &RunKey, partitions: u32) -> Partition {
    assert!(partitions > 0, "a topic has at least one partition");
    let hash = murmur2(run.to_string().as_bytes());
    Partition((hash & POSITIVE_MASK) % partitions)
}

/// `org.apache.kafka.common.utils.Utils.murmur2`.
fn murmur2(data: &[u8]) -> u32 {
    // Kafka's lengths are 32-bit; a key is far shorter.
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut hash = SEED ^ length;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        k ^= k >> SHIFT;
        hash = hash.wrapping_mul(MULTIPLIER) ^ k.wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer::identity::{Run, Tenant};

    /// The vectors of Kafka's own `UtilsTest.testMurmur2`.
    #[test]
    fn the_hash_is_that_of_java() {
        let vectors = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
            // Made with kafka-clients 4.4.
            ("", 275_646_681),
            ("a", -1_563_381_124),
            ("acme/bestellung-äöü-☃", -193_243_962),
        ];
        for (key, hash) in vectors {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }

    /// `Utils.toPositive(Utils.murmur2(key)) % partitions` of kafka-clients 4.4, for 12, 64, 7 and 1000 partitions.
    #[test]
    fn the_partition_is_that_of_javas_default_partitioner() {
        let long = "x".repeat(512);
        let vectors = [
            ("default", "r", [6, 38, 6, 902]),
            ("acme", "order-42", [9, 61, 1, 381]),
            ("default", "order-42", [0, 4, 1, 668]),
            ("tenant-1", "run/with/slash", [5, 5, 3, 509]),
            ("acme", "bestellung-äöü-☃", [2, 6, 0, 686]),
            ("acme", &long, [6, 14, 5, 22]),
        ];
        for (tenant, run, expected) in vectors {
            let run = RunKey { tenant: Tenant::parse(tenant).unwrap(), run: Run::parse(run).unwrap() };
            let found = [12, 64, 7, 1000].map(|partitions| partition_of(&run, partitions));
            assert_eq!(found, expected.map(Partition), "{run}");
            assert_eq!(partition_of(&run, 1), Partition(0), "{run}");
        }
    }
}
