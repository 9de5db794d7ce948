//! State: the records of the changelog, which are the rows of the store too.
//!
//! Owns the encodings of timers, runs, [`Meta`] and [`Barrier`], and the reader version. Keeps: what is decoded is a valid
//! value, or an error that says what contradicts; a record of a newer release is recognised and never read by half.
//!
//! Each record says which reader version it needs. A release that changes what a record means raises it for the records
//! that use the change, and only for them, so that releases can run side by side and be rolled back.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;

use super::{DecodeError, proto, record, recurrence};
use crate::calendar::digest::{DIGEST_BYTES, Digest};
use crate::position::{Partition, Position};
use crate::time::Timestamp;
use crate::timer::command::{Encoding, Reply};
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{Claim, Generation, RunState, Seal, Sweep, SweepReply, Timer};

/// The highest version of records that this release understands.
const READER: u32 = 4;
/// The version that every record needs.
const READER_MIN: u32 = 1;
/// The version that a timer needs that recurs or is delivered by claim.
const READER_OF_REPEATED: u32 = 2;
/// The version that a remembered id needs.
pub(super) const READER_OF_REMEMBERED: u32 = 3;
/// The version that a paused timer needs.
const READER_OF_PAUSED: u32 = 4;

/// What a partition knows of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The next command to read.
    pub input_position: Position,
    /// The next generation to give.
    pub next_generation: Generation,
    /// Per partition that only forwards: the position behind its last command that came here.
    pub forwarders: BTreeMap<Partition, Position>,
}

/// The mark of an ownership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// A number that no other barrier has.
    pub nonce: u64,
    /// The instance that wrote it.
    pub owner: String,
}

/// Writes a timer.
///
/// # Panics
/// When the wake is before the due: such a timer could not be read back (INV-STATE-1).
pub fn encode_timer(timer: &Timer) -> Bytes {
    assert!(timer.wake >= timer.due, "INV-STATE-1: a timer is not looked at before its due");
    let message = proto::TimerState {
        reader_min: reader_of(timer),
        tenant: timer.key.run.tenant.as_str().to_owned(),
        run: timer.key.run.run.as_str().to_owned(),
        timer_id: timer.key.id.as_str().to_owned(),
        kind: u32::from(timer.kind.get()),
        due_ms: timer.due.as_millis(),
        wake_ms: timer.wake.as_millis(),
        generation: timer.generation.0,
        attempt: timer.attempt,
        armed_ms: timer.armed.as_millis(),
        payload: timer.payload.clone(),
        key: timer.record_key.clone(),
        headers: record::headers_to_proto(&timer.headers),
        outbox: record::outbox_to_proto(&timer.outbox),
        recurrence: timer.recurring.as_deref().map(recurrence::to_proto),
        resolved_with: timer.resolved_with.map(|digest| Bytes::copy_from_slice(digest.as_bytes())),
        claim: timer.claim.map(claim_to_proto),
        paused_ms: timer.paused.map(Timestamp::as_millis),
    };
    Bytes::from(message.encode_to_vec())
}

/// Reads a timer.
///
/// # Errors
/// [`DecodeError::TooNew`] when a newer release wrote it, [`DecodeError::Malformed`] when it contradicts itself.
pub fn decode_timer(bytes: &[u8]) -> Result<Timer, DecodeError> {
    const WHAT: &str = "timer";
    let message: proto::TimerState = decode(WHAT, bytes)?;
    check_reader(WHAT, message.reader_min)?;
    let malformed = |problem: String| DecodeError::malformed(WHAT, problem);
    let key = timer_key(&message).map_err(malformed)?;
    let kind = KindNumber::new(message.kind).ok_or_else(|| malformed(format!("its kind is {}", message.kind)))?;
    let due = instant("due", message.due_ms).map_err(malformed)?;
    let wake = instant("wake", message.wake_ms).map_err(malformed)?;
    if wake < due {
        return Err(malformed(format!("its wake {wake} is before its due {due}")));
    }
    let recurring = message.recurrence.map(recurrence::from_proto).transpose().map_err(malformed)?;
    let resolved_with = message.resolved_with.map(|bytes| read_digest(&bytes)).transpose().map_err(malformed)?;
    let claim = message.claim.map(|claim| read_claim(claim, message.attempt)).transpose().map_err(malformed)?;
    Ok(Timer {
        key,
        kind,
        due,
        wake,
        generation: generation(message.generation, Generation::MAX).map_err(malformed)?,
        attempt: message.attempt,
        armed: Timestamp::from_millis(message.armed_ms),
        payload: message.payload,
        record_key: message.key,
        headers: record::headers_from_proto(message.headers),
        outbox: record::outbox_from_proto(message.outbox),
        claim,
        recurring: recurring.map(Box::new),
        resolved_with,
        paused: message.paused_ms.map(|millis| instant("pause", millis)).transpose().map_err(malformed)?,
    })
}

