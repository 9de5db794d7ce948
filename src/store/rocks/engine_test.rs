//! The store of an embedded engine: its own row, and what is refused.

use bytes::Bytes;
use expect_test::expect;

use super::*;

fn resources() -> Resources {
    Resources::new(16 << 20)
}

fn refusal(path: &Path) -> StoreError {
    RocksStore::open_engine(path, &resources()).unwrap_err()
}

/// Writes a row past the store.
fn put(path: &Path, key: &[u8], value: &[u8]) {
    let store = RocksStore::open_engine(path, &resources()).unwrap();
    store.db.put_cf(store.family(Family::Meta), key, value).unwrap();
}

#[test]
fn the_row_is_the_one_of_format_1() {
    let bounds = OutboxBounds { first: 3, next: u64::MAX };
    let row = String::from_utf8(encode(bounds)).unwrap();
    expect![[r#"{"format":1,"outbox_first":3,"outbox_next":18446744073709551615}"#]].assert_eq(&row);
    assert_eq!(decode(Path::new("dir"), row.as_bytes()).unwrap(), bounds);
    let refusal = |row: &str| decode(Path::new("dir"), row.as_bytes()).unwrap_err().to_string();
    expect!["state directory dir has format 2, this release reads 1"].assert_eq(&refusal(r#"{"format":2}"#));
    expect!["state directory dir is corrupt: engine: missing field `format` at line 1 column 2"]
        .assert_eq(&refusal("{}"));
    expect!["state directory dir is corrupt: engine: the outbox ends at 1 and begins at 2"]
        .assert_eq(&refusal(r#"{"format":1,"outbox_first":2,"outbox_next":1}"#));
}

#[test]
fn another_format_of_an_engine_is_refused_by_its_number() {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), &key::ENGINE, br#"{"format":7,"new":0}"#);
    let error = refusal(directory.path());
    assert!(matches!(error, StoreError::UnsupportedFormat { found: 7, supported: 1, .. }), "{error}");
}

#[test]
fn a_directory_is_an_engines_from_its_creation_on() {
    let directory = tempfile::tempdir().unwrap();
    drop(RocksStore::open_engine(directory.path(), &resources()).unwrap());
    let store = RocksStore::open_engine(directory.path(), &resources()).unwrap();
    assert_eq!(store.bounds(), OutboxBounds::default());
    assert_eq!(store.durability, Durability::Synced);
    drop(store);
    put(directory.path(), &key::HEADER, b"{");
    assert!(matches!(refusal(directory.path()), StoreError::Corrupt { .. }), "a damaged header");
}

#[test]
fn entries_are_those_between_the_bounds() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = RocksStore::open_engine(directory.path(), &resources()).unwrap();
    let entry = |number: u64| (number, Bytes::from(format!("{number}")));
    let mut write = |first, added: std::ops::Range<u64>| {
        let bounds = OutboxBounds { first, next: added.end };
        let change = OutboxChange { bounds, added: added.map(entry).collect() };
        store.write(Batch { outbox: Some(change), ..Batch::default() }).unwrap();
        store.entries(0, 100).unwrap()
    };
    assert_eq!(write(0, 0..300), (0..300).map(entry).collect::<Vec<_>>()[..100]);
    assert_eq!(write(256, 300..301), (256..301).map(entry).collect::<Vec<_>>(), "the order is that of the numbers");
    assert_eq!(write(301, 301..301), []);
    assert_eq!(store.bounds(), OutboxBounds { first: 301, next: 301 });
    assert_eq!(store.header().pending.len(), 0);
}
