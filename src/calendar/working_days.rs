//! A calendar of working days, as data.
//!
//! Owns [`WorkingDays`]: weekends, holidays, extra working days, and the dates that it covers. Never says anything about a
//! date that it does not cover: what nobody has entered yet is not a working day by default.
//! Keeps: holidays and extra working days are covered and do not contradict each other.

use std::collections::BTreeSet;

use jiff::civil::{Date, Weekday};

use super::digest::Digest;
use super::roll::Roll;
use crate::text::shown;

/// Most days that a calendar covers, a hundred years: a count of working days walks over them.
pub const COVERED_DAYS_MAX: i32 = 36_525;
/// Longest id and longest version, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// What a calendar is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The name by which commands refer to it: 1 to 64 characters of `A-Z a-z 0-9 . _ -`.
    pub id: String,
    /// The version of the data, for people; 1 to 64 characters of the same.
    pub version: String,
    /// The first date that it covers.
    pub first: Date,
    /// The last date that it covers.
    pub last: Date,
    /// The days of the week that are off.
    pub weekend: Vec<Weekday>,
    /// Dates that are off although their day of the week is not.
    pub holidays: BTreeSet<Date>,
    /// Dates that are not off although their day of the week is.
    pub extra_working_days: BTreeSet<Date>,
}

/// A calendar whose content is consistent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingDays {
    content: Content,
    digest: Digest,
}

/// Why working days cannot be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uncounted {
    /// The count goes beyond the dates that the calendar covers.
    NotCovered,
    /// The day is off, and [`Roll::Reject`] refuses that.
    DayOff,
}

impl WorkingDays {
    /// Checks the content of a calendar.
    ///
    /// # Errors
    /// One sentence for each thing that is wrong with it.
    pub fn new(content: Content) -> Result<Self, Vec<String>> {
        let problems = problems(&content);
        if problems.is_empty() {
            let digest = digest_of(&content);
            return Ok(Self { content, digest });
        }
        Err(problems)
    }

    /// Returns the content.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Returns the digest of the content, whatever the order in which it was given.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns whether a date is a working day; `None` if the calendar does not cover it.
    pub fn is_working(&self, date: Date) -> Option<bool> {
        let Content { first, last, weekend, holidays, extra_working_days, .. } = &self.content;
        if date < *first || date > *last {
            return None;
        }
        let is_off = weekend.contains(&date.weekday()) || holidays.contains(&date);
        Some(extra_working_days.contains(&date) || !is_off)
    }

    /// Returns the working day that is `n` working days after `date`, which is rolled first if it is off.
    pub(super) fn count(&self, date: Date, n: i64, roll: Roll) -> Result<Date, Uncounted> {
        if n > i64::from(COVERED_DAYS_MAX) {
            return Err(Uncounted::NotCovered);
        }
        let mut date = self.rolled(date, roll)?;
        for _ in 0..n {
            date = self.nearest(tomorrow(date)?, tomorrow)?;
        }
        Ok(date)
    }

    fn rolled(&self, date: Date, roll: Roll) -> Result<Date, Uncounted> {
        if self.is_working(date).ok_or(Uncounted::NotCovered)? {
            return Ok(date);
        }
        let stays_in_month = |rolled: &Date| rolled.first_of_month() == date.first_of_month();
        match roll {
            Roll::Following => self.nearest(date, tomorrow),
            Roll::Preceding => self.nearest(date, yesterday),
            Roll::ModifiedFollowing => match self.nearest(date, tomorrow) {
                Ok(rolled) if stays_in_month(&rolled) => Ok(rolled),
                Ok(_) | Err(_) => self.nearest(date, yesterday),
            },
            Roll::ModifiedPreceding => match self.nearest(date, yesterday) {
                Ok(rolled) if stays_in_month(&rolled) => Ok(rolled),
                Ok(_) | Err(_) => self.nearest(date, tomorrow),
            },
            Roll::Reject => Err(Uncounted::DayOff),
        }
    }

    /// Returns the first working day from `date` on, in steps of `step`. It ends where the calendar does.
    fn nearest(&self, mut date: Date, step: fn(Date) -> Result<Date, Uncounted>) -> Result<Date, Uncounted> {
        while !self.is_working(date).ok_or(Uncounted::NotCovered)? {
            date = step(date)?;
        }
        Ok(date)
    }
}

fn tomorrow(date: Date) -> Result<Date, Uncounted> {
    date.tomorrow().map_err(|_| Uncounted::NotCovered)
}

fn yesterday(date: Date) -> Result<Date, Uncounted> {
    date.yesterday().map_err(|_| Uncounted::NotCovered)
}

fn problems(content: &Content) -> Vec<String> {
    let Content { id, version, first, last, weekend, holidays, extra_working_days } = content;
    let mut problems = Vec::new();
    for (key, name) in [("id", id), ("version", version)] {
        let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        if !is_name {
            problems.push(format!("{key} `{}` must be 1 to 64 characters of A-Z a-z 0-9 . _ -", shown(name)));
        }
    }
    if first > last {
        problems.push(format!("valid from {first} to {last} is no range; the first date must not be behind the last"));
    } else if last.duration_since(*first).as_hours() / 24 >= i64::from(COVERED_DAYS_MAX) {
        problems.push(format!("valid from {first} to {last} is more than a hundred years; cover less"));
    }
    let outside = |date: &&Date| *date < first || *date > last;
    for date in holidays.iter().chain(extra_working_days).filter(outside) {
        problems.push(format!("{date} is not within {first} to {last}, the dates that the calendar covers"));
    }
    for date in holidays.intersection(extra_working_days) {
        problems.push(format!("{date} is both a holiday and an extra working day; remove one"));
    }
    for date in extra_working_days.iter().filter(|date| !weekend.contains(&date.weekday())) {
        problems.push(format!("{date} is an extra working day, but no weekend; remove it"));
    }
    problems
}

fn digest_of(content: &Content) -> Digest {
    let mut lines = vec![
        "calendar 1".to_owned(),
        format!("id {}", content.id),
        format!("version {}", content.version),
        format!("valid {} {}", content.first, content.last),
    ];
    let weekend: BTreeSet<i8> = content.weekend.iter().map(|day| day.to_monday_one_offset()).collect();
    lines.extend(weekend.iter().map(|day| format!("weekend {day}")));
    lines.extend(content.holidays.iter().map(|date| format!("holiday {date}")));
    lines.extend(content.extra_working_days.iter().map(|date| format!("working {date}")));
    Digest::of_lines(lines.iter().map(String::as_str))
}

#[cfg(test)]
#[path = "working_days_test.rs"]
mod tests;
