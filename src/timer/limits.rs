//! The limits that an arm is judged by, and the size of the record that it will fire.
//!
//! Owns [`Limits`] and the size rule. Keeps: an accepted arm can be fired, for its record fits the topic.

use std::time::Duration;

use bytes::Bytes;

use super::command::Arm;
use super::model::{Header, OutboxRecord};

/// Most outbox records of one timer.
pub const OUTBOX_RECORDS_MAX: usize = 16;
/// Most user headers of one record.
pub const HEADERS_MAX: usize = 128;
/// Instants below this are taken for seconds: it is 1973-03-03 in milliseconds, and the year 5138 in seconds.
pub const SECONDS_SUSPECTED_BELOW_MS: i64 = 100_000_000_000;

/// Room for what the fired record carries beside the arm's own bytes: sixteen headers whose names and fixed-size values
/// take less than 512 bytes, framing of the batch and growth of attempt numbers.
const FIRED_RECORD_OVERHEAD_BYTES: usize = 1024;
/// How often the fired record's headers repeat the identity: `ce_id`, `ce_subject`, and tenant, run and id on their own,
/// and once more as the record's key.
const IDENTITY_REPEATS: usize = 4;
/// Framing of one header or one outbox record, at most.
const FRAMING_BYTES: usize = 16;

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
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            horizon: Duration::from_hours(24 * 400),
            skew_max: Duration::from_mins(5),
            fired_bytes_max: 1_000_000,
            outbox_bytes_max: 256 * 1024,
        }
    }
}

/// Returns the size of the record that the arm will fire, rounded up.
pub(super) fn fired_bytes(arm: &Arm) -> usize {
    let identity = arm.key.run.tenant.as_str().len() + arm.key.run.run.as_str().len() + arm.key.id.as_str().len();
    FIRED_RECORD_OVERHEAD_BYTES
        + IDENTITY_REPEATS * identity
        + optional_bytes(arm.payload.as_ref())
        + optional_bytes(arm.record_key.as_ref())
        + headers_bytes(&arm.headers)
}

/// Returns the size of an outbox record, rounded up.
pub(super) fn outbox_bytes(record: &OutboxRecord) -> usize {
    FRAMING_BYTES
        + optional_bytes(record.key.as_ref())
        + optional_bytes(record.value.as_ref())
        + headers_bytes(&record.headers)
}

fn headers_bytes(headers: &[Header]) -> usize {
    headers.iter().map(|h| FRAMING_BYTES + h.key.len() + optional_bytes(h.value.as_ref())).sum()
}

fn optional_bytes(bytes: Option<&Bytes>) -> usize {
    bytes.map_or(0, Bytes::len)
}
