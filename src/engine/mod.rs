//! Durable timers inside an application, without Kafka: the same core over the same store, and the caller's own clock.
//!
//! ```text
//!   arm, disarm, pause, resume, …     ──▶ ┌────────┐ ──▶ claim_due: held by a lease until disarmed
//!                                         │ Engine │ ──▶ fire_due: handlers ──▶ outbox ──▶ read_outbox, acknowledge
//!                         now, a budget ─▶└────────┘ ──▶ begin_fire … settle: the application's own code
//!                                       RocksDB or memory
//! ```
//!
//! Owns [`Engine`] and what it is asked and answers. Never reads a clock, starts a thread, logs or counts: each call that depends on time
//! takes it. Keeps: a call that has returned `Ok` is durable, and one that has not has changed nothing; no lock is held while code of
//! the user runs.
//!
//! # Examples
//! ```
//! use punctual::engine::{Arm, ArmAnswer, Engine, Options};
//! use punctual::time::Timestamp;
//!
//! let engine = Engine::in_memory(Options::new())?;
//! let reminder = Arm {
//!     run: "order-42".to_owned(),
//!     timer_id: "reminder".to_owned(),
//!     kind: 1,
//!     due: Timestamp::from_millis(1_000),
//!     payload: Some("pay now".into()),
//!     ..Arm::default()
//! };
//! let answer = engine.arm(reminder, Timestamp::from_millis(1))?;
//! assert!(matches!(answer, ArmAnswer::Armed { .. }));
//!
//! let claimed = engine.claim_due("default", Timestamp::from_millis(1_000), 10)?;
//! assert_eq!(claimed[0].payload.as_deref(), Some(&b"pay now"[..]));
//! // Done with it: without a disarm it would be claimed again when its lease has run out.
//! engine.disarm("default", "order-42", "reminder", Some(claimed[0].generation))?;
//! assert_eq!(engine.next_wake()?, None);
//! # Ok::<(), punctual::engine::EngineError>(())
//! ```

mod answer;
mod arguments;
mod error;
mod external;
mod fire;
mod options;
mod ready;
mod state;
mod tick;
mod views;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

pub use answer::{ArmAnswer, Claimed, DisarmAnswer, Entry, PauseAnswer, ResumeAnswer};
pub use arguments::Arm;
pub use error::EngineError;
pub use external::{Firing, Settled};
pub use options::Options;
pub use tick::{Failure, Tick, TickReport};

pub use crate::timer::budget::Budget;
pub use crate::timer::command::OnConflict;
pub use crate::timer::model::Generation;

use self::options::Rules;
use self::state::State;
use crate::store::memory::MemoryStore;
use crate::store::outbox::Outbox;
use crate::store::rocks::{Resources, RocksStore};
use crate::time::Timestamp;
use crate::timer::command::Action;
use crate::timer::handler::Handlers;
use crate::timer::outcome::Verdict;
use crate::wire;

/// Durable timers inside an application. Clones share the same timers.
///
/// Calls block: on the disk of an engine on disk, and on each other for the length of one call. An asynchronous application makes
/// them on a thread for that, such as by `tokio::task::spawn_blocking`; arguments are owned for its sake.
///
/// # Panics
/// A call panics if one before it has panicked inside the engine: a fault of the engine, whose state is not to be trusted after it. A
/// panic of a handler is no such.
#[derive(Clone)]
pub struct Engine {
    state: Arc<Mutex<State>>,
    rules: Arc<Rules>,
}

impl Engine {
    /// Opens the engine in a directory, or creates it. One engine has a directory at a time; clones share it.
    ///
    /// # Errors
    /// [`EngineError::Locked`], [`EngineError::Corrupt`], [`EngineError::UnsupportedFormat`], [`EngineError::Full`] and
    /// [`EngineError::Io`], by what is the matter with the directory; [`EngineError::InvalidArgument`] when the options contradict each
    /// other. Nothing is ever discarded.
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Self, EngineError> {
        let resources = Resources::new(options.memory());
        let rules = options.rules()?;
        Self::over(Box::new(RocksStore::open_engine(directory.as_ref(), &resources)?), rules)
    }

    /// Returns an empty engine in memory, which forgets all when its last clone is dropped.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when the options contradict each other.
    pub fn in_memory(options: Options) -> Result<Self, EngineError> {
        Self::over(Box::new(MemoryStore::default()), options.rules()?)
    }

