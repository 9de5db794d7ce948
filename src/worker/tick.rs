//! One pass of the loop.
//!
//! Owns the order of a tick, how long it waits, and what it does with each event. Never blocks anywhere but in the log.
//! Keeps: commands that cannot be taken now (the clock is held, a transaction failed, a topic refuses) are read again
//! later, from the task's own position.

use std::time::Duration;

use super::observer::{Observer, TaskState, TickReport};
use super::{Worker, WorkerError};
use crate::log::{ChangelogBatch, InputRecord, Log, LogError, LogEvent};
use crate::planted::{Bug, is_on};
use crate::position::Partition;
use crate::store::Stores;
use crate::task::absorb::Firing;
use crate::task::mend::Examined;
use crate::task::restore::Restored;
use crate::task::{Phase, Task};
use crate::time::guard::Reading;
use crate::time::{Clock, Timestamp};
use crate::timer::budget::Tick;
use crate::timer::kind::KindNumber;

/// Longest wait for events: the heartbeat of the loop, and how late a stop may be noticed.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Longest wait while a task applies the commands that stood there at its assignment: the gate may open without a record.
const CATCH_UP_WAIT: Duration = Duration::from_millis(10);
/// Most records of one poll, and about how many bytes: one tick's worth, so that firing is never far away.
const POLL_RECORDS_MAX: usize = 2_000;
const POLL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest a seek may take before it counts as hung.
const SEEK_BOUND: Duration = Duration::from_secs(30);
/// How much longer than asked a poll may take before it counts as hung.
const POLL_BOUND: Duration = Duration::from_secs(30);

impl<L: Log, T: Stores, C: Clock, O: Observer> Worker<L, T, C, O> {
    /// Makes one pass: waits for events, takes commands, fires what is due, maybe commits.
    ///
    /// # Errors
    /// When the worker cannot go on.
    pub fn tick(&mut self) -> Result<(), WorkerError> {
        let patience = self.patience()?;
        self.observer.entered("poll", patience + POLL_BOUND);
        let events = self.log.poll(patience, POLL_RECORDS_MAX, POLL_BYTES_MAX);
        self.observer.left();
        let began = self.clock.boot();
        self.read_clock();
        let mut report = TickReport::default();
        for event in events? {
            self.take(event, &mut report)?;
        }
        self.rebuild_if_due()?;
        self.join()?;
        self.rewind()?;
        self.open_gates();
        if self.may_work() {
            self.fire(&mut report)?;
        }
        if self.must_settle() {
            self.settle()?;
        }
        self.keep_house()?;
        self.turn = self.turn.wrapping_add(1);
        report.busy = self.clock.boot().saturating_sub(began);
        self.observer.ticked(&report);
        Ok(())
    }

    /// Returns how long the next poll may wait: until the nearest of next wake, linger, end of a hold, and heartbeat.
    fn patience(&mut self) -> Result<Duration, WorkerError> {
        let boot = self.clock.boot();
        let mut patience = HEARTBEAT;
        if self.stalled_until > boot {
            // Nothing can be settled before, however long it has waited.
            return Ok(patience.min(self.stalled_until.saturating_sub(boot)));
        }
        if let Some(since) = self.dirty_since {
            patience = patience.min((since + self.settings.commit_linger).saturating_sub(boot));
        }
        if let Some(end) = self.holds.next_end(boot) {
            patience = patience.min(end.saturating_sub(boot));
        }
        if self.is_clock_held {
            return Ok(patience);
        }
        let kinds = self.free_kinds(boot);
        let now = self.clock.wall();
        let mut failed = Vec::new();
        for (partition, seat) in &mut self.seats {
            let Some(task) = &mut seat.task else {
                patience = patience.min(seat.retry_at.saturating_sub(boot).max(CATCH_UP_WAIT));
                continue;
            };
            match task.phase() {
                Phase::Running => match task.next_wake(&kinds) {
                    Ok(Some(wake)) => patience = patience.min(wake.since(now)),
                    Ok(None) => {}
                    Err(error) => failed.push((*partition, error)),
                },
                Phase::Joining | Phase::CatchingUp { .. } => patience = patience.min(CATCH_UP_WAIT),
                Phase::Restoring(_) | Phase::Forwarding => {}
            }
        }
        for (partition, error) in failed {
            self.close(partition, &error)?;
        }
        Ok(patience)
    }

