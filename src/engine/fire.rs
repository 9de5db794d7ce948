//! Fires what is due: a tick of an engine.
//!
//! ```text
//!   plan ─────────▶ mark ──▶ handler runs ──▶ conclude ──▶ … ──▶ commit, report
//!   under the lock  lock     without it       lock               lock
//! ```
//!
//! Owns the way of each row through those steps. The plan is a pass of the core whose outcome is dropped: it says which rows have their
//! turn and charges them. What follows from an attempt is a pass of the core over that one row. Never runs a handler under the lock, so
//! that it may call the engine. Keeps: what a handler returns is applied only to the version that was fired, else it is dropped;
//! a row is in one pair of hands at a time.

use std::cell::RefCell;
use std::time::Duration;

use super::error::EngineError;
use super::options::Rules;
use super::state::{State, behind};
use super::tick::{Failure, Tick, TickReport};
use super::views::Single;
use super::{Engine, arguments};
use crate::time::Timestamp;
use crate::timer::budget::{self, Budget};
use crate::timer::fire::{FireReport, FireRules, Looks, fire_due};
use crate::timer::guard;
use crate::timer::handler::{Attempt, FireContext};
use crate::timer::identity::TimerKey;
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Generation, Timer};
use crate::timer::view::Lookup;

/// When to look again at due rows if nothing could be done.
const IDLE_RETRY: Duration = Duration::from_secs(5);
/// Most failures that a report describes.
const FAILURES_DESCRIBED_MAX: usize = 16;
/// How far due timers are counted that are left for a later tick.
const DEFERRED_COUNTED_MAX: usize = 10_000;
/// The budget of one row, which the plan has charged already.
const ONE_ROW: Budget = Budget {
    fired_max: usize::MAX,
    fired_per_kind_max: usize::MAX,
    fired_per_tenant_max: usize::MAX,
    scanned_max: usize::MAX,
    bytes_max: usize::MAX,
    elapsed_max: Duration::MAX,
};

/// The rows that have their turn in a tick.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Those to be attempted, in the order of their turns.
    pub(super) attempts: Vec<Timer>,
    /// Those that are not to fire any more.
    pub(super) expired: Vec<Timer>,
    pub(super) report: TickReport,
}

impl Engine {
    /// Fires what is due: by the handler of its kind, or into the outbox. Timers of kinds that the engine does not know, and of those
    /// that were left to the application, stay.
    ///
    /// A handler runs without any lock held and may call the engine. If the timer was disarmed or replaced meanwhile, by the handler
    /// itself or by anybody, what the handler returns is dropped: *raced*. A handler that fails or panics fails its own timer only, which
    /// rests for min(5 s · 2^(n−1), 600 s) from `now` after its attempt n.
    ///
    /// `tick` is what may still be done; give the same one to several engines to share it. `clock` tells its time, and may have any
    /// beginning. What was fired is durable when the call returns; a crash before may have a handler run again.
    ///
    /// # Errors
    /// [`EngineError::InvalidArgument`] when `now` is outside the years 1970 to 9999; else when the state cannot be read or written: what
    /// was not committed is as before, and fires again.
    pub fn fire_due(
        &self,
        now: Timestamp,
        tick: &mut Tick,
        clock: &dyn Fn() -> Duration,
    ) -> Result<TickReport, EngineError> {
        let now = arguments::instant("now", now)?;
        let kinds = self.rules.kinds(false);
        self.lower_shares(&kinds, tick);
        let elapsed = tick.elapsed(clock());
        let (plan, drops) = {
            let mut state = self.lock();
            let plan = state.call(|state| state.plan(&kinds, now, elapsed, (&self.rules, tick)))?;
            (plan, state.drops())
        };
        let Plan { attempts, expired, mut report } = plan;
        let rows = attempts.into_iter().map(|row| (row, true)).chain(expired.into_iter().map(|row| (row, false)));
        for (timer, is_attempt) in rows {
            if tick.is_over(clock()) {
                report.stopped_on_budget = true;
                break;
            }
            tick.begun += 1;
            self.fire_row(&timer, is_attempt, now, &mut report)?;
        }
        let mut state = self.lock();
        state.step(|state| {
            state.advance(&kinds, now)?;
            state.commit()
        })?;
        state.check_drops(drops)?;
        state.finish(&kinds, now, &self.rules, &mut report)?;
        Ok(report)
    }

    /// Lowers the shares of kinds with slow handlers: code of the user, so it runs before the lock is taken.
    pub(super) fn lower_shares(&self, kinds: &[KindNumber], tick: &mut Tick) {
        for kind in kinds {
            if let Some(share) = self.rules.handlers.share_max(*kind) {
                tick.left.lower_share(*kind, share);
            }
        }
    }

    fn fire_row(
        &self,
        timer: &Timer,
        is_attempt: bool,
        now: Timestamp,
        report: &mut TickReport,
    ) -> Result<(), EngineError> {
        let Some(_mark) = self.mark(timer)? else {
            report.raced += 1;
            return Ok(());
        };
        let attempt = if is_attempt {
            let ctx = FireContext { now, attempt: timer.attempt.saturating_add(1) };
            guard::attempt(&self.rules.handlers, &ctx, timer)
        } else {
            Attempt::AsArmed
        };
        let concluded = self.lock().step(|state| state.conclude(timer, attempt, now, &self.rules))?;
        report.add(concluded, is_attempt);
        Ok(())
    }

    /// Takes a timer in hand, if it is still as it was planned and in nobody's.
    pub(super) fn mark(&self, timer: &Timer) -> Result<Option<Mark>, EngineError> {
        let mut state = self.lock();
        if state.above.locate(&timer.key)? != Some(timer.located()) {
            return Ok(None);
        }
        let entry = (timer.key.clone(), timer.generation);
        if !state.in_flight.insert(entry) {
            return Ok(None);
        }
        Ok(Some(Mark { engine: self.clone(), key: timer.key.clone(), generation: timer.generation }))
    }
}

