//! Results in both encodings, byte by byte and there and back.

use std::fmt::Write;

use expect_test::{Expect, expect};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::timer::command::Reply;
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::outcome::Rejection;
use crate::wire::strategy;

fn answer(encoding: Encoding, verdict: Verdict, about_timer: bool) -> Answer {
    let run = RunKey { tenant: Tenant::parse("acme").unwrap(), run: Run::parse("order-42").unwrap() };
    let timer = about_timer.then(|| TimerKey { run: run.clone(), id: TimerId::parse("reminder").unwrap() });
    Answer { reply: Reply { correlation_id: "c-1".to_owned(), encoding }, run, timer, verdict }
}

fn verdicts() -> Vec<(Verdict, bool)> {
    let generation = Generation(7);
    let due = Timestamp::parse("2026-12-01T09:00:00.250Z").unwrap();
    vec![
        (Verdict::Armed { generation, due }, true),
        (Verdict::AlreadyArmed { generation }, true),
        (Verdict::Replaced { generation, due }, true),
        (Verdict::Disarmed { generation }, true),
        (Verdict::NotFound, true),
        (Verdict::Changed { generation }, true),
        (Verdict::RunDisarmed { count: 3 }, false),
        (Verdict::RunSealed { count: 0 }, false),
        (Verdict::Sealed, true),
        (Verdict::Skipped, true),
        (Verdict::Rejected(Rejection::new(Reason::PastDue, "too late")), true),
        (Verdict::TooLate { generation }, true),
        (Verdict::AlreadyEnded { ending: Ending::Fired(generation) }, true),
        (Verdict::AlreadyEnded { ending: Ending::Disarmed(generation) }, true),
        (Verdict::AlreadyEnded { ending: Ending::NeverArmed }, true),
        (Verdict::AlreadyEnded { ending: Ending::Expired(generation) }, true),
        (Verdict::Paused { generation }, true),
        (Verdict::Resumed { generation, due }, true),
        (Verdict::NotPaused { generation }, true),
        (Verdict::Ended { generation }, true),
    ]
}

fn check(encoding: Encoding, expected: &Expect) {
    let mut text = String::new();
    for (verdict, about_timer) in verdicts() {
        let (value, headers) = encode(&answer(encoding, verdict, about_timer));
        assert_eq!(headers, [content_type::header(encoding)]);
        let line = match encoding {
            Encoding::Json => String::from_utf8(value.to_vec()).unwrap(),
            Encoding::Protobuf => format!("{value:?}"),
        };
        writeln!(text, "{line}").unwrap();
    }
    expected.assert_eq(&text);
}

#[test]
fn golden_json() {
    check(
        Encoding::Json,
        &expect![[r#"
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"armed","generation":7,"due":"2026-12-01T09:00:00.250Z"}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"already_armed","generation":7}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"replaced","generation":7,"due":"2026-12-01T09:00:00.250Z"}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"disarmed","generation":7}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"not_found"}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"changed","generation":7}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","outcome":"run_disarmed","count":3}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","outcome":"run_sealed","count":0}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"sealed"}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"skipped"}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"rejected","reason":"past_due","detail":"too late"}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"too_late","generation":7}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"already_fired","generation":7}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"already_disarmed","generation":7}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"already_disarmed"}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"already_expired","generation":7}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"paused","generation":7}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"resumed","generation":7,"due":"2026-12-01T09:00:00.250Z"}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"not_paused","generation":7}
            {"correlation_id":"c-1","tenant":"acme","run":"order-42","timer_id":"reminder","outcome":"ended","generation":7}
        "#]],
    );
}

