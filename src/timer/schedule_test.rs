//! Tests of civil times and rules: what is resolved, and the reasons of rejection.

use expect_test::expect;

use super::super::command::When;
use super::super::scenario::{World, arm_when, at};
use crate::calendar::local::LocalTime;
use crate::calendar::parameters::{Parameter, Parameters};
use crate::calendar::zone::{Disambiguation, Zone};

fn check(scenario: impl FnOnce(&mut World), expected: &expect_test::Expect) {
    let mut world = World::new();
    scenario(&mut world);
    expected.assert_eq(&world.trace);
}

fn local(time: &str, disambiguation: Disambiguation) -> When {
    When::Local(LocalTime::parse(time, Zone::get("Europe/Berlin").unwrap(), disambiguation).unwrap())
}

fn rule(rule: &str, parameters: Parameters) -> When {
    When::Calendar { rule: rule.to_owned(), parameters }
}

#[test]
fn a_civil_time_is_resolved_in_its_zone() {
    check(
        |world| {
            world.arm(0, arm_when("skipped", local("2027-03-28T02:30", Disambiguation::Compatible)));
            world.arm(0, arm_when("refused", local("2027-03-28T02:30", Disambiguation::Reject)));
            world.arm(0, arm_when("later", local("2027-10-31T02:30", Disambiguation::Later)));
            world.arm(0, arm_when("far", local("2029-01-01T00:00", Disambiguation::Compatible)));
            world.arm(0, arm_when("past", local("2026-01-01T00:00", Disambiguation::Compatible))).tick(at(0));
        },
        &expect![[r#"
            skipped: armed 1 for 2027-03-28T01:30:00.000Z
            refused: rejected, invalid_schedule: 2027-03-28T02:30:00 does not exist in Europe/Berlin, where the clock changes; choose another time, or another disambiguation
            later: armed 3 for 2027-10-31T01:30:00.000Z
            far: rejected, beyond_horizon: due 2028-12-31T23:00:00.000Z is more than limits.horizon, 400 days, after the arming at 2026-12-01T00:00:00.000Z; is the unit right?
            past: armed 5 for 2025-12-31T23:00:00.000Z
            past fires: generation 5, due 2025-12-31T23:00:00.000Z
        "#]],
    );
}

#[test]
fn a_rule_is_resolved_from_the_record_and_its_refusals_are_told_apart() {
    check(
        |world| {
            world.arm(30, arm_when("ok", rule("minutes", Parameters::of([("n", 2)]))));
            world.arm(0, arm_when("unknown", rule("weeks", Parameters::default())));
            world.arm(0, arm_when("bad", rule("hours", Parameters::of([("n", "2"), ("m", "3")]))));
            let fraction = Parameters([("n".to_owned(), Parameter::Other("1.5".to_owned()))].into());
            world.arm(0, arm_when("fraction", rule("hours", fraction)));
            world.arm(0, arm_when("far", rule("days", Parameters::of([("n", i64::MAX)]))));
            let action = |when| super::super::command::Action::Arm(Box::new(arm_when("none", when)));
            world.command(None, at(1), action(rule("days", Parameters::of([("n", 1)]))));
        },
        &expect![[r#"
            ok: armed 1 for 2026-12-01T00:02:30.000Z
            unknown: rejected, unknown_rule: rule `weeks` is not known; use one of minutes, hours, days, business
            bad: rejected, invalid_parameters: parameter `m` is none of the rule's parameters, which are n; parameter `n` is the text `2`, but must be a whole number
            fraction: rejected, invalid_parameters: parameter `n` is 1.5, but must be a whole number of 64 bits
            far: rejected, out_of_range: 9223372036854775807 days after 2026-12-01T00:00:00.000Z is beyond the year 9999
            none: rejected, missing_timestamp: the rule counts from the record's timestamp, and the record has none; send one, or use at
        "#]],
    );
}
