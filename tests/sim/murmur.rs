//! The default partitioner of Java's client, written once more.
//!
//! Owns the hash as the clients of the simulation use it. Never calls the library's: both must agree.

use punctual::position::Partition;

/// Returns the partition of a record with this key.
pub(crate) fn java_partition(key: &[u8], partitions: u32) -> Partition {
    const M: u32 = 0x5bd1_e995;
    let mut h = 0x9747_b28c_u32 ^ u32::try_from(key.len()).expect("keys are short");
    let mut rest = key;
    while let [a, b, c, d, behind @ ..] = rest {
        let mut k = u32::from_le_bytes([*a, *b, *c, *d]).wrapping_mul(M);
        k ^= k >> 24;
        h = h.wrapping_mul(M) ^ k.wrapping_mul(M);
        rest = behind;
    }
    for (at, byte) in rest.iter().enumerate() {
        h ^= u32::from(*byte) << (8 * at);
    }
    if !rest.is_empty() {
        h = h.wrapping_mul(M);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    h ^= h >> 15;
    Partition((h & 0x7fff_ffff) % partitions)
}
