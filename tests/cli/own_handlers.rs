//! The program of `examples/own_handlers.rs`: what its handlers decide, and how it starts.

use std::fs;

use bytes::Bytes;
use punctual::time::Timestamp;
use punctual::timer::handler::{Attempt, Done, FireContext, Fired, TimerCommand};
use punctual::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use punctual::timer::kind::KindNumber;
use punctual::timer::model::{Generation, OutboxRecord, Timer};

#[expect(dead_code, unreachable_pub, reason = "its main is a program of its own")]
#[path = "../../examples/own_handlers.rs"]
mod program;

const NOW: Timestamp = Timestamp::from_millis(1_796_083_200_000);

fn timer(kind: u32, payload: &'static [u8]) -> Timer {
    let run = RunKey { tenant: Tenant::parse("").expect("valid"), run: Run::parse("order").expect("valid") };
    Timer {
        key: TimerKey { run, id: TimerId::parse("a").expect("valid") },
        kind: KindNumber::new(kind).expect("valid"),
        due: NOW,
        wake: NOW,
        generation: Generation(1),
        attempt: 0,
        armed: NOW,
        payload: Some(Bytes::from_static(payload)),
        record_key: None,
        headers: Vec::new(),
        outbox: Vec::new(),
        claim: None,
        recurring: None,
        resolved_with: None,
        paused: None,
    }
}

fn fired(timer: &Timer) -> Fired {
    let handlers = program::handlers().expect("valid");
    match handlers.attempt(&FireContext { now: NOW, attempt: 1 }, timer) {
        Attempt::Decided(fired) => fired,
        Attempt::AsArmed => panic!("kind {} has a handler", timer.kind),
        Attempt::Failed(detail) => panic!("{detail}"),
    }
}

#[test]
fn its_handlers_escalate_and_cancel() {
    let notice = OutboxRecord { key: None, value: Some(Bytes::from_static(b"\x02")), headers: Vec::new() };
    let next = Fired::Reschedule {
        due: NOW.checked_add_millis(3_600_000).expect("valid"),
        payload: Some(Bytes::from_static(b"\x03")),
        outbox: vec![notice],
    };
    assert_eq!(fired(&timer(1, b"\x02")), next);
    let last = timer(1, b"\x03");
    assert_eq!(fired(&last), Fired::Done(Done::publish(&last)));
    let Fired::Done(done) = fired(&timer(2, b"")) else { panic!("a time-out is done") };
    assert!(matches!(&done.commands[..], [TimerCommand::Disarm { key, .. }] if key.id.as_str() == "reminder"));
}

#[test]
fn a_handler_without_its_kind_stops_the_start() {
    let directory = tempfile::tempdir().expect("valid");
    let file = directory.path().join("punctual.yaml");
    fs::write(&file, "instance: a\nkinds:\n- {number: 1, name: escalation}\n").expect("valid");
    assert_eq!(
        program::serve(&file).unwrap_err().to_string(),
        "a handler is for kind number 2, and no kind has it; declare it under `kinds`, or remove the handler"
    );
}
