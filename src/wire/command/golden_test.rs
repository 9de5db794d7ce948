//! What good commands look like in both encodings, and that one is the inverse of the other.

use std::time::Duration;

use expect_test::expect;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::time::Timestamp;
use crate::timer::command::{Action, Arm, OnConflict, When};
use crate::timer::kind::{KindNumber, KindRef};
use crate::timer::model::{Generation, OutboxRecord};
use crate::wire::strategy;

/// The examples that the documentation shows, letter by letter.
const EXAMPLES: [&str; 7] = [
    r#"{"tenant":"acme","run":"order-42","correlation_id":"c-1","arm":{"timer_id":"reminder","kind":"email","at":"2026-12-01T09:00:00.250Z","payload":"text"}}"#,
    r#"{"run":"order-42","arm":{"timer_id":"t2","kind":"email","after":"PT30M","payload_base64":"AAEC","key":"other-key","on_conflict":"replace",
      "headers":[{"key":"x","value":"text"},{"key":"x","value_base64":"/w=="}],"outbox":[{"key":"k","value":"v","headers":[]}]}}"#,
    r#"{"tenant":"acme","run":"order-42","disarm":{"timer_id":"reminder","generation":7}}"#,
    r#"{"tenant":"acme","run":"order-42","disarm_run":{}}"#,
    r#"{"tenant":"acme","run":"order-42","seal_run":{"retention":"P7D"}}"#,
    r#"{"tenant":"acme","run":"order-42","pause":{"timer_id":"reminder","generation":7}}"#,
    r#"{"tenant":"acme","run":"order-42","resume":{"timer_id":"reminder"}}"#,
];

fn run(tenant: &str) -> RunKey {
    RunKey { tenant: Tenant::parse(tenant).unwrap(), run: Run::parse("order-42").unwrap() }
}

fn timer(tenant: &str, id: &str) -> TimerKey {
    TimerKey { run: run(tenant), id: TimerId::parse(id).unwrap() }
}

