//! A civil time in a zone.
//!
//! Owns [`LocalTime`] and how a civil time is written. Never guesses: a text with an offset, or without a time of day, is
//! refused. Keeps: the text that it is written as is read back as the same value.

use std::fmt;

use jiff::civil::{Date, DateTime, Time};

use super::ScheduleError;
use super::zone::{Disambiguation, Zone};
use crate::text::shown;
use crate::time::Timestamp;

/// A civil time, such as `2027-03-28T02:30`, in a zone.
///
/// # Examples
/// ```
/// use punctual::calendar::local::LocalTime;
/// use punctual::calendar::zone::{Disambiguation, Zone};
///
/// let berlin = Zone::get("Europe/Berlin")?;
/// let skipped = LocalTime::parse("2027-03-28T02:30", berlin, Disambiguation::Compatible)?;
/// assert_eq!(skipped.resolve()?.to_string(), "2027-03-28T01:30:00.000Z"); // 03:30 there
/// # Ok::<(), punctual::calendar::ScheduleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// What the clock shows.
    pub civil: DateTime,
    /// Where the clock is.
    pub zone: Zone,
    /// What a time means that is skipped or repeated.
    pub disambiguation: Disambiguation,
}

impl LocalTime {
    /// Parses a civil time as [`parse_civil`] does.
    ///
    /// # Errors
    /// When the text is not a civil time.
    pub fn parse(text: &str, zone: Zone, disambiguation: Disambiguation) -> Result<Self, ScheduleError> {
        Ok(Self { civil: parse_civil(text)?, zone, disambiguation })
    }

    /// Returns the instant.
    ///
    /// # Errors
    /// When the time is skipped or repeated and that is to be rejected, or is outside the years 1970 to 9999.
    pub fn resolve(&self) -> Result<Timestamp, ScheduleError> {
        self.zone.resolve(self.civil, self.disambiguation)
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.civil, self.zone)
    }
}

/// Parses a civil date and time: `2027-03-28T02:30`, with seconds and their fraction if wanted.
///
/// # Errors
/// When the text is anything else: a date alone, a time with an offset or a zone, a leap second.
pub fn parse_civil(text: &str) -> Result<DateTime, ScheduleError> {
    // The parser would take more than we mean: `2027-03-28`, `20270328T0230`, `2027-03-28T02:30+02:00[Europe/Berlin]`.
    let parts = text.split_once('T').map(|(date, time)| (read_date(date), read_time(time)));
    match parts {
        Some((Some(date), Some(time))) => Ok(DateTime::from_parts(date, time)),
        Some(_) | None => Err(ScheduleError::new(format!(
            "`{}` is not a civil time such as 2027-03-28T02:30 or 2027-03-28T02:30:15.250, without offset and zone",
            shown(text)
        ))),
    }
}

/// Parses a time of day: `17:00`, with seconds and their fraction if wanted.
///
/// # Errors
/// When the text is anything else.
pub fn parse_time(text: &str) -> Result<Time, ScheduleError> {
    read_time(text)
        .ok_or_else(|| ScheduleError::new(format!("`{}` is not a time of day such as 17:00 or 17:00:30", shown(text))))
}

/// Parses a date: `2027-03-28`.
///
/// # Errors
/// When the text is anything else.
pub fn parse_date(text: &str) -> Result<Date, ScheduleError> {
    read_date(text).ok_or_else(|| ScheduleError::new(format!("`{}` is not a date such as 2027-03-28", shown(text))))
}

fn read_date(text: &str) -> Option<Date> {
    has_shape(text, "0000-00-00").then(|| text.parse().ok()).flatten()
}

fn read_time(text: &str) -> Option<Time> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let has_seconds = has_shape(whole, "00:00:00");
    let is_fraction = |digits: &str| (1..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let is_time = match fraction {
        None => has_seconds || has_shape(whole, "00:00"),
        Some(fraction) => has_seconds && is_fraction(fraction),
    };
    // The parser takes a leap second for the second before it.
    let is_leap_second = has_seconds && whole.ends_with(":60");
    (is_time && !is_leap_second).then(|| text.parse().ok()).flatten()
}

/// Returns whether a text has a digit where the shape has a zero, and is the same elsewhere.
fn has_shape(text: &str, shape: &str) -> bool {
    let fits = |(byte, wanted): (u8, u8)| if wanted == b'0' { byte.is_ascii_digit() } else { byte == wanted };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_civil_time_has_a_date_and_a_time_and_nothing_else() {
        for text in ["2027-03-28T02:30", "2027-03-28T02:30:15", "2027-03-28T02:30:15.250", "0001-01-01T00:00"] {
            assert!(parse_civil(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "2027-03-28",
            "2027-03-28 02:30",
            "2027-03-28t02:30",
            "20270328T0230",
            "2027-03-28T02",
            "2027-03-28T02:30Z",
            "2027-03-28T02:30+02:00",
            "2027-03-28T02:30[Europe/Berlin]",
            "2027-02-29T02:30",
            "2027-03-28T24:00",
            "2027-03-28T23:59:60",
            "2027-03-28T02:30.5",
            "2027-03-28T02:30:15.",
            "2027-03-28T02:30:15.1234567891",
            "+002027-03-28T02:30",
            "02:30",
            "２027-03-28T02:30",
        ] {
            let error = parse_civil(text).unwrap_err().to_string();
            assert!(error.contains("is not a civil time such as"), "{text}: {error}");
        }
    }

    #[test]
    fn a_civil_time_finer_than_a_millisecond_rounds_up() {
        let fine = LocalTime::parse("2027-01-01T00:00:00.0000001", Zone::utc(), Disambiguation::Compatible).unwrap();
        assert_eq!(fine.resolve().unwrap().to_string(), "2027-01-01T00:00:00.001Z");
    }

    #[test]
    fn what_no_timer_can_wait_for_is_refused() {
        for text in ["1969-12-31T23:59:59", "0001-01-01T00:00", "9999-12-31T23:59:59"] {
            let berlin = Zone::get("America/New_York").unwrap();
            let error = LocalTime::parse(text, berlin, Disambiguation::Earlier).unwrap().resolve();
            let is_early = text.starts_with("1969");
            assert!(error.is_err() || is_early, "{text}: {error:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9T:.+Z-]{0,24}|.{0,40}") {
            let _ = parse_civil(&text);
            let _ = parse_date(&text);
            let _ = parse_time(&text);
        }
    }
}
