//! The loop with a partition that the command topic has and the changelog has not (R26).

use bytes::Bytes;

use super::fake_log::End;
use super::tests::{Bench, P, settings};
use super::trouble_tests::{Q, arm};
use crate::log::{Destination, LogEvent};
use crate::position::{Partition, Position};
use crate::time::Clock;

#[test]
fn a_partition_that_was_added_to_the_command_topic_is_forwarded() {
    let added = Partition(1);
    let mut bench = Bench::new();
    bench.events.borrow_mut().push_back(LogEvent::Assigned(vec![P, added]));
    bench.ticks(12);
    bench.broker.borrow_mut().ends.extend([End::Abort, End::UnknownAndAborted]);
    let now = bench.clock.wall();
    let arm = r#"{"run":"r","arm":{"timer_id":"a","kind":"email","after":"PT1S"}}"#;
    bench.broker.borrow_mut().produce(added, now, Bytes::from(arm));
    bench.broker.borrow_mut().produce(added, now, Bytes::from("no command"));
    bench.ticks(200);
    let broker = bench.broker.borrow();
    assert!(broker.ends.is_empty(), "both failures were met");
    let forwards = broker.sent_to(Destination::Arm);
    assert_eq!(forwards.iter().map(|emission| emission.partition).collect::<Vec<_>>(), [Some(P)]);
    assert_eq!(broker.sent_to(Destination::DeadLetter).len(), 1);
    assert_eq!(broker.committed.get(&added).copied(), Some(Position(2)));
    assert!(!broker.changelog.contains_key(&added), "it has no changelog");
}

#[test]
fn a_partition_that_is_only_forwarded_goes_on_where_records_were_removed() {
    let mut bench = Bench::new();
    for number in 0..5 {
        let now = bench.clock.wall();
        bench.broker.borrow_mut().produce(Q, now, arm("r", &number.to_string(), "PT1S"));
    }
    bench.broker.borrow_mut().committed.insert(Q, Position(1));
    bench.broker.borrow_mut().starts.insert(Q, Position(3));
    bench.events.borrow_mut().push_back(LogEvent::Assigned(vec![P, Q]));
    bench.ticks(200);
    assert_eq!(bench.fired(), ["3", "4"]);
    assert_eq!(bench.broker.borrow().committed.get(&Q), Some(&Position(5)));
}

// R26, D20
#[test]
fn a_partition_that_is_only_forwarded_fires_nothing_again_when_group_and_state_are_lost() {
    let mut bench = Bench::new();
    let now = bench.clock.wall();
    for id in ["a", "b"] {
        bench.broker.borrow_mut().produce(Q, now, arm("r", id, "PT1S"));
    }
    bench.events.borrow_mut().push_back(LogEvent::Assigned(vec![P, Q]));
    bench.ticks(200);
    assert_eq!(bench.fired(), ["a", "b"]);
    for round in 0..2 {
        bench.broker.borrow_mut().committed.clear();
        bench = Bench::with(settings(), &bench.broker, &bench.clock);
        bench.events.borrow_mut().push_back(LogEvent::Assigned(vec![P, Q]));
        bench.ticks(200);
        let forwards = bench.broker.borrow().sent_to(Destination::Arm).len();
        assert_eq!(forwards, 2 + (round + 1) * 2, "forwarded again, since nothing says how far it had come");
        assert_eq!(bench.fired(), ["a", "b"], "and known where it arrives");
    }
    let now = bench.clock.wall();
    bench.broker.borrow_mut().produce(Q, now, arm("r", "c", "PT1S"));
    bench.ticks(200);
    assert_eq!(bench.fired(), ["a", "b", "c"]);
}
