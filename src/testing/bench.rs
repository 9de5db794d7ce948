//! An engine, a clock, and the way from one turn to the next.
//!
//! Owns [`Bench`]. Never hides the engine: a test may do with it what it likes. Keeps: a step gives one timer its turn.

use std::time::Duration;

use bytes::Bytes;

use super::clock::ManualClock;
use crate::engine::{Arm, ArmAnswer, Budget, Engine, EngineError, Options, Tick, TickReport};
use crate::time::Timestamp;
use crate::timer::emitted::Emitted;
use crate::timer::outcome::Verdict;
use crate::wire::command::decode;

/// Most turns of one run: more are those of a handler that arms for now again and again.
const TURNS_MAX: usize = 1_000_000;
/// Most entries of the outbox that are read at once.
const ENTRIES_MAX: usize = 1_024;

/// An engine in memory and a clock, for tests of handlers and commands.
#[derive(Clone, Debug)]
pub struct Bench {
    engine: Engine,
    clock: ManualClock,
}

impl Bench {
    /// Returns a bench with an empty engine, whose clock shows one millisecond after the beginning of 1970.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when the options contradict each other.
    pub fn new(options: Options) -> Result<Self, EngineError> {
        Ok(Self::with(Engine::in_memory(options)?, ManualClock::at(Timestamp::from_millis(1))))
    }

    /// Returns a bench with an engine and a clock of one's own, such as an engine whose handlers hold a clone of it.
    pub fn with(engine: Engine, clock: ManualClock) -> Self {
        Self { engine, clock }
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the clock.
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Arms a timer now.
    ///
    /// # Errors
    /// As [`Engine::arm`].
    pub fn arm(&self, arm: Arm) -> Result<ArmAnswer, EngineError> {
        self.engine.arm(arm, self.clock.now())
    }

    /// Takes a command as a client sends it, in JSON or protobuf, now. What is no command is [`Verdict::Rejected`], as it is on the
    /// command topic. A due may be as far away or as long ago as it likes: the limits of the service are its settings.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn send(&self, command: impl Into<Bytes>) -> Result<Verdict, EngineError> {
        match decode(Some(&command.into()), &[]) {
            Ok(command) => self.engine.command(command.action, self.clock.now()),
            Err(refused) => Ok(Verdict::Rejected(refused.rejection)),
        }
    }

    /// Gives the timer its turn that is due first in its kind, and one kind after the other. A report without anything says that
    /// nothing is due.
    ///
    /// # Errors
    /// As [`Engine::fire_due`].
    pub fn step(&self) -> Result<TickReport, EngineError> {
        let one = Budget { fired_max: 1, fired_per_kind_max: 1, ..Budget::default() };
        self.tick(one)
    }

    /// Makes one tick within a budget, whose time the clock tells.
    ///
    /// # Errors
    /// As [`Engine::fire_due`].
    pub fn tick(&self, budget: Budget) -> Result<TickReport, EngineError> {
        self.engine.fire_due(self.clock.now(), &mut Tick::new(budget), &|| self.clock.reading())
    }

    /// Sets the clock from wake to wake up to an instant, at each gives every timer that is due its turn, and leaves the clock at that
    /// instant. Returns how many turns there were.
    ///
    /// # Errors
    /// As [`Engine::fire_due`].
    ///
    /// # Panics
    /// When there is no end of turns: a handler arms for now again and again.
    pub fn run_until(&self, until: Timestamp) -> Result<usize, EngineError> {
        let mut turns = 0;
        loop {
            let report = self.step()?;
            let TickReport { fired, rescheduled, retried, failed, expired, raced, .. } = report;
            let turn = fired + rescheduled + retried + failed + expired + raced;
            turns += turn;
            assert!(turns < TURNS_MAX, "{TURNS_MAX} turns, and there is no end of them");
            if turn > 0 {
                continue;
            }
            let Some(wake) = report.next_wake.filter(|wake| *wake <= until) else {
                self.clock.set(until.max(self.clock.now()));
                return Ok(turns);
            };
            self.clock.set(wake.max(self.clock.now()));
        }
    }

    /// As [`Bench::run_until`], up to the clock's time and a duration.
    ///
    /// # Errors
    /// As [`Engine::fire_due`].
    ///
    /// # Panics
    /// As [`Bench::run_until`].
    pub fn run_for(&self, duration: Duration) -> Result<usize, EngineError> {
        self.run_until(self.clock.now().checked_add(duration).unwrap_or(Timestamp::MAX))
    }

    /// Returns what was emitted since the last look, oldest first, and acknowledges it.
    ///
    /// # Errors
    /// As [`Engine::read_outbox`].
    ///
    /// # Panics
    /// When an entry cannot be read, which an engine in memory never has.
    pub fn emitted(&self) -> Result<Vec<Emitted>, EngineError> {
        let mut emitted = Vec::new();
        loop {
            let entries = self.engine.read_outbox(0, ENTRIES_MAX)?;
            let Some(last) = entries.last().map(|entry| entry.number) else {
                return Ok(emitted);
            };
            emitted.extend(entries.into_iter().map(|entry| entry.emitted.expect("what was written can be read")));
            self.engine.acknowledge(last)?;
        }
    }
}

#[cfg(test)]
#[path = "bench_test.rs"]
mod tests;
