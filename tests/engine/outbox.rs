//! The outbox: read and acknowledged by the application.

use bytes::Bytes;
use punctual::engine::{Budget, Engine};
use punctual::timer::command::{Action, Arm, OnConflict, When};
use punctual::timer::emitted::What;
use punctual::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use punctual::timer::kind::{KindNumber, KindRef};
use punctual::timer::model::{Header, OutboxRecord};
use punctual::timer::outcome::Verdict;
use tempfile::TempDir;

use crate::rig::{at, on_both, options, tick, wish};

fn numbers(engine: &Engine, from: u64, limit: usize) -> Vec<u64> {
    engine.read_outbox(from, limit).unwrap().into_iter().map(|entry| entry.number).collect()
}

fn fire(engine: &Engine, count: usize) {
    for number in 0..count {
        engine.arm(wish("r", &format!("{number}"), 10), at(1)).unwrap();
    }
    let fired = tick(engine, 10, Budget { fired_per_kind_max: 100, ..Budget::default() }).fired;
    assert_eq!(fired, count, "all fire");
}

#[test]
fn entries_come_again_until_they_are_acknowledged() {
    on_both(&options().kind(1, "one").unwrap(), |engine| {
        assert_eq!(numbers(engine, 0, 10), Vec::<u64>::new());
        assert_eq!(engine.acknowledge(7).unwrap(), 0, "there is nothing");
        fire(engine, 5);
        assert_eq!(numbers(engine, 0, 10), [0, 1, 2, 3, 4]);
        assert_eq!(numbers(engine, 0, 2), [0, 1], "no more than asked for");
        assert_eq!(numbers(engine, 2, 2), [2, 3]);
        assert_eq!(numbers(engine, 0, 0), Vec::<u64>::new());
        assert_eq!(engine.acknowledge(1).unwrap(), 2);
        assert_eq!(engine.acknowledge(1).unwrap(), 0);
        assert_eq!(numbers(engine, 0, 10), [2, 3, 4]);
        fire(engine, 1);
        assert_eq!(numbers(engine, 4, 10), [4, 5], "numbers are given once");
        assert_eq!(engine.acknowledge(u64::MAX).unwrap(), 4);
        assert_eq!(numbers(engine, 0, 10), Vec::<u64>::new());
        fire(engine, 1);
        assert_eq!(numbers(engine, 0, 10), [6]);
    });
}

#[test]
fn an_outbox_is_there_after_the_engine_was_opened_again() {
    let directory = TempDir::new().unwrap();
    let open = || Engine::open(directory.path(), options().kind(1, "one").unwrap()).unwrap();
    let engine = open();
    fire(&engine, 3);
    engine.acknowledge(0).unwrap();
    let entries = engine.read_outbox(0, 10).unwrap();
    drop(engine);
    let engine = open();
    assert_eq!(engine.read_outbox(0, 10).unwrap(), entries);
    engine.acknowledge(u64::MAX).unwrap();
    drop(engine);
    let engine = open();
    fire(&engine, 1);
    assert_eq!(numbers(&engine, 0, 10), [3], "numbers are not given again");
}

#[test]
fn keys_headers_and_records_of_a_command_go_out_byte_for_byte() {
    on_both(&options().kind(1, "one").unwrap(), |engine| {
        let run = RunKey { tenant: Tenant::parse("a").unwrap(), run: Run::parse("r").unwrap() };
        let key = TimerKey { run, id: TimerId::parse("t").unwrap() };
        let header =
            |value: Option<&'static [u8]>| Header { key: "h".to_owned(), value: value.map(Bytes::from_static) };
        let record = OutboxRecord { key: None, value: Some(Bytes::new()), headers: vec![header(None)] };
        let arm = Arm {
            key: key.clone(),
            kind: KindRef::Name("one".to_owned()),
            when: When::AfterMillis(9),
            on_conflict: OnConflict::Keep,
            payload: None,
            record_key: Some(Bytes::from_static(b"\xff\0")),
            headers: vec![header(Some(b"\xfe")), header(Some(b""))],
            outbox: vec![record.clone()],
        };
        let verdict = engine.command(Action::Arm(Box::new(arm.clone())), at(1)).unwrap();
        assert!(matches!(verdict, Verdict::Armed { due, .. } if due == at(10)), "{verdict:?}");
        assert_eq!(tick(engine, 10, Budget::default()).fired, 1);
        let entries: Vec<_> =
            engine.read_outbox(0, 10).unwrap().into_iter().map(|entry| entry.emitted.unwrap()).collect();
        let [event, beside] = &entries[..] else { panic!("{entries:?}") };
        let What::Event(sent) = &event.what else { panic!("{event:?}") };
        assert_eq!((&sent.payload, &sent.record_key, &sent.headers), (&None, &arm.record_key, &arm.headers));
        assert_eq!(beside.what, What::Record(record));
        let metadata = (event.kind, event.due, event.armed, event.fired, event.attempt);
        assert_eq!(metadata, (KindNumber::new(1).unwrap(), at(10), at(1), at(10), 1));
        assert_eq!((&event.key, event.generation), (&key, beside.generation));
    });
}

#[test]
fn a_rejected_command_is_an_answer() {
    let engine = Engine::in_memory(options()).unwrap();
    let run = RunKey { tenant: Tenant::parse("").unwrap(), run: Run::parse("r").unwrap() };
    let arm = Arm {
        key: TimerKey { run, id: TimerId::parse("t").unwrap() },
        kind: KindRef::Name("nobody".to_owned()),
        when: When::At(at(5)),
        on_conflict: OnConflict::Keep,
        payload: None,
        record_key: None,
        headers: Vec::new(),
        outbox: Vec::new(),
    };
    let verdict = engine.command(Action::Arm(Box::new(arm)), at(1)).unwrap();
    assert!(matches!(verdict, Verdict::Rejected(_)), "{verdict:?}");
}
