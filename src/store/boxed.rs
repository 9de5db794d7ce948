//! A store behind a pointer, for an owner that is told when it runs which store it has.
//!
//! Owns nothing but the passing on. Keeps: each call is one call of the store behind.

use super::{Batch, Store, StoreError, StoreHeader};
use crate::time::Timestamp;
use crate::timer::identity::{RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Located, Remembered, RunState, Timer};
use crate::timer::view::DueRow;

impl<S: Store + ?Sized> Store for Box<S> {
    fn locate(&self, key: &TimerKey) -> Result<Option<Located>, StoreError> {
        (**self).locate(key)
    }

    fn timer(&self, at: Located) -> Result<Option<Timer>, StoreError> {
        (**self).timer(at)
    }

    fn remembered(&self, key: &TimerKey) -> Result<Option<Remembered>, StoreError> {
        (**self).remembered(key)
    }

    fn ending(
        &self,
        from: Timestamp,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Remembered)>, StoreError> {
        (**self).ending(from, until, rows_max)
    }

    fn run(&self, run: &RunKey) -> Result<RunState, StoreError> {
        (**self).run(run)
    }

    fn timers_of(
        &self,
        run: &RunKey,
        after: Option<&TimerId>,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Located)>, StoreError> {
        (**self).timers_of(run, after, rows_max)
    }

    fn due(
        &self,
        kind: KindNumber,
        from: DueKey,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueRow>, StoreError> {
        (**self).due(kind, from, until, rows_max)
    }

    fn due_keys(
        &self,
        kind: KindNumber,
        from: DueKey,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueKey>, StoreError> {
        (**self).due_keys(kind, from, until, rows_max)
    }

    fn agenda(&self, until: Timestamp, rows_max: usize) -> Result<Vec<(Timestamp, RunKey)>, StoreError> {
        (**self).agenda(until, rows_max)
    }

    fn pending_of(&self, tenant: &Tenant) -> Result<u64, StoreError> {
        (**self).pending_of(tenant)
    }

    fn header(&self) -> &StoreHeader {
        (**self).header()
    }

    fn write(&mut self, batch: Batch) -> Result<(), StoreError> {
        (**self).write(batch)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        (**self).flush()
    }
}
