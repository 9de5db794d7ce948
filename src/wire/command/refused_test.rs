//! What is refused, with which reason and sentence, and what is still known of it.

use expect_test::{Expect, expect};

use super::*;

/// One line for each value: the reason, the sentence, and what is known.
#[expect(clippy::needless_pass_by_value, reason = "reads as expect![] at each call")]
fn check<V: Into<Bytes> + Clone>(values: &[V], expected: Expect) {
    let mut lines = String::new();
    for value in values {
        let refused = decode(Some(&value.clone().into()), &[]).unwrap_err();
        lines.push_str(&show(&refused));
        lines.push('\n');
    }
    expected.assert_eq(&lines);
}

/// The same for arms with these fields beside their id.
fn check_arms(fields: &[&str], expected: Expect) {
    let arm = |fields: &&str| format!(r#"{{"run":"r","correlation_id":"c","arm":{{"timer_id":"t",{fields}}}}}"#);
    check(&fields.iter().map(arm).collect::<Vec<_>>(), expected);
}

fn show(refused: &Refused) -> String {
    let Refused { rejection, reply, run, timer } = refused;
    let about = match (timer, run) {
        (Some(timer), _) => timer.to_string(),
        (None, Some(run)) => run.to_string(),
        (None, None) => "?".to_owned(),
    };
    let reply = reply.as_ref().map_or("", |reply| reply.correlation_id.as_str());
    format!("[{about} {reply}] {}: {}", rejection.reason.name(), rejection.detail)
}

#[test]
fn a_record_without_a_command() {
    let null = decode(None, &[]).unwrap_err();
    expect!["[? ] unreadable: the record has no value; send a command as protobuf or JSON"].assert_eq(&show(&null));
    check(
        &["", "hello", "\u{7f}\u{7f}", "{", "{}", "{} {}", r#"{"run":"r"}"#],
        expect![[r#"
            [? ] unreadable: the record has no value; send a command as protobuf or JSON
            [? ] unreadable: the value is not a punctual.v1.Command: failed to decode Protobuf message: Command.action: invalid wire type: Varint (expected LengthDelimited); for JSON send the header content-type: application/json
            [? ] unreadable: the value is not a punctual.v1.Command: failed to decode Protobuf message: invalid wire type value: 7; for JSON send the header content-type: application/json
            [? ] unreadable: the command is not JSON: EOF while parsing an object at line 1 column 1
            [? ] unreadable: `run` is missing; give it
            [? ] unreadable: behind the command stands more: trailing characters at line 1 column 4
            [default/r ] unreadable: the command has no action; give one of arm, disarm, disarm_run, seal_run, pause, resume
        "#]],
    );
}

#[test]
fn a_content_type_that_does_not_fit() {
    let refusal = |value: &'static str, media_type: &'static str| {
        let key = content_type::CONTENT_TYPE.to_owned();
        let header = Header { key, value: Some(Bytes::from_static(media_type.as_bytes())) };
        show(&decode(Some(&Bytes::from_static(value.as_bytes())), &[header]).unwrap_err())
    };
    expect!["[? ] unreadable: the header content-type is `application/avro`; send application/json, application/x-protobuf, or no such header"].assert_eq(&refusal("{}", "application/avro"));
    expect!["[? ] unreadable: the command is a list; give an object"].assert_eq(&refusal("[]", "application/json"));
}

#[test]
fn unknown_fields_by_name_at_any_depth() {
    check(
        &[
            r#"{"run":"r","correlation_id":"c","disarmrun":{}}"#,
            r#"{"run":"r","correlation_id":"c","disarm_run":{"all":true}}"#,
            r#"{"run":"r","disarm":{"timer_id":"t","gen":7}}"#,
            r#"{"run":"r","seal_run":{"retention_ms":7}}"#,
        ],
        expect![[r#"
            [default/r c] unreadable: `disarmrun` is not a known field; known here: tenant, run, correlation_id, arm, disarm, disarm_run, seal_run, pause, resume
            [default/r c] unreadable: `disarm_run.all` is not a known field; known here: none
            [default/r/t ] unreadable: `disarm.gen` is not a known field; known here: timer_id, generation
            [default/r ] unreadable: `seal_run.retention_ms` is not a known field; known here: retention
        "#]],
    );
    check_arms(
        &[
            r#""kind":1,"after":"PT1S","body":"x""#,
            r#""kind":1,"after":"PT1S","headers":[{"key":"a"},{"name":"x"}]"#,
            r#""kind":1,"after":"PT1S","outbox":[{"topic":"x"}]"#,
            r#""kind":1,"after":"PT1S","outbox":[{"headers":[{"key":"k","v":null}]}]"#,
        ],
        expect![[r#"
            [default/r/t c] unreadable: `arm.body` is not a known field; known here: timer_id, kind, at, after, cron, every, local, calendar, on_conflict, payload, payload_base64, key, key_base64, headers, outbox
            [default/r/t c] unreadable: `arm.headers[1].name` is not a known field; known here: key, value, value_base64
            [default/r/t c] unreadable: `arm.outbox[0].topic` is not a known field; known here: key, key_base64, value, value_base64, headers
            [default/r/t c] unreadable: `arm.outbox[0].headers[0].v` is not a known field; known here: key, value, value_base64
        "#]],
    );
}

#[test]
fn fields_that_stand_twice() {
    check(
        &[
            r#"{"run":"r","run":"s","correlation_id":"c","disarm_run":{}}"#,
            r#"{"run":"r","correlation_id":"c","disarm_run":{},"disarm_run":{}}"#,
        ],
        expect![[r#"
            [? c] unreadable: `run` stands twice; give it once
            [default/r c] unreadable: `disarm_run` stands twice; give it once
        "#]],
    );
    check_arms(
        &[r#""kind":1,"kind":2,"after":"PT1S""#],
        expect![[r#"
        [default/r/t c] unreadable: `arm.kind` stands twice; give it once
    "#]],
    );
}

#[test]
fn contradictions() {
    check(
        &[r#"{"run":"r","correlation_id":"c","disarm_run":{},"seal_run":{}}"#],
        expect![[r#"
        [default/r c] unreadable: the command has disarm_run and seal_run; send one action in a record
    "#]],
    );
    check_arms(
        &[
            r#""kind":1,"after":"PT1S","at":"2026-12-01T09:00:00Z""#,
            r#""kind":1,"after":"PT1S","payload":"a","payload_base64":"YQ==""#,
            r#""kind":1,"after":"PT1S","key":"a","key_base64":"YQ==""#,
            r#""kind":1,"after":"PT1S","headers":[{"key":"h","value":"a","value_base64":""}]"#,
        ],
        expect![[r#"
            [default/r/t c] unreadable: `arm.at` and `arm.after` are both given; give one of them
            [default/r/t c] unreadable: `arm.payload` and `arm.payload_base64` are both given; give one of them
            [default/r/t c] unreadable: `arm.key` and `arm.key_base64` are both given; give one of them
            [default/r/t c] unreadable: `arm.headers[0].value` and `arm.headers[0].value_base64` are both given; give one of them
        "#]],
    );
}

#[test]
fn missing_fields() {
    check(
        &[
            r#"{"tenant":"acme","correlation_id":"c","disarm":{"timer_id":"t"}}"#,
            r#"{"run":"r","correlation_id":"c","disarm":{}}"#,
            r#"{"run":"r","correlation_id":"c","arm":{}}"#,
        ],
        expect![[r#"
            [? c] unreadable: `run` is missing; give it
            [default/r c] unreadable: `disarm.timer_id` is missing; give it
            [default/r c] unreadable: `arm.timer_id` is missing; give it
        "#]],
    );
    check_arms(
        &[
            r#""after":"PT1S""#,
            r#""kind":1"#,
            r#""kind":1,"after":null"#,
            r#""kind":1,"after":"PT1S","headers":[{"value":"x"}]"#,
        ],
        expect![[r#"
            [default/r/t c] unreadable: `arm.kind` is missing; give it
            [default/r/t c] unreadable: `arm.at`, `arm.after`, `arm.cron`, `arm.every`, `arm.local`, `arm.calendar` are all missing; give one of them
            [default/r/t c] unreadable: `arm.at`, `arm.after`, `arm.cron`, `arm.every`, `arm.local`, `arm.calendar` are all missing; give one of them
            [default/r/t c] unreadable: `arm.headers[0].key` is missing; give it
        "#]],
    );
}

#[test]
fn values_of_a_wrong_type() {
    check(
        &[
            r#"{"run":5,"correlation_id":"c","disarm_run":{}}"#,
            r#"{"run":"r","correlation_id":true,"disarm_run":{}}"#,
            r#"{"run":"r","correlation_id":"c","disarm_run":true}"#,
        ],
        expect![[r#"
            [? c] unreadable: `run` is 5; give a text
            [default/r ] unreadable: `correlation_id` is true; give a text
            [default/r c] unreadable: disarm_run is true; give an object
        "#]],
    );
    check_arms(
        &[
            r#""kind":true,"after":"PT1S""#,
            r#""kind":1,"after":"PT1S","payload":{"a":1}"#,
            r#""kind":1,"after":"PT1S","payload_base64":"%%%""#,
            r#""kind":1,"after":"PT1S","headers":{"x":"y"}"#,
            r#""kind":1,"after":"PT1S","headers":["x"]"#,
            r#""kind":1,"after":"PT1S","on_conflict":"overwrite""#,
        ],
        expect![[r#"
            [default/r/t c] unreadable: `arm.kind` is true; give the kind's name, or its number
            [default/r/t c] unreadable: `arm.payload` is an object; give a text
            [default/r/t c] unreadable: `arm.payload_base64` is "%%%"; give base64 of the alphabet A-Z a-z 0-9 + /
            [default/r/t c] unreadable: `arm.headers` is an object; give a list
            [default/r/t c] unreadable: arm.headers[0] is "x"; give an object
            [default/r/t c] unreadable: `arm.on_conflict` is "overwrite"; give keep or replace
        "#]],
    );
}

/// T1: whatever is written where a number or an instant is meant, it is named and never wraps.
#[test]
fn numbers_that_are_none() {
    check(
        &[
            r#"{"run":"r","disarm":{"timer_id":"t","generation":-1}}"#,
            r#"{"run":"r","disarm":{"timer_id":"t","generation":7.0}}"#,
            r#"{"run":"r","disarm":{"timer_id":"t","generation":1e30}}"#,
            r#"{"run":"r","disarm":{"timer_id":"t","generation":1e400}}"#,
            r#"{"run":"r","disarm":{"timer_id":"t","generation":"7"}}"#,
            r#"{"run":"r","disarm":{"timer_id":"t","generation":NaN}}"#,
        ],
        expect![[r#"
            [default/r/t ] unreadable: `disarm.generation` is -1; give a whole number from 0 to 18446744073709551615
            [default/r/t ] unreadable: `disarm.generation` is 7.0; give a whole number from 0 to 18446744073709551615
            [default/r/t ] unreadable: `disarm.generation` is 1e30; give a whole number from 0 to 18446744073709551615
            [? ] unreadable: disarm.generation is not JSON: number out of range at line 1 column 54
            [default/r/t ] unreadable: `disarm.generation` is "7"; give a whole number from 0 to 18446744073709551615
            [? ] unreadable: disarm.generation is not JSON: expected value at line 1 column 50
        "#]],
    );
    check_arms(
        &[
            r#""kind":0,"after":"PT1S""#,
            r#""kind":256,"after":"PT1S""#,
            r#""kind":-1,"after":"PT1S""#,
            r#""kind":1.5,"after":"PT1S""#,
            r#""kind":18446744073709551615,"after":"PT1S""#,
            r#""kind":"","after":"PT1S""#,
            r#""kind":"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk","after":"PT1S""#,
        ],
        expect![[r#"
            [default/r/t c] invalid_kind: kind number 0 is not one; use 1 to 255, or the kind's name
            [default/r/t c] invalid_kind: kind number 256 is not one; use 1 to 255, or the kind's name
            [default/r/t c] invalid_kind: kind number -1 is not one; use 1 to 255, or the kind's name
            [default/r/t c] invalid_kind: kind number 1.5 is not one; use 1 to 255, or the kind's name
            [default/r/t c] invalid_kind: kind number 18446744073709551615 is not one; use 1 to 255, or the kind's name
            [default/r/t c] unknown_kind: kind `` is no kind's name: those have 1 to 64 characters
            [default/r/t c] unknown_kind: kind `kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk…` is no kind's name: those have 1 to 64 characters
        "#]],
    );
}

#[test]
fn instants_and_durations_that_are_none() {
    check(
        &[r#"{"run":"r","seal_run":{"retention":"-P7D"}}"#, r#"{"run":"r","seal_run":{"retention":604800}}"#],
        expect![[r#"
            [default/r ] invalid_duration: retention is -604800000 ms; give a duration above zero, or none to seal for ever
            [default/r ] invalid_duration: `seal_run.retention` is 604800; give an ISO 8601 duration as a text, such as "P7D"
        "#]],
    );
    check_arms(
        &[
            r#""kind":1,"at":1764579600000"#,
            r#""kind":1,"at":"1764579600""#,
            r#""kind":1,"at":"2026-12-01T09:00:00""#,
            r#""kind":1,"at":"1969-12-31T23:59:59Z""#,
            r#""kind":1,"after":5000"#,
            r#""kind":1,"after":"30m""#,
            r#""kind":1,"after":"P1M""#,
            r#""kind":1,"after":"PT99999999999999999999S""#,
        ],
        expect![[r#"
            [default/r/t c] invalid_due: `arm.at` is 1764579600000; give an RFC 3339 instant as a text, such as "2026-12-01T09:00:00.250Z"
            [default/r/t c] invalid_due: `arm.at`: `1764579600` is not an RFC 3339 instant such as 2026-12-01T09:00:00.250Z: failed to parse two digit integer as month: parameter 'month' is not in the required range of 1..=12
            [default/r/t c] invalid_due: `arm.at`: `2026-12-01T09:00:00` is not an RFC 3339 instant such as 2026-12-01T09:00:00.250Z: failed to find offset component, which is required for parsing a timestamp
            [default/r/t c] invalid_due: `arm.at`: `1969-12-31T23:59:59Z` is not an RFC 3339 instant such as 2026-12-01T09:00:00.250Z: outside the years 1970 to 9999
            [default/r/t c] invalid_duration: `arm.after` is 5000; give an ISO 8601 duration as a text, such as "PT30M"
            [default/r/t c] invalid_duration: arm.after `30m` is not a usable duration: expected to find duration beginning with `P` or `p`, but found `3` instead; write ISO 8601 such as PT30M, PT1.5S or P7D
            [default/r/t c] invalid_duration: arm.after `P1M` is not a usable duration: years and months have no fixed length; write ISO 8601 such as PT30M, PT1.5S or P7D
            [default/r/t c] invalid_duration: arm.after `PT99999999999999999999S` is not a usable duration: number too big to parse into 64-bit integer; write ISO 8601 such as PT30M, PT1.5S or P7D
        "#]],
    );
}

#[test]
fn identities_that_are_none() {
    check(
        &[
            r#"{"tenant":"a/b","run":"r","correlation_id":"c","disarm_run":{}}"#,
            r#"{"run":"","correlation_id":"c","disarm_run":{}}"#,
            r#"{"run":"a\nb","correlation_id":"c","disarm_run":{}}"#,
        ],
        expect![[r#"
            [? c] invalid_identity: tenant `a/b` has a character outside A-Z a-z 0-9 . _ ~ -
            [? c] invalid_identity: run `` is empty; give it 1 to 512 bytes
            [? c] invalid_identity: run `a\nb` has a control character
        "#]],
    );
    let long = "x".repeat(513);
    check(
        &[
            format!(r#"{{"run":"r","correlation_id":"c","disarm":{{"timer_id":"{long}"}}}}"#),
            format!(r#"{{"run":"r","correlation_id":"{long}","disarm_run":{{}}}}"#),
        ],
        expect![[r#"
            [default/r c] invalid_identity: timer_id `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…` is longer than 512 bytes
            [default/r ] invalid_identity: correlation_id `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…` has 513 bytes; give it at most 512
        "#]],
    );
}

#[test]
fn protobuf_that_is_no_command() {
    let command = |action| proto::Command {
        tenant: "acme".to_owned(),
        run: "r".to_owned(),
        correlation_id: "c".to_owned(),
        action,
    };
    let arm = |kind_ref, when, on_conflict| {
        let timer_id = "t".to_owned();
        let arm = proto::Arm { timer_id, kind_ref, when, on_conflict, ..proto::Arm::default() };
        command(Some(proto::command::Action::Arm(arm)))
    };
    let kind = Some(proto::arm::KindRef::KindNumber(1));
    let when = || Some(proto::arm::When::AfterMs(1));
    let seal = proto::SealRun { retention_ms: Some(-1) };
    let messages = [
        command(None),
        arm(None, when(), 0),
        arm(kind.clone(), None, 0),
        arm(kind.clone(), when(), 3),
        arm(Some(proto::arm::KindRef::KindNumber(0)), when(), 0),
        arm(Some(proto::arm::KindRef::KindNumber(256)), when(), 0),
        arm(Some(proto::arm::KindRef::Kind(String::new())), when(), 0),
        arm(kind.clone(), Some(proto::arm::When::AtMs(-1)), 0),
        arm(kind, Some(proto::arm::When::AtMs(i64::MAX)), 0),
        command(Some(proto::command::Action::SealRun(seal))),
    ];
    check(
        &messages.map(|message| message.encode_to_vec()),
        expect![[r#"
            [acme/r c] unreadable: the command has no action that this release knows; give one of arm, disarm, disarm_run, seal_run, pause, resume, or upgrade the service if the client is newer
            [acme/r/t c] unreadable: the arm has no kind; name it, or give its number
            [acme/r/t c] unreadable: the arm does not say when, in a form that this release knows; give one of at, after, cron, every, local, calendar
            [acme/r/t c] unreadable: on_conflict 3 is not known to this release; give keep or replace, or upgrade the service
            [acme/r/t c] invalid_kind: kind number 0 is not one; use 1 to 255, or the kind's name
            [acme/r/t c] invalid_kind: kind number 256 is not one; use 1 to 255, or the kind's name
            [acme/r/t c] unknown_kind: kind `` is no kind's name: those have 1 to 64 characters
            [acme/r/t c] invalid_due: at_ms is -1, outside the years 1970 to 9999; give milliseconds since 1970-01-01T00:00:00Z
            [acme/r/t c] invalid_due: at_ms is 9223372036854775807, outside the years 1970 to 9999; give milliseconds since 1970-01-01T00:00:00Z
            [acme/r c] invalid_duration: retention is -1 ms; give a duration above zero, or none to seal for ever
        "#]],
    );
}

/// INV-WIRE-1: a sentence repeats no more of a record than it needs.
#[test]
fn sentences_stay_short() {
    let long = "x".repeat(100_000);
    let values = [
        format!(r#"{{"{long}":1}}"#),
        format!(r#"{{"run":"{long}","disarm_run":{{}}}}"#),
        format!(r#"{{"run":"r","correlation_id":"{long}","disarm_run":{{}}}}"#),
        format!(r#"{{"run":"r","arm":{{"timer_id":"t","kind":"{long}","at":"{long}"}}}}"#),
        format!(r#"{{"run":"r","arm":{{"timer_id":"t","kind":"k","after":"{long}"}}}}"#),
        format!(r#"{{"run":"r","arm":{{"timer_id":"t","kind":"k","payload_base64":"{long}!"}}}}"#),
        format!(r#"{{"{long}":{{"{long}":nul}}}}"#),
        long,
    ];
    for value in values {
        let refused = decode(Some(&Bytes::from(value)), &[]).unwrap_err();
        assert!(refused.rejection.detail.len() < 700, "{}", refused.rejection.detail);
    }
}
