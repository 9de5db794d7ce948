//! The store on disk: one RocksDB for each partition.
//!
//! Owns opening, flushing and removing a state directory; the only user of the crate `rocksdb`. The write-ahead log is off:
//! the changelog is the log. Only the store of an embedded engine, which has none, writes and syncs its own with each batch.
//! Never reads a position of its own: it keeps the ones it is given.
//!
//! Keeps: all families are flushed together (`atomic_flush`), so after a kill the files hold an older state that is whole,
//! with the header of its own last batch (R3); a batch and its header are one write (INV-STORE-1).

mod engine;
mod error;
mod header;
mod options;
mod read;
pub mod stores;
mod write;

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use rocksdb::{ColumnFamily, ColumnFamilyDescriptor, DB, FlushOptions, IteratorMode, Options};

pub use options::Resources;

use self::error::{from_io, from_opening, from_rocksdb};
use self::options::{FAMILIES, Family};
use super::outbox::OutboxBounds;
use super::{StoreError, StoreHeader, key};

/// How often a read-only opening is tried while the owner of the directory replaces files.
const READ_ONLY_ATTEMPTS_MAX: usize = 5;

/// A partition's committed state, on disk.
#[derive(Debug)]
pub struct RocksStore {
    db: DB,
    path: PathBuf,
    /// The header of the last batch.
    header: StoreHeader,
    durability: Durability,
    outbox_bounds: OutboxBounds,
}

/// What makes a batch durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    /// The changelog: a store that has lost its last batches reads them there.
    Changelog,
    /// The write-ahead log, synced before a write returns.
    Synced,
}

/// How much memory a store holds, beside the shared cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Rows that are not flushed yet, in bytes.
    pub memtables: u64,
    /// Index and filter blocks of open files, in bytes.
    pub table_readers: u64,
}

impl RocksStore {
    /// Opens the store in a directory, or creates it.
    ///
    /// # Errors
    /// When the directory is locked, damaged, of another format or cannot be written. A damaged one and one of another
    /// format are for the caller to [`destroy`](Self::destroy).
    pub fn open(path: &Path, resources: &Resources) -> Result<Self, StoreError> {
        prepare(path)?;
        let families = FAMILIES.map(|f| ColumnFamilyDescriptor::new(f.name(), options::of_family(f, resources)));
        let db = DB::open_cf_descriptors(&options::of_db(resources), path, families)
            .map_err(|error| from_opening(path, error))?;
        options::flush_when_scans_meet_tombstones(&db).map_err(|error| from_rocksdb(path, "setting options", error))?;
        Self::with_header(db, path)
    }

    /// Opens the flushed state of a directory for reading, beside a running owner or after its end. Changes no file.
    ///
    /// # Errors
    /// When the directory has no store, or one that is damaged or of another format.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        // RocksDB would create a missing directory.
        fs::metadata(path.join("CURRENT")).map_err(|error| from_io(path, "looking for a store", &error))?;
        let open = || {
            let families = FAMILIES.map(|family| ColumnFamilyDescriptor::new(family.name(), Options::default()));
            DB::open_cf_descriptors_read_only(&Options::default(), path, families, false)
                .map_err(|error| from_opening(path, error))
        };
        let mut opened = open();
        // The owner may replace the files between the reading of their names and their opening.
        for _ in 1..READ_ONLY_ATTEMPTS_MAX {
            if opened.is_ok() {
                break;
            }
            opened = open();
        }
        Self::with_header(opened?, path)
    }

    /// Removes the store in a directory, and the directory if nothing else is in it. A missing one is fine.
    ///
    /// # Errors
    /// When the directory is locked, or a file cannot be removed.
    pub fn destroy(path: &Path) -> Result<(), StoreError> {
        if !path.exists() {
            return Ok(());
        }
        DB::destroy(&Options::default(), path).map_err(|error| from_rocksdb(path, "removing the store", error))
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns how much memory the store holds, beside the shared cache.
    ///
    /// # Errors
    /// When RocksDB does not tell.
    pub fn memory_usage(&self) -> Result<MemoryUsage, StoreError> {
        let usage = rocksdb::perf::get_memory_usage_stats(Some(&[&self.db]), None)
            .map_err(|error| from_rocksdb(&self.path, "measuring memory", error))?;
        Ok(MemoryUsage { memtables: usage.mem_table_total, table_readers: usage.mem_table_readers_total })
    }

    fn with_header(db: DB, path: &Path) -> Result<Self, StoreError> {
        let mut store = Self {
            db,
            path: path.to_owned(),
            header: StoreHeader::default(),
            durability: Durability::Changelog,
            outbox_bounds: OutboxBounds::default(),
        };
        let bytes = store.db.get_cf(store.family(Family::Meta), key::HEADER).map_err(|e| store.error("reading", e))?;
        match bytes {
            Some(bytes) => store.header = header::decode(path, &bytes)?,
            None => store.refuse_rows_without_header()?,
        }
        Ok(store)
    }

    fn refuse_rows_without_header(&self) -> Result<(), StoreError> {
        for family in [Family::Due, Family::Id, Family::Run] {
            if let Some(row) = self.db.iterator_cf(self.family(family), IteratorMode::Start).next() {
                row.map_err(|error| self.error("reading", error))?;
                return Err(self.corrupt(&format!("family `{}` has rows, but there is no header", family.name())));
            }
        }
        Ok(())
    }

    fn flush_all(&self) -> Result<(), StoreError> {
        let families = FAMILIES.map(|family| self.family(family));
        self.db.flush_cfs_opt(&families, &FlushOptions::default()).map_err(|error| self.error("flushing", error))
    }

    fn family(&self, family: Family) -> &ColumnFamily {
        self.db.cf_handle(family.name()).expect("the store was opened with all families")
    }

    fn error(&self, doing: &'static str, error: rocksdb::Error) -> StoreError {
        from_rocksdb(&self.path, doing, error)
    }

    fn corrupt(&self, detail: &dyn Display) -> StoreError {
        StoreError::Corrupt { path: self.path.clone(), detail: detail.to_string() }
    }
}

/// Creates the directory if there is none.
fn prepare(path: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(path).map_err(|error| from_io(path, "creating the directory", &error))?;
    refuse_remains(path)
}

/// Refuses a directory that has lost the file that names its state: RocksDB would start an empty store beside the remains.
fn refuse_remains(path: &Path) -> Result<(), StoreError> {
    if path.join("CURRENT").exists() {
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(|error| from_io(path, "listing the directory", &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| from_io(path, "listing the directory", &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("MANIFEST-") || Path::new(&name).extension().is_some_and(|it| it == "sst") {
            let detail = format!("file CURRENT is missing, but {name} is there");
            return Err(StoreError::Corrupt { path: path.to_owned(), detail });
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "mod_test.rs"]
mod tests;
