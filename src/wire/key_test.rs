//! Keys, byte by byte, and that their order is that of the values.

use expect_test::{Expect, expect};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::wire::strategy;

fn part(bytes: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    append_part(&mut key, bytes);
    key
}

#[test]
fn golden_bytes() {
    let run = RunKey { tenant: Tenant::parse("acme").unwrap(), run: Run::parse("é").unwrap() };
    let timer = TimerKey { run: run.clone(), id: TimerId::parse("t").unwrap() };
    let check = |key: StateKey, expected: Expect| expected.assert_eq(&format!("{:?}", key.encode()));
    check(StateKey::Meta, expect![[r#"b"\x01""#]]);
    check(StateKey::Barrier, expect![[r#"b"\x02""#]]);
    check(StateKey::Run(run), expect![[r#"b"\x03acme\0\x01\xc3\xa9\0\x01""#]]);
    check(StateKey::Timer(timer.clone()), expect![[r#"b"\x04acme\0\x01\xc3\xa9\0\x01t\0\x01""#]]);
    check(StateKey::Remembered(timer), expect![[r#"b"\x05acme\0\x01\xc3\xa9\0\x01t\0\x01""#]]);
    assert_eq!(part(&[0, 0, 1, 0xFF]), [0, 0xFF, 0, 0xFF, 1, 0xFF, 0, 1]);
}

/// R11: no confusion in keys. A part that ends early or is escaped wrongly is no key.
#[test]
fn broken_keys_are_refused() {
    let refused = |key: &[u8]| StateKey::decode(key).unwrap_err();
    assert!(matches!(refused(&[]), DecodeError::Malformed { .. }), "empty");
    assert!(matches!(refused(&[0x01, 0x00]), DecodeError::Malformed { .. }), "bytes behind the end");
    assert!(matches!(refused(&[0x03, b'a']), DecodeError::Malformed { .. }), "no end");
    assert!(matches!(refused(&[0x03, b'a', 0, 2]), DecodeError::Malformed { .. }), "wrong escape");
    assert!(matches!(refused(&[0x03, 0, 1, b'r', 0, 1]), DecodeError::Malformed { .. }), "empty tenant");
    assert!(matches!(refused(&[0x03, b'a', 0, 1, 0xFF, 0, 1]), DecodeError::Malformed { .. }), "not UTF-8");
    assert!(matches!(refused(&[0x03, b'a', 0, 1, 0, 1]), DecodeError::Malformed { .. }), "empty run");
    assert_eq!(
        refused(&[0x06, b'a']).to_string(),
        "state key was written by a newer release: tag 0x06 is not known; upgrade this instance"
    );
}

fn odd_bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0_u8), Just(1), Just(2), Just(0xFE), Just(0xFF), any::<u8>()], 0..6)
}

fn state_key() -> impl Strategy<Value = StateKey> {
    prop_oneof![
        Just(StateKey::Meta),
        Just(StateKey::Barrier),
        strategy::run_key().prop_map(StateKey::Run),
        strategy::timer_key().prop_map(StateKey::Timer),
        strategy::timer_key().prop_map(StateKey::Remembered),
    ]
}

proptest! {
    #[test]
    fn any_bytes_come_back(parts in vec(odd_bytes(), 0..4)) {
        let mut key = Vec::new();
        for part in &parts {
            append_part(&mut key, part);
        }
        let mut rest = key.as_slice();
        for part in &parts {
            let (read, behind) = read_part(rest).unwrap();
            prop_assert_eq!(&read, part);
            rest = behind;
        }
        prop_assert!(rest.is_empty(), "nothing is left");
    }

    #[test]
    fn the_order_of_the_bytes_is_the_order_of_the_values(a in vec(odd_bytes(), 3), b in vec(odd_bytes(), 3)) {
        let encode = |parts: &[Vec<u8>]| parts.iter().flat_map(|bytes| part(bytes)).collect::<Vec<u8>>();
        prop_assert_eq!(encode(&a).cmp(&encode(&b)), a.cmp(&b));
    }

    #[test]
    fn keys_come_back(key in state_key()) {
        prop_assert_eq!(StateKey::decode(&key.encode()).unwrap(), key);
    }

    #[test]
    fn keys_are_ordered_as_their_values(a in state_key(), b in state_key()) {
        prop_assert_eq!(a.encode().cmp(&b.encode()), a.cmp(&b));
    }

    #[test]
    fn no_bytes_panic(key in prop_oneof![odd_bytes(), vec(any::<u8>(), 0..40)]) {
        if let Ok(read) = StateKey::decode(&key) {
            prop_assert_eq!(read.encode(), key, "one value has one key");
        }
    }
}
