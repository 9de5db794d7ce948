//! The state of an engine, which its lock protects: one call at a time.
//!
//! ```text
//!   begin ──▶ the core decides ──▶ take: fold, emit ──▶ commit: one durable batch ──▶ the call returns
//!                                                  └──▶ an error drops all that is open, as if the call had not been made
//! ```
//!
//! Owns the overlay, the generation counter, what is emitted and not committed yet, and who has which timer in hand. Never runs code of
//! the user. Keeps: a call that has returned is durable, and so is all that its answer depends on; generations never fall
//! (INV-GEN-1); what a fire emits is in the batch of the fire.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::error::EngineError;
use super::options::Rules;
use super::ready::Ready;
use super::views::{Free, InFlight, Poisoned};
use crate::store::Store;
use crate::store::outbox::{Outbox, OutboxBounds, OutboxChange};
use crate::store::overlay::Overlay;
use crate::time::Timestamp;
use crate::timer::apply::{Context, apply};
use crate::timer::claim::{ClaimRules, claim};
use crate::timer::command::{Action, Command, Encoding, Reply};
use crate::timer::emitted::Emitted;
use crate::timer::fire::Looks;
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::{KindNumber, Registry};
use crate::timer::model::{DueKey, Generation, Located};
use crate::timer::outcome::{FiredEvent, Mutation, Outcome, Verdict};
use crate::timer::sweep;
use crate::timer::view::{DueRow, Lookup, View};
use crate::wire;

/// Most rows that one batch of a large sweep removes.
const SWEEP_ROWS: usize = 4_096;
/// Most runs that are worked off before the agenda is read again.
const AGENDA_RUNS: usize = 16;
/// Most places of undecodable rows that are remembered; further ones are found again by each tick.
const POISONED_MAX: usize = 4_096;
/// Under what the verdict of a command comes back.
const CORRELATION_ID: &str = "engine";

/// Committed state, and the open changes above it.
pub(super) type Above = Overlay<Box<dyn Outbox + Send>>;

#[derive(Debug)]
pub(super) struct State {
    pub(super) above: Above,
    next_generation: Generation,
    /// Encoded entries that go into the outbox with the next batch.
    emitted: Vec<Bytes>,
    /// Entries below this number are removed with the next batch.
    acknowledged: u64,
    pub(super) in_flight: InFlight,
    pub(super) poisoned: Poisoned,
    ready: Ready,
    /// Where the looks ahead of kinds with much due go on.
    pub(super) looks: Looks,
    /// Whose turn it is among the kinds.
    pub(super) turn: usize,
    /// How often open changes were dropped, and why the last time.
    drops: (u64, Option<EngineError>),
}

impl State {
    pub(super) fn new(store: Box<dyn Outbox + Send>) -> Result<Self, EngineError> {
        let next_generation = Generation(store.header().next_generation.0.max(1));
        let acknowledged = store.bounds().first;
        Ok(Self {
            above: Overlay::new(store)?,
            next_generation,
            emitted: Vec::new(),
            acknowledged,
            in_flight: InFlight::new(),
            poisoned: Poisoned::new(),
            ready: Ready::default(),
            looks: Looks::new(),
            turn: 0,
            drops: (0, None),
        })
    }

