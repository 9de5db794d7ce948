//! The program of `examples/outbox_delivery.rs`: what is delivered in which order, and how long it rests after a failure.

use std::time::Duration;

use proptest::prelude::*;
use punctual::engine::{Arm, Budget, Engine, Entry, Options, Tick};
use punctual::time::Timestamp;
use punctual::timer::emitted::What;

use crate::rig::at;

#[expect(dead_code, unreachable_pub, reason = "its main is a program of its own")]
#[path = "../../examples/outbox_delivery.rs"]
mod program;

use program::{Answer, Courier, pause};

const FAILED: Answer = Answer::Failed { retry_after: None };

/// An engine in which `count` timers have fired.
fn fired(count: usize) -> Engine {
    let engine = Engine::in_memory(Options::new().kind(1, "outcome").unwrap()).unwrap();
    for number in 0..count {
        let (timer_id, payload) = (number.to_string(), Some(number.to_string().into()));
        let arm = Arm { run: "r".to_owned(), timer_id, kind: 1, due: at(10), payload, ..Arm::default() };
        engine.arm(arm, at(1)).unwrap();
    }
    let budget = Budget { fired_max: count, fired_per_kind_max: count, ..Budget::default() };
    let report = engine.fire_due(at(10), &mut Tick::new(budget), &|| Duration::ZERO).unwrap();
    assert_eq!(report.fired, count, "all are in the outbox");
    engine
}

fn payload(entry: &Entry) -> String {
    let What::Event(event) = &entry.emitted.as_ref().unwrap().what else { panic!("no event: {entry:?}") };
    String::from_utf8(event.payload.as_ref().unwrap().to_vec()).unwrap()
}

#[test]
fn the_first_failure_stops_the_queue_and_is_tried_again_first() {
    let engine = fired(250);
    let (mut courier, mut said) = (Courier::default(), Vec::new());
    let mut round = |courier: &mut Courier, now: Timestamp, failing: Option<&str>| {
        let mut deliver = |entry: &Entry| {
            let text = payload(entry);
            let is_failing = failing == Some(text.as_str());
            said.push(text);
            if is_failing { FAILED } else { Answer::Delivered }
        };
        courier.round(&engine, now, &mut deliver).unwrap()
    };
    let first = round(&mut courier, at(1_000), Some("120")).unwrap();
    assert_eq!(round(&mut courier, at(1_001), None), Some(first), "it rests, and asks nobody");
    let second = round(&mut courier, first, Some("120")).unwrap();
    assert!(second.since(first) > first.since(at(1_000)), "the pause grows");
    assert_eq!(round(&mut courier, second, None), None);
    let order: Vec<String> = [0..121, 120..121, 120..250].into_iter().flatten().map(|n: u32| n.to_string()).collect();
    assert_eq!(said, order, "no entry is skipped, none comes again that was delivered");
}

#[test]
fn pauses_double_up_to_a_quarter_of_an_hour() {
    let whole = |failures: u32| pause(7, failures, None).as_secs_f64();
    for (failures, seconds) in [(0, 1.0), (1, 2.0), (5, 32.0), (9, 512.0), (10, 900.0), (20, 900.0), (u32::MAX, 900.0)]
    {
        assert!((seconds * 0.8..=seconds).contains(&whole(failures)), "after {failures}: {}", whole(failures));
    }
}

proptest! {
    #[test]
    fn a_pause_is_its_formula(entry: u64, failures: u32, asked in proptest::option::of(0_u64..2_000)) {
        let asked = asked.map(Duration::from_secs);
        let whole = Duration::from_secs(1 << failures.min(20)).min(Duration::from_mins(15));
        let plain = pause(entry, failures, None);
        prop_assert!(plain <= whole && plain >= whole.mul_f64(0.799), "{plain:?} of {whole:?}");
        prop_assert_eq!(pause(entry, failures, None), plain, "the same failure has the same pause");
        let hinted = pause(entry, failures, asked);
        prop_assert_eq!(hinted, plain.max(asked.unwrap_or_default()).min(Duration::from_mins(15)));
    }
}
