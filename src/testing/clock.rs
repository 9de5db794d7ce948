//! A clock that a test sets.
//!
//! Owns [`ManualClock`]. Keeps: it moves when it is told, also back, and never by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::time::Timestamp;

/// A clock that a test sets. Clones show the same time.
#[derive(Clone, Debug)]
pub struct ManualClock {
    millis: Arc<AtomicI64>,
}

impl ManualClock {
    /// Returns a clock that shows an instant.
    pub fn at(start: Timestamp) -> Self {
        Self { millis: Arc::new(AtomicI64::new(start.as_millis())) }
    }

    /// Returns the instant that it shows.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.load(Ordering::Relaxed))
    }

    /// Returns the time since 1970 as a reading for the budget of a tick; zero before.
    pub fn reading(&self) -> Duration {
        self.now().since(Timestamp::EPOCH)
    }

    /// Sets the clock, forward or back.
    pub fn set(&self, to: Timestamp) {
        self.millis.store(to.as_millis(), Ordering::Relaxed);
    }

    /// Sets the clock forward, by whole milliseconds and not beyond [`Timestamp::MAX`], and returns the instant that it shows then.
    pub fn advance(&self, by: Duration) -> Timestamp {
        let to = self.now().checked_add(by).unwrap_or(Timestamp::MAX);
        self.set(to);
        to
    }

    /// Sets the clock back, by whole milliseconds and not behind 1970, and returns the instant that it shows then.
    pub fn back(&self, by: Duration) -> Timestamp {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        let to = Timestamp::from_millis(self.now().as_millis().saturating_sub(by)).max(Timestamp::EPOCH);
        self.set(to);
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_as_it_is_told_within_the_years_that_there_are() {
        let clock = ManualClock::at(Timestamp::from_millis(1_000));
        let shown = clock.clone();
        assert_eq!(clock.advance(Duration::from_millis(500)).as_millis(), 1_500);
        assert_eq!(clock.back(Duration::from_secs(1)).as_millis(), 500);
        assert_eq!((shown.now().as_millis(), shown.reading()), (500, Duration::from_millis(500)));
        assert_eq!(clock.back(Duration::MAX), Timestamp::EPOCH);
        assert_eq!(clock.advance(Duration::MAX), Timestamp::MAX);
        clock.set(Timestamp::from_millis(-5));
        assert_eq!(clock.reading(), Duration::ZERO);
    }
}
