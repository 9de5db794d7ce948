//! Keys: what is written is read, and the order of the bytes is the order of the values (R11).

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::timer::identity::{ID_BYTES_MAX, Run};
use crate::wire::key::read_part;

/// Texts that look like the framing of keys, texts of one common beginning, and the longest.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ /0-9ÿaé\u{10FFFF}]{1,6}",
        1 => Just("r".repeat(ID_BYTES_MAX)),
        1 => Just("é".repeat(ID_BYTES_MAX / 2)),
    ]
}

fn run_key() -> impl Strategy<Value = RunKey> {
    ("[0-9a.~_-]{1,3}", text())
        .prop_map(|(tenant, run)| RunKey { tenant: Tenant::parse(&tenant).unwrap(), run: Run::parse(&run).unwrap() })
}

fn timer_key() -> impl Strategy<Value = TimerKey> {
    (run_key(), text()).prop_map(|(run, id)| TimerKey { run, id: TimerId::parse(&id).unwrap() })
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    prop_oneof![0..300_i64, 0..=Timestamp::MAX.as_millis(), Just(i64::MAX)].prop_map(Timestamp::from_millis)
}

fn due_key() -> impl Strategy<Value = DueKey> {
    let generation = prop_oneof![0..300_u64, any::<u64>()];
    (timestamp(), generation).prop_map(|(wake, number)| DueKey { wake, generation: Generation(number) })
}

fn located() -> impl Strategy<Value = Located> {
    (1..=255_u32, due_key()).prop_map(|(kind, at)| Located { kind: KindNumber::new(kind).unwrap(), at })
}

/// Bytes of every value, most of all those of the framing.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0x00), Just(0x01), Just(0xFF), any::<u8>()];
    prop_oneof![8 => proptest::collection::vec(byte.clone(), 0..6), 1 => proptest::collection::vec(byte, 512)]
}

fn parts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    proptest::collection::vec(part(), 3)
}

fn is_in(bytes: &[u8], (lower, upper): &(Vec<u8>, Vec<u8>)) -> bool {
    lower.as_slice() <= bytes && bytes < upper.as_slice()
}

proptest! {
    #[test]
    fn parts_of_any_bytes_come_back_and_keep_their_order(a in parts(), b in parts()) {
        let encode = |parts: &[Vec<u8>]| {
            let mut bytes = Vec::new();
            for part in parts {
                append_part(&mut bytes, part);
            }
            bytes
        };
        let (a_bytes, b_bytes) = (encode(&a), encode(&b));
        prop_assert_eq!(a_bytes.cmp(&b_bytes), a.cmp(&b));
        prop_assert!(a == b || !b_bytes.starts_with(&a_bytes), "no key is the beginning of another");
        let (mut read, mut rest) = (Vec::new(), a_bytes.as_slice());
        while !rest.is_empty() {
            let (part, behind) = read_part(rest).unwrap();
            read.push(part);
            rest = behind;
        }
        prop_assert_eq!(read, a);
    }

    #[test]
    fn timers_come_back_and_keep_their_order(a in timer_key(), b in timer_key()) {
        prop_assert_eq!(read_id(&id(&a)).unwrap(), a.clone());
        prop_assert_eq!(id(&a).cmp(&id(&b)), a.cmp(&b));
    }

    #[test]
    fn the_range_of_a_run_has_its_timers_and_no_others(a in timer_key(), b in timer_key(), c in timer_key()) {
        let b = TimerKey { run: a.run.clone(), ..b };
        for key in [&a, &b, &c] {
            prop_assert_eq!(is_in(&id(key), &id_range(&a.run, None)), key.run == a.run);
            let is_behind = key.run == a.run && a.id < key.id;
            prop_assert_eq!(is_in(&id(key), &id_range(&a.run, Some(&a.id))), is_behind);
        }
    }

    #[test]
    fn places_come_back_and_keep_their_order(a in located(), b in located()) {
        prop_assert_eq!(read_place(&place(a)).unwrap(), a);
        prop_assert_eq!(place(a).cmp(&place(b)), (a.kind, a.at).cmp(&(b.kind, b.at)));
    }

    #[test]
    fn the_range_of_what_is_due_has_all_of_it_and_no_more(
        at in located(), other in located(), from in due_key(), until in prop_oneof![timestamp(), Just(Timestamp::from_millis(-1))]
    ) {
        for found in [at, Located { at: from, ..at }, Located { at: DueKey { wake: until, ..from }, ..at }, other] {
            if found.at.wake < Timestamp::EPOCH {
                continue;
            }
            let is_due = found.kind == at.kind && from <= found.at && found.at.wake <= until;
            prop_assert_eq!(is_in(&place(found), &due_range(at.kind, from, until)), is_due, "{:?}", found);
        }
    }

    #[test]
    fn the_agenda_comes_back_and_keeps_its_order(a in (timestamp(), run_key()), b in (timestamp(), run_key())) {
        let (a_bytes, b_bytes) = (agenda(a.0, &a.1), agenda(b.0, &b.1));
        prop_assert_eq!(read_agenda(&a_bytes).unwrap(), a.clone());
        prop_assert_eq!(a_bytes.cmp(&b_bytes), a.cmp(&b));
        prop_assert_eq!(a_bytes < agenda_end(b.0), a.0 <= b.0);
    }

    #[test]
    fn counts_come_back(number in any::<u64>()) {
        prop_assert_eq!(read_count(&count(number)).unwrap(), number);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let _ = (read_place(&bytes).is_ok(), read_id(&bytes).is_ok());
        let _ = (read_agenda(&bytes).is_ok(), read_count(&bytes).is_ok());
    }
}

