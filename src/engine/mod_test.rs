//! The engine over stores that only a test has: with rows that cannot be decoded, and with disks that fail.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use super::*;
use crate::store::outbox::OutboxBounds;
use crate::store::{Batch, Store, StoreError, StoreHeader, TimerChange};
use crate::timer::handler::{Done, FireContext, Fired, Handler, HandlerError};
use crate::timer::identity::{RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Located, Remembered, RunState, Timer};
use crate::timer::view::DueRow;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn kind() -> KindNumber {
    KindNumber::new(1).unwrap()
}

fn options() -> Options {
    Options::new().kind(1, "one").unwrap()
}

fn wish(id: &str, due: i64) -> Arm {
    Arm { run: "r".to_owned(), timer_id: id.to_owned(), kind: 1, due: at(due), ..Arm::default() }
}

fn tick(engine: &Engine, now: i64, budget: Budget) -> Result<TickReport, EngineError> {
    engine.fire_due(at(now), &mut Tick::new(budget), &|| Duration::ZERO)
}

/// Returns a store with rows that cannot be decoded, due at these instants.
fn poisoned(dues: &[i64]) -> MemoryStore {
    let mut store = MemoryStore::default();
    let mut batch = Batch::default();
    for (number, due) in (1..).zip(dues) {
        let at = Located { kind: kind(), at: DueKey { wake: at(*due), generation: Generation(number) } };
        let key = arguments::timer_key("", "poisoned", &number.to_string()).unwrap();
        batch.timers.push(TimerChange { key, before: None, after: Some((at, Bytes::from_static(b"\xff"))) });
    }
    let count = dues.len();
    batch.header.next_generation = Generation(100);
    batch.header.pending = [(kind(), u64::try_from(count).unwrap())].into();
    batch.tenants = [(Tenant::parse("").unwrap(), i64::try_from(count).unwrap())].into();
    store.write(batch).unwrap();
    store
}

fn over(store: impl Outbox + Send + 'static) -> Engine {
    Engine::over(Box::new(store), options().rules().unwrap()).unwrap()
}

