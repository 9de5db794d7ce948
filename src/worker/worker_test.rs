//! Tests of the loop, against a log of vectors.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::Worker;
use super::fake_log::{Broker, End, FakeLog, Hands};
use super::observer::{Holdings, Observer, TaskState, TickReport, TransactionEnd};
use super::settings::Settings;
use crate::calendar;
use crate::log::{Destination, LogEvent};
use crate::position::Partition;
use crate::store::memory::MemoryStore;
use crate::store::{StoreError, Stores};
use crate::task::rules::Rules;
use crate::task::tally::Tally;
use crate::time::Clock;
use crate::timer::budget::Budget;
use crate::timer::handler::Handlers;
use crate::timer::kind::{Kind, KindNumber, Registry};
use crate::timer::limits::Limits;

pub(super) const P: Partition = Partition(0);

/// Stores that forget everything when they are closed: each take-over restores from the changelog.
#[derive(Default)]
pub(super) struct Forgetful {
    /// How the next openings fail.
    failures: Rc<RefCell<VecDeque<StoreError>>>,
    /// How long an opening takes.
    opening: Rc<Cell<Duration>>,
    clock: Hands,
}

impl Stores for Forgetful {
    type Store = MemoryStore;

    fn open(&mut self, _partition: Partition) -> Result<MemoryStore, StoreError> {
        self.clock.advance(self.opening.get());
        self.failures.borrow_mut().pop_front().map_or_else(|| Ok(MemoryStore::default()), Err)
    }

    fn discard(&mut self, _partition: Partition) -> Result<(), StoreError> {
        Ok(())
    }
}

/// What a worker told.
#[derive(Default)]
pub(super) struct Heard {
    /// Ticks that left due work for the next.
    pub(super) saturated: usize,
    /// The lateness of all that fired, in order.
    pub(super) lateness: Vec<Duration>,
    /// Records of the changelog that were taken for somebody else's.
    pub(super) foreign: usize,
}

#[derive(Clone, Default)]
pub(super) struct Listener(Rc<RefCell<Heard>>);

impl Observer for Listener {
    fn entered(&mut self, _call: &'static str, _bound: Duration) {}
    fn left(&mut self) {}
    fn ticked(&mut self, report: &TickReport) {
        self.0.borrow_mut().saturated += usize::from(report.saturated);
    }
    fn transaction(&mut self, end: TransactionEnd, _took: Duration, tally: &Tally) {
        if end == TransactionEnd::Committed {
            self.0.borrow_mut().lateness.extend(tally.fired.iter().map(|(_, lateness)| *lateness));
        }
    }
    fn task(&mut self, _partition: Partition, _state: TaskState) {}
    fn task_gone(&mut self, _partition: Partition) {}
    fn restore(&mut self, _partition: Partition, _done: u64, _total: u64) {}
    fn holdings(&mut self, _partition: Partition, _holdings: &Holdings) {}
    fn joined(&mut self) {}
    fn clock_held(&mut self, _held: bool) {}
    fn kind_held(&mut self, _kind: KindNumber, _held: bool) {}
    fn input_lost(&mut self, _partition: Partition, _records: u64) {}

    fn foreign_records(&mut self, _partition: Partition, records: usize) {
        self.0.borrow_mut().foreign += records;
    }
}

pub(super) struct Bench {
    pub(super) broker: Rc<RefCell<Broker>>,
    pub(super) clock: Hands,
    pub(super) worker: Worker<FakeLog, Forgetful, Hands, Listener>,
    pub(super) heard: Rc<RefCell<Heard>>,
    pub(super) events: Rc<RefCell<VecDeque<LogEvent>>>,
    pub(super) patience: Rc<Cell<Duration>>,
    pub(super) failures: Rc<RefCell<VecDeque<StoreError>>>,
    pub(super) opening: Rc<Cell<Duration>>,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::on(&Rc::default(), &Hands::default())
    }

    pub(super) fn on(broker: &Rc<RefCell<Broker>>, clock: &Hands) -> Self {
        Self::with(settings(), broker, clock)
    }

    pub(super) fn with(settings: Settings, broker: &Rc<RefCell<Broker>>, clock: &Hands) -> Self {
        let log = FakeLog::new(broker);
        let listener = Listener::default();
        let stores = Forgetful { clock: clock.clone(), ..Forgetful::default() };
        Self {
            broker: Rc::clone(broker),
            clock: clock.clone(),
            events: Rc::clone(&log.events),
            patience: Rc::clone(&log.last_patience),
            failures: Rc::clone(&stores.failures),
            opening: Rc::clone(&stores.opening),
            heard: Rc::clone(&listener.0),
            worker: Worker::new(settings, log, stores, clock.clone(), listener),
        }
    }

