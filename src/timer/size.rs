//! The size rule: what a timer emits fits the topics.
//!
//! Owns [`Emitted`], what an arm asks for or a handler returns, and the judgement of it. Keeps: an accepted arm can be fired, for
//! its record fits the topic, its row the changelog, and its outbox a transaction.

use bytes::Bytes;

use super::command::Arm;
use super::identity::TimerKey;
use super::kind::{ContentMode, Kind};
use super::limits::{HEADERS_MAX, Limits, OUTBOX_RECORDS_MAX};
use super::model::{Header, OutboxRecord, Timer};
use super::outcome::{Reason, Rejection};
use crate::text::shown;

/// Room for what the fired record carries beside the arm's own bytes: fifteen headers whose names and fixed-size values
/// take less than 512 bytes, framing of the batch and growth of attempt numbers.
const FIRED_RECORD_OVERHEAD_BYTES: usize = 1024;
/// How often the fired record's headers repeat the identity: `ce_id`, `ce_subject`, and tenant, run and id on their own,
/// and once more as the record's key.
const IDENTITY_REPEATS: usize = 4;
/// Room for the names of the members of an envelope and their values of fixed size.
const ENVELOPE_OVERHEAD_BYTES: usize = 1024;
/// How often an envelope repeats the identity, where an escape makes two bytes of one: as `ce_id`, `ce_subject` and by its parts.
const ENVELOPE_REPEATS: usize = 2 * 3;
/// Framing of one header or one outbox record, at most.
const FRAMING_BYTES: usize = 16;

/// What a fire emits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Emitted<'a> {
    key: &'a TimerKey,
    payload: Option<&'a Bytes>,
    record_key: Option<&'a Bytes>,
    headers: &'a [Header],
    outbox: &'a [OutboxRecord],
}

impl<'a> Emitted<'a> {
    /// Returns what the fire of an arm emits.
    pub(super) fn by_arm(arm: &'a Arm) -> Self {
        Self {
            key: &arm.key,
            payload: arm.payload.as_ref(),
            record_key: arm.record_key.as_ref(),
            headers: &arm.headers,
            outbox: &arm.outbox,
        }
    }

    /// Returns what a timer emits.
    pub(super) fn by_timer(timer: &'a Timer) -> Self {
        Self {
            key: &timer.key,
            payload: timer.payload.as_ref(),
            record_key: timer.record_key.as_ref(),
            headers: &timer.headers,
            outbox: &timer.outbox,
        }
    }

    /// Judges the size.
    ///
    /// # Errors
    /// When something is too much, too large, or has no topic to go to.
    pub(super) fn check(&self, kind: Option<&Kind>, limits: &Limits) -> Result<(), Rejection> {
        if self.outbox.len() > OUTBOX_RECORDS_MAX {
            let detail = format!("outbox has {} records; at most {OUTBOX_RECORDS_MAX} fit", self.outbox.len());
            return Err(Rejection::new(Reason::TooMany, detail));
        }
        if let Some(kind) = kind.filter(|kind| !kind.outbox && !self.outbox.is_empty()) {
            let detail = format!("kind `{}` has no outbox topic; set `outbox: true` for it", kind.name);
            return Err(Rejection::new(Reason::NoOutbox, detail));
        }
        check_headers(self.headers)?;
        for record in self.outbox {
            check_headers(&record.headers)?;
        }
        let outbox: usize = self.outbox.iter().map(outbox_bytes).sum();
        if outbox > limits.outbox_bytes_max {
            let detail = format!("outbox takes {outbox} bytes; at most {} fit", limits.outbox_bytes_max);
            return Err(Rejection::new(Reason::TooLarge, detail));
        }
        // The stored row carries both, and must fit the changelog as the fired record must fit its topic.
        let envelope = match kind.map(|kind| kind.content_mode) {
            Some(ContentMode::Structured) => self.envelope_bytes(),
            Some(ContentMode::Binary) | None => 0,
        };
        let bytes = self.fired_bytes().saturating_add(outbox).saturating_add(envelope);
        if bytes > limits.fired_bytes_max {
            let detail = format!(
                "the fired record and its outbox would take {bytes} bytes; at most {} fit (limits.fired_bytes_max)",
                limits.fired_bytes_max
            );
            return Err(Rejection::new(Reason::TooLarge, detail));
        }
        Ok(())
    }

    /// Returns the size of the fired record, rounded up.
    fn fired_bytes(&self) -> usize {
        FIRED_RECORD_OVERHEAD_BYTES
            + IDENTITY_REPEATS * self.identity_bytes()
            + optional_bytes(self.payload)
            + optional_bytes(self.record_key)
            + headers_bytes(self.headers)
    }

    /// Returns by how much an envelope is larger than the payload, rounded up: base64 makes four bytes of three.
    fn envelope_bytes(&self) -> usize {
        ENVELOPE_OVERHEAD_BYTES + ENVELOPE_REPEATS * self.identity_bytes() + optional_bytes(self.payload).div_ceil(3)
    }

    fn identity_bytes(&self) -> usize {
        self.key.run.tenant.as_str().len() + self.key.run.run.as_str().len() + self.key.id.as_str().len()
    }
}

fn check_headers(headers: &[Header]) -> Result<(), Rejection> {
    if headers.len() > HEADERS_MAX {
        let detail = format!("a record has {} headers; at most {HEADERS_MAX} fit", headers.len());
        return Err(Rejection::new(Reason::TooMany, detail));
    }
    for header in headers {
        if header.key.is_empty() || header.key.starts_with("punctual-") || header.key.starts_with("ce_") {
            let detail = format!(
                "header `{}` is reserved; names are not empty and do not start with punctual- or ce_",
                shown(&header.key)
            );
            return Err(Rejection::new(Reason::ReservedHeader, detail));
        }
    }
    Ok(())
}

/// Returns the size of an outbox record, rounded up.
fn outbox_bytes(record: &OutboxRecord) -> usize {
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
