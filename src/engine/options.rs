//! What an engine is told when it is opened.
//!
//! Owns [`Options`] and the [`Rules`] that follow from them. Keeps: kinds and handlers that contradict each other are refused before
//! anything is opened.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::arguments::whole_millis;
use super::error::EngineError;
use crate::calendar::Calendar;
use crate::calendar::rules::FixedRules;
use crate::timer::handler::{Handler, Handlers, HandlersError};
use crate::timer::kind::{Kind, KindNumber, Registry, RegistryError};
use crate::timer::limits::Limits;

/// How long a claim holds a timer if nothing else is said.
const LEASE: Duration = Duration::from_mins(1);
/// Memory of an engine on disk if nothing else is said.
const MEMORY_BYTES: usize = 64 << 20;
/// Largest payload with all that goes out beside it, if nothing else is said.
const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// What an engine is told when it is opened.
///
/// ```
/// use std::time::Duration;
///
/// use punctual::engine::{Engine, Options};
/// use punctual::timer::handler::Publish;
///
/// let options = Options::new().kind(1, "email")?.kind(2, "job")?.handler(1, Publish)?.lease(Duration::from_secs(30))?;
/// let engine = Engine::in_memory(options)?;
/// assert_eq!(engine.pending_count("default")?, 0);
/// # Ok::<(), punctual::engine::EngineError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    registry: Registry,
    handlers: Handlers,
    external: BTreeSet<KindNumber>,
    lease: Duration,
    memory_bytes: usize,
    limits: Limits,
    calendar: Arc<dyn Calendar>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            registry: Registry::default(),
            handlers: Handlers::new(),
            external: BTreeSet::new(),
            lease: LEASE,
            memory_bytes: MEMORY_BYTES,
            limits: Limits {
                horizon: Duration::MAX,
                skew_max: Duration::MAX,
                fired_bytes_max: PAYLOAD_BYTES_MAX,
                outbox_bytes_max: PAYLOAD_BYTES_MAX,
                seconds_suspected_below_ms: 0,
                takes_reserved_kinds: true,
            },
            calendar: Arc::new(FixedRules),
        }
    }
}

impl Options {
    /// Returns options without kinds: timers of any kind can be armed and claimed, and none fires by itself.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a kind that `fire_due` fires: by its handler, or into the outbox if it gets none.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when the number is 0 or above 255, the name is not 1 to 64 characters of
    /// `A-Z a-z 0-9 . _ -`, or either is taken. Numbers above 239 are reserved for tests, and taken.
    pub fn kind(self, number: u32, name: &str) -> Result<Self, EngineError> {
        let problem = "is no kind number; use 1 to 239 (240 to 255 are reserved for tests)";
        let number = KindNumber::new(number).ok_or_else(|| EngineError::invalid("kind", number, problem))?;
        self.kind_with(Kind { outbox: true, ..Kind::new(number, name) })
    }

    /// Adds a kind with a treatment of past dues, a lease or a limit of lateness of its own.
    ///
    /// # Errors
    /// As [`Options::kind`], and when the kind remembers ids: the engine answers its caller at once, and keeps none.
    pub fn kind_with(mut self, kind: Kind) -> Result<Self, EngineError> {
        if !kind.remember.is_zero() {
            let seconds = kind.remember.as_secs_f64();
            let problem = "is for commands that come twice on a topic; the engine keeps no ids that have ended: use 0";
            return Err(EngineError::invalid("remember", format!("{seconds} s"), problem));
        }
        self.registry.insert(kind).map_err(|error| of_registry(&error))?;
        Ok(self)
    }

    /// Lets a handler fire the timers of a kind that was added.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when the number is 0 or above 255, or its kind has a handler already.
    pub fn handler(mut self, number: u32, handler: impl Handler + 'static) -> Result<Self, EngineError> {
        let refused = |error: &HandlersError| EngineError::invalid("kind", number, format!("is refused: {error}"));
        let kind = KindNumber::new(number).ok_or_else(|| refused(&HandlersError::Number { number }))?;
        self.handlers.insert(kind, handler).map_err(|error| refused(&error))?;
        Ok(self)
    }

