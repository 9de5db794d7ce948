//! Remembered ids: a record of the changelog, and a row of the store.
//!
//! Owns its encoding. Never knows the id: the key has it. Keeps: what is decoded is a valid value, or an error that says what
//! contradicts; a release that does not know the record leaves it alone, for it needs a reader version of its own.

use bytes::Bytes;
use prost::Message;

use super::state::{READER_OF_REMEMBERED, check_reader, decode, generation, instant};
use super::{DecodeError, proto};
use crate::timer::model::{Ending, Generation, Remembered};

/// Writes what is remembered of an id.
///
/// # Panics
/// When it would be forgotten before it has ended: it could not be read back.
pub fn encode_remembered(state: &Remembered) -> Bytes {
    assert!(state.ended <= state.until, "an id is forgotten after it has ended");
    let (ending, generation) = match state.ending {
        Ending::Fired(generation) => (proto::Ending::Fired, Some(generation)),
        Ending::Disarmed(generation) => (proto::Ending::Disarmed, Some(generation)),
        Ending::Expired(generation) => (proto::Ending::Expired, Some(generation)),
        Ending::NeverArmed => (proto::Ending::NeverArmed, None),
    };
    let message = proto::RememberedState {
        reader_min: READER_OF_REMEMBERED,
        ending: i32::from(ending),
        ended_ms: state.ended.as_millis(),
        until_ms: state.until.as_millis(),
        generation: generation.map(|generation| generation.0),
    };
    Bytes::from(message.encode_to_vec())
}

/// Reads what is remembered of an id.
///
/// # Errors
/// [`DecodeError::TooNew`] when a newer release wrote it, [`DecodeError::Malformed`] when it contradicts itself.
pub fn decode_remembered(bytes: &[u8]) -> Result<Remembered, DecodeError> {
    const WHAT: &str = "remembered id";
    let message: proto::RememberedState = decode(WHAT, bytes)?;
    check_reader(WHAT, message.reader_min)?;
    let malformed = |problem: String| DecodeError::malformed(WHAT, problem);
    let ended = instant("ending", message.ended_ms).map_err(malformed)?;
    let until = instant("end", message.until_ms).map_err(malformed)?;
    if until < ended {
        return Err(malformed(format!("it is forgotten at {until}, before it ended at {ended}")));
    }
    let number = message.generation.map(|number| generation(number, Generation::MAX)).transpose().map_err(malformed)?;
    let ending = match (proto::Ending::try_from(message.ending), number) {
        (Ok(proto::Ending::Fired), Some(generation)) => Ending::Fired(generation),
        (Ok(proto::Ending::Disarmed), Some(generation)) => Ending::Disarmed(generation),
        (Ok(proto::Ending::Expired), Some(generation)) => Ending::Expired(generation),
        (Ok(proto::Ending::NeverArmed), None) => Ending::NeverArmed,
        (Ok(_) | Err(_), number) => {
            return Err(malformed(format!("its ending is {}, with generation {number:?}", message.ending)));
        }
    };
    Ok(Remembered { ending, ended, until })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::time::Timestamp;
    use crate::wire::strategy;

    fn remembered(ending: Ending) -> Remembered {
        let instant = |text| Timestamp::parse(text).unwrap();
        Remembered { ending, ended: instant("2026-12-01T09:00:00.250Z"), until: instant("2026-12-01T09:10:00.250Z") }
    }

    #[test]
    fn golden_bytes() {
        let check = |ending, expected: Expect| {
            expected.assert_eq(&format!("{:?}", encode_remembered(&remembered(ending))));
        };
        check(
            Ending::Fired(Generation(7)),
            expect![[r#"b"\x08\x03\x10\x01\x18\xfa\xa6\xd4\x86\xa34 \xba\xf6\xf8\x86\xa34(\x07""#]],
        );
        check(
            Ending::Disarmed(Generation(300)),
            expect![[r#"b"\x08\x03\x10\x02\x18\xfa\xa6\xd4\x86\xa34 \xba\xf6\xf8\x86\xa34(\xac\x02""#]],
        );
        check(
            Ending::Expired(Generation(1)),
            expect![[r#"b"\x08\x03\x10\x03\x18\xfa\xa6\xd4\x86\xa34 \xba\xf6\xf8\x86\xa34(\x01""#]],
        );
        check(Ending::NeverArmed, expect![[r#"b"\x08\x03\x10\x04\x18\xfa\xa6\xd4\x86\xa34 \xba\xf6\xf8\x86\xa34""#]]);
    }

    #[test]
    fn contradictions_are_errors() {
        let check = |change: fn(&mut proto::RememberedState), expected: Expect| {
            let bytes = encode_remembered(&remembered(Ending::Fired(Generation(7))));
            let mut message = proto::RememberedState::decode(bytes).unwrap();
            change(&mut message);
            expected.assert_eq(&decode_remembered(&message.encode_to_vec()).unwrap_err().to_string());
        };
        check(|state| state.reader_min = 0, expect!["remembered id cannot be decoded: it has no reader version"]);
        check(
            |state| state.reader_min = 5,
            expect![
                "remembered id was written by a newer release: it needs reader version 5, this release has 4; upgrade this instance"
            ],
        );
        check(
            |state| state.ending = 0,
            expect!["remembered id cannot be decoded: its ending is 0, with generation Some(Generation(7))"],
        );
        check(
            |state| state.ending = 9,
            expect!["remembered id cannot be decoded: its ending is 9, with generation Some(Generation(7))"],
        );
        check(
            |state| state.ending = i32::from(proto::Ending::NeverArmed),
            expect!["remembered id cannot be decoded: its ending is 4, with generation Some(Generation(7))"],
        );
        check(
            |state| state.generation = None,
            expect!["remembered id cannot be decoded: its ending is 1, with generation None"],
        );
        check(
            |state| state.generation = Some(u64::MAX),
            expect![
                "remembered id cannot be decoded: its generation is 18446744073709551615, which no counter reaches"
            ],
        );
        check(
            |state| state.ended_ms = -1,
            expect!["remembered id cannot be decoded: its ending is -1 ms, outside the years 1970 to 9999"],
        );
        check(
            |state| state.until_ms = state.ended_ms - 1,
            expect![
                "remembered id cannot be decoded: it is forgotten at 2026-12-01T09:00:00.249Z, before it ended at 2026-12-01T09:00:00.250Z"
            ],
        );
        check(
            |state| state.until_ms = i64::MAX,
            expect![
                "remembered id cannot be decoded: its end is 9223372036854775807 ms, outside the years 1970 to 9999"
            ],
        );
    }

    /// T7: a release before this one, which knows reader version 2, keeps the record and says so.
    #[test]
    fn it_needs_a_reader_version_of_its_own() {
        let bytes = encode_remembered(&remembered(Ending::NeverArmed));
        assert_eq!(proto::RememberedState::decode(bytes).unwrap().reader_min, 3);
    }

    proptest! {
        #[test]
        fn it_comes_back(state in strategy::remembered()) {
            prop_assert_eq!(decode_remembered(&encode_remembered(&state)).unwrap(), state);
        }

        #[test]
        fn no_bytes_panic(bytes in vec(any::<u8>(), 0..64)) {
            if let Ok(read) = decode_remembered(&bytes) {
                prop_assert_eq!(decode_remembered(&encode_remembered(&read)).unwrap(), read);
            }
        }
    }
}
