//! The budget of a tick and the report of it.
//!
//! Owns [`Tick`], which several engines share, and [`TickReport`]. Keeps: the first row of a tick is always begun; a clock that has
//! gone back counts as no time.

use std::time::Duration;

use crate::time::Timestamp;
use crate::timer::budget::{self, Budget};

/// What one tick may still do: one budget for all engines that it is given to, one after the other.
///
/// The time of a tick is that of a clock of the caller, which is given to each call and may have any beginning.
#[derive(Clone, Debug)]
pub struct Tick {
    pub(super) left: budget::Tick,
    started: Option<Duration>,
    /// How many rows were begun.
    pub(super) begun: usize,
}

impl Tick {
    /// Begins a tick. Its time counts from the first reading of the clock.
    pub fn new(budget: Budget) -> Self {
        Self { left: budget::Tick::new(budget), started: None, begun: 0 }
    }

    /// Begins a tick whose time counts from a reading of the clock.
    pub fn started_at(budget: Budget, reading: Duration) -> Self {
        Self { started: Some(reading), ..Self::new(budget) }
    }

    /// Charges work that is done beside the engines in the same tick, if all of it fits into what is left, and returns whether it
    /// does. A charge that does not fit changes nothing.
    pub fn try_charge(&mut self, fired: usize, scanned: usize, bytes: usize) -> bool {
        self.left.try_charge(fired, scanned, bytes)
    }

    /// Returns how long the tick has lasted.
    pub(super) fn elapsed(&mut self, reading: Duration) -> Duration {
        let started = *self.started.get_or_insert(reading);
        reading.saturating_sub(started)
    }

    /// Returns whether no further row may be begun.
    pub(super) fn is_over(&mut self, reading: Duration) -> bool {
        let elapsed = self.elapsed(reading);
        self.begun > 0 && elapsed >= self.left.budget().elapsed_max
    }
}

/// What an engine did in a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TickReport {
    /// Timers that fired. Those that were dated anew are not counted.
    pub fired: usize,
    /// Timers that their handlers have dated anew.
    pub rescheduled: usize,
    /// Timers that rest because their handlers asked for it.
    pub retried: usize,
    /// Timers that rest because their handlers failed or panicked, or returned what cannot be done.
    pub failed: usize,
    /// Timers that do not fire any more: too late, or attempted as often as they may be.
    pub expired: usize,
    /// Timers that were disarmed or replaced before their turn or while their handler ran: its result was dropped.
    pub raced: usize,
    /// Pending timers of kinds that this engine does not know. They are kept, and never looked at.
    pub unknown: u64,
    /// Timers that are due and were left for a later tick, counted up to ten thousand of each kind.
    pub deferred: usize,
    /// Rows that were looked at.
    pub scanned: usize,
    /// Due rows, known so far, that cannot be decoded. They are kept, and hold nobody up.
    pub undecodable: usize,
    /// Whether the budget ended the tick before all that was due had its turn.
    pub stopped_on_budget: bool,
    /// When to call again: now if something was committed and work is left, in five seconds if due rows are left otherwise, and not
    /// later than the earliest wake of a known kind. `None` if there is nothing to wait for.
    pub next_wake: Option<Timestamp>,
    /// The first failures.
    pub failures: Vec<Failure>,
}

/// A timer that failed to fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its tenant.
    pub tenant: String,
    /// Its run.
    pub run: String,
    /// Its name inside the run.
    pub timer_id: String,
    /// The number of the attempt that failed, from 1.
    pub attempt: u32,
    /// What failed.
    pub detail: String,
}