#[test]
fn golden_protobuf() {
    check(
        Encoding::Protobuf,
        &expect![[r#"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x010\x078\xfa\xa6\xd4\x86\xa34"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x020\x07"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x030\x078\xfa\xa6\xd4\x86\xa34"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x040\x07"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x05"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x060\x07"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42(\x07@\x03"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42(\x08@\0"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\t"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\n"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x0bH\x08R\x08too late"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x0c0\x07"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\r0\x07"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x0e0\x07"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x0e"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x0f0\x07"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x100\x07"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x110\x078\xfa\xa6\xd4\x86\xa34"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x120\x07"
            b"\n\x03c-1\x12\x04acme\x1a\x08order-42\"\x08reminder(\x130\x07"
        "#]],
    );
}

#[test]
fn both_encodings_say_the_same() {
    for (verdict, about_timer) in verdicts() {
        let received = [Encoding::Json, Encoding::Protobuf].map(|encoding| {
            let (value, headers) = encode(&answer(encoding, verdict.clone(), about_timer));
            decode(&value, &headers).unwrap()
        });
        assert_eq!(received[0], received[1]);
    }
}

#[test]
fn the_reasons_of_the_wire_are_those_of_the_core() {
    for reason in Reason::ALL {
        let on_the_wire = proto::Reason::try_from(reason as i32).unwrap();
        assert_eq!(on_the_wire.as_str_name(), format!("REASON_{}", reason.name().to_ascii_uppercase()));
    }
    let last = *Reason::ALL.last().unwrap();
    assert!(proto::Reason::try_from(last as i32 + 1).is_err(), "the wire has no more than the core");
}

#[test]
fn the_names_in_json_are_those_of_protobuf() {
    for number in 1..=19 {
        let outcome = proto::Outcome::try_from(number).unwrap();
        assert_eq!(outcome.as_str_name(), format!("OUTCOME_{}", outcome_name(number).to_ascii_uppercase()));
    }
    assert!(proto::Outcome::try_from(20).is_err(), "the wire has no more than the core");
}

#[test]
fn what_a_newer_service_sends_is_kept_as_text() {
    let message = proto::Result { outcome: 99, reason: Some(98), ..proto::Result::default() };
    let received = decode(&Bytes::from(message.encode_to_vec()), &[]).unwrap();
    assert_eq!(
        (received.outcome.as_str(), received.reason.as_deref()),
        ("unknown outcome 99", Some("unknown reason 98"))
    );
    let json = br#"{"correlation_id":"c","tenant":"t","run":"r","outcome":"postponed","until":5}"#;
    assert_eq!(decode(&Bytes::from_static(json), &[]).unwrap().outcome, "postponed");
}

#[test]
fn what_is_no_result_is_an_error() {
    assert!(decode(&Bytes::new(), &[]).is_err(), "empty");
    assert!(decode(&Bytes::from_static(b"{}"), &[]).is_err(), "no fields");
    let json = br#"{"correlation_id":"c","tenant":"t","run":"r","outcome":"armed","due":"soon"}"#;
    assert!(decode(&Bytes::from_static(json), &[]).is_err(), "a due that is none");
}

proptest! {
    #[test]
    fn answers_come_back(
        reply in strategy::reply(),
        timer in strategy::timer_key(),
        generation: u64,
        due in strategy::timestamp(),
        detail in ".{0,40}",
    ) {
        let verdict = Verdict::Armed { generation: Generation(generation), due };
        let armed = Answer { reply, run: timer.run.clone(), timer: Some(timer), verdict };
        let (value, headers) = encode(&armed);
        let received = decode(&value, &headers).unwrap();
        prop_assert_eq!(&received.correlation_id, &armed.reply.correlation_id);
        prop_assert_eq!(received.run.as_str(), armed.run.run.as_str());
        prop_assert_eq!((received.generation, received.due), (Some(generation), Some(due)));
        let rejection = Rejection::new(Reason::Unreadable, detail);
        let rejected = Answer { verdict: Verdict::Rejected(rejection.clone()), timer: None, ..armed };
        let (value, headers) = encode(&rejected);
        let received = decode(&value, &headers).unwrap();
        prop_assert_eq!((received.timer_id, received.detail), (None, Some(rejection.detail)));
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..64), json in "\\{.{0,40}") {
        let _ = (decode(&Bytes::from(bytes), &[]), decode(&Bytes::from(json), &[]));
    }
}