/// A timer in hand; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Mark {
    engine: Engine,
    key: TimerKey,
    generation: Generation,
}

impl Mark {
    /// Returns the engine that the timer belongs to.
    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.engine.lock().in_flight.remove(&(self.key.clone(), self.generation));
    }
}

impl State {
    /// Finds the rows that have their turn, and charges them.
    pub(super) fn plan(
        &mut self,
        kinds: &[KindNumber],
        now: Timestamp,
        elapsed: Duration,
        (rules, tick): (&Rules, &mut Tick),
    ) -> Result<Plan, EngineError> {
        self.end_seals(now)?;
        let pending = self.pending_kinds();
        let mut turns: Vec<KindNumber> = kinds.iter().filter(|kind| pending.contains_key(kind)).copied().collect();
        if !turns.is_empty() {
            let turn = self.turn % turns.len();
            turns.rotate_left(turn);
        }
        self.turn = self.turn.wrapping_add(1);
        let attempts = RefCell::new(Vec::new());
        let told = FireRules {
            kinds: &turns,
            registry: &rules.registry,
            limits: &rules.limits,
            calendar: &*rules.calendar,
            now,
            elapsed: &|| elapsed,
            attempt: &|_, timer| {
                attempts.borrow_mut().push(timer.clone());
                Attempt::AsArmed
            },
            is_here: &|_| true,
            next_generation: self.next_generation(),
        };
        let mut looks = std::mem::take(&mut self.looks);
        let planned = fire_due(&self.free(), &told, &mut tick.left, &mut looks);
        self.looks = looks;
        let (outcome, found) = planned?;
        self.note_poisoned(found.undecodable.iter().map(|(kind, at, _)| (*kind, *at)));
        let report = TickReport {
            scanned: found.scanned,
            stopped_on_budget: !found.unfinished.is_empty(),
            ..TickReport::default()
        };
        let expired = outcome.expired.into_iter().map(|expired| expired.timer).collect();
        Ok(Plan { attempts: attempts.into_inner(), expired, report })
    }

    /// Takes what follows from an attempt. `None` if the timer is not the one any more that was attempted.
    pub(super) fn conclude(
        &mut self,
        timer: &Timer,
        attempt: Attempt,
        now: Timestamp,
        rules: &Rules,
    ) -> Result<Option<FireReport>, EngineError> {
        if self.above.locate(&timer.key)? != Some(timer.located()) {
            return Ok(None);
        }
        let attempt = RefCell::new(Some(attempt));
        let told = FireRules {
            kinds: &[timer.kind],
            registry: &rules.registry,
            limits: &rules.limits,
            calendar: &*rules.calendar,
            now,
            elapsed: &|| Duration::ZERO,
            attempt: &|_, _| attempt.take().expect("one row is attempted once"),
            is_here: &|_| true,
            next_generation: self.next_generation(),
        };
        let single = Single { above: &self.above, timer };
        let (outcome, report) = fire_due(&single, &told, &mut budget::Tick::new(ONE_ROW), &mut Looks::new())?;
        self.take(outcome);
        Ok(Some(report))
    }

    /// Completes a report with what is left.
    pub(super) fn finish(
        &self,
        kinds: &[KindNumber],
        now: Timestamp,
        rules: &Rules,
        report: &mut TickReport,
    ) -> Result<(), EngineError> {
        let pending = self.pending_kinds();
        let unknown = pending.iter().filter(|(kind, _)| rules.registry.get(**kind).is_none());
        report.unknown = unknown.map(|(_, count)| count).sum();
        let mut overdue = 0;
        let mut next = None;
        for kind in kinds.iter().filter(|kind| pending.contains_key(kind)) {
            overdue += self.above.overdue(*kind, now, DEFERRED_COUNTED_MAX)?;
            let from = DueKey { wake: behind(now), generation: Generation(0) };
            next = earlier(next, self.above.next_wake_from(*kind, from)?);
        }
        let is_here = |kind: &KindNumber| kinds.contains(kind);
        report.undecodable = self.poisoned.iter().filter(|(kind, at)| is_here(kind) && at.wake <= now).count();
        report.deferred = overdue.saturating_sub(report.undecodable);
        report.next_wake = match overdue {
            0 => next,
            _ if report.deferred > 0 && report.has_committed() => Some(now),
            _ => earlier(next, now.checked_add(IDLE_RETRY)),
        };
        Ok(())
    }
}

impl TickReport {
    /// Adds what came of one row.
    fn add(&mut self, concluded: Option<FireReport>, is_attempt: bool) {
        let Some(concluded) = concluded else {
            self.raced += 1;
            return;
        };
        self.fired += concluded.fired;
        self.rescheduled += concluded.rescheduled;
        let failed: usize = concluded.failed.values().sum();
        self.failed += failed;
        self.retried += concluded.retried.values().sum::<usize>() - failed;
        self.expired += usize::from(!is_attempt);
        let room = FAILURES_DESCRIBED_MAX.saturating_sub(self.failures.len());
        self.failures.extend(concluded.failures.into_iter().take(room).map(|(key, attempt, detail)| Failure {
            tenant: key.run.tenant.as_str().to_owned(),
            run: key.run.run.as_str().to_owned(),
            timer_id: key.id.as_str().to_owned(),
            attempt,
            detail,
        }));
    }

    fn has_committed(&self) -> bool {
        self.fired + self.rescheduled + self.retried + self.failed + self.expired > 0
    }
}

fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
