//! The rules that come with the service.
//!
//! Owns [`FixedRules`]: `minutes`, `hours` and `days` of exactly 60, 3,600 and 86,400 seconds; and [`Rules`]: those and
//! `business`, with the calendars that are loaded. Keeps: every multiplication and addition is checked.

use std::collections::BTreeMap;

use super::business::{self, Business};
use super::digest::{self, Digest};
use super::parameters::{Parameters, Reading};
use super::working_days::WorkingDays;
use super::{Calendar, CalendarError};
use crate::text::shown;
use crate::time::Timestamp;

/// Rules of a fixed length, by name, in milliseconds.
const FIXED: [(&str, i64); 3] = [("minutes", 60_000), ("hours", 3_600_000), ("days", 86_400_000)];

/// `minutes`, `hours` and `days`, each with the parameter `n`: so many of exactly 60, 3,600 and 86,400 seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedRules;

/// All rules, with the calendars that are loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    calendars: BTreeMap<String, WorkingDays>,
    digest: Digest,
}

impl FixedRules {
    fn length_ms(rule: &str) -> Option<i64> {
        FIXED.iter().find(|(name, _)| *name == rule).map(|(_, length_ms)| *length_ms)
    }
}

impl Calendar for FixedRules {
    fn resolve(&self, from: Timestamp, rule: &str, parameters: &Parameters) -> Result<Timestamp, CalendarError> {
        let length_ms = Self::length_ms(rule).ok_or_else(|| unknown(rule, FIXED.map(|(name, _)| name)))?;
        let mut reading = Reading::new(parameters);
        let n = reading.positive("n");
        reading.end()?;
        let due = n.and_then(|n| n.checked_mul(length_ms)).and_then(|millis| from.checked_add_millis(millis));
        due.ok_or_else(|| {
            CalendarError::OutOfRange(format!("{} {rule} after {from} is beyond the year 9999", n.unwrap_or_default()))
        })
    }

    fn digest(&self) -> Digest {
        digest::zone_database()
    }
}

impl Rules {
    /// Returns the rules with these calendars.
    ///
    /// # Errors
    /// When two calendars have the same id.
    pub fn new(calendars: impl IntoIterator<Item = WorkingDays>) -> Result<Self, String> {
        let mut by_id = BTreeMap::new();
        for calendar in calendars {
            let id = calendar.content().id.clone();
            if let Some(other) = by_id.insert(id.clone(), calendar) {
                return Err(format!("two calendars are named `{id}`, one of version {}", other.content().version));
            }
        }
        let mut lines = vec!["rules 1".to_owned(), digest::zone_database_line()];
        lines.extend(by_id.values().map(|calendar| format!("calendar {}", calendar.digest())));
        Ok(Self { digest: Digest::of_lines(lines.iter().map(String::as_str)), calendars: by_id })
    }

    /// Returns the calendars, in order of their ids.
    pub fn calendars(&self) -> impl Iterator<Item = &WorkingDays> {
        self.calendars.values()
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::new([]).expect("no two of none have the same id")
    }
}

impl Calendar for Rules {
    fn resolve(&self, from: Timestamp, rule: &str, parameters: &Parameters) -> Result<Timestamp, CalendarError> {
        if FixedRules::length_ms(rule).is_some() {
            return FixedRules.resolve(from, rule, parameters);
        }
        if rule == business::NAME {
            return Business::read(parameters, &self.calendars)?.resolve(from);
        }
        Err(unknown(rule, FIXED.map(|(name, _)| name).into_iter().chain([business::NAME])))
    }

    fn digest(&self) -> Digest {
        self.digest
    }
}

fn unknown(rule: &str, known: impl IntoIterator<Item = &'static str>) -> CalendarError {
    CalendarError::UnknownRule { rule: shown(rule), known: known.into_iter().map(str::to_owned).collect() }
}

#[cfg(test)]
#[path = "rules_test.rs"]
mod tests;
