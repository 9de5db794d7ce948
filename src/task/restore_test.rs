//! Tests of a restore by hand: records in, the header and the end of the restore out.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::{InputAtJoin, RestoreStart, Restored};
use crate::log::{ChangelogBatch, ChangelogRecord, Extent, FencingPosition};
use crate::position::{Offset, Partition, Position};
use crate::store::memory::MemoryStore;
use crate::store::{Batch, Store};
use crate::task::Task;
use crate::time::Timestamp;
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{Ending, Generation, Remembered, Timer};
use crate::timer::view::Lookup;
use crate::wire::key::StateKey;
use crate::wire::remembered::encode_remembered;
use crate::wire::state::{Meta, encode_timer};

const P: Partition = Partition(0);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_796_083_200_000 + seconds * 1_000)
}

/// Returns a task whose store was level at `level_at`, if it was ever, and that restores 10 offsets from `now` on.
fn restoring(level_at: Option<Timestamp>, now: Timestamp) -> Task<MemoryStore> {
    let mut store = MemoryStore::default();
    let mut batch = Batch::default();
    batch.header.level_at = level_at;
    store.write(batch).unwrap();
    let mut task = Task::new(P, store, Position(0)).unwrap();
    let fencing = FencingPosition { position: Position(0), committed: true };
    let extent = Extent { start: Position(0), end: Position(100) };
    let input = InputAtJoin { fencing, extent };
    let start = RestoreStart { nonce: 7, until: Position(10), from: Position(0), input };
    task.begin_restore(start, now, Duration::ZERO);
    task
}

fn meta(offset: i64, value: Option<Bytes>) -> ChangelogRecord {
    ChangelogRecord { offset: Offset(offset), key: StateKey::Meta.encode(), value }
}

fn batch(records: Vec<ChangelogRecord>, position: i64) -> ChangelogBatch {
    ChangelogBatch { partition: P, records, position: Position(position) }
}

#[test]
fn an_unfinished_restore_makes_no_store_younger() {
    for (before, after) in [(None, at(100)), (Some(at(0)), at(0))] {
        let mut task = restoring(before, at(100));
        task.restore(&batch(Vec::new(), 5), Duration::ZERO).unwrap();
        assert_eq!(task.overlay().store().header().level_at, Some(after), "tombstones behind it are as old as before");
        task.restore(&batch(Vec::new(), 10), Duration::ZERO).unwrap();
        let level_at = task.overlay().store().header().level_at;
        assert_eq!(level_at, Some(at(100)), "who wrote since the barrier is not known, however long the reading took");
    }
}

#[test]
fn commands_are_not_read_again_from_the_start_when_the_position_cannot_be_read() {
    let good = Meta { input_position: Position(50), next_generation: Generation(9), forwarders: BTreeMap::new() };
    let good = good.encode();
    let ends = |values: Vec<Option<Bytes>>| {
        let records = values.into_iter().enumerate().map(|(offset, value)| meta(i64::try_from(offset).unwrap(), value));
        let mut task = restoring(None, at(0));
        task.restore(&batch(records.collect(), 10), Duration::ZERO).unwrap()
    };
    // Reader version 99 and nothing else.
    let too_new = Bytes::from_static(&[0x08, 99]);
    assert!(matches!(ends(vec![Some(too_new.clone())]), Restored::Contradiction(_)), "alone");
    assert!(matches!(ends(vec![Some(good.clone()), Some(too_new.clone())]), Restored::Contradiction(_)), "last");
    assert!(matches!(ends(vec![Some(good.clone()), None]), Restored::Contradiction(_)), "removed");
    let found = Restored::From { position: Position(50), lost: 0 };
    assert_eq!(ends(vec![Some(too_new), Some(good)]), found, "a later one can be read");
    assert_eq!(ends(vec![]), Restored::From { position: Position(0), lost: 0 }, "there never was one");
}

#[test]
fn two_timers_at_one_place_are_one_and_a_record_that_cannot_be() {
    // Somebody else wrote it: in a partition no generation is given twice.
    let timer = |id: &str| {
        let run = RunKey { tenant: Tenant::parse("").unwrap(), run: Run::parse("r").unwrap() };
        Timer {
            key: TimerKey { run, id: TimerId::parse(id).unwrap() },
            kind: KindNumber::new(1).unwrap(),
            due: at(500),
            wake: at(500),
            generation: Generation::MAX,
            attempt: 0,
            armed: at(0),
            payload: None,
            record_key: None,
            headers: Vec::new(),
            outbox: Vec::new(),
            recurring: None,
            resolved_with: None,
            paused: None,
            claim: None,
        }
    };
    let record = |offset: i64, id: &str| {
        let key = StateKey::Timer(timer(id).key).encode();
        ChangelogRecord { offset: Offset(offset), key, value: Some(encode_timer(&timer(id))) }
    };
    let mut task = restoring(None, at(0));
    let records = vec![record(0, "a"), record(1, "b"), record(2, "a")];
    task.restore(&batch(records, 10), Duration::ZERO).unwrap();
    let header = task.overlay().store().header();
    assert_eq!((header.undecodable, header.pending.values().sum::<u64>()), (1, 1));
}

/// The end that was stored is the end: a restore computes nothing. T7: what a newer release wrote is counted, and waits for it.
#[test]
fn remembered_ids_come_back_with_their_ends() {
    let run = RunKey { tenant: Tenant::parse("").unwrap(), run: Run::parse("r").unwrap() };
    let key = |id: &str| TimerKey { run: run.clone(), id: TimerId::parse(id).unwrap() };
    let known = |until| Remembered { ending: Ending::Fired(Generation(3)), ended: at(5), until: at(until) };
    let record = |offset: i64, id: &str, value| {
        let key = StateKey::Remembered(key(id)).encode();
        ChangelogRecord { offset: Offset(offset), key, value }
    };
    let mut task = restoring(None, at(1_000));
    let records = vec![
        record(0, "lapsed", Some(encode_remembered(&known(10)))),
        record(1, "kept", Some(encode_remembered(&known(600)))),
        record(2, "kept", Some(encode_remembered(&known(9_000)))),
        record(3, "forgotten", Some(encode_remembered(&known(9_000)))),
        record(4, "forgotten", None),
        record(5, "newer", Some(encode_remembered(&known(9_000)))),
        record(6, "newer", Some(Bytes::from_static(&[0x08, 99]))),
        record(7, "unknown", None),
    ];
    task.restore(&batch(records, 10), Duration::ZERO).unwrap();
    let overlay = task.overlay();
    let found = ["lapsed", "kept", "forgotten", "newer", "unknown"].map(|id| overlay.remembered(&key(id)).unwrap());
    assert_eq!(found, [Some(known(10)), Some(known(9_000)), None, None, None]);
    assert_eq!((overlay.store().header().remembered, overlay.store().header().undecodable), (2, 1));
    assert_eq!(overlay.next_end(), Some(at(10)), "what has lapsed meanwhile is forgotten when the task runs");
}