fn reader_of(timer: &Timer) -> u32 {
    if timer.paused.is_some() {
        return READER_OF_PAUSED;
    }
    if timer.claim.is_some() || timer.recurring.is_some() { READER_OF_REPEATED } else { READER_MIN }
}

fn read_digest(bytes: &[u8]) -> Result<Digest, String> {
    let read = <[u8; DIGEST_BYTES]>::try_from(bytes).map(Digest::from_bytes);
    read.map_err(|_| format!("its digest has {} bytes instead of {DIGEST_BYTES}", bytes.len()))
}

fn claim_to_proto(claim: Claim) -> proto::Claim {
    let lease_ms = i64::try_from(claim.lease.as_millis()).unwrap_or(i64::MAX);
    proto::Claim { lease_ms, attempts_max: claim.attempts_max }
}

fn read_claim(claim: proto::Claim, attempt: u32) -> Result<Claim, String> {
    let lease = u64::try_from(claim.lease_ms).ok().filter(|lease| *lease > 0);
    let lease = lease.ok_or_else(|| format!("its lease is {} ms", claim.lease_ms))?;
    if let Some(max) = claim.attempts_max.filter(|max| *max == 0 || attempt > *max) {
        return Err(format!("it was attempted {attempt} times of at most {max}"));
    }
    Ok(Claim { lease: Duration::from_millis(lease), attempts_max: claim.attempts_max })
}

fn timer_key(message: &proto::TimerState) -> Result<TimerKey, String> {
    // The empty tenant is a way to write the default one in commands; a stored timer has the name.
    if message.tenant.is_empty() {
        return Err("it has no tenant".to_owned());
    }
    let tenant = Tenant::parse(&message.tenant).map_err(|error| error.to_string())?;
    let run = Run::parse(&message.run).map_err(|error| error.to_string())?;
    let id = TimerId::parse(&message.timer_id).map_err(|error| error.to_string())?;
    Ok(TimerKey { run: RunKey { tenant, run }, id })
}

/// Writes a run's state.
pub fn encode_run(state: &RunState) -> Bytes {
    let message = proto::RunState {
        reader_min: READER_MIN,
        seal: state.seal.map(|seal| proto::Seal { until_ms: seal.until.map(Timestamp::as_millis) }),
        sweep: state.sweep.as_ref().map(|sweep| proto::Sweep {
            below_generation: sweep.below.0,
            removed: sweep.removed,
            replies: sweep.replies.iter().map(sweep_reply_to_proto).collect(),
        }),
    };
    Bytes::from(message.encode_to_vec())
}

fn sweep_reply_to_proto(waiting: &SweepReply) -> proto::SweepReply {
    let encoding = match waiting.reply.encoding {
        Encoding::Protobuf => proto::Encoding::Protobuf,
        Encoding::Json => proto::Encoding::Json,
    };
    proto::SweepReply {
        correlation_id: waiting.reply.correlation_id.clone(),
        encoding: i32::from(encoding),
        sealed: waiting.sealed,
    }
}

/// Reads a run's state.
///
/// # Errors
/// [`DecodeError::TooNew`] when a newer release wrote it, [`DecodeError::Malformed`] when it contradicts itself.
pub fn decode_run(bytes: &[u8]) -> Result<RunState, DecodeError> {
    const WHAT: &str = "run state";
    let message: proto::RunState = decode(WHAT, bytes)?;
    check_reader(WHAT, message.reader_min)?;
    let malformed = |problem: String| DecodeError::malformed(WHAT, problem);
    let seal = match message.seal {
        None => None,
        Some(seal) => {
            let until = seal.until_ms.map(|millis| instant("seal's end", millis)).transpose().map_err(malformed)?;
            Some(Seal { until })
        }
    };
    let sweep = match message.sweep {
        None => None,
        Some(sweep) => {
            let replies: Result<Vec<SweepReply>, String> = sweep.replies.into_iter().map(sweep_reply).collect();
            let (below, removed) = (Generation(sweep.below_generation), sweep.removed);
            Some(Sweep { below, removed, replies: replies.map_err(malformed)? })
        }
    };
    Ok(RunState { seal, sweep })
}

