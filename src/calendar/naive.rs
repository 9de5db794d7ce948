//! A civil time as croner searches it: without a zone, so that every time exists once.
//!
//! Owns [`Naive`]. Never resolves anything: zones are for the caller.

use std::cmp::Ordering;

use croner::errors::CronError;
use croner::{CivilDate, CivilDateTime, CivilTime, CronDateTime, Resolution, Weekday};
use jiff::civil::{Date, DateTime, Time};

/// A civil time, in whole seconds for croner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naive(pub(super) DateTime);

impl CronDateTime for Naive {
    fn to_civil(&self) -> CivilDateTime {
        let part = |part: i8| u32::from(part.unsigned_abs());
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(i32::from(self.0.year()), part(self.0.month()), part(self.0.day())),
            CivilTime::from_parts_unchecked(part(self.0.hour()), part(self.0.minute()), part(self.0.second())),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        Weekday::from_days_from_sunday(u32::from(self.0.weekday().to_sunday_zero_offset().unsigned_abs()))
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let part = |part: u32| i8::try_from(part).map_err(|_| CronError::InvalidDate);
        let year = i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?;
        let date = Date::new(year, part(civil.month())?, part(civil.day())?).map_err(|_| CronError::InvalidDate)?;
        let time = Time::new(part(civil.hour())?, part(civil.minute())?, part(civil.second())?, 0)
            .map_err(|_| CronError::InvalidTime)?;
        Ok(Resolution::Single(Self(DateTime::from_parts(date, time))))
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(jiff::SignedDuration::from_secs(seconds)).ok().map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}