    fn over(store: Box<dyn Outbox + Send>, rules: Rules) -> Result<Self, EngineError> {
        Ok(Self { state: Arc::new(Mutex::new(State::new(store)?)), rules: Arc::new(rules) })
    }

    /// Returns a clone that fires with other handlers, such as those that hold a clone of this engine themselves.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when a handler is for a kind that the options do not have.
    pub fn with_handlers(&self, handlers: Handlers) -> Result<Self, EngineError> {
        let rules = Rules::clone(&self.rules).with_handlers(handlers)?;
        Ok(Self { state: Arc::clone(&self.state), rules: Arc::new(rules) })
    }

    /// Arms a timer. An armed timer with the same identity stays as it is, or is replaced if the arm says so; one that has fired or was
    /// disarmed is no obstacle. A due that has passed fires at once.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when an identity is not one, the kind is 0 or above 255, `due` or `now` is outside the years 1970
    /// to 9999, or the payload is too large; else when the state cannot be read or written.
    pub fn arm(&self, arm: Arm, now: Timestamp) -> Result<ArmAnswer, EngineError> {
        let verdict = self.judged(arm.action()?, now)?;
        Ok(answered(ArmAnswer::of(&verdict)))
    }

    /// Disarms a timer, held or not; with a generation only if it is that version. That it is not there is fine.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when an identity is not one; else when the state cannot be read or written.
    pub fn disarm(
        &self,
        tenant: impl Into<String>,
        run: impl Into<String>,
        timer_id: impl Into<String>,
        generation: Option<Generation>,
    ) -> Result<DisarmAnswer, EngineError> {
        let key = arguments::timer_key(&tenant.into(), &run.into(), &timer_id.into())?;
        let verdict = self.judged(Action::Disarm { key, generation }, Timestamp::EPOCH)?;
        Ok(answered(DisarmAnswer::of(&verdict)))
    }

    /// Pauses a timer; with a generation only if it is that version. It stays pending with all that it has, and neither fires nor is claimed
    /// until it is resumed. Pausing it again changes nothing.
    ///
    /// What a handler or the application has in hand meanwhile is dropped when it is done: *raced*.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when an identity is not one, the timer's row cannot be decoded, or `now` is outside the years 1970
    /// to 9999; else when the state cannot be read or written.
    #[expect(clippy::too_many_arguments, reason = "what a disarm takes, and the time")]
    pub fn pause(
        &self,
        tenant: impl Into<String>,
        run: impl Into<String>,
        timer_id: impl Into<String>,
        generation: Option<Generation>,
        now: Timestamp,
    ) -> Result<PauseAnswer, EngineError> {
        let key = arguments::timer_key(&tenant.into(), &run.into(), &timer_id.into())?;
        let verdict = self.judged(Action::Pause { key, generation }, now)?;
        Ok(answered(PauseAnswer::of(&verdict)))
    }

    /// Resumes a paused timer; with a generation only if it is that version. It fires at its due, or when its lease or its rest ends, and at
    /// once if that has passed. One that recurs goes on with its next occurrence after `now`, under a new generation if its due has
    /// passed; if there is none left, it is gone.
    ///
    /// # Errors
    /// As [`Engine::pause`].
    #[expect(clippy::too_many_arguments, reason = "what a disarm takes, and the time")]
    pub fn resume(
        &self,
        tenant: impl Into<String>,
        run: impl Into<String>,
        timer_id: impl Into<String>,
        generation: Option<Generation>,
        now: Timestamp,
    ) -> Result<ResumeAnswer, EngineError> {
        let key = arguments::timer_key(&tenant.into(), &run.into(), &timer_id.into())?;
        let verdict = self.judged(Action::Resume { key, generation }, now)?;
        Ok(answered(ResumeAnswer::of(&verdict)))
    }

    /// Disarms all timers of a run, held ones too, and returns how many. The run can be armed again. If the call fails, either none of them
    /// is gone or all are.
    ///
    /// # Errors
    /// As [`Engine::disarm`].
    pub fn disarm_run(&self, tenant: impl Into<String>, run: impl Into<String>) -> Result<u64, EngineError> {
        let run = arguments::run_key(&tenant.into(), &run.into())?;
        let verdict = self.judged(Action::DisarmRun { run }, Timestamp::EPOCH)?;
        Ok(answered(answer::removed(&verdict)))
    }

