//! Ends the open transaction of all tasks together.
//!
//! Owns when a transaction is due and what follows from its outcome. Keeps: every partition whose records are in a
//! transaction has its position in it (INV-FENCE-1); an outcome that is not known is never guessed: the tasks reload.

use std::collections::BTreeMap;
use std::time::Duration;

use super::observer::{Observer, TransactionEnd};
use super::{Worker, WorkerError};
use crate::log::{Aborted, CommitOutcome, Committed, Destination, Log, Transaction};
use crate::planted::{Bug, is_on};
use crate::position::Partition;
use crate::store::Stores;
use crate::task::Task;
use crate::task::tally::Tally;
use crate::time::Clock;
use crate::timer::kind::KindNumber;

/// Most records that wait for the linger; more are committed at once.
const WAITING_RECORDS_MAX: usize = 10_000;
/// Most bytes that wait for the linger: they have to be delivered within the time of a transaction on a slow line too.
const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest a transaction may take before its call counts as hung: the transaction time-out and the settling of an abort.
pub(super) const COMMIT_BOUND: Duration = Duration::from_mins(1);
const STALL_FIRST: Duration = Duration::from_millis(100);
const STALL_MAX: Duration = Duration::from_secs(5);

impl<L: Log, T: Stores, C: Clock, O: Observer> Worker<L, T, C, O> {
    /// Returns whether the open transaction is to be settled now.
    pub(super) fn must_settle(&self) -> bool {
        if self.is_rebuild_due || self.stalled_until > self.clock.boot() {
            return false;
        }
        let has_lingered = self
            .dirty_since
            .is_some_and(|since| self.clock.boot().saturating_sub(since) >= self.settings.commit_linger);
        let waiting: usize = self.tasks().map(|task| task.overlay().changed_rows() + task.emissions_waiting()).sum();
        let is_large = || self.tasks().map(Task::bytes_waiting).sum::<usize>() >= WAITING_BYTES_MAX;
        self.is_urgent || has_lingered || waiting >= WAITING_RECORDS_MAX || is_large()
    }

    fn tasks(&self) -> impl Iterator<Item = &Task<T::Store>> {
        self.seats.values().filter_map(|seat| seat.task.as_ref()).filter(|task| task.takes_commands())
    }

    /// Settles the open transaction, if there is anything in it.
    ///
    /// # Errors
    /// When the worker cannot go on. A transaction that failed is no error: it is done again.
    pub(super) fn settle(&mut self) -> Result<(), WorkerError> {
        self.dirty_since = None;
        self.is_urgent = false;
        let boot = self.clock.boot();
        let results_are_free = self.holds.results_are_free(boot);
        let mut transaction = Transaction::default();
        let mut tally = Tally::default();
        let mut participants = Vec::new();
        let mut failed = Vec::new();
        for (partition, seat) in &mut self.seats {
            let Some(task) = seat.task.as_mut().filter(|task| task.takes_commands()) else {
                continue;
            };
            transaction.positions.insert(*partition, task.position());
            if task.is_dirty() {
                let (records, done) = match task.prepare() {
                    Ok(prepared) => prepared,
                    Err(error) => {
                        failed.push((*partition, error));
                        continue;
                    }
                };
                let wanted = records.into_iter().filter(|r| results_are_free || r.to != Destination::Results);
                let is_held = |to| kind_of(to).is_some_and(|kind| !self.holds.is_free(kind, boot));
                let wanted = wanted.filter(|r| !is_on(Bug::HeldKindDrops) || !is_held(r.to));
                transaction.emissions.extend(wanted);
                tally.add(&done);
                participants.push(*partition);
            }
        }
        for (partition, error) in failed {
            self.close(partition, &error)?;
        }
        if participants.is_empty() {
            return Ok(());
        }
        if transaction.emissions.is_empty() {
            // Only scan cursors moved, which the log does not hold.
            return self.follow(&participants, &Committed::default());
        }
        let (outcome, took) = self.commit("commit", &transaction);
        match outcome {
            CommitOutcome::Committed(committed) => {
                self.failures = 0;
                self.observer.transaction(TransactionEnd::Committed, took, &tally);
                for kind in self.holds.accept(transaction.emissions.iter().map(|emission| emission.to)) {
                    tracing::info!(%kind, "kind fires again");
                    self.observer.kind_held(kind, false);
                }
                self.confirm_clock(&committed, took);
                self.prove_owned(&transaction);
                self.follow(&participants, &committed)
            }
            CommitOutcome::Aborted(aborted) => {
                self.observer.transaction(TransactionEnd::Aborted, took, &tally);
                self.aborted(&participants, &aborted);
                Ok(())
            }
            CommitOutcome::Unknown { detail } => {
                self.observer.transaction(TransactionEnd::Unknown, took, &tally);
                if is_on(Bug::NextBegunBeforeOutcome) {
                    self.aborted(&participants, &Aborted::default());
                    return Ok(());
                }
                self.unknown(&participants, &detail);
                Ok(())
            }
        }
    }

