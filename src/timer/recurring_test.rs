//! Tests of timers that recur: dates, bounds, absences, and how commands meet them.

use std::num::NonZeroU64;

use expect_test::expect;

use super::super::command::{Arm, OnConflict, RecurringWish, RuleWish, When};
use super::super::kind::{KindNumber, KindRef};
use super::super::scenario::{World, arm_at, arm_when, at};
use crate::calendar::cron::Cron;
use crate::calendar::interval::Interval;
use crate::calendar::zone::Zone;
use crate::time::Timestamp;

fn check(scenario: impl FnOnce(&mut World), expected: &expect_test::Expect) {
    let mut world = World::new();
    scenario(&mut world);
    expected.assert_eq(&world.trace);
}

fn every(interval: &str) -> RecurringWish {
    let rule = RuleWish::Every { interval: Interval::parse(interval).unwrap(), zone: Zone::utc(), anchor: None };
    RecurringWish { rule, count: None, until: None, from: None }
}

fn arm(wish: RecurringWish) -> Arm {
    arm_when("a", When::Recurring(Box::new(wish)))
}

#[test]
fn each_fire_dates_the_timer_anew() {
    check(
        |world| {
            world.arm(0, arm(every("PT10S"))).tick(at(9)).tick(at(10)).tick(at(11)).tick(at(20));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            a fires: generation 2, due 2026-12-01T00:00:20.000Z
        "#]],
    );
}

// L7
#[test]
fn after_an_absence_it_fires_once_and_keeps_its_rhythm() {
    check(
        |world| {
            world.arm(3, arm(every("PT15S"))).tick(at(303)).tick(at(303)).tick(at(317)).tick(at(318));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:18.000Z
            a fires: generation 1, due 2026-12-01T00:00:18.000Z
            a fires: generation 2, due 2026-12-01T00:05:18.000Z
        "#]],
    );
}

#[test]
fn count_and_until_end_it() {
    check(
        |world| {
            let twice = RecurringWish { count: NonZeroU64::new(2), ..every("PT10S") };
            world.arm(0, arm(twice)).tick(at(10)).tick(at(20)).tick(at(30)).disarm(31, "a", None);
            let until = RecurringWish { until: Some(at(50)), ..every("PT10S") };
            world.arm(31, arm(until)).tick(at(41)).tick(at(51)).disarm(52, "a", None);
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            a fires: generation 2, due 2026-12-01T00:00:20.000Z
            a: not found
            a: armed 4 for 2026-12-01T00:00:41.000Z
            a fires: generation 4, due 2026-12-01T00:00:41.000Z
            a: not found
        "#]],
    );
}

#[test]
fn a_disarm_ends_it_unless_it_names_a_version_that_has_fired() {
    check(
        |world| {
            world.arm(0, arm(every("PT10S"))).tick(at(10)).disarm(11, "a", Some(1)).disarm(12, "a", None).tick(at(20));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            a: changed to 2
            a: disarmed 2
        "#]],
    );
}

#[test]
fn an_arm_keeps_or_replaces_it_as_any_timer() {
    check(
        |world| {
            world.arm(0, arm(every("PT10S"))).arm(5, arm_at("a", 7)).tick(at(10));
            world.arm(11, Arm { on_conflict: OnConflict::Replace, ..arm_at("a", 12) }).tick(at(12)).tick(at(30));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: already armed 1
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            a: replaced by 4 for 2026-12-01T00:00:12.000Z
            a fires: generation 4, due 2026-12-01T00:00:12.000Z
        "#]],
    );
}

#[test]
fn it_counts_from_the_record_however_late_it_is_applied() {
    check(
        |world| {
            let wish = || Box::new(every("PT10S"));
            let action = |id| super::super::command::Action::Arm(Box::new(arm_when(id, When::Recurring(wish()))));
            world.command(Some(at(0)), at(35), action("late"));
            world.tick(at(35)).tick(at(40));
            world.command(None, at(41), action("none"));
            world.command(Some(at(3600)), at(41), action("ahead"));
        },
        &expect![[r#"
            late: armed 1 for 2026-12-01T00:00:10.000Z
            late fires: generation 1, due 2026-12-01T00:00:10.000Z
            late fires: generation 2, due 2026-12-01T00:00:40.000Z
            none: rejected, missing_timestamp: the recurrence counts from the record's timestamp, and the record has none; send one, or use from
            ahead: rejected, timestamp_ahead: the record's timestamp 2026-12-01T01:00:00.000Z is more than 300 s ahead of 2026-12-01T00:00:41.000Z; set the producer's clock
        "#]],
    );
}

#[test]
fn a_recurrence_that_never_fires_is_rejected() {
    check(
        |world| {
            let wish = RecurringWish { until: Some(at(5)), ..every("PT10S") };
            world.arm(0, arm(wish));
            let from = Some(Timestamp::MAX);
            let cron = RuleWish::Cron(Cron::parse("@daily", Zone::utc()).unwrap());
            world.arm(0, arm(RecurringWish { rule: cron, count: None, until: None, from }));
        },
        &expect![[r#"
            a: rejected, invalid_schedule: the timer never fires: nothing is after 2026-12-01T00:00:00.000Z and not after until, 2026-12-01T00:00:05.000Z
            a: rejected, invalid_schedule: the timer never fires: no occurrence after 253402300799999 ms since the epoch can be computed
        "#]],
    );
}

/// A kind whose timers expire loses the occurrence that is too late, and not those behind it.
#[test]
fn an_occurrence_that_is_too_late_expires_alone() {
    check(
        |world| {
            let late = Arm { kind: KindRef::Number(KindNumber::new(5).unwrap()), ..arm(every("PT60S")) };
            world.arm(0, late).tick(at(119)).tick(at(120));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:01:00.000Z
            a expires after 0 attempts, TooLate
            a fires: generation 2, due 2026-12-01T00:02:00.000Z
        "#]],
    );
}
