//! State directories from outside: of an owner that runs, of one that was killed, damaged, and none at all.

use bytes::Bytes;
use expect_test::expect;
use tempfile::TempDir;

use super::*;
use crate::position::Position;
use crate::store::rocks::Resources;
use crate::store::{Batch, TimerChange};
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::model::{Generation, Timer};
use crate::wire::state::encode_timer;

/// The generation of the timer that is paused.
const PAUSED: u64 = 5;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

/// Changes a timer of kind 1 that is due at `due_ms`; without a body its row cannot be decoded.
fn change(generation: u64, due_ms: i64, is_decodable: bool) -> TimerChange {
    let is_paused = generation == PAUSED;
    let run = RunKey { tenant: Tenant::parse("acme").unwrap(), run: Run::parse("order-42").unwrap() };
    let timer = Timer {
        key: TimerKey { run, id: TimerId::parse(&format!("t{generation}")).unwrap() },
        kind: KindNumber::new(1).unwrap(),
        due: Timestamp::from_millis(due_ms),
        wake: Timestamp::from_millis(due_ms),
        generation: Generation(generation),
        attempt: 0,
        armed: Timestamp::EPOCH,
        payload: None,
        record_key: None,
        headers: Vec::new(),
        outbox: Vec::new(),
        recurring: None,
        resolved_with: None,
        paused: is_paused.then_some(Timestamp::EPOCH),
        claim: None,
    };
    let body = if is_decodable { encode_timer(&timer) } else { Bytes::from_static(b"\xff\xff") };
    TimerChange { key: timer.key.clone(), before: None, after: Some((timer.located(), body)) }
}

/// A state directory with one partition: a timer that is overdue, one that cannot be decoded, one to come, one that is paused.
fn owner() -> (TempDir, RocksStore) {
    let directory = tempfile::tempdir().unwrap();
    let mut store = RocksStore::open(&directory.path().join("3"), &Resources::new(64 << 20)).unwrap();
    let timers = vec![
        change(1, 999_000, true),
        change(2, 999_500, false),
        change(3, 1_060_000, true),
        change(PAUSED, 999_000, true),
    ];
    let header = StoreHeader {
        changelog_position: Some(Position(30)),
        input_position: Some(Position(20)),
        next_generation: Generation(6),
        pending: [(KindNumber::new(1).unwrap(), 4)].into(),
        paused: [(KindNumber::new(1).unwrap(), 1)].into(),
        level_at: Some(NOW),
        ..StoreHeader::default()
    };
    store.write(Batch { timers, header, ..Batch::default() }).unwrap();
    store.flush().unwrap();
    (directory, store)
}

fn inspect_directory(path: &Path, rows: usize, format: Format) -> (Result<(), Failure>, String) {
    let mut sink = Vec::new();
    let args = InspectArgs { directory: path.to_owned(), rows, output: format };
    let result = run(&args, NOW, &mut Output::new(format, &mut sink, false));
    (result, String::from_utf8(sink).unwrap())
}

#[test]
fn a_running_owner_is_looked_at_without_a_lock() {
    let (directory, _store) = owner();
    let (result, shown) = inspect_directory(directory.path(), 100, Format::Table);
    assert_eq!(result, Ok(()));
    expect![[r#"
        STATE/3
          input position      20
          changelog position  30
          next generation     6
          remembered ids      0
          level with log at   1970-01-01T00:16:40.000Z
          KIND  PENDING  PAUSED  OVERDUE  NEXT                      UNDECODABLE  CURSOR
          1     4        1       2        1970-01-01T00:16:39.000Z  1            none
    "#]]
    .assert_eq(&shown.replace(&directory.path().display().to_string(), "STATE"));
}

#[test]
fn counts_stop_at_the_bound_and_say_so() {
    let (directory, store) = owner();
    drop(store);
    let (result, shown) = inspect_directory(&directory.path().join("3"), 1, Format::Json);
    assert_eq!(result, Ok(()));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let kind = &shown["kinds"][0];
    assert_eq!(kind["overdue"], 1);
    assert_eq!(kind["overdue_is_complete"], false);
    assert_eq!((&kind["pending"], &kind["paused"]), (&4.into(), &1.into()));
}

#[test]
fn one_damaged_store_does_not_hide_the_others() {
    let (directory, _store) = owner();
    let damaged = directory.path().join("1");
    std::fs::create_dir(&damaged).unwrap();
    std::fs::write(damaged.join(STORE_MARK), "MANIFEST-000999\n").unwrap();
    let (result, shown) = inspect_directory(directory.path(), 100, Format::Json);
    assert!(shown.contains("\"changelog_position\":30"), "{shown}");
    assert!(result.is_err(), "the damage is told");
}

#[test]
fn a_directory_without_stores_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    assert!(inspect_directory(directory.path(), 1, Format::Table).0.is_err(), "empty");
    assert!(inspect_directory(&directory.path().join("none"), 1, Format::Table).0.is_err(), "missing");
}
