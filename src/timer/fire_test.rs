//! Tests of what fires when.

use std::cell::Cell;
use std::time::Duration;

use expect_test::expect;

use super::super::budget::{Budget, Tick};
use super::super::command::Arm;
use super::super::identity::Tenant;
use super::super::kind::{KindNumber, KindRef};
use super::super::model::{DueKey, Generation};
use super::super::scenario::{World, arm_at, at};

fn check(scenario: impl FnOnce(&mut World), expected: &expect_test::Expect) {
    let mut world = World::new();
    scenario(&mut world);
    expected.assert_eq(&world.trace);
}

// N1
#[test]
fn an_arm_below_the_cursor_fires_in_the_next_tick() {
    check(
        |world| {
            world.arm(0, arm_at("a", 10)).tick(at(10)).arm(11, arm_at("b", 9)).tick(at(11));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            b: armed 2 for 2026-12-01T00:00:09.000Z
            b fires: generation 2, due 2026-12-01T00:00:09.000Z
        "#]],
    );
}

// N3
#[test]
fn pages_of_timers_with_one_due_all_fire_once() {
    let mut world = World::new();
    world.budget = Budget { fired_max: 700, fired_per_kind_max: 700, scanned_max: 10_000, ..Budget::default() };
    for number in 0..2_000 {
        world.arm(0, arm_at(&format!("t{number}"), 10));
    }
    world.trace.clear();
    for _ in 0..4 {
        world.tick(at(10));
    }
    assert_eq!(world.trace.lines().filter(|line| line.contains(" fires: ")).count(), 2_000);
    assert!(world.maps.timers.is_empty(), "nothing is left");
}

// L11: what takes long ends the pass, so that the worker polls again; the next pass goes on behind.
#[test]
fn a_pass_ends_when_its_time_is_over() {
    let mut world = World::new();
    let budget = Budget {
        fired_max: 1_000,
        fired_per_kind_max: 1_000,
        scanned_max: 1_000,
        elapsed_max: Duration::from_millis(50),
        ..Budget::default()
    };
    (0..100).for_each(|number| drop(world.arm(0, arm_at(&format!("t{number:02}"), 10)).trace.drain(..)));
    let kinds = [KindNumber::new(1).unwrap()];
    let mut fired = Vec::new();
    while !world.maps.timers.is_empty() {
        // Each row takes a millisecond, and each look at the time counts as one row's.
        let looks = Cell::new(0);
        let elapsed = || {
            looks.set(looks.get() + 1);
            Duration::from_millis(looks.get())
        };
        let (outcome, report) = world.pass(&kinds, at(20), &mut Tick::new(budget), &elapsed);
        assert_eq!(report.unfinished.is_empty(), outcome.fired.len() == world.maps.timers.len());
        fired.push(outcome.fired.len());
        outcome.mutations.into_iter().for_each(|mutation| world.maps.fold(mutation));
    }
    assert_eq!(fired, [48, 47, 5]);
}

// N11
#[test]
fn a_row_that_cannot_be_decoded_blocks_nobody_and_stays() {
    check(
        |world| {
            let kind = KindNumber::new(1).unwrap();
            world.arm(0, arm_at("a", 10)).arm(0, arm_at("b", 20));
            world.maps.undecodable.push((kind, DueKey { wake: at(15), generation: Generation(99) }));
            world.tick(at(30)).arm(31, arm_at("c", 32)).tick(at(32));
            let cursor = world.maps.cursors.get(&kind).unwrap().wake;
            assert!(cursor <= at(15), "INV-CURSOR-1: the cursor stays before it");
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            b: armed 2 for 2026-12-01T00:00:20.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            b fires: generation 2, due 2026-12-01T00:00:20.000Z
            undecodable at 2026-12-01T00:00:15.000Z
            c: armed 3 for 2026-12-01T00:00:32.000Z
            c fires: generation 3, due 2026-12-01T00:00:32.000Z
            undecodable at 2026-12-01T00:00:15.000Z
        "#]],
    );
}

#[test]
fn a_kind_with_much_due_leaves_room_for_another() {
    check(
        |world| {
            world.budget = Budget { fired_max: 3, fired_per_kind_max: 2, ..Budget::default() };
            for id in ["a", "b", "c"] {
                world.arm(0, arm_at(id, 10));
            }
            world.arm(0, Arm { kind: KindRef::Number(KindNumber::new(2).unwrap()), ..arm_at("other", 12) });
            world.trace.clear();
            world.tick(at(20)).tick(at(20));
        },
        &expect![[r#"
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            b fires: generation 2, due 2026-12-01T00:00:10.000Z
            other fires: generation 4, due 2026-12-01T00:00:12.000Z
            kind 1 has more
            c fires: generation 3, due 2026-12-01T00:00:10.000Z
        "#]],
    );
}

#[test]
fn a_budget_of_zero_fires_one() {
    check(
        |world| {
            world.budget = Budget { fired_max: 0, fired_per_kind_max: 0, scanned_max: 0, ..Budget::default() };
            world.arm(0, arm_at("a", 10)).arm(0, arm_at("b", 10));
            world.trace.clear();
            world.tick(at(10)).tick(at(10)).tick(at(10));
        },
        &expect![[r#"
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            kind 1 has more
            b fires: generation 2, due 2026-12-01T00:00:10.000Z
        "#]],
    );
}

// L10
#[test]
fn a_tenant_with_much_due_does_not_starve_one_with_a_single_timer() {
    const MANY: u64 = 5_000;
    let mut world = World::new();
    let of_tenant = |tenant: &str, id: u64, seconds| {
        let mut arm = arm_at(&format!("{id:05}"), seconds);
        arm.key.run.tenant = Tenant::parse(tenant).unwrap();
        arm
    };
    for id in 0..MANY {
        world.arm(0, of_tenant("large", id, 10));
    }
    world.arm(0, of_tenant("small", 0, 20)).arm(0, of_tenant("other", 0, 21)).arm(0, of_tenant("other", 1, 21));
    world.trace.clear();
    let small = Tenant::parse("small").unwrap();
    let mut ticks = 0_u64;
    while world.maps.timers.keys().any(|key| key.run.tenant == small) {
        let before = world.maps.timers.len();
        world.tick(at(30));
        ticks += 1;
        // It costs the large tenant nothing: each tick fires as many as it may.
        assert_eq!(before - world.maps.timers.len(), Budget::default().fired_per_kind_max);
    }
    // Without the look ahead it is its turn after 157 ticks. Of 512 scans 24 are for the head, and 8 are kept for the rest of it.
    let bound = MANY / 480 + 2;
    assert!(ticks <= bound, "{ticks} ticks, the bound is {bound}");
    for _ in 0..200 {
        world.tick(at(30));
    }
    assert!(world.maps.timers.is_empty(), "nothing is left, and nothing that was passed over was forgotten");
    assert!(world.looks.is_empty(), "nothing is left to be looked for");
}
