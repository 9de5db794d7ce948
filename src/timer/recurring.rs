//! Timers that recur.
//!
//! ```text
//!   arm ──▶ Timer { due: occurrence 1, fired: 0 } ──fire──▶ Timer { due: the next after now, fired: 1, new generation } ──▶ …
//!                                                                                     none left ──▶ removed
//! ```
//!
//! Owns [`Recurring`] and how a fire dates its timer anew. Never fires what was missed: one fire stands for all occurrences
//! up to now. Keeps: the next due is after now, so that no tick fires a timer twice.

use super::model::{Generation, Timer};
use crate::calendar::recurrence::Recurrence;
use crate::time::Timestamp;

/// How a timer recurs, and how often it has fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurring {
    /// Its rule and bounds.
    pub recurrence: Recurrence,
    /// How often it has fired.
    pub fired: u64,
}

/// Returns the timer as a resume at `at` leaves it that has passed its due: the occurrences up to then are left out, and count for
/// nothing. `None` if there is none behind them.
pub(super) fn after_pause(
    timer: &Timer,
    recurring: &Recurring,
    at: Timestamp,
    generation: Generation,
) -> Option<Timer> {
    let due = recurring.recurrence.next(at, recurring.fired)?;
    Some(Timer { due, wake: due, generation, ..timer.clone() })
}

/// Returns the timer as a fire at `now` leaves it, under the next generation; `None` if it does not fire again.
pub(super) fn after_fire(timer: &Timer, now: Timestamp, generation: Generation) -> Option<Timer> {
    let recurring = timer.recurring.as_deref()?;
    let fired = recurring.fired.saturating_add(1);
    let due = recurring.recurrence.next(now, fired)?;
    debug_assert!(due > now, "INV-CALENDAR-2: the next occurrence is after now");
    let recurring = Some(Box::new(Recurring { recurrence: recurring.recurrence.clone(), fired }));
    Some(Timer { due, wake: due, generation, attempt: 0, recurring, ..timer.clone() })
}

#[cfg(test)]
#[path = "recurring_test.rs"]
mod tests;
