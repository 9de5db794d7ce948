//! What pause and resume do, what they leave as it is, and how other commands meet paused timers.

use std::time::Duration;

use expect_test::{Expect, expect};

use super::super::budget::Tick;
use super::super::command::{Action, Arm, OnConflict, RecurringWish, RuleWish, When};
use super::super::handler::{Done, FireContext, Fired, Handler, HandlerError};
use super::super::kind::KindNumber;
use super::super::model::{DueKey, Generation, Timer};
use super::super::scenario::{World, arm_at, arm_when, at, key, of_kind};
use super::super::sweep::SLICE_ROWS;
use crate::calendar::interval::Interval;
use crate::calendar::zone::Zone;
use crate::time::Timestamp;

pub(super) fn check(scenario: impl FnOnce(&mut World), expected: &Expect) {
    let mut world = World::new();
    scenario(&mut world);
    expected.assert_eq(&world.trace);
}

pub(super) fn every(interval: &str) -> RecurringWish {
    let rule = RuleWish::Every { interval: Interval::parse(interval).unwrap(), zone: Zone::utc(), anchor: None };
    RecurringWish { rule, count: None, until: None, from: None }
}

pub(super) fn recurring(wish: RecurringWish) -> Arm {
    arm_when("a", When::Recurring(Box::new(wish)))
}

