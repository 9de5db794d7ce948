//! When a timer is looked at again that was not done with.
//!
//! Owns the backoff of failures and the lease of claims. Keeps: only wake and attempt change, and the wake is
//! after `now`; a lease ends at exactly its instant (INV-CLAIM-1).

use std::time::Duration;

use super::model::{Claim, Timer};
use crate::planted::{Bug, is_on};
use crate::time::Timestamp;

/// The backoff of the first failure.
const BACKOFF_FIRST: Duration = Duration::from_secs(5);
/// The longest backoff.
const BACKOFF_MAX: Duration = Duration::from_mins(10);
/// From this attempt on the backoff is the longest: 5 s · 2^7 is more.
const BACKOFF_ATTEMPTS: u32 = 8;

/// Returns how long a timer rests after its failed attempt number `attempt`, from 1: min(5 s · 2^(attempt−1), 600 s).
pub fn backoff(attempt: u32) -> Duration {
    let doublings = attempt.clamp(1, BACKOFF_ATTEMPTS) - 1;
    (BACKOFF_FIRST * 2_u32.pow(doublings)).min(BACKOFF_MAX)
}

/// Returns the timer after a failed attempt at `now`.
pub(super) fn after_failure(timer: &Timer, now: Timestamp) -> Timer {
    let attempt = timer.attempt.saturating_add(1);
    rest(timer, attempt, now, backoff(attempt))
}

/// Returns the timer after a delivery at `now`: it is held until its lease runs out, at exactly `now` + lease.
pub(super) fn after_delivery(timer: &Timer, claim: Claim, now: Timestamp) -> Timer {
    let lease = claim.lease.saturating_sub(Duration::from_millis(u64::from(is_on(Bug::LeaseOneShort))));
    let attempt = timer.attempt.saturating_add(u32::from(!is_on(Bug::AttemptNotCounted)));
    rest(timer, attempt, now, lease)
}

fn rest(timer: &Timer, attempt: u32, now: Timestamp, pause: Duration) -> Timer {
    let wake = now.checked_add(pause).unwrap_or(Timestamp::MAX);
    Timer { wake, attempt, ..timer.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_doubles_up_to_ten_minutes() {
        let seconds: Vec<u64> = (0..12).map(|attempt| backoff(attempt).as_secs()).collect();
        assert_eq!(seconds, [5, 5, 10, 20, 40, 80, 160, 320, 600, 600, 600, 600]);
        assert_eq!(backoff(u32::MAX), BACKOFF_MAX);
    }
}
