//! What the timers of a kind do when they fire: the seam between the core and the code of a user.
//!
//! ```text
//!   fire ──▶ Done ────────▶ event, outbox records and commands go out; the timer is gone, or held by its lease
//!     │  ├─▶ Reschedule ──▶ outbox records go out; the timer is armed anew, with a new generation
//!     │  └─▶ Retry ───────▶ nothing goes out; the timer is looked at again after a backoff
//!     └── error, panic ───▶ as Retry, and reported
//! ```
//!
//! Owns [`Handler`], its stock implementor [`Publish`], and the [`Handlers`] of a process. Never applies what a handler returns.
//! Keeps: one handler for a kind; what a handler returns is applied whole or not at all.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::command::Arm;
use super::identity::TimerKey;
use super::kind::{KIND_NUMBER_MAX, KindNumber, Registry};
use super::model::{Generation, Header, OutboxRecord, Timer};
use crate::time::Timestamp;

/// Most commands of one fire.
pub const COMMANDS_MAX: usize = 16;

/// Why a handler could not fire a timer; any error will do.
pub type HandlerError = Box<dyn Error + Send + Sync>;

/// Decides what a timer does when it fires.
///
/// A handler may run more than once for one fire, for a transaction may abort; what it returns is applied at most once. So it
/// is to be pure: what it does beside its return value happens as often as it runs.
///
/// ```
/// use punctual::timer::handler::{Done, FireContext, Fired, Handler, HandlerError};
/// use punctual::timer::model::Timer;
///
/// /// Fires three times, a minute apart.
/// struct ThreeTimes;
///
/// impl Handler for ThreeTimes {
///     fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
///         let count = timer.payload.as_ref().map_or(0, |payload| payload.len());
///         if count >= 2 {
///             return Ok(Fired::Done(Done::publish(timer)));
///         }
///         let due = ctx.now.checked_add_millis(60_000).ok_or("the end of time")?;
///         Ok(Fired::Reschedule { due, payload: Some(vec![b'.'; count + 1].into()), outbox: Vec::new() })
///     }
/// }
/// ```
pub trait Handler: Send + Sync {
    /// Fires a timer that is due.
    ///
    /// # Errors
    /// When it cannot be fired now. Nothing goes out, and the timer is looked at again after
    /// [`backoff`](super::redate::backoff); so it is after a panic.
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError>;

    /// Returns the most timers of its kind that one tick may give to the handler, for one that is slow. It lowers what the
    /// settings say, and never raises it; 0 means 1.
    fn share_max(&self) -> Option<usize> {
        None
    }
}

/// What a handler may know beside the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FireContext {
    /// The tick's time; not before the timer's due.
    pub now: Timestamp,
    /// The number of this attempt, from 1.
    pub attempt: u32,
}

/// What a handler decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fired {
    /// The timer has fired.
    Done(Done),
    /// The timer is to fire at another instant, as a new version of itself. No event goes out.
    Reschedule {
        /// The new due: after the tick's time, within the horizon.
        due: Timestamp,
        /// The payload from then on.
        payload: Option<Bytes>,
        /// Records that go out now.
        outbox: Vec<OutboxRecord>,
    },
    /// The timer could not fire, and nothing is wrong: it is looked at again after a backoff.
    Retry,
}

/// What goes out with a fire, all in one transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The fired event, if there is to be one.
    pub event: Option<Event>,
    /// Records beside it; at most 16.
    pub outbox: Vec<OutboxRecord>,
    /// What becomes of other timers of the same partition, such as those of the same run; at most 16.
    pub commands: Vec<TimerCommand>,
}

impl Done {
    /// Returns what [`Publish`] does: the event and the outbox records as they were armed.
    pub fn publish(timer: &Timer) -> Self {
        Self { event: Some(Event::of(timer)), outbox: timer.outbox.clone(), commands: Vec::new() }
    }
}

/// A fired event, as its handler makes it. The service adds the headers that say which timer it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The record's value; `None` is Kafka's null.
    pub payload: Option<Bytes>,
    /// The record's key; `None` means `tenant/run`.
    pub record_key: Option<Bytes>,
    /// The record's headers; names do not start with `punctual-` or `ce_`.
    pub headers: Vec<Header>,
}

impl Event {
    /// Returns the event as the timer was armed.
    pub fn of(timer: &Timer) -> Self {
        Self { payload: timer.payload.clone(), record_key: timer.record_key.clone(), headers: timer.headers.clone() }
    }
}

/// What a handler may do to timers of the same partition. A rejected command fails the whole fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimerCommand {
    /// Creates a timer; `after` counts from the tick's time.
    Arm(Box<Arm>),
    /// Cancels a timer; that it is not there is fine.
    Disarm {
        /// The timer.
        key: TimerKey,
        /// Cancels only this version of it.
        generation: Option<Generation>,
    },
}

impl TimerCommand {
    /// Returns the timer that the command is about.
    pub fn key(&self) -> &TimerKey {
        match self {
            Self::Arm(arm) => &arm.key,
            Self::Disarm { key, .. } => key,
        }
    }
}