/// N11.
#[test]
fn rows_that_cannot_be_decoded_fail_no_claim() {
    let engine = over(poisoned(&[1, 2, 7]));
    engine.arm(wish("a", 3), at(1)).unwrap();
    engine.arm(wish("b", 9), at(1)).unwrap();
    let claim = |now| engine.claim_due(String::new(), at(now), 10).unwrap();
    assert_eq!(claim(10).iter().map(|claimed| claimed.timer_id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(claim(60_010).len(), 2);
    assert_eq!(engine.pending_count(String::new()).unwrap(), 5, "they are kept, and counted");
    let first = DueKey { wake: at(1), generation: Generation(1) };
    assert!(engine.lock().above.cursor(kind()) <= first, "INV-CURSOR-1: the cursor stays before them");
    assert_eq!(engine.disarm_run(String::new(), "poisoned".to_owned()).unwrap(), 3, "and can be removed");
    assert_eq!(engine.pending_count(String::new()).unwrap(), 2);
}

/// N11: what cannot be read cannot be written anew either.
#[test]
fn rows_that_cannot_be_decoded_are_not_paused() {
    let engine = over(poisoned(&[1]));
    let refused = engine.pause("", "poisoned", "1", None, at(1)).unwrap_err();
    assert!(matches!(refused, EngineError::InvalidArgument { .. }), "{refused}");
    assert!(refused.to_string().contains("cannot be read"), "{refused}");
    assert_eq!(
        engine.resume("", "poisoned", "1", Some(Generation(2)), at(1)).unwrap(),
        ResumeAnswer::Changed { generation: Generation(1) }
    );
    assert_eq!(engine.pending_count("").unwrap(), 1, "it is kept");
}

#[test]
fn rows_that_cannot_be_decoded_use_a_budget_up_once() {
    let engine = over(poisoned(&[1, 2]));
    engine.arm(wish("a", 3), at(1)).unwrap();
    let one = Budget { scanned_max: 1, ..Budget::default() };
    let reports: Vec<_> = (0..4).map(|_| tick(&engine, 10, one).unwrap()).collect();
    assert_eq!(reports.iter().map(|report| report.fired).collect::<Vec<_>>(), [0, 0, 1, 0]);
    assert_eq!(reports.iter().map(|report| report.undecodable).collect::<Vec<_>>(), [1, 2, 2, 2]);
    assert_eq!((reports[3].scanned, reports[3].deferred), (0, 0));
    assert_eq!(reports[3].next_wake, Some(at(5_010)), "due rows are left, and nothing can be done with them");
}

/// A store in memory whose writes fail while it is told so.
#[derive(Debug)]
struct Failing(MemoryStore, Arc<AtomicBool>);

impl Store for Failing {
    fn locate(&self, key: &TimerKey) -> Result<Option<Located>, StoreError> {
        self.0.locate(key)
    }

    fn timer(&self, at: Located) -> Result<Option<Timer>, StoreError> {
        self.0.timer(at)
    }

    fn remembered(&self, key: &TimerKey) -> Result<Option<Remembered>, StoreError> {
        self.0.remembered(key)
    }

    fn ending(
        &self,
        from: Timestamp,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Remembered)>, StoreError> {
        self.0.ending(from, until, rows_max)
    }

    fn run(&self, run: &RunKey) -> Result<RunState, StoreError> {
        self.0.run(run)
    }

    fn timers_of(
        &self,
        run: &RunKey,
        after: Option<&TimerId>,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Located)>, StoreError> {
        self.0.timers_of(run, after, rows_max)
    }

    fn due(
        &self,
        kind: KindNumber,
        from: DueKey,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueRow>, StoreError> {
        self.0.due(kind, from, until, rows_max)
    }

    fn due_keys(
        &self,
        kind: KindNumber,
        from: DueKey,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueKey>, StoreError> {
        self.0.due_keys(kind, from, until, rows_max)
    }

    fn agenda(&self, until: Timestamp, rows_max: usize) -> Result<Vec<(Timestamp, RunKey)>, StoreError> {
        self.0.agenda(until, rows_max)
    }

    fn pending_of(&self, tenant: &Tenant) -> Result<u64, StoreError> {
        self.0.pending_of(tenant)
    }

    fn header(&self) -> &StoreHeader {
        self.0.header()
    }

    fn write(&mut self, batch: Batch) -> Result<(), StoreError> {
        if self.1.load(Ordering::Relaxed) {
            return Err(StoreError::Full { path: "disk".into(), detail: "a batch".to_owned() });
        }
        self.0.write(batch)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.0.flush()
    }
}

impl Outbox for Failing {
    fn bounds(&self) -> OutboxBounds {
        self.0.bounds()
    }

    fn entries(&self, from: u64, rows_max: usize) -> Result<Vec<(u64, Bytes)>, StoreError> {
        self.0.entries(from, rows_max)
    }
}

fn failing() -> (Engine, Arc<AtomicBool>) {
    let fails = Arc::new(AtomicBool::new(false));
    (over(Failing(MemoryStore::default(), Arc::clone(&fails))), fails)
}

#[test]
fn a_call_that_cannot_write_changes_nothing() {
    let (engine, fails) = failing();
    let ArmAnswer::Armed { generation: first } = engine.arm(wish("a", 3), at(1)).unwrap() else { panic!("it is new") };
    fails.store(true, Ordering::Relaxed);
    let error = engine.arm(wish("b", 3), at(1)).unwrap_err();
    assert!(matches!(error, EngineError::Full { .. }), "{error}");
    let is_full = |error: EngineError| matches!(error, EngineError::Full { .. });
    assert!(is_full(engine.claim_due(String::new(), at(5), 1).unwrap_err()), "a claim");
    assert!(is_full(engine.disarm_run(String::new(), "r".to_owned()).unwrap_err()), "a removal");
    assert!(is_full(tick(&engine, 5, Budget::default()).unwrap_err()), "a fire: even its re-dating fails");
    assert_eq!(engine.pending_count(String::new()).unwrap(), 1, "what only reads goes on");
    assert_eq!(engine.read_outbox(0, 9).unwrap(), []);
    fails.store(false, Ordering::Relaxed);
    assert_eq!(engine.claim_due(String::new(), at(5), 1).unwrap()[0].attempt, 1, "the row has stayed as it was");
    let ArmAnswer::Armed { generation } = engine.arm(wish("b", 3), at(1)).unwrap() else { panic!("it is new") };
    assert!(generation > first, "INV-GEN-1");
}

/// Arms while the disk is full, and goes on.
struct Unlucky(Engine, Arc<AtomicBool>);

impl Handler for Unlucky {
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        if timer.key.id.as_str() == "second" {
            self.1.store(true, Ordering::Relaxed);
            assert!(self.0.arm(wish("x", 99), ctx.now).is_err(), "the disk is full");
            self.1.store(false, Ordering::Relaxed);
        }
        Ok(Fired::Done(Done::publish(timer)))
    }
}

#[test]
fn a_tick_whose_fires_another_call_could_not_write_is_an_error() {
    let (engine, fails) = failing();
    let mut handlers = Handlers::new();
    handlers.register(1, Unlucky(engine.clone(), fails)).unwrap();
    let firing = engine.with_handlers(handlers).unwrap();
    engine.arm(wish("first", 3), at(1)).unwrap();
    engine.arm(wish("second", 4), at(1)).unwrap();
    assert!(tick(&firing, 5, Budget::default()).is_err(), "the first fire was dropped with the arm");
    assert_eq!(engine.pending_count(String::new()).unwrap(), 1, "it fires again, the second has fired");
    assert_eq!(tick(&engine, 5, Budget::default()).unwrap().fired, 1);
    let entries = engine.read_outbox(0, 9).unwrap();
    let names: Vec<_> = entries.into_iter().map(|entry| entry.emitted.unwrap().key.id.as_str().to_owned()).collect();
    assert_eq!(names, ["second", "first"]);
}

#[test]
fn an_entry_of_the_outbox_that_cannot_be_read_holds_nobody_up() {
    let mut store = MemoryStore::default();
    let bounds = OutboxBounds { first: 0, next: 1 };
    let change = crate::store::outbox::OutboxChange { bounds, added: vec![(0, Bytes::from_static(b"\xff"))] };
    store.write(Batch { outbox: Some(change), ..Batch::default() }).unwrap();
    let engine = over(store);
    engine.arm(wish("a", 3), at(1)).unwrap();
    assert_eq!(tick(&engine, 5, Budget::default()).unwrap().fired, 1);
    let entries = engine.read_outbox(0, 9).unwrap();
    assert!(entries[0].emitted.is_err() && entries[1].emitted.is_ok(), "{entries:?}");
    assert_eq!(engine.acknowledge(0).unwrap(), 1);
}
