//! What a worker does now and then: durable stores, reports, the probe of the broker, stalled restores.
//!
//! Never does so much in one tick that firing would be late: one store is made durable in each.

use std::collections::BTreeMap;
use std::time::Duration;

use super::observer::{Holdings, Observer};
use super::{Worker, WorkerError};
use crate::log::{CommitOutcome, Committed, Log, LogError, Transaction};
use crate::planted::{Bug, is_on};
use crate::position::{Partition, Position};
use crate::store::{StoreError, Stores};
use crate::task::{Phase, Task};
use crate::time::{Clock, Timestamp};
use crate::timer::kind::KindNumber;

const REPORT_INTERVAL: Duration = Duration::from_secs(1);
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// How often a worker without transactions proves, within the greatest age of a store, that its partitions are still its own.
const PROOFS_PER_AGE: u32 = 4;
/// How often the topics of state are looked at: whether they are still those that they were.
const TOPICS_INTERVAL: Duration = Duration::from_secs(30);
/// Longest a look at the topics may take before it counts as hung.
const TOPICS_BOUND: Duration = Duration::from_secs(30);
/// How often a partition that is still waiting for its commands is named.
const NAME_INTERVAL: Duration = Duration::from_secs(10);
/// Overdue rows are counted up to so many per kind and partition: the gauge says "many", not how many.
const OVERDUE_ROWS_MAX: usize = 1_000;
/// How long a restore reads nothing until its barrier is written once more.
const SILENCE: Duration = Duration::from_secs(10);
/// Longest a flush may take before its call counts as hung.
pub(super) const FLUSH_BOUND: Duration = Duration::from_mins(1);

impl<L: Log, T: Stores, C: Clock, O: Observer> Worker<L, T, C, O> {
    /// Does what is due of the housekeeping.
    pub(super) fn keep_house(&mut self) -> Result<(), WorkerError> {
        let boot = self.clock.boot();
        self.check_restores(boot)?;
        self.mark_silent_restores(boot);
        if boot >= self.probe_at && !self.is_rebuild_due && (self.is_clock_held || self.is_proof_due()) {
            self.probe_at = boot + PROBE_INTERVAL;
            self.probe()?;
        }
        if boot >= self.report_at {
            self.report_at = boot + REPORT_INTERVAL;
            self.report()?;
        }
        if boot >= self.topics_at {
            self.topics_at = boot + TOPICS_INTERVAL;
            self.check_topics()?;
        }
        if boot >= self.name_at {
            self.name_at = boot + NAME_INTERVAL;
            self.name_waiting();
        }
        if boot >= self.flush_at {
            let partitions = u32::try_from(self.seats.len().max(1)).unwrap_or(u32::MAX);
            self.flush_at = boot + self.settings.flush_interval / partitions;
            self.flush_one()?;
        }
        Ok(())
    }

    fn check_restores(&mut self, boot: Duration) -> Result<(), WorkerError> {
        let timeout = self.settings.restore_stall_timeout;
        for (partition, seat) in &self.seats {
            if let Some(Phase::Restoring(restore)) = seat.task.as_ref().map(Task::phase)
                && restore.is_stalled(boot, timeout)
            {
                let (done, total) = restore.progress();
                return Err(WorkerError::RestoreStalled {
                    partition: *partition,
                    seconds: timeout.as_secs(),
                    done,
                    total,
                });
            }
        }
        Ok(())
    }

