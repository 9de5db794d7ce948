//! Finds what is due and fires it.
//!
//! Owns [`fire_due`]: one pass over the due rows of the known kinds, in turns, within a [`Tick`].
//!
//! Never fires early (INV-FIRE-1), never fires a row of a swept generation, and never lets a row that cannot be read
//! hold up the rows behind it: such a row stays, and the kind's cursor stays before it (INV-CURSOR-1).

use std::collections::BTreeMap;
use std::time::Duration;

use super::budget::Tick;
use super::identity::RunKey;
use super::kind::KindNumber;
use super::model::{DueKey, Generation, Timer};
use super::outcome::{FiredEvent, Mutation, Outcome};
use super::recurring;
use super::sweep;
use super::view::{DueRow, View};
use crate::planted::{Bug, is_on};
use crate::time::Timestamp;

/// Most rows read at once.
const PAGE_ROWS: usize = 512;

/// When a pass happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The tick's time.
    pub now: Timestamp,
    /// The next generation to give: timers that recur are dated anew.
    pub next_generation: Generation,
}

/// What a pass found, beside its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FireReport {
    /// Rows looked at.
    pub scanned: usize,
    /// Rows that could not be decoded, with what is wrong; they are kept.
    pub undecodable: Vec<(KindNumber, DueKey, String)>,
    /// The kinds with due work left.
    pub unfinished: Vec<KindNumber>,
}

/// Fires what is due of `kinds`, in their order: the caller rotates it, so that kinds take turns.
///
/// `elapsed` tells how long the tick has lasted.
///
/// # Errors
/// When the state cannot be read.
pub fn fire_due<V: View>(
    view: &V,
    kinds: &[KindNumber],
    moment: Moment,
    tick: &mut Tick,
    elapsed: &dyn Fn() -> Duration,
) -> Result<(Outcome, FireReport), V::Error> {
    let mut outcome = Outcome::default();
    let mut report = FireReport::default();
    let mut swept = BTreeMap::new();
    let Moment { now, next_generation: mut next } = moment;
    for kind in kinds {
        let mut pass = Pass { view, kind: *kind, now, next: &mut next, stuck: false, advance: None, swept: &mut swept };
        if !pass.run(tick, elapsed, &mut outcome, &mut report)? {
            report.unfinished.push(*kind);
        }
        if is_on(Bug::CursorPassesBudget) {
            pass.advance =
                Some(DueKey { wake: Timestamp::from_millis(now.as_millis() + 1), generation: Generation(0) });
        }
        if let Some(to) = pass.advance {
            outcome.mutations.push(Mutation::Advance { kind: *kind, to });
        }
    }
    for (run, rows) in swept {
        let previous = view.run(&run)?;
        outcome.mutations.push(sweep::count(run, previous, rows));
    }
    Ok((outcome, report))
}

/// One kind's part of a tick.
struct Pass<'a, V> {
    view: &'a V,
    kind: KindNumber,
    now: Timestamp,
    /// The next generation to give.
    next: &'a mut Generation,
    /// Whether a row was left behind, so that the cursor must not pass it.
    stuck: bool,
    advance: Option<DueKey>,
    /// How many swept rows of each run were removed on the way.
    swept: &'a mut BTreeMap<RunKey, u64>,
}

impl<V: View> Pass<'_, V> {
    /// Returns whether the kind has no due row left.
    fn run(
        &mut self,
        tick: &mut Tick,
        elapsed: &dyn Fn() -> Duration,
        outcome: &mut Outcome,
        report: &mut FireReport,
    ) -> Result<bool, V::Error> {
        let mut after = None;
        loop {
            let rows_max = tick.allowance(self.kind, elapsed()).min(PAGE_ROWS);
            if rows_max == 0 {
                return Ok(self.view.due(self.kind, after, self.now, 1)?.is_empty());
            }
            let page = self.view.due(self.kind, after, self.now, rows_max)?;
            let is_last = page.len() < rows_max;
            for row in page {
                if tick.allowance(self.kind, elapsed()) == 0 {
                    return Ok(false);
                }
                tick.charge_scan();
                report.scanned += 1;
                after = Some(row.at());
                match row {
                    DueRow::Undecodable { at, problem } => {
                        self.stuck = true;
                        report.undecodable.push((self.kind, at, problem));
                    }
                    DueRow::Timer(timer) => self.take(*timer, tick, outcome)?,
                }
            }
            if is_last {
                return Ok(true);
            }
        }
    }

    fn take(&mut self, timer: Timer, tick: &mut Tick, outcome: &mut Outcome) -> Result<(), V::Error> {
        assert!(timer.wake <= self.now, "INV-FIRE-1: a timer is never looked at before its wake");
        assert!(timer.due <= self.now, "INV-FIRE-1: a timer never fires before its due");
        let place = timer.due_key();
        let is_swept = if self.view.is_sweeping() {
            let run = self.view.run(&timer.key.run)?;
            run.swept(timer.generation)
        } else {
            false
        };
        if !self.stuck || is_on(Bug::CursorPassesUndecodable) {
            self.advance = Some(place.next());
        }
        if is_swept && !is_on(Bug::SweptFires) {
            // Removed here, so that the swept rows of a large run hide nothing behind them for longer than one look.
            outcome.mutations.push(Mutation::Remove { key: timer.key.clone(), previous: timer.located() });
            *self.swept.entry(timer.key.run).or_insert(0) += 1;
            return Ok(());
        }
        tick.charge_fire(self.kind, emitted_bytes(&timer));
        if !is_on(Bug::FiredRowKept) {
            let change = self.own_change(&timer);
            outcome.mutations.push(change);
        }
        let attempt = timer.attempt.saturating_add(1);
        outcome.fired.push(FiredEvent { timer, attempt, fired: self.now });
        Ok(())
    }
}

impl<V> Pass<'_, V> {
    /// Returns what a fire does to the timer itself: it is gone, or dated anew.
    fn own_change(&mut self, timer: &Timer) -> Mutation {
        let previous = timer.located();
        match recurring::after_fire(timer, self.now, *self.next) {
            Some(dated) => {
                *self.next = Generation(self.next.0.saturating_add(1));
                Mutation::Put { timer: Box::new(dated), previous: Some(previous) }
            }
            None => Mutation::Remove { key: timer.key.clone(), previous },
        }
    }
}

fn emitted_bytes(timer: &Timer) -> usize {
    let outbox: usize = timer.outbox.iter().filter_map(|record| record.value.as_ref()).map(bytes::Bytes::len).sum();
    timer.payload.as_ref().map_or(0, bytes::Bytes::len) + outbox
}

#[cfg(test)]
#[path = "fire_test.rs"]
mod tests;
