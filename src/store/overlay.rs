//! A store with the changes of the open transaction on top: the state as the core sees it.
//!
//! Owns the merge of committed rows with open changes, and the moment at which the latter become the former. Never writes
//! before it is told that the transaction has committed; an abort drops the changes. Keeps: what is read is the state after
//! all folded mutations (INV-STORE-5); the store never runs ahead of the log (INV-STORE-2).
//!
//! ```text
//!            fold                       batch ──▶ transaction ──▶ commit
//!   empty ─────────▶ holds changes ─────────────────────────────────────▶ empty, store holds them
//!                                 ─────────────────────────────── clear ▶ empty, store as before
//! ```

use std::collections::BTreeMap;

use super::edits::Edits;
use super::{Batch, Store, StoreError};
use crate::planted::{Bug, is_on};
use crate::time::Timestamp;
use crate::timer::identity::{RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Located, Remembered, RunState, Timer};
use crate::timer::outcome::Mutation;
use crate::timer::view::{DueRow, Lookup, View};

/// Rows of a page that is read because open changes hid rows of the page before it.
const NEXT_PAGE_ROWS: usize = 64;

/// A store below the changes of the open transaction.
#[derive(Debug)]
pub struct Overlay<S> {
    store: S,
    edits: Edits,
    /// The earliest instant of the store's agenda, so that a tick without one reads nothing.
    committed_agenda: Option<Timestamp>,
    /// No id that the store remembers ends before.
    committed_end: Timestamp,
}

/// A piece of a kind's due order.
#[derive(Clone, Copy)]
struct Scan {
    kind: KindNumber,
    from: DueKey,
    until: Timestamp,
    rows_max: usize,
}

