//! Dead letters: records that are no good command and timers that nobody took, with the reason beside them.
//!
//! Owns the names of the headers that say so, and how a letter is cut that would not fit its topic. Never knows the
//! topics. Keeps: key, value and headers of the original come first and as they were; what is cut is marked, and what says
//! why is never cut away.

use bytes::Bytes;

use super::fired;
use crate::position::{Offset, Partition};
use crate::time::Timestamp;
use crate::timer::model::{Header, Timer};
use crate::timer::outcome::{Expired, ExpiryReason, Rejection};

/// The code of the reason, such as `unreadable`.
pub const REASON: &str = "punctual-dead-letter-reason";
/// The code of a claimed timer that was delivered as often as it may be.
pub const ATTEMPTS_EXHAUSTED: &str = "attempts_exhausted";
/// The code of a timer that would have fired later than its kind allows.
pub const TOO_LATE: &str = "too_late";
/// One sentence that names the field, the value and the remedy.
pub const DETAIL: &str = "punctual-dead-letter-detail";
/// The topic that the record was read from.
pub const TOPIC: &str = "punctual-dead-letter-topic";
/// The partition that the record was read from, in decimal.
pub const PARTITION: &str = "punctual-dead-letter-partition";
/// The offset of the record there, in decimal.
pub const OFFSET: &str = "punctual-dead-letter-offset";
/// The record's timestamp as RFC 3339 with milliseconds; null if it had none.
pub const TIMESTAMP: &str = "punctual-dead-letter-timestamp";
/// Only on a letter that was cut: the bytes of the original's key, value and headers.
pub const TRUNCATED: &str = "punctual-dead-letter-truncated";

/// How many headers [`headers`] adds.
const OWN_HEADERS: usize = 6;
/// Longest detail that a letter carries, in bytes.
const DETAIL_BYTES_MAX: usize = 1024;
/// Framing of a record or of one header, at most.
const FRAMING_BYTES: usize = 32;

/// Where a record that is no good command was read.
#[derive(Clone, Copy, Debug)]
pub struct Original<'a> {
    /// Its partition.
    pub partition: Partition,
    /// Its offset.
    pub offset: Offset,
    /// Its timestamp, if it has one.
    pub timestamp: Option<Timestamp>,
    /// Its headers.
    pub headers: &'a [Header],
}

/// A record for the dead-letter topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The original's key.
    pub key: Option<Bytes>,
    /// The original's value, whole or its beginning.
    pub value: Option<Bytes>,
    /// The original's headers, whole or the first of them, and those that say why.
    pub headers: Vec<Header>,
}

/// Returns the headers of a dead letter: the original's, then the reason and the place in the command topic.
pub fn headers(original: &Original<'_>, rejection: &Rejection, topic: &str) -> Vec<Header> {
    let text = |key: &str, value: String| Header { key: key.to_owned(), value: Some(Bytes::from(value)) };
    let detail_bytes = rejection.detail.floor_char_boundary(DETAIL_BYTES_MAX);
    let detail = rejection.detail.get(..detail_bytes).unwrap_or_default();
    let own = [
        text(REASON, rejection.reason.name().to_owned()),
        text(DETAIL, detail.to_owned()),
        text(TOPIC, topic.to_owned()),
        text(PARTITION, original.partition.to_string()),
        text(OFFSET, original.offset.to_string()),
        Header { key: TIMESTAMP.to_owned(), value: original.timestamp.map(|at| Bytes::from(at.to_string())) },
    ];
    let mut headers = Vec::with_capacity(original.headers.len() + OWN_HEADERS + 1);
    headers.extend_from_slice(original.headers);
    headers.extend(own);
    headers
}

/// Returns the letter of a timer that is not to fire any more: its record as it fires, with the headers `identity` of a fire and
/// what became of it. One that does not fit `bytes_max` is cut as by [`truncate`].
pub fn expired(expired: &Expired, identity: Vec<Header>, bytes_max: usize) -> Letter {
    let Expired { timer, reason, at } = expired;
    let text = |key: &str, value: String| Header { key: key.to_owned(), value: Some(Bytes::from(value)) };
    let Timer { armed, due, wake, attempt, .. } = timer;
    let (code, detail) = match reason {
        ExpiryReason::AttemptsExhausted => (
            ATTEMPTS_EXHAUSTED,
            format!(
                "armed {armed}, due {due}, delivered {attempt} times and held until {wake}; nobody disarmed it (max_attempts)"
            ),
        ),
        ExpiryReason::TooLate => (
            TOO_LATE,
            format!(
                "armed {armed}, due {due}, attempted {attempt} times, and at {at} later than its kind allows (expires_after)"
            ),
        ),
    };
    let mut own = identity;
    own.extend([text(REASON, code.to_owned()), text(DETAIL, detail)]);
    let own_count = own.len();
    let mut headers = timer.headers.clone();
    headers.extend(own);
    cut(Letter { key: Some(fired::key(timer)), value: timer.payload.clone(), headers }, own_count, bytes_max)
}

/// Cuts a letter to `bytes_max`; `headers` are those of [`headers`]. A letter that fits is as it was.
///
/// Of one that does not, the headers that say why stay, then as much of the original as fits: its key if it fits whole,
/// its first headers, the beginning of its value. A `bytes_max` too small for the headers that say why is exceeded by them.
pub fn truncate(key: Option<Bytes>, value: Option<Bytes>, headers: Vec<Header>, bytes_max: usize) -> Letter {
    cut(Letter { key, value, headers }, OWN_HEADERS, bytes_max)
}

/// Cuts a letter whose last `own_count` headers say why.
fn cut(letter: Letter, own_count: usize, bytes_max: usize) -> Letter {
    let Letter { key, value, headers } = letter;
    let key_bytes = optional_bytes(key.as_ref());
    let value_bytes = optional_bytes(value.as_ref());
    let own_from = headers.len().saturating_sub(own_count);
    let (original_headers, own) = headers.split_at(own_from);
    let own_bytes: usize = own.iter().map(header_bytes).sum();
    let original_bytes = key_bytes + value_bytes + original_headers.iter().map(header_bytes).sum::<usize>();
    if FRAMING_BYTES + original_bytes + own_bytes <= bytes_max {
        return Letter { key, value, headers };
    }
    let mark = Header { key: TRUNCATED.to_owned(), value: Some(Bytes::from(original_bytes.to_string())) };
    let mut room = bytes_max.saturating_sub(FRAMING_BYTES + own_bytes + header_bytes(&mark));
    let key = key.filter(|_| key_bytes <= room);
    room -= optional_bytes(key.as_ref());
    let mut kept = Vec::with_capacity(headers.len() + 1);
    for header in original_headers {
        let bytes = header_bytes(header);
        if bytes > room {
            break;
        }
        room -= bytes;
        kept.push(header.clone());
    }
    kept.extend_from_slice(own);
    kept.push(mark);
    let value = value.map(|value| value.slice(..value_bytes.min(room)));
    Letter { key, value, headers: kept }
}

fn header_bytes(header: &Header) -> usize {
    FRAMING_BYTES + header.key.len() + optional_bytes(header.value.as_ref())
}

fn optional_bytes(bytes: Option<&Bytes>) -> usize {
    bytes.map_or(0, Bytes::len)
}

#[cfg(test)]
#[path = "dead_letter_test.rs"]
mod tests;
