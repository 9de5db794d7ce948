//! The state directory: the stores of all partitions that this process owns or owned.
//!
//! ```text
//!   <state_dir>/LOCK              held while the process lives
//!   <state_dir>/partition-<n>/    one RocksDB each
//! ```
//!
//! Owns the lock and the paths. Keeps: two processes never share a state directory; a store that is no longer owned stays
//! as a warm copy until it is too old to be of use.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{Resources, RocksStore};
use crate::position::Partition;
use crate::store::{Store, StoreError, Stores};
use crate::time::Timestamp;

const LOCK_FILE: &str = "LOCK";
const PARTITION_PREFIX: &str = "partition-";

/// A state directory that this process holds.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    path: PathBuf,
    resources: Resources,
    /// The lock falls when the last worker drops it.
    _lock: Arc<File>,
}

impl StateDirectory {
    /// Creates the directory if there is none, and locks it.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another process holds it; [`StoreError::Io`] when it cannot be created.
    pub fn lock(path: &Path, resources: Resources) -> Result<Self, StoreError> {
        let io = |doing| {
            move |error: std::io::Error| StoreError::Io { path: path.to_owned(), doing, detail: error.to_string() }
        };
        fs::create_dir_all(path).map_err(io("creating it"))?;
        let lock = File::create(path.join(LOCK_FILE)).map_err(io("creating the lock file"))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.to_owned(), resources, _lock: Arc::new(lock) }),
            Err(Errno::WOULDBLOCK) => Err(StoreError::Locked { path: path.to_owned() }),
            Err(error) => Err(io("locking it")(error.into())),
        }
    }

    /// Removes the stores of partitions that were level with their changelog longer ago than `age_max`: they would be
    /// discarded anyway if their partition came back. Returns which.
    ///
    /// # Errors
    /// When the directory cannot be read or a store cannot be removed.
    pub fn remove_old(&self, now: Timestamp, age_max: Duration) -> Result<Vec<Partition>, StoreError> {
        let io = |error: std::io::Error| StoreError::Io {
            path: self.path.clone(),
            doing: "looking for old stores",
            detail: error.to_string(),
        };
        let mut removed = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            let number =
                name.to_str().and_then(|name| name.strip_prefix(PARTITION_PREFIX)).and_then(|n| n.parse().ok());
            let Some(partition) = number.map(Partition) else {
                continue;
            };
            // A store that cannot be opened is judged when its partition is assigned.
            let Ok(store) = RocksStore::open_read_only(&self.partition(partition)) else {
                continue;
            };
            if store.header().level_at.is_some_and(|level_at| now.since(level_at) > age_max) {
                drop(store);
                RocksStore::destroy(&self.partition(partition))?;
                removed.push(partition);
            }
        }
        Ok(removed)
    }

    fn partition(&self, partition: Partition) -> PathBuf {
        self.path.join(format!("{PARTITION_PREFIX}{partition}"))
    }
}

impl Stores for StateDirectory {
    type Store = RocksStore;

    fn open(&mut self, partition: Partition) -> Result<RocksStore, StoreError> {
        RocksStore::open(&self.partition(partition), &self.resources)
    }

    fn discard(&mut self, partition: Partition) -> Result<(), StoreError> {
        RocksStore::destroy(&self.partition(partition))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Batch;

    #[test]
    fn a_second_holder_is_refused_by_name() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("state");
        let held = StateDirectory::lock(&path, Resources::new(1 << 20)).unwrap();
        let refused = StateDirectory::lock(&path, Resources::new(1 << 20)).unwrap_err();
        assert!(matches!(&refused, StoreError::Locked { path: named } if *named == path), "{refused}");
        drop(held);
        assert!(StateDirectory::lock(&path, Resources::new(1 << 20)).is_ok(), "free again");
    }

    #[test]
    fn only_old_stores_are_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let mut directory = StateDirectory::lock(scratch.path(), Resources::new(1 << 20)).unwrap();
        for (partition, level_at) in [(0, 1_000), (1, 9_000)] {
            let mut store = directory.open(Partition(partition)).unwrap();
            let mut batch = Batch::default();
            batch.header.level_at = Some(Timestamp::from_millis(level_at));
            store.write(batch).unwrap();
            store.flush().unwrap();
        }
        let removed = directory.remove_old(Timestamp::from_millis(10_000), Duration::from_secs(5)).unwrap();
        assert_eq!(removed, [Partition(0)]);
        assert!(!scratch.path().join("partition-0").exists(), "removed");
        assert!(scratch.path().join("partition-1").exists(), "kept");
    }
}
