//! Records that are scheduled as they are: what they become, and how they are refused.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use crate::time::Timestamp;
use crate::timer::command::{Arm, Encoding, OnConflict, When};
use crate::timer::kind::{KindNumber, KindRef};
use crate::timer::model::Header;
use crate::wire::command::{Refused, decode_record, encode};

use super::*;

fn header(key: &str, value: &[u8]) -> Header {
    Header { key: key.to_owned(), value: Some(Bytes::copy_from_slice(value)) }
}

fn headers(given: &[(&str, &str)]) -> Vec<Header> {
    given.iter().map(|(key, value)| header(key, value.as_bytes())).collect()
}

#[expect(clippy::result_large_err, reason = "as what is tested")]
fn read_record(key: &[u8], given: &[(&str, &str)]) -> Result<Command, Refused> {
    let key = Bytes::copy_from_slice(key);
    decode_record(Some(&key), Some(&Bytes::from_static(b"{\xFF")), &headers(given))
}

fn arm(command: Command) -> Arm {
    let Action::Arm(arm) = command.action else { panic!("an arm") };
    *arm
}

const LEAST: [(&str, &str); 3] =
    [("punctual-timer-id", "t"), ("punctual-kind", "email"), ("punctual-at", "2026-12-01T09:00:00.250Z")];

#[test]
fn key_value_and_other_headers_are_those_of_the_fired_record() {
    let mut given = headers(&LEAST);
    given.insert(0, header("content-type", b"text/plain"));
    given.insert(2, header("x", &[0xFF]));
    given.push(Header { key: "x".to_owned(), value: None });
    given.push(header("punctual-dead-letter-reason", b"past_due"));
    let command = decode_record(Some(&Bytes::from_static(b"order-42")), Some(&Bytes::from_static(&[0xFF])), &given);
    let arm = arm(command.unwrap());
    assert_eq!(arm.key.to_string(), "default/order-42/t");
    assert_eq!(
        (arm.record_key, arm.payload),
        (Some(Bytes::from_static(b"order-42")), Some(Bytes::from_static(&[0xFF])))
    );
    let own =
        [header("content-type", b"text/plain"), header("x", &[0xFF]), Header { key: "x".to_owned(), value: None }];
    assert_eq!(arm.headers, own);
    assert_eq!((arm.on_conflict, arm.outbox), (OnConflict::Keep, Vec::new()));
}

#[test]
fn every_instruction_counts() {
    let given = [
        ("punctual-tenant", "acme"),
        ("punctual-run", "r"),
        ("punctual-timer-id", "t"),
        ("punctual-kind", "7"),
        ("punctual-correlation-id", "c"),
        ("punctual-on-conflict", "replace"),
        ("punctual-after", "PT30M"),
    ];
    let command = read_record(&[0xFF], &given).unwrap();
    let reply = command.reply.clone().unwrap();
    assert_eq!((reply.correlation_id.as_str(), reply.encoding), ("c", Encoding::Json));
    let arm = arm(command);
    assert_eq!(arm.key.to_string(), "acme/r/t");
    assert_eq!(arm.kind, KindRef::Number(KindNumber::new(7).unwrap()));
    assert_eq!((arm.on_conflict, arm.when), (OnConflict::Replace, When::AfterMillis(1_800_000)));
}