    fn read_clock(&mut self) {
        let (now, is_held) = match self.guard.read(&self.clock) {
            Reading::Trusted(now) => (now, false),
            Reading::Held { wall, jump } => {
                if !self.is_clock_held {
                    tracing::error!(%wall, jump_seconds = jump.as_secs(), "clock jumped forward, holding until the broker confirms it");
                }
                (self.now, true)
            }
        };
        self.now = now;
        self.latest = self.latest.max(now);
        if is_held != self.is_clock_held {
            self.is_clock_held = is_held;
            self.observer.clock_held(is_held);
            if !is_held {
                tracing::info!(%now, "clock is trusted again");
            }
        }
    }

    /// Returns whether commands may be applied and timers fired.
    pub(super) fn may_work(&self) -> bool {
        !self.is_clock_held && !self.is_rebuild_due && self.stalled_until <= self.clock.boot()
    }

    fn take(&mut self, event: LogEvent, report: &mut TickReport) -> Result<(), WorkerError> {
        match event {
            LogEvent::Assigned(partitions) => self.assigned(&partitions)?,
            LogEvent::Revoked(partitions) => self.revoked(&partitions)?,
            LogEvent::Lost(partitions) => self.lost(&partitions)?,
            LogEvent::OutOfRange(partition) => self.out_of_range(partition)?,
            LogEvent::Changelog(batch) => self.take_changelog(&batch)?,
            LogEvent::Record(record) => self.take_record(&record, report)?,
        }
        Ok(())
    }

    fn take_record(&mut self, record: &InputRecord, report: &mut TickReport) -> Result<(), WorkerError> {
        let boot = self.clock.boot();
        let may_take = self.may_work() && self.holds.commands_are_free(boot);
        let Some(seat) = self.seats.get_mut(&record.partition) else {
            return Ok(());
        };
        let task = seat.task.as_mut().filter(|task| task.takes_commands());
        let Some(task) = task.filter(|_| may_take && (!seat.is_rewind_due || is_on(Bug::RewindDueIgnored))) else {
            // Read on, the backlog would be read over and over for nothing.
            seat.is_rewind_due = true;
            return self.pause(record.partition);
        };
        match task.absorb(record, self.latest, &self.settings.rules) {
            Ok(()) => {
                report.applied += 1;
                self.dirty_since.get_or_insert(boot);
                Ok(())
            }
            Err(error) => self.close(record.partition, &error),
        }
    }

    fn pause(&mut self, partition: Partition) -> Result<(), WorkerError> {
        match self.log.pause(partition) {
            Ok(()) => Ok(()),
            Err(LogError::Retriable { doing, detail }) => {
                tracing::warn!(%partition, doing, detail, "commands are read on and dropped");
                Ok(())
            }
            Err(error @ LogError::Fatal { .. }) => Err(error.into()),
        }
    }

    fn take_changelog(&mut self, batch: &ChangelogBatch) -> Result<(), WorkerError> {
        let partition = batch.partition;
        let boot = self.clock.boot();
        let Some(task) = self.seats.get_mut(&partition).and_then(|seat| seat.task.as_mut()) else {
            return Ok(());
        };
        if !matches!(task.phase(), Phase::Restoring(_)) {
            let examined = task.examine(batch);
            return self.examined(partition, &examined);
        }
        match task.restore(batch, boot) {
            Ok(Restored::NotYet) => {
                if let Phase::Restoring(restore) = task.phase() {
                    let (done, total) = restore.progress();
                    self.observer.restore(partition, done, total);
                }
                Ok(())
            }
            Ok(Restored::From { position, lost }) => {
                if lost > 0 {
                    tracing::error!(%partition, lost, %position, "commands were removed from the topic before they were read");
                    self.observer.input_lost(partition, lost);
                }
                tracing::info!(%partition, %position, "restored");
                self.observer.task(partition, TaskState::CatchingUp);
                self.log.stop_restore(partition)?;
                if let Some(seat) = self.seats.get_mut(&partition) {
                    seat.is_rewind_due = true;
                    seat.failures = 0;
                    seat.has_contradicted = false;
                }
                Ok(())
            }
            Ok(Restored::Contradiction(detail)) => self.contradicted(partition, detail),
            Err(error) => self.close(partition, &error),
        }
    }

    /// Takes what a look at the changelog found: records of somebody else are an alert, and are overwritten.
    fn examined(&mut self, partition: Partition, examined: &Examined) -> Result<(), WorkerError> {
        if !examined.foreign.is_empty() {
            tracing::error!(
                %partition,
                offsets = ?examined.foreign,
                "somebody else wrote to the changelog, writing these keys anew; only the user of punctual may have the right"
            );
            self.observer.foreign_records(partition, examined.foreign.len());
            self.dirty_since.get_or_insert(self.clock.boot());
        }
        if examined.is_done {
            self.log.stop_restore(partition)?;
        }
        Ok(())
    }

