//! Ends the open transaction of a task.
//!
//! ```text
//!   prepare ──▶ records and position go into the transaction ──▶ committed ──▶ one batch into the store
//!      └──────────────────────────────────────────────────────▶ dropped (abort): as if nothing had been taken
//! ```
//!
//! Keeps: the store is written after the log has committed, never before (INV-STORE-2); the batch carries the positions it
//! brings the store to (INV-STORE-1).

use super::{Phase, Task, emit};
use crate::log::Emission;
use crate::planted::{Bug, is_on};
use crate::position::Position;
use crate::store::{Store, StoreError};
use crate::time::Timestamp;
use crate::wire::state::Meta;

use super::tally::Tally;

impl<S: Store> Task<S> {
    /// Returns the records of the open transaction and what it does; those of the changelog come first.
    ///
    /// # Panics
    /// When the outcome of the transaction before is not known yet (INV-LOG-2).
    pub fn prepare(&mut self) -> (Vec<Emission>, Tally) {
        assert!(self.in_flight.is_none(), "INV-LOG-2: the outcome of a transaction is known before the next begins");
        let mut batch = self.overlay.batch();
        batch.header.input_position = self.open.position;
        batch.header.next_generation = self.open.generation;
        let mut records = emit::changes(self.partition, &batch);
        let is_meta_due = self.open != self.committed && !is_on(Bug::MetaLeftOut);
        let is_meta_due = is_meta_due && !(is_on(Bug::MetaOnlyWithRows) && records.is_empty());
        if is_meta_due && self.has_changelog() {
            let input_position = self.position();
            records.push(emit::meta(self.partition, Meta { input_position, next_generation: self.open.generation }));
        }
        if is_on(Bug::RecordsKeptOnAbort) {
            records.extend_from_slice(&self.emissions);
        } else {
            records.append(&mut self.emissions);
        }
        if is_on(Bug::StoreBeforeCommit) {
            let _written = self.overlay.commit(batch);
            batch = self.overlay.batch();
        }
        self.in_flight = Some(batch);
        (records, std::mem::take(&mut self.tally))
    }

    /// Follows a committed transaction with one batch into the store. `changelog` is the position behind the records that
    /// the task had in it, if it had any.
    ///
    /// # Errors
    /// When the store cannot be written. The log is ahead of it then, and the task must be closed and restored.
    ///
    /// # Panics
    /// When nothing was prepared, or a position or the counter would fall (INV-POS-1, INV-GEN-1).
    pub fn committed(&mut self, changelog: Option<Position>, now: Timestamp) -> Result<(), StoreError> {
        let mut batch = self.in_flight.take().expect("a transaction was prepared before it committed");
        assert!(self.open.position >= self.committed.position, "INV-POS-1: committed positions never regress");
        assert!(self.open.generation >= self.committed.generation, "INV-GEN-1: the counter never falls");
        if let Some(position) = changelog {
            let before = batch.header.changelog_position;
            assert!(before.is_none_or(|before| before < position), "INV-POS-1: the changelog position never regresses");
            batch.header.changelog_position = Some(position);
        }
        batch.header.level_at = Some(now);
        self.overlay.commit(batch)?;
        self.committed = self.open;
        if is_on(Bug::RecordsKeptOnAbort) {
            self.emissions.clear();
        }
        Ok(())
    }

    /// Drops the open transaction, as if nothing had been taken, and returns where commands are to be read again.
    pub fn dropped(&mut self) -> Position {
        self.in_flight = None;
        if !is_on(Bug::RecordsKeptOnAbort) {
            self.emissions.clear();
        }
        self.tally = Tally::default();
        if !is_on(Bug::OverlayKeptOnAbort) {
            self.overlay.clear();
        }
        if !is_on(Bug::WakesKeptOnAbort) {
            self.wakes.clear();
        }
        if !is_on(Bug::PositionKeptOnAbort) {
            self.open = self.committed;
        }
        self.position()
    }

    /// Returns the record of what is committed already: it changes nothing, and shows the broker's clock.
    pub fn probe(&self) -> Emission {
        let input_position = self.committed.position.unwrap_or(self.fencing_position);
        emit::meta(self.partition, Meta { input_position, next_generation: self.committed.generation })
    }

    /// Drops the open transaction and goes back to joining: what the log holds is not known, so it is read again.
    pub fn reload(&mut self) {
        if is_on(Bug::OverlayKeptOnUnknown) {
            self.in_flight = None;
            self.open = self.committed;
        } else {
            self.dropped();
        }
        self.fencing_position = self.position();
        self.phase = Phase::Joining;
    }

    /// Makes the store durable, and notes that it is level with the changelog at `now`.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn flush(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let is_level = self.takes_commands() && (!self.is_dirty() || is_on(Bug::FlushWritesOpenChanges));
        if is_level {
            // A quiet partition stays young: its owner knows that nobody else writes its changelog.
            let mut batch = self.overlay.batch();
            batch.header.level_at = Some(now);
            self.overlay.commit(batch)?;
        }
        self.overlay.store_mut().flush()?;
        Ok(())
    }
}
