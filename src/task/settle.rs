//! Ends the open transaction of a task.
//!
//! ```text
//!   prepare ──▶ records and position go into the transaction ──▶ committed ──▶ one batch into the store
//!      └──────────────────────────────────────────────────────▶ dropped (abort): as if nothing had been taken
//! ```
//!
//! Keeps: the store is written after the log has committed, never before (INV-STORE-2); the batch carries the positions it
//! brings the store to (INV-STORE-1).

use std::collections::BTreeSet;

use bytes::Bytes;

use super::tally::Tally;
use super::{Phase, Reached, Task, emit};
use crate::log::Emission;
use crate::log::places::Places;
use crate::planted::{Bug, is_on};
use crate::position::Position;
use crate::store::{Batch, Store, StoreError};
use crate::time::Timestamp;
use crate::wire::key::StateKey;
use crate::wire::state::Meta;

/// What follows a transaction when it has committed.
#[derive(Debug)]
pub(super) struct InFlight {
    /// For the store.
    batch: Batch,
    /// How many records of the changelog were sent.
    sent: u64,
    /// The keys that are written anew with it.
    mended: BTreeSet<Bytes>,
}

impl<S: Store> Task<S> {
    /// Returns the records of the open transaction and what it does; those of the changelog come first.
    ///
    /// # Errors
    /// When the store cannot be read.
    ///
    /// # Panics
    /// When the outcome of the transaction before is not known yet (INV-LOG-2).
    pub fn prepare(&mut self) -> Result<(Vec<Emission>, Tally), StoreError> {
        assert!(self.in_flight.is_none(), "INV-LOG-2: the outcome of a transaction is known before the next begins");
        let mut batch = self.overlay.batch();
        batch.header.input_position = self.open.position;
        batch.header.next_generation = self.open.generation;
        batch.header.forwarders = self.open.forwarders.clone();
        let mut records = emit::changes(self.partition, &batch);
        records.append(&mut self.mended(&batch)?);
        let is_meta_overwritten = self.overwritten.contains(&StateKey::Meta.encode());
        let is_meta_due = (self.open != self.committed || is_meta_overwritten) && !is_on(Bug::MetaLeftOut);
        let is_meta_due = is_meta_due && !(is_on(Bug::MetaOnlyWithRows) && records.is_empty());
        if is_meta_due && self.has_changelog() {
            records.push(emit::meta(self.partition, &self.open.meta(self.fencing_position)));
        }
        let sent = u64::try_from(records.len()).expect("records in memory are counted by 64 bits");
        if is_on(Bug::RecordsKeptOnAbort) {
            records.extend_from_slice(&self.emissions);
        } else {
            records.append(&mut self.emissions);
        }
        if is_on(Bug::StoreBeforeCommit) {
            let _written = self.overlay.commit(batch);
            batch = self.overlay.batch();
        }
        self.in_flight = Some(InFlight { batch, sent, mended: self.overwritten.clone() });
        Ok((records, std::mem::take(&mut self.tally)))
    }

    /// Follows a committed transaction with one batch into the store. `places` are those of the records of the changelog
    /// that the task had in it, if it had any and they are known.
    ///
    /// # Errors
    /// When the store cannot be written. The log is ahead of it then, and the task must be closed and restored.
    ///
    /// # Panics
    /// When nothing was prepared, or a position or the counter would fall (INV-POS-1, INV-GEN-1).
    pub fn committed(&mut self, places: Option<&Places>) -> Result<(), StoreError> {
        let in_flight = self.in_flight.take().expect("a transaction was prepared before it committed");
        let InFlight { mut batch, sent, mended } = in_flight;
        assert!(self.open.position >= self.committed.position, "INV-POS-1: committed positions never regress");
        assert!(self.open.generation >= self.committed.generation, "INV-GEN-1: the counter never falls");
        if let Some(position) = places.and_then(Places::end) {
            let before = batch.header.changelog_position;
            assert!(before.is_none_or(|before| before < position), "INV-POS-1: the changelog position never regresses");
            batch.header.changelog_position = Some(position);
        }
        batch.header.level_at = self.owned_at;
        self.overlay.commit(batch)?;
        self.committed = self.open.clone();
        self.watch.committed(places, sent);
        self.overwritten.retain(|key| !mended.contains(key));
        self.unsettled_target = None;
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
        self.looks.clear();
        if !is_on(Bug::OverlayKeptOnAbort) {
            self.overlay.clear();
        }
        if !is_on(Bug::WakesKeptOnAbort) {
            self.wakes.clear();
        }
        if !is_on(Bug::PositionKeptOnAbort) {
            self.open = self.committed.clone();
        }
        if let Some(target) = self.unsettled_target.take()
            && self.phase == Phase::Running
            && !is_on(Bug::GateKeptOpenOnAbort)
        {
            // Commands that opened the gate are to be read again; until then a disarm among them is not in force.
            self.phase = Phase::CatchingUp { target };
        }
        self.position()
    }

    /// Returns the record of what is committed already: it changes nothing, and shows the broker's clock.
    pub fn probe(&self) -> Emission {
        emit::meta(self.partition, &self.committed.meta(self.fencing_position))
    }

    /// Drops the open transaction and goes back to joining: what the log holds is not known, so it is read again.
    pub fn reload(&mut self) {
        if is_on(Bug::OverlayKeptOnUnknown) {
            self.in_flight = None;
            self.open = self.committed.clone();
        } else {
            self.dropped();
        }
        self.fencing_position = self.position();
        self.phase = Phase::Joining;
    }

    /// Notes that a transaction which began at `now`, with a position of this partition in it, has committed: until then nobody
    /// else has written the changelog, or the fence had failed.
    pub fn prove_owned(&mut self, now: Timestamp) {
        self.owned_at = Some(now);
    }

    /// Returns until when it is proved that nobody else has written the changelog.
    pub fn owned_at(&self) -> Option<Timestamp> {
        self.owned_at
    }

    /// Makes the store durable, and notes until when it is known to be level with the changelog. What the task believes is no
    /// proof: who stood still for days hears only later that it has lost the partition.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        let is_level = self.takes_commands() && (!self.is_dirty() || is_on(Bug::FlushWritesOpenChanges));
        if is_level {
            let mut batch = self.overlay.batch();
            batch.header.level_at = self.owned_at;
            self.overlay.commit(batch)?;
        }
        self.overlay.store_mut().flush()?;
        Ok(())
    }
}

impl Reached {
    /// Returns what the changelog is to say of it; `fencing_position` stands in for a position that is not known yet.
    fn meta(&self, fencing_position: Position) -> Meta {
        Meta {
            input_position: self.position.unwrap_or(fencing_position),
            next_generation: self.generation,
            forwarders: self.forwarders.clone(),
        }
    }
}