#[test]
fn the_other_forms_of_when_are_json() {
    for (name, value) in [
        ("punctual-cron", r#"{"expression":"0 9 * * MON-FRI","zone":"Europe/Berlin"}"#),
        ("punctual-every", r#"{"interval":"PT15M","count":3}"#),
        ("punctual-local", r#"{"time":"2027-03-28T02:30","zone":"Europe/Berlin"}"#),
        ("punctual-calendar", r#"{"rule":"days","parameters":{"n":5}}"#),
    ] {
        let command = read_record(b"r", &[LEAST[0], LEAST[1], (name, value)]).unwrap();
        let written = encode(&command, Encoding::Json);
        let field = name.strip_prefix("punctual-").unwrap();
        assert!(written.windows(field.len()).any(|window| window == field.as_bytes()), "{written:?}");
    }
}

/// A record on a wrong partition goes on as what it is, with its instant resolved.
#[test]
fn a_resolved_record_is_read_as_the_resolved_command() {
    let every = r#"{"interval":"PT15M","count":3}"#;
    for (when, resolved_when) in [
        (("punctual-after", "PT30M"), When::At(Timestamp::from_millis(1_800_000_000_000))),
        (LEAST[2], When::At(Timestamp::parse(LEAST[2].1).unwrap())),
        (
            ("punctual-every", every),
            arm(read_record(b"r", &[LEAST[0], LEAST[1], ("punctual-every", every)]).unwrap()).when,
        ),
    ] {
        let mut given = headers(&[("punctual-correlation-id", "c"), when, LEAST[0], LEAST[1], ("x", "1"), ("x", "2")]);
        given.push(header("punctual-forwarded", b"1@1"));
        let (key, value) = (Bytes::from_static(b"r"), Bytes::from_static(&[0xFF]));
        let mut command = decode_record(Some(&key), Some(&value), &given).unwrap();
        let Action::Arm(resolved_arm) = &mut command.action else { panic!("an arm") };
        resolved_arm.when = resolved_when;
        let again = resolved(&given, &command);
        assert_eq!(decode_record(Some(&key), Some(&value), &again).unwrap(), command);
    }
}

/// A tombstone can be scheduled too, and a record without a key when its run is named.
#[test]
fn nulls_stay_nulls() {
    let mut given = headers(&LEAST);
    given.push(header("punctual-run", b"r"));
    let arm = arm(decode_record(None, None, &given).unwrap());
    assert_eq!((arm.record_key, arm.payload), (None, None));
}

/// Commands carry headers of ours as well, such as those of an event that a stream processor answers.
#[test]
fn without_a_header_that_says_when_it_is_a_command() {
    let value = Bytes::from_static(br#"{"run":"r","arm":{"timer_id":"t","kind":1,"after":"PT1S"}}"#);
    let given = headers(&[("punctual-timer-id", "other"), ("punctual-fired", "2026-12-01T09:00:00.250Z")]);
    assert_eq!(arm(decode_record(None, Some(&value), &given).unwrap()).key.to_string(), "default/r/t");
}

#[expect(clippy::needless_pass_by_value, reason = "reads as expect![] at each call")]
fn check(given: &[&[(&str, &str)]], expected: Expect) {
    let mut lines = String::new();
    for given in given {
        let refused = read_record(&[0xFF], given).unwrap_err();
        let about = refused.timer.map_or_else(|| "?".to_owned(), |timer| timer.to_string());
        let rejection = refused.rejection;
        writeln!(lines, "[{about}] {}: {}", rejection.reason.name(), rejection.detail).unwrap();
    }
    expected.assert_eq(&lines);
}

#[test]
fn what_is_wrong_is_named_as_it_was_given() {
    let (id, kind, at, run) = (LEAST[0], LEAST[1], LEAST[2], ("punctual-run", "r"));
    check(
        &[
            &[id, kind, at],
            &[run, kind, at],
            &[run, id, at],
            &[run, id, kind, at, ("punctual-after", "PT1S")],
            &[run, id, kind, at, at],
            &[run, id, kind, at, ("punctual-kidn", "x")],
            &[run, id, ("punctual-kind", "0"), at],
            &[run, id, kind, ("punctual-at", "tomorrow")],
            &[run, id, kind, ("punctual-after", "7d")],
            &[run, id, kind, ("punctual-cron", "0 9 * * *")],
            &[run, id, kind, ("punctual-cron", r#"{"expression":"0 9 * * *","zome":"UTC"}"#)],
            &[run, id, kind, at, ("punctual-on-conflict", "ignore")],
            &[("punctual-run", "a\nb"), id, kind, at],
        ],
        expect![[r#"
            [?] unreadable: `punctual-run` is missing, and the key is no text that could stand for it; give it
            [?] unreadable: `punctual-timer-id` is missing; give it
            [default/r/t] unreadable: `punctual-kind` is missing; give it
            [default/r/t] unreadable: `punctual-at` and `punctual-after` are both given; give one of them
            [default/r/t] unreadable: `punctual-at` stands twice; give it once
            [default/r/t] unreadable: `punctual-kidn` is not a known field; known here: punctual-tenant, punctual-run, punctual-timer-id, punctual-kind, punctual-correlation-id, punctual-on-conflict, punctual-at, punctual-after, punctual-cron, punctual-every, punctual-local, punctual-calendar
            [default/r/t] invalid_kind: kind number 0 is not one; use 1 to 255, or the kind's name
            [default/r/t] invalid_due: `punctual-at`: `tomorrow` is not an RFC 3339 instant such as 2026-12-01T09:00:00.250Z: failed to parse four digit integer as year: invalid digit, expected 0-9 but got t
            [default/r/t] invalid_duration: punctual-after `7d` is not a usable duration: expected to find duration beginning with `P` or `p`, but found `7` instead; write ISO 8601 such as PT30M, PT1.5S or P7D
            [default/r/t] unreadable: `punctual-cron` is no JSON: behind the command stands more: trailing characters at line 1 column 3; give the object that a command has under `cron`
            [default/r/t] unreadable: `punctual-cron.zome` is not a known field; known here: expression, zone, count, until, from
            [default/r/t] unreadable: `punctual-on-conflict` is "ignore"; give keep or replace
            [?] invalid_identity: run `a\nb` has a control character
        "#]],
    );
    let given = [header("punctual-at", &[0xFF])];
    let refused = decode_record(None, None, &given).unwrap_err();
    expect!["`punctual-at` is not UTF-8; give a text"].assert_eq(&refused.rejection.detail);
}
