//! The bytes of keys, and of the values that are nothing but a place or a number.
//!
//! Owns the layouts below. Never knows a database: ranges are pairs of byte strings, lower bound included, upper excluded.
//! Keeps: the order of the bytes is the order of the values (INV-KEY-1), and no key is the beginning of another.
//!
//! ```text
//! family   key                                              value
//! due      kind u8 │ wake u64 BE (ms) │ generation u64 BE   the whole timer, as wire encodes it
//! id       tenant part │ run part │ timer id part           kind u8 │ wake u64 BE │ generation u64 BE  (the key in `due`)
//! run      tenant part │ run part                           the run's state, as wire encodes it
//! agenda   instant u64 BE (ms) │ tenant part │ run part     nothing
//! ended    tenant part │ run part │ timer id part           instant u64 BE (ms): when the id is forgotten
//! forget   instant u64 BE (ms) │ tenant part │ run part │ timer id part     what is remembered of the id, as wire encodes it
//! meta     0x01                                             the header
//!          0x02 │ tenant part                               pending timers of the tenant, u64 BE
//!          0x03                                             the format of an embedded engine, and the bounds of its outbox
//!          0x04 │ number u64 BE                             an entry of that outbox, as wire encodes it
//! part     the bytes with 0x00 as 0x00 0xFF, then 0x00 0x01
//! ```

use std::fmt::Display;

use crate::time::Timestamp;
use crate::timer::identity::{RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Generation, Located};
use crate::wire::DecodeError;
use crate::wire::key::{append_part, append_run, append_timer, read_run, read_timer};

/// The row of the header. The numbers of the rows of `meta` are never reused.
pub const HEADER: [u8; 1] = [0x01];
/// The first byte of the rows that count a tenant's pending timers.
const TENANT_COUNT: u8 = 0x02;
/// The row of an embedded engine.
pub const ENGINE: [u8; 1] = [0x03];
/// The first byte of the rows of its outbox.
const OUTBOX: u8 = 0x04;

/// The length of a place: kind, wake, generation.
const PLACE_BYTES: usize = 1 + 8 + 8;

/// A row that is not written as this file draws it: the files are damaged, or of another format.
#[derive(Debug, thiserror::Error)]
#[error("{what} {bytes:02x?} cannot be read: {problem}")]
pub struct KeyError {
    what: &'static str,
    bytes: Vec<u8>,
    problem: String,
}

impl KeyError {
    fn new(what: &'static str, bytes: &[u8], problem: &dyn Display) -> Self {
        Self { what, bytes: bytes.to_vec(), problem: problem.to_string() }
    }
}

/// Returns the key in `due`, which is the value in `id` too.
pub fn place(at: Located) -> [u8; PLACE_BYTES] {
    let mut bytes = [0; PLACE_BYTES];
    let (kind, rest) = bytes.split_at_mut(1);
    let (wake, generation) = rest.split_at_mut(8);
    kind.copy_from_slice(&[at.kind.get()]);
    wake.copy_from_slice(&instant(at.at.wake));
    generation.copy_from_slice(&at.at.generation.0.to_be_bytes());
    bytes
}

/// Reads a place.
///
/// # Errors
/// When the bytes are not a place.
pub fn read_place(bytes: &[u8]) -> Result<Located, KeyError> {
    let error = |problem: &str| KeyError::new("a place", bytes, &problem);
    let exact: [u8; PLACE_BYTES] = bytes.try_into().map_err(|_| error("it is not 17 bytes long"))?;
    let [kind, w0, w1, w2, w3, w4, w5, w6, w7, generation @ ..] = exact;
    let kind = KindNumber::new(u32::from(kind)).ok_or_else(|| error("no kind is 0"))?;
    let wake = read_instant([w0, w1, w2, w3, w4, w5, w6, w7]).ok_or_else(|| error("its wake is no instant"))?;
    Ok(Located { kind, at: DueKey { wake, generation: Generation(u64::from_be_bytes(generation)) } })
}

/// Returns the range in `due` of a kind's rows at or behind `from` with a wake at or before `until`.
pub fn due_range(kind: KindNumber, from: DueKey, until: Timestamp) -> (Vec<u8>, Vec<u8>) {
    let lower = place(Located { kind, at: from }).to_vec();
    let mut upper = vec![kind.get()];
    upper.extend(behind(until));
    (lower, upper)
}

/// Returns the key in `id`.
pub fn id(key: &TimerKey) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    append_timer(&mut bytes, key);
    bytes
}

/// Reads a key of `id`.
///
/// # Errors
/// When the bytes are not such a key.
pub fn read_id(bytes: &[u8]) -> Result<TimerKey, KeyError> {
    whole("a timer's key", bytes, read_timer(bytes))
}

/// Returns the range in `id` of a run's timers behind `after`.
pub fn id_range(run: &RunKey, after: Option<&TimerId>) -> (Vec<u8>, Vec<u8>) {
    let mut lower = self::run(run);
    let mut upper = lower.clone();
    // UTF-8 has no such byte: all ids of the run are below.
    upper.push(0xFF);
    if let Some(after) = after {
        append_part(&mut lower, after.as_str().as_bytes());
        // The least byte string above a key; it is no key itself, and no key lies between.
        lower.push(0x00);
    }
    (lower, upper)
}

/// Returns the key in `run`, which is the beginning of the keys of its timers in `id`.
pub fn run(run: &RunKey) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    append_run(&mut bytes, run);
    bytes
}