    /// Writes the barrier of restores that read nothing once more, through the next producer in turn.
    ///
    /// Most often somebody's transaction is open, and it helps nothing. But a broker that restarts may lose the marker of a
    /// transaction that it had committed already. What that wrote stays unreadable, and all behind it, until its producer
    /// commits in this partition again: it may be one of ours.
    fn mark_silent_restores(&mut self, boot: Duration) {
        if self.is_rebuild_due || self.stalled_until > boot {
            return;
        }
        let mut transaction = Transaction::default();
        for (partition, seat) in &self.seats {
            let Some(task) = &seat.task else { continue };
            if let Some((barrier, position)) = task.barrier_again(&self.settings.rules.owner, boot, SILENCE) {
                transaction.emissions.push(barrier);
                transaction.positions.insert(*partition, position);
            }
        }
        if transaction.emissions.is_empty() {
            return;
        }
        let partitions: Vec<Partition> = transaction.positions.keys().copied().collect();
        tracing::info!(?partitions, "restores read nothing, writing their barriers once more");
        let (outcome, _) = self.commit("commit barriers", &transaction);
        let committed = match outcome {
            CommitOutcome::Committed(committed) => committed,
            CommitOutcome::Aborted(aborted) => {
                return self.stall(&aborted.detail, "another barrier aborted, doing it again");
            }
            CommitOutcome::Unknown { detail } => {
                self.is_rebuild_due = true;
                self.stall(&detail, "outcome of another barrier is not known");
                Committed::default()
            }
        };
        let boot = self.clock.boot();
        for partition in partitions {
            if let Some(task) = self.seats.get_mut(&partition).and_then(|seat| seat.task.as_mut()) {
                task.marked_again(committed.changelog.get(&partition), boot);
            }
        }
    }

    /// Returns the tasks whose positions may be committed by themselves.
    fn quiet_tasks(&self) -> impl Iterator<Item = (Partition, &Task<T::Store>)> {
        let tasks = self.seats.iter().filter_map(|(partition, seat)| Some((*partition, seat.task.as_ref()?)));
        tasks.filter(|(_, task)| task.takes_commands() && task.has_changelog() && !task.is_dirty())
    }

    /// Returns whether a store would soon be too old to be opened again, only because nothing happens in its partition.
    fn is_proof_due(&self) -> bool {
        let long = self.settings.store_age_max / PROOFS_PER_AGE;
        let is_due = |at: Option<Timestamp>| at.is_none_or(|at| self.now.since(at) >= long);
        self.stalled_until <= self.clock.boot() && self.quiet_tasks().any(|(_, task)| is_due(task.owned_at()))
    }

    /// Writes a record that changes nothing, to learn the broker's time from it, and that the partitions are still ours.
    fn probe(&mut self) -> Result<(), WorkerError> {
        let positions: BTreeMap<Partition, Position> =
            self.quiet_tasks().map(|(partition, task)| (partition, task.position())).collect();
        let Some((partition, task)) = self.quiet_tasks().next() else {
            if self.seats.values().all(|seat| seat.task.as_ref().is_some_and(|task| !task.has_changelog())) {
                // Nothing fires here that a wrong clock could fire early. The barrier of the first partition that has timers
                // will show the broker's time.
                self.guard.confirm(&self.clock, self.clock.wall());
                return Ok(());
            }
            // A partition of which nothing was taken yet has its first position to commit: that shows the time as well.
            return self.settle();
        };
        let transaction = Transaction { emissions: vec![task.probe()], positions };
        let (outcome, took) = self.commit("probe the broker", &transaction);
        match outcome {
            CommitOutcome::Committed(committed) => {
                self.confirm_clock(&committed, took);
                self.prove_owned(&transaction);
                if let Some(task) = self.seats.get_mut(&partition).and_then(|seat| seat.task.as_mut()) {
                    task.probed(committed.changelog.get(&partition));
                }
            }
            CommitOutcome::Aborted(aborted) => {
                tracing::warn!(detail = aborted.detail, "probe of the broker aborted");
            }
            CommitOutcome::Unknown { detail } => {
                // The record repeats what is committed, so it does not matter whether it is there; but where is not known.
                if let Some(task) = self.seats.get_mut(&partition).and_then(|seat| seat.task.as_mut()) {
                    task.probed(None);
                }
                self.is_rebuild_due = true;
                self.stall(&detail, "outcome of a probe is not known");
            }
        }
        Ok(())
    }

