//! Undoes what somebody else wrote to the changelog.
//!
//! Owns the way from a hole in the own records to the records that repair it: the owner writes its own state of the key anew,
//! or the tombstone if it has none, since a later restore takes the last record of a key for the truth.
//! Never folds a record of somebody else. Keeps: what is written anew is committed state, and never older than the open
//! transaction's own record of the key.

use bytes::Bytes;

use super::{Task, emit};
use crate::log::places::Places;
use crate::log::{ChangelogBatch, Emission};
use crate::position::{Offset, Position};
use crate::store::{Batch, Store, StoreError};
use crate::timer::identity::TimerKey;
use crate::wire::key::StateKey;
use crate::wire::remembered::encode_remembered;
use crate::wire::state::{encode_run, encode_timer};

/// What a look at the changelog found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// The records that are not ours.
    pub foreign: Vec<Offset>,
    /// Whether enough was read.
    pub is_done: bool,
}

impl<S: Store> Task<S> {
    /// Returns from where the changelog is to be read if somebody else may have written to it; batches go to
    /// [`Task::examine`].
    pub fn suspect(&mut self) -> Option<Position> {
        self.watch.begin_reading()
    }

    /// Takes a batch of the changelog that was read on suspicion, and notes the keys that have to be written anew.
    pub fn examine(&mut self, batch: &ChangelogBatch) -> Examined {
        let (foreign, is_done) = self.watch.read(batch);
        self.overwritten.extend(foreign.iter().map(|record| record.key.clone()));
        Examined { foreign: foreign.iter().map(|record| record.offset).collect(), is_done }
    }

    /// Enters a transaction that had [`Task::probe`] in it.
    pub fn probed(&mut self, places: Option<&Places>) {
        self.watch.committed(places, 1);
    }

    /// Returns the records that write overwritten keys anew, those left out that `batch` writes anyway. The meta record
    /// is the caller's.
    pub(super) fn mended(&self, batch: &Batch) -> Result<Vec<Emission>, StoreError> {
        let mut records = Vec::new();
        for key in &self.overwritten {
            let body = match StateKey::decode(key) {
                // A barrier is read by its writer only, and ours was.
                Ok(StateKey::Meta | StateKey::Barrier) => continue,
                Ok(StateKey::Timer(key)) if batch.timers.iter().any(|change| change.key == key) => continue,
                Ok(StateKey::Run(run)) if batch.runs.iter().any(|change| change.run == run) => continue,
                Ok(StateKey::Remembered(id)) if batch.remembered.iter().any(|change| change.key == id) => continue,
                Ok(StateKey::Timer(key)) => self.stored_timer(&key)?,
                Ok(StateKey::Remembered(id)) => {
                    self.overlay.store().remembered(&id)?.map(|state| encode_remembered(&state))
                }
                Ok(StateKey::Run(run)) => {
                    let state = self.overlay.store().run(&run)?;
                    (!state.is_empty()).then(|| encode_run(&state))
                }
                Err(_) => None,
            };
            records.push(emit::raw_changelog(self.partition, key.clone(), body));
        }
        Ok(records)
    }

    fn stored_timer(&self, key: &TimerKey) -> Result<Option<Bytes>, StoreError> {
        let store = self.overlay.store();
        let Some(at) = store.locate(key)? else { return Ok(None) };
        Ok(store.timer(at)?.map(|timer| encode_timer(&timer)))
    }
}