    /// Makes a call: what was open before it is committed first, for its answer depends on it, and what it does at its end.
    pub(super) fn call<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, EngineError>) -> Result<T, EngineError> {
        self.step(|state| {
            state.commit()?;
            state.finish_sweeps(Timestamp::EPOCH)?;
            let answer = run(state)?;
            state.commit()?;
            Ok(answer)
        })
    }

    /// Makes a step of a call that commits later. An error drops all that is open.
    pub(super) fn step<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, EngineError>) -> Result<T, EngineError> {
        let result = run(self);
        if let Err(error) = &result {
            self.above.clear();
            self.emitted.clear();
            self.ready = Ready::default();
            self.acknowledged = self.above.store().bounds().first;
            self.drops = (self.drops.0 + 1, Some(error.clone()));
        }
        result
    }

    /// Returns how often open changes were dropped.
    pub(super) fn drops(&self) -> u64 {
        self.drops.0
    }

    /// Refuses to report what an error of another call has dropped meanwhile.
    pub(super) fn check_drops(&self, before: u64) -> Result<(), EngineError> {
        match &self.drops {
            (drops, Some(error)) if *drops != before => Err(error.clone()),
            (_, _) => Ok(()),
        }
    }

    /// Judges a command and takes what follows.
    pub(super) fn command(&mut self, action: Action, now: Timestamp, rules: &Rules) -> Result<Verdict, EngineError> {
        let reply = Reply { correlation_id: CORRELATION_ID.to_owned(), encoding: Encoding::Protobuf };
        let context = Context {
            registry: &rules.registry,
            limits: &rules.limits,
            calendar: &*rules.calendar,
            now,
            recorded: Some(now),
            next_generation: self.next_generation,
        };
        let outcome = apply(&self.above, &Command { reply: Some(reply), action }, &context)?;
        let verdict = outcome.answers.first().map(|answer| answer.verdict.clone());
        self.take(outcome);
        match verdict {
            Some(verdict) => Ok(verdict),
            // The run is large: all its timers are gone with the first batch, and their rows with those that follow.
            None => Ok(self.finish_sweeps(now)?.expect("a sweep that ends answers who has asked for it")),
        }
    }

    /// Works off the sweeps that are under way, and returns the last verdict.
    fn finish_sweeps(&mut self, now: Timestamp) -> Result<Option<Verdict>, EngineError> {
        let mut verdict = None;
        // Each round removes rows or ends a sweep.
        while self.above.is_sweeping() {
            for run in self.above.agenda(Timestamp::EPOCH, AGENDA_RUNS)? {
                let outcome = self.work_off(&run, now)?;
                verdict = outcome.answers.last().map(|answer| answer.verdict.clone()).or(verdict);
                self.take(outcome);
            }
            self.commit()?;
        }
        Ok(verdict)
    }

    fn work_off(&self, run: &RunKey, now: Timestamp) -> Result<Outcome, EngineError> {
        // No kind of an engine remembers the ids that a sweep ends.
        Ok(sweep::work_off(&self.above, run, &Registry::default(), now, SWEEP_ROWS)?)
    }

    /// Claims what a tenant has due and what is in nobody's hands. Nothing may be open: rows are read from the store.
    pub(super) fn claim(
        &mut self,
        tenant: &Tenant,
        now: Timestamp,
        limit: usize,
        rules: &Rules,
    ) -> Result<Vec<FiredEvent>, EngineError> {
        let kinds: Vec<KindNumber> = self.pending_kinds().into_keys().collect();
        let poisoned = self.ready.read_up_to(now, &self.above, &kinds)?;
        self.note_poisoned(poisoned);
        let told = ClaimRules {
            registry: &rules.registry,
            now,
            limit,
            lease: rules.lease,
            next_generation: self.next_generation,
        };
        let is_free = |run: &Run, id: &TimerId, at: &Located| {
            // Nothing is in flight nearly always, and then no key is built.
            let key = || TimerKey { run: RunKey { tenant: tenant.clone(), run: run.clone() }, id: id.clone() };
            self.in_flight.is_empty() || !self.in_flight.contains(&(key(), at.at.generation))
        };
        let free = self.ready.of(tenant, now).filter(|(run, id, at)| is_free(run, id, at));
        let rows = free.filter_map(|(_, _, at)| self.above.store().timer(at).transpose());
        let mut outcome = claim(&self.above, rows, &told)?;
        let claimed = std::mem::take(&mut outcome.fired);
        self.take(outcome);
        self.advance(&kinds, now)?;
        Ok(claimed)
    }

    /// Forgets seals that have ended.
    pub(super) fn end_seals(&mut self, now: Timestamp) -> Result<(), EngineError> {
        for run in self.above.agenda(now, AGENDA_RUNS)? {
            let outcome = self.work_off(&run, now)?;
            self.take(outcome);
        }
        Ok(())
    }

    /// Takes what the core has decided. Cursors are moved by [`State::advance`] alone.
    pub(super) fn take(&mut self, outcome: Outcome) {
        for mutation in outcome.mutations {
            if matches!(mutation, Mutation::Advance { .. }) {
                continue;
            }
            self.next_generation = mutation.generation_behind(self.next_generation);
            self.ready.follow(&mutation);
            self.above.fold(mutation);
        }
        let fired = outcome.fired.iter().flat_map(Emitted::by_fire);
        let emitted = fired.chain(outcome.expired.iter().map(Emitted::by_expiry));
        self.emitted.extend(emitted.map(|emitted| wire::emitted::encode(&emitted)));
    }

    /// Moves the cursors of kinds to their first rows.
    pub(super) fn advance(&mut self, kinds: &[KindNumber], now: Timestamp) -> Result<(), EngineError> {
        let pending = self.pending_kinds();
        for kind in kinds {
            // Without timers there is nothing but what they have left behind, which is not worth a look.
            let first = match pending.get(kind) {
                Some(_) => self.above.due(*kind, None, Timestamp::MAX, 1)?.first().map(DueRow::at),
                None => None,
            };
            let to = first.unwrap_or(DueKey { wake: behind(now), generation: Generation(0) });
            if self.above.cursor(*kind) < to {
                self.above.fold(Mutation::Advance { kind: *kind, to });
            }
        }
        Ok(())
    }

    /// Writes what is open as one durable batch.
    pub(super) fn commit(&mut self) -> Result<(), EngineError> {
        let bounds = self.above.store().bounds();
        let is_outbox_changed = !self.emitted.is_empty() || self.acknowledged != bounds.first;
        if self.above.is_empty() && !is_outbox_changed {
            return Ok(());
        }
        let mut batch = self.above.batch();
        batch.header.next_generation = self.next_generation;
        if is_outbox_changed {
            let added: Vec<(u64, Bytes)> = (bounds.next..).zip(self.emitted.iter().cloned()).collect();
            let next = added.last().map_or(bounds.next, |(number, _)| number + 1);
            let bounds = OutboxBounds { first: self.acknowledged, next };
            batch.outbox = Some(OutboxChange { bounds, added });
        }
        self.above.commit(batch)?;
        self.emitted.clear();
        Ok(())
    }

    /// Removes the entries of the outbox up to, and with, a number; returns how many.
    pub(super) fn acknowledge(&mut self, up_to: u64) -> u64 {
        let OutboxBounds { first, next } = self.above.store().bounds();
        let to = up_to.saturating_add(1).clamp(first, next);
        self.acknowledged = to;
        to - first
    }

    pub(super) fn next_generation(&self) -> Generation {
        self.next_generation
    }

    pub(super) fn pending_of(&self, tenant: &Tenant) -> Result<u64, EngineError> {
        Ok(self.above.pending_of(tenant)?)
    }

    /// Returns the kinds that have timers.
    pub(super) fn pending_kinds(&self) -> BTreeMap<KindNumber, u64> {
        self.above.pending().iter().filter(|(_, count)| **count > 0).map(|(kind, count)| (*kind, *count)).collect()
    }

    /// Returns what is in nobody's hands.
    pub(super) fn free(&self) -> Free<'_> {
        Free { above: &self.above, in_flight: &self.in_flight, poisoned: &self.poisoned }
    }

    /// Remembers rows that cannot be decoded.
    pub(super) fn note_poisoned(&mut self, rows: impl IntoIterator<Item = (KindNumber, DueKey)>) {
        let room = POISONED_MAX.saturating_sub(self.poisoned.len());
        self.poisoned.extend(rows.into_iter().take(room));
    }
}

/// Returns the millisecond behind an instant.
pub(super) fn behind(now: Timestamp) -> Timestamp {
    Timestamp::from_millis(now.as_millis() + 1)
}
