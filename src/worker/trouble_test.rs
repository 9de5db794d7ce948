//! Tests of the loop under combined trouble: what came together once and must not hurt again.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use super::fake_log::{End, Hands};
use super::tests::{Bench, P, settings};
use crate::log::{Destination, LogEvent};
use crate::position::{Partition, Position};
use crate::store::StoreError;
use crate::time::{Clock, Timestamp};
use crate::timer::identity::{Run, RunKey, Tenant};
use crate::timer::kind::KindNumber;
use crate::wire::partition::partition_of;

pub(super) const Q: Partition = Partition(1);

/// Returns a run of the partition, among two.
fn run_of(partition: Partition) -> String {
    let key = |run: &str| RunKey { tenant: Tenant::parse("").unwrap(), run: Run::parse(run).unwrap() };
    (0..100).map(|n| format!("run-{n}")).find(|run| partition_of(&key(run), 2) == partition).unwrap()
}

pub(super) fn arm(run: &str, id: &str, after: &str) -> Bytes {
    Bytes::from(format!(
        r#"{{"run":"{run}","arm":{{"timer_id":"{id}","kind":"email","after":"{after}","payload":"{id}"}}}}"#
    ))
}

/// A bench that owns two partitions.
fn two_partitions(fired_max: usize) -> Bench {
    let mut settings = settings();
    settings.rules.partitions = 2;
    settings.budget.fired_max = fired_max;
    let mut bench = Bench::with(settings, &Rc::default(), &Hands::default());
    bench.events.borrow_mut().push_back(LogEvent::Assigned(vec![P, Q]));
    bench.ticks(12);
    bench
}