#[test]
fn a_paused_timer_does_not_fire_and_keeps_all_that_it_has() {
    check(
        |world| {
            world.arm(0, arm_at("a", 10)).pause(5, "a", None);
            let paused = world.maps.timers[&key("a")].clone();
            world.tick(at(10)).pause(11, "a", None).tick(at(20));
            assert_eq!(world.maps.timers[&key("a")], paused, "a second pause changes nothing");
            let Timer { due, wake, generation, attempt, paused, .. } = paused;
            assert_eq!((due, wake, generation, attempt), (at(10), at(10), Generation(1), 0));
            assert_eq!(paused, Some(at(5)), "since the first");
            world.resume(21, "a", None).tick(at(21));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: paused 1
            a: paused 1
            a: resumed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
        "#]],
    );
}

#[test]
fn a_timer_that_is_resumed_before_its_due_fires_at_its_due() {
    check(
        |world| {
            world.arm(0, arm_at("a", 10)).pause(1, "a", Some(1)).resume(2, "a", Some(1)).tick(at(9)).tick(at(10));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: paused 1
            a: resumed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
        "#]],
    );
}

#[test]
fn what_is_not_there_is_not_found_and_another_version_is_told() {
    check(
        |world| {
            world.pause(0, "a", None).resume(0, "a", None).resume(0, "a", Some(3));
            world.arm(1, arm_at("a", 10)).pause(2, "a", Some(3)).resume(2, "a", Some(3)).resume(2, "a", None);
            world.pause(3, "a", None).resume(4, "a", Some(3)).tick(at(10)).resume(11, "a", None).tick(at(11));
            world.pause(12, "a", None).resume(12, "a", None);
        },
        &expect![[r#"
            a: not found
            a: not found
            a: not found
            a: armed 4 for 2026-12-01T00:00:10.000Z
            a: changed to 4
            a: changed to 4
            a: not paused 4
            a: paused 4
            a: changed to 4
            a: resumed 4 for 2026-12-01T00:00:10.000Z
            a fires: generation 4, due 2026-12-01T00:00:10.000Z
            a: not found
            a: not found
        "#]],
    );
}

/// A fire that a resume lets happen is as late as the resume: nobody was late before it.
#[test]
fn lateness_counts_from_the_resume() {
    let mut world = World::new();
    world.arm(0, arm_at("a", 10)).pause(1, "a", None).resume(60, "a", None);
    let mut tick = Tick::new(world.budget);
    let (outcome, _) = world.pass(&[KindNumber::new(1).unwrap()], at(62), &mut tick, &|| Duration::ZERO);
    assert_eq!(outcome.fired[0].lateness(), Duration::from_secs(2));
}

/// The limit of a kind counts from the due all the same: what is of no use any more does not go out.
#[test]
fn a_timer_that_is_resumed_too_late_expires() {
    check(
        |world| {
            world.arm(0, of_kind(5, arm_at("a", 10))).pause(1, "a", None).resume(41, "a", None).tick(at(41));
            world.arm(50, of_kind(5, arm_at("b", 60))).pause(51, "b", None).resume(90, "b", None).tick(at(90));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: paused 1
            a: resumed 1 for 2026-12-01T00:00:10.000Z
            a expires after 0 attempts, TooLate
            b: armed 4 for 2026-12-01T00:01:00.000Z
            b: paused 4
            b: resumed 4 for 2026-12-01T00:01:00.000Z
            b fires: generation 4, due 2026-12-01T00:01:00.000Z
        "#]],
    );
}

// N1: scans have passed the due when the resume comes; its record was written before they did.
#[test]
fn a_resume_for_an_instant_that_scans_have_passed_is_found() {
    check(
        |world| {
            world.arm(0, arm_at("a", 10)).arm(0, arm_at("b", 30)).pause(1, "a", None).tick(at(30));
            world.command(Some(at(20)), at(31), Action::Resume { key: key("a"), generation: None });
            world.tick(at(31));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            b: armed 2 for 2026-12-01T00:00:30.000Z
            a: paused 1
            b fires: generation 2, due 2026-12-01T00:00:30.000Z
            a: resumed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
        "#]],
    );
}

#[test]
fn a_held_timer_is_not_delivered_again_and_keeps_its_attempts() {
    check(
        |world| {
            world.arm(0, of_kind(4, arm_at("a", 10))).tick(at(10)).pause(20, "a", None).tick(at(70)).tick(at(500));
            world.resume(501, "a", None).tick(at(501)).pause(502, "a", None).resume(503, "a", None);
            world.tick(at(560)).tick(at(561)).tick(at(621));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            a: paused 1
            a: resumed 1 for 2026-12-01T00:00:10.000Z
            a fires, attempt 2: generation 1, due 2026-12-01T00:00:10.000Z
            a: paused 1
            a: resumed 1 for 2026-12-01T00:00:10.000Z
            a fires, attempt 3: generation 1, due 2026-12-01T00:00:10.000Z
            a expires after 3 attempts, AttemptsExhausted
        "#]],
    );
}

struct Fails;

impl Handler for Fails {
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        if ctx.attempt < 3 {
            return Err("not yet".into());
        }
        Ok(Fired::Done(Done::publish(timer)))
    }
}

/// An occurrence that was attempted came due before the pause: it is owed, as a one-time timer is.
#[test]
fn a_resting_timer_keeps_its_attempt() {
    check(
        |world| {
            world.handlers.register(1, Fails).unwrap();
            world.arm(0, arm_at("b", 10)).arm(0, recurring(every("PT10S"))).tick(at(10));
            world.pause(11, "a", None).pause(11, "b", None).tick(at(100));
            world.resume(101, "b", None).resume(101, "a", None).tick(at(101)).tick(at(111)).tick(at(120));
        },
        &expect![[r#"
            b: armed 1 for 2026-12-01T00:00:10.000Z
            a: armed 2 for 2026-12-01T00:00:10.000Z
            b fails, attempt 1: not yet
            a fails, attempt 1: not yet
            a: paused 2
            b: paused 1
            b: resumed 1 for 2026-12-01T00:00:10.000Z
            a: resumed 2 for 2026-12-01T00:00:10.000Z
            b fails, attempt 2: not yet
            a fails, attempt 2: not yet
            b fires, attempt 3: generation 1, due 2026-12-01T00:00:10.000Z
            a fires, attempt 3: generation 2, due 2026-12-01T00:00:10.000Z
            a fails, attempt 1: not yet
        "#]],
    );
}

#[test]
fn arms_meet_a_paused_timer_as_any_other() {
    check(
        |world| {
            world.arm(0, arm_at("a", 10)).pause(1, "a", None).arm(2, arm_at("a", 5)).tick(at(20));
            let replace = |seconds| Arm { on_conflict: OnConflict::Replace, ..arm_at("a", seconds) };
            world.arm(21, replace(30)).resume(22, "a", None).tick(at(30));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: paused 1
            a: already armed 1
            a: replaced by 4 for 2026-12-01T00:00:30.000Z
            a: not paused 4
            a fires: generation 4, due 2026-12-01T00:00:30.000Z
        "#]],
    );
}

#[test]
fn disarms_and_seals_remove_paused_timers() {
    check(
        |world| {
            world.arm(0, arm_at("a", 10)).pause(1, "a", None).disarm(2, "a", None).resume(3, "a", None);
            world.arm(4, of_kind(6, arm_at("b", 10))).pause(5, "b", None).disarm_run(6).resume(7, "b", None);
            world.arm(8, of_kind(6, arm_at("b", 10)));
            world.arm(9, arm_at("c", 10)).pause(10, "c", None).seal_run(11, None).resume(12, "c", None).tick(at(20));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: paused 1
            a: disarmed 1
            a: not found
            b: armed 5 for 2026-12-01T00:00:10.000Z
            b: paused 5
            run: run disarmed, 1
            b: not found
            b: already disarmed 5
            c: armed 10 for 2026-12-01T00:00:10.000Z
            c: paused 10
            run: run sealed, 1
            c: not found
        "#]],
    );
}

/// A large run is gone with its command, whether or not its rows are.
#[test]
fn a_swept_timer_is_not_there_to_be_paused_or_resumed() {
    check(
        |world| {
            for number in 0..=SLICE_ROWS {
                world.arm(0, arm_at(&format!("t{number:03}"), 10));
            }
            world.pause(1, "t256", None);
            world.trace.clear();
            world.disarm_run(2).pause(3, "t255", None).resume(3, "t256", None).tick(at(10)).work_off(11, 1_000);
        },
        &expect![[r#"
            t255: not found
            t256: not found
            worked off 1
            run: run disarmed, 257
        "#]],
    );
}

/// A row that cannot be read cannot be written either: it stays, and the client is told.
#[test]
fn what_cannot_be_read_is_not_paused() {
    check(
        |world| {
            world.arm(0, arm_at("a", 10));
            let timer = &world.maps.timers[&key("a")];
            world.maps.undecodable.push((timer.kind, timer.due_key()));
            world.pause(1, "a", None).disarm(2, "a", None);
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: rejected, unreadable: timer default/order/a is stored and cannot be read, so it stays as it is; disarm it, or arm it with replace
            a: disarmed 1
        "#]],
    );
}

#[test]
fn the_place_of_a_paused_timer_is_behind_all_instants() {
    let mut world = World::new();
    world.arm(0, arm_at("a", 10)).pause(1, "a", None);
    let place = world.maps.timers[&key("a")].due_key();
    assert!(place.is_parked(), "{place:?}");
    let latest = DueKey { wake: Timestamp::MAX, generation: Generation::COUNTER_MAX };
    assert!(latest < place && !latest.is_parked(), "no instant reaches it");
}
