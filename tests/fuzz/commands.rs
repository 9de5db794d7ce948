//! Records of the arm topic: value, content type and headers.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use punctual::timer::command::{Action, Command, Encoding, Reply};
use punctual::timer::kind::KindRef;
use punctual::timer::model::Header;
use punctual::wire::command::{decode, decode_record, encode, is_scheduled, resolved};
use punctual::wire::{content_type, forward};

use crate::bounds::Ceiling;
use crate::mangled::{arbitrary, mangled};
use crate::strategy;
use crate::trial::fuzz;

/// Beside the bytes: as many parts as one command may have, in a tree of JSON.
const CEILING: Ceiling = Ceiling { bytes_for_each: 8, bytes_beside: 3 * 1024 * 1024 };
/// What a rejection may say: it becomes a header of a dead letter, and a line of the log.
const DETAIL_BYTES_MAX: usize = 2048;

const MEDIA_TYPES: &[&str] =
    &["", content_type::JSON, content_type::PROTOBUF, "application/json; charset=utf-8", "text/plain"];

const HEADER_NAMES: &[&str] = &[
    "content-type",
    "Content-Type",
    "punctual-forwarded",
    "punctual-at",
    "punctual-calendar",
    "punctual-kind",
    "punctual-timer-id",
];

/// Inputs that failed once.
const KEPT: &[(&[u8], &str)] = &[
    (b"{\"run\":\"r\",\"arm\":{\"timer_id\":\"t\",\"kind\":1,\"at\":\"1970-01-01\\u0001T00\"}}", "application/json"),
    (
        b"{\"run\":\"r\",\"arm\":{\"timer_id\":\"t\",\"kind\":1,\"calendar\":{\"rule\":\"x\",\"parameters\":{\"n\":90901251609610000000}}}}",
        "application/json",
    ),
    (b"{\"run\":\"r\",\"arm\":{\"timer_id\":\"t\",\"kind\":\"\\n\",\"after\":\"PT\\u0000\"}}", "application/json"),
];

fn check(value: &[u8], headers: &[Header]) -> Result<(), TestCaseError> {
    let value = Bytes::copy_from_slice(value);
    let header_bytes: usize = headers.iter().map(|header| header.value.as_ref().map_or(0, Bytes::len)).sum();
    match CEILING
        .check(value.len() + header_bytes, || decode_record(Some(&value), Some(&value), headers).map_err(Box::new))
    {
        Ok(command) => {
            let encoding = if is_scheduled(headers) {
                let again = decode_record(Some(&value), Some(&value), &resolved(headers, &command));
                prop_assert_eq!(again.as_ref(), Ok(&command), "INV-WIRE-2: {:?}", headers);
                Encoding::Json
            } else {
                content_type::encoding_of(&value, headers).unwrap()
            };
            let written = encode(&command, encoding);
            let again = decode(Some(&written), &[content_type::header(encoding)]);
            prop_assert_eq!(again, Ok(command), "INV-WIRE-2: {:?}", written);
        }
        Err(refused) => {
            let detail = refused.rejection.detail;
            prop_assert!(detail.len() <= DETAIL_BYTES_MAX, "{} bytes of detail: {detail}", detail.len());
            prop_assert!(!detail.chars().any(char::is_control), "a line of the log has control characters: {detail:?}");
        }
    }
    Ok(())
}

fn check_named(value: &[u8], media_type: &[u8]) -> Result<(), TestCaseError> {
    let value_of_header = Some(Bytes::copy_from_slice(media_type));
    check(value, &[Header { key: content_type::CONTENT_TYPE.to_owned(), value: value_of_header }])
}

fn written(encoding: Encoding) -> impl Strategy<Value = Vec<u8>> + Clone {
    let command = strategy::command().prop_map(move |(command, _)| encode(&command, encoding).to_vec());
    command.boxed()
}

#[test]
fn what_failed_once_is_well() {
    for (value, media_type) in KEPT {
        check_named(value, media_type.as_bytes()).unwrap();
    }
}

