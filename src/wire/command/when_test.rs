//! The forms of *when* in both encodings, byte by byte, and what is refused of them.

use bytes::Bytes;
use expect_test::{Expect, expect};

use super::super::{decode, encode};
use super::*;
use crate::timer::command::{Action, Encoding};

/// The examples that the documentation shows, letter by letter.
const EXAMPLES: [&str; 5] = [
    r#""cron":{"expression":"0 9 * * MON-FRI","zone":"Europe/Berlin","count":10,"until":"2027-12-31T00:00:00.000Z"}"#,
    r#""every":{"interval":"P1M","zone":"Europe/Berlin","anchor":"2027-01-31T08:00:00.000Z"}"#,
    r#""every":{"interval":"PT15M","from":"2027-01-01T00:00:00.000Z"}"#,
    r#""local":{"time":"2027-03-28T02:30:00","zone":"Europe/Berlin","disambiguation":"later"}"#,
    r#""calendar":{"rule":"business","parameters":{"calendar":"de-by","n":5,"zone":"Europe/Berlin"}}"#,
];

fn command(when: &str) -> Bytes {
    Bytes::from(format!(r#"{{"run":"r","arm":{{"timer_id":"t","kind":1,{when}}}}}"#))
}

fn refusal(when: &str) -> Rejection {
    decode(Some(&command(when)), &[]).unwrap_err().rejection
}

#[test]
fn json_is_read_and_written_as_it_stands() {
    for example in EXAMPLES {
        let value = command(example);
        let read = decode(Some(&value), &[]).unwrap();
        assert_eq!(encode(&read, Encoding::Json), value);
    }
}

#[test]
fn golden_protobuf() {
    let written = EXAMPLES.map(|example| {
        let read = decode(Some(&command(example)), &[]).unwrap();
        let value = encode(&read, Encoding::Protobuf);
        assert_eq!(decode(Some(&value), &[]), Ok(read));
        format!("{value:?}")
    });
    expect![[r#"
        b"\x12\x01rR0\n\x01t\x10\x012)\n\x0f0 9 * * MON-FRI\x12\rEurope/Berlin\x18\n \x80\xc8\xda\x88\xa25"
        b"\x12\x01rR\"\n\x01t\x10\x01:\x1b\n\x03P1M\x12\rEurope/Berlin\x18\x80\xa0\x88\xd6\xb64"
        b"\x12\x01rR\x15\n\x01t\x10\x01:\x0e\n\x05PT15M0\x80\xa8\xaf\xf4\xac4"
        b"\x12\x01rR-\n\x01t\x10\x01B&\n\x132027-03-28T02:30:00\x12\rEurope/Berlin\x18\x03"
        b"\x12\x01rRH\n\x01t\x10\x01JA\n\x08business\x12\x13\n\x08calendar\x12\x07\x12\x05de-by\x12\x07\n\x01n\x12\x02\x08\x05\x12\x17\n\x04zone\x12\x0f\x12\rEurope/Berlin""#]].assert_eq(&written.join("\n"));
}

#[test]
fn what_is_left_out_has_its_default() {
    let when = |text: &str| match decode(Some(&command(text)), &[]).unwrap().action {
        Action::Arm(arm) => arm.when,
        other @ (Action::Disarm { .. }
        | Action::Pause { .. }
        | Action::Resume { .. }
        | Action::DisarmRun { .. }
        | Action::SealRun { .. }) => panic!("{other:?}"),
    };
    let zone = |when: When| match when {
        When::Recurring(wish) => match wish.rule {
            RuleWish::Cron(cron) => cron.zone().clone(),
            RuleWish::Every { zone, .. } => zone,
        },
        When::At(_) | When::AfterMillis(_) | When::Local(_) | When::Calendar { .. } => panic!("{when:?}"),
    };
    assert_eq!(zone(when(r#""cron":{"expression":"@daily"}"#)), Zone::utc());
    assert_eq!(zone(when(r#""every":{"interval":"PT5M"}"#)), Zone::utc());
    let local = when(r#""local":{"time":"2027-03-28T02:30","zone":"utc"}"#);
    assert!(matches!(local, When::Local(LocalTime { disambiguation: Disambiguation::Compatible, .. })), "{local:?}");
    let rule = when(r#""calendar":{"rule":"days"}"#);
    assert_eq!(rule, When::Calendar { rule: "days".to_owned(), parameters: Parameters::default() });
}

#[test]
fn parameters_of_any_type_reach_the_rule() {
    let text = r#""calendar":{"rule":"days","parameters":{"a":1.5,"b":true,"c":null,"d":18446744073709551615,"e":-7,"f":"7"}}"#;
    let Action::Arm(arm) = decode(Some(&command(text)), &[]).unwrap().action else { panic!("an arm") };
    let When::Calendar { parameters, .. } = arm.when else { panic!("a rule") };
    expect![[r#"[Other("1.5"), Other("true"), Other("null"), Other("18446744073709551615"), Integer(-7), Text("7")]"#]]
        .assert_eq(&format!("{:?}", parameters.0.values().collect::<Vec<_>>()));
}

fn check(when: &str, expected: &Expect) {
    let Rejection { reason, detail } = refusal(when);
    expected.assert_eq(&format!("{}: {detail}", reason.name()));
}

#[test]
fn what_is_no_recurrence_is_refused_by_name() {
    check(
        r#""cron":{"expression":"0 9 * *"}"#,
        &expect![
            "invalid_schedule: `0 9 * *` is not a usable cron expression: it has 4 fields instead of five, or six with seconds first; write minute, hour, day of month, month and day of week, such as `30 8 * * 1-5`"
        ],
    );
    check(
        r#""cron":{"expression":"0 9 * * *","zone":"Berlin"}"#,
        &expect![
            "invalid_schedule: zone `Berlin` is not in the time zone database 2026f; use an IANA name such as Europe/Berlin"
        ],
    );
    check(
        r#""cron":{"expression":"0 9 * * *","count":0}"#,
        &expect!["invalid_schedule: count is 0; give 1 or more, or leave it out for no end"],
    );
    check(
        r#""cron":{"expression":"0 9 * * *","until":"2027-01-01"}"#,
        &expect![
            "invalid_due: `arm.cron.until`: `2027-01-01` is not an RFC 3339 instant such as 2026-12-01T09:00:00.250Z: failed to find time component, which is required for parsing a timestamp"
        ],
    );
    check(r#""cron":"0 9 * * *""#, &expect![[r#"unreadable: arm.cron is "0 9 * * *"; give an object"#]]);
    check(
        r#""every":{"interval":"1m"}"#,
        &expect![
            "invalid_schedule: `1m` is not a usable interval: expected to find duration beginning with `P` or `p`, but found `1` instead; write ISO 8601 such as PT15M, P1D, P2W or P1M"
        ],
    );
    check(
        r#""every":{"interval":"PT0S"}"#,
        &expect![
            "invalid_schedule: `PT0S` is not a usable interval: an interval must be one second or longer; write ISO 8601 such as PT15M, P1D, P2W or P1M"
        ],
    );
    check(r#""every":{}"#, &expect!["unreadable: `arm.every.interval` is missing; give it"]);
}

#[test]
fn what_is_no_civil_time_and_no_rule_is_refused_by_name() {
    check(r#""local":{"time":"2027-03-28T02:30"}"#, &expect!["unreadable: `arm.local.zone` is missing; give it"]);
    check(
        r#""local":{"time":"2027-03-28T02:30Z","zone":"UTC"}"#,
        &expect![
            "invalid_schedule: `2027-03-28T02:30Z` is not a civil time such as 2027-03-28T02:30 or 2027-03-28T02:30:15.250, without offset and zone"
        ],
    );
    check(
        r#""local":{"time":"2027-03-28T02:30","zone":"UTC","disambiguation":"never"}"#,
        &expect!["invalid_schedule: disambiguation `never` is not known; use compatible, earlier, later or reject"],
    );
    check(r#""calendar":{"parameters":{}}"#, &expect!["unreadable: `arm.calendar.rule` is missing; give it"]);
    check(
        r#""calendar":{"rule":"days","parameters":[]}"#,
        &expect!["unreadable: `arm.calendar.parameters` is a list; give an object"],
    );
    check(
        r#""calendar":{"rule":"days","parameters":{"n":1,"n":2}}"#,
        &expect!["unreadable: `arm.calendar.parameters.n` stands twice; give it once"],
    );
    check(
        r#""at":"2027-01-01T00:00:00Z","cron":{"expression":"@daily"}"#,
        &expect!["unreadable: `arm.at` and `arm.cron` are both given; give one of them"],
    );
    check(
        r#""payload":"x""#,
        &expect![
            "unreadable: `arm.at`, `arm.after`, `arm.cron`, `arm.every`, `arm.local`, `arm.calendar` are all missing; give one of them"
        ],
    );
    check(
        r#""calendar":{"rule":"days","parameters":{"n":[1]}}"#,
        &expect!["invalid_parameters: `arm.calendar.parameters.n` is a list; give a whole number or a text"],
    );
    let many: Vec<String> = (0..17).map(|n| format!(r#""p{n}":1"#)).collect();
    check(
        &format!(r#""calendar":{{"rule":"days","parameters":{{{}}}}}"#, many.join(",")),
        &expect!["too_many: the rule has 17 parameters; at most 16 fit"],
    );
    check(
        &format!(r#""calendar":{{"rule":"{}"}}"#, "x".repeat(257)),
        &expect![
            "invalid_parameters: rule `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…` has 257 bytes; at most 256 fit"
        ],
    );
}
