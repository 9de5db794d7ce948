//! Fired records, header by header.

use std::fmt::Write;

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::time::Timestamp;
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::Generation;
use crate::timer::outcome::Effect;
use crate::wire::strategy;

fn event() -> FiredEvent {
    let run = RunKey { tenant: Tenant::parse("acme").unwrap(), run: Run::parse("order-42").unwrap() };
    let header =
        |key: &str, value: Option<&'static [u8]>| Header { key: key.to_owned(), value: value.map(Bytes::from_static) };
    let timer = Timer {
        key: TimerKey { run, id: TimerId::parse("reminder").unwrap() },
        kind: KindNumber::new(1).unwrap(),
        due: Timestamp::parse("2026-12-01T09:00:00.250Z").unwrap(),
        wake: Timestamp::parse("2026-12-01T09:00:05.250Z").unwrap(),
        generation: Generation(7),
        attempt: 1,
        armed: Timestamp::parse("2026-11-01T00:00:00Z").unwrap(),
        payload: Some(Bytes::from_static(b"text")),
        record_key: None,
        headers: vec![
            header("x", Some(b"text")),
            header("x", Some(b"\xff")),
            header("x", None),
            header("y", Some(b"")),
        ],
        outbox: Vec::new(),
        recurring: None,
        resolved_with: None,
        paused: None,
        claim: None,
    };
    FiredEvent {
        timer,
        attempt: 2,
        fired: Timestamp::parse("2026-12-01T09:00:05.251Z").unwrap(),
        effect: Effect::Published,
    }
}

#[test]
fn golden_headers() {
    let mut text = String::new();
    for Header { key, value } in headers(&event(), "email", "/punctual") {
        writeln!(text, "{key}: {value:?}").unwrap();
    }
    expect![[r#"
        ce_specversion: Some(b"1.0")
        ce_id: Some(b"acme/order-42/reminder/7")
        ce_type: Some(b"punctual.fired.email")
        ce_source: Some(b"/punctual")
        ce_subject: Some(b"acme/order-42/reminder")
        ce_time: Some(b"2026-12-01T09:00:05.251Z")
        punctual-tenant: Some(b"acme")
        punctual-run: Some(b"order-42")
        punctual-timer-id: Some(b"reminder")
        punctual-kind: Some(b"email")
        punctual-generation: Some(b"7")
        punctual-attempt: Some(b"2")
        punctual-due: Some(b"2026-12-01T09:00:00.250Z")
        punctual-armed: Some(b"2026-11-01T00:00:00.000Z")
        punctual-fired: Some(b"2026-12-01T09:00:05.251Z")
        x: Some(b"text")
        x: Some(b"\xff")
        x: None
        y: Some(b"")
    "#]]
    .assert_eq(&text);
}

#[test]
fn the_key_is_the_arms_own_or_the_run() {
    let mut event = event();
    assert_eq!(key(&event.timer), "acme/order-42");
    event.timer.record_key = Some(Bytes::from_static(b"\x00other"));
    assert_eq!(key(&event.timer), b"\x00other".as_slice());
    event.timer.record_key = Some(Bytes::new());
    assert_eq!(key(&event.timer), b"".as_slice());
}

proptest! {
    /// T5: duplicate names, binary, empty and null values go through byte for byte.
    #[test]
    fn the_arms_own_headers_come_last_and_unchanged(timer in strategy::timer(), attempt: u32) {
        let event = FiredEvent { fired: timer.wake, attempt, effect: Effect::Published, timer };
        let headers = headers(&event, "email", "/punctual");
        let (own, users) = headers.split_at(15 + usize::from(event.timer.recurring.is_some()));
        prop_assert_eq!(users, event.timer.headers.as_slice());
        prop_assert!(own.iter().all(|header| header.value.is_some()), "none of ours is null");
    }
}
