//! Handlers: what they decide, and what they may do to the engine meanwhile.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use punctual::engine::{Arm, ArmAnswer, Budget, Engine, OnConflict, Options, Settled, Tick};
use punctual::timer::emitted::What;
use punctual::timer::handler::{Done, FireContext, Fired, Handler, HandlerError, Handlers, TimerCommand};
use punctual::timer::identity::TimerId;
use punctual::timer::model::{OutboxRecord, Timer};

use crate::rig::{at, claim, claim_names, generation, on_both, options, pending, tick, wish};

/// A handler made of a function.
struct By<F>(F);

impl<F> Handler for By<F>
where
    F: Fn(&FireContext, &Timer) -> Result<Fired, HandlerError> + Send + Sync,
{
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        (self.0)(ctx, timer)
    }
}

fn by<F>(decide: F) -> By<F>
where
    F: Fn(&FireContext, &Timer) -> Result<Fired, HandlerError> + Send + Sync,
{
    By(decide)
}

fn one_kind() -> Options {
    options().kind(1, "one").unwrap()
}

fn with<F>(engine: &Engine, decide: F) -> Engine
where
    F: Fn(&FireContext, &Timer) -> Result<Fired, HandlerError> + Send + Sync + 'static,
{
    let mut handlers = Handlers::new();
    handlers.register(1, by(decide)).unwrap();
    engine.with_handlers(handlers).unwrap()
}

fn done(timer: &Timer) -> Fired {
    Fired::Done(Done::publish(timer))
}

/// Returns the events and records of the outbox, as `run/timer_id attempt: event` or `record`.
fn emitted(engine: &Engine) -> Vec<String> {
    let entries = engine.read_outbox(0, usize::MAX).unwrap();
    let entries = entries.into_iter().map(|entry| {
        let emitted = entry.emitted.unwrap();
        let what = match emitted.what {
            What::Event(event) => format!("event {:?}", event.payload.unwrap_or_default()),
            What::Record(record) => format!("record {:?}", record.value.unwrap_or_default()),
            What::Expired { reason, .. } => format!("{reason:?}"),
        };
        format!("{} {}: {what}", emitted.key.id.as_str(), emitted.attempt)
    });
    entries.collect()
}

#[test]
fn a_kind_without_a_handler_publishes_into_the_outbox() {
    on_both(&one_kind(), |engine| {
        engine.arm(wish("r", "t", 10), at(1)).unwrap();
        assert_eq!(tick(engine, 9, Budget::default()).fired, 0, "never early");
        let report = tick(engine, 10, Budget::default());
        assert_eq!((report.fired, report.scanned, report.next_wake), (1, 1, None));
        assert_eq!(emitted(engine), ["t 1: event b\"r/t\""]);
        assert_eq!(pending(engine), 0);
        assert!(matches!(engine.arm(wish("r", "t", 10), at(11)).unwrap(), ArmAnswer::Armed { .. }), "it is free again");
    });
}

#[test]
fn what_a_handler_is_done_with_goes_out_whole() {
    on_both(&one_kind(), |engine| {
        let firing = with(engine, |_, timer| {
            let record = OutboxRecord { key: None, value: Some(Bytes::from_static(b"beside")), headers: Vec::new() };
            let mut key = timer.key.clone();
            key.id = TimerId::parse("other")?;
            let commands = vec![TimerCommand::Disarm { key, generation: None }];
            Ok(Fired::Done(Done { outbox: vec![record], commands, ..Done::publish(timer) }))
        });
        engine.arm(wish("r", "t", 10), at(1)).unwrap();
        engine.arm(wish("r", "other", 99), at(1)).unwrap();
        assert_eq!(tick(&firing, 10, Budget::default()).fired, 1);
        assert_eq!(emitted(engine), ["t 1: event b\"r/t\"", "t 1: record b\"beside\""]);
        assert_eq!(pending(engine), 0, "the other is disarmed");
    });
}

#[test]
fn a_reschedule_arms_anew_and_is_not_reported_as_fired() {
    on_both(&one_kind(), |engine| {
        let firing = with(engine, |ctx, timer| match &timer.payload {
            Some(payload) if payload.len() >= 5 => Ok(done(timer)),
            payload => {
                let due = ctx.now.checked_add_millis(100).ok_or("the end of time")?;
                let grown = [payload.as_deref().unwrap_or_default(), b"."].concat();
                Ok(Fired::Reschedule { due, payload: Some(grown.into()), outbox: Vec::new() })
            }
        });
        engine.arm(wish("r", "t", 10), at(1)).unwrap();
        let first = generation(engine, "r", "t");
        let report = tick(&firing, 10, Budget::default());
        assert_eq!((report.fired, report.rescheduled, report.next_wake), (0, 1, Some(at(110))));
        assert!(generation(engine, "r", "t") > first, "a new version");
        assert_eq!(tick(&firing, 110, Budget::default()).rescheduled, 1);
        assert_eq!(tick(&firing, 210, Budget::default()).fired, 1);
        assert_eq!(emitted(engine), ["t 1: event b\"r/t..\""]);
    });
}