impl<S: Store> Overlay<S> {
    /// Returns the store with no changes on top.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn new(store: S) -> Result<Self, StoreError> {
        let committed_agenda = store.agenda(Timestamp::MAX, 1)?.first().map(|(at, _)| *at);
        let committed_end =
            store.ending(Timestamp::EPOCH, Timestamp::MAX, 1)?.first().map_or(Timestamp::MAX, |(_, state)| state.until);
        let edits = Edits::above(store.header(), committed_end);
        Ok(Self { store, edits, committed_agenda, committed_end })
    }

    /// Returns the committed state.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Returns the committed state, to be flushed; what is written past the overlay would not be seen.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Returns the committed state and drops the changes.
    pub fn into_store(self) -> S {
        self.store
    }

    /// Takes a mutation that was decided on the state as it is now.
    ///
    /// # Panics
    /// When the mutation does not fit the state: a programmer's fault that would corrupt it.
    pub fn fold(&mut self, mutation: Mutation) {
        self.edits.fold(mutation);
    }

    /// Returns whether one of the changed timers is another one than `key` and has this place. No two of ours ever share one;
    /// what somebody else wrote to a changelog may.
    pub fn has_other_at(&self, at: Located, key: &TimerKey) -> bool {
        self.edits.at(at).is_some_and(|other| other != key)
    }

    /// Returns whether no row changes. Cursors alone do not count: they ride in the next batch, and are no loss.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Returns how many rows change.
    pub fn changed_rows(&self) -> usize {
        self.edits.rows()
    }

    /// Returns about how many bytes the changed timers have.
    pub fn changed_bytes(&self) -> usize {
        self.edits.bytes()
    }

    /// Drops all changes; cursors and counts are those of the store again.
    pub fn clear(&mut self) {
        let mut edits = Edits::above(self.store.header(), self.committed_end);
        if is_on(Bug::CursorsKeptOnAbort) {
            edits.cursors.clone_from(&self.edits.cursors);
        }
        self.edits = edits;
    }

    /// Returns the net changes. Their header has the cursors and counts from now on; positions, the next generation and the
    /// time of the level are those of the store, for the caller to set.
    pub fn batch(&self) -> Batch {
        self.edits.batch(self.store.header())
    }

    /// Writes the batch of the changes, whose transaction has committed, and drops them.
    ///
    /// # Errors
    /// When the store cannot be read or written; store and changes are then as before.
    ///
    /// # Panics
    /// When the batch is not that of the changes.
    pub fn commit(&mut self, batch: Batch) -> Result<(), StoreError> {
        let rows = batch.timers.len() + batch.runs.len() + batch.remembered.len();
        assert_eq!(rows, self.edits.rows(), "the batch is that of the changes");
        debug_assert_eq!(&batch.header.pending, self.edits.pending(), "nothing was folded behind the batch");
        let agenda = self.next_agenda()?;
        self.store.write(batch)?;
        self.committed_agenda = agenda;
        self.committed_end = self.edits.memory.first();
        self.clear();
        Ok(())
    }

    /// Returns where scans of the kind start.
    pub fn cursor(&self, kind: KindNumber) -> DueKey {
        self.edits.cursor(kind)
    }

    /// Returns per kind how many timers are pending, swept ones included until they are removed.
    pub fn pending(&self) -> &BTreeMap<KindNumber, u64> {
        self.edits.pending()
    }

    /// Returns per kind how many of them are paused.
    pub fn paused(&self) -> &BTreeMap<KindNumber, u64> {
        self.edits.paused()
    }

    /// Returns how many timers of the tenant are pending, swept ones included until they are removed.
    ///
    /// # Errors
    /// When the store cannot be read.
    ///
    /// # Panics
    /// When more timers were removed than the store has counted.
    pub fn pending_of(&self, tenant: &Tenant) -> Result<u64, StoreError> {
        let committed = self.store.pending_of(tenant)?;
        Ok(committed.checked_add_signed(self.edits.pending_of(tenant)).expect("what is removed was counted (L8)"))
    }

    /// Returns how many ids are remembered, lapsed ones included until they are forgotten.
    pub fn remembered_count(&self) -> u64 {
        self.edits.memory.count()
    }

    /// Returns when remembered ids have to be looked at next.
    pub fn next_end(&self) -> Option<Timestamp> {
        Some(self.edits.memory.first()).filter(|first| *first < Timestamp::MAX)
    }

    /// Forgets up to `rows_max` remembered ids that end at or before `now`. Returns how many.
    ///
    /// # Errors
    /// When the store cannot be read; nothing has changed then.
    pub fn forget(&mut self, now: Timestamp, rows_max: usize) -> Result<usize, StoreError> {
        let first = self.edits.memory.first();
        if now < first || rows_max == 0 {
            return Ok(0);
        }
        let until = if is_on(Bug::ForgottenEarly) { Timestamp::MAX } else { now };
        let read_max = rows_max.saturating_add(self.edits.memory.hidden(first, until));
        let rows = self.store.ending(first, until, read_max)?;
        let unread = if rows.len() < read_max {
            let behind = Timestamp::from_millis(now.as_millis() + 1);
            self.store.ending(behind, Timestamp::MAX, 1)?.first().map(|(_, state)| state.until)
        } else {
            rows.last().map(|(_, state)| state.until)
        };
        let mut ending: Vec<_> = rows.into_iter().filter(|(key, _)| self.edits.memory.get(key).is_none()).collect();
        ending.extend(self.edits.memory.ending(now).map(|(key, state)| (key.clone(), state)));
        let left = ending.split_off(rows_max.min(ending.len()));
        let forgotten = ending.len();
        for (key, state) in ending {
            self.edits.fold(Mutation::Remember { key, previous: Some(state), state: None });
        }
        let next = left.iter().map(|(_, state)| state.until).chain(unread);
        let next = next.chain(self.edits.memory.first_behind(now)).min();
        self.edits.memory.begins_at(next.unwrap_or(Timestamp::MAX));
        Ok(forgotten)
    }

    /// Returns the earliest wake of the kind.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn next_wake(&self, kind: KindNumber) -> Result<Option<Timestamp>, StoreError> {
        let scan = Scan { kind, from: self.cursor(kind), until: Timestamp::MAX, rows_max: 1 };
        Ok(self.places(scan)?.first().map(|at| at.wake))
    }

    /// Returns the earliest wake of the kind at or behind `from`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn next_wake_from(&self, kind: KindNumber, from: DueKey) -> Result<Option<Timestamp>, StoreError> {
        let scan = Scan { kind, from: self.cursor(kind).max(from), until: Timestamp::MAX, rows_max: 1 };
        Ok(self.places(scan)?.first().map(|at| at.wake))
    }

    /// Returns how many timers of the kind have a wake at or before `now`, counting no further than `rows_max`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn overdue(&self, kind: KindNumber, now: Timestamp, rows_max: usize) -> Result<usize, StoreError> {
        let scan = Scan { kind, from: self.cursor(kind), until: now, rows_max };
        Ok(self.places(scan)?.len())
    }

    /// Returns when a run next needs work of its own.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn next_agenda(&self) -> Result<Option<Timestamp>, StoreError> {
        if self.edits.runs().next().is_none() {
            return Ok(self.committed_agenda);
        }
        Ok(self.merged_agenda(Timestamp::MAX, 1)?.first().map(|(at, _)| *at))
    }

    fn merged_agenda(&self, until: Timestamp, rows_max: usize) -> Result<Vec<(Timestamp, RunKey)>, StoreError> {
        let mut rows = Vec::new();
        if self.committed_agenda.is_some_and(|first| first <= until) {
            let is_listed = |at: Option<Timestamp>| at.is_some_and(|at| at <= until);
            let hidden = self.edits.runs().filter(|(_, edit)| is_listed(edit.before.agenda())).count();
            rows = self.store.agenda(until, rows_max.saturating_add(hidden))?;
            rows.retain(|(_, run)| self.edits.run(run).is_none());
        }
        rows.extend(self.edits.agenda(until).map(|(at, run)| (at, run.clone())));
        rows.sort();
        rows.truncate(rows_max);
        Ok(rows)
    }

    fn places(&self, scan: Scan) -> Result<Vec<DueKey>, StoreError> {
        let fetch = |from, rows_max| self.store.due_keys(scan.kind, from, scan.until, rows_max);
        let mut places = self.committed(scan, fetch, |at| *at)?;
        places.extend(self.open(scan).map(Timer::due_key));
        places.sort();
        places.truncate(scan.rows_max);
        Ok(places)
    }

    /// Returns the changed timers of the scan.
    fn open(&self, scan: Scan) -> impl Iterator<Item = &Timer> {
        let timers = self.edits.live(scan.kind, scan.from).take_while(move |timer| timer.due_key().wake <= scan.until);
        timers.take(scan.rows_max)
    }

    /// Returns the committed rows of the scan that the changes leave as they are: all of them, or at least `rows_max`.
    fn committed<R>(
        &self,
        scan: Scan,
        fetch: impl Fn(DueKey, usize) -> Result<Vec<R>, StoreError>,
        place: impl Fn(&R) -> DueKey,
    ) -> Result<Vec<R>, StoreError> {
        let mut rows = Vec::new();
        let (mut from, mut page_rows) = (scan.from, scan.rows_max);
        // A further page follows only one that had hidden rows, and those are no more than the changes.
        loop {
            let page = fetch(from, page_rows)?;
            let is_last = page.len() < page_rows;
            let Some(last) = page.last().map(&place) else { break };
            rows.extend(page.into_iter().filter(|row| !self.edits.hides(scan.kind, place(row))));
            if is_last || scan.rows_max <= rows.len() {
                break;
            }
            from = last.next();
            page_rows = scan.rows_max.max(NEXT_PAGE_ROWS);
        }
        Ok(rows)
    }
}