    /// Writes a transaction, under a name for the health check. Returns how it ended, and after how long.
    pub(super) fn commit(&mut self, call: &'static str, transaction: &Transaction) -> (CommitOutcome, Duration) {
        let began = self.clock.boot();
        self.observer.entered(call, COMMIT_BOUND);
        let outcome = self.log.commit(transaction);
        self.observer.left();
        (outcome, self.clock.boot().saturating_sub(began))
    }

    /// Compares the clock with the broker's; an answer that took longer than a step may be says nothing.
    pub(super) fn confirm_clock(&mut self, committed: &Committed, took: Duration) {
        if let Some(appended) = committed.appended.filter(|_| took < self.settings.clock_step_max) {
            self.guard.confirm(&self.clock, appended);
        }
    }

    /// Notes that a transaction has committed, and with it the fence of each of its partitions.
    pub(super) fn prove_owned(&mut self, transaction: &Transaction) {
        for partition in transaction.positions.keys() {
            if let Some(task) = self.seats.get_mut(partition).and_then(|seat| seat.task.as_mut()) {
                task.prove_owned(self.now);
            }
        }
    }

    fn follow(&mut self, participants: &[Partition], committed: &Committed) -> Result<(), WorkerError> {
        let mut failed = BTreeMap::new();
        for partition in participants {
            let Some(task) = self.seats.get_mut(partition).and_then(|seat| seat.task.as_mut()) else {
                continue;
            };
            let places = committed.changelog.get(partition);
            if task.would_regress(places) {
                let detail = "the changelog topic was deleted and created anew while its timers were here";
                return Err(WorkerError::Contradiction { partition: *partition, detail });
            }
            if let Err(error) = task.committed(places) {
                failed.insert(*partition, error);
            } else if let Some(from) = task.suspect() {
                self.log.restore(*partition, from)?;
            }
        }
        for (partition, error) in failed {
            // The log is ahead of this store: the task comes back by a restore of the difference.
            self.close(partition, &error)?;
        }
        Ok(())
    }

    fn aborted(&mut self, participants: &[Partition], aborted: &Aborted) {
        let boot = self.clock.boot();
        for (destination, reason) in &aborted.refused {
            let is_new = self.holds.refuse(*destination, boot);
            tracing::error!(%destination, reason, "topic refuses records, held back and tried again");
            if let Some(kind) = kind_of(*destination).filter(|_| is_new) {
                self.observer.kind_held(kind, true);
            }
        }
        if aborted.refused.is_empty() || aborted.refused.contains_key(&Destination::Changelog) {
            self.stall(&aborted.detail, "transaction aborted, doing it again");
        }
        for partition in participants {
            if let Some(seat) = self.seats.get_mut(partition)
                && let Some(task) = &mut seat.task
            {
                task.dropped();
                seat.is_rewind_due = !is_on(Bug::RewindForgottenOnAbort);
            }
        }
    }

    fn unknown(&mut self, participants: &[Partition], detail: &str) {
        self.is_rebuild_due = true;
        self.stall(detail, "outcome of a transaction is not known, reloading");
        for partition in participants {
            if let Some(task) = self.seats.get_mut(partition).and_then(|seat| seat.task.as_mut()) {
                task.reload();
                self.observer.task(*partition, super::observer::TaskState::Restoring);
            }
        }
    }

    /// Waits a little before anything is tried again, longer each time.
    pub(super) fn stall(&mut self, detail: &str, message: &'static str) {
        let wait = (STALL_FIRST * 2_u32.pow(self.failures.min(6))).min(STALL_MAX);
        self.failures = self.failures.saturating_add(1);
        self.stalled_until = self.clock.boot() + wait;
        tracing::warn!(detail, failures = self.failures, "{message}");
    }
}

fn kind_of(destination: Destination) -> Option<KindNumber> {
    match destination {
        Destination::Fired(kind) | Destination::Outbox(kind) => Some(kind),
        Destination::Arm | Destination::Changelog | Destination::DeadLetter | Destination::Results => None,
    }
}
