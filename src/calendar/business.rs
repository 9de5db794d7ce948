//! The rule `business`: so many working days later.
//!
//! ```text
//!   from ──zone──▶ date, time ──time ≥ cut_off? next date──▶ date ──off? roll──▶ day 0 ──n working days──▶ date, at ──zone──▶ due
//! ```
//!
//! Owns the rule's parameters. Never knows which days are off: a calendar does.
//! Keeps: the result is strictly after `from`.

use std::collections::BTreeMap;

use jiff::civil::{Date, DateTime, Time};

use super::CalendarError;
use super::local::parse_time;
use super::parameters::{Parameters, Reading};
use super::roll::Roll;
use super::working_days::{Uncounted, WorkingDays};
use super::zone::{Disambiguation, Zone};
use crate::text::shown;
use crate::time::Timestamp;

/// The rule's name.
pub(super) const NAME: &str = "business";

/// The rule with its parameters.
pub(super) struct Business<'a> {
    calendar: &'a WorkingDays,
    days: i64,
    zone: Zone,
    cut_off: Option<Time>,
    at: Option<Time>,
    roll: Roll,
}

impl<'a> Business<'a> {
    /// Reads the parameters.
    ///
    /// # Errors
    /// When some are bad: all of them are told.
    pub(super) fn read(
        parameters: &Parameters,
        calendars: &'a BTreeMap<String, WorkingDays>,
    ) -> Result<Self, CalendarError> {
        let mut reading = Reading::new(parameters);
        let days = reading.positive("n");
        let calendar = reading.text("calendar", |id| {
            let known = || calendars.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            calendars.get(id).ok_or_else(|| format!("no calendar is named `{}`; loaded are {}", shown(id), known()))
        });
        let zone = reading.text("zone", Zone::get);
        let cut_off = reading.optional_text("cut_off", parse_time);
        let at = reading.optional_text("at", parse_time);
        let roll = reading.optional_text("roll", Roll::parse).unwrap_or_default();
        reading.end()?;
        let (Some(days), Some(calendar), Some(zone)) = (days, calendar, zone) else {
            return Err(CalendarError::BadParameters(vec!["parameters n, calendar and zone are needed".to_owned()]));
        };
        Ok(Self { calendar, days, zone, cut_off, at, roll })
    }

    /// Returns the instant, strictly after `from`.
    pub(super) fn resolve(&self, from: Timestamp) -> Result<Timestamp, CalendarError> {
        let beyond = || CalendarError::OutOfRange(format!("{from} is outside the years that can be computed"));
        let civil = self.zone.civil(from).ok_or_else(beyond)?;
        let is_cut_off = self.cut_off.is_some_and(|cut_off| civil.time() >= cut_off);
        let start = if is_cut_off { civil.date().tomorrow().map_err(|_| beyond())? } else { civil.date() };
        let date = self.calendar.count(start, self.days, self.roll).map_err(|why| self.refusal(start, why))?;
        self.instant(DateTime::from_parts(date, self.at.unwrap_or(civil.time())), from)
    }

    fn instant(&self, civil: DateTime, from: Timestamp) -> Result<Timestamp, CalendarError> {
        // Where the clock goes back over midnight, the earlier of two equal times may lie before `from`.
        [Disambiguation::Compatible, Disambiguation::Later]
            .into_iter()
            .filter_map(|policy| self.zone.resolve(civil, policy).ok())
            .find(|due| *due > from)
            .ok_or_else(|| {
                let zone = &self.zone;
                CalendarError::OutOfRange(format!(
                    "{civil} in {zone} is not after {from}, or outside the years to 9999"
                ))
            })
    }

    fn refusal(&self, start: Date, why: Uncounted) -> CalendarError {
        let content = self.calendar.content();
        match why {
            Uncounted::NotCovered => CalendarError::OutOfRange(format!(
                "{} working days from {start} leave calendar `{}`, version {}, which covers {} to {}; load a longer one",
                self.days, content.id, content.version, content.first, content.last
            )),
            Uncounted::DayOff => CalendarError::BadParameters(vec![format!(
                "parameter `roll` is reject, and {start} is no working day in calendar `{}`",
                content.id
            )]),
        }
    }
}
