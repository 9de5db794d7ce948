//! Where a partition's timers are kept on this machine.
//!
//! Owns the seam [`Store`] with its two implementors ([`memory`], [`rocks`]), the [`overlay`] that holds the changes of
//! the open transaction (`edits`) above one, the byte order of keys ([`key`]), and the [`outbox`] of an embedded engine. Never knows the log: positions are numbers it is told.
//! Keeps: a batch is applied whole or not at all, and carries the positions that it brings the store to (INV-STORE-1);
//! the store never runs ahead of the log (INV-STORE-2).

pub mod key;
pub mod memory;
pub mod outbox;
pub mod overlay;
pub mod rocks;

mod boxed;
mod edits;
#[cfg(test)]
mod model_check;
#[cfg(test)]
mod model_steps;
mod remembered;
mod row;

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;

use crate::position::{Partition, Position};
use crate::time::Timestamp;
use crate::timer::identity::{RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Generation, Located, Remembered, RunState, Timer};
use crate::timer::view::DueRow;

/// What can go wrong with a store, by what the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the directory. The caller stops and names it.
    #[error("state directory {path} is locked by another process; give each instance a directory of its own")]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The files are damaged. The service discards the store and restores it from the changelog.
    #[error("state directory {path} is corrupt: {detail}")]
    Corrupt {
        /// The directory.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The files were written by a release with another format. The service discards the store and restores it.
    #[error("state directory {path} has format {found}, this release reads {supported}")]
    UnsupportedFormat {
        /// The directory.
        path: PathBuf,
        /// The format found.
        found: u32,
        /// The format that this release reads and writes.
        supported: u32,
    },
    /// There is no room. The caller closes the task and tries again later.
    #[error("no space left for state directory {path}: {detail}")]
    Full {
        /// The directory.
        path: PathBuf,
        /// What was attempted.
        detail: String,
    },
    /// Any other failure of the file system.
    #[error("{doing} in state directory {path}: {detail}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// The cause.
        detail: String,
    },
}

/// What a store knows of itself, written with every batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreHeader {
    /// The partition that the store was built for.
    pub partition: Option<Partition>,
    /// The id of the changelog topic that the store was built from; a recreated topic has another.
    pub changelog_topic_id: Option<[u8; 16]>,
    /// The id of the command topic that the input position belongs to; a recreated topic has another.
    pub arm_topic_id: Option<[u8; 16]>,
    /// The next record of the changelog that the store does not hold.
    pub changelog_position: Option<Position>,
    /// The next command to read.
    pub input_position: Option<Position>,
    /// The next generation to give.
    pub next_generation: Generation,
    /// Per partition of the command topic that only forwards: the position behind its last command that came here.
    pub forwarders: BTreeMap<Partition, Position>,
    /// Per kind, where scans start: no live row is below.
    pub cursors: BTreeMap<KindNumber, DueKey>,
    /// Per kind, how many timers are pending.
    pub pending: BTreeMap<KindNumber, u64>,
    /// Per kind, how many of them are paused.
    pub paused: BTreeMap<KindNumber, u64>,
    /// How many ids are remembered.
    pub remembered: u64,
    /// The last time at which the store was known to be level with the changelog: for the age check.
    pub level_at: Option<Timestamp>,
    /// How many records of the changelog could not be decoded and are missing here; they wait there for a newer release.
    pub undecodable: u64,
}

/// A timer's row before and after a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerChange {
    /// The identity.
    pub key: TimerKey,
    /// Where the row was in the store.
    pub before: Option<Located>,
    /// The row from now on, with its encoded body.
    pub after: Option<(Located, Bytes)>,
}

/// A run's row before and after a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunChange {
    /// The run.
    pub run: RunKey,
    /// The state in the store; empty if there was no row.
    pub before: RunState,
    /// The state from now on; empty removes the row.
    pub after: RunState,
    /// The encoded body of `after`.
    pub body: Bytes,
}

/// A remembered id's row before and after a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RememberedChange {
    /// The id.
    pub key: TimerKey,
    /// What the store remembers of it.
    pub before: Option<Remembered>,
    /// What is remembered from now on, with its encoded body.
    pub after: Option<(Remembered, Bytes)>,
}

/// Changes that are applied whole or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Changed timers, each key once.
    pub timers: Vec<TimerChange>,
    /// Changed runs, each once.
    pub runs: Vec<RunChange>,
    /// Changed remembered ids, each once.
    pub remembered: Vec<RememberedChange>,
    /// By how much the number of pending timers changes, per tenant.
    pub tenants: BTreeMap<Tenant, i64>,
    /// The header from now on.
    pub header: StoreHeader,
    /// What becomes of the outbox of an embedded engine; a partition's store has none.
    pub outbox: Option<outbox::OutboxChange>,
}

/// A partition's committed state.
pub trait Store {
    /// Returns where the timer's row is.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn locate(&self, key: &TimerKey) -> Result<Option<Located>, StoreError>;

    /// Returns the whole timer at this place, if it is there and can be decoded.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn timer(&self, at: Located) -> Result<Option<Timer>, StoreError>;

    /// Returns what is remembered of the id.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn remembered(&self, key: &TimerKey) -> Result<Option<Remembered>, StoreError>;

    /// Returns up to `rows_max` remembered ids that end from `from` to `until`, in order of their ends.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn ending(
        &self,
        from: Timestamp,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Remembered)>, StoreError>;

    /// Returns the run's state; empty if there is no row.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn run(&self, run: &RunKey) -> Result<RunState, StoreError>;

    /// Returns up to `rows_max` timers of the run behind `after`, in order of their ids.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn timers_of(
        &self,
        run: &RunKey,
        after: Option<&TimerId>,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Located)>, StoreError>;

    /// Returns up to `rows_max` rows of the kind at or behind `from` with a wake at or before `until`, in order.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn due(&self, kind: KindNumber, from: DueKey, until: Timestamp, rows_max: usize)
    -> Result<Vec<DueRow>, StoreError>;

    /// Returns up to `rows_max` places of the kind at or behind `from` with a wake at or before `until`, without bodies.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn due_keys(
        &self,
        kind: KindNumber,
        from: DueKey,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueKey>, StoreError>;

    /// Returns up to `rows_max` runs whose agenda is at or before `until`, earliest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn agenda(&self, until: Timestamp, rows_max: usize) -> Result<Vec<(Timestamp, RunKey)>, StoreError>;

    /// Returns the number of pending timers of the tenant.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn pending_of(&self, tenant: &Tenant) -> Result<u64, StoreError>;

    /// Returns the header of the last batch.
    fn header(&self) -> &StoreHeader;

    /// Applies a batch, whole or not at all.
    ///
    /// # Errors
    /// When the store cannot be written; the state is then as before.
    fn write(&mut self, batch: Batch) -> Result<(), StoreError>;

    /// Makes what was written durable.
    ///
    /// # Errors
    /// When the files cannot be written.
    fn flush(&mut self) -> Result<(), StoreError>;
}

/// Where the stores of a worker's partitions come from.
pub trait Stores {
    /// What is opened.
    type Store: Store;

    /// Opens the store of a partition, and creates it if there is none.
    ///
    /// # Errors
    /// When it cannot be opened; [`StoreError::Corrupt`] and [`StoreError::UnsupportedFormat`] call for a discard.
    fn open(&mut self, partition: Partition) -> Result<Self::Store, StoreError>;

    /// Removes the store of a partition, which must be closed.
    ///
    /// # Errors
    /// When the files cannot be removed.
    fn discard(&mut self, partition: Partition) -> Result<(), StoreError>;
}