#[test]
fn a_reschedule_that_is_not_after_now_is_a_failure() {
    on_both(&one_kind(), |engine| {
        let firing = with(engine, |ctx, timer| {
            Ok(Fired::Reschedule { due: ctx.now, payload: timer.payload.clone(), outbox: Vec::new() })
        });
        engine.arm(wish("r", "t", 10), at(1)).unwrap();
        let report = tick(&firing, 20, Budget::default());
        assert_eq!((report.failed, report.rescheduled, report.next_wake), (1, 0, Some(at(5_020))));
        assert!(report.failures[0].detail.contains("not after"), "{:?}", report.failures);
    });
}

type Decide = fn(&FireContext, &Timer) -> Result<Fired, HandlerError>;

#[test]
fn failures_panics_and_retries_rest_for_the_backoff() {
    let pauses = [5, 10, 20, 40, 80, 160, 320, 600, 600].map(|seconds| seconds * 1_000);
    let kinds: [(Decide, bool, &str); 3] = [
        (|_, _| Ok(Fired::Retry), false, ""),
        (|ctx, _| Err(format!("attempt {} failed", ctx.attempt).into()), true, "attempt 1 failed"),
        (|_, _| panic!("out of order"), true, "the handler panicked: out of order"),
    ];
    for (decide, is_failure, detail) in kinds {
        let engine = Engine::in_memory(one_kind()).unwrap();
        let firing = with(&engine, decide);
        engine.arm(wish("r", "t", 10), at(1)).unwrap();
        let first = generation(&engine, "r", "t");
        let mut now = 17;
        for (count, pause) in pauses.iter().enumerate() {
            let report = tick(&firing, now, Budget::default());
            assert_eq!((report.failed, report.retried), (usize::from(is_failure), usize::from(!is_failure)));
            assert_eq!(report.next_wake, Some(at(now + pause)), "after attempt {}", count + 1);
            if count == 0 && is_failure {
                let failure = &report.failures[0];
                assert_eq!((failure.timer_id.as_str(), failure.attempt), ("t", 1));
                assert_eq!(failure.detail, detail);
            }
            assert_eq!(tick(&firing, now + pause - 1, Budget::default()).scanned, 0, "it rests");
            now += pause;
        }
        assert_eq!(generation(&engine, "r", "t"), first, "the same version");
        let claimed = claim(&engine, now, 1);
        assert_eq!((claimed[0].due, claimed[0].payload.as_deref()), (at(10), Some(&b"r/t"[..])), "as it was armed");
    }
}

#[test]
fn one_that_fails_holds_nobody_up() {
    on_both(&one_kind(), |engine| {
        let firing = with(engine, |_, timer| if timer.key.id.as_str() == "bad" { panic!() } else { Ok(done(timer)) });
        for (id, due) in [("a", 10), ("bad", 11), ("c", 12)] {
            engine.arm(wish("r", id, due), at(1)).unwrap();
        }
        let report = tick(&firing, 20, Budget::default());
        assert_eq!((report.fired, report.failed), (2, 1));
        assert_eq!(report.failures[0].detail, "the handler panicked: explicit panic");
        assert_eq!(emitted(engine), ["a 1: event b\"r/a\"", "c 1: event b\"r/c\""]);
    });
}

#[test]
fn a_rearm_from_inside_a_handler_wins() {
    on_both(&one_kind(), |engine| {
        let own = engine.clone();
        let firing = with(engine, move |ctx, timer| {
            let replacing = Arm { on_conflict: OnConflict::Replace, ..wish("r", "t", ctx.now.as_millis() + 50) };
            own.arm(replacing, ctx.now)?;
            Ok(done(timer))
        });
        engine.arm(wish("r", "t", 10), at(1)).unwrap();
        let report = tick(&firing, 10, Budget::default());
        assert_eq!((report.raced, report.fired, report.next_wake), (1, 0, Some(at(60))));
        assert_eq!(emitted(engine), Vec::<String>::new(), "what it returned is dropped");
        assert_eq!(claim_names(engine, 60, 1), ["r/t"]);
    });
}

#[test]
fn a_disarm_from_inside_a_handler_wins_too() {
    on_both(&one_kind(), |engine| {
        let own = engine.clone();
        let firing = with(engine, move |_, timer| {
            // Its own, that of a timer whose turn comes later in the tick, and calls that look at everything.
            own.disarm(String::new(), "r".to_owned(), "t".to_owned(), None)?;
            own.disarm(String::new(), "r".to_owned(), "u".to_owned(), None)?;
            own.pending_count(String::new())?;
            own.next_wake()?;
            Ok(done(timer))
        });
        engine.arm(wish("r", "t", 10), at(1)).unwrap();
        engine.arm(wish("r", "u", 11), at(1)).unwrap();
        let report = tick(&firing, 20, Budget::default());
        assert_eq!((report.raced, report.fired, report.next_wake), (2, 0, None));
        assert_eq!((emitted(engine).len(), pending(engine)), (0, 0));
    });
}

