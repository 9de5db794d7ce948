//! Calendar time: from what people write (a civil time, a cron expression, five business days) to instants.
//!
//! ```text
//!   civil time + zone ─────▶ LocalTime ──┐
//!   PT15M, P1M + anchor ───▶ Every ──────┤
//!   0 9 * * 1-5 + zone ────▶ Cron ───────┼──▶ Timestamp
//!   rule + parameters ─────▶ Calendar ───┘
//! ```
//!
//! Owns zones and the rules for what a change of the clock does to a civil time, recurrence, and the [`Calendar`] seam with
//! the rules that come with it. Never does I/O, reads a clock, or looks at the zones of the machine: the zone database is
//! part of the binary. Keeps: the same input gives the same instant wherever it runs (INV-CALENDAR-1), and what comes *after*
//! an instant is strictly after it (INV-CALENDAR-2); all arithmetic is checked.

use std::fmt;

use crate::time::Timestamp;

pub mod zone;

pub mod local;

pub mod cron;
mod cron_fields;
pub mod every;
pub mod interval;
mod naive;
pub mod recurrence;

pub mod business;
pub mod digest;
pub mod parameters;
pub mod roll;
pub mod rules;
pub mod working_days;

#[cfg(test)]
mod vectors_test;

/// Resolves named rules, such as *five business days*, against calendars that are data.
///
/// An implementation is a pure function of its arguments and its own data: no clock, no I/O, and no change of the data
/// behind a shared reference. [`rules::Rules`] is the one that the service uses, [`rules::FixedRules`] the part of it that
/// needs no data; an application may bring its own.
///
/// # Examples
/// ```
/// use punctual::calendar::Calendar;
/// use punctual::calendar::parameters::Parameters;
/// use punctual::calendar::rules::FixedRules;
/// use punctual::time::Timestamp;
///
/// let calendar: Box<dyn Calendar> = Box::new(FixedRules);
/// let from = Timestamp::parse("2026-12-01T09:00:00Z")?;
/// let due = calendar.resolve(from, "hours", &Parameters::of([("n", 36)]))?;
/// assert_eq!(due.to_string(), "2026-12-02T21:00:00.000Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Calendar: fmt::Debug + Send + Sync {
    /// Returns the instant that a rule names, strictly after `from`.
    ///
    /// # Errors
    /// When the rule is not known, when parameters are bad (all of them are told at once), or when the instant, or a step
    /// on the way to it, is out of the range that is covered.
    fn resolve(
        &self,
        from: Timestamp,
        rule: &str,
        parameters: &parameters::Parameters,
    ) -> Result<Timestamp, CalendarError>;

    /// Returns the digest of all that a resolution depends on beside its arguments: calendars and zone database.
    fn digest(&self) -> digest::Digest;
}

/// Why a rule does not give an instant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// No rule has this name. Another name is needed.
    #[error("rule `{rule}` is not known; use one of {}", known.join(", "))]
    UnknownRule {
        /// The name, shortened if it is long.
        rule: String,
        /// The names that are known.
        known: Vec<String>,
    },
    /// Parameters are missing, or are not what the rule needs. Others are needed.
    #[error("{}", .0.join("; "))]
    BadParameters(
        /// One sentence for each bad parameter, in the order of their names.
        Vec<String>,
    ),
    /// The instant is beyond what can be computed or what the calendar covers. Another `from`, or more data, is needed.
    #[error("{0}")]
    OutOfRange(
        /// One sentence that names the limit.
        String,
    ),
}

/// Why a text is not a zone, a civil time, an interval or a cron expression, or has no instant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScheduleError(String);

impl ScheduleError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }
}
