//! Instants and clocks, the lowest layer.
//!
//! Owns [`Timestamp`], the [`Clock`] seam and the [`guard`] that decides whether a clock reading may be trusted.
//! Never does I/O other than reading the clock of the host, and that only in [`system`].
//! Keeps: arithmetic on instants is checked; nothing wraps or saturates in silence.

pub mod guard;
pub mod rounding;
pub mod system;

use crate::text::shown;
use std::fmt;
use std::time::Duration;

/// An instant in UTC: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Longest reason, in characters: errors end up in headers and in logs.
const REASON_CHARACTERS_MAX: usize = 160;

/// Why a text is not an instant.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{text}` is not an RFC 3339 instant such as 2026-12-01T09:00:00.250Z: {reason}")]
pub struct ParseTimestampError {
    text: String,
    reason: String,
}

impl Timestamp {
    /// The last instant that RFC 3339 can write: 9999-12-31T23:59:59.999Z.
    pub const MAX: Self = Self(253_402_300_799_999);
    /// The epoch, 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);

    /// Returns the instant `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the instant `duration` later, or `None` beyond [`Timestamp::MAX`].
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let millis = i64::try_from(duration.as_millis()).ok()?;
        self.checked_add_millis(millis)
    }

    /// Returns the instant `millis` milliseconds later, or `None` beyond [`Timestamp::MAX`].
    pub fn checked_add_millis(self, millis: i64) -> Option<Self> {
        let sum = self.0.checked_add(millis)?;
        (sum <= Self::MAX.0).then_some(Self(sum))
    }

    /// Returns the time from `earlier` to `self`, zero if `earlier` is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.0.saturating_sub(earlier.0).max(0);
        Duration::from_millis(millis.unsigned_abs())
    }

    /// Parses an RFC 3339 instant. An instant finer than a millisecond is rounded **up**, so that nothing fires early.
    ///
    /// # Errors
    /// When the text is not an instant with an offset (`Z` or `+02:00`), or lies outside years 1970 to 9999.
    pub fn parse(text: &str) -> Result<Self, ParseTimestampError> {
        let error = |reason: String| ParseTimestampError {
            text: shown(text),
            // The parser's reason repeats what it could not parse, to the end of the text.
            reason: reason.chars().take(REASON_CHARACTERS_MAX).collect(),
        };
        // The parser would take a leap second for the second before it, and the timer would fire early.
        if text.get(17..19) == Some("60") {
            return Err(error(
                "a leap second is no instant of UTC in milliseconds; give the second after it".to_owned(),
            ));
        }
        // The parser takes hours up to 25; RFC 3339 has none such, and nobody means one.
        let offset = text.get(11..).and_then(|time| time.split_once(['+', '-'])).map(|(_, offset)| offset);
        if offset
            .and_then(|offset| offset.get(..2))
            .and_then(|hours| hours.parse().ok())
            .is_some_and(|hours: u8| hours > 23)
        {
            return Err(error("its offset is a day or more".to_owned()));
        }
        let parsed: jiff::Timestamp = text.parse().map_err(|e: jiff::Error| error(e.to_string()))?;
        let nanos = parsed.as_nanosecond();
        let floor = nanos.div_euclid(1_000_000);
        let millis = if nanos.rem_euclid(1_000_000) > 0 { floor + 1 } else { floor };
        match i64::try_from(millis) {
            Ok(millis) if (0..=Self::MAX.0).contains(&millis) => Ok(Self(millis)),
            Ok(_) | Err(_) => Err(error("outside the years 1970 to 9999".to_owned())),
        }
    }
}

/// RFC 3339 with milliseconds: `2026-12-01T09:00:00.250Z`. An instant that RFC 3339 cannot write shows as its milliseconds.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant:.3}"),
            Err(_) => write!(f, "{} ms since the epoch", self.0),
        }
    }
}

/// What tells the time. The host implements it once; the simulator and the tests implement it by hand.
pub trait Clock {
    /// Returns the wall clock.
    fn wall(&self) -> Timestamp;
    /// Returns the time since the machine started, suspended time included; it never steps.
    fn boot(&self) -> Duration;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finer_instant_rounds_up() {
        assert_eq!(Timestamp::parse("2026-12-01T09:00:00.2500001Z").unwrap().to_string(), "2026-12-01T09:00:00.251Z");
        assert_eq!(Timestamp::parse("2026-12-01T11:00:00.250+02:00").unwrap().to_string(), "2026-12-01T09:00:00.250Z");
    }

    #[test]
    fn an_instant_without_offset_is_refused() {
        assert!(Timestamp::parse("2026-12-01T09:00:00").is_err(), "no offset");
        assert!(Timestamp::parse("1969-12-31T23:59:59Z").is_err(), "before the epoch");
        assert!(Timestamp::parse("tomorrow").is_err(), "not a date");
        for text in ["2026-12-01T09:00:00+25:00", "2026-12-01T09:00:00-24:00", "2026-12-01T09:00:00.5+24:30"] {
            let error = Timestamp::parse(text).unwrap_err().to_string();
            assert!(error.ends_with("its offset is a day or more"), "{error}");
        }
        assert!(Timestamp::parse("2026-12-01T09:00:00+23:59").is_ok(), "the largest of RFC 3339");
        assert!(Timestamp::parse("2016-12-31T23:59:60Z").is_err(), "a leap second would fire early");
    }

    #[test]
    fn an_error_is_one_short_line() {
        let error = Timestamp::parse(&format!("2026-12-01T09:00\n{}", "é".repeat(10_000))).unwrap_err().to_string();
        assert!(error.starts_with("`2026-12-01T09:00\\né"), "{error}");
        assert!(error.chars().count() < 400, "{error}");
    }

    #[test]
    fn sums_are_checked() {
        assert_eq!(Timestamp::from_millis(1).checked_add_millis(i64::MAX), None);
        assert_eq!(Timestamp::MAX.checked_add_millis(1), None);
        assert_eq!(Timestamp::from_millis(1).checked_add(Duration::MAX), None);
    }
}
