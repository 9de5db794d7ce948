//! Recurrence by an interval.
//!
//! Owns [`Every`]. Occurrence n is the anchor and n intervals, each time counted from the anchor: nothing drifts, and the
//! 31st is the 31st again after a short month. Never steps from one occurrence to the next.
//! Keeps: occurrences come in order; what comes after an instant is strictly after it.

use jiff::Span;

use super::interval::Interval;
use super::zone::{Disambiguation, Zone};
use crate::time::Timestamp;

/// An interval, from an anchor on.
///
/// # Examples
/// ```
/// use punctual::calendar::every::Every;
/// use punctual::calendar::interval::Interval;
/// use punctual::calendar::zone::Zone;
/// use punctual::time::Timestamp;
///
/// let anchor = Timestamp::parse("2027-01-31T09:00:00Z")?;
/// let monthly = Every { interval: Interval::parse("P1M")?, anchor, zone: Zone::utc() };
/// let february = monthly.after(anchor).ok_or("no occurrence")?;
/// let march = monthly.after(february).ok_or("no occurrence")?;
/// assert_eq!(february.to_string(), "2027-02-28T09:00:00.000Z");
/// assert_eq!(march.to_string(), "2027-03-31T09:00:00.000Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Every {
    /// The step.
    pub interval: Interval,
    /// Occurrence 0.
    pub anchor: Timestamp,
    /// Where months and days are counted.
    pub zone: Zone,
}

impl Every {
    /// Returns occurrence `n`; occurrence 0 is the anchor. `None` is beyond the years that can be computed.
    ///
    /// Months are added first, and a day that the month does not have becomes its last; then days, both on the clock of the
    /// zone, where a skipped time moves forward and a repeated one is the earlier; then the exact part.
    pub fn nth(&self, n: u64) -> Option<Timestamp> {
        let n = i64::try_from(n).ok()?;
        let exact_ms = self.interval.millis().checked_mul(n)?;
        if n == 0 || self.interval.is_exact() {
            return self.anchor.checked_add_millis(exact_ms);
        }
        let months = Span::new().try_months(self.interval.months().checked_mul(n)?).ok()?;
        let days = Span::new().try_days(self.interval.days().checked_mul(n)?).ok()?;
        let civil = self.zone.civil(self.anchor)?.checked_add(months).ok()?.checked_add(days).ok()?;
        self.zone.resolve(civil, Disambiguation::Compatible).ok()?.checked_add_millis(exact_ms)
    }

    /// Returns the first occurrence strictly after an instant, or `None` if there is none that can be computed.
    pub fn after(&self, at: Timestamp) -> Option<Timestamp> {
        let is_after = |n: u64| self.nth(n).is_none_or(|occurrence| occurrence > at);
        if is_after(0) {
            return self.nth(0);
        }
        // Occurrence `low` is not after `at`, occurrence `high` is, or cannot be computed, which is after everything.
        let (mut low, mut high) = (0, 1);
        while !is_after(high) {
            low = high;
            high = high.saturating_mul(2);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if is_after(middle) { high = middle } else { low = middle }
        }
        self.nth(high)
    }
}

#[cfg(test)]
#[path = "every_test.rs"]
mod tests;
