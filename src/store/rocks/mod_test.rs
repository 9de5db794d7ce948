//! The store on disk: what survives, what is refused and why, and what a scan costs.

use bytes::Bytes;
use proptest::prelude::*;
use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};
use tempfile::TempDir;

use super::*;
use crate::position::Position;
use crate::store::model_check::{check_steps, kind, millis, put, remove, timer};
use crate::store::model_steps::steps;
use crate::store::overlay::Overlay;
use crate::store::{Batch, Store};
use crate::time::Timestamp;
use crate::timer::model::{DueKey, Timer};
use crate::timer::outcome::Mutation;
use crate::timer::view::{DueRow, View};

fn resources() -> Resources {
    Resources::new(512 << 20)
}

fn open(path: &Path) -> RocksStore {
    RocksStore::open(path, &resources()).unwrap()
}

/// Writes timers as one batch that ends at a position.
fn write(store: RocksStore, timers: &[Timer], position: i64) -> RocksStore {
    let mut overlay = Overlay::new(store).unwrap();
    for timer in timers {
        overlay.fold(put(timer, None));
    }
    let mut batch = overlay.batch();
    batch.header.changelog_position = Some(Position(position));
    overlay.commit(batch).unwrap();
    overlay.into_store()
}

fn due(store: &RocksStore) -> Vec<DueRow> {
    store.due(kind(1), DueKey::MIN, Timestamp::MAX, 100).unwrap()
}

fn rows(timers: &[Timer]) -> Vec<DueRow> {
    timers.iter().map(|timer| DueRow::Timer(Box::new(timer.clone()))).collect()
}

/// Copies the files of a store as a kill would leave them.
fn copy_of(path: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

fn files(path: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|file| file.extension().is_some_and(|it| it == extension)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn what_is_read_is_what_was_folded(steps in steps()) {
        let directory = tempfile::tempdir().unwrap();
        check_steps(open(directory.path()), &steps);
    }
}

#[test]
fn a_store_that_is_closed_and_opened_is_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let timers = [timer("a", 1, 1), timer("b", 2, 2)];
    let store = write(open(directory.path()), &timers, 7);
    let header = store.header().clone();
    drop(store);
    let store = open(directory.path());
    assert_eq!(due(&store), rows(&timers));
    assert_eq!(store.header(), &header);
    assert_eq!(store.pending_of(&timers[0].key.run.tenant).unwrap(), 2);
}

/// R3.
#[test]
fn a_kill_leaves_an_older_state_that_is_whole_with_its_own_header() {
    let directory = tempfile::tempdir().unwrap();
    let timers = [timer("a", 1, 1), timer("b", 2, 2)];
    let mut store = write(open(directory.path()), &timers[..1], 1);
    store.flush().unwrap();
    let mut store = write(store, &timers[1..], 2);
    let killed = copy_of(directory.path());
    let older = open(killed.path());
    assert_eq!(due(&older), rows(&timers[..1]));
    assert_eq!(older.header().changelog_position, Some(Position(1)));
    assert_eq!(older.header().pending, [(kind(1), 1)].into());
    store.flush().unwrap();
    let killed = copy_of(directory.path());
    let newer = open(killed.path());
    assert_eq!(due(&newer), rows(&timers));
    assert_eq!(newer.header(), store.header());
}

/// R20.
#[test]
fn a_second_owner_is_refused_and_cannot_remove_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = write(open(directory.path()), &[timer("a", 1, 1)], 1);
    let refusal = RocksStore::open(directory.path(), &resources()).unwrap_err();
    assert!(matches!(refusal, StoreError::Locked { .. }), "{refusal}");
    let refusal = RocksStore::destroy(directory.path()).unwrap_err();
    assert!(matches!(refusal, StoreError::Locked { .. }), "{refusal}");
    assert_eq!(due(&store).len(), 1, "nothing was removed");
}

/// R7.
#[test]
fn damaged_files_are_called_corrupt_and_can_be_discarded() {
    type Inflict = fn(&Path);
    let damages: [(&str, Inflict); 5] = [
        ("CURRENT is missing", |path| fs::remove_file(path.join("CURRENT")).unwrap()),
        ("CURRENT is empty", |path| fs::write(path.join("CURRENT"), "").unwrap()),
        ("an SST is missing", |path| fs::remove_file(&files(path, "sst")[0]).unwrap()),
        ("an SST is cut", |path| {
            for sst in files(path, "sst") {
                fs::OpenOptions::new().write(true).open(sst).unwrap().set_len(100).unwrap();
            }
        }),
        ("a manifest is damaged", |path| {
            let current = fs::read_to_string(path.join("CURRENT")).unwrap();
            fs::write(path.join(current.trim()), "damaged").unwrap();
        }),
    ];
    for (damage, inflict) in damages {
        let directory = tempfile::tempdir().unwrap();
        drop(write(open(directory.path()), &[timer("a", 1, 1)], 1));
        inflict(directory.path());
        let refusal = RocksStore::open(directory.path(), &resources()).unwrap_err();
        assert!(matches!(refusal, StoreError::Corrupt { .. }), "{damage}: {refusal:?}");
        RocksStore::destroy(directory.path()).unwrap();
        let empty = open(directory.path());
        assert_eq!(empty.header(), &StoreHeader::default(), "{damage}");
        assert_eq!(due(&empty), [], "{damage}");
    }
}

#[test]
fn damage_that_is_met_while_reading_is_called_corrupt() {
    let directory = tempfile::tempdir().unwrap();
    drop(write(open(directory.path()), &[timer("a", 1, 1)], 1));
    for sst in files(directory.path(), "sst") {
        let mut bytes = fs::read(&sst).unwrap();
        bytes[..16].fill(0xAA);
        fs::write(&sst, bytes).unwrap();
    }
    let read = RocksStore::open(directory.path(), &resources()).and_then(|store| {
        let due = store.due(kind(1), DueKey::MIN, Timestamp::MAX, 1)?;
        Ok(due.len())
    });
    assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
}

