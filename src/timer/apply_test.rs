//! Tests of how commands are judged.

use std::time::Duration;

use bytes::Bytes;
use expect_test::expect;

use super::super::command::{Action, Arm, OnConflict, When};
use super::super::kind::{KindNumber, KindRef};
use super::super::model::{Header, OutboxRecord};
use super::super::scenario::{World, arm_at, arm_when, at};
use crate::time::Timestamp;

fn check(scenario: impl FnOnce(&mut World), expected: &expect_test::Expect) {
    let mut world = World::new();
    scenario(&mut world);
    expected.assert_eq(&world.trace);
}

fn replacing(arm: Arm) -> Arm {
    Arm { on_conflict: OnConflict::Replace, ..arm }
}

fn of_kind(number: u32, arm: Arm) -> Arm {
    Arm { kind: KindRef::Number(KindNumber::new(number).unwrap()), ..arm }
}

// D15
#[test]
fn a_second_arm_that_keeps_changes_nothing() {
    check(
        |world| {
            world.arm(0, arm_when("a", When::AfterMillis(60_000))).arm(1, arm_when("a", When::AfterMillis(60_000)));
            world.tick(at(60)).tick(at(61));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:01:00.000Z
            a: already armed 1
            a fires: generation 1, due 2026-12-01T00:01:00.000Z
        "#]],
    );
}

// D14
#[test]
fn of_three_replacing_arms_the_last_one_fires() {
    check(
        |world| {
            world.arm(0, arm_at("a", 10)).arm(1, replacing(arm_at("a", 20))).arm(2, replacing(arm_at("a", 5)));
            world.tick(at(5)).tick(at(10)).tick(at(20));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: replaced by 2 for 2026-12-01T00:00:20.000Z
            a: replaced by 3 for 2026-12-01T00:00:05.000Z
            a fires: generation 3, due 2026-12-01T00:00:05.000Z
        "#]],
    );
}

// D8, L8
#[test]
fn a_disarmed_timer_does_not_fire_and_disarming_again_is_fine() {
    check(
        |world| {
            world.arm(0, arm_at("a", 10)).disarm(1, "a", None).disarm(2, "a", None).tick(at(10));
            world.arm(11, arm_at("a", 20)).disarm(12, "a", Some(1)).disarm(12, "a", Some(4)).tick(at(20));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: disarmed 1
            a: not found
            a: armed 4 for 2026-12-01T00:00:20.000Z
            a: changed to 4
            a: disarmed 4
        "#]],
    );
}

// T4, D7
#[test]
fn a_timer_due_now_fires_now_and_one_due_in_a_millisecond_does_not() {
    check(
        |world| {
            world.arm(0, arm_at("now", 0)).arm(0, arm_when("soon", When::AfterMillis(1))).tick(at(0));
            world.tick(Timestamp::from_millis(at(0).as_millis() + 1));
        },
        &expect![[r#"
            now: armed 1 for 2026-12-01T00:00:00.000Z
            soon: armed 2 for 2026-12-01T00:00:00.001Z
            now fires: generation 1, due 2026-12-01T00:00:00.000Z
            soon fires: generation 2, due 2026-12-01T00:00:00.001Z
        "#]],
    );
}

#[test]
fn each_kind_has_its_own_rule_for_past_dues() {
    check(
        |world| {
            world.arm(10, of_kind(1, arm_at("a", 9))).arm(10, of_kind(2, arm_at("b", 10)));
            world.arm(10, of_kind(3, arm_at("c", 9))).arm(10, of_kind(2, arm_at("d", 11)));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:09.000Z
            b: rejected, past_due: due 2026-12-01T00:00:10.000Z is not after the arming at 2026-12-01T00:00:10.000Z, and the kind rejects past dues
            c: skipped
            d: armed 4 for 2026-12-01T00:00:11.000Z
        "#]],
    );
}

#[test]
fn an_outage_of_ours_rejects_no_arm() {
    check(
        |world| {
            let arm = of_kind(2, arm_at("a", 10));
            world.command(Some(at(0)), at(3600), Action::Arm(Box::new(arm)));
            world.tick(at(3600));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
        "#]],
    );
}

// T1
#[test]
fn bad_instants_and_durations_are_rejected_by_name() {
    check(
        |world| {
            for after in [0, -1, i64::MIN, i64::MAX, 1_000_000_000_000_000_000] {
                world.arm(0, arm_when("a", When::AfterMillis(after)));
            }
            for at_ms in [-1, 1_796_083_200, i64::MAX] {
                world.arm(0, arm_when("a", When::At(Timestamp::from_millis(at_ms))));
            }
        },
        &expect![[r#"
            a: rejected, invalid_duration: after is 0 ms; give a duration above zero
            a: rejected, invalid_duration: after is -1 ms; give a duration above zero
            a: rejected, invalid_duration: after is -9223372036854775808 ms; give a duration above zero
            a: rejected, invalid_duration: after is 9223372036854775807 ms, which ends beyond the year 9999
            a: rejected, invalid_duration: after is 1000000000000000000 ms, which ends beyond the year 9999
            a: rejected, invalid_due: at is -1 ms, outside the years 1970 to 9999
            a: rejected, due_in_seconds: at is 1796083200 ms since 1970, which looks like seconds; give milliseconds
            a: rejected, invalid_due: at is 9223372036854775807 ms, outside the years 1970 to 9999
        "#]],
    );
}

// T2
#[test]
fn the_horizon_is_exact() {
    check(
        |world| {
            let horizon = i64::try_from(world.limits.horizon.as_millis()).unwrap();
            world
                .arm(0, arm_when("in", When::AfterMillis(horizon)))
                .arm(0, arm_when("out", When::AfterMillis(horizon + 1)));
        },
        &expect![[r#"
            in: armed 1 for 2028-01-05T00:00:00.000Z
            out: rejected, beyond_horizon: due 2028-01-05T00:00:00.001Z is more than limits.horizon, 400 days, after the arming at 2026-12-01T00:00:00.000Z; is the unit right?
        "#]],
    );
}

#[test]
fn after_needs_a_timestamp_that_is_not_ahead_of_us() {
    check(
        |world| {
            let after = || Action::Arm(Box::new(arm_when("a", When::AfterMillis(1000))));
            world.command(None, at(0), after());
            world.command(Some(at(301)), at(0), after());
            world.command(Some(at(300)), at(0), after());
            world.command(None, at(0), Action::Arm(Box::new(arm_at("b", 1))));
        },
        &expect![[r#"
            a: rejected, missing_timestamp: after counts from the record's timestamp, and the record has none; send one, or use at
            a: rejected, timestamp_ahead: the record's timestamp 2026-12-01T00:05:01.000Z is more than 300 s ahead of 2026-12-01T00:00:00.000Z; set the producer's clock
            a: armed 3 for 2026-12-01T00:05:01.000Z
            b: armed 4 for 2026-12-01T00:00:01.000Z
        "#]],
    );
}

#[test]
fn an_unknown_number_is_stored_and_an_unknown_name_is_rejected() {
    check(
        |world| {
            world.arm(0, of_kind(77, arm_at("a", 1))).tick(at(2));
            world.arm(0, of_kind(240, arm_at("reserved", 1)));
            world.arm(0, Arm { kind: KindRef::Name("fax".to_owned()), ..arm_at("b", 1) });
            world.arm(0, Arm { kind: KindRef::Name("email".to_owned()), ..arm_at("c", 1) });
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:01.000Z
            reserved: rejected, invalid_kind: kind number 240 is reserved for tests; use 1 to 239
            b: rejected, unknown_kind: kind `fax` is not known here; declare it under `kinds`, or name it by its number
            c: armed 4 for 2026-12-01T00:00:01.000Z
        "#]],
    );
}

#[test]
fn what_would_not_fit_when_fired_is_rejected_when_armed() {
    let header = |key: &str| Header { key: key.to_owned(), value: None };
    let outbox = |bytes: usize| OutboxRecord { key: None, value: Some(Bytes::from(vec![0; bytes])), headers: vec![] };
    check(
        |world| {
            world.limits.fired_bytes_max = 10_000;
            world.limits.outbox_bytes_max = 5_000;
            world.arm(0, Arm { payload: Some(Bytes::from(vec![0; 9_000])), ..arm_at("a", 1) });
            world.arm(0, Arm { outbox: vec![outbox(5_000)], ..arm_at("a", 1) });
            world.arm(0, Arm { outbox: vec![outbox(1); 17], ..arm_at("a", 1) });
            world.arm(0, of_kind(2, Arm { outbox: vec![outbox(1)], ..arm_at("a", 1) }));
            world.arm(0, Arm { headers: vec![header("punctual-x")], ..arm_at("a", 1) });
            world.arm(0, Arm { headers: vec![header("ce_id")], ..arm_at("a", 1) });
            world.arm(0, Arm { headers: vec![header("x"); 129], ..arm_at("a", 1) });
            world.arm(0, Arm { outbox: vec![outbox(100); 16], headers: vec![header("x"); 128], ..arm_at("a", 1) });
        },
        &expect![[r#"
            a: rejected, too_large: the fired record and its outbox would take 10076 bytes; at most 10000 fit (limits.fired_bytes_max)
            a: rejected, too_large: outbox takes 5016 bytes; at most 5000 fit
            a: rejected, too_many: outbox has 17 records; at most 16 fit
            a: rejected, no_outbox: kind `sms` has no outbox topic; set `outbox: true` for it
            a: rejected, reserved_header: header `punctual-x` is reserved; names are not empty and do not start with punctual- or ce_
            a: rejected, reserved_header: header `ce_id` is reserved; names are not empty and do not start with punctual- or ce_
            a: rejected, too_many: a record has 129 headers; at most 128 fit
            a: armed 8 for 2026-12-01T00:00:01.000Z
        "#]],
    );
}

#[test]
fn a_generation_never_falls_after_disarm_and_re_arm() {
    check(
        |world| {
            world.arm(0, arm_at("a", 10)).disarm(0, "a", None).arm(0, arm_at("a", 10)).disarm_run(0);
            world.arm(0, arm_at("a", 10)).seal_run(0, Some(Duration::from_mins(1))).arm(1, arm_at("a", 10));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: disarmed 1
            a: armed 3 for 2026-12-01T00:00:10.000Z
            run: run disarmed, 1
            a: armed 5 for 2026-12-01T00:00:10.000Z
            run: run sealed, 1
            a: sealed
        "#]],
    );
}
