//! Stored records, byte by byte, there and back, and across releases.

use std::fmt::Debug;
use std::num::NonZeroU64;

use expect_test::{Expect, expect};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;
use crate::calendar::cron::Cron;
use crate::calendar::every::Every;
use crate::calendar::interval::Interval;
use crate::calendar::recurrence::{Recurrence, Rule};
use crate::calendar::zone::Zone;
use crate::timer::model::{Header, OutboxRecord};
use crate::timer::recurring::Recurring;
use crate::wire::strategy;

fn timer() -> Timer {
    let run = RunKey { tenant: Tenant::parse("acme").unwrap(), run: Run::parse("order-42").unwrap() };
    let header = |value: Option<&'static [u8]>| Header { key: "x".to_owned(), value: value.map(Bytes::from_static) };
    Timer {
        key: TimerKey { run, id: TimerId::parse("reminder").unwrap() },
        kind: KindNumber::new(1).unwrap(),
        due: Timestamp::parse("2026-12-01T09:00:00.250Z").unwrap(),
        wake: Timestamp::parse("2026-12-01T09:00:05.250Z").unwrap(),
        generation: Generation(7),
        attempt: 1,
        armed: Timestamp::parse("2026-11-01T00:00:00Z").unwrap(),
        payload: Some(Bytes::from_static(b"text")),
        record_key: Some(Bytes::new()),
        headers: vec![header(Some(b"a")), header(Some(b"\xff")), header(Some(b"")), header(None)],
        outbox: vec![OutboxRecord { key: None, value: Some(Bytes::from_static(b"v")), headers: vec![header(None)] }],
        recurring: None,
        resolved_with: None,
        paused: None,
        claim: None,
    }
}

fn run_state() -> RunState {
    let reply = |encoding| Reply { correlation_id: "c-1".to_owned(), encoding };
    let replies = vec![
        SweepReply { reply: reply(Encoding::Json), sealed: true },
        SweepReply { reply: reply(Encoding::Protobuf), sealed: false },
    ];
    RunState {
        seal: Some(Seal { until: Some(Timestamp::from_millis(1_800_000_000_000)) }),
        sweep: Some(Sweep { below: Generation(9), removed: 3, replies }),
    }
}

fn claim(lease_ms: i64, attempts_max: Option<u32>) -> proto::Claim {
    proto::Claim { lease_ms, attempts_max }
}