    pub(super) fn ticks(&mut self, ticks: usize) {
        for _ in 0..ticks {
            self.worker.tick().unwrap();
            self.clock.advance(Duration::from_millis(10));
        }
    }

    /// Takes the partition over and lets it restore.
    pub(super) fn own(&mut self) {
        self.events.borrow_mut().push_back(LogEvent::Assigned(vec![P]));
        self.ticks(12);
    }

    pub(super) fn send(&mut self, json: &str) {
        let now = self.clock.wall();
        self.broker.borrow_mut().produce(P, now, Bytes::from(json.to_owned()));
    }

    pub(super) fn arm(&mut self, id: &str, kind: &str, after: &str) {
        self.send(&format!(
            r#"{{"run":"r","correlation_id":"{id}","arm":{{"timer_id":"{id}","kind":"{kind}","after":"{after}","payload":"{id}"}}}}"#
        ));
    }

    pub(super) fn fired(&self) -> Vec<String> {
        let broker = self.broker.borrow();
        let events = broker.output.iter().filter(|emission| matches!(emission.to, Destination::Fired(_)));
        events.map(|emission| String::from_utf8(emission.value.clone().unwrap().to_vec()).unwrap()).collect()
    }
}

pub(super) fn settings() -> Settings {
    let kind = |number, name: &str| Kind { outbox: true, ..Kind::new(KindNumber::new(number).unwrap(), name) };
    Settings {
        rules: Rules {
            registry: Registry::new([kind(1, "email"), kind(2, "sms")]).unwrap(),
            calendar: Arc::new(calendar::rules::Rules::default()),
            limits: Limits::default(),
            partitions: 1,
            arm_topic: "timers.arm".to_owned(),
            results: true,
            source: "/punctual".to_owned(),
            owner: "test".to_owned(),
            arm_bytes_max: 600_000,
            dead_letter_bytes_max: 900_000,
            handlers: Handlers::new(),
        },
        budget: Budget::default(),
        commit_linger: Duration::from_millis(100),
        flush_interval: Duration::from_mins(1),
        restore_stall_timeout: Duration::from_mins(1),
        store_age_max: Duration::from_hours(84),
        clock_step_max: Duration::from_secs(10),
    }
}

#[test]
fn a_timer_is_armed_and_fires_once_when_it_is_due() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("a", "email", "PT1S");
    bench.ticks(50);
    assert_eq!(bench.fired(), Vec::<String>::new());
    bench.ticks(60);
    assert_eq!(bench.fired(), ["a"]);
    bench.ticks(300);
    assert_eq!(bench.fired(), ["a"]);
    assert_eq!(bench.broker.borrow().sent_to(Destination::Results).len(), 1);
}

// N6
#[test]
fn a_sleeping_worker_waits_no_longer_than_to_the_next_wake() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("late", "email", "PT60S");
    bench.ticks(20);
    assert_eq!(bench.patience.get(), Duration::from_millis(500), "the heartbeat");
    bench.arm("soon", "email", "PT0.3S");
    bench.ticks(20);
    assert!(bench.patience.get() <= Duration::from_millis(110), "{:?}", bench.patience.get());
}

// N4
#[test]
fn an_abort_leaves_no_trace_and_is_done_again() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("a", "email", "PT1S");
    bench.ticks(20);
    bench.broker.borrow_mut().ends.extend([End::Abort, End::Abort]);
    bench.ticks(200);
    assert_eq!(bench.fired(), ["a"]);
    assert!(bench.broker.borrow().ends.is_empty(), "both aborts were met");
}

#[test]
fn an_unknown_outcome_neither_loses_nor_doubles() {
    for end in [End::UnknownButCommitted, End::UnknownAndAborted] {
        for before_the_arm in [true, false] {
            let mut bench = Bench::new();
            bench.own();
            if before_the_arm {
                bench.broker.borrow_mut().ends.push_back(end);
            }
            bench.arm("a", "email", "PT1S");
            bench.ticks(40);
            if !before_the_arm {
                bench.broker.borrow_mut().ends.push_back(end);
            }
            bench.ticks(300);
            assert!(bench.broker.borrow().ends.is_empty(), "the outcome was met");
            assert_eq!(bench.fired(), ["a"], "{end:?}, before the arm: {before_the_arm}");
            assert_eq!(bench.broker.borrow().sent_to(Destination::Results).len(), 1);
        }
    }
}

