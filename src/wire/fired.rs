//! Fired records: the payload as the value, everything about the timer in headers.
//!
//! Owns the names of those headers and their order: `CloudEvents` in binary mode, then punctual's own, then those of the
//! arm. The value of the record is the payload itself, untouched, unless its kind wants an `envelope`. Keeps: the arm's own headers follow byte for byte, in
//! order, duplicates included; `ce_id` is the same for each attempt of one generation, so that a consumer can tell.

use bytes::Bytes;

use crate::timer::model::{Header, Timer};
use crate::timer::outcome::FiredEvent;

/// Always `1.0`.
pub const CE_SPECVERSION: &str = "ce_specversion";
/// `tenant/run/timer_id/generation`.
pub const CE_ID: &str = "ce_id";
/// `punctual.fired.` and the name of the kind.
pub const CE_TYPE: &str = "ce_type";
/// The configured source.
pub const CE_SOURCE: &str = "ce_source";
/// `tenant/run/timer_id`.
pub const CE_SUBJECT: &str = "ce_subject";
/// When the timer fired, as RFC 3339 with milliseconds.
pub const CE_TIME: &str = "ce_time";
/// The tenant.
pub const TENANT: &str = "punctual-tenant";
/// The run.
pub const RUN: &str = "punctual-run";
/// The timer id.
pub const TIMER_ID: &str = "punctual-timer-id";
/// The name of the kind.
pub const KIND: &str = "punctual-kind";
/// The version of the timer, in decimal.
pub const GENERATION: &str = "punctual-generation";
/// The number of the attempt, from 1, in decimal.
pub const ATTEMPT: &str = "punctual-attempt";
/// When the timer was due, as RFC 3339 with milliseconds.
pub const DUE: &str = "punctual-due";
/// When the timer was armed, as RFC 3339 with milliseconds.
pub const ARMED: &str = "punctual-armed";
/// When the timer fired, as RFC 3339 with milliseconds.
pub const FIRED: &str = "punctual-fired";
/// Of a timer that recurs: how often it has fired, this time included, in decimal.
pub const OCCURRENCE: &str = "punctual-occurrence";

/// Returns the key of the fired record: the arm's own, else `tenant/run`.
pub fn key(timer: &Timer) -> Bytes {
    match &timer.record_key {
        Some(key) => key.clone(),
        None => Bytes::from(timer.key.run.to_string()),
    }
}

/// Returns the headers of the fired record in binary mode: our own, then those of the arm.
pub fn headers(event: &FiredEvent, kind_name: &str, source: &str) -> Vec<Header> {
    let mut headers = own_headers(event, kind_name, source);
    headers.extend(event.timer.headers.iter().cloned());
    headers
}

/// Returns the headers of the fired record that are ours.
pub fn own_headers(event: &FiredEvent, kind_name: &str, source: &str) -> Vec<Header> {
    let timer = &event.timer;
    let subject = timer.key.to_string();
    let fired = Bytes::from(event.fired.to_string());
    let mut headers = Vec::with_capacity(16 + timer.headers.len());
    let mut push = |key: &str, value: Bytes| headers.push(Header { key: key.to_owned(), value: Some(value) });
    push(CE_SPECVERSION, Bytes::from_static(b"1.0"));
    push(CE_ID, Bytes::from(format!("{subject}/{}", timer.generation.0)));
    push(CE_TYPE, Bytes::from(format!("punctual.fired.{kind_name}")));
    push(CE_SOURCE, Bytes::copy_from_slice(source.as_bytes()));
    push(CE_SUBJECT, Bytes::from(subject));
    push(CE_TIME, fired.clone());
    push(TENANT, Bytes::copy_from_slice(timer.key.run.tenant.as_str().as_bytes()));
    push(RUN, Bytes::copy_from_slice(timer.key.run.run.as_str().as_bytes()));
    push(TIMER_ID, Bytes::copy_from_slice(timer.key.id.as_str().as_bytes()));
    push(KIND, Bytes::copy_from_slice(kind_name.as_bytes()));
    push(GENERATION, Bytes::from(timer.generation.0.to_string()));
    push(ATTEMPT, Bytes::from(event.attempt.to_string()));
    push(DUE, Bytes::from(timer.due.to_string()));
    push(ARMED, Bytes::from(timer.armed.to_string()));
    push(FIRED, fired);
    if let Some(recurring) = &timer.recurring {
        push(OCCURRENCE, Bytes::from(recurring.fired.saturating_add(1).to_string()));
    }
    headers
}

#[cfg(test)]
#[path = "fired_test.rs"]
mod tests;
