//! The state of timers: what is stored, recovered and folded.
//!
//! Owns [`Timer`], [`RunState`] and the keys that place them. Never knows bytes: encodings are in `wire` and `store::key`.
//! Keeps: due, payload and generation of a timer never change; only its wake and attempt do, and whether it is paused.

use std::time::Duration;

use bytes::Bytes;

use super::command::Reply;
use super::identity::TimerKey;
use super::kind::KindNumber;
use super::recurring::Recurring;
use crate::calendar::digest::Digest;
use crate::planted::{Bug, is_on};
use crate::time::Timestamp;

/// The version of a timer id: from a counter of the partition that never falls, so no two timers of a partition share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

impl Generation {
    /// The largest one that a stored timer may have. A counter that rises with each arm does not come near.
    pub const MAX: Self = Self(u64::MAX >> 2);
    /// The largest counter that is read: whatever somebody else wrote, it can go on for ever.
    pub const COUNTER_MAX: Self = Self(u64::MAX >> 1);
}

/// A header of a record, as Kafka has it: the name may stand twice, the value may be null or any bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The header's name.
    pub key: String,
    /// The header's value, byte-exact; `None` is Kafka's null.
    pub value: Option<Bytes>,
}

/// A record that a fire emits beside its event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRecord {
    /// The record's key; it decides the record's partition.
    pub key: Option<Bytes>,
    /// The record's value.
    pub value: Option<Bytes>,
    /// The record's headers.
    pub headers: Vec<Header>,
}

/// A pending timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Its identity.
    pub key: TimerKey,
    /// The number of its kind.
    pub kind: KindNumber,
    /// When it is to fire; resolved once, when the arm was applied.
    pub due: Timestamp,
    /// When it is next looked at: its due, or later after a failure, a delivery or a resume.
    pub wake: Timestamp,
    /// Its version.
    pub generation: Generation,
    /// How often it was attempted before.
    pub attempt: u32,
    /// The time of its arming: the timestamp of the arm's record.
    pub armed: Timestamp,
    /// The value of the fired record, untouched; `None` is Kafka's null.
    pub payload: Option<Bytes>,
    /// The key of the fired record; `None` means `tenant/run`.
    pub record_key: Option<Bytes>,
    /// The arm's own headers, carried to the fired record.
    pub headers: Vec<Header>,
    /// The records that the fire emits beside its event.
    pub outbox: Vec<OutboxRecord>,
    /// How it is delivered until it is disarmed; `None` is once.
    pub claim: Option<Claim>,
    /// How it recurs; `None` fires once.
    pub recurring: Option<Box<Recurring>>,
    /// The digest of what its due was resolved with; `None` if that was nothing but its own command.
    pub resolved_with: Option<Digest>,
    /// Since when it is paused: it has no wake until it is resumed. `None` is not.
    pub paused: Option<Timestamp>,
}

/// Delivery by claim: a timer that has fired is held by a lease, and fires again when that runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// How long a delivery holds the timer; above zero. The end is not part of it: at exactly fire + lease it fires again.
    pub lease: Duration,
    /// Most deliveries; then the timer goes to the dead-letter topic. `None` is without end.
    pub attempts_max: Option<u32>,
}

impl Claim {
    /// Returns whether no further attempt follows these many.
    pub fn is_used_up(self, attempts: u32) -> bool {
        let attempts = attempts.saturating_add(u32::from(is_on(Bug::AttemptTooFew)));
        let attempts = attempts.saturating_sub(u32::from(is_on(Bug::AttemptTooMany)));
        self.attempts_max.is_some_and(|max| attempts >= max)
    }
}

impl Timer {
    /// Returns the place of the timer in the due order of its kind: one that is paused is parked.
    pub fn due_key(&self) -> DueKey {
        let is_parked = self.paused.is_some() && !is_on(Bug::PausedNotParked);
        let wake = if is_parked { DueKey::PARKED } else { self.wake };
        DueKey { wake, generation: self.generation }
    }

    /// Returns where the timer is found.
    pub fn located(&self) -> Located {
        Located { kind: self.kind, at: self.due_key() }
    }
}

/// A place in the due order of one kind: by wake, then by generation. The order of the fields is the order of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DueKey {
    /// When the timer is next looked at.
    pub wake: Timestamp,
    /// The timer's version; it breaks ties, and is unique in its partition.
    pub generation: Generation,
}