    /// Stops by name when a topic of state was created anew, or the changelog has got partitions, while tasks run on it.
    fn check_topics(&mut self) -> Result<(), WorkerError> {
        let Some(partition) = self.seats.keys().next().copied() else {
            return Ok(());
        };
        self.observer.entered("look at the topics", TOPICS_BOUND);
        let ids = self.log.topic_ids();
        self.observer.left();
        let ids = match ids {
            Ok(ids) => ids,
            // The broker is away, or a topic is: the transactions tell that.
            Err(LogError::Retriable { .. }) => return Ok(()),
            Err(error @ LogError::Fatal { .. }) => return Err(error.into()),
        };
        match self.topic_ids.replace(ids) {
            Some(before) if before != ids => {
                let detail =
                    "the command topic or the changelog was deleted and created anew while its timers were here";
                Err(WorkerError::Contradiction { partition, detail })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Names the partitions that do not fire yet. A client's open transaction hides the commands behind it until it ends, at
    /// the latest after its time-out; a disarm may be among them, so the wait is as long.
    fn name_waiting(&self) {
        for (partition, seat) in &self.seats {
            if let Some(Phase::CatchingUp { target }) = seat.task.as_ref().map(Task::phase) {
                let position = self.log.position(*partition);
                tracing::warn!(
                    %partition,
                    ?position,
                    %target,
                    "not firing yet: commands of before the assignment are unread, a client's open transaction may hide them"
                );
            }
        }
    }

    fn report(&mut self) -> Result<(), WorkerError> {
        let mut failed = Vec::new();
        for (partition, seat) in &mut self.seats {
            let Some(task) = &mut seat.task else {
                continue;
            };
            match holdings(task, &self.kinds, self.now) {
                Ok(holdings) => self.observer.holdings(*partition, &holdings),
                Err(error) => failed.push((*partition, error)),
            }
        }
        for (partition, error) in failed {
            self.close(partition, &error)?;
        }
        Ok(())
    }

    /// Makes the store durable that has waited longest: in turn, one at a time.
    fn flush_one(&mut self) -> Result<(), WorkerError> {
        let partitions: Vec<Partition> = self.seats.keys().copied().collect();
        let Some(partition) = partitions.get(self.flush_turn % partitions.len().max(1)).copied() else {
            return Ok(());
        };
        self.flush_turn = self.flush_turn.wrapping_add(1);
        let Some(task) = self.seats.get_mut(&partition).and_then(|seat| seat.task.as_mut()) else {
            return Ok(());
        };
        if is_on(Bug::FlushMakesYoung) {
            task.prove_owned(self.now);
        }
        self.observer.entered("flush", FLUSH_BOUND);
        let flushed = task.flush();
        self.observer.left();
        match flushed {
            Ok(()) => Ok(()),
            Err(error) => self.close(partition, &error),
        }
    }
}

fn holdings<S: crate::store::Store>(
    task: &mut Task<S>,
    kinds: &[KindNumber],
    now: Timestamp,
) -> Result<Holdings, StoreError> {
    let overlay = task.overlay();
    let (pending, paused, remembered) =
        (overlay.pending().clone(), overlay.paused().clone(), overlay.remembered_count());
    let mut holdings = Holdings { pending, paused, remembered, ..Holdings::default() };
    for kind in kinds {
        let overdue = task.overlay().overdue(*kind, now, OVERDUE_ROWS_MAX)?;
        if overdue > 0 {
            holdings.overdue.insert(*kind, u64::try_from(overdue).unwrap_or(u64::MAX));
            let oldest = task.overlay().next_wake(*kind)?;
            holdings.oldest_overdue =
                holdings.oldest_overdue.max(oldest.map_or(Duration::ZERO, |wake| now.since(wake)));
        }
    }
    Ok(holdings)
}
