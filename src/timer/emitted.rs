//! What a fire emits, one entry for each thing: for whoever delivers it later.
//!
//! Owns [`Emitted`], the entries of an embedded engine's outbox. Never delivers anything. Keeps: an event comes before the outbox
//! records of its fire, which stay in order.

use super::handler::Event;
use super::identity::TimerKey;
use super::kind::KindNumber;
use super::model::{Generation, OutboxRecord, Timer};
use super::outcome::{Effect, Expired, ExpiryReason, FiredEvent};
use crate::time::Timestamp;

/// Something that a timer has emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The timer.
    pub key: TimerKey,
    /// The number of its kind.
    pub kind: KindNumber,
    /// Its version; with `key` it tells one fire of a timer from another.
    pub generation: Generation,
    /// The number of the attempt, from 1; of an expired timer, how often it was attempted.
    pub attempt: u32,
    /// When it was due.
    pub due: Timestamp,
    /// When it was armed.
    pub armed: Timestamp,
    /// When it fired or expired.
    pub fired: Timestamp,
    /// What it emits.
    pub what: What,
}

/// What a timer emits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The fired event.
    Event(Event),
    /// A record beside it.
    Record(OutboxRecord),
    /// The timer did not fire and never will; with the event that it would have emitted.
    Expired {
        /// Why.
        reason: ExpiryReason,
        /// The event as it was armed.
        event: Event,
    },
}

impl Emitted {
    /// Returns what a fire emits.
    pub fn by_fire(fired: &FiredEvent) -> Vec<Self> {
        let timer = &fired.timer;
        let event = match fired.effect {
            Effect::Published => Some(What::Event(Event::of(timer))),
            Effect::Silent | Effect::Rescheduled => None,
        };
        let records = timer.outbox.iter().cloned().map(What::Record);
        event.into_iter().chain(records).map(|what| Self::of(timer, fired.attempt, fired.fired, what)).collect()
    }

    /// Returns what a timer emits that is not to fire any more.
    pub fn by_expiry(expired: &Expired) -> Self {
        let timer = &expired.timer;
        let what = What::Expired { reason: expired.reason, event: Event::of(timer) };
        Self::of(timer, timer.attempt, expired.at, what)
    }

    fn of(timer: &Timer, attempt: u32, fired: Timestamp, what: What) -> Self {
        Self {
            key: timer.key.clone(),
            kind: timer.kind,
            generation: timer.generation,
            attempt,
            due: timer.due,
            armed: timer.armed,
            fired,
            what,
        }
    }
}