fn sweep_reply(waiting: proto::SweepReply) -> Result<SweepReply, String> {
    let encoding = match proto::Encoding::try_from(waiting.encoding) {
        Ok(proto::Encoding::Protobuf) => Encoding::Protobuf,
        Ok(proto::Encoding::Json) => Encoding::Json,
        Ok(proto::Encoding::Unspecified) | Err(_) => {
            return Err(format!("encoding {} of a waiting client is not known", waiting.encoding));
        }
    };
    if waiting.correlation_id.is_empty() {
        return Err("a waiting client has no correlation id".to_owned());
    }
    let reply = Reply { correlation_id: waiting.correlation_id, encoding };
    Ok(SweepReply { reply, sealed: waiting.sealed })
}

impl Meta {
    /// Writes the record.
    pub fn encode(&self) -> Bytes {
        let message = proto::Meta {
            reader_min: READER_MIN,
            input_position: self.input_position.0,
            next_generation: self.next_generation.0,
            forwarders: self.forwarders.iter().map(forwarder).collect(),
        };
        Bytes::from(message.encode_to_vec())
    }

    /// Reads the record.
    ///
    /// # Errors
    /// [`DecodeError::TooNew`] when a newer release wrote it, [`DecodeError::Malformed`] when it contradicts itself.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        const WHAT: &str = "meta";
        let message: proto::Meta = decode(WHAT, bytes)?;
        check_reader(WHAT, message.reader_min)?;
        if message.input_position < 0 {
            let problem = format!("its input position is {}", message.input_position);
            return Err(DecodeError::malformed(WHAT, problem));
        }
        let mut forwarders = BTreeMap::new();
        for proto::Forwarder { partition, position } in message.forwarders {
            if position < 0 || forwarders.insert(Partition(partition), Position(position)).is_some() {
                let problem = format!("partition {partition} forwarded up to {position}, or stands there twice");
                return Err(DecodeError::malformed(WHAT, problem));
            }
        }
        Ok(Self {
            input_position: Position(message.input_position),
            next_generation: generation(message.next_generation, Generation::COUNTER_MAX)
                .map_err(|problem| DecodeError::malformed(WHAT, problem))?,
            forwarders,
        })
    }
}

fn forwarder((partition, position): (&Partition, &Position)) -> proto::Forwarder {
    proto::Forwarder { partition: partition.0, position: position.0 }
}

impl Barrier {
    /// Writes the record.
    pub fn encode(&self) -> Bytes {
        let message = proto::Barrier { reader_min: READER_MIN, nonce: self.nonce, owner: self.owner.clone() };
        Bytes::from(message.encode_to_vec())
    }

    /// Reads the record.
    ///
    /// # Errors
    /// [`DecodeError::TooNew`] when a newer release wrote it, [`DecodeError::Malformed`] when it is no barrier.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        const WHAT: &str = "barrier";
        let message: proto::Barrier = decode(WHAT, bytes)?;
        check_reader(WHAT, message.reader_min)?;
        Ok(Self { nonce: message.nonce, owner: message.owner })
    }
}

pub(super) fn decode<M: Message + Default>(what: &'static str, bytes: &[u8]) -> Result<M, DecodeError> {
    // One copy of the row: its payload, key and header values are slices of it.
    M::decode(Bytes::copy_from_slice(bytes)).map_err(|error| DecodeError::malformed(what, error))
}

pub(super) fn check_reader(what: &'static str, reader_min: u32) -> Result<(), DecodeError> {
    if reader_min == 0 {
        return Err(DecodeError::malformed(what, "it has no reader version"));
    }
    if reader_min > READER {
        let problem = format!("it needs reader version {reader_min}, this release has {READER}");
        return Err(DecodeError::TooNew { what, problem });
    }
    Ok(())
}

pub(super) fn generation(number: u64, max: Generation) -> Result<Generation, String> {
    let generation = Generation(number);
    if generation <= max {
        Ok(generation)
    } else {
        Err(format!("its generation is {number}, which no counter reaches"))
    }
}

pub(super) fn instant(field: &str, millis: i64) -> Result<Timestamp, String> {
    let instant = Timestamp::from_millis(millis);
    if (Timestamp::EPOCH..=Timestamp::MAX).contains(&instant) {
        Ok(instant)
    } else {
        Err(format!("its {field} is {millis} ms, outside the years 1970 to 9999"))
    }
}

#[cfg(test)]
#[path = "state_test.rs"]
mod tests;
