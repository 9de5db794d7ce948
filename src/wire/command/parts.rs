//! How many parts a command in protobuf has, counted before it is taken apart.
//!
//! Owns the count and its limit. Never judges a part, nor says what is malformed: prost does. An empty outbox record is two
//! bytes on the wire and over a hundred in memory, so that one record of the arm topic could take a process down, and again
//! at each restart, for it would be read again.
//! Keeps: whoever decodes no more than [`PARTS_MAX`] parts takes a small factor of the input's bytes (INV-WIRE-1).

use prost::encoding::decode_varint;

use crate::timer::limits::{HEADERS_MAX, OUTBOX_RECORDS_MAX};
use crate::timer::outcome::{Reason, Rejection};

/// Most parts that a command may have for its arm to be looked at: twice as many as an arm may have that is accepted.
pub(in crate::wire) const PARTS_MAX: usize = 2 * (OUTBOX_RECORDS_MAX + 1) * (HEADERS_MAX + 4);

/// Numbers of the fields that hold what is repeated: `Command.arm`, `Arm.outbox`; and `Command.arm`, `Arm.calendar`.
const NESTED: [u64; 2] = [10, 14];
const NESTED_PARAMETERS: [u64; 2] = [10, 9];

/// Refuses a message that has too many parts to be taken apart.
///
/// # Errors
/// A rejection that tells the limit.
pub(super) fn check(message: &[u8]) -> Result<(), Rejection> {
    let parts = count(message, &NESTED).max(count(message, &NESTED_PARAMETERS));
    if parts > PARTS_MAX { Err(too_many()) } else { Ok(()) }
}

/// Returns the rejection of a command with more parts than any arm may have.
pub(in crate::wire) fn too_many() -> Rejection {
    let detail = format!(
        "the command has more than {PARTS_MAX} parts; an arm has at most {OUTBOX_RECORDS_MAX} outbox records and \
         {HEADERS_MAX} headers on each record"
    );
    Rejection::new(Reason::TooMany, detail)
}

/// Counts the fields with a length, down the path of `nested` fields. What is malformed ends the count, as it ends prost's
/// decoding.
fn count(message: &[u8], nested: &[u64]) -> usize {
    let mut rest = message;
    let mut parts = 0;
    while let Ok(key) = decode_varint(&mut rest) {
        let skipped = match key & 0b111 {
            0 if decode_varint(&mut rest).is_ok() => 0,
            1 => 8,
            5 => 4,
            2 => match decode_varint(&mut rest) {
                Ok(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
                Err(_) => return parts,
            },
            // The marks of a group, which has no length; it is no field of ours, and what is in it counts all the more.
            3 | 4 => 0,
            _ => return parts,
        };
        let Some((field, behind)) = rest.split_at_checked(skipped) else { return parts };
        if key & 0b111 == 2 {
            parts += 1;
            if let Some((_, below)) = nested.split_first().filter(|(number, _)| **number == key >> 3) {
                parts += count(field, below);
            }
        }
        rest = behind;
    }
    parts
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use prost::Message;

    use super::*;
    use crate::wire::proto;

    fn command(outbox: usize, headers: usize) -> Vec<u8> {
        let header = proto::Header { key: "k".to_owned(), value: Some(Bytes::from_static(b"v")) };
        let headers = vec![header; headers];
        let record =
            proto::OutboxRecord { key: Some(Bytes::new()), value: Some(Bytes::new()), headers: headers.clone() };
        let arm = proto::Arm { outbox: vec![record; outbox], headers, ..proto::Arm::default() };
        proto::Command { action: Some(proto::command::Action::Arm(arm)), ..proto::Command::default() }.encode_to_vec()
    }

    /// The numbers of the fields are those of `proto/`: otherwise nested parts would go uncounted.
    #[test]
    fn every_part_is_counted() {
        assert_eq!(count(&command(0, 0), &NESTED), 1);
        assert_eq!(count(&command(0, 3), &NESTED), 1 + 3);
        assert_eq!(count(&command(2, 3), &NESTED), 1 + 3 + 2 * (1 + 2 + 3));
    }

    #[test]
    fn the_largest_arm_passes_and_what_is_far_beyond_does_not() {
        assert_eq!(check(&command(OUTBOX_RECORDS_MAX, HEADERS_MAX)), Ok(()));
        assert_eq!(check(&command(PARTS_MAX, 0)).unwrap_err().reason, Reason::TooMany);
        assert_eq!(check(&command(0, PARTS_MAX)).unwrap_err().reason, Reason::TooMany);
    }

    #[test]
    fn what_is_malformed_is_left_to_the_decoder() {
        for message in
            [&b"\x52"[..], b"\x52\x05\x00", b"\x52\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", b"\x0F", b"\x09\x00"]
        {
            assert_eq!(check(message), Ok(()), "{message:?}");
        }
    }
}