// L6
#[test]
fn a_refusing_topic_holds_its_own_kind_only() {
    let mut bench = Bench::new();
    bench.own();
    let email = Destination::Fired(KindNumber::new(1).unwrap());
    bench.broker.borrow_mut().refusing.insert(email);
    bench.arm("mail", "email", "PT1S");
    bench.arm("text", "sms", "PT1S");
    bench.ticks(120);
    assert_eq!(bench.fired(), ["text"]);
    let transactions = bench.broker.borrow().transactions;
    bench.ticks(200);
    assert!(bench.broker.borrow().transactions - transactions < 4, "tried again with a backoff, not in a loop");
    bench.broker.borrow_mut().refusing.clear();
    bench.ticks(600);
    assert_eq!(bench.fired(), ["text", "mail"]);
}

// N2, D6, N8
#[test]
fn a_successor_restores_what_was_pending_and_nothing_more() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("done", "email", "PT0.2S");
    bench.arm("pending", "email", "PT5S");
    bench.arm("cancelled", "email", "PT5S");
    bench.send(r#"{"run":"r","disarm":{"timer_id":"cancelled"}}"#);
    bench.ticks(40);
    assert_eq!(bench.fired(), ["done"]);
    // The first owner is gone without a word, and its disk with it.
    let mut successor = Bench::on(&bench.broker, &bench.clock);
    successor.own();
    successor.ticks(600);
    assert_eq!(successor.fired(), ["done", "pending"]);
}

// D10
#[test]
fn commands_that_stand_there_at_the_assignment_are_applied_before_anything_fires() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("a", "email", "PT1S");
    bench.ticks(20);
    bench.events.borrow_mut().push_back(LogEvent::Revoked(vec![P]));
    bench.ticks(1);
    bench.clock.advance(Duration::from_secs(10));
    bench.send(r#"{"run":"r","disarm":{"timer_id":"a"}}"#);
    bench.own();
    bench.ticks(50);
    assert_eq!(bench.fired(), Vec::<String>::new());
}

#[test]
fn what_is_open_is_settled_on_revoke_and_dropped_on_loss() {
    for is_lost in [false, true] {
        let mut bench = Bench::new();
        bench.own();
        let before = bench.broker.borrow().committed.get(&P).copied();
        bench.arm("a", "email", "PT5S");
        bench.ticks(1);
        let event = if is_lost { LogEvent::Lost(vec![P]) } else { LogEvent::Revoked(vec![P]) };
        bench.events.borrow_mut().push_back(event);
        bench.ticks(1);
        let after = bench.broker.borrow().committed.get(&P).copied();
        assert_eq!(after == before, is_lost, "before {before:?}, after {after:?}");
    }
}

// L4
#[test]
fn a_record_that_is_no_command_goes_to_the_dead_letters_and_delays_nobody() {
    let mut bench = Bench::new();
    bench.own();
    bench.send("{\"run\":");
    bench.send("\u{1}\u{2}\u{3}");
    bench.arm("a", "email", "PT0.1S");
    bench.ticks(40);
    assert_eq!(bench.fired(), ["a"]);
    assert_eq!(bench.broker.borrow().sent_to(Destination::DeadLetter).len(), 2);
}

// T3
#[test]
fn a_forward_step_of_the_clock_is_held_and_a_backward_step_delays() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("a", "email", "PT10S");
    bench.ticks(20);
    bench.clock.step_seconds(3_600);
    bench.arm("b", "email", "PT10S");
    bench.ticks(500);
    assert_eq!(bench.fired(), Vec::<String>::new(), "held");
    bench.clock.step_seconds(-3_600);
    bench.ticks(600);
    assert_eq!(bench.fired(), ["a"], "the clock has come back");
    bench.clock.step_seconds(-3_600);
    bench.arm("c", "email", "PT1S");
    bench.ticks(200);
    assert_eq!(bench.fired(), ["a", "c"], "a timer of the new time");
}

// T3
#[test]
fn a_clock_that_steps_back_rejects_no_command_as_ahead_of_us() {
    let mut bench = Bench::new();
    bench.own();
    let right = bench.clock.wall();
    bench.clock.step_seconds(-3_600);
    let arm = r#"{"run":"r","arm":{"timer_id":"a","kind":"email","after":"PT1S","payload":"a"}}"#;
    bench.broker.borrow_mut().produce(P, right, Bytes::from(arm));
    bench.ticks(20);
    assert_eq!(bench.broker.borrow().sent_to(Destination::DeadLetter).len(), 0);
    bench.clock.advance(Duration::from_hours(1));
    bench.ticks(200);
    assert_eq!(bench.fired(), ["a"]);
}
