//! A store in memory: for the simulator, for tests, and for an embedded engine that needs no disk.
//!
//! Owns ordered maps of the same rows as the store on disk. Never fails, and forgets all when dropped.
//! Keeps: a batch fits the rows that it changes (INV-STORE-4); one that does not is a programmer's fault and ends the process.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use bytes::Bytes;

use super::outbox::{Outbox, OutboxBounds};
use super::{Batch, RememberedChange, RunChange, Store, StoreError, StoreHeader, TimerChange, row};
use crate::time::Timestamp;
use crate::timer::identity::{RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Located, Remembered, RunState, Timer};
use crate::timer::view::DueRow;

/// A partition's committed state, in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    ids: BTreeMap<TimerKey, Located>,
    due: BTreeMap<(KindNumber, DueKey), Bytes>,
    runs: BTreeMap<RunKey, RunState>,
    agenda: BTreeSet<(Timestamp, RunKey)>,
    remembered: BTreeMap<TimerKey, Remembered>,
    ends: BTreeMap<Timestamp, BTreeSet<TimerKey>>,
    tenants: BTreeMap<Tenant, u64>,
    header: StoreHeader,
    outbox: BTreeMap<u64, Bytes>,
    outbox_bounds: OutboxBounds,
}

impl MemoryStore {
    fn change_timer(&mut self, change: TimerChange) {
        assert_eq!(
            self.ids.get(&change.key).copied(),
            change.before,
            "INV-STORE-4: the batch knows where {} was",
            change.key
        );
        if let Some(before) = change.before {
            let body = self.due.remove(&(before.kind, before.at));
            assert!(body.is_some(), "the row of {} was in the due order", change.key);
        }
        match change.after {
            Some((after, body)) => {
                let displaced = self.due.insert((after.kind, after.at), body);
                assert!(displaced.is_none(), "no two timers share a place (INV-STORE-3), {}", change.key);
                self.ids.insert(change.key, after);
            }
            None => {
                self.ids.remove(&change.key);
            }
        }
    }

    fn change_run(&mut self, change: RunChange) {
        let known = self.runs.remove(&change.run).unwrap_or_default();
        assert_eq!(known, change.before, "INV-STORE-4: the batch knows what was known of run {}", change.run);
        if let Some(at) = change.before.agenda() {
            self.agenda.remove(&(at, change.run.clone()));
        }
        if let Some(at) = change.after.agenda() {
            self.agenda.insert((at, change.run.clone()));
        }
        if !change.after.is_empty() {
            self.runs.insert(change.run, change.after);
        }
    }

    fn change_remembered(&mut self, change: RememberedChange) {
        let known = self.remembered.remove(&change.key);
        assert_eq!(known, change.before, "INV-STORE-4: the batch knows what was remembered of {}", change.key);
        if let Some(before) = change.before {
            let ends = self.ends.get_mut(&before.until).expect("what is remembered has its end");
            ends.remove(&change.key);
            if ends.is_empty() {
                self.ends.remove(&before.until);
            }
        }
        if let Some((after, _)) = change.after {
            self.ends.entry(after.until).or_default().insert(change.key.clone());
            self.remembered.insert(change.key, after);
        }
    }

    fn change_count(&mut self, tenant: Tenant, by: i64) {
        let count = self.tenants.remove(&tenant).unwrap_or_default();
        let count = count.checked_add_signed(by).expect("a tenant's count is never negative (L8)");
        if count > 0 {
            self.tenants.insert(tenant, count);
        }
    }
}

impl Store for MemoryStore {
    fn locate(&self, key: &TimerKey) -> Result<Option<Located>, StoreError> {
        Ok(self.ids.get(key).copied())
    }

    fn timer(&self, at: Located) -> Result<Option<Timer>, StoreError> {
        Ok(self.due.get(&(at.kind, at.at)).and_then(|body| row::read_timer(at, body)))
    }

    fn remembered(&self, key: &TimerKey) -> Result<Option<Remembered>, StoreError> {
        Ok(self.remembered.get(key).copied())
    }

    fn ending(
        &self,
        from: Timestamp,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Remembered)>, StoreError> {
        let ends = self.ends.range(from..).take_while(|(end, _)| **end <= until);
        let keys = ends.flat_map(|(_, keys)| keys).take(rows_max);
        Ok(keys.filter_map(|key| self.remembered.get(key).map(|state| (key.clone(), *state))).collect())
    }

    fn run(&self, run: &RunKey) -> Result<RunState, StoreError> {
        Ok(self.runs.get(run).cloned().unwrap_or_default())
    }

    fn timers_of(
        &self,
        run: &RunKey,
        after: Option<&TimerId>,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Located)>, StoreError> {
        let behind = self.ids.range((TimerKey::scan_start(run, after), Bound::Unbounded));
        let rows = behind.take_while(|(key, _)| key.run == *run).take(rows_max);
        Ok(rows.map(|(key, at)| (key.clone(), *at)).collect())
    }

    fn due(
        &self,
        kind: KindNumber,
        from: DueKey,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueRow>, StoreError> {
        let rows = self.due.range((kind, from)..).take_while(|((k, at), _)| *k == kind && at.wake <= until);
        Ok(rows.take(rows_max).map(|((_, at), body)| row::read(Located { kind, at: *at }, body)).collect())
    }

    fn due_keys(
        &self,
        kind: KindNumber,
        from: DueKey,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueKey>, StoreError> {
        let rows = self.due.range((kind, from)..).take_while(|((k, at), _)| *k == kind && at.wake <= until);
        Ok(rows.take(rows_max).map(|((_, at), _)| *at).collect())
    }

    fn agenda(&self, until: Timestamp, rows_max: usize) -> Result<Vec<(Timestamp, RunKey)>, StoreError> {
        Ok(self.agenda.iter().take_while(|(at, _)| *at <= until).take(rows_max).cloned().collect())
    }

    fn pending_of(&self, tenant: &Tenant) -> Result<u64, StoreError> {
        Ok(self.tenants.get(tenant).copied().unwrap_or_default())
    }

    fn header(&self) -> &StoreHeader {
        &self.header
    }

    fn write(&mut self, batch: Batch) -> Result<(), StoreError> {
        for change in batch.timers {
            self.change_timer(change);
        }
        for change in batch.runs {
            self.change_run(change);
        }
        for change in batch.remembered {
            self.change_remembered(change);
        }
        for (tenant, by) in batch.tenants {
            self.change_count(tenant, by);
        }
        self.header = batch.header;
        if let Some(change) = batch.outbox {
            self.outbox = self.outbox.split_off(&change.bounds.first);
            self.outbox.extend(change.added);
            self.outbox_bounds = change.bounds;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Outbox for MemoryStore {
    fn bounds(&self) -> OutboxBounds {
        self.outbox_bounds
    }

    fn entries(&self, from: u64, rows_max: usize) -> Result<Vec<(u64, Bytes)>, StoreError> {
        let entries = self.outbox.range(from..).take(rows_max);
        Ok(entries.map(|(number, body)| (*number, body.clone())).collect())
    }
}
