//! When a recurring timer fires next, and when it ends.
//!
//! Owns [`Recurrence`]: a rule, and its bounds. Never counts by itself: how often a timer has fired is the caller's to keep.
//! Keeps: what comes after an instant is strictly after it, so that a long absence costs one occurrence and not a burst.

use std::num::NonZeroU64;

use super::cron::Cron;
use super::every::Every;
use super::zone::Zone;
use crate::time::Timestamp;

/// A rule that names instants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A cron expression in a zone.
    Cron(Box<Cron>),
    /// An interval from an anchor on.
    Every(Every),
}

/// A rule and its bounds.
///
/// # Examples
/// ```
/// use punctual::calendar::cron::Cron;
/// use punctual::calendar::recurrence::{Recurrence, Rule};
/// use punctual::calendar::zone::Zone;
/// use punctual::time::Timestamp;
///
/// let rule = Rule::Cron(Box::new(Cron::parse("0 9 1 * *", Zone::utc())?));
/// let monthly = Recurrence { rule, count: None, until: Some(Timestamp::parse("2027-03-01T09:00:00Z")?) };
/// let upcoming = monthly.upcoming(Timestamp::parse("2026-12-24T00:00:00Z")?, 0, 5);
/// assert_eq!(upcoming.len(), 3, "January, February, and March, which `until` includes");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurrence {
    /// Which instants.
    pub rule: Rule,
    /// How often at most it fires; what was missed is not counted.
    pub count: Option<NonZeroU64>,
    /// The last instant at which it may fire.
    pub until: Option<Timestamp>,
}

impl Rule {
    /// Returns the first occurrence strictly after an instant, or `None` if there is none that can be computed.
    pub fn after(&self, at: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(cron) => cron.after(at),
            Self::Every(every) => every.after(at),
        }
    }

    /// Returns the zone whose clock the rule is about.
    pub fn zone(&self) -> &Zone {
        match self {
            Self::Cron(cron) => cron.zone(),
            Self::Every(every) => &every.zone,
        }
    }
}

impl Recurrence {
    /// Returns when a timer that has fired `fired` times fires next, strictly after `at`; `None` if it never does again.
    pub fn next(&self, at: Timestamp, fired: u64) -> Option<Timestamp> {
        if self.count.is_some_and(|count| fired >= count.get()) {
            return None;
        }
        self.rule.after(at).filter(|next| self.until.is_none_or(|until| *next <= until))
    }

    /// Returns the next occurrences, `occurrences_max` at most, of a timer that has fired `fired` times.
    pub fn upcoming(&self, at: Timestamp, fired: u64, occurrences_max: usize) -> Vec<Timestamp> {
        let mut upcoming = Vec::new();
        let (mut at, mut fired) = (at, fired);
        while upcoming.len() < occurrences_max {
            let Some(next) = self.next(at, fired) else { break };
            upcoming.push(next);
            (at, fired) = (next, fired.saturating_add(1));
        }
        upcoming
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::interval::Interval;

    fn hourly(count: Option<u64>, until_ms: Option<i64>) -> Recurrence {
        let interval = Interval::parse("PT1H").unwrap();
        let rule = Rule::Every(Every { interval, anchor: Timestamp::EPOCH, zone: Zone::utc() });
        Recurrence { rule, count: count.and_then(NonZeroU64::new), until: until_ms.map(Timestamp::from_millis) }
    }

    const HOUR_MS: i64 = 3_600_000;

    #[test]
    fn a_long_absence_costs_one_occurrence() {
        // L7: five minutes down is one occurrence late, and the next one is where it always was.
        let next = hourly(None, None).next(Timestamp::from_millis(1_000 * HOUR_MS + 1), 3);
        assert_eq!(next, Some(Timestamp::from_millis(1_001 * HOUR_MS)));
    }

    #[test]
    fn count_ends_it() {
        let twice = hourly(Some(2), None);
        assert_eq!(twice.upcoming(Timestamp::EPOCH, 0, 9).len(), 2);
        assert_eq!(twice.upcoming(Timestamp::EPOCH, 1, 9).len(), 1);
        assert_eq!(twice.next(Timestamp::EPOCH, 2), None);
        assert_eq!(twice.next(Timestamp::EPOCH, u64::MAX), None);
    }

    #[test]
    fn until_is_included() {
        let until = hourly(None, Some(3 * HOUR_MS));
        assert_eq!(until.upcoming(Timestamp::EPOCH, 0, 9).len(), 3);
        assert_eq!(until.next(Timestamp::from_millis(3 * HOUR_MS), 0), None);
        assert_eq!(hourly(None, Some(HOUR_MS - 1)).next(Timestamp::EPOCH, 0), None);
    }
}