#[test]
fn golden_bytes() {
    let check = |bytes: Bytes, expected: Expect| expected.assert_eq(&format!("{bytes:?}"));
    check(
        encode_timer(&timer()),
        expect![[
            r#"b"\x08\x01\x12\x04acme\x1a\x08order-42\"\x08reminder(\x010\xfa\xa6\xd4\x86\xa348\x82\xce\xd4\x86\xa34@\x07H\x01P\x80\xd0\x9f\xa3\x994Z\x04textb\0j\x06\n\x01x\x12\x01aj\x06\n\x01x\x12\x01\xffj\x05\n\x01x\x12\0j\x03\n\x01xr\x08\x12\x01v\x1a\x03\n\x01x""#
        ]],
    );
    let claim = Some(Claim { lease: Duration::from_mins(1), attempts_max: Some(3) });
    let run = RunKey { tenant: Tenant::parse("").unwrap(), run: Run::parse("r").unwrap() };
    let short = Timer {
        key: TimerKey { run, id: TimerId::parse("t").unwrap() },
        payload: None,
        headers: Vec::new(),
        outbox: Vec::new(),
        claim,
        ..timer()
    };
    check(
        encode_timer(&short),
        expect![[
            r#"b"\x08\x02\x12\x07default\x1a\x01r\"\x01t(\x010\xfa\xa6\xd4\x86\xa348\x82\xce\xd4\x86\xa34@\x07H\x01P\x80\xd0\x9f\xa3\x994b\0z\x06\x08\xe0\xd4\x03\x10\x03""#
        ]],
    );
    check(
        encode_timer(&Timer { paused: Some(Timestamp::from_millis(1_800_000_000_000)), ..short }),
        expect![[
            r#"b"\x08\x04\x12\x07default\x1a\x01r\"\x01t(\x010\xfa\xa6\xd4\x86\xa348\x82\xce\xd4\x86\xa34@\x07H\x01P\x80\xd0\x9f\xa3\x994b\0z\x06\x08\xe0\xd4\x03\x10\x03\xb0\x01\x80\xa0\xf1\xc2\xb14""#
        ]],
    );
    check(
        encode_run(&run_state()),
        expect![[
            r#"b"\x08\x01\x12\x07\x08\x80\xa0\xf1\xc2\xb14\x1a\x18\x08\t\x10\x03\x1a\t\n\x03c-1\x10\x02\x18\x01\x1a\x07\n\x03c-1\x10\x01""#
        ]],
    );
    check(encode_run(&RunState { seal: Some(Seal { until: None }), sweep: None }), expect![[r#"b"\x08\x01\x12\0""#]]);
    check(
        Meta {
            input_position: Position(42),
            next_generation: Generation(8),
            forwarders: [(Partition(5), Position(0)), (Partition(6), Position(300))].into(),
        }
        .encode(),
        expect![[r#"b"\x08\x01\x10*\x18\x08\"\x02\x08\x05\"\x05\x08\x06\x10\xac\x02""#]],
    );
    check(
        Barrier { nonce: 0x0102_0304_0506_0708, owner: "host-1".to_owned() }.encode(),
        expect![[r#"b"\x08\x01\x11\x08\x07\x06\x05\x04\x03\x02\x01\x1a\x06host-1""#]],
    );
}

#[test]
fn contradictions_are_errors() {
    let check = |change: fn(&mut proto::TimerState), expected: Expect| {
        let mut message = proto::TimerState::decode(encode_timer(&timer())).unwrap();
        change(&mut message);
        expected.assert_eq(&decode_timer(&message.encode_to_vec()).unwrap_err().to_string());
    };
    check(
        |timer| timer.generation = 1 << 63,
        expect!["timer cannot be decoded: its generation is 9223372036854775808, which no counter reaches"],
    );
    check(
        |timer| timer.wake_ms = timer.due_ms - 1,
        expect![
            "timer cannot be decoded: its wake 2026-12-01T09:00:00.249Z is before its due 2026-12-01T09:00:00.250Z"
        ],
    );
    check(|timer| timer.kind = 0, expect!["timer cannot be decoded: its kind is 0"]);
    check(|timer| timer.kind = 256, expect!["timer cannot be decoded: its kind is 256"]);
    check(|timer| timer.tenant.clear(), expect!["timer cannot be decoded: it has no tenant"]);
    check(|timer| timer.run.clear(), expect!["timer cannot be decoded: run `` is empty; give it 1 to 512 bytes"]);
    check(
        |timer| timer.timer_id.clear(),
        expect!["timer cannot be decoded: timer_id `` is empty; give it 1 to 512 bytes"],
    );
    check(
        |timer| timer.due_ms = -1,
        expect!["timer cannot be decoded: its due is -1 ms, outside the years 1970 to 9999"],
    );
    check(
        |timer| timer.wake_ms = i64::MAX,
        expect!["timer cannot be decoded: its wake is 9223372036854775807 ms, outside the years 1970 to 9999"],
    );
    check(|timer| timer.claim = Some(claim(0, None)), expect!["timer cannot be decoded: its lease is 0 ms"]);
    check(
        |timer| timer.claim = Some(claim(i64::MIN, None)),
        expect!["timer cannot be decoded: its lease is -9223372036854775808 ms"],
    );
    check(
        |timer| (timer.claim, timer.attempt) = (Some(claim(1, Some(3))), 4),
        expect!["timer cannot be decoded: it was attempted 4 times of at most 3"],
    );
    check(
        |timer| timer.paused_ms = Some(-1),
        expect!["timer cannot be decoded: its pause is -1 ms, outside the years 1970 to 9999"],
    );
    check(|timer| timer.reader_min = 0, expect!["timer cannot be decoded: it has no reader version"]);
}

/// T7: an old binary meets a newer record version and says so, rather than reading half of it.
#[test]
fn a_record_of_a_newer_release_is_recognised() {
    let check = |error: DecodeError| {
        assert!(matches!(error, DecodeError::TooNew { .. }), "{error}");
        error.to_string()
    };
    let mut message = proto::TimerState::decode(encode_timer(&timer())).unwrap();
    message.reader_min = 5;
    expect![
        "timer was written by a newer release: it needs reader version 5, this release has 4; upgrade this instance"
    ]
    .assert_eq(&check(decode_timer(&message.encode_to_vec()).unwrap_err()));
    let newer = proto::RunState { reader_min: 5, ..proto::RunState::default() };
    check(decode_run(&newer.encode_to_vec()).unwrap_err());
    check(Meta::decode(&newer.encode_to_vec()).unwrap_err());
    check(Barrier::decode(&newer.encode_to_vec()).unwrap_err());
}

/// T7: an older release, which knows reader version 1, keeps a timer that recurs as it is: fired once, as a plain one, it would be
/// gone. One that knows version 3 keeps a paused one, which it would fire; once resumed, the timer is anybody's again.
#[test]
fn only_a_timer_that_recurs_or_is_paused_needs_a_newer_reader() {
    let reader_min = |timer: &Timer| proto::TimerState::decode(encode_timer(timer)).unwrap().reader_min;
    assert_eq!(reader_min(&timer()), 1);
    assert_eq!(reader_min(&recurring_timer()), 2);
    for timer in [timer(), recurring_timer()] {
        assert_eq!(reader_min(&Timer { paused: Some(Timestamp::EPOCH), ..timer }), 4);
    }
    // What the digest says is only reported, so a release that loses it does no harm.
    assert_eq!(reader_min(&Timer { resolved_with: Some(Digest::from_bytes([7; 32])), ..timer() }), 1);
}

fn recurring_timer() -> Timer {
    let cron = Cron::parse("0 9 * * MON-FRI", Zone::get("Europe/Berlin").unwrap()).unwrap();
    let recurrence = Recurrence {
        rule: Rule::Cron(Box::new(cron)),
        count: NonZeroU64::new(10),
        until: Some(Timestamp::from_millis(1_900_000_000_000)),
    };
    let recurring = Some(Box::new(Recurring { recurrence, fired: 3 }));
    Timer { recurring, resolved_with: Some(Digest::from_bytes([7; 32])), headers: vec![], outbox: vec![], ..timer() }
}

fn interval_timer() -> Timer {
    let interval = Interval::parse("P1M").unwrap();
    let anchor = Timestamp::from_millis(1_800_000_000_000);
    let rule = Rule::Every(Every { interval, anchor, zone: Zone::utc() });
    let recurring = Recurring { recurrence: Recurrence { rule, count: None, until: None }, fired: 0 };
    Timer { recurring: Some(Box::new(recurring)), ..recurring_timer() }
}

#[test]
fn golden_bytes_of_recurrence() {
    let check = |timer: Timer, expected: Expect| {
        let bytes = encode_timer(&timer);
        expected.assert_eq(&format!("{bytes:?}"));
        assert_eq!(decode_timer(&bytes), Ok(timer));
    };
    check(
        recurring_timer(),
        expect![[
            r#"b"\x08\x02\x12\x04acme\x1a\x08order-42\"\x08reminder(\x010\xfa\xa6\xd4\x86\xa348\x82\xce\xd4\x86\xa34@\x07H\x01P\x80\xd0\x9f\xa3\x994Z\x04textb\0\xa2\x01+\n\x0f0 9 * * MON-FRI\x1a\rEurope/Berlin(\n0\x80\xf0\xcc\x86\xa678\x03\xaa\x01 \x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07""#
        ]],
    );
    check(
        interval_timer(),
        expect![[
            r#"b"\x08\x02\x12\x04acme\x1a\x08order-42\"\x08reminder(\x010\xfa\xa6\xd4\x86\xa348\x82\xce\xd4\x86\xa34@\x07H\x01P\x80\xd0\x9f\xa3\x994Z\x04textb\0\xa2\x01\x11\x12\x03P1M\x1a\x03UTC \x80\xa0\xf1\xc2\xb14\xaa\x01 \x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07""#
        ]],
    );
}

#[test]
fn a_recurrence_that_contradicts_itself_is_an_error() {
    let check = |change: fn(&mut proto::Recurrence), expected: Expect| {
        let mut message = proto::TimerState::decode(encode_timer(&recurring_timer())).unwrap();
        change(message.recurrence.as_mut().unwrap());
        expected.assert_eq(&decode_timer(&message.encode_to_vec()).unwrap_err().to_string());
    };
    check(
        |recurrence| recurrence.rule = None,
        expect!["timer cannot be decoded: its recurrence has no rule, or not the anchor that goes with it"],
    );
    check(
        |recurrence| recurrence.anchor_ms = Some(1),
        expect!["timer cannot be decoded: its recurrence has no rule, or not the anchor that goes with it"],
    );
    check(
        |recurrence| recurrence.zone = "Europe/Berlim".to_owned(),
        expect![
            "timer cannot be decoded: zone `Europe/Berlim` is not in the time zone database 2026f; use an IANA name such as Europe/Berlin"
        ],
    );
    check(|recurrence| recurrence.count = Some(0), expect!["timer cannot be decoded: it recurs 0 times"]);
    check(
        |recurrence| recurrence.fired = 10,
        expect!["timer cannot be decoded: it has fired 10 times, as often as it may"],
    );
    check(
        |recurrence| recurrence.until_ms = Some(-1),
        expect!["timer cannot be decoded: its until is -1 ms, outside the years 1970 to 9999"],
    );
    check(
        |recurrence| recurrence.rule = Some(proto::recurrence::Rule::Cron("0 9 * *".to_owned())),
        expect![
            "timer cannot be decoded: `0 9 * *` is not a usable cron expression: it has 4 fields instead of five, or six with seconds first; write minute, hour, day of month, month and day of week, such as `30 8 * * 1-5`"
        ],
    );
    let mut message = proto::TimerState::decode(encode_timer(&recurring_timer())).unwrap();
    message.resolved_with = Some(Bytes::from_static(b"short"));
    expect!["timer cannot be decoded: its digest has 5 bytes instead of 32"]
        .assert_eq(&decode_timer(&message.encode_to_vec()).unwrap_err().to_string());
}

/// New-reads-old and old-reads-new: an added field that may be lost is passed over.
#[test]
fn an_unknown_field_is_passed_over() {
    let mut bytes = encode_timer(&timer()).to_vec();
    // Field 100, a varint.
    bytes.extend([0xA0, 0x06, 0x01]);
    assert_eq!(decode_timer(&bytes).unwrap(), timer());
}

#[test]
fn an_empty_row_is_no_value() {
    assert!(decode_timer(&[]).is_err(), "timer");
    assert!(decode_run(&[]).is_err(), "run");
    assert!(Meta::decode(&[]).is_err(), "meta");
    assert!(Barrier::decode(&[]).is_err(), "barrier");
}

#[test]
fn a_meta_that_contradicts_itself_is_an_error() {
    let check = |change: fn(&mut proto::Meta), expected: Expect| {
        let mut message = proto::Meta { reader_min: 1, ..proto::Meta::default() };
        change(&mut message);
        expected.assert_eq(&Meta::decode(&message.encode_to_vec()).unwrap_err().to_string());
    };
    check(
        |meta| meta.next_generation = u64::MAX,
        expect!["meta cannot be decoded: its generation is 18446744073709551615, which no counter reaches"],
    );
    check(|meta| meta.input_position = -1001, expect!["meta cannot be decoded: its input position is -1001"]);
    check(
        |meta| meta.forwarders = vec![proto::Forwarder { partition: 9, position: -1 }],
        expect!["meta cannot be decoded: partition 9 forwarded up to -1, or stands there twice"],
    );
    check(
        |meta| meta.forwarders = vec![proto::Forwarder { partition: 9, position: 1 }; 2],
        expect!["meta cannot be decoded: partition 9 forwarded up to 1, or stands there twice"],
    );
}

fn same<T: Debug + PartialEq>(read: Result<T, DecodeError>, written: &T) -> Result<(), TestCaseError> {
    prop_assert_eq!(&read.unwrap(), written);
    Ok(())
}

proptest! {
    #[test]
    fn timers_come_back(timer in strategy::timer()) {
        same(decode_timer(&encode_timer(&timer)), &timer)?;
    }

    #[test]
    fn runs_come_back(state in strategy::run_state()) {
        same(decode_run(&encode_run(&state)), &state)?;
    }

    #[test]
    fn meta_comes_back(
        position in 0..=i64::MAX,
        generation in 0..=Generation::MAX.0,
        forwarders in btree_map(any::<u32>().prop_map(Partition), (0..=i64::MAX).prop_map(Position), 0..4),
    ) {
        let meta = Meta { input_position: Position(position), next_generation: Generation(generation), forwarders };
        same(Meta::decode(&meta.encode()), &meta)?;
    }

    #[test]
    fn barriers_come_back(nonce: u64, owner in ".{0,24}") {
        let barrier = Barrier { nonce, owner };
        same(Barrier::decode(&barrier.encode()), &barrier)?;
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..64)) {
        let _ = (decode_timer(&bytes), decode_run(&bytes), Meta::decode(&bytes), Barrier::decode(&bytes));
    }

    #[test]
    fn no_damaged_row_panics(timer in strategy::timer(), at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
        let mut bytes = encode_timer(&timer).to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(read) = decode_timer(&bytes) {
            prop_assert!(read.wake >= read.due, "what is decoded is valid");
        }
    }
}