#[test]
fn a_handler_that_claims_or_fires_itself_does_not_get_its_own_timer() {
    on_both(&one_kind(), |engine| {
        let own = engine.clone();
        let calls = AtomicU32::new(0);
        let firing = with(engine, move |ctx, timer| {
            assert_eq!(calls.fetch_add(1, Ordering::Relaxed), 0, "it is called once");
            assert_eq!(own.claim_due(String::new(), ctx.now, 9)?.len(), 0, "it is in hand");
            assert_eq!(tick(&own, ctx.now.as_millis(), Budget::default()).fired, 0, "for others too");
            Ok(done(timer))
        });
        engine.arm(wish("r", "t", 10), at(1)).unwrap();
        assert_eq!(tick(&firing, 10, Budget::default()).fired, 1);
    });
}

#[test]
fn a_handler_sees_what_the_one_before_it_has_led_to() {
    on_both(&one_kind(), |engine| {
        let own = engine.clone();
        let seen = Mutex::new(Vec::new());
        let seen = std::sync::Arc::new(seen);
        let noted = std::sync::Arc::clone(&seen);
        let firing = with(engine, move |_, timer| {
            let entries = own.read_outbox(0, 10)?.len();
            noted.lock().unwrap().push((own.pending_count(String::new())?, entries));
            Ok(done(timer))
        });
        for id in ["a", "b", "c"] {
            engine.arm(wish("r", id, 10), at(1)).unwrap();
        }
        assert_eq!(tick(&firing, 10, Budget::default()).fired, 3);
        assert_eq!(*seen.lock().unwrap(), [(3, 0), (2, 1), (1, 2)]);
    });
}

#[test]
fn what_the_application_fires_itself_is_in_its_hands_until_it_is_settled() {
    let options = one_kind().kind(2, "mine").unwrap().external(2).unwrap();
    on_both(&options, |engine| {
        let mine = |id: &str| Arm { kind: 2, ..wish("r", id, 10) };
        for id in ["done", "failed", "later", "replaced", "dropped"] {
            engine.arm(mine(id), at(1)).unwrap();
        }
        let begin = |now| engine.begin_fire(at(now), &mut Tick::new(Budget::default()), &|| std::time::Duration::ZERO);
        assert_eq!(tick(engine, 10, Budget::default()).fired, 0, "not by a tick");
        let mut firings = begin(10).unwrap().into_iter();
        assert_eq!(begin(10).unwrap().len(), 0, "nobody else gets them");
        assert_eq!(claim_names(engine, 10, 9), Vec::<String>::new());
        assert_eq!(pending(engine), 5);

        let first = firings.next().unwrap();
        let event = done(first.timer());
        assert_eq!((first.timer().key.id.as_str(), first.context().attempt), ("done", 1));
        assert_eq!(engine.settle(first, Ok(event)).unwrap(), Settled::Fired);
        let failed = engine.settle(firings.next().unwrap(), Err("no answer".into())).unwrap();
        assert_eq!(failed, Settled::Failed { detail: "no answer".to_owned() });
        let later = Fired::Reschedule { due: at(500), payload: None, outbox: Vec::new() };
        assert_eq!(engine.settle(firings.next().unwrap(), Ok(later)).unwrap(), Settled::Rescheduled);
        engine.arm(Arm { on_conflict: OnConflict::Replace, ..mine("replaced") }, at(11)).unwrap();
        assert_eq!(engine.settle(firings.next().unwrap(), Ok(Fired::Retry)).unwrap(), Settled::Raced);
        drop(firings.next().unwrap());
        let again: Vec<_> = begin(12).unwrap();
        let names: Vec<_> = again.iter().map(|firing| firing.timer().key.id.as_str()).collect();
        assert_eq!(names, ["dropped", "replaced"], "one by its old place, one by its new");
        assert_eq!(again[0].context().attempt, 1);
        assert_eq!(engine.settle(again.into_iter().next().unwrap(), Ok(Fired::Retry)).unwrap(), Settled::Retried);
        assert_eq!(emitted(engine), ["done 1: event b\"r/done\""]);
        assert_eq!(begin(5_010).unwrap().len(), 3, "failed, later, replaced");
        assert_eq!(begin(5_012).unwrap().len(), 4, "and dropped");
    });
}

#[test]
fn a_firing_is_settled_by_its_own_engine() {
    let options = one_kind().external(1).unwrap();
    let [engine, other] = [(), ()].map(|()| Engine::in_memory(options.clone()).unwrap());
    engine.arm(wish("r", "t", 10), at(1)).unwrap();
    let begin = || engine.begin_fire(at(10), &mut Tick::new(Budget::default()), &|| std::time::Duration::ZERO).unwrap();
    let error = other.settle(begin().remove(0), Ok(Fired::Retry)).unwrap_err().to_string();
    assert_eq!(error, "firing `default/r/t` was begun by another engine; settle it there");
    assert_eq!(begin().len(), 1, "it is due again");
}