impl<S: Store> Lookup for Overlay<S> {
    type Error = StoreError;

    fn locate(&self, key: &TimerKey) -> Result<Option<Located>, StoreError> {
        match self.edits.timer(key) {
            Some(edit) => Ok(edit.after.as_deref().map(Timer::located)),
            None => self.store.locate(key),
        }
    }

    fn remembered(&self, key: &TimerKey) -> Result<Option<Remembered>, StoreError> {
        match self.edits.memory.get(key) {
            Some(edit) => Ok(edit.after),
            // Where nothing is remembered, nobody pays for a look.
            None if self.store.header().remembered == 0 => Ok(None),
            None => self.store.remembered(key),
        }
    }

    fn run(&self, run: &RunKey) -> Result<RunState, StoreError> {
        match self.edits.run(run) {
            Some(edit) => Ok(edit.after.clone()),
            None => self.store.run(run),
        }
    }

    /// A sweep that ends in the open transaction counts until the commit: that costs a look, and is never wrong.
    fn is_sweeping(&self) -> bool {
        self.committed_agenda == Some(Timestamp::EPOCH) || self.edits.is_sweeping()
    }
}

impl<S: Store> View for Overlay<S> {
    fn timer(&self, at: Located) -> Result<Option<Timer>, StoreError> {
        match self.edits.at(at) {
            Some(key) => Ok(self.edits.timer(key).and_then(|edit| edit.after.as_deref().cloned())),
            None => self.store.timer(at),
        }
    }

    fn timers_of(
        &self,
        run: &RunKey,
        after: Option<&TimerId>,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Located)>, StoreError> {
        let mut rows = Vec::new();
        let (mut start, mut page_rows) = (after.cloned(), rows_max);
        // A further page follows only one that had changed rows.
        loop {
            let page = self.store.timers_of(run, start.as_ref(), page_rows)?;
            let is_last = page.len() < page_rows;
            let Some(last) = page.last().map(|(key, _)| key.id.clone()) else { break };
            rows.extend(page.into_iter().filter(|(key, _)| self.edits.timer(key).is_none()));
            if is_last || rows_max <= rows.len() {
                break;
            }
            start = Some(last);
            page_rows = rows_max.max(NEXT_PAGE_ROWS);
        }
        let changed = self.edits.timers_of(run, after).take(rows_max);
        rows.extend(changed.map(|(key, timer)| (key.clone(), timer.located())));
        rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        rows.truncate(rows_max);
        Ok(rows)
    }

    fn due(
        &self,
        kind: KindNumber,
        after: Option<DueKey>,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueRow>, StoreError> {
        let cursor = self.cursor(kind);
        let from = after.map_or(cursor, |after| after.next().max(cursor));
        let scan = Scan { kind, from, until, rows_max };
        let mut rows = self.committed(scan, |from, rows| self.store.due(kind, from, until, rows), DueRow::at)?;
        rows.extend(self.open(scan).map(|timer| DueRow::Timer(Box::new(timer.clone()))));
        rows.sort_by_key(DueRow::at);
        rows.truncate(rows_max);
        Ok(rows)
    }

    fn agenda(&self, until: Timestamp, rows_max: usize) -> Result<Vec<RunKey>, StoreError> {
        Ok(self.merged_agenda(until, rows_max)?.into_iter().map(|(_, run)| run).collect())
    }
}

#[cfg(test)]
#[path = "overlay_test.rs"]
mod tests;