/// The stock handler: the event and the outbox records go out as they were armed. Kinds without a handler have this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Publish;

impl Handler for Publish {
    fn fire(&self, _ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        Ok(Fired::Done(Done::publish(timer)))
    }
}

/// What came of an attempt to fire a timer.
#[derive(Debug)]
pub enum Attempt {
    /// The stock handler: as armed.
    AsArmed,
    /// A handler decided.
    Decided(Fired),
    /// A handler failed, or panicked.
    Failed(String),
}

/// Why a handler cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandlersError {
    /// The number is 0 or above 0xEF.
    #[error("a handler is for kind number {number}; use 1 to 239 (240 to 255 are reserved for tests)")]
    Number {
        /// The refused number.
        number: u32,
    },
    /// The kind has a handler already.
    #[error("kind number {number} has two handlers; register one")]
    Duplicate {
        /// The number.
        number: u32,
    },
    /// No kind has this number.
    #[error(
        "a handler is for kind number {number}, and no kind has it; declare it under `kinds`, or remove the handler"
    )]
    UnknownKind {
        /// The number.
        number: u32,
    },
}

/// The handlers of a process, one for a kind. A kind without one has [`Publish`].
#[derive(Clone, Default)]
pub struct Handlers {
    by_kind: BTreeMap<KindNumber, Arc<dyn Handler>>,
}

impl Handlers {
    /// Returns no handlers: every kind publishes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the handler of a kind, by the kind's number.
    ///
    /// # Errors
    /// When the number is 0 or above 0xEF, or its kind has a handler already.
    pub fn register(&mut self, number: u32, handler: impl Handler + 'static) -> Result<(), HandlersError> {
        let kind = KindNumber::new(number).filter(|kind| kind.get() <= KIND_NUMBER_MAX);
        self.insert(kind.ok_or(HandlersError::Number { number })?, handler)
    }

    /// Adds the handler of a kind, reserved numbers too: for tests only.
    ///
    /// # Errors
    /// When the kind has a handler already.
    pub fn insert(&mut self, kind: KindNumber, handler: impl Handler + 'static) -> Result<(), HandlersError> {
        if self.by_kind.contains_key(&kind) {
            return Err(HandlersError::Duplicate { number: u32::from(kind.get()) });
        }
        self.by_kind.insert(kind, Arc::new(handler));
        Ok(())
    }

    /// Checks that each handler has its kind.
    ///
    /// # Errors
    /// When a handler is for a kind that is not in the registry.
    pub fn check(&self, registry: &Registry) -> Result<(), HandlersError> {
        match self.by_kind.keys().find(|kind| registry.get(**kind).is_none()) {
            Some(kind) => Err(HandlersError::UnknownKind { number: u32::from(kind.get()) }),
            None => Ok(()),
        }
    }

    /// Lets the kind's handler fire a timer. A panic passes through.
    pub fn attempt(&self, ctx: &FireContext, timer: &Timer) -> Attempt {
        let Some(handler) = self.by_kind.get(&timer.kind) else {
            return Attempt::AsArmed;
        };
        match handler.fire(ctx, timer) {
            Ok(fired) => Attempt::Decided(fired),
            Err(error) => Attempt::Failed(error.to_string()),
        }
    }

    /// Returns the most timers of the kind that one tick may give to its handler, if it says so.
    pub fn share_max(&self, kind: KindNumber) -> Option<usize> {
        self.by_kind.get(&kind).and_then(|handler| handler.share_max())
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_kind.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::Kind;
    use super::*;

    #[test]
    fn zero_reserved_and_duplicate_numbers_are_refused() {
        let mut handlers = Handlers::new();
        let mut refusal = |number| handlers.register(number, Publish).unwrap_err().to_string();
        assert_eq!(refusal(0), "a handler is for kind number 0; use 1 to 239 (240 to 255 are reserved for tests)");
        assert_eq!(refusal(240), "a handler is for kind number 240; use 1 to 239 (240 to 255 are reserved for tests)");
        assert_eq!(handlers.register(1, Publish), Ok(()));
        assert_eq!(
            handlers.register(1, Publish).unwrap_err().to_string(),
            "kind number 1 has two handlers; register one"
        );
        let reserved = KindNumber::new(0xF0).unwrap();
        assert_eq!(handlers.insert(reserved, Publish), Ok(()), "in tests");
    }

    #[test]
    fn a_handler_needs_its_kind() {
        let mut handlers = Handlers::new();
        handlers.register(2, Publish).unwrap();
        let kind = |number| Kind::new(KindNumber::new(number).unwrap(), format!("k{number}"));
        assert_eq!(handlers.check(&Registry::new([kind(1), kind(2)]).unwrap()), Ok(()));
        assert_eq!(
            handlers.check(&Registry::new([kind(1)]).unwrap()).unwrap_err().to_string(),
            "a handler is for kind number 2, and no kind has it; declare it under `kinds`, or remove the handler"
        );
    }
}