#[test]
fn the_bytes_are_those_of_format_1() {
    let run_key = RunKey { tenant: Tenant::parse("acme").unwrap(), run: Run::parse("order-42").unwrap() };
    let key = TimerKey { run: run_key.clone(), id: TimerId::parse("é").unwrap() };
    let wake = Timestamp::from_millis(1_700_000_000_000);
    let at = Located { kind: KindNumber::new(239).unwrap(), at: DueKey { wake, generation: Generation(7) } };
    let hex = |bytes: &[u8]| format!("{bytes:02x?}").replace(['[', ']', ',', ' '], "");
    expect!["ef0000018bcfe568000000000000000007"].assert_eq(&hex(&place(at)));
    expect!["61636d6500016f726465722d34320001c3a90001"].assert_eq(&hex(&id(&key)));
    expect!["61636d6500016f726465722d34320001"].assert_eq(&hex(&run(&run_key)));
    expect!["0000018bcfe5680061636d6500016f726465722d34320001"].assert_eq(&hex(&agenda(wake, &run_key)));
    expect!["01"].assert_eq(&hex(&HEADER));
    expect!["0261636d650001"].assert_eq(&hex(&tenant_count(&run_key.tenant)));
    expect!["0000000000000102"].assert_eq(&hex(&count(258)));
}

#[test]
fn bytes_that_are_no_key_are_refused_with_the_reason() {
    let refusal = |error: KeyError| error.to_string();
    expect!["a place [01] cannot be read: it is not 17 bytes long"].assert_eq(&refusal(read_place(&[1]).unwrap_err()));
    expect!["a count [] cannot be read: it is not 8 bytes long"].assert_eq(&refusal(read_count(&[]).unwrap_err()));
    expect!["a key of the agenda [00] cannot be read: it has no instant"]
        .assert_eq(&refusal(read_agenda(&[0]).unwrap_err()));
    let mut bytes = [0xFF; PLACE_BYTES];
    assert!(read_place(&bytes).is_err(), "the wake is beyond every instant");
    bytes.fill(0);
    assert!(read_place(&bytes).is_err(), "no kind is 0");
}
