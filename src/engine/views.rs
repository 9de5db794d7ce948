//! The state as a tick or a claim may see it.
//!
//! Owns [`Free`], which hides what is in somebody's hands, and [`Single`], which shows one row. Never changes anything. Keeps: a page is
//! shorter than asked for only if it is the last.

use std::collections::BTreeSet;

use super::state::Above;
use crate::store::StoreError;
use crate::time::Timestamp;
use crate::timer::identity::{RunKey, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Generation, Located, Remembered, RunState, Timer};
use crate::timer::view::{DueRow, Lookup, View};

/// Timers in the hands of a handler, or of the application.
pub(super) type InFlight = BTreeSet<(TimerKey, Generation)>;
/// The places of rows that cannot be decoded.
pub(super) type Poisoned = BTreeSet<(KindNumber, DueKey)>;

/// What is due and in nobody's hands. Rows that are known to be undecodable are passed by, so that they cost no budget.
#[derive(Clone, Copy)]
pub(super) struct Free<'a> {
    pub(super) above: &'a Above,
    pub(super) in_flight: &'a InFlight,
    pub(super) poisoned: &'a Poisoned,
}

impl Free<'_> {
    fn is_free(&self, kind: KindNumber, row: &DueRow) -> bool {
        match row {
            // The set is empty nearly always, and then no key is cloned.
            DueRow::Timer(timer) => {
                self.in_flight.is_empty() || !self.in_flight.contains(&(timer.key.clone(), timer.generation))
            }
            DueRow::Undecodable { at, .. } => !self.poisoned.contains(&(kind, *at)),
        }
    }
}

impl Lookup for Free<'_> {
    type Error = StoreError;

    fn locate(&self, key: &TimerKey) -> Result<Option<Located>, StoreError> {
        self.above.locate(key)
    }

    fn remembered(&self, key: &TimerKey) -> Result<Option<Remembered>, StoreError> {
        self.above.remembered(key)
    }

    fn run(&self, run: &RunKey) -> Result<RunState, StoreError> {
        self.above.run(run)
    }

    fn is_sweeping(&self) -> bool {
        self.above.is_sweeping()
    }
}

impl View for Free<'_> {
    fn timer(&self, at: Located) -> Result<Option<Timer>, StoreError> {
        self.above.timer(at)
    }

    fn timers_of(
        &self,
        run: &RunKey,
        after: Option<&TimerId>,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Located)>, StoreError> {
        self.above.timers_of(run, after, rows_max)
    }

    fn due(
        &self,
        kind: KindNumber,
        after: Option<DueKey>,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueRow>, StoreError> {
        let mut rows = Vec::new();
        let mut after = after;
        // A further page follows only one that had hidden rows, and those are no more than are in flight or poisoned.
        loop {
            let wanted = rows_max - rows.len();
            let page = self.above.due(kind, after, until, wanted)?;
            let is_last = page.len() < wanted;
            after = page.last().map(DueRow::at).or(after);
            rows.extend(page.into_iter().filter(|row| self.is_free(kind, row)));
            if is_last || rows.len() == rows_max {
                return Ok(rows);
            }
        }
    }

    fn agenda(&self, until: Timestamp, rows_max: usize) -> Result<Vec<RunKey>, StoreError> {
        self.above.agenda(until, rows_max)
    }
}

/// One due timer, and the state around it.
#[derive(Clone, Copy)]
pub(super) struct Single<'a> {
    pub(super) above: &'a Above,
    pub(super) timer: &'a Timer,
}

impl Lookup for Single<'_> {
    type Error = StoreError;

    fn locate(&self, key: &TimerKey) -> Result<Option<Located>, StoreError> {
        self.above.locate(key)
    }

    fn remembered(&self, key: &TimerKey) -> Result<Option<Remembered>, StoreError> {
        self.above.remembered(key)
    }

    fn run(&self, run: &RunKey) -> Result<RunState, StoreError> {
        self.above.run(run)
    }

    fn is_sweeping(&self) -> bool {
        self.above.is_sweeping()
    }
}

impl View for Single<'_> {
    fn timer(&self, at: Located) -> Result<Option<Timer>, StoreError> {
        self.above.timer(at)
    }

    fn timers_of(
        &self,
        run: &RunKey,
        after: Option<&TimerId>,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Located)>, StoreError> {
        self.above.timers_of(run, after, rows_max)
    }

    fn due(
        &self,
        kind: KindNumber,
        after: Option<DueKey>,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueRow>, StoreError> {
        let place = self.timer.due_key();
        let is_shown =
            kind == self.timer.kind && after.is_none_or(|after| after < place) && place.wake <= until && rows_max > 0;
        Ok(if is_shown { vec![DueRow::Timer(Box::new(self.timer.clone()))] } else { Vec::new() })
    }

    fn agenda(&self, until: Timestamp, rows_max: usize) -> Result<Vec<RunKey>, StoreError> {
        self.above.agenda(until, rows_max)
    }
}