#[test]
fn a_timestamp_before_the_epoch_counts_as_none() {
    let mut bench = Bench::new();
    bench.own();
    let before = Timestamp::from_millis(-10_000);
    bench.broker.borrow_mut().produce(P, before, arm("r", "a", "PT1S"));
    bench.broker.borrow_mut().produce(P, before, Bytes::from_static(br#"{"run":"s","seal_run":{"retention":"PT1S"}}"#));
    bench.ticks(60);
    assert_eq!(bench.broker.borrow().sent_to(Destination::DeadLetter).len(), 1, "the arm has nothing to count from");
    let key = RunKey { tenant: Tenant::parse("").unwrap(), run: Run::parse("s").unwrap() };
    let seat = bench.worker.seats.get(&P).unwrap();
    let run = crate::timer::view::Lookup::run(seat.task.as_ref().unwrap().overlay(), &key).unwrap();
    assert!(run.seal.unwrap().until.unwrap() > Timestamp::EPOCH, "{run:?}");
}

#[test]
fn a_task_that_found_the_budget_used_up_has_its_turn_at_once() {
    let mut bench = two_partitions(1);
    let now = bench.clock.wall();
    for partition in [P, Q] {
        for id in 0..10 {
            let value = arm(&run_of(partition), &format!("{partition}-{id}"), "PT1S");
            bench.broker.borrow_mut().produce(partition, now, value);
        }
    }
    bench.ticks(140);
    assert_eq!(bench.fired().len(), 20, "{:?}", bench.fired());
}

#[test]
fn a_storm_goes_on_after_a_backward_step_of_the_clock() {
    let mut settings = settings();
    settings.budget.fired_max = 1;
    let mut bench = Bench::with(settings, &Rc::default(), &Hands::default());
    bench.own();
    bench.clock.advance(Duration::from_hours(2));
    let long_ago = Timestamp::from_millis(bench.clock.wall().as_millis() - 7_200_000);
    for id in 0..10 {
        bench.broker.borrow_mut().produce(P, long_ago, arm("r", &id.to_string(), "PT1S"));
    }
    bench.ticks(3);
    let fired = bench.fired().len();
    assert!((1..10).contains(&fired), "in the middle of the storm: {fired}");
    bench.clock.step_seconds(-3_600);
    bench.ticks(30);
    assert_eq!(bench.fired().len(), 10, "they are due by the new time as well");
}

#[test]
fn a_stray_that_does_not_fit_its_topic_when_forwarded_blocks_nobody() {
    let mut bench = two_partitions(128);
    bench.broker.borrow_mut().arm_bytes_max = Some(600_000);
    let now = bench.clock.wall();
    let large = "x".repeat(700_000);
    let stray = format!(
        r#"{{"run":"{}","arm":{{"timer_id":"a","kind":"email","after":"PT1S","payload":"{large}"}}}}"#,
        run_of(Q)
    );
    bench.broker.borrow_mut().produce(P, now, Bytes::from(stray));
    bench.broker.borrow_mut().produce(P, now, arm(&run_of(Q), "small", "PT1S"));
    bench.broker.borrow_mut().produce(P, now, arm(&run_of(P), "home", "PT1S"));
    bench.ticks(300);
    assert_eq!(bench.fired(), ["home", "small"]);
    assert_eq!(bench.broker.borrow().sent_to(Destination::DeadLetter).len(), 1, "the large one");
    assert_eq!(bench.broker.borrow().sent_to(Destination::Arm).len(), 1, "the small one");
}

#[test]
fn a_restore_does_not_end_before_its_barrier_when_the_log_hides_where_that_is() {
    let mut bench = Bench::new();
    bench.own();
    for id in 0..10 {
        bench.arm(&id.to_string(), "email", "PT60S");
    }
    bench.send(r#"{"run":"r","disarm_run":{}}"#);
    bench.arm("pending", "email", "PT1S");
    bench.ticks(20);
    let mut successor = Bench::with(settings(), &bench.broker, &bench.clock);
    successor.broker.borrow_mut().hides_places = true;
    successor.own();
    successor.ticks(200);
    assert_eq!(successor.fired(), ["pending"]);
}

#[test]
fn much_to_send_does_not_wait_for_the_linger() {
    let mut settings = settings();
    settings.commit_linger = Duration::from_hours(1);
    let mut bench = Bench::with(settings, &Rc::default(), &Hands::default());
    bench.own();
    let before = bench.broker.borrow().transactions;
    let large = "x".repeat(900_000);
    for id in 0..40 {
        let value =
            format!(r#"{{"run":"r","arm":{{"timer_id":"{id}","kind":"email","after":"PT1H","payload":"{large}"}}}}"#);
        bench.send(&value);
        bench.ticks(1);
    }
    let after = bench.broker.borrow().transactions;
    assert!((3..10).contains(&(after - before)), "{} transactions for 36 MB", after - before);
    // What is on its way to the dead letters counts as well.
    for _ in 0..40 {
        bench.send(&large);
        bench.ticks(1);
    }
    let more = bench.broker.borrow().transactions;
    assert!((3..10).contains(&(more - after)), "{} transactions for 36 MB", more - after);
}

#[test]
fn a_worker_that_waits_out_a_failure_does_not_spin() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("a", "email", "PT60S");
    bench.broker.borrow_mut().ends.extend([End::Abort; 4]);
    // Barriers fail while commands wait for the linger.
    bench.events.borrow_mut().push_back(LogEvent::Assigned(vec![Q]));
    let mut spins = 0;
    for _ in 0..200 {
        bench.ticks(1);
        spins += usize::from(bench.patience.get().is_zero());
    }
    assert!(bench.broker.borrow().ends.is_empty(), "all failures were met");
    assert!(spins < 10, "{spins} of 200 waits were none");
}

#[test]
fn commands_are_not_read_in_a_loop_while_they_cannot_be_taken() {
    let mut bench = Bench::new();
    bench.own();
    bench.broker.borrow_mut().refusing.insert(Destination::DeadLetter);
    bench.send("no command");
    bench.ticks(20);
    let before = bench.broker.borrow().reads;
    for _ in 0..50 {
        bench.arm("a", "email", "PT60S");
        bench.ticks(1);
    }
    let reads = bench.broker.borrow().reads - before;
    assert!(reads <= 2, "{reads} records were read for nothing");
    bench.broker.borrow_mut().refusing.clear();
    bench.ticks(400);
    assert_eq!(bench.broker.borrow().sent_to(Destination::Results).len(), 50, "all were taken in the end");
}

#[test]
fn a_step_of_the_clock_is_confirmed_also_before_the_first_command() {
    let mut bench = Bench::new();
    bench.broker.borrow_mut().clock = Some(bench.clock.clone());
    bench.own();
    bench.clock.step_seconds(3_600);
    bench.arm("a", "email", "PT1S");
    bench.ticks(400);
    assert_eq!(bench.fired(), ["a"], "the broker has the new time too");
}

#[test]
fn a_slow_commit_is_no_step_of_the_clock() {
    let mut bench = Bench::new();
    bench.broker.borrow_mut().clock = Some(bench.clock.clone());
    bench.own();
    bench.broker.borrow_mut().commit_takes = Duration::from_secs(15);
    bench.arm("a", "email", "PT60S");
    let before = bench.broker.borrow().transactions;
    bench.ticks(20);
    assert_eq!(bench.broker.borrow().transactions - before, 1, "no probe was needed");
    assert!(!bench.worker.is_clock_held, "the broker was slow, the clock was right");
}

#[test]
fn a_take_over_of_many_partitions_leaves_room_for_the_others() {
    let mut bench = Bench::new();
    bench.own();
    bench.opening.set(Duration::from_millis(200));
    let many: Vec<Partition> = (1..50).map(Partition).collect();
    bench.events.borrow_mut().push_back(LogEvent::Assigned(many));
    let before = bench.clock.boot();
    bench.ticks(1);
    let took = bench.clock.boot().saturating_sub(before);
    assert!(took < Duration::from_secs(1), "one pass took {took:?}");
    bench.ticks(200);
    assert!(bench.worker.seats.values().all(|seat| seat.task.is_some()), "all are taken over in the end");
}

#[test]
fn a_store_that_another_worker_still_holds_is_tried_again() {
    let mut bench = Bench::new();
    bench.failures.borrow_mut().extend([0, 1].map(|_| StoreError::Locked { path: "partition-0".into() }));
    bench.own();
    bench.arm("a", "email", "PT1S");
    bench.ticks(200);
    assert_eq!(bench.fired(), ["a"]);
}

#[test]
fn what_was_taken_is_settled_before_a_lost_position_is_looked_for() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("a", "email", "PT60S");
    bench.ticks(1);
    bench.events.borrow_mut().push_back(LogEvent::OutOfRange(P));
    bench.ticks(1);
    assert_eq!(bench.broker.borrow().committed.get(&P), Some(&Position(1)));
}

/// All ways to fail, one after the other in every order of three, around one timer that fires, one that is cancelled and
/// one that is replaced.
#[test]
fn any_three_troubles_in_a_row_neither_lose_nor_double() {
    let troubles = [
        Trouble::Abort,
        Trouble::UnknownButCommitted,
        Trouble::UnknownAndAborted,
        Trouble::Revoke,
        Trouble::Lose,
        Trouble::OutOfRange,
        Trouble::KindRefused,
        Trouble::CommandsRefused,
        Trouble::ClockForward,
        Trouble::StoreFull,
    ];
    for first in troubles {
        for second in troubles {
            for third in troubles {
                check([first, second, third]);
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Abort,
    UnknownButCommitted,
    UnknownAndAborted,
    Revoke,
    Lose,
    OutOfRange,
    KindRefused,
    CommandsRefused,
    ClockForward,
    StoreFull,
}

fn check(troubles: [Trouble; 3]) {
    let mut bench = Bench::new();
    bench.own();
    // The clients' clocks are right, whatever ours says.
    let send = |bench: &Bench, json: &str| {
        bench.broker.borrow_mut().produce(P, bench.clock.elsewhere().wall(), Bytes::from(json.to_owned()));
    };
    let mut expected = Vec::new();
    for (number, trouble) in troubles.into_iter().enumerate() {
        let arm = |id: &str, kind: &str, after: &str| {
            format!(
                r#"{{"run":"r","correlation_id":"{id}","arm":{{"timer_id":"{id}-{number}","kind":"{kind}","after":"{after}","payload":"{id}-{number}"}}}}"#
            )
        };
        send(&bench, &arm("fires", "email", "PT0.5S"));
        expected.push(format!("fires-{number}"));
        send(&bench, &arm("cancelled", "sms", "PT40S"));
        bench.ticks(number * 7);
        trouble.happen(&mut bench);
        send(&bench, &format!(r#"{{"run":"r","correlation_id":"d","disarm":{{"timer_id":"cancelled-{number}"}}}}"#));
        send(&bench, &arm("fires", "email", "PT30S"));
        send(&bench, "no command");
        bench.ticks(25);
        trouble.end(&mut bench);
        bench.ticks(9);
    }
    bench.ticks(9_000);
    let mut fired = bench.fired();
    fired.sort();
    // An arm after the fire is another timer, and one that came before it was the same.
    fired.dedup();
    assert_eq!(fired, expected, "{troubles:?}");
    let broker = bench.broker.borrow();
    assert_eq!(broker.sent_to(Destination::DeadLetter).len(), 3, "{troubles:?}");
    let events = broker.sent_to(Destination::Fired(KindNumber::new(1).unwrap())).len();
    let answers: Vec<String> =
        broker.sent_to(Destination::Results).iter().map(|answer| format!("{:?}", answer.value)).collect();
    let armed = answers.iter().filter(|answer| answer.contains("\\\"armed\\\"") && answer.contains("fires")).count();
    assert_eq!(events, armed, "what was answered as armed has fired, {troubles:?} {answers:#?}");
    assert_eq!(answers.len(), 12, "{troubles:?} {answers:#?}");
    drop(broker);
    let task = bench.worker.seats.get(&P).and_then(|seat| seat.task.as_ref()).unwrap();
    assert!(task.overlay().pending().values().all(|count| *count == 0), "{troubles:?}: {:?}", task.overlay().pending());
}

impl Trouble {
    fn happen(self, bench: &mut Bench) {
        match self {
            Self::Abort => bench.broker.borrow_mut().ends.extend([End::Abort, End::Abort]),
            Self::UnknownButCommitted => bench.broker.borrow_mut().ends.push_back(End::UnknownButCommitted),
            Self::UnknownAndAborted => bench.broker.borrow_mut().ends.push_back(End::UnknownAndAborted),
            Self::Revoke | Self::Lose => {
                let event = if self == Self::Revoke { LogEvent::Revoked(vec![P]) } else { LogEvent::Lost(vec![P]) };
                bench.events.borrow_mut().extend([event, LogEvent::Assigned(vec![P])]);
            }
            Self::OutOfRange => bench.events.borrow_mut().push_back(LogEvent::OutOfRange(P)),
            Self::KindRefused => {
                bench.broker.borrow_mut().refusing.insert(Destination::Fired(KindNumber::new(1).unwrap()));
            }
            Self::CommandsRefused => {
                bench.broker.borrow_mut().refusing.insert(Destination::DeadLetter);
            }
            Self::ClockForward => bench.clock.step_seconds(3_600),
            Self::StoreFull => {
                let full = StoreError::Full { path: "partition-0".into(), detail: "full".to_owned() };
                bench.failures.borrow_mut().push_back(full);
                bench.events.borrow_mut().extend([LogEvent::Lost(vec![P]), LogEvent::Assigned(vec![P])]);
            }
        }
    }

    fn end(self, bench: &mut Bench) {
        if self == Self::ClockForward {
            bench.clock.step_seconds(-3_600);
        }
        bench.broker.borrow_mut().refusing.clear();
    }
}
