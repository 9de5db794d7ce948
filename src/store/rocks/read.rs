//! Reading rows, and the seam.
//!
//! Owns the walks along a family. Never steps past the last row of a page: behind it may be a field of tombstones.
//! Keeps: a walk has both bounds, so that it starts at its first row and ends at its last without looking further.

use rocksdb::ReadOptions;

use super::{Family, RocksStore, key};
use crate::store::{Batch, Store, StoreError, StoreHeader, row};
use crate::time::Timestamp;
use crate::timer::identity::{RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Located, Remembered, RunState, Timer};
use crate::timer::view::DueRow;
use crate::wire::remembered::decode_remembered;
use crate::wire::state::decode_run;

impl RocksStore {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<rocksdb::DBPinnableSlice<'_>>, StoreError> {
        self.db.get_pinned_cf(self.family(family), key).map_err(|error| self.error("reading", error))
    }

    /// Reads up to `rows_max` rows from the lower bound on and below the upper one.
    pub(super) fn walk<R>(
        &self,
        family: Family,
        (lower, upper): (Vec<u8>, Vec<u8>),
        rows_max: usize,
        read: impl Fn(&[u8], &[u8]) -> Result<R, StoreError>,
    ) -> Result<Vec<R>, StoreError> {
        let mut rows = Vec::new();
        if rows_max == 0 || upper <= lower {
            return Ok(rows);
        }
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(upper);
        let mut iterator = self.db.raw_iterator_cf_opt(self.family(family), options);
        iterator.seek(&lower);
        while let Some((key, value)) = iterator.item() {
            rows.push(read(key, value)?);
            if rows_max <= rows.len() {
                return Ok(rows);
            }
            iterator.next();
        }
        iterator.status().map_err(|error| self.error("scanning", error))?;
        Ok(rows)
    }

    fn read_remembered(&self, key: &TimerKey, body: &[u8]) -> Result<Remembered, StoreError> {
        decode_remembered(body).map_err(|error| self.corrupt(&format!("what is remembered of {key}: {error}")))
    }

    fn place(&self, bytes: &[u8]) -> Result<Located, StoreError> {
        key::read_place(bytes).map_err(|error| self.corrupt(&error))
    }
}

impl Store for RocksStore {
    fn locate(&self, key: &TimerKey) -> Result<Option<Located>, StoreError> {
        self.get(Family::Id, &key::id(key))?.map(|bytes| self.place(&bytes)).transpose()
    }

    fn timer(&self, at: Located) -> Result<Option<Timer>, StoreError> {
        let body = self.get(Family::Due, &key::place(at))?;
        Ok(body.and_then(|body| row::read_timer(at, &body)))
    }

    fn remembered(&self, key: &TimerKey) -> Result<Option<Remembered>, StoreError> {
        let Some(until) = self.get(Family::Ended, &key::id(key))? else {
            return Ok(None);
        };
        let until = key::read_end(&until).map_err(|error| self.corrupt(&error))?;
        let body = self.get(Family::Forget, &key::forget(until, key))?;
        let body = body.ok_or_else(|| self.corrupt(&format!("what is remembered of {key} is missing")))?;
        self.read_remembered(key, &body).map(Some)
    }

    fn ending(
        &self,
        from: Timestamp,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Remembered)>, StoreError> {
        self.walk(Family::Forget, key::forget_range(from, until), rows_max, |key, body| {
            let (_, key) = key::read_forget(key).map_err(|error| self.corrupt(&error))?;
            let state = self.read_remembered(&key, body)?;
            Ok((key, state))
        })
    }

    fn run(&self, run: &RunKey) -> Result<RunState, StoreError> {
        let Some(body) = self.get(Family::Run, &key::run(run))? else {
            return Ok(RunState::default());
        };
        decode_run(&body).map_err(|error| self.corrupt(&format!("run {run}: {error}")))
    }

    fn timers_of(
        &self,
        run: &RunKey,
        after: Option<&TimerId>,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Located)>, StoreError> {
        self.walk(Family::Id, key::id_range(run, after), rows_max, |key, value| {
            let key = key::read_id(key).map_err(|error| self.corrupt(&error))?;
            Ok((key, self.place(value)?))
        })
    }

    fn due(
        &self,
        kind: KindNumber,
        from: DueKey,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueRow>, StoreError> {
        self.walk(Family::Due, key::due_range(kind, from, until), rows_max, |key, body| {
            Ok(row::read(self.place(key)?, body))
        })
    }

    fn due_keys(
        &self,
        kind: KindNumber,
        from: DueKey,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueKey>, StoreError> {
        self.walk(Family::Due, key::due_range(kind, from, until), rows_max, |key, _| Ok(self.place(key)?.at))
    }

    fn agenda(&self, until: Timestamp, rows_max: usize) -> Result<Vec<(Timestamp, RunKey)>, StoreError> {
        let all = (Vec::new(), key::agenda_end(until));
        self.walk(Family::Agenda, all, rows_max, |key, _| key::read_agenda(key).map_err(|error| self.corrupt(&error)))
    }

    fn pending_of(&self, tenant: &Tenant) -> Result<u64, StoreError> {
        let bytes = self.get(Family::Meta, &key::tenant_count(tenant))?;
        let count = bytes.map(|bytes| key::read_count(&bytes).map_err(|error| self.corrupt(&error))).transpose()?;
        Ok(count.unwrap_or_default())
    }

    fn header(&self) -> &StoreHeader {
        &self.header
    }

    fn write(&mut self, batch: Batch) -> Result<(), StoreError> {
        self.write_batch(batch)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.flush_all()
    }
}
