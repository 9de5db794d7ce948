//! Keys of state: a byte order that is the order of the values.
//!
//! Owns the encoding of variable parts and the keys of the changelog. The store builds its own keys of the same parts.
//!
//! ```text
//!   part       every byte as it is, 0x00 as 0x00 0xFF, and 0x00 0x01 behind the last
//!   meta       01
//!   barrier    02
//!   run        03 ‖ part(tenant) ‖ part(run)
//!   timer      04 ‖ part(tenant) ‖ part(run) ‖ part(timer id)
//!   remembered 05 ‖ part(tenant) ‖ part(run) ‖ part(timer id)
//! ```
//!
//! Keeps: keys compare as the values they stand for, and no two values share a key (INV-KEY-1).

use bytes::Bytes;

use super::DecodeError;
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};

const ESCAPE: u8 = 0x00;
const ESCAPED_ZERO: u8 = 0xFF;
const END: u8 = 0x01;

const TAG_META: u8 = 0x01;
const TAG_BARRIER: u8 = 0x02;
const TAG_RUN: u8 = 0x03;
const TAG_TIMER: u8 = 0x04;
const TAG_REMEMBERED: u8 = 0x05;

/// What a record of the changelog is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateKey {
    /// What the partition knows of itself.
    Meta,
    /// The mark of an ownership.
    Barrier,
    /// A run.
    Run(RunKey),
    /// A timer.
    Timer(TimerKey),
    /// A timer id that has ended.
    Remembered(TimerKey),
}

impl StateKey {
    /// Returns the key's bytes.
    pub fn encode(&self) -> Bytes {
        let mut key = Vec::with_capacity(64);
        match self {
            Self::Meta => key.push(TAG_META),
            Self::Barrier => key.push(TAG_BARRIER),
            Self::Run(run) => {
                key.push(TAG_RUN);
                append_run(&mut key, run);
            }
            Self::Timer(timer) => {
                key.push(TAG_TIMER);
                append_timer(&mut key, timer);
            }
            Self::Remembered(id) => {
                key.push(TAG_REMEMBERED);
                append_timer(&mut key, id);
            }
        }
        Bytes::from(key)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// [`DecodeError::TooNew`] for a tag of a later release, [`DecodeError::Malformed`] for bytes that are no key.
    pub fn decode(key: &[u8]) -> Result<Self, DecodeError> {
        let Some((tag, rest)) = key.split_first() else {
            return Err(malformed("it is empty"));
        };
        let (key, rest) = match *tag {
            TAG_META => (Self::Meta, rest),
            TAG_BARRIER => (Self::Barrier, rest),
            TAG_RUN => {
                let (run, rest) = read_run(rest)?;
                (Self::Run(run), rest)
            }
            TAG_TIMER => {
                let (timer, rest) = read_timer(rest)?;
                (Self::Timer(timer), rest)
            }
            TAG_REMEMBERED => {
                let (id, rest) = read_timer(rest)?;
                (Self::Remembered(id), rest)
            }
            unknown => {
                return Err(DecodeError::TooNew { what: WHAT, problem: format!("tag {unknown:#04x} is not known") });
            }
        };
        if rest.is_empty() { Ok(key) } else { Err(malformed(format!("{} bytes stand behind its end", rest.len()))) }
    }
}

/// Appends a variable part, of any bytes.
pub fn append_part(key: &mut Vec<u8>, part: &[u8]) {
    for byte in part {
        key.push(*byte);
        if *byte == ESCAPE {
            key.push(ESCAPED_ZERO);
        }
    }
    key.extend([ESCAPE, END]);
}

/// Reads a variable part from the front and returns it with what stands behind it.
///
/// # Errors
/// [`DecodeError::Malformed`] when the part has no end or a wrong escape.
pub fn read_part(key: &[u8]) -> Result<(Vec<u8>, &[u8]), DecodeError> {
    let mut part = Vec::new();
    let mut rest = key;
    loop {
        rest = match rest {
            [ESCAPE, END, behind @ ..] => return Ok((part, behind)),
            [ESCAPE, ESCAPED_ZERO, behind @ ..] => {
                part.push(ESCAPE);
                behind
            }
            [ESCAPE, ..] | [] => return Err(malformed("a part of it has no end")),
            [byte, behind @ ..] => {
                part.push(*byte);
                behind
            }
        };
    }
}

/// Appends a run: tenant, then run.
pub fn append_run(key: &mut Vec<u8>, run: &RunKey) {
    append_part(key, run.tenant.as_str().as_bytes());
    append_part(key, run.run.as_str().as_bytes());
}

/// Reads a run from the front and returns it with what stands behind it.
///
/// # Errors
/// [`DecodeError::Malformed`] when the bytes are no valid run.
pub fn read_run(key: &[u8]) -> Result<(RunKey, &[u8]), DecodeError> {
    let (tenant, rest) = read_text(key)?;
    let (run, rest) = read_text(rest)?;
    // The empty tenant is a way to write the default one in commands; a key has the name.
    if tenant.is_empty() {
        return Err(malformed("its tenant is empty"));
    }
    let tenant = Tenant::parse(&tenant).map_err(malformed)?;
    let run = Run::parse(&run).map_err(malformed)?;
    Ok((RunKey { tenant, run }, rest))
}

/// Appends a timer: its run, then its id, so that the timers of a run stand together in order of their ids.
pub fn append_timer(key: &mut Vec<u8>, timer: &TimerKey) {
    append_run(key, &timer.run);
    append_part(key, timer.id.as_str().as_bytes());
}

/// Reads a timer from the front and returns it with what stands behind it.
///
/// # Errors
/// [`DecodeError::Malformed`] when the bytes are no valid timer.
pub fn read_timer(key: &[u8]) -> Result<(TimerKey, &[u8]), DecodeError> {
    let (run, rest) = read_run(key)?;
    let (id, rest) = read_text(rest)?;
    let id = TimerId::parse(&id).map_err(malformed)?;
    Ok((TimerKey { run, id }, rest))
}

fn read_text(key: &[u8]) -> Result<(String, &[u8]), DecodeError> {
    let (part, rest) = read_part(key)?;
    let text = String::from_utf8(part).map_err(|_| malformed("a name in it is not UTF-8"))?;
    Ok((text, rest))
}

const WHAT: &str = "state key";

fn malformed(problem: impl std::fmt::Display) -> DecodeError {
    DecodeError::malformed(WHAT, problem)
}

#[cfg(test)]
#[path = "key_test.rs"]
mod tests;
