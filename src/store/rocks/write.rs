//! Writing a batch: all its rows and its header in one write; without the write-ahead log if a changelog is the log.
//!
//! Owns the rows that a change touches. Never writes anything outside a batch. Keeps: the header in memory is the one of
//! the last batch that was written (INV-STORE-1).

use rocksdb::{WriteBatch, WriteOptions};

use super::{Durability, Family, RocksStore, engine, header, key};
use crate::store::outbox::OutboxChange;
use crate::store::{Batch, RememberedChange, RunChange, Store, StoreError, TimerChange};
use crate::timer::identity::Tenant;

impl RocksStore {
    pub(super) fn write_batch(&mut self, batch: Batch) -> Result<(), StoreError> {
        let mut rows = WriteBatch::default();
        for change in &batch.timers {
            self.change_timer(&mut rows, change);
        }
        for change in &batch.runs {
            self.change_run(&mut rows, change);
        }
        for change in &batch.remembered {
            self.change_remembered(&mut rows, change);
        }
        for (tenant, by) in &batch.tenants {
            self.change_count(&mut rows, tenant, *by)?;
        }
        rows.put_cf(self.family(Family::Meta), key::HEADER, header::encode(&batch.header));
        if let Some(change) = &batch.outbox {
            self.change_outbox(&mut rows, change);
        }
        let mut options = WriteOptions::default();
        match self.durability {
            Durability::Changelog => options.disable_wal(true),
            Durability::Synced => options.set_sync(true),
        }
        self.db.write_opt(rows, &options).map_err(|error| self.error("writing a batch", error))?;
        self.header = batch.header;
        if let Some(change) = batch.outbox {
            self.outbox_bounds = change.bounds;
        }
        Ok(())
    }

    fn change_outbox(&self, rows: &mut WriteBatch, change: &OutboxChange) {
        let meta = self.family(Family::Meta);
        for number in self.outbox_bounds.first..change.bounds.first {
            rows.delete_cf(meta, key::outbox(number));
        }
        for (number, body) in &change.added {
            rows.put_cf(meta, key::outbox(*number), body);
        }
        rows.put_cf(meta, key::ENGINE, engine::encode(change.bounds));
    }

    fn change_timer(&self, rows: &mut WriteBatch, change: &TimerChange) {
        let (due, id) = (self.family(Family::Due), self.family(Family::Id));
        let (before, after) = (change.before, change.after.as_ref());
        // A row that keeps its place is overwritten: a tombstone below it would only be stepped over.
        if let Some(before) = before.filter(|before| after.is_none_or(|(after, _)| after != before)) {
            rows.delete_cf(due, key::place(before));
        }
        match after {
            Some((after, body)) => {
                let place = key::place(*after);
                rows.put_cf(due, place, body);
                rows.put_cf(id, key::id(&change.key), place);
            }
            None => rows.delete_cf(id, key::id(&change.key)),
        }
    }

    fn change_run(&self, rows: &mut WriteBatch, change: &RunChange) {
        let (run, agenda) = (self.family(Family::Run), self.family(Family::Agenda));
        let (before, after) = (change.before.agenda(), change.after.agenda());
        if let Some(before) = before.filter(|_| before != after) {
            rows.delete_cf(agenda, key::agenda(before, &change.run));
        }
        if let Some(after) = after.filter(|_| before != after) {
            rows.put_cf(agenda, key::agenda(after, &change.run), []);
        }
        if change.after.is_empty() {
            rows.delete_cf(run, key::run(&change.run));
        } else {
            rows.put_cf(run, key::run(&change.run), &change.body);
        }
    }

    fn change_remembered(&self, rows: &mut WriteBatch, change: &RememberedChange) {
        let (ended, forget) = (self.family(Family::Ended), self.family(Family::Forget));
        if let Some(before) = change.before {
            rows.delete_cf(forget, key::forget(before.until, &change.key));
        }
        match &change.after {
            Some((after, body)) => {
                rows.put_cf(forget, key::forget(after.until, &change.key), body);
                rows.put_cf(ended, key::id(&change.key), key::end(after.until));
            }
            None => rows.delete_cf(ended, key::id(&change.key)),
        }
    }

    fn change_count(&self, rows: &mut WriteBatch, tenant: &Tenant, by: i64) -> Result<(), StoreError> {
        let meta = self.family(Family::Meta);
        let count = self.pending_of(tenant)?.checked_add_signed(by);
        let count = count.ok_or_else(|| self.corrupt(&format!("tenant {} has a negative count", tenant.as_str())))?;
        if count > 0 {
            rows.put_cf(meta, key::tenant_count(tenant), key::count(count));
        } else {
            rows.delete_cf(meta, key::tenant_count(tenant));
        }
        Ok(())
    }
}
