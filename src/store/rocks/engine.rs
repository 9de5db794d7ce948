//! The store on disk of an embedded engine: its log, its format and its outbox.
//!
//! Owns the row that says that a directory is an engine's. Never opens the directory of a partition, whose last batches may be in
//! its changelog only. Keeps: a write that has returned survives a kill; a log with a damaged row that is not its torn end is an
//! error and not the end of the log.

use std::path::Path;

use bytes::Bytes;
use rocksdb::{ColumnFamilyDescriptor, DB, DBRecoveryMode};
use serde::{Deserialize, Serialize};

use super::error::from_opening;
use super::options::{self, FAMILIES, Family};
use super::{Durability, Resources, RocksStore, StoreError, key};
use crate::store::outbox::{Outbox, OutboxBounds, OutboxChange};
use crate::store::{Batch, Store};

/// The format of an engine's own rows; it rises with every change of them.
const FORMAT: u32 = 1;
/// What is reported for a directory that was not written by an engine.
const NO_FORMAT: u32 = 0;

#[derive(Deserialize)]
struct AnyFormat {
    format: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    format: u32,
    outbox_first: u64,
    outbox_next: u64,
}

/// Returns the row.
pub(super) fn encode(bounds: OutboxBounds) -> Vec<u8> {
    let row = Row { format: FORMAT, outbox_first: bounds.first, outbox_next: bounds.next };
    serde_json::to_vec(&row).expect("numbers are always JSON")
}

fn decode(path: &Path, bytes: &[u8]) -> Result<OutboxBounds, StoreError> {
    let corrupt = |detail: String| StoreError::Corrupt { path: path.to_owned(), detail: format!("engine: {detail}") };
    let AnyFormat { format } = serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()))?;
    if format != FORMAT {
        return Err(StoreError::UnsupportedFormat { path: path.to_owned(), found: format, supported: FORMAT });
    }
    let row: Row = serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()))?;
    if row.outbox_next < row.outbox_first {
        return Err(corrupt(format!("the outbox ends at {} and begins at {}", row.outbox_next, row.outbox_first)));
    }
    Ok(OutboxBounds { first: row.outbox_first, next: row.outbox_next })
}

impl RocksStore {
    /// Opens the store of an embedded engine, or creates it. What it writes is durable when the write returns.
    ///
    /// # Errors
    /// When the directory is locked, damaged, of another format, not an engine's, or cannot be written.
    pub fn open_engine(path: &Path, resources: &Resources) -> Result<Self, StoreError> {
        super::prepare(path)?;
        let mut options = options::of_db(resources);
        // A kill may tear the last row, which nobody was told is durable. Anything else is damage, and not the end.
        options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
        let families = FAMILIES.map(|f| ColumnFamilyDescriptor::new(f.name(), options::of_family(f, resources)));
        let db = DB::open_cf_descriptors(&options, path, families).map_err(|error| from_opening(path, error))?;
        let mut store = Self::with_header(db, path)?;
        store.durability = Durability::Synced;
        let row = store.db.get_cf(store.family(Family::Meta), key::ENGINE).map_err(|e| store.error("reading", e))?;
        let header = store.db.get_cf(store.family(Family::Meta), key::HEADER).map_err(|e| store.error("reading", e))?;
        match (row, header) {
            (Some(row), Some(_)) => store.outbox_bounds = decode(path, &row)?,
            (Some(_), None) => return Err(store.corrupt(&"an engine's row is there, but no header")),
            (None, Some(_)) => {
                let (found, supported) = (NO_FORMAT, FORMAT);
                return Err(StoreError::UnsupportedFormat { path: path.to_owned(), found, supported });
            }
            (None, None) => store.write(Batch { outbox: Some(OutboxChange::default()), ..Batch::default() })?,
        }
        Ok(store)
    }
}

impl Outbox for RocksStore {
    fn bounds(&self) -> OutboxBounds {
        self.outbox_bounds
    }

    fn entries(&self, from: u64, rows_max: usize) -> Result<Vec<(u64, Bytes)>, StoreError> {
        let bounds = self.outbox_bounds;
        let range = key::outbox_range(from.max(bounds.first), bounds.next);
        self.walk(Family::Meta, range, rows_max, |key, body| {
            let number = key::read_outbox(key).map_err(|error| self.corrupt(&error))?;
            Ok((number, Bytes::copy_from_slice(body)))
        })
    }
}

#[cfg(test)]
#[path = "engine_test.rs"]
mod tests;
