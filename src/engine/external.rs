//! Timers that the application fires itself, such as by code that awaits.
//!
//! ```text
//!   begin_fire ──▶ Firing: in flight, nobody else gets it ──settle──▶ concluded, as after a handler
//!                                                         └──drop──▶ due again, as if it had not begun
//! ```
//!
//! Owns [`Firing`]. Never holds a lock between the two calls. Keeps: what the application decides is applied only to the version that it
//! was given, else it is dropped (D19); a crash between the two calls leaves the timer due.

use std::sync::Arc;
use std::time::Duration;

use super::error::EngineError;
use super::fire::{Mark, Plan};
use super::tick::Tick;
use super::{Engine, arguments};
use crate::time::Timestamp;
use crate::timer::fire::FireReport;
use crate::timer::handler::{Attempt, FireContext, Fired, HandlerError};
use crate::timer::model::Timer;

/// A due timer in the hands of the application. Dropped without [`Engine::settle`], it is due again.
#[derive(Debug)]
#[must_use = "what is not settled is due again"]
pub struct Firing {
    timer: Timer,
    ctx: FireContext,
    mark: Mark,
}

impl Firing {
    /// Returns the timer.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }

    /// Returns what a handler would know beside the timer.
    pub fn context(&self) -> FireContext {
        self.ctx
    }
}

/// What came of a timer that the application has fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It has fired; what it emits is in the outbox.
    Fired,
    /// It is armed anew, for another instant.
    Rescheduled,
    /// It rests, as the application has asked.
    Retried,
    /// It rests, because the application failed, or asked for what cannot be done.
    Failed {
        /// What failed.
        detail: String,
    },
    /// It was disarmed, replaced or paused meanwhile: nothing was done.
    Raced,
}

impl Engine {
    /// Hands out the timers that are due and of kinds which were left to the application ([`Options::external`]), within `tick`. They
    /// are pending until they are settled, and nobody else gets them until then.
    ///
    /// [`Options::external`]: super::Options::external
    ///
    /// # Errors
    /// As [`Engine::fire_due`].
    pub fn begin_fire(
        &self,
        now: Timestamp,
        tick: &mut Tick,
        clock: &dyn Fn() -> Duration,
    ) -> Result<Vec<Firing>, EngineError> {
        let now = arguments::instant("now", now)?;
        let kinds = self.rules.kinds(true);
        self.lower_shares(&kinds, tick);
        let elapsed = tick.elapsed(clock());
        let Plan { attempts, expired, .. } = self.lock().call(|state| {
            let plan = state.plan(&kinds, now, elapsed, (&self.rules, tick))?;
            for timer in &plan.expired {
                state.conclude(timer, Attempt::AsArmed, now, &self.rules)?;
            }
            state.advance(&kinds, now)?;
            Ok(plan)
        })?;
        tick.begun += attempts.len() + expired.len();
        let mut firings = Vec::with_capacity(attempts.len());
        for timer in attempts {
            if let Some(mark) = self.mark(&timer)? {
                let ctx = FireContext { now, attempt: timer.attempt.saturating_add(1) };
                firings.push(Firing { timer, ctx, mark });
            }
        }
        Ok(firings)
    }

    /// Concludes what [`Engine::begin_fire`] has begun, as if a handler had returned `decided`. The time is that of the beginning: a
    /// backoff and a reschedule count from it.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when another engine has begun it; else when the state cannot be read or written: the timer is as
    /// before, and due again.
    pub fn settle(&self, firing: Firing, decided: Result<Fired, HandlerError>) -> Result<Settled, EngineError> {
        let Firing { timer, ctx, mark } = firing;
        if !Arc::ptr_eq(&self.state, &mark.engine().state) {
            return Err(EngineError::invalid("firing", &timer.key, "was begun by another engine; settle it there"));
        }
        let attempt = match decided {
            Ok(fired) => Attempt::Decided(fired),
            Err(error) => Attempt::Failed(error.to_string()),
        };
        let concluded = self.lock().call(|state| state.conclude(&timer, attempt, ctx.now, &self.rules))?;
        Ok(match concluded {
            None => Settled::Raced,
            Some(report) => settled(report),
        })
    }
}

fn settled(report: FireReport) -> Settled {
    if let Some((_, _, detail)) = report.failures.into_iter().next() {
        return Settled::Failed { detail };
    }
    if report.rescheduled > 0 {
        return Settled::Rescheduled;
    }
    if report.retried.is_empty() { Settled::Fired } else { Settled::Retried }
}
