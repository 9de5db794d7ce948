//! Tests of what the simulator found: seeds made small.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::WorkerError;
use super::fake_log::End;
use super::tests::{Bench, P};
use crate::log::{ChangelogRecord, Destination, LogEvent};
use crate::position::{Offset, Partition, Position};
use crate::store::Store;
use crate::time::{Clock, Timestamp};
use crate::timer::model::Generation;
use crate::wire::key::StateKey;
use crate::wire::state::Meta;

/// A partition that the command topic has and the changelog has not.
const Q: Partition = Partition(1);

const ARM: &[u8] = br#"{"run":"r","arm":{"timer_id":"a","kind":"email","after":"PT1S"}}"#;

/// Nothing tells the broker's time to a worker that has no changelog to write to.
#[test]
fn a_step_of_the_clock_does_not_stop_a_worker_that_only_forwards() {
    let mut bench = Bench::new();
    bench.broker.borrow_mut().committed.insert(Q, Position(0));
    bench.events.borrow_mut().push_back(LogEvent::Assigned(vec![Q]));
    bench.ticks(5);
    bench.clock.step_seconds(3_600);
    bench.ticks(300);
    let now = bench.clock.wall();
    bench.broker.borrow_mut().produce(Q, now, Bytes::from_static(ARM));
    bench.ticks(50);
    assert_eq!(bench.broker.borrow().committed.get(&Q), Some(&Position(1)));
}

/// It reads what was true of the partition before another took it over, and is told so by its next barrier only.
#[test]
fn a_contradiction_stops_the_process_when_it_is_found_twice() {
    let mut bench = Bench::new();
    let now = bench.clock.wall();
    bench.broker.borrow_mut().produce(P, now, Bytes::from_static(ARM));
    bench.broker.borrow_mut().committed.insert(P, Position(1));
    bench.events.borrow_mut().push_back(LogEvent::Assigned(vec![P]));
    bench.ticks(1);
    let offset = Offset(1);
    let meta = Meta { input_position: Position(1), next_generation: Generation(1), forwarders: BTreeMap::new() };
    let record = ChangelogRecord { offset, key: StateKey::Meta.encode(), value: Some(meta.encode()) };
    bench.broker.borrow_mut().changelog.get_mut(&P).unwrap().push(record);
    bench.ticks(10);
    bench.arm("b", "email", "PT1S");
    bench.ticks(120);
    assert_eq!(bench.fired(), ["b"], "it went on behind what the other had taken");
    let mut other = Bench::new();
    other.broker.borrow_mut().produce(P, now, Bytes::from_static(ARM));
    other.broker.borrow_mut().committed.insert(P, Position(1));
    other.events.borrow_mut().push_back(LogEvent::Assigned(vec![P]));
    let ended = (0..10).find_map(|_| other.worker.tick().err()).expect("it stops");
    assert!(matches!(ended, WorkerError::Contradiction { partition: P, .. }), "{ended}");
}

/// The disarm opened the gate, its transaction was aborted, and the timer fired before it was read
/// again.
#[test]
fn a_gate_that_aborted_commands_have_opened_closes_again() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("a", "email", "PT1S");
    bench.ticks(30);
    let mut next = Bench::on(&bench.broker, &bench.clock);
    bench.clock.advance(Duration::from_secs(2));
    next.send(r#"{"run":"r","correlation_id":"b","disarm":{"timer_id":"a"}}"#);
    next.send("no command");
    bench.broker.borrow_mut().refusing.insert(Destination::DeadLetter);
    next.own();
    next.ticks(200);
    bench.broker.borrow_mut().refusing.clear();
    next.ticks(800);
    assert_eq!(next.fired(), Vec::<String>::new());
    assert_eq!(bench.broker.borrow().committed.get(&P), Some(&Position(3)));
}

/// A broker has lost the marker of a transaction of ours. What it wrote can be read when its producer, one of three, has
/// committed there again.
#[test]
fn a_restore_that_reads_nothing_marks_its_partition_through_each_producer() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("a", "email", "PT1H");
    bench.ticks(20);
    let mut bench = Bench::on(&bench.broker, &bench.clock);
    let hung_until = bench.broker.borrow().transactions + 4;
    bench.broker.borrow_mut().hung_until = hung_until;
    bench.events.borrow_mut().push_back(LogEvent::Assigned(vec![P]));
    for _ in 0..45 {
        bench.ticks(1);
        bench.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(bench.broker.borrow().transactions, hung_until, "a barrier each ten seconds, until it can be read");
    bench.clock.advance(Duration::from_hours(1));
    bench.arm("b", "email", "PT1S");
    bench.ticks(200);
    assert_eq!((bench.fired(), bench.heard.borrow().foreign), (vec!["a".to_owned(), "b".to_owned()], 0));
}

/// Returns until when the store of the partition is level with its changelog.
fn level_at(bench: &Bench) -> Timestamp {
    let task = bench.worker.seats.get(&P).and_then(|seat| seat.task.as_ref()).unwrap();
    task.overlay().store().header().level_at.unwrap()
}

// R5: the store of who has lost the partition and does not know it yet was taken for young, and tombstones behind it were gone.
#[test]
fn a_store_is_level_only_until_a_fence_that_held() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("a", "email", "PT60S");
    bench.ticks(20);
    let before = level_at(&bench);
    bench.clock.advance(Duration::from_hours(1));
    bench.broker.borrow_mut().ends.extend([End::Abort; 3]);
    bench.ticks(3);
    assert_eq!(level_at(&bench), before, "a flush proves nothing");
    bench.ticks(200);
    assert!(before < level_at(&bench), "a transaction does");
}

#[test]
fn a_worker_without_work_proves_now_and_then_that_its_partitions_are_its_own() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("a", "email", "P9D");
    bench.ticks(20);
    let (transactions, began) = (bench.broker.borrow().transactions, bench.clock.wall());
    for _ in 0..80 {
        bench.clock.advance(Duration::from_hours(1));
        bench.ticks(3);
    }
    let proofs = bench.broker.borrow().transactions - transactions;
    assert_eq!(proofs, 3, "one in a quarter of the greatest age");
    let age = bench.clock.wall().since(level_at(&bench));
    assert!(age < Duration::from_hours(22) && began < level_at(&bench), "young enough to be opened again: {age:?}");
}