    /// Reads commands again from the position of each task that could not take them.
    fn rewind(&mut self) -> Result<(), WorkerError> {
        let boot = self.clock.boot();
        if !self.may_work() || !self.holds.commands_are_free(boot) {
            return Ok(());
        }
        for (partition, seat) in &mut self.seats {
            let Some(task) = seat.task.as_ref().filter(|task| task.takes_commands()) else {
                continue;
            };
            if !seat.is_rewind_due {
                continue;
            }
            self.observer.entered("seek", SEEK_BOUND);
            let sought = self.log.consume(*partition, task.position());
            self.observer.left();
            match sought {
                Ok(()) => seat.is_rewind_due = false,
                Err(LogError::Retriable { doing, detail }) => {
                    tracing::warn!(%partition, doing, detail, "cannot read commands yet");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn open_gates(&mut self) {
        for (partition, seat) in &mut self.seats {
            let reading_position = if seat.is_rewind_due { None } else { self.log.position(*partition) };
            if seat.task.as_mut().is_some_and(|task| task.open_gate(reading_position)) {
                tracing::info!(%partition, "running");
                self.observer.task(*partition, TaskState::Running);
            }
        }
    }

    /// Returns the kinds that may fire, each tick beginning with another one.
    pub(super) fn free_kinds(&self, boot: Duration) -> Vec<KindNumber> {
        let mut kinds: Vec<KindNumber> = self
            .kinds
            .iter()
            .copied()
            .filter(|kind| self.holds.is_free(*kind, boot) || is_on(Bug::HeldKindDrops))
            .collect();
        if !kinds.is_empty() {
            let turn = self.turn % kinds.len();
            kinds.rotate_left(turn);
        }
        kinds
    }

    fn fire(&mut self, report: &mut TickReport) -> Result<(), WorkerError> {
        let began = self.clock.boot();
        let kinds = self.free_kinds(began);
        let mut partitions: Vec<Partition> = self.seats.keys().copied().collect();
        if !partitions.is_empty() {
            let turn = self.turn % partitions.len();
            partitions.rotate_left(turn);
        }
        let early = i64::from(is_on(Bug::EarlyByOneMillisecond));
        let now = Timestamp::from_millis(self.now.as_millis() + early);
        let clock = &self.clock;
        let elapsed = || clock.boot().saturating_sub(began);
        let mut firing = Firing { kinds: &kinds, tick: Tick::new(self.settings.budget), elapsed: &elapsed };
        let mut failed = Vec::new();
        for partition in partitions {
            let Some(task) = self.seats.get_mut(&partition).and_then(|seat| seat.task.as_mut()) else {
                continue;
            };
            if *task.phase() != Phase::Running {
                continue;
            }
            let waiting = task.emissions_waiting();
            let fired = task.fire(now, &self.settings.rules, &mut firing);
            let worked_off = |task: &mut Task<T::Store>| task.work_off(self.now, &self.settings.rules);
            match fired.and_then(|fired| Ok((fired, worked_off(task)?, task.forget(self.now)?))) {
                Ok((fired, has_worked_off, has_forgotten)) => {
                    if has_forgotten {
                        self.dirty_since.get_or_insert(began);
                    }
                    for (kind, at, problem) in &fired.undecodable {
                        tracing::error!(%partition, %kind, wake = %at.wake, problem, "timer cannot be decoded, kept");
                    }
                    for (timer, attempt, failure) in &fired.failures {
                        tracing::warn!(%partition, %timer, attempt, failure, "handler failed, the timer rests and is tried again");
                    }
                    report.scanned += fired.scanned;
                    report.undecodable += fired.undecodable.len();
                    report.saturated |= !fired.unfinished.is_empty();
                    report.fired += fired.fired;
                    report.raced += fired.raced;
                    report.failed += fired.failed.values().sum::<usize>();
                    // A timer that rests has to be put there before it is attempted again.
                    let has_changed = fired.rescheduled > 0 || !fired.retried.is_empty();
                    self.is_urgent |= task.emissions_waiting() > waiting || has_changed || has_worked_off;
                }
                Err(error) => failed.push((partition, error)),
            }
        }
        for (partition, error) in failed {
            self.close(partition, &error)?;
        }
        Ok(())
    }
}
