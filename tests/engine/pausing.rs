//! Pause and resume.

use punctual::engine::{Arm, ArmAnswer, Budget, Engine, Generation, OnConflict, PauseAnswer, ResumeAnswer};
use punctual::timer::command::Action;
use punctual::timer::handler::{Done, FireContext, Fired, Handler, HandlerError, Handlers};
use punctual::timer::model::Timer;
use punctual::timer::outcome::Verdict;
use punctual::wire::command::decode;
use tempfile::TempDir;

use crate::rig::{LEASE, at, claim, claim_names, on_both, options, pending, tick, wish};

fn pause(engine: &Engine, id: &str, now: i64) -> PauseAnswer {
    engine.pause("", "r", id, None, at(now)).unwrap()
}

fn resume(engine: &Engine, id: &str, now: i64) -> ResumeAnswer {
    engine.resume("", "r", id, None, at(now)).unwrap()
}

fn arm(engine: &Engine, arm: Arm) -> Generation {
    match engine.arm(arm, at(1)).unwrap() {
        ArmAnswer::Armed { generation } | ArmAnswer::Replaced { generation } => generation,
        other @ (ArmAnswer::AlreadyArmed { .. } | ArmAnswer::Sealed | ArmAnswer::Skipped) => panic!("{other:?}"),
    }
}

#[test]
fn a_paused_timer_is_pending_and_neither_fires_nor_is_claimed() {
    on_both(&options().kind(1, "one").unwrap(), |engine| {
        let generation = arm(engine, wish("r", "t", 20));
        assert_eq!(pause(engine, "t", 5), PauseAnswer::Paused { generation });
        assert_eq!(pause(engine, "t", 6), PauseAnswer::Paused { generation }, "again");
        let report = tick(engine, 100, Budget::default());
        assert_eq!((report.fired, report.deferred, report.scanned, report.next_wake), (0, 0, 0, None));
        assert_eq!(claim_names(engine, 100, 10), Vec::<String>::new());
        assert_eq!((pending(engine), engine.next_wake().unwrap()), (1, None));
        assert_eq!(resume(engine, "t", 101), ResumeAnswer::Resumed { generation, due: at(20) });
        assert_eq!(engine.next_wake().unwrap(), Some(at(101)));
        assert_eq!(resume(engine, "t", 102), ResumeAnswer::NotPaused { generation });
        assert_eq!(tick(engine, 102, Budget::default()).fired, 1);
        assert_eq!(
            (pause(engine, "t", 103), resume(engine, "t", 103)),
            (PauseAnswer::NotFound, ResumeAnswer::NotFound)
        );
    });
}

#[test]
fn a_version_that_is_named_is_the_only_one() {
    on_both(&options(), |engine| {
        let first = arm(engine, wish("r", "t", 20));
        let second = arm(engine, Arm { on_conflict: OnConflict::Replace, ..wish("r", "t", 30) });
        let changed = engine.pause("", "r", "t", Some(first), at(2)).unwrap();
        assert_eq!(changed, PauseAnswer::Changed { generation: second });
        engine.pause("", "r", "t", Some(second), at(2)).unwrap();
        let changed = engine.resume("", "r", "t", Some(first), at(3)).unwrap();
        assert_eq!(changed, ResumeAnswer::Changed { generation: second });
        assert!(engine.pause("", "r", "\n", None, at(2)).is_err(), "an identity is checked");
    });
}

#[test]
fn a_held_timer_that_is_paused_keeps_its_lease_and_its_attempts() {
    on_both(&options(), |engine| {
        arm(engine, wish("r", "t", 20));
        assert_eq!(claim(engine, 30, 1)[0].attempt, 1);
        pause(engine, "t", 40);
        assert_eq!(claim_names(engine, 30 + LEASE, 1), Vec::<String>::new());
        resume(engine, "t", 50);
        assert_eq!(claim_names(engine, 29 + LEASE, 1), Vec::<String>::new(), "held still");
        assert_eq!(claim(engine, 30 + LEASE, 1)[0].attempt, 2);
        pause(engine, "t", 31 + LEASE);
        resume(engine, "t", 40 + 2 * LEASE);
        assert_eq!(claim(engine, 40 + 2 * LEASE, 1)[0].attempt, 3, "its lease had run out");
    });
}