/// Returns the key in `agenda`.
pub fn agenda(at: Timestamp, run: &RunKey) -> Vec<u8> {
    let mut bytes = instant(at).to_vec();
    append_run(&mut bytes, run);
    bytes
}

/// Reads a key of `agenda`.
///
/// # Errors
/// When the bytes are not such a key.
pub fn read_agenda(bytes: &[u8]) -> Result<(Timestamp, RunKey), KeyError> {
    let error = |problem: &str| KeyError::new("a key of the agenda", bytes, &problem);
    let (at, run) = bytes.split_first_chunk().ok_or_else(|| error("it has no instant"))?;
    let at = read_instant(*at).ok_or_else(|| error("its instant is none"))?;
    Ok((at, whole("a run's key", run, read_run(run))?))
}

/// Returns the end of the range in `agenda` of what is at or before `until`; it starts at the family's first row.
pub fn agenda_end(until: Timestamp) -> Vec<u8> {
    behind(until).to_vec()
}

/// Returns the key in `forget`.
pub fn forget(until: Timestamp, key: &TimerKey) -> Vec<u8> {
    let mut bytes = instant(until).to_vec();
    append_timer(&mut bytes, key);
    bytes
}

/// Reads a key of `forget`.
///
/// # Errors
/// When the bytes are not such a key.
pub fn read_forget(bytes: &[u8]) -> Result<(Timestamp, TimerKey), KeyError> {
    let error = |problem: &str| KeyError::new("a key of the remembered ids", bytes, &problem);
    let (until, key) = bytes.split_first_chunk().ok_or_else(|| error("it has no instant"))?;
    let until = read_instant(*until).ok_or_else(|| error("its instant is none"))?;
    Ok((until, whole("a timer's key", key, read_timer(key))?))
}

/// Returns the range in `forget` of what ends from `from` to `until`.
pub fn forget_range(from: Timestamp, until: Timestamp) -> (Vec<u8>, Vec<u8>) {
    (instant(from.max(Timestamp::EPOCH)).to_vec(), behind(until).to_vec())
}

/// Returns the value in `ended`.
pub fn end(until: Timestamp) -> [u8; 8] {
    instant(until)
}

/// Reads a value of `ended`.
///
/// # Errors
/// When the bytes are no instant.
pub fn read_end(bytes: &[u8]) -> Result<Timestamp, KeyError> {
    let error = |problem: &str| KeyError::new("the end of a remembered id", bytes, &problem);
    let exact = bytes.try_into().map_err(|_| error("it is not 8 bytes long"))?;
    read_instant(exact).ok_or_else(|| error("it is no instant"))
}

/// Returns the key in `meta` of the tenant's count.
pub fn tenant_count(tenant: &Tenant) -> Vec<u8> {
    let mut bytes = vec![TENANT_COUNT];
    append_part(&mut bytes, tenant.as_str().as_bytes());
    bytes
}

/// Returns the key in `meta` of an entry of the outbox.
pub fn outbox(number: u64) -> Vec<u8> {
    let mut bytes = vec![OUTBOX];
    bytes.extend(number.to_be_bytes());
    bytes
}

/// Returns the range in `meta` of the entries with the numbers from `from` up to, and without, `to`.
pub fn outbox_range(from: u64, to: u64) -> (Vec<u8>, Vec<u8>) {
    (outbox(from), outbox(to))
}

/// Reads the key of an entry of the outbox.
///
/// # Errors
/// When the bytes are not such a key.
pub fn read_outbox(bytes: &[u8]) -> Result<u64, KeyError> {
    let number = bytes.strip_prefix(&[OUTBOX]).and_then(|number| number.try_into().ok());
    let number =
        number.ok_or_else(|| KeyError::new("a key of the outbox", bytes, &"it is not its byte and a number"))?;
    Ok(u64::from_be_bytes(number))
}

/// Returns the value of a count.
pub fn count(count: u64) -> [u8; 8] {
    count.to_be_bytes()
}

/// Reads a count.
///
/// # Errors
/// When the bytes are not a count.
pub fn read_count(bytes: &[u8]) -> Result<u64, KeyError> {
    let exact = bytes.try_into().map_err(|_| KeyError::new("a count", bytes, &"it is not 8 bytes long"))?;
    Ok(u64::from_be_bytes(exact))
}

fn instant(at: Timestamp) -> [u8; 8] {
    u64::try_from(at.as_millis()).expect("instants before the epoch are refused where they enter").to_be_bytes()
}

/// Returns the bytes of the millisecond behind `until`, which is the least instant if `until` is before the epoch.
fn behind(until: Timestamp) -> [u8; 8] {
    u64::try_from(until.as_millis()).map_or(0, |millis| millis + 1).to_be_bytes()
}

fn read_instant(bytes: [u8; 8]) -> Option<Timestamp> {
    i64::try_from(u64::from_be_bytes(bytes)).ok().map(Timestamp::from_millis)
}

/// Returns what was read, if nothing stands behind it.
fn whole<T>(what: &'static str, bytes: &[u8], read: Result<(T, &[u8]), DecodeError>) -> Result<T, KeyError> {
    match read {
        Ok((value, [])) => Ok(value),
        Ok((_, behind)) => Err(KeyError::new(what, bytes, &format!("{} bytes stand behind its end", behind.len()))),
        Err(error) => Err(KeyError::new(what, bytes, &error)),
    }
}

#[cfg(test)]
#[path = "key_test.rs"]
mod tests;
