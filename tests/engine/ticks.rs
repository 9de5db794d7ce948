//! Budgets and reports of ticks.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use punctual::engine::{Arm, Budget, Engine, Options, Tick};
use punctual::timer::handler::{Done, FireContext, Fired, Handler, HandlerError};
use punctual::timer::model::Timer;

use crate::rig::{at, claim_names, on_both, options, pending, tick, wish};

fn two_kinds() -> Options {
    options().kind(1, "one").unwrap().kind(2, "two").unwrap()
}

fn arm_many(engine: &Engine, kind: u32, count: usize, due: i64) {
    for number in 0..count {
        engine.arm(Arm { kind, ..wish(&format!("k{kind}"), &format!("{number:03}"), due) }, at(1)).unwrap();
    }
}

#[test]
fn an_idle_tick_reports_nothing() {
    on_both(&two_kinds(), |engine| {
        let report = tick(engine, 10, Budget::default());
        assert_eq!(report, punctual::engine::TickReport::default());
    });
}

#[test]
fn a_budget_stops_a_tick_and_the_next_goes_on() {
    on_both(&two_kinds(), |engine| {
        arm_many(engine, 1, 10, 10);
        let budget = Budget { fired_max: 4, ..Budget::default() };
        let report = tick(engine, 10, budget);
        assert_eq!((report.fired, report.deferred, report.stopped_on_budget), (4, 6, true));
        assert_eq!(report.next_wake, Some(at(10)), "now, for something was committed and work remains");
        assert_eq!(tick(engine, 10, budget).fired, 4);
        let report = tick(engine, 10, budget);
        assert_eq!((report.fired, report.deferred, report.stopped_on_budget, report.next_wake), (2, 0, false, None));
    });
}

#[test]
fn a_budget_of_zero_means_one_and_makes_progress() {
    on_both(&two_kinds(), |engine| {
        arm_many(engine, 1, 3, 10);
        let zero = Budget {
            fired_max: 0,
            fired_per_kind_max: 0,
            fired_per_tenant_max: 0,
            scanned_max: 0,
            bytes_max: 0,
            elapsed_max: Duration::ZERO,
        };
        for left in [2, 1, 0] {
            assert_eq!(tick(engine, 10, zero).fired, 1);
            assert_eq!(pending(engine), left);
        }
        arm_many(engine, 1, 3, 10);
        for _ in 0..3 {
            assert_eq!(tick(engine, 10, Budget { scanned_max: 1, ..Budget::default() }).fired, 1);
        }
    });
}

#[test]
fn kinds_have_shares_and_take_turns() {
    on_both(&two_kinds(), |engine| {
        arm_many(engine, 1, 10, 10);
        arm_many(engine, 2, 10, 10);
        let report = tick(engine, 10, Budget { fired_per_kind_max: 3, ..Budget::default() });
        assert_eq!((report.fired, report.deferred), (6, 14));
        let mut by_kind = [0, 0];
        for _ in 0..4 {
            tick(engine, 10, Budget { fired_max: 2, ..Budget::default() });
        }
        for entry in engine.read_outbox(6, 100).unwrap() {
            by_kind[usize::from(entry.emitted.unwrap().kind.get()) - 1] += 1;
        }
        assert_eq!(by_kind, [4, 4], "a small budget goes to each in turn");
    });
}

#[test]
fn one_tick_is_shared_by_several_engines() {
    let engines = [(); 3].map(|()| Engine::in_memory(two_kinds()).unwrap());
    for engine in &engines {
        arm_many(engine, 1, 10, 10);
    }
    let mut shared = Tick::new(Budget { fired_max: 15, fired_per_kind_max: 12, ..Budget::default() });
    let reports = engines.each_ref().map(|engine| engine.fire_due(at(10), &mut shared, &|| Duration::ZERO).unwrap());
    assert_eq!(reports.each_ref().map(|report| report.fired), [10, 2, 0]);
    assert_eq!(reports.each_ref().map(|report| report.deferred), [0, 8, 10]);
    let hot = Some(at(10));
    assert_eq!(reports.each_ref().map(|report| report.next_wake), [None, hot, Some(at(5_010))]);
    assert!(!shared.try_charge(4, 0, 0), "three fires are left");
    assert!(shared.try_charge(3, 1, 1), "and can be charged for other work");
}

/// Fails or dates anew, by its share.
struct Slow(Option<usize>);

impl Handler for Slow {
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        if timer.key.id.as_str() < "001" {
            return Err("no".into());
        }
        let due = ctx.now.checked_add_millis(1_000).ok_or("the end of time")?;
        Ok(Fired::Reschedule { due, payload: None, outbox: Vec::new() })
    }

    fn share_max(&self) -> Option<usize> {
        self.0
    }
}

#[test]
fn what_fails_or_is_dated_anew_uses_the_shares() {
    on_both(&two_kinds().handler(1, Slow(Some(3))).unwrap(), |engine| {
        arm_many(engine, 1, 10, 10);
        arm_many(engine, 2, 10, 10);
        let report = tick(engine, 10, Budget { fired_max: 5, ..Budget::default() });
        assert_eq!((report.failed, report.rescheduled, report.fired), (1, 2, 2), "three of kind 1, two of kind 2");
    });
}