#[test]
fn a_timer_that_recurs_skips_what_it_missed_and_may_end() {
    on_both(&options().kind(1, "one").unwrap(), |engine| {
        let command = |json: &'static str, now: i64| {
            let command = decode(Some(&json.into()), &[]).unwrap();
            engine.command(command.action, at(now)).unwrap()
        };
        let every =
            r#"{"run":"r","arm":{"timer_id":"t","kind":1,"every":{"interval":"PT1S","until":"1970-01-01T00:00:09Z"}}}"#;
        let Verdict::Armed { generation, due } = command(every, 1) else { panic!("it is armed") };
        assert_eq!(due, at(1_001));
        pause(engine, "t", 2);
        assert_eq!(tick(engine, 3_000, Budget::default()).fired, 0);
        let ResumeAnswer::Resumed { generation: later, due } = resume(engine, "t", 3_500) else { panic!("it goes on") };
        assert_eq!((due, later > generation), (at(4_001), true));
        assert_eq!(tick(engine, 4_001, Budget::default()).fired, 1);
        pause(engine, "t", 4_002);
        let ResumeAnswer::Ended { .. } = resume(engine, "t", 8_500) else { panic!("none is left") };
        assert_eq!((pending(engine), engine.next_wake().unwrap()), (0, None));
    });
}

/// Pauses its own timer, by a clone of the engine.
struct Pauses(Engine);

impl Handler for Pauses {
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        self.0.pause("", "r", timer.key.id.as_str(), Some(timer.generation), ctx.now)?;
        Ok(Fired::Done(Done::publish(timer)))
    }
}

// D19
#[test]
fn a_pause_from_inside_a_handler_wins() {
    on_both(&options().kind(1, "one").unwrap(), |engine| {
        let mut handlers = Handlers::new();
        handlers.register(1, Pauses(engine.clone())).unwrap();
        let generation = arm(engine, wish("r", "t", 10));
        let report = tick(&engine.with_handlers(handlers).unwrap(), 10, Budget::default());
        assert_eq!((report.raced, report.fired, report.next_wake), (1, 0, None));
        assert_eq!(engine.read_outbox(0, 10).unwrap(), [], "what it returned is dropped");
        assert_eq!(resume(engine, "t", 11), ResumeAnswer::Resumed { generation, due: at(10) });
        assert_eq!(tick(engine, 11, Budget::default()).fired, 1);
    });
}

#[test]
fn a_pause_outlives_the_process() {
    let directory = TempDir::new().unwrap();
    let open = || Engine::open(directory.path(), options()).unwrap();
    let engine = open();
    arm(&engine, wish("r", "t", 20));
    pause(&engine, "t", 5);
    drop(engine);
    let engine = open();
    assert_eq!((claim_names(&engine, 100, 1), pending(&engine)), (Vec::new(), 1));
    resume(&engine, "t", 100);
    assert_eq!(claim_names(&engine, 100, 1), ["r/t"]);
}

/// A run's timers are disarmed paused or not.
#[test]
fn a_run_is_disarmed_with_what_is_paused() {
    on_both(&options(), |engine| {
        for id in ["a", "b"] {
            arm(engine, wish("r", id, 20));
        }
        pause(engine, "a", 2);
        let run = decode(Some(&r#"{"run":"r","disarm_run":{}}"#.into()), &[]).unwrap().action;
        assert!(matches!(run, Action::DisarmRun { .. }));
        assert_eq!(engine.command(run, at(3)).unwrap(), Verdict::RunDisarmed { count: 2 });
        assert_eq!((resume(engine, "a", 4), pending(engine)), (ResumeAnswer::NotFound, 0));
    });
}
