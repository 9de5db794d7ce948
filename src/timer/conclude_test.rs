//! Tests of what follows from what a handler returns, and of delivery by claim.

use bytes::Bytes;
use expect_test::expect;

use super::super::handler::{Done, FireContext, Fired, Handler, HandlerError, TimerCommand};
use super::super::limits::OUTBOX_RECORDS_MAX;
use super::super::model::{OutboxRecord, Timer};
use super::super::scenario::{World, arm_at, at, key, of_kind};

/// A handler of kind 1 that is a function.
struct Does<F>(F);

impl<F: Fn(&FireContext, &Timer) -> Result<Fired, HandlerError> + Send + Sync> Handler for Does<F> {
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        (self.0)(ctx, timer)
    }
}

fn world(does: impl Fn(&FireContext, &Timer) -> Result<Fired, HandlerError> + Send + Sync + 'static) -> World {
    let mut world = World::new();
    world.handlers.register(1, Does(does)).unwrap();
    world
}

fn check(world: &World, expected: &expect_test::Expect) {
    expected.assert_eq(&world.trace);
}

fn done(commands: Vec<TimerCommand>) -> Fired {
    Fired::Done(Done { commands, ..Done::default() })
}

fn disarm(id: &str) -> TimerCommand {
    TimerCommand::Disarm { key: key(id), generation: None }
}

#[test]
fn a_failed_timer_rests_keeps_its_due_and_fires_in_the_end() {
    let mut world =
        world(|ctx, timer| if ctx.attempt < 3 { Err("no room".into()) } else { Ok(Fired::Done(Done::publish(timer))) });
    world.arm(0, arm_at("a", 10)).tick(at(12)).tick(at(16)).tick(at(17)).tick(at(26)).tick(at(27));
    check(
        &world,
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fails, attempt 1: no room
            a fails, attempt 2: no room
            a fires, attempt 3: generation 1, due 2026-12-01T00:00:10.000Z
        "#]],
    );
}

#[test]
fn a_rearm_of_a_timer_that_rests_wins() {
    let mut world = world(|ctx, timer| match ctx.attempt {
        1 if timer.generation.0 == 1 => Ok(Fired::Retry),
        _ => Ok(Fired::Done(Done::publish(timer))),
    });
    let again =
        super::super::command::Arm { on_conflict: super::super::command::OnConflict::Replace, ..arm_at("a", 13) };
    world.arm(0, arm_at("a", 10)).tick(at(10)).arm(11, again).tick(at(13)).tick(at(60));
    check(
        &world,
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a: replaced by 2 for 2026-12-01T00:00:13.000Z
            a fires: generation 2, due 2026-12-01T00:00:13.000Z
        "#]],
    );
}

// L2
#[test]
fn a_reschedule_is_a_new_version_and_lies_after_now() {
    let mut world = world(|ctx, timer| {
        let seconds = match timer.generation.0 {
            1 => 5,
            2 => 0,
            _ => 500 * 86_400,
        };
        let due = ctx.now.checked_add_millis(seconds * 1_000).unwrap();
        Ok(Fired::Reschedule { due, payload: timer.payload.clone(), outbox: Vec::new() })
    });
    world.arm(0, arm_at("a", 10)).tick(at(10)).tick(at(15)).arm(16, arm_at("b", 17)).tick(at(17)).tick(at(21));
    check(
        &world,
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a is rescheduled: generation 1, due 2026-12-01T00:00:10.000Z
            a fails, attempt 1: the handler reschedules to 2026-12-01T00:00:15.000Z, which is not after 2026-12-01T00:00:15.000Z; add a pause
            b: armed 3 for 2026-12-01T00:00:17.000Z
            b fails, attempt 1: the handler reschedules to 2028-04-14T00:00:17.000Z, which is beyond limits.horizon
            a fails, attempt 2: the handler reschedules to 2026-12-01T00:00:21.000Z, which is not after 2026-12-01T00:00:21.000Z; add a pause
        "#]],
    );
}

#[test]
fn commands_arm_and_disarm_others_and_what_they_disarm_does_not_fire() {
    let mut world = world(|_, timer| {
        let own = TimerCommand::Arm(Box::new(arm_at(timer.key.id.as_str(), 30)));
        let past = TimerCommand::Arm(Box::new(arm_at("past", 5)));
        Ok(match timer.key.id.as_str() {
            "a" if timer.generation.0 == 1 => done(vec![disarm("b"), own, past, disarm("nobody")]),
            _ => Fired::Done(Done::publish(timer)),
        })
    });
    world.arm(0, arm_at("a", 10)).arm(0, arm_at("b", 10)).arm(0, arm_at("c", 10));
    world.tick(at(10)).tick(at(11)).tick(at(30));
    check(
        &world,
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            b: armed 2 for 2026-12-01T00:00:10.000Z
            c: armed 3 for 2026-12-01T00:00:10.000Z
            a fires silently: generation 1, due 2026-12-01T00:00:10.000Z
            c fires: generation 3, due 2026-12-01T00:00:10.000Z
            1 raced
            past fires: generation 5, due 2026-12-01T00:00:05.000Z
            a fires: generation 4, due 2026-12-01T00:00:30.000Z
        "#]],
    );
}