fn text(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn example_commands() -> [Command; 7] {
    let first = Arm {
        key: timer("acme", "reminder"),
        kind: KindRef::Name("email".to_owned()),
        when: When::At(Timestamp::parse("2026-12-01T09:00:00.250Z").unwrap()),
        on_conflict: OnConflict::Keep,
        payload: Some(text("text")),
        record_key: None,
        headers: Vec::new(),
        outbox: Vec::new(),
    };
    let second = Arm {
        key: timer("default", "t2"),
        when: When::AfterMillis(1_800_000),
        on_conflict: OnConflict::Replace,
        payload: Some(Bytes::from_static(&[0, 1, 2])),
        record_key: Some(text("other-key")),
        headers: vec![
            Header { key: "x".to_owned(), value: Some(text("text")) },
            Header { key: "x".to_owned(), value: Some(Bytes::from_static(&[0xFF])) },
        ],
        outbox: vec![OutboxRecord { key: Some(text("k")), value: Some(text("v")), headers: Vec::new() }],
        ..first.clone()
    };
    let reply = Reply { correlation_id: "c-1".to_owned(), encoding: Encoding::Json };
    let silent = |action| Command { reply: None, action };
    [
        Command { reply: Some(reply), action: Action::Arm(Box::new(first)) },
        silent(Action::Arm(Box::new(second))),
        silent(Action::Disarm { key: timer("acme", "reminder"), generation: Some(Generation(7)) }),
        silent(Action::DisarmRun { run: run("acme") }),
        silent(Action::SealRun { run: run("acme"), retention: Some(Duration::from_hours(7 * 24)) }),
        silent(Action::Pause { key: timer("acme", "reminder"), generation: Some(Generation(7)) }),
        silent(Action::Resume { key: timer("acme", "reminder"), generation: None }),
    ]
}

fn with_type(media_type: &'static str) -> Vec<Header> {
    vec![Header { key: content_type::CONTENT_TYPE.to_owned(), value: Some(Bytes::from_static(media_type.as_bytes())) }]
}

#[test]
fn the_examples_are_read_as_they_stand() {
    for (example, command) in EXAMPLES.iter().zip(example_commands()) {
        let value = Bytes::from_static(example.as_bytes());
        assert_eq!(decode(Some(&value), &[]).unwrap(), command, "by its first byte");
        assert_eq!(decode(Some(&value), &with_type("application/json")).unwrap(), command, "by its header");
    }
}

#[test]
fn golden_json() {
    let written = example_commands().map(|command| {
        let value = encode(&command, Encoding::Json);
        String::from_utf8(value.to_vec()).unwrap()
    });
    expect![[r#"
        {"tenant":"acme","run":"order-42","correlation_id":"c-1","arm":{"timer_id":"reminder","kind":"email","at":"2026-12-01T09:00:00.250Z","payload":"text"}}
        {"run":"order-42","arm":{"timer_id":"t2","kind":"email","after":"PT30M","on_conflict":"replace","payload_base64":"AAEC","key":"other-key","headers":[{"key":"x","value":"text"},{"key":"x","value_base64":"/w=="}],"outbox":[{"key":"k","value":"v"}]}}
        {"tenant":"acme","run":"order-42","disarm":{"timer_id":"reminder","generation":7}}
        {"tenant":"acme","run":"order-42","disarm_run":{}}
        {"tenant":"acme","run":"order-42","seal_run":{"retention":"PT168H"}}
        {"tenant":"acme","run":"order-42","pause":{"timer_id":"reminder","generation":7}}
        {"tenant":"acme","run":"order-42","resume":{"timer_id":"reminder"}}"#]].assert_eq(&written.join("\n"));
}

#[test]
fn golden_protobuf() {
    let written = example_commands().map(|command| format!("{:?}", encode(&command, Encoding::Protobuf)));
    expect![[r#"
        b"\n\x04acme\x12\x08order-42\x1a\x03c-1R\x1e\n\x08reminder\x1a\x05email \xfa\xa6\xd4\x86\xa34Z\x04text"
        b"\x12\x08order-42R<\n\x02t2\x1a\x05email(\xc0\xeemP\x02Z\x03\0\x01\x02b\tother-keyj\t\n\x01x\x12\x04textj\x06\n\x01x\x12\x01\xffr\x06\n\x01k\x12\x01v"
        b"\n\x04acme\x12\x08order-42Z\x0c\n\x08reminder\x10\x07"
        b"\n\x04acme\x12\x08order-42b\0"
        b"\n\x04acme\x12\x08order-42j\x06\x08\x80\x88\xb2\xa0\x02"
        b"\n\x04acme\x12\x08order-42r\x0c\n\x08reminder\x10\x07"
        b"\n\x04acme\x12\x08order-42z\n\n\x08reminder""#]].assert_eq(&written.join("\n"));
}

#[test]
fn a_kind_has_a_name_or_a_number() {
    let kind = |json: &str| {
        let value = format!(r#"{{"run":"r","arm":{{"timer_id":"t","kind":{json},"after":"PT1S"}}}}"#);
        match decode(Some(&Bytes::from(value)), &[]).unwrap().action {
            Action::Arm(arm) => arm.kind,
            other @ (Action::Disarm { .. }
            | Action::Pause { .. }
            | Action::Resume { .. }
            | Action::DisarmRun { .. }
            | Action::SealRun { .. }) => panic!("{other:?}"),
        }
    };
    assert_eq!(kind("\"email\""), KindRef::Name("email".to_owned()));
    assert_eq!(kind("7"), KindRef::Number(KindNumber::new(7).unwrap()));
    assert_eq!(kind("255"), KindRef::Number(KindNumber::new(255).unwrap()));
    assert_eq!(kind("\"7\""), KindRef::Name("7".to_owned()), "a text is a name");
}

#[test]
fn null_is_absent() {
    let nulls = r#"{"tenant":null,"run":"order-42","correlation_id":null,"disarm":{"timer_id":"t2","generation":null},"arm":null}"#;
    let command = decode(Some(&Bytes::from_static(nulls.as_bytes())), &[]).unwrap();
    let action = Action::Disarm { key: timer("default", "t2"), generation: None };
    assert_eq!(command, Command { reply: None, action });
    let for_ever = br#"{"run":"order-42","seal_run":{"retention":null}}"#;
    let command = decode(Some(&Bytes::from_static(for_ever)), &[]).unwrap();
    assert_eq!(command.action, Action::SealRun { run: run("default"), retention: None });
}

/// T5: a null value, an empty one and an absent payload are three different things.
#[test]
fn null_and_empty_are_kept_apart() {
    let value = br#"{"run":"r","arm":{"timer_id":"t","kind":1,"after":"PT1S","payload":"","headers":[{"key":"n","value":null},{"key":"a"},{"key":"e","value":""}]}}"#;
    let Action::Arm(arm) = decode(Some(&Bytes::from_static(value)), &[]).unwrap().action else { panic!("an arm") };
    assert_eq!(arm.payload, Some(Bytes::new()));
    let values: Vec<Option<Bytes>> = arm.headers.into_iter().map(|header| header.value).collect();
    assert_eq!(values, [None, None, Some(Bytes::new())]);
}

#[test]
fn the_content_type_decides_and_is_read_with_tolerance() {
    let json = Bytes::from_static(EXAMPLES[3].as_bytes());
    let protobuf = encode(&example_commands()[3], Encoding::Protobuf);
    for json_type in ["application/json", "application/json; charset=utf-8", " Application/JSON ;x=y"] {
        assert!(decode(Some(&json), &with_type(json_type)).is_ok(), "{json_type}");
        assert!(decode(Some(&protobuf), &with_type(json_type)).is_err(), "{json_type}");
    }
    for protobuf_type in ["application/x-protobuf", "application/protobuf; v=1", "application/vnd.google.protobuf"] {
        assert!(decode(Some(&protobuf), &with_type(protobuf_type)).is_ok(), "{protobuf_type}");
        assert!(decode(Some(&json), &with_type(protobuf_type)).is_err(), "{protobuf_type}");
    }
    let upper = Header { key: "Content-Type".to_owned(), value: Some(text("application/json")) };
    assert_eq!(content_type::encoding_of(&protobuf, &[upper]).unwrap(), Encoding::Json, "names of headers in any case");
    let last = [with_type("text/plain"), with_type("application/json")].concat();
    assert_eq!(content_type::encoding_of(&protobuf, &last).unwrap(), Encoding::Json, "the last one counts");
    let null = Header { key: content_type::CONTENT_TYPE.to_owned(), value: None };
    assert_eq!(content_type::encoding_of(&json, &[null]).unwrap(), Encoding::Json, "null is no content type");
}

#[test]
fn unknown_protobuf_fields_are_passed_over() {
    let mut value = encode(&example_commands()[2], Encoding::Protobuf).to_vec();
    // Field 100, a varint.
    value.extend([0xA0, 0x06, 0x01]);
    assert_eq!(decode(Some(&Bytes::from(value)), &[]).unwrap(), example_commands()[2]);
}

/// L13: a command that is forwarded is read and written again, and fits where it came from.
#[test]
fn a_command_written_again_is_no_longer() {
    let arm = |payload: &str| format!(r#"{{"run":"r","arm":{{"timer_id":"t","kind":1,"after":"PT1S",{payload}}}}}"#);
    let zeros = "A".repeat(4000);
    let quotes = "\\\"".repeat(4000);
    let (zeros, quotes) = (format!(r#""payload_base64":"{zeros}""#), format!(r#""payload":"{quotes}""#));
    let values = [arm(&zeros), arm(&quotes), arm(r#""payload":"text""#)];
    for value in values.map(Bytes::from) {
        let command = decode(Some(&value), &[]).unwrap();
        let again = encode(&command, Encoding::Json);
        assert!(again.len() <= value.len(), "{} bytes became {}", value.len(), again.len());
        let protobuf = encode(&command, Encoding::Protobuf);
        let again = encode(&decode(Some(&protobuf), &[]).unwrap(), Encoding::Protobuf);
        assert_eq!(again, protobuf);
    }
}

#[test]
fn a_retention_finer_than_a_millisecond_rounds_up() {
    let seal = |retention| Command { reply: None, action: Action::SealRun { run: run("acme"), retention } };
    let value = encode(&seal(Some(Duration::from_nanos(1))), Encoding::Json);
    assert_eq!(decode(Some(&value), &[]).unwrap(), seal(Some(Duration::from_millis(1))));
}

proptest! {
    #[test]
    fn commands_come_back((command, encoding) in strategy::command()) {
        let value = encode(&command, encoding);
        prop_assert_eq!(decode(Some(&value), &[content_type::header(encoding)]).unwrap(), command.clone());
        prop_assert_eq!(decode(Some(&value), &[]).unwrap(), command, "the first byte tells as much");
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..96), json in "\\{.{0,60}") {
        let _ = (decode(Some(&Bytes::from(bytes)), &[]), decode(Some(&Bytes::from(json)), &[]));
    }

    #[test]
    fn no_damaged_command_panics(
        (command, encoding) in strategy::command(),
        at: prop::sample::Index,
        byte: u8,
        cut: prop::sample::Index,
    ) {
        let mut value = encode(&command, encoding).to_vec();
        let at = at.index(value.len());
        value[at] = byte;
        value.truncate(cut.index(value.len()) + 1);
        let _ = decode(Some(&Bytes::from(value)), &[content_type::header(encoding)]);
    }
}