/// What is refused for its size is said in a few words.
#[test]
fn endless_texts_that_are_no_instant_and_no_duration() {
    for field in ["at", "after"] {
        for text in ["1970-01-01T00".to_owned() + &"\u{feff}".repeat(9_000), "PT1".to_owned() + &"é".repeat(9_000)] {
            let value = format!(r#"{{"run":"r","arm":{{"timer_id":"t","kind":1,"{field}":"{text}"}}}}"#);
            check_named(value.as_bytes(), b"application/json").unwrap();
        }
    }
}

#[test]
fn protobuf_that_was_damaged() {
    fuzz(&mangled(written(Encoding::Protobuf)), |value| check_named(&value, content_type::PROTOBUF.as_bytes()));
}

#[test]
fn json_that_was_damaged() {
    fuzz(&mangled(written(Encoding::Json)), |value| check_named(&value, content_type::JSON.as_bytes()));
}

/// A crowd of parts that are nearly nothing on the wire.
#[test]
fn crowds_of_empty_parts() {
    let crowds: &[(&str, &str, &str)] = &[
        ("[", "0,", "0]"),
        ("[", "[],", "[]]"),
        ("{", "\"\":0,", "\"\":0}"),
        ("{\"run\":\"r\",\"arm\":{\"timer_id\":\"t\",\"kind\":1,\"after\":\"PT1S\",\"outbox\":[", "{},", "{}]}}"),
        ("{\"run\":\"r\",\"arm\":{\"headers\":[", "{\"key\":\"\"},", "{\"key\":\"\"}]}}"),
    ];
    fuzz(&(prop::sample::select(crowds), 0..20_000_usize), |((begin, part, end), times)| {
        check_named(format!("{begin}{}{end}", part.repeat(times)).as_bytes(), b"application/json")
    });
    let in_arm = |part: u8, times: usize| {
        let length = 2 * u32::try_from(times).unwrap();
        // The length as a varint of four bytes.
        let varint = [0, 7, 14].map(|shift| u8::try_from(length >> shift & 0x7F).unwrap() | 0x80);
        let mut arm = vec![0x52, varint[0], varint[1], varint[2], u8::try_from(length >> 21).unwrap()];
        (0..times).for_each(|_| arm.extend([part, 0]));
        arm
    };
    fuzz(&(any::<u8>(), 0..40_000_usize), |(part, times)| check_named(&in_arm(part, times), b"application/x-protobuf"));
}

#[test]
fn bytes_of_any_kind_under_any_content_type() {
    let media_type = prop_oneof![
        4 => prop::sample::select(MEDIA_TYPES).prop_map(|name| Bytes::from_static(name.as_bytes())),
        1 => arbitrary(),
    ];
    fuzz(&(arbitrary(), media_type), |(value, media_type)| check_named(&value, &media_type));
}

#[test]
fn headers_of_any_kind() {
    let name = prop_oneof![3 => prop::sample::select(HEADER_NAMES).prop_map(str::to_owned), 1 => ".{0,16}"];
    let place = "[0-9]{0,20}@[0-9]{0,20}".prop_map(Bytes::from);
    let header = (name, option::of(prop_oneof![arbitrary(), place])).prop_map(|(key, value)| Header { key, value });
    let headers = vec(header, 0..6);
    let value = prop_oneof![written(Encoding::Json), written(Encoding::Protobuf)];
    fuzz(&(value, headers), |(value, headers)| {
        if let Some(origin) = forward::origin(&headers) {
            prop_assert!(headers.contains(&forward::header(origin)), "{origin:?} is written as it was read");
        }
        check(&value, &headers)
    });
}

/// Every form of when that a command may have is read back from headers.
#[test]
fn records_that_are_scheduled_as_they_are_come_back() {
    fuzz(&strategy::command(), |(command, _)| {
        let Action::Arm(arm) = &command.action else { return Ok(()) };
        let text = |name: &str, text: &str| Header { key: name.to_owned(), value: Some(Bytes::from(text.to_owned())) };
        let kind = match &arm.kind {
            KindRef::Number(number) => number.to_string(),
            // Digits are a number in this form.
            KindRef::Name(name) if name.bytes().all(|byte| byte.is_ascii_digit()) => return Ok(()),
            KindRef::Name(name) => name.clone(),
        };
        let mut headers = vec![
            text("punctual-tenant", arm.key.run.tenant.as_str()),
            text("punctual-run", arm.key.run.run.as_str()),
            text("punctual-timer-id", arm.key.id.as_str()),
            text("punctual-kind", &kind),
        ];
        headers.extend(arm.headers.iter().filter(|header| !header.key.starts_with("punctual-")).cloned());
        let headers = resolved(&headers, &command);
        let Action::Arm(read) = decode_record(arm.record_key.as_ref(), arm.payload.as_ref(), &headers).unwrap().action
        else {
            return Err(TestCaseError::fail("no arm"));
        };
        prop_assert_eq!((&read.key, &read.when), (&arm.key, &arm.when));
        prop_assert_eq!((&read.record_key, &read.payload), (&arm.record_key, &arm.payload));
        check(arm.payload.as_deref().unwrap_or_default(), &headers)
    });
}

#[test]
fn commands_of_any_kind_come_back() {
    fuzz(&strategy::command(), |(command, encoding)| {
        let written = encode(&command, encoding);
        prop_assert_eq!(decode(Some(&written), &[content_type::header(encoding)]), Ok(command));
        Ok(())
    });
}

/// The same command in the other encoding, as a client would write it that changes its mind.
#[test]
fn both_encodings_carry_the_same_commands() {
    fuzz(&strategy::command(), |(command, encoding)| {
        let other = match encoding {
            Encoding::Protobuf => Encoding::Json,
            Encoding::Json => Encoding::Protobuf,
        };
        let reply = command.reply.clone().map(|reply| Reply { encoding: other, ..reply });
        let written = encode(&command, other);
        let expected = Command { reply, ..command };
        prop_assert_eq!(decode(Some(&written), &[content_type::header(other)]), Ok(expected));
        Ok(())
    });
}
