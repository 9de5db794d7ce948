//! Tests of paused timers in a worker: what they cost, and what is left of them after a take-over.

use std::time::Duration;

use super::tests::{Bench, P};
use crate::log::Destination;
use crate::timer::kind::KindNumber;
use crate::wire::answer;

fn pause(bench: &mut Bench, id: &str) {
    bench.send(&format!(r#"{{"run":"r","correlation_id":"p","pause":{{"timer_id":"{id}"}}}}"#));
}

fn resume(bench: &mut Bench, id: &str) {
    bench.send(&format!(r#"{{"run":"r","correlation_id":"r","resume":{{"timer_id":"{id}"}}}}"#));
}

fn outcomes(bench: &Bench) -> Vec<String> {
    let broker = bench.broker.borrow();
    let answers = broker.sent_to(Destination::Results).into_iter();
    answers.map(|e| answer::decode(e.value.as_ref().unwrap(), &e.headers).unwrap().outcome).collect()
}

/// Returns how many timers of kind 1 are pending, paused and overdue.
fn counts(bench: &mut Bench) -> (u64, u64, usize) {
    let now = bench.worker.now;
    let overlay = bench.worker.seats[&P].task.as_ref().unwrap().overlay();
    let kind = KindNumber::new(1).unwrap();
    let of = |counts: &std::collections::BTreeMap<KindNumber, u64>| counts.get(&kind).copied().unwrap_or_default();
    (of(overlay.pending()), of(overlay.paused()), overlay.overdue(kind, now, 100).unwrap())
}

#[test]
fn a_paused_timer_wakes_nobody_and_is_not_overdue() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("a", "email", "PT0.5S");
    pause(&mut bench, "a");
    bench.ticks(200);
    assert_eq!(bench.fired(), Vec::<String>::new());
    assert_eq!(bench.patience.get(), Duration::from_millis(500), "the heartbeat: nothing is waited for");
    assert_eq!(counts(&mut bench), (1, 1, 0));
    assert_eq!(bench.heard.borrow().saturated, 0);
    resume(&mut bench, "a");
    bench.ticks(20);
    assert_eq!(bench.fired(), ["a"]);
    assert_eq!(counts(&mut bench), (0, 0, 0));
    assert_eq!(outcomes(&bench), ["armed", "paused", "resumed"]);
    let lateness = bench.heard.borrow().lateness.clone();
    assert!(lateness.len() == 1 && lateness[0] <= Duration::from_millis(20), "as late as the resume: {lateness:?}");
}

// N8
#[test]
fn a_paused_timer_is_paused_after_a_take_over() {
    let mut first = Bench::new();
    first.own();
    for id in ["a", "b", "c"] {
        first.arm(id, "email", "PT0.5S");
    }
    pause(&mut first, "a");
    pause(&mut first, "b");
    resume(&mut first, "b");
    first.ticks(20);

    let mut second = Bench::on(&first.broker, &first.clock);
    second.own();
    second.ticks(200);
    assert_eq!(second.fired(), ["b", "c"]);
    assert_eq!(counts(&mut second), (1, 1, 0));
    resume(&mut second, "a");
    second.ticks(20);
    assert_eq!(second.fired(), ["b", "c", "a"]);
}

/// N4: the pause that a transaction dropped is read again, and so is the resume.
#[test]
fn an_abort_neither_loses_nor_keeps_a_pause() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("a", "email", "PT1S");
    bench.ticks(20);
    for send in [pause, resume] {
        send(&mut bench, "a");
        bench.broker.borrow_mut().ends.push_back(super::fake_log::End::Abort);
        bench.ticks(200);
    }
    assert!(bench.broker.borrow().ends.is_empty(), "both aborts were met");
    assert_eq!((bench.fired(), counts(&mut bench)), (vec!["a".to_owned()], (0, 0, 0)));
}
