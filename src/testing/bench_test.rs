//! The bench: steps, runs and commands.

use super::*;
use crate::timer::emitted::What;
use crate::timer::handler::{Done, FireContext, Fired, Handler, HandlerError, Handlers};
use crate::timer::model::Timer;
use crate::timer::outcome::Reason;

fn wish(id: &str, due: i64) -> Arm {
    let due = Timestamp::from_millis(due);
    Arm {
        run: "r".to_owned(),
        timer_id: id.to_owned(),
        kind: 1,
        due,
        payload: Some(id.to_owned().into()),
        ..Arm::default()
    }
}

fn bench() -> Bench {
    Bench::new(Options::new().kind(1, "one").unwrap()).unwrap()
}

fn names(bench: &Bench) -> Vec<(i64, String)> {
    let emitted = bench.emitted().unwrap().into_iter();
    emitted.map(|emitted| (emitted.fired.as_millis(), emitted.key.id.as_str().to_owned())).collect()
}

#[test]
fn a_step_gives_one_timer_its_turn() {
    let bench = bench();
    for (id, due) in [("b", 20), ("a", 10), ("c", 30)] {
        bench.arm(wish(id, due)).unwrap();
    }
    assert_eq!(bench.step().unwrap().fired, 0, "nothing is due at 1");
    bench.clock().set(Timestamp::from_millis(20));
    let report = bench.step().unwrap();
    assert_eq!((report.fired, report.deferred, report.next_wake), (1, 1, Some(Timestamp::from_millis(20))));
    assert_eq!(names(&bench), [(20, "a".to_owned())]);
    assert_eq!(bench.step().unwrap().fired, 1);
    assert_eq!(bench.step().unwrap().next_wake, Some(Timestamp::from_millis(30)));
    assert_eq!(names(&bench), [(20, "b".to_owned())], "what was seen is not shown again");
    bench.clock().back(Duration::from_secs(1));
    assert_eq!(bench.step().unwrap().fired, 0, "the clock may go back");
}

#[test]
fn a_run_fires_each_timer_at_its_instant() {
    let bench = bench();
    for (id, due) in [("b", 20), ("a", 10), ("c", 30), ("d", 10), ("late", 31)] {
        bench.arm(wish(id, due)).unwrap();
    }
    assert_eq!(bench.run_until(Timestamp::from_millis(30)).unwrap(), 4);
    let fired = [(10, "a"), (10, "d"), (20, "b"), (30, "c")].map(|(at, id)| (at, id.to_owned()));
    assert_eq!(names(&bench), fired);
    assert_eq!(bench.clock().now(), Timestamp::from_millis(30));
    assert_eq!(bench.run_for(Duration::from_millis(1)).unwrap(), 1);
}

#[test]
fn commands_are_those_of_a_client() {
    let bench = bench();
    let sent = |json: &str| bench.send(json.to_owned()).unwrap();
    let every = r#"{"run":"r","arm":{"timer_id":"t","kind":"one","every":{"interval":"PT1H","count":3}}}"#;
    let Verdict::Armed { due, .. } = sent(every) else { panic!("it is armed") };
    assert_eq!(due, Timestamp::from_millis(3_600_001));
    assert_eq!(bench.run_for(Duration::from_hours(24)).unwrap(), 3);
    assert_eq!(names(&bench).len(), 3);
    assert!(matches!(sent(r#"{"run":"r","disarm":{"timer_id":"t"}}"#), Verdict::NotFound), "it has ended");
    let Verdict::Rejected(rejection) = sent(r#"{"run":"r","arm":{"timer_id":"t","kind":"nobody","after":"PT1H"}}"#)
    else {
        panic!("no kind has that name")
    };
    assert_eq!(rejection.reason, Reason::UnknownKind);
    let Verdict::Rejected(rejection) = sent("{") else { panic!("it is no command") };
    assert_eq!(rejection.reason, Reason::Unreadable);
}

#[test]
fn a_paused_timer_has_no_turn_until_it_is_resumed() {
    let bench = bench();
    let sent = |json: &str| bench.send(json.to_owned()).unwrap();
    sent(r#"{"run":"r","arm":{"timer_id":"t","kind":"one","after":"PT1H"}}"#);
    assert!(matches!(sent(r#"{"run":"r","pause":{"timer_id":"t"}}"#), Verdict::Paused { .. }));
    assert_eq!(bench.run_for(Duration::from_hours(24)).unwrap(), 0);
    assert!(matches!(sent(r#"{"run":"r","resume":{"timer_id":"t"}}"#), Verdict::Resumed { .. }));
    assert_eq!(bench.step().unwrap().fired, 1);
}

/// Arms the next link of a chain, by a clone of the engine.
struct Chain(Engine);

impl Handler for Chain {
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        let link = timer.key.id.as_str();
        if link.len() < 4 {
            let due = ctx.now.checked_add_millis(10).ok_or("the end of time")?;
            self.0.arm(wish(&format!("{link}*"), due.as_millis()), ctx.now)?;
        }
        Ok(Fired::Done(Done::publish(timer)))
    }
}

#[test]
fn a_bench_takes_an_engine_whose_handlers_hold_it() {
    let engine = Engine::in_memory(Options::new().kind(1, "one").unwrap()).unwrap();
    let mut handlers = Handlers::new();
    handlers.register(1, Chain(engine.clone())).unwrap();
    let clock = ManualClock::at(Timestamp::from_millis(5));
    let bench = Bench::with(engine.with_handlers(handlers).unwrap(), clock.clone());
    bench.arm(wish("*", 10)).unwrap();
    assert_eq!(bench.run_for(Duration::from_secs(1)).unwrap(), 4);
    let fired: Vec<_> = bench.emitted().unwrap();
    assert_eq!(fired.iter().map(|emitted| emitted.fired.as_millis()).collect::<Vec<_>>(), [10, 20, 30, 40]);
    assert!(matches!(&fired[3].what, What::Event(event) if event.payload.as_deref() == Some(b"****")), "{fired:?}");
    assert_eq!(clock.now(), Timestamp::from_millis(1_005));
}
