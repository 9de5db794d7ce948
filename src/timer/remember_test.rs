//! Tests of remembered ids: what an ending leaves behind, and what duplicates and stragglers meet.

use std::num::NonZeroU64;
use std::time::Duration;

use expect_test::expect;

use super::super::command::{Action, Arm, OnConflict, RecurringWish, RuleWish, When};
use super::super::handler::{Done, FireContext, Fired, Handler, HandlerError, TimerCommand};
use super::super::kind::KindNumber;
use super::super::model::Timer;
use super::super::scenario::{Maps, REMEMBER, World, ZERO_MS, arm_at, arm_when, at, key, of_kind};
use super::*;
use crate::calendar::interval::Interval;
use crate::calendar::zone::Zone;

/// How long the ids of kind 6 are remembered, in seconds.
const SECONDS: i64 = 600;

fn check(scenario: impl FnOnce(&mut World), expected: &expect_test::Expect) {
    let mut world = World::new();
    scenario(&mut world);
    expected.assert_eq(&world.trace);
}

fn kept(id: &str, seconds: i64) -> Arm {
    of_kind(6, arm_at(id, seconds))
}

fn replacing(arm: Arm) -> Arm {
    Arm { on_conflict: OnConflict::Replace, ..arm }
}

// D21
#[test]
fn a_duplicate_of_a_fired_timer_makes_no_second_one_until_it_is_forgotten() {
    assert_eq!(REMEMBER.as_secs(), SECONDS.unsigned_abs());
    check(
        |world| {
            world.arm(0, kept("a", 10)).tick(at(10)).arm(11, kept("a", 10)).arm(12, replacing(kept("a", 700)));
            world.disarm(13, "a", None).disarm(14, "a", Some(1)).disarm(15, "a", Some(2)).tick(at(600));
            world.arm(9 + SECONDS, kept("a", 700)).arm(10 + SECONDS, kept("a", 700)).tick(at(700));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            a: already fired 1
            a: already fired 1
            a: too late for 1
            a: too late for 1
            a: not found
            a: already fired 1
            a: armed 8 for 2026-12-01T00:11:40.000Z
            a fires: generation 8, due 2026-12-01T00:11:40.000Z
        "#]],
    );
}

#[test]
fn a_kind_that_remembers_nothing_frees_its_ids_at_once() {
    check(
        |world| {
            world.arm(0, arm_at("a", 10)).tick(at(10)).arm(11, arm_at("a", 20)).disarm(12, "a", None);
            world.arm(13, arm_at("a", 20)).tick(at(20)).disarm(21, "a", None);
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            a: armed 2 for 2026-12-01T00:00:20.000Z
            a: disarmed 2
            a: armed 4 for 2026-12-01T00:00:20.000Z
            a fires: generation 4, due 2026-12-01T00:00:20.000Z
            a: not found
        "#]],
    );
}

#[test]
fn a_disarmed_timer_is_remembered_as_such() {
    check(
        |world| {
            world.arm(0, kept("a", 10)).disarm(1, "a", None).arm(2, kept("a", 10)).arm(3, replacing(kept("a", 10)));
            world.disarm(4, "a", None).tick(at(10)).arm(1 + SECONDS, kept("a", 700));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: disarmed 1
            a: already disarmed 1
            a: already disarmed 1
            a: not found
            a: armed 6 for 2026-12-01T00:11:40.000Z
        "#]],
    );
}

#[test]
fn an_arm_that_comes_behind_its_disarm_does_not_fire() {
    check(
        |world| {
            world.disarm(1, "a", None).arm(2, kept("a", 10)).disarm(3, "a", None).tick(at(10));
            world.arm(SECONDS, kept("a", 700)).arm(1 + SECONDS, kept("a", 700)).tick(at(700));
        },
        &expect![[r#"
            a: not found
            a: already disarmed
            a: not found
            a: already disarmed
            a: armed 5 for 2026-12-01T00:11:40.000Z
            a fires: generation 5, due 2026-12-01T00:11:40.000Z
        "#]],
    );
}

#[test]
fn a_disarm_of_a_version_is_of_no_arm_on_the_way() {
    check(
        |world| {
            world.disarm(1, "a", Some(3)).arm(2, kept("a", 10)).tick(at(10));
        },
        &expect![[r#"
            a: not found
            a: armed 2 for 2026-12-01T00:00:10.000Z
            a fires: generation 2, due 2026-12-01T00:00:10.000Z
        "#]],
    );
}

/// The row of a disarm that found nothing lasts as long as any kind remembers; each arm is refused for as long as its own does.
#[test]
fn a_disarm_that_found_nothing_holds_for_as_long_as_the_kind_of_the_arm() {
    check(
        |world| {
            world.disarm(0, "a", None).disarm(0, "b", None).disarm(0, "c", None);
            world.arm(1, arm_at("a", 10)).arm(299, of_kind(7, arm_at("b", 900))).arm(300, of_kind(7, arm_at("b", 900)));
            world.arm(300, kept("c", 900));
        },
        &expect![[r#"
            a: not found
            b: not found
            c: not found
            a: armed 4 for 2026-12-01T00:00:10.000Z
            b: already disarmed
            b: armed 6 for 2026-12-01T00:15:00.000Z
            c: already disarmed
        "#]],
    );
}

/// An arm is judged by the time of its command, so that an outage of ours lets no duplicate through.
#[test]
fn a_duplicate_that_waited_is_judged_by_its_own_time() {
    check(
        |world| {
            world.arm(0, kept("a", 10)).tick(at(10));
            let late = |world: &mut World, recorded: i64| {
                let action = Action::Arm(Box::new(kept("a", 2_000)));
                world.command(Some(at(recorded)), at(1_500), action);
            };
            late(world, 20);
            late(world, 10 + SECONDS);
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            a: already fired 1
            a: armed 3 for 2026-12-01T00:33:20.000Z
        "#]],
    );
}

#[test]
fn swept_timers_are_remembered_whichever_way_they_go() {
    check(
        |world| {
            for number in 0..300 {
                world.arm(0, kept(&format!("t{number:03}"), 10));
            }
            world.trace.clear();
            // Removed with the command, met by an arm, met by a fire, worked off.
            world.disarm_run(1).arm(2, kept("t000", 20)).arm(2, kept("t290", 20)).disarm(2, "t291", None);
            world.budget.fired_max = 1;
            world.budget.fired_per_kind_max = 1;
            world.tick(at(10)).work_off(11, 1_000).tick(at(12));
            for id in ["t255", "t256", "t291", "t299"] {
                world.arm(13, kept(id, 20));
            }
            assert_eq!(world.maps.remembered.len(), 300, "each of them, once");
        },
        &expect![[r#"
            t000: already disarmed 1
            t290: already disarmed 291
            t291: not found
            worked off 0
            run: run disarmed, 300
            t255: already disarmed 256
            t256: already disarmed 257
            t291: already disarmed 292
            t299: already disarmed 300
        "#]],
    );
}

#[test]
fn a_sealed_run_refuses_before_anything_is_remembered() {
    check(
        |world| {
            world.arm(0, kept("a", 10)).seal_run(1, Some(Duration::from_secs(10))).arm(2, kept("a", 10));
            world.work_off(12, 10).arm(12, kept("a", 20)).arm(12, kept("b", 20));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            run: run sealed, 1
            a: sealed
            worked off 0
            a: already disarmed 1
            b: armed 5 for 2026-12-01T00:00:20.000Z
        "#]],
    );
}

#[test]
fn a_claimed_timer_ends_with_its_disarm_or_its_last_attempt() {
    check(
        |world| {
            let task = |id| of_kind(7, arm_at(id, 10));
            world.arm(0, task("a")).arm(0, task("b")).tick(at(10)).arm(11, task("a")).disarm(12, "a", None);
            world.arm(13, task("a")).disarm(14, "a", None);
            world.tick(at(70)).tick(at(130)).tick(at(190)).arm(191, task("b")).disarm(192, "b", None);
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            b: armed 2 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            b fires: generation 2, due 2026-12-01T00:00:10.000Z
            a: already armed 1
            a: disarmed 1
            a: already disarmed 1
            a: not found
            b fires, attempt 2: generation 2, due 2026-12-01T00:00:10.000Z
            b fires, attempt 3: generation 2, due 2026-12-01T00:00:10.000Z
            b expires after 3 attempts, AttemptsExhausted
            b: already expired 2
            b: too late for 2
        "#]],
    );
}

#[test]
fn a_timer_that_recurs_ends_with_its_last_occurrence() {
    check(
        |world| {
            let rule = RuleWish::Every { interval: Interval::parse("PT1M").unwrap(), zone: Zone::utc(), anchor: None };
            let twice = RecurringWish { rule, count: NonZeroU64::new(2), until: None, from: None };
            let arm = of_kind(6, arm_when("a", When::Recurring(Box::new(twice))));
            world.arm(0, arm.clone()).tick(at(60)).arm(61, arm.clone()).disarm(62, "a", Some(1)).tick(at(120));
            world.arm(121, arm).disarm(122, "a", None);
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:01:00.000Z
            a fires: generation 1, due 2026-12-01T00:01:00.000Z
            a: already armed 2
            a: changed to 2
            a fires: generation 2, due 2026-12-01T00:02:00.000Z
            a: already fired 2
            a: too late for 2
        "#]],
    );
}

/// Rearms itself, and arms and disarms others.
struct Chain;

impl Handler for Chain {
    fn fire(&self, _: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        let mut done = Done::publish(timer);
        let seconds = (timer.due.as_millis() - ZERO_MS) / 1_000;
        if seconds == 10 {
            done.commands.push(TimerCommand::Arm(Box::new(kept("a", 20))));
            done.commands.push(TimerCommand::Disarm { key: key("b"), generation: None });
            done.commands.push(TimerCommand::Disarm { key: key("c"), generation: None });
        }
        Ok(Fired::Done(done))
    }
}

#[test]
fn a_handler_arms_its_own_id_again() {
    check(
        |world| {
            world.handlers.register(6, Chain).unwrap();
            world.arm(0, kept("a", 10)).arm(0, kept("b", 30)).tick(at(10)).tick(at(20)).tick(at(30));
            world.arm(31, kept("a", 40)).arm(31, kept("b", 40)).arm(31, kept("c", 40));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            b: armed 2 for 2026-12-01T00:00:30.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            a fires: generation 3, due 2026-12-01T00:00:20.000Z
            a: already fired 3
            b: already disarmed 2
            c: already disarmed
        "#]],
    );
}

#[test]
fn what_is_remembered_is_dropped_when_an_id_is_armed_anew() {
    let mut world = World::new();
    world.arm(0, kept("a", 10)).tick(at(10)).arm(10 + SECONDS, kept("a", 900));
    assert_eq!(world.maps.remembered.len(), 0, "it has lapsed, and is not there beside the timer");
    world.disarm(20 + SECONDS, "b", None).forget(20 + 2 * SECONDS);
    assert_eq!(world.maps.remembered.len(), 0, "it is forgotten at exactly its end");
}

#[test]
fn an_end_beyond_all_instants_is_the_last_of_them() {
    let kind = Kind { remember: Duration::MAX, ..Kind::new(KindNumber::new(1).unwrap(), "a") };
    let maps = Maps::default();
    let change = ended(&maps, &key("a"), Some(&kind), Ending::NeverArmed, at(0)).unwrap();
    let state = Remembered { ending: Ending::NeverArmed, ended: at(0), until: Timestamp::MAX };
    assert_eq!(change, Some(Mutation::Remember { key: key("a"), previous: None, state: Some(state) }));
}
