//! Recurrence by a cron expression.
//!
//! Owns [`Cron`] and what its expression may be: the five fields of POSIX, with lists, ranges, steps and names, and a field of
//! seconds before them if wanted. The parser and the search on the civil calendar are croner's; what a change of the clock
//! does is ours, as docs/time.md publishes it. Never takes what crons disagree about: `L`, `W`, `#`, `?`, years, `*/2` for a
//! day that the other day field restricts too.
//! Keeps: an expression has an occurrence in every eight years; what comes after an instant is strictly after it.

use std::str::FromStr as _;

use jiff::civil::DateTime;

use super::ScheduleError;
use super::cron_fields::{self, Expression};
use super::naive::Naive;
use super::zone::{Disambiguation, Zone};
use crate::text::shown;
use crate::time::Timestamp;

/// Most changes of the clock that a search goes over. Zones change it at most four times a year, and an occurrence is at most
/// eight years away.
const CHANGES_MAX: usize = 64;

/// A cron expression in a zone.
///
/// # Examples
/// ```
/// use punctual::calendar::cron::Cron;
/// use punctual::calendar::zone::Zone;
/// use punctual::time::Timestamp;
///
/// let cron = Cron::parse("0 9 * * MON-FRI", Zone::get("Europe/Berlin")?)?;
/// let saturday = Timestamp::parse("2026-12-05T12:00:00Z")?;
/// let monday = cron.after(saturday).ok_or("no occurrence")?;
/// assert_eq!(monday.to_string(), "2026-12-07T08:00:00.000Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    zone: Zone,
    /// The text as croner takes it. Its own form of it is a hundred times as large, and many timers wait in memory.
    fields: String,
    /// Whether a field of the time of day has a `*`: such a job follows the clock, others have their times.
    follows_clock: bool,
}

impl Cron {
    /// Parses an expression such as `30 8 * * 1-5`, or `@daily`.
    ///
    /// # Errors
    /// When it is not one, or names no date that exists, as the 30th of February.
    pub fn parse(text: &str, zone: Zone) -> Result<Self, ScheduleError> {
        let refused = |problem: String| {
            ScheduleError::new(format!(
                "`{}` is not a usable cron expression: {problem}; write minute, hour, day of month, month and day of week, \
                 such as `30 8 * * 1-5`",
                shown(text)
            ))
        };
        let Expression { fields, follows_clock } = cron_fields::parse(text).map_err(refused)?;
        let schedule = croner::Cron::from_str(&fields).map_err(|error| refused(error.to_string()))?;
        cron_fields::refuse_impossible(&schedule.pattern).map_err(refused)?;
        Ok(Self { text: text.to_owned(), zone, fields, follows_clock })
    }

    /// Returns the expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the zone.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Returns the first occurrence strictly after an instant, or `None` if there is none that can be computed.
    pub fn after(&self, at: Timestamp) -> Option<Timestamp> {
        let search = Search { zone: &self.zone, schedule: croner::Cron::from_str(&self.fields).ok()? };
        if self.follows_clock { search.next_shown(at) } else { search.next_resolved(at) }
    }
}

/// An expression that is searched.
struct Search<'a> {
    zone: &'a Zone,
    schedule: croner::Cron,
}

impl Search<'_> {
    /// Finds the next instant at which a clock shows a time of the expression: skipped times never, repeated ones twice.
    fn next_shown(&self, at: Timestamp) -> Option<Timestamp> {
        // From `from` on the offset is the same until the next change; whether `from` itself is a candidate comes with it.
        let (mut from, mut is_inclusive) = (at, false);
        for _ in 0..CHANGES_MAX {
            let change = self.zone.next_change(from);
            let civil = self.next_civil(self.zone.civil(from)?, is_inclusive)?;
            let found = self.zone.at_offset_of(from, civil)?;
            match change {
                Some(change) if found >= change => (from, is_inclusive) = (change, true),
                Some(_) | None => return Some(found),
            }
        }
        None
    }

    /// Finds the next instant that a time of the expression resolves to: skipped times move forward by the length of the
    /// gap, repeated ones are the earlier.
    fn next_resolved(&self, at: Timestamp) -> Option<Timestamp> {
        let (mut civil, mut is_inclusive) = (self.zone.civil(at)?, false);
        // Times of a gap that has just passed may resolve to instants that are still to come.
        if let Some(gap) = self.zone.last_gap(at)
            && gap.change.checked_add_millis(gap.length_s.checked_mul(1000)?).is_some_and(|end| at < end)
        {
            (civil, is_inclusive) = (gap.start, true);
        }
        let mut best: Option<Timestamp> = None;
        loop {
            civil = self.next_civil(civil, is_inclusive)?;
            is_inclusive = false;
            let found = self.zone.resolve(civil, Disambiguation::Compatible).ok()?;
            // A time of a gap may resolve to an instant behind that of a later time: go on until none can come before.
            let is_skipped = self.zone.civil(found)? != civil;
            best = if found <= at { best } else { Some(best.map_or(found, |best| best.min(found))) };
            if best.is_some() && !is_skipped {
                return best;
            }
        }
    }

    fn next_civil(&self, civil: DateTime, is_inclusive: bool) -> Option<DateTime> {
        // Occurrences are whole seconds: what is within a second is behind its start.
        let is_whole = civil.subsec_nanosecond() == 0;
        self.schedule.find_next_occurrence(&Naive(civil), is_inclusive && is_whole).ok().map(|found| found.0)
    }
}

#[cfg(test)]
#[path = "cron_test.rs"]
mod tests;
