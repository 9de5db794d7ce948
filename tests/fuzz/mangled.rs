//! Bytes that were valid once.
//!
//! Owns the ways in which a record is damaged or forged: bits flip, ends are lost, pieces move, lengths are blown up, nesting
//! grows, numbers become huge. Keeps: a mangled input is no longer than [`BYTES_MAX`], or the tests would only be slow.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

/// Longest input.
pub(crate) const BYTES_MAX: usize = 64 * 1024;

/// Pieces that decoders stumble over: lengths and numbers at the limits of their types, nesting, halves of characters, and
/// empty parts of our own messages, which cost two bytes each.
const PIECES: [&[u8]; 34] = [
    b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
    b"\xFF\xFF\xFF\xFF\x0F",
    b"\xFF\xFF\xFF\xFF\x07",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
    b"\x52\x00",
    b"\x6A\x00",
    b"\x72\x00",
    b"\x0A\x00",
    b"\x0B",
    b"\x0C",
    b"\x1A\x02\x1A\x00",
    b"\x00\xFF",
    b"\x00\x01",
    b"\x00\x00",
    b"[",
    b"{\"\":",
    b"{\"arm\":",
    b"{},",
    b"0,",
    b"\"\",",
    b"null",
    b"-0",
    b"1e400",
    b"1E-400",
    b"18446744073709551616",
    b"-9223372036854775809",
    b"9007199254740993",
    b"NaN",
    b"\"\\ud800\"",
    b"\xED\xA0\x80",
    b"\xEF\xBB\xBF",
    b"- ",
    b"? ",
    b"&a *a\n",
];

/// A change of bytes. Places are shares of the length, so that they fit whatever the changes before have left.
#[derive(Clone, Debug)]
enum Change {
    Flip { at: u16, bit: u8 },
    Set { at: u16, byte: u8 },
    Cut { at: u16 },
    Remove { at: u16, bytes: u16 },
    Repeat { at: u16, bytes: u8, times: u16 },
    Insert { at: u16, piece: usize, times: u16 },
    Splice { at: u16, from: u16 },
}

/// Returns the inputs of `valid`, damaged by up to eight changes; one in eight stays as it was.
pub(crate) fn mangled(valid: impl Strategy<Value = Vec<u8>> + Clone) -> impl Strategy<Value = Bytes> {
    let changes = prop_oneof![7 => vec(change(), 1..8), 1 => Just(Vec::new())];
    (valid.clone(), valid, changes).prop_map(|(mut bytes, other, changes)| {
        for change in &changes {
            change.apply(&mut bytes, &other);
            bytes.truncate(BYTES_MAX);
        }
        Bytes::from(bytes)
    })
}

/// Returns bytes that were never valid: random ones, and pieces in a row.
pub(crate) fn arbitrary() -> impl Strategy<Value = Bytes> {
    let pieces = vec((0..PIECES.len(), times()), 0..12).prop_map(|pieces| {
        let mut bytes: Vec<u8> = pieces.iter().flat_map(|(piece, times)| PIECES[*piece].repeat(*times)).collect();
        bytes.truncate(BYTES_MAX);
        bytes
    });
    prop_oneof![2 => vec(any::<u8>(), 0..200), 1 => vec(any::<u8>(), 0..5_000), 3 => pieces].prop_map(Bytes::from)
}

/// How often a piece stands in a row: mostly once, sometimes as often as fits.
fn times() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 1..4_usize, 2 => 100..200_usize, 1 => 1..40_000_usize]
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<u16>();
    prop_oneof![
        3 => (at, 0..8_u8).prop_map(|(at, bit)| Change::Flip { at, bit }),
        3 => (at, any::<u8>()).prop_map(|(at, byte)| Change::Set { at, byte }),
        1 => at.prop_map(|at| Change::Cut { at }),
        1 => (at, any::<u16>()).prop_map(|(at, bytes)| Change::Remove { at, bytes }),
        2 => (at, any::<u8>(), times()).prop_map(|(at, bytes, times)| Change::Repeat { at, bytes, times: u16::try_from(times).unwrap() }),
        4 => (at, 0..PIECES.len(), times()).prop_map(|(at, piece, times)| Change::Insert { at, piece, times: u16::try_from(times).unwrap() }),
        1 => (at, any::<u16>()).prop_map(|(at, from)| Change::Splice { at, from }),
    ]
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>, other: &[u8]) {
        let place = |share: u16, bytes: &[u8]| usize::from(share) * bytes.len() / (usize::from(u16::MAX) + 1);
        match self {
            Self::Flip { at, bit } => {
                let at = place(*at, bytes);
                bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << bit);
            }
            Self::Set { at, byte } => {
                let at = place(*at, bytes);
                bytes.get_mut(at).into_iter().for_each(|changed| *changed = *byte);
            }
            Self::Cut { at } => bytes.truncate(place(*at, bytes)),
            Self::Remove { at, bytes: count } => {
                let at = place(*at, bytes);
                let end = at + place(*count, &bytes[at..]);
                bytes.drain(at..end);
            }
            Self::Repeat { at, bytes: count, times } => {
                let at = place(*at, bytes);
                let end = bytes.len().min(at + usize::from(*count));
                let piece = bytes[at..end].to_vec();
                insert(bytes, at, &piece, *times);
            }
            Self::Insert { at, piece, times } => insert(bytes, place(*at, bytes), PIECES[*piece], *times),
            Self::Splice { at, from } => {
                bytes.truncate(place(*at, bytes));
                bytes.extend_from_slice(&other[place(*from, other)..]);
            }
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8], times: u16) {
    let times = usize::from(times).min(BYTES_MAX / piece.len().max(1));
    let tail = bytes.split_off(at);
    bytes.extend_from_slice(&piece.repeat(times));
    bytes.extend_from_slice(&tail);
}