#[test]
fn another_format_is_refused_and_a_headerless_store_is_corrupt() {
    let directory = tempfile::tempdir().unwrap();
    let store = write(open(directory.path()), &[timer("a", 1, 1)], 1);
    store.db.put_cf(store.family(Family::Meta), key::HEADER, br#"{"format":99,"new":true}"#).unwrap();
    drop(store);
    let refusal = RocksStore::open(directory.path(), &resources()).unwrap_err();
    assert!(matches!(refusal, StoreError::UnsupportedFormat { found: 99, supported: 4, .. }), "{refusal}");
    RocksStore::destroy(directory.path()).unwrap();
    let store = write(open(directory.path()), &[timer("a", 1, 1)], 1);
    store.db.delete_cf(store.family(Family::Meta), key::HEADER).unwrap();
    drop(store);
    let refusal = RocksStore::open(directory.path(), &resources()).unwrap_err();
    assert!(matches!(refusal, StoreError::Corrupt { .. }), "{refusal}");
}

#[test]
fn reading_beside_the_owner_sees_what_was_flushed_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    assert!(RocksStore::open_read_only(&missing).is_err(), "there is no store");
    assert!(!missing.exists(), "and none is made");
    let timers = [timer("a", 1, 1), timer("b", 2, 2)];
    let mut store = write(open(directory.path()), &timers[..1], 1);
    store.flush().unwrap();
    let store = write(store, &timers[1..], 2);
    let listing = |path: &Path| {
        let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> = files
            .map(|file| {
                let data = file.metadata().unwrap();
                (file.file_name(), data.len(), data.modified().unwrap())
            })
            .collect();
        files.sort();
        files
    };
    let before = listing(directory.path());
    let mut reader = RocksStore::open_read_only(directory.path()).unwrap();
    assert_eq!(due(&reader), rows(&timers[..1]));
    assert_eq!(reader.header().changelog_position, Some(Position(1)));
    let refusal = reader.write(Batch::default()).unwrap_err();
    assert!(matches!(refusal, StoreError::Io { .. }), "{refusal}");
    drop(reader);
    assert_eq!(listing(directory.path()), before);
    assert_eq!(due(&store), rows(&timers), "the owner goes on");
}

/// N11.
#[test]
fn a_row_that_cannot_be_read_blocks_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let timers = [timer("damaged", 1, 1), timer("b", 2, 2)];
    let mut overlay = Overlay::new(open(directory.path())).unwrap();
    for timer in &timers {
        overlay.fold(put(timer, None));
    }
    let mut batch = overlay.batch();
    let damaged = batch.timers.iter_mut().find(|change| change.key == timers[0].key).unwrap();
    damaged.after.as_mut().unwrap().1 = Bytes::from_static(b"\xff");
    overlay.commit(batch).unwrap();
    let page = overlay.due(kind(1), None, millis(5), 10).unwrap();
    assert!(matches!(page[0], DueRow::Undecodable { at, .. } if at == timers[0].due_key()), "{page:?}");
    assert_eq!(page[1..], rows(&timers[1..]));
}

/// R9, by count instead of time.
#[test]
fn a_scan_from_the_cursor_meets_no_tombstones() {
    const FIRED: u64 = 100_000;
    let directory = tempfile::tempdir().unwrap();
    let fired: Vec<Timer> = (1..=FIRED).map(|n| timer(&format!("t{n}"), 1, n)).collect();
    let pending = timer("pending", 1000, FIRED + 1);
    let store = write(open(directory.path()), &fired, 1);
    let mut overlay = Overlay::new(write(store, &[pending], 2)).unwrap();
    for timer in &fired {
        overlay.fold(remove(timer));
    }
    overlay.fold(Mutation::Advance { kind: kind(1), to: fired.last().unwrap().due_key().next() });
    let batch = overlay.batch();
    overlay.commit(batch).unwrap();

    let met = |scan: &dyn Fn()| {
        set_perf_stats(PerfStatsLevel::EnableCount);
        let mut context = PerfContext::default();
        context.reset();
        scan();
        context.metric(PerfMetric::InternalDeleteSkippedCount)
    };
    let assert_no_tombstones = |overlay: &Overlay<RocksStore>, place: &str| {
        let next = || assert_eq!(overlay.next_wake(kind(1)).unwrap(), Some(millis(1000)));
        assert_eq!(met(&next), 0, "{place}: the next wake is the first row behind the cursor");
        let due = || assert_eq!(overlay.due(kind(1), None, millis(999), 100).unwrap(), []);
        assert_eq!(met(&due), 0, "{place}: nothing is due");
    };
    assert_no_tombstones(&overlay, "in memory");
    let from_the_start = || assert_eq!(due(overlay.store()).len(), 1);
    assert_eq!(met(&from_the_start), FIRED, "the tombstones are there");
    overlay.store_mut().flush().unwrap();
    assert_no_tombstones(&overlay, "on disk");
    drop(overlay);
    let reopened = Overlay::new(open(directory.path())).unwrap();
    assert_no_tombstones(&reopened, "after a restart");
}

#[test]
fn memory_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let shared = resources();
    let store = RocksStore::open(directory.path(), &shared).unwrap();
    let store = write(store, &[timer("a", 1, 1)], 1);
    assert!(store.memory_usage().unwrap().memtables > 0, "a row is in memory");
    assert!(shared.memtable_bytes() > 0, "and counts against the budget");
    assert!(shared.memtable_bytes() < 1 << 20, "a small store takes little of it");
}