    /// Seals a run: disarms all its timers, returns how many, and refuses arms from now on; until `now` + retention, or for ever. A run
    /// may be sealed before any arm, and again: that never shortens a seal.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when an identity is not one, the retention is zero or ends beyond the year 9999, or `now` is
    /// outside the years 1970 to 9999; else when the state cannot be read or written.
    pub fn seal_run(
        &self,
        tenant: impl Into<String>,
        run: impl Into<String>,
        retention: Option<Duration>,
        now: Timestamp,
    ) -> Result<u64, EngineError> {
        let run = arguments::run_key(&tenant.into(), &run.into())?;
        let retention = retention.map(|retention| arguments::whole_millis("retention", retention)).transpose()?;
        let verdict = self.judged(Action::SealRun { run, retention }, now)?;
        Ok(answered(answer::removed(&verdict)))
    }

    /// Judges any command of the core: arms that recur, or at civil times, or with headers and outbox records of their own.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when `now` is outside the years 1970 to 9999; else when the state cannot be read or written. That
    /// a command is rejected is an answer, [`Verdict::Rejected`].
    pub fn command(&self, action: Action, now: Timestamp) -> Result<Verdict, EngineError> {
        let now = arguments::instant("now", now)?;
        self.lock().call(|state| state.command(action, now, &self.rules))
    }

    /// Claims timers of a tenant that are due, whatever their kind: each is held for the lease, and claimed again at exactly `now` + lease
    /// unless it is disarmed before. They come in ascending due, then by run and timer id. Timers of other tenants are not touched.
    ///
    /// A row that cannot be decoded is passed by.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when the tenant is none or `now` is outside the years 1970 to 9999; else when the state cannot be
    /// read or written: then nothing was claimed.
    pub fn claim_due(
        &self,
        tenant: impl Into<String>,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Claimed>, EngineError> {
        let tenant = arguments::tenant(&tenant.into())?;
        let now = arguments::instant("now", now)?;
        self.lock().call(|state| {
            state.end_seals(now)?;
            state.commit()?;
            let claimed = state.claim(&tenant, now, limit, &self.rules)?;
            Ok(claimed.into_iter().map(Claimed::from).collect())
        })
    }

    /// Returns how many timers of a tenant are pending: due, held, resting, paused, of unknown kinds, all.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when the tenant is none; else when the state cannot be read.
    pub fn pending_count(&self, tenant: impl Into<String>) -> Result<u64, EngineError> {
        let tenant = arguments::tenant(&tenant.into())?;
        self.lock().call(|state| state.pending_of(&tenant))
    }

    /// Returns the earliest instant at which a timer is due, or a lease or a rest ends, of any tenant and kind; it may have passed. `None`
    /// if no timer is pending but paused ones.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn next_wake(&self) -> Result<Option<Timestamp>, EngineError> {
        self.lock().call(|state| {
            let mut earliest: Option<Timestamp> = None;
            for kind in state.pending_kinds().into_keys() {
                let wake = state.above.next_wake(kind)?;
                earliest = earliest.into_iter().chain(wake).min();
            }
            Ok(earliest)
        })
    }

    /// Returns up to `limit` entries of the outbox from the number `from` on, oldest first: what fires have emitted and nobody has
    /// acknowledged. They come again until they are.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn read_outbox(&self, from: u64, limit: usize) -> Result<Vec<Entry>, EngineError> {
        let rows = self.lock().call(|state| Ok(state.above.store().entries(from, limit)?))?;
        let read = |(number, body): (u64, bytes::Bytes)| Entry { number, emitted: wire::emitted::decode_entry(&body) };
        Ok(rows.into_iter().map(read).collect())
    }

    /// Removes the entries of the outbox up to, and with, the number `up_to`, and returns how many.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn acknowledge(&self, up_to: u64) -> Result<u64, EngineError> {
        self.lock().call(|state| Ok(state.acknowledge(up_to)))
    }

    /// Judges a command that was made of arguments: what is rejected is one of them.
    fn judged(&self, action: Action, now: Timestamp) -> Result<Verdict, EngineError> {
        let about = action.timer().map_or_else(|| action.run().to_string(), ToString::to_string);
        let verdict = self.command(action, now)?;
        if let Verdict::Rejected(rejection) = &verdict {
            return Err(EngineError::rejected(rejection, about));
        }
        Ok(verdict)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no call has panicked inside the engine")
    }
}

/// Returns the answer to a command.
fn answered<T>(answer: Option<T>) -> T {
    answer.expect("the core answers a command by a verdict on such a command")
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("rules", &self.rules).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "mod_test.rs"]
mod tests;