impl DueKey {
    /// Before every place.
    pub const MIN: Self = Self { wake: Timestamp::EPOCH, generation: Generation(0) };
    /// The wake of a place behind all instants, where paused timers are: no scan, and no search for the next wake, comes there.
    const PARKED: Timestamp = Timestamp::from_millis(i64::MAX);

    /// Returns whether it is the place of a paused timer.
    pub fn is_parked(self) -> bool {
        self.wake == Self::PARKED
    }

    /// Returns the place right behind this one.
    #[must_use]
    pub fn next(self) -> Self {
        // Generations count arms one by one; the counter cannot reach its end.
        Self { wake: self.wake, generation: Generation(self.generation.0.saturating_add(1)) }
    }
}

/// Where a timer is found: its kind and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// The kind.
    pub kind: KindNumber,
    /// The place in the kind's due order.
    pub at: DueKey,
}

/// A timer id that is remembered although no timer is armed under it: duplicates and stragglers meet it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// How the id ended.
    pub ending: Ending,
    /// When: the time of the tick or the command, as it was trusted then.
    pub ended: Timestamp,
    /// When the id is forgotten; computed once, as it ended.
    pub until: Timestamp,
}

/// How a timer id ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// This version of the timer fired for the last time.
    Fired(Generation),
    /// This version of the timer was cancelled: by a disarm, a disarm-run or a seal-run.
    Disarmed(Generation),
    /// This version of the timer went to the dead-letter topic.
    Expired(Generation),
    /// A disarm found no timer; its arm may be on the way.
    NeverArmed,
}

impl Remembered {
    /// Returns whether the id is still remembered at `now`; the end is not part of it.
    pub fn holds(&self, now: Timestamp) -> bool {
        now < self.until
    }

    /// Returns whether the id is still remembered for an arm of a kind that remembers for so long. A disarm that found nothing
    /// does not know the kind of its arm: its row is kept for the longest of all, and holds for as long as the kind of the arm.
    pub fn refuses(&self, remember: Duration, now: Timestamp) -> bool {
        let is_of_kind = match self.ending {
            Ending::Fired(_) | Ending::Disarmed(_) | Ending::Expired(_) => true,
            Ending::NeverArmed => self.ended.checked_add(remember).is_none_or(|until| now < until),
        };
        is_of_kind && self.holds(now)
    }
}

/// What is known of a run beside its timers. A run of which nothing is known has no state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunState {
    /// The run's seal: no arm is accepted.
    pub seal: Option<Seal>,
    /// The removal of the run's timers that is still under way.
    pub sweep: Option<Sweep>,
}

/// A seal on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// When the seal ends; `None` is never.
    pub until: Option<Timestamp>,
}

impl Seal {
    /// Returns whether the seal holds at `now`.
    pub fn holds(self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// The removal of all timers of a run, in force at once and worked off in slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Timers of the run with a generation below this are gone, whether or not their rows still exist.
    pub below: Generation,
    /// How many rows have been removed so far.
    pub removed: u64,
    /// Who is answered with the count in the end, and whether by *sealed* or by *disarmed*.
    pub replies: Vec<SweepReply>,
}

/// Most commands that may wait for one sweep: each is stored with the run, so the row stays small.
pub const SWEEP_REPLIES_MAX: usize = 64;

/// A command that is answered when its sweep ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepReply {
    /// Whom to answer.
    pub reply: Reply,
    /// Whether the command sealed the run.
    pub sealed: bool,
}

impl RunState {
    /// Returns when the run needs work of its own: at once while a sweep is under way, else when its seal ends.
    pub fn agenda(&self) -> Option<Timestamp> {
        match (&self.sweep, self.seal) {
            (Some(_), _) => Some(Timestamp::EPOCH),
            (None, Some(seal)) => seal.until,
            (None, None) => None,
        }
    }

    /// Returns whether a timer of this generation is gone, although its row may still exist.
    pub fn swept(&self, generation: Generation) -> bool {
        self.sweep.as_ref().is_some_and(|sweep| generation < sweep.below)
    }

    /// Returns whether nothing is left to be known.
    pub fn is_empty(&self) -> bool {
        self.seal.is_none() && self.sweep.is_none()
    }
}