    /// Leaves the timers of a kind that was added to the application: `begin_fire` hands them out, `fire_due` passes them by.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when no kind with this number was added.
    pub fn external(mut self, number: u32) -> Result<Self, EngineError> {
        let known = KindNumber::new(number).filter(|kind| self.registry.get(*kind).is_some());
        let problem = "was not added; add it with `kind` first";
        self.external.insert(known.ok_or_else(|| EngineError::invalid("kind", number, problem))?);
        Ok(self)
    }

    /// Sets how long a claim holds a timer: 60 seconds if it is not called. What is finer than a millisecond rounds up.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when it is zero.
    pub fn lease(mut self, lease: Duration) -> Result<Self, EngineError> {
        self.lease = whole_millis("lease", lease)?;
        Ok(self)
    }

    /// Sets the memory of an engine on disk, in bytes, half of it for cached blocks and half for rows that are not flushed yet: 64 MiB
    /// if it is not called, 16 MiB at least.
    #[must_use]
    pub fn memory_bytes(self, memory_bytes: usize) -> Self {
        Self { memory_bytes, ..self }
    }

    /// Sets the largest payload in bytes, with some kilobytes for all that goes out beside it: 16 MiB if it is not called.
    #[must_use]
    pub fn payload_bytes_max(mut self, payload_bytes_max: usize) -> Self {
        self.limits.fired_bytes_max = payload_bytes_max;
        self.limits.outbox_bytes_max = payload_bytes_max;
        self
    }

    /// Sets the rules and calendars of commands that name one: [`FixedRules`] if it is not called.
    #[must_use]
    pub fn calendar(self, calendar: Arc<dyn Calendar>) -> Self {
        Self { calendar, ..self }
    }

    /// Returns the memory of an engine on disk, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.memory_bytes
    }

    /// Returns the rules, if handlers and kinds fit together.
    pub(super) fn rules(self) -> Result<Rules, EngineError> {
        let Self { registry, handlers, external, lease, limits, calendar, memory_bytes: _ } = self;
        let rules = Rules { registry, handlers: Handlers::new(), external, lease, limits, calendar };
        rules.with_handlers(handlers)
    }
}

/// What an engine judges and fires by.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) registry: Registry,
    pub(super) handlers: Handlers,
    /// The kinds that the application fires.
    pub(super) external: BTreeSet<KindNumber>,
    pub(super) lease: Duration,
    pub(super) limits: Limits,
    pub(super) calendar: Arc<dyn Calendar>,
}

impl Rules {
    /// Returns the rules with other handlers.
    pub(super) fn with_handlers(self, handlers: Handlers) -> Result<Self, EngineError> {
        handlers.check(&self.registry).map_err(|error| {
            let HandlersError::UnknownKind { number } = error else {
                return EngineError::invalid("kind", "", error.to_string());
            };
            EngineError::invalid("kind", number, "has a handler and was not added; add it with `kind`")
        })?;
        Ok(Self { handlers, ..self })
    }

    /// Returns the known kinds that the application fires, or those that it does not.
    pub(super) fn kinds(&self, are_external: bool) -> Vec<KindNumber> {
        let known = self.registry.iter().map(|kind| kind.number);
        known.filter(|kind| self.external.contains(kind) == are_external).collect()
    }
}

fn of_registry(error: &RegistryError) -> EngineError {
    let (field, value) = match error {
        RegistryError::Number { number, .. } | RegistryError::DuplicateNumber { number, .. } => {
            ("kind", number.to_string())
        }
        RegistryError::DuplicateName { name } | RegistryError::Name { name, .. } => ("name", name.clone()),
    };
    EngineError::invalid(field, value, format!("is refused: {error}"))
}