#[test]
fn a_handler_lowers_its_share_and_never_raises_it() {
    for (share, fired) in [(Some(0), 1), (Some(2), 2), (Some(1_000), 4), (None, 4)] {
        let engine = Engine::in_memory(two_kinds().handler(1, Slow(share)).unwrap()).unwrap();
        arm_many(&engine, 1, 10, 10);
        let report = tick(&engine, 10, Budget { fired_per_kind_max: 4, ..Budget::default() });
        assert_eq!(report.failed + report.rescheduled, fired, "{share:?}");
    }
}

#[test]
fn bytes_end_a_tick_after_the_timer_that_exceeds_them() {
    on_both(&two_kinds(), |engine| {
        for number in 0..5 {
            let payload = Some(vec![0; 100].into());
            engine.arm(Arm { payload, ..wish("r", &format!("{number}"), 10) }, at(1)).unwrap();
        }
        let report = tick(engine, 10, Budget { bytes_max: 150, ..Budget::default() });
        assert_eq!((report.fired, report.stopped_on_budget), (2, true));
    });
}

/// Takes its time on a clock that the test reads.
struct Lasting(Arc<AtomicU64>, u64);

impl Handler for Lasting {
    fn fire(&self, _ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        self.0.fetch_add(self.1, Ordering::Relaxed);
        Ok(Fired::Done(Done::publish(timer)))
    }
}

#[test]
fn time_stops_before_the_next_row_and_the_running_handler_commits() {
    let clock = Arc::new(AtomicU64::new(1_000));
    let options = two_kinds().handler(1, Lasting(Arc::clone(&clock), 6)).unwrap();
    let engine = Engine::in_memory(options).unwrap();
    arm_many(&engine, 1, 5, 10);
    let reading = || Duration::from_secs(clock.load(Ordering::Relaxed));
    let mut shared = Tick::new(Budget { elapsed_max: Duration::from_secs(12), ..Budget::default() });
    let report = engine.fire_due(at(10), &mut shared, &reading).unwrap();
    assert_eq!((report.fired, report.deferred, report.stopped_on_budget), (2, 3, true), "at 0 s and 6 s, not at 12 s");
    let report = engine.fire_due(at(10), &mut shared, &reading).unwrap();
    assert_eq!((report.fired, report.stopped_on_budget, report.next_wake), (0, true, Some(at(5_010))));
    let late = Duration::from_secs(500);
    let mut begun = Tick::started_at(Budget::default(), late.saturating_sub(Duration::from_secs(100)));
    assert_eq!(engine.fire_due(at(10), &mut begun, &|| late).unwrap().fired, 1, "the first row is always begun");
}

#[test]
fn a_clock_that_goes_back_counts_as_no_time() {
    let engine = Engine::in_memory(two_kinds()).unwrap();
    arm_many(&engine, 1, 5, 10);
    let reading = Cell::new(Duration::from_secs(1_000));
    let clock = || {
        let read = reading.get();
        reading.set(read / 2);
        read
    };
    let mut back = Tick::new(Budget { elapsed_max: Duration::from_millis(1), ..Budget::default() });
    assert_eq!(engine.fire_due(at(10), &mut back, &clock).unwrap().fired, 5);
}

#[test]
fn unknown_kinds_are_kept_and_counted_and_cost_no_scan() {
    on_both(&two_kinds(), |engine| {
        arm_many(engine, 9, 3, 10);
        arm_many(engine, 240, 2, 10);
        arm_many(engine, 1, 1, 50);
        let report = tick(engine, 20, Budget::default());
        assert_eq!((report.unknown, report.fired, report.scanned, report.deferred), (5, 0, 0, 0));
        assert_eq!(report.next_wake, Some(at(50)), "there is no use in waking for them");
        assert_eq!((pending(engine), engine.next_wake().unwrap()), (6, Some(at(10))));
        assert_eq!(claim_names(engine, 20, 100).len(), 5, "a claimer knows what to do with them");
    });
}

#[test]
fn the_next_wake_is_the_earliest_of_what_is_left_and_what_was_written() {
    on_both(&two_kinds().handler(1, Slow(None)).unwrap(), |engine| {
        arm_many(engine, 2, 1, 700);
        arm_many(engine, 1, 2, 10);
        let report = tick(engine, 20, Budget::default());
        assert_eq!((report.failed, report.rescheduled, report.next_wake), (1, 1, Some(at(700))));
        assert_eq!(tick(engine, 700, Budget::default()).next_wake, Some(at(1_020)));
    });
}

#[test]
fn a_tenant_with_little_is_not_held_up_by_one_with_much() {
    on_both(&two_kinds(), |engine| {
        arm_many(engine, 1, 200, 10);
        engine.arm(Arm { tenant: "small".to_owned(), ..wish("r", "t", 11) }, at(1)).unwrap();
        let budget = Budget { fired_max: 8, fired_per_kind_max: 8, scanned_max: 300, ..Budget::default() };
        let small = || engine.pending_count("small".to_owned()).unwrap();
        let ticks = (0..20).take_while(|_| {
            tick(engine, 20, budget);
            small() > 0
        });
        assert!(ticks.count() < 3, "L10: the look ahead finds it");
    });
}
