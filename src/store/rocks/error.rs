//! What RocksDB and the file system report, by what the caller does next.
//!
//! Owns the mapping to [`StoreError`]. RocksDB tells causes in its texts alone, so the words that decide stand here, and
//! `mod_test.rs` meets each of them. Keeps: what is not known to be damage is never called so, for that discards the store.

use std::io;
use std::path::Path;

use rocksdb::{Error, ErrorKind};

use super::StoreError;

const NO_SPACE: [&str; 2] = ["No space left on device", "Disk quota exceeded"];
const LOCKED: [&str; 2] = ["lock hold by current process", "While lock file"];
const MISSING_FILE: &str = "No such file or directory";

/// Returns the failure of an operation on an open store.
pub(super) fn from_rocksdb(path: &Path, doing: &'static str, error: Error) -> StoreError {
    let kind = error.kind();
    let detail = error.into_string();
    let path = path.to_owned();
    let says = |words: &[&str]| words.iter().any(|word| detail.contains(word));
    // A file that cannot be written whole may be reported as damaged: the lack of room comes first.
    if says(&NO_SPACE) {
        return StoreError::Full { path, detail };
    }
    if says(&LOCKED) {
        return StoreError::Locked { path };
    }
    let is_file_lost = kind == ErrorKind::IOError && says(&[MISSING_FILE]);
    if kind == ErrorKind::Corruption || is_file_lost {
        return StoreError::Corrupt { path, detail };
    }
    StoreError::Io { path, doing, detail }
}

/// Returns the failure to open a store. Families that this release does not know are damage to it: it cannot keep them.
pub(super) fn from_opening(path: &Path, error: Error) -> StoreError {
    if error.kind() == ErrorKind::InvalidArgument {
        return StoreError::Corrupt { path: path.to_owned(), detail: error.into_string() };
    }
    from_rocksdb(path, "opening", error)
}

/// Returns the failure of an operation on the directory.
pub(super) fn from_io(path: &Path, doing: &'static str, error: &io::Error) -> StoreError {
    let (path, detail) = (path.to_owned(), error.to_string());
    if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        return StoreError::Full { path, detail };
    }
    StoreError::Io { path, doing, detail }
}
