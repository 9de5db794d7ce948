//! What pause and resume do to timers that recur.

use std::num::NonZeroU64;

use expect_test::expect;

use super::super::command::{Action, RecurringWish};
use super::super::scenario::{arm_at, at, key, of_kind};
use super::tests::{check, every, recurring};

#[test]
fn one_that_recurs_goes_on_with_the_next_occurrence() {
    check(
        |world| {
            world.arm(3, recurring(every("PT10S"))).tick(at(13)).pause(14, "a", None).tick(at(23)).tick(at(53));
            world.resume(54, "a", Some(2)).tick(at(54)).tick(at(63));
            world.pause(64, "a", None).resume(65, "a", None).tick(at(72)).tick(at(73));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:13.000Z
            a fires: generation 1, due 2026-12-01T00:00:13.000Z
            a: paused 2
            a: resumed 4 for 2026-12-01T00:01:03.000Z
            a fires: generation 4, due 2026-12-01T00:01:03.000Z
            a: paused 5
            a: resumed 5 for 2026-12-01T00:01:13.000Z
            a fires: generation 5, due 2026-12-01T00:01:13.000Z
        "#]],
    );
}

/// The rhythm is that of the record: a service that was away applies the resume late, and one fire stands for what it missed.
#[test]
fn the_next_occurrence_counts_from_the_record() {
    check(
        |world| {
            world.arm(0, recurring(every("PT10S"))).pause(1, "a", None);
            world.command(Some(at(25)), at(47), Action::Resume { key: key("a"), generation: None });
            world.tick(at(47)).tick(at(50));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: paused 1
            a: resumed 3 for 2026-12-01T00:00:30.000Z
            a fires: generation 3, due 2026-12-01T00:00:30.000Z
            a fires: generation 4, due 2026-12-01T00:00:50.000Z
        "#]],
    );
}

/// A resume whose producer has a slow clock does not bring back an occurrence that has fired.
#[test]
fn a_resume_from_the_past_moves_no_due_back() {
    check(
        |world| {
            world.arm(0, recurring(every("PT10S"))).tick(at(20)).pause(21, "a", None);
            world.command(Some(at(5)), at(22), Action::Resume { key: key("a"), generation: None });
            world.tick(at(22)).tick(at(30));
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            a: paused 2
            a: resumed 2 for 2026-12-01T00:00:30.000Z
            a fires: generation 2, due 2026-12-01T00:00:30.000Z
        "#]],
    );
}

#[test]
fn count_and_until_are_kept_and_what_was_missed_counts_for_nothing() {
    check(
        |world| {
            let twice = RecurringWish { count: NonZeroU64::new(2), ..every("PT10S") };
            world.arm(0, recurring(twice)).tick(at(10)).pause(11, "a", None).resume(45, "a", None);
            world.tick(at(50)).tick(at(60)).resume(61, "a", None);
            let until = RecurringWish { until: Some(at(90)), ..every("PT10S") };
            world.arm(61, recurring(until)).pause(62, "a", None).resume(85, "a", None).tick(at(90)).tick(at(95));
            world.resume(96, "a", None);
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            a: paused 2
            a: resumed 4 for 2026-12-01T00:00:50.000Z
            a fires: generation 4, due 2026-12-01T00:00:50.000Z
            a: not found
            a: armed 6 for 2026-12-01T00:01:11.000Z
            a: paused 6
            a: ended 6
            a: not found
        "#]],
    );
}

#[test]
fn one_that_has_no_occurrence_left_ends_and_its_id_is_remembered() {
    check(
        |world| {
            let until = RecurringWish { until: Some(at(25)), ..every("PT10S") };
            world.arm(0, of_kind(6, recurring(until))).pause(1, "a", None).resume(26, "a", None).tick(at(30));
            world.arm(31, of_kind(6, arm_at("a", 40))).disarm(32, "a", None).resume(33, "a", None);
        },
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: paused 1
            a: ended 1
            a: already disarmed 1
            a: not found
            a: not found
        "#]],
    );
}
