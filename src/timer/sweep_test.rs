//! Tests of disarm-run and seal-run.

use std::time::Duration;

use expect_test::expect;

use super::super::scenario::{World, arm_at, at};
use super::SLICE_ROWS;

fn check(scenario: impl FnOnce(&mut World), expected: &expect_test::Expect) {
    let mut world = World::new();
    scenario(&mut world);
    expected.assert_eq(&world.trace);
}

/// Arms more timers than one slice takes, and forgets the trace of it.
fn crowd(world: &mut World, timers: usize, due: i64) {
    for number in 0..timers {
        world.arm(0, arm_at(&format!("t{number:05}"), due));
    }
    world.trace.clear();
}

#[test]
fn a_small_run_is_disarmed_at_once_and_can_be_armed_again() {
    check(
        |world| {
            world.arm(0, arm_at("a", 10)).arm(0, arm_at("b", 20)).disarm_run(1).tick(at(30));
            world.arm(31, arm_at("a", 40)).tick(at(40)).disarm_run(41);
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            b: armed 2 for 2026-12-01T00:00:20.000Z
            run: run disarmed, 2
            a: armed 4 for 2026-12-01T00:00:40.000Z
            a fires: generation 4, due 2026-12-01T00:00:40.000Z
            run: run disarmed, 0
        "#]],
    );
}

// L12
#[test]
fn a_large_run_is_disarmed_at_once_and_removed_in_slices() {
    check(
        |world| {
            crowd(world, 2 * SLICE_ROWS, 10);
            world.disarm_run(1).disarm(2, "t00500", None).tick(at(20));
            assert!(world.maps.timers.len() < 2 * SLICE_ROWS, "a slice was removed with the command");
            world.arm(21, arm_at("t00511", 30)).arm(21, arm_at("new", 30));
            world.work_off(22, 200).work_off(22, 200).work_off(22, 200).tick(at(30));
            assert!(world.maps.runs.is_empty() && world.maps.timers.is_empty(), "nothing is left behind");
        },
        &expect![[r#"
            t00500: not found
            t00511: armed 515 for 2026-12-01T00:00:30.000Z
            new: armed 516 for 2026-12-01T00:00:30.000Z
            worked off 0
            run: run disarmed, 512
            t00511 fires: generation 515, due 2026-12-01T00:00:30.000Z
            new fires: generation 516, due 2026-12-01T00:00:30.000Z
        "#]],
    );
}

#[test]
fn every_waiting_command_is_answered_when_the_sweep_ends() {
    check(
        |world| {
            crowd(world, SLICE_ROWS + 10, 10);
            world.disarm_run(1).disarm_run(2).seal_run(3, None).arm(4, arm_at("late", 10)).work_off(5, 1000);
        },
        &expect![[r#"
            late: sealed
            worked off 10
            run: run disarmed, 266
            run: run disarmed, 266
            run: run sealed, 266
        "#]],
    );
}

#[test]
fn a_run_is_sealed_before_it_was_ever_seen_and_the_seal_ends() {
    check(
        |world| {
            world.seal_run(0, Some(Duration::from_mins(1))).seal_run(1, Some(Duration::from_secs(1)));
            world.arm(59, arm_at("a", 70)).arm(60, arm_at("b", 70)).work_off(60, 10);
            assert!(world.maps.runs.is_empty(), "the ended seal is removed");
            world.seal_run(100, Some(Duration::ZERO)).seal_run(100, Some(Duration::MAX)).seal_run(100, None);
            world.arm(1_000_000, arm_at("c", 1_000_001));
        },
        &expect![[r#"
            run: run sealed, 0
            run: run sealed, 0
            a: sealed
            b: armed 4 for 2026-12-01T00:01:10.000Z
            worked off 0
            run: rejected, invalid_duration: retention is zero; give a duration above zero, or none to seal for ever
            run: rejected, invalid_duration: retention of 18446744073709551615 s ends beyond the year 9999
            run: run sealed, 1
            c: sealed
        "#]],
    );
}
