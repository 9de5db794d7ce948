//! Dead letters, whole and cut.

use std::fmt::Write;
use std::time::Duration;

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{Claim, Generation};
use crate::timer::outcome::Reason;
use crate::wire::strategy;

fn headers_of(original: &[Header], detail: &str) -> Vec<Header> {
    let original = Original {
        partition: Partition(3),
        offset: Offset(42),
        timestamp: Some(Timestamp::parse("2026-12-01T09:00:00.250Z").unwrap()),
        headers: original,
    };
    headers(&original, &Rejection::new(Reason::Unreadable, detail), "timers.arm")
}

fn show(letter: &Letter) -> String {
    let mut text = format!("{:?} = {:?}\n", letter.key, letter.value);
    for Header { key, value } in &letter.headers {
        writeln!(text, "{key}: {value:?}").unwrap();
    }
    text
}

fn size(letter: &Letter) -> usize {
    FRAMING_BYTES
        + optional_bytes(letter.key.as_ref())
        + optional_bytes(letter.value.as_ref())
        + letter.headers.iter().map(header_bytes).sum::<usize>()
}

fn header(key: &str, value: Option<Bytes>) -> Header {
    Header { key: key.to_owned(), value }
}

#[test]
fn golden_letters() {
    let original = [header("x", Some(Bytes::from_static(b"\xff"))), header("x", None)];
    let headers = headers_of(&original, "the record has no value");
    let key = Some(Bytes::from_static(b"acme/order-42"));
    let whole = truncate(key.clone(), None, headers.clone(), 1000);
    expect![[r#"
        Some(b"acme/order-42") = None
        x: Some(b"\xff")
        x: None
        punctual-dead-letter-reason: Some(b"unreadable")
        punctual-dead-letter-detail: Some(b"the record has no value")
        punctual-dead-letter-topic: Some(b"timers.arm")
        punctual-dead-letter-partition: Some(b"3")
        punctual-dead-letter-offset: Some(b"42")
        punctual-dead-letter-timestamp: Some(b"2026-12-01T09:00:00.250Z")
    "#]]
    .assert_eq(&show(&whole));
    let cut = truncate(key, Some(Bytes::from(vec![b'v'; 1000])), headers, 700);
    expect![[r#"
        Some(b"acme/order-42") = Some(b"vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv")
        x: Some(b"\xff")
        x: None
        punctual-dead-letter-reason: Some(b"unreadable")
        punctual-dead-letter-detail: Some(b"the record has no value")
        punctual-dead-letter-topic: Some(b"timers.arm")
        punctual-dead-letter-partition: Some(b"3")
        punctual-dead-letter-offset: Some(b"42")
        punctual-dead-letter-timestamp: Some(b"2026-12-01T09:00:00.250Z")
        punctual-dead-letter-truncated: Some(b"1080")
    "#]].assert_eq(&show(&cut));
}

#[test]
fn a_record_without_timestamp_has_a_null_header() {
    let original = Original { partition: Partition(0), offset: Offset(0), timestamp: None, headers: &[] };
    let headers = headers(&original, &Rejection::new(Reason::Unreadable, "d"), "t");
    assert_eq!(headers.last(), Some(&header(TIMESTAMP, None)));
}

/// L13: a record of the maximum size still becomes a letter that fits, whatever of it is large.
#[test]
fn whatever_is_large_the_letter_fits() {
    let large = Bytes::from(vec![b'x'; 1_000_000]);
    let cases = [
        (None, Some(large.clone()), vec![]),
        (Some(large.clone()), Some(large.clone()), vec![]),
        (None, None, vec![header("small", None), header("large", Some(large.clone())), header("behind", None)]),
        (None, Some(large.clone()), vec![header(REASON, Some(large)); 10]),
    ];
    for (key, value, original) in cases {
        let letter = truncate(key, value, headers_of(&original, &"é".repeat(5000)), 10_000);
        assert!(size(&letter) <= 10_000, "{}", size(&letter));
        let (reason, mark) = (&letter.headers[letter.headers.len() - 7], letter.headers.last().unwrap());
        assert_eq!(reason, &header(REASON, Some(Bytes::from_static(b"unreadable"))));
        assert_eq!(mark.key, TRUNCATED);
    }
}

proptest! {
    #[test]
    fn what_fits_is_unchanged_and_what_does_not_is_cut_to_fit(
        key in prop::option::of(strategy::bytes(64)),
        value in prop::option::of(strategy::bytes(2000)),
        original in strategy::headers(),
        bytes_max in 600_usize..2000,
    ) {
        let headers = headers_of(&original, "detail");
        let whole = Letter { key: key.clone(), value: value.clone(), headers: headers.clone() };
        let letter = truncate(key, value, headers, bytes_max);
        prop_assert!(size(&letter) <= bytes_max, "{} bytes", size(&letter));
        if size(&whole) <= bytes_max {
            prop_assert_eq!(letter, whole);
        } else {
            let cut = letter.value.unwrap_or_default();
            prop_assert!(whole.value.unwrap_or_default().starts_with(&cut), "the beginning is kept");
        }
    }
}

#[test]
fn the_letter_of_an_expired_timer_says_how_often_it_was_delivered() {
    let run = RunKey { tenant: Tenant::parse("acme").unwrap(), run: Run::parse("order-42").unwrap() };
    let instant = |text| Timestamp::parse(text).unwrap();
    let timer = Timer {
        key: TimerKey { run, id: TimerId::parse("job").unwrap() },
        kind: KindNumber::new(3).unwrap(),
        due: instant("2026-12-01T09:00:00Z"),
        wake: instant("2026-12-01T09:10:00Z"),
        generation: Generation(7),
        attempt: 2,
        armed: instant("2026-11-01T00:00:00Z"),
        payload: Some(Bytes::from(vec![b'v'; 4_000])),
        record_key: None,
        headers: vec![header("x", Some(Bytes::from_static(b"own")))],
        outbox: Vec::new(),
        claim: Some(Claim { lease: Duration::from_mins(5), attempts_max: Some(2) }),
        recurring: None,
        resolved_with: None,
        paused: None,
    };
    let identity = vec![header("punctual-attempt", Some(Bytes::from_static(b"2")))];
    let timer = Expired { timer, reason: ExpiryReason::AttemptsExhausted, at: instant("2026-12-01T09:10:00Z") };
    let whole = expired(&timer, identity.clone(), 10_000);
    assert_eq!(whole.value.as_ref().unwrap().len(), 4_000);
    let cut = expired(&timer, identity, 1_000);
    assert!(size(&cut) <= 1_000, "it fits");
    expect![[r#"
        Some(b"acme/order-42") = None
        x: Some(b"own")
        punctual-attempt: Some(b"2")
        punctual-dead-letter-reason: Some(b"attempts_exhausted")
        punctual-dead-letter-detail: Some(b"armed 2026-11-01T00:00:00.000Z, due 2026-12-01T09:00:00.000Z, delivered 2 times and held until 2026-12-01T09:10:00.000Z; nobody disarmed it (max_attempts)")
        punctual-dead-letter-truncated: Some(b"4049")
    "#]].assert_eq(&show(&Letter { value: None, ..cut }));
}
