//! The step of a recurrence: an ISO 8601 duration whose calendar units keep their meaning.
//!
//! Owns [`Interval`]. A month is a month and a day is a day of the zone, whatever their lengths; hours, minutes and seconds
//! are exact. Never takes `1m`, which is a minute to some and a month to others.
//! Keeps: an interval is positive, and not shorter than [`INTERVAL_MIN_MS`].

use std::fmt;

use jiff::SignedDuration;
use jiff::fmt::temporal::SpanParser;

use super::ScheduleError;
use crate::text::shown;

/// Shortest interval, in milliseconds: a timer that fires more often than once a second keeps its partition busy with itself.
pub const INTERVAL_MIN_MS: i64 = 1_000;

const MONTHS_PER_YEAR: i64 = 12;
const DAYS_PER_WEEK: i64 = 7;
/// Longest problem of the parser that an error tells, in characters.
const PROBLEM_CHARACTERS_MAX: usize = 120;

/// A positive step: months, then days, then exact time.
///
/// # Examples
/// ```
/// use punctual::calendar::interval::Interval;
///
/// assert_eq!(Interval::parse("P1M")?.months(), 1);
/// assert_eq!(Interval::parse("PT1M")?.millis(), 60_000);
/// assert!(Interval::parse("1m").is_err());
/// # Ok::<(), punctual::calendar::ScheduleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    months: i64,
    days: i64,
    millis: i64,
}

impl Interval {
    /// Returns an interval of so many months, days and milliseconds, all of them added up.
    ///
    /// # Errors
    /// When one of them is negative, or all together are shorter than a second.
    pub fn new(months: i64, days: i64, millis: i64) -> Result<Self, ScheduleError> {
        if months < 0 || days < 0 || millis < 0 {
            return Err(ScheduleError::new("an interval must not be negative"));
        }
        if months == 0 && days == 0 && millis < INTERVAL_MIN_MS {
            return Err(ScheduleError::new("an interval must be one second or longer"));
        }
        Ok(Self { months, days, millis })
    }

    /// Parses an ISO 8601 duration such as `PT15M`, `P1D`, `P2W` or `P1M`.
    ///
    /// # Errors
    /// When the text is not one, is not positive, is shorter than a second, or finer than a millisecond.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        Self::read(text).map_err(|problem| {
            let problem: String = problem.chars().take(PROBLEM_CHARACTERS_MAX).collect();
            ScheduleError::new(format!(
                "`{}` is not a usable interval: {problem}; write ISO 8601 such as PT15M, P1D, P2W or P1M",
                shown(text)
            ))
        })
    }

    fn read(text: &str) -> Result<Self, String> {
        // Only ISO 8601: the other parser of jiff takes `1m`.
        let span = SpanParser::new().parse_span(text).map_err(|error| error.to_string())?;
        if span.is_negative() {
            return Err("an interval must not be negative".to_owned());
        }
        let months = i64::from(span.get_years()) * MONTHS_PER_YEAR + i64::from(span.get_months());
        let days = i64::from(span.get_weeks()) * DAYS_PER_WEEK + i64::from(span.get_days());
        let exact = SignedDuration::from_hours(i64::from(span.get_hours()))
            .checked_add(SignedDuration::from_mins(span.get_minutes()))
            .and_then(|sum| sum.checked_add(SignedDuration::from_secs(span.get_seconds())))
            .and_then(|sum| sum.checked_add(SignedDuration::from_millis(span.get_milliseconds())))
            .and_then(|sum| sum.checked_add(SignedDuration::from_micros(span.get_microseconds())))
            .and_then(|sum| sum.checked_add(SignedDuration::from_nanos(span.get_nanoseconds())))
            .ok_or("it overflows")?;
        let millis = i64::try_from(exact.as_millis()).map_err(|_| "it overflows")?;
        if SignedDuration::from_millis(millis) != exact {
            return Err("an interval must not be finer than a millisecond".to_owned());
        }
        Self::new(months, days, millis).map_err(|error| error.to_string())
    }

    /// Returns the months; a year is twelve.
    pub const fn months(self) -> i64 {
        self.months
    }

    /// Returns the days; a week is seven.
    pub const fn days(self) -> i64 {
        self.days
    }

    /// Returns the exact part, in milliseconds.
    pub const fn millis(self) -> i64 {
        self.millis
    }

    /// Returns whether the interval has no calendar units, and so no need for a zone.
    pub const fn is_exact(self) -> bool {
        self.months == 0 && self.days == 0
    }
}

/// ISO 8601, read back by [`Interval::parse`] as the same interval.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("P")?;
        for (amount, unit) in
            [(self.months / MONTHS_PER_YEAR, 'Y'), (self.months % MONTHS_PER_YEAR, 'M'), (self.days, 'D')]
        {
            if amount > 0 {
                write!(f, "{amount}{unit}")?;
            }
        }
        let exact = SignedDuration::from_millis(self.millis).to_string();
        if self.millis > 0 { f.write_str(exact.trim_start_matches('P')) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(text: &str) -> (i64, i64, i64) {
        let interval = Interval::parse(text).unwrap();
        (interval.months, interval.days, interval.millis)
    }

    #[test]
    fn units_keep_their_meaning() {
        assert_eq!(parts("PT1M"), (0, 0, 60_000));
        assert_eq!(parts("P1M"), (1, 0, 0));
        assert_eq!(parts("P1Y2M3W4DT5H6M7.008S"), (14, 25, ((5 * 60 + 6) * 60 + 7) * 1000 + 8));
        assert_eq!(parts("P1D"), (0, 1, 0));
        assert_eq!(parts("PT24H"), (0, 0, 86_400_000));
        assert_eq!(parts("PT1S"), (0, 0, 1000));
    }

    #[test]
    fn what_is_ambiguous_or_not_positive_is_refused() {
        for text in
            ["", "P", "PT", "1m", "1 month", "P0D", "PT0S", "-P1D", "PT-1M", "P1M-1D", "PT0.999S", "PT1.0001S", "P1.5M"]
        {
            let error = Interval::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is not a usable interval")), "{error}");
        }
        for text in ["P99999999999999Y", "PT99999999999999999999S", "P9223372036854775807D"] {
            assert!(Interval::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_interval_is_read_back(months in 0_i64..2_000, days in 0_i64..9_000, millis in 1_000_i64..1_000_000_000_000) {
            let interval = Interval::new(months, days, millis).unwrap();
            prop_assert_eq!(Interval::parse(&interval.to_string()).unwrap(), interval);
        }

        #[test]
        fn no_text_panics(text in "[-+PTYMWDHS0-9.,]{0,24}|.{0,40}") {
            let _ = Interval::parse(&text);
        }
    }
}
