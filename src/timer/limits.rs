//! The limits that an arm is judged by.
//!
//! Owns [`Limits`] and the constants of the same kind. Never judges.

use std::time::Duration;

/// Most outbox records of one timer.
pub const OUTBOX_RECORDS_MAX: usize = 16;
/// Most user headers of one record.
pub const HEADERS_MAX: usize = 128;
/// Instants below this are taken for seconds: it is 1973-03-03 in milliseconds, and the year 5138 in seconds.
pub const SECONDS_SUSPECTED_BELOW_MS: i64 = 100_000_000_000;

/// The limits that an arm is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest accepted due − time of arming.
    pub horizon: Duration,
    /// How far a record's timestamp may be ahead of our clock.
    pub skew_max: Duration,
    /// Largest record that the fired topics accept.
    pub fired_bytes_max: usize,
    /// Most bytes of all outbox records of one timer.
    pub outbox_bytes_max: usize,
    /// Instants below this are taken for seconds and refused; with 0 none is.
    pub seconds_suspected_below_ms: i64,
    /// Whether a kind with a number above 0xEF may be armed that the registry does not have.
    pub takes_reserved_kinds: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            horizon: Duration::from_hours(24 * 400),
            skew_max: Duration::from_mins(5),
            fired_bytes_max: 1_000_000,
            outbox_bytes_max: 256 * 1024,
            seconds_suspected_below_ms: SECONDS_SUSPECTED_BELOW_MS,
            takes_reserved_kinds: false,
        }
    }
}
