//! How long to wait after the n-th failure.
//!
//! Owns the one backoff rule of the product: min(5 s · 2^(n−1), 600 s), without jitter.

use std::time::Duration;

/// Longest wait.
pub const BACKOFF_MAX: Duration = Duration::from_mins(10);
const BACKOFF_FIRST: Duration = Duration::from_secs(5);

/// Returns the wait after the `failures`-th failure in a row; the first is 1, and 0 counts as 1.
pub fn backoff(failures: u32) -> Duration {
    // 5 s · 2^7 passes the cap, so a larger exponent changes nothing and cannot overflow.
    let exponent = failures.saturating_sub(1).min(7);
    (BACKOFF_FIRST * 2_u32.pow(exponent)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_ten_minutes() {
        let seconds: Vec<u64> = [0, 1, 2, 3, 7, 8, 9, u32::MAX].map(|n| backoff(n).as_secs()).to_vec();
        assert_eq!(seconds, [5, 5, 10, 20, 320, 600, 600, 600]);
    }
}
