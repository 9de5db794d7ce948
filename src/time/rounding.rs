//! From the instants of the standard library to milliseconds.
//!
//! Owns the two directions: a due rounds up and now rounds down, so that what comes of it is never early. Never reads a clock.
//! Keeps: an instant that is whole milliseconds stays as it is; one outside the years 1970 to 9999 is none.

use std::time::{Duration, SystemTime};

use super::Timestamp;

impl Timestamp {
    /// Returns the first millisecond that is not before an instant, as a due is rounded; `None` outside the years 1970 to 9999.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    ///
    /// use punctual::time::Timestamp;
    ///
    /// let instant = SystemTime::UNIX_EPOCH + Duration::from_micros(1_500);
    /// assert_eq!(Timestamp::at_or_after(instant), Some(Timestamp::from_millis(2)));
    /// assert_eq!(Timestamp::at_or_before(instant), Some(Timestamp::from_millis(1)));
    /// ```
    pub fn at_or_after(instant: SystemTime) -> Option<Self> {
        let since_epoch = since_epoch(instant)?;
        let millis = since_epoch.as_nanos().div_ceil(1_000_000);
        valid(i64::try_from(millis).ok()?)
    }

    /// Returns the last millisecond that is not after an instant, as now is rounded; `None` outside the years 1970 to 9999.
    pub fn at_or_before(instant: SystemTime) -> Option<Self> {
        valid(i64::try_from(since_epoch(instant)?.as_millis()).ok()?)
    }
}

fn since_epoch(instant: SystemTime) -> Option<Duration> {
    instant.duration_since(SystemTime::UNIX_EPOCH).ok()
}

fn valid(millis: i64) -> Option<Timestamp> {
    Some(Timestamp::from_millis(millis)).filter(|at| *at <= Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_rounds_up_and_now_rounds_down() {
        let at = |nanos: u64| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
        let both = |nanos| [Timestamp::at_or_before(at(nanos)), Timestamp::at_or_after(at(nanos))];
        let millis = |low, high| [Some(Timestamp::from_millis(low)), Some(Timestamp::from_millis(high))];
        assert_eq!(both(0), millis(0, 0));
        assert_eq!(both(1), millis(0, 1));
        assert_eq!(both(999_999), millis(0, 1));
        assert_eq!(both(1_000_000), millis(1, 1));
        assert_eq!(both(1_000_001), millis(1, 2));
    }

    #[test]
    fn what_has_no_year_of_four_digits_is_no_instant() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_nanos(1);
        assert_eq!(Timestamp::at_or_after(before), None);
        let last = SystemTime::UNIX_EPOCH + Duration::from_millis(253_402_300_799_999);
        assert_eq!(Timestamp::at_or_after(last), Some(Timestamp::MAX));
        assert_eq!(Timestamp::at_or_after(last + Duration::from_nanos(1)), None, "it would round up beyond the end");
        assert_eq!(Timestamp::at_or_before(last + Duration::from_nanos(1)), Some(Timestamp::MAX));
    }
}