#[test]
fn a_command_that_is_refused_undoes_the_whole_fire() {
    let mut world = world(|_, timer| {
        let mut elsewhere = arm_at("x", 20);
        elsewhere.key.run.run = super::super::identity::Run::parse("elsewhere").unwrap();
        let bad = arm_at("x", -2_000_000_000);
        let (good, bad) = (TimerCommand::Arm(Box::new(arm_at("y", 20))), TimerCommand::Arm(Box::new(bad)));
        Ok(match timer.key.id.as_str() {
            "a" => done(vec![good, bad]),
            "b" => done(vec![good, TimerCommand::Arm(Box::new(elsewhere))]),
            _ => done(vec![disarm("y"); 17]),
        })
    });
    world.arm(0, arm_at("a", 10)).arm(0, arm_at("b", 10)).arm(0, arm_at("c", 10)).tick(at(10));
    assert_eq!(world.maps.timers.len(), 3, "nobody is gone, and nobody came");
    check(
        &world,
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            b: armed 2 for 2026-12-01T00:00:10.000Z
            c: armed 3 for 2026-12-01T00:00:10.000Z
            a fails, attempt 1: the handler's command for default/order/x: at is -203916800000 ms, outside the years 1970 to 9999
            b fails, attempt 1: the handler returned a command for default/elsewhere/x, which belongs to another partition; send it to the command topic by an outbox record
            c fails, attempt 1: the handler returned 17 commands; at most 16 fit
        "#]],
    );
}

#[test]
fn too_much_outbox_is_a_failure_of_that_timer() {
    let record = |bytes| OutboxRecord { key: None, value: Some(Bytes::from(vec![b'x'; bytes])), headers: Vec::new() };
    let mut world = world(move |_, timer| {
        let outbox = match timer.key.id.as_str() {
            "many" => vec![record(1); OUTBOX_RECORDS_MAX + 1],
            "large" => vec![record(300 * 1024)],
            _ => vec![record(1); OUTBOX_RECORDS_MAX],
        };
        Ok(Fired::Done(Done { outbox, ..Done::publish(timer) }))
    });
    world.arm(0, arm_at("fine", 10)).arm(0, arm_at("many", 10)).arm(0, arm_at("large", 10));
    world.trace.clear();
    world.tick(at(10));
    check(
        &world,
        &expect![[r#"
            fine fires: generation 1, due 2026-12-01T00:00:10.000Z
            many fails, attempt 1: what the handler returned: outbox has 17 records; at most 16 fit
            large fails, attempt 1: what the handler returned: outbox takes 307216 bytes; at most 262144 fit
        "#]],
    );
}

// D13
#[test]
fn a_claimed_timer_is_delivered_again_at_exactly_the_end_of_its_lease() {
    let mut world = World::new();
    world.arm(0, of_kind(4, arm_at("a", 10)));
    // One that is due behind it is not hidden (L5), and a duplicate changes nothing of what is held.
    world.arm(0, of_kind(4, arm_at("b", 20)));
    world.tick(at(10)).arm(11, of_kind(4, arm_at("a", 99))).tick(at(20)).disarm(30, "b", None);
    let just_before = crate::time::Timestamp::from_millis(at(70).as_millis() - 1);
    world.tick(just_before).tick(at(70)).disarm(71, "a", Some(1)).tick(at(1_000));
    check(
        &world,
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            b: armed 2 for 2026-12-01T00:00:20.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            a: already armed 1
            b fires: generation 2, due 2026-12-01T00:00:20.000Z
            b: disarmed 2
            a fires, attempt 2: generation 1, due 2026-12-01T00:00:10.000Z
            a: disarmed 1
        "#]],
    );
}

#[test]
fn a_timer_that_nobody_disarms_expires_after_its_last_attempt() {
    let mut world = World::new();
    world.arm(0, of_kind(4, arm_at("a", 10)));
    for seconds in [10, 70, 130, 189, 190, 500] {
        world.tick(at(seconds));
    }
    check(
        &world,
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            a fires, attempt 2: generation 1, due 2026-12-01T00:00:10.000Z
            a fires, attempt 3: generation 1, due 2026-12-01T00:00:10.000Z
            a expires after 3 attempts, AttemptsExhausted
        "#]],
    );
    assert!(world.maps.timers.is_empty(), "it is gone");
}

#[test]
fn the_seal_of_a_run_takes_its_held_timers() {
    let mut world = World::new();
    world.arm(0, of_kind(4, arm_at("a", 10))).tick(at(10)).seal_run(11, None).tick(at(70));
    check(
        &world,
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            a fires: generation 1, due 2026-12-01T00:00:10.000Z
            run: run sealed, 1
        "#]],
    );
}

#[test]
fn a_timer_that_is_later_than_its_kind_allows_is_no_event() {
    let mut world = World::new();
    world.arm(0, of_kind(5, arm_at("a", 10))).arm(0, of_kind(5, arm_at("b", 11)));
    // What was late when it was armed counts from there.
    world.arm(40, of_kind(5, arm_at("c", 1))).tick(at(41));
    check(
        &world,
        &expect![[r#"
            a: armed 1 for 2026-12-01T00:00:10.000Z
            b: armed 2 for 2026-12-01T00:00:11.000Z
            c: armed 3 for 2026-12-01T00:00:01.000Z
            a expires after 0 attempts, TooLate
            c fires: generation 3, due 2026-12-01T00:00:01.000Z
            b fires: generation 2, due 2026-12-01T00:00:11.000Z
        "#]],
    );
}
