//! Takes partitions over and gives them back.
//!
//! A partition's task joins by committing a barrier, restores up to it, and takes commands from the position that the
//! changelog holds. Owns the seats. Keeps: a revoked partition is settled before it is given back, a lost one is dropped
//! without a commit (INV-OWNER-1); a store that cannot be trusted is discarded and restored, never repaired.

use std::time::Duration;

use super::housekeeping::FLUSH_BOUND;
use super::observer::{Observer, TaskState, TransactionEnd};
use super::settle::COMMIT_BOUND;
use super::{Seat, Worker, WorkerError};
use crate::log::places::Places;
use crate::log::{CommitOutcome, Log, LogError, Transaction};
use crate::planted::{Bug, is_on};
use crate::position::{Partition, Position};
use crate::store::{Store, StoreError, Stores};
use crate::task::restore::{InputAtJoin, RestoreStart};
use crate::task::tally::Tally;
use crate::task::{Phase, Task};
use crate::time::Clock;

/// Longest a broker call of a take-over may take before it counts as hung.
const CALL_BOUND: Duration = Duration::from_secs(30);
/// Longest that take-overs may hold up one tick; the others follow with the next ones.
const JOIN_SLICE: Duration = Duration::from_millis(250);
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(10);

/// A task that is ready for its barrier.
struct Joining {
    partition: Partition,
    nonce: u64,
    input: InputAtJoin,
    start: RestoreStart,
}

impl<L: Log, T: Stores, C: Clock, O: Observer> Worker<L, T, C, O> {
    pub(super) fn assigned(&mut self, partitions: &[Partition]) -> Result<(), WorkerError> {
        if !partitions.is_empty() {
            tracing::info!(?partitions, "assigned");
        }
        self.log.accept(partitions)?;
        for partition in partitions {
            self.seats.insert(*partition, Seat::vacant());
            self.observer.task(*partition, TaskState::Restoring);
        }
        self.observer.joined();
        Ok(())
    }

    pub(super) fn revoked(&mut self, partitions: &[Partition]) -> Result<(), WorkerError> {
        tracing::info!(?partitions, "revoked");
        if !self.is_rebuild_due {
            self.settle()?;
        }
        if !is_on(Bug::RevokedTaskKept) {
            self.vacate(partitions);
        }
        self.log.release(partitions)?;
        self.observer.joined();
        Ok(())
    }

    pub(super) fn lost(&mut self, partitions: &[Partition]) -> Result<(), WorkerError> {
        tracing::warn!(?partitions, "lost: another member may own these partitions already");
        self.vacate(partitions);
        self.log.release(partitions)?;
        Ok(())
    }

    /// Ends the tasks of these partitions. Their stores stay as a warm copy: what is committed is made durable.
    pub(super) fn vacate(&mut self, partitions: &[Partition]) {
        for partition in partitions {
            let Some(seat) = self.seats.remove(partition) else {
                continue;
            };
            if let Some(mut task) = seat.task {
                task.dropped();
                if is_on(Bug::FlushMakesYoung) {
                    task.prove_owned(self.now);
                }
                self.observer.entered("flush", FLUSH_BOUND);
                let flushed = task.flush();
                self.observer.left();
                if let Err(error) = flushed {
                    tracing::warn!(%partition, %error, "warm copy not durable, it will be restored");
                }
            }
            self.observer.task_gone(*partition);
        }
    }

    /// Ends a task whose store failed; the partition is tried again, from the changelog.
    pub(super) fn close(&mut self, partition: Partition, error: &StoreError) -> Result<(), WorkerError> {
        match error {
            StoreError::Corrupt { .. } | StoreError::UnsupportedFormat { .. } => {
                tracing::error!(%partition, %error, "store discarded, restoring it from the changelog");
                if let Some(seat) = self.seats.get_mut(&partition) {
                    seat.task = None;
                }
                self.stores.discard(partition)?;
            }
            // The whole state directory is ours: a store in it that is locked is still open in another worker, which has
            // lost the partition and will notice.
            StoreError::Locked { .. } | StoreError::Full { .. } | StoreError::Io { .. } => {
                tracing::error!(%partition, %error, "task closed, trying again");
            }
        }
        self.log.stop_restore(partition)?;
        let boot = self.clock.boot();
        if let Some(seat) = self.seats.get_mut(&partition) {
            seat.task = None;
            back_off(seat, boot);
            self.observer.task(partition, TaskState::Closed);
        }
        Ok(())
    }

    /// Restores once more before the process is stopped by name. Who has lost the partition meanwhile compares what is no
    /// longer true; its next barrier tells it so.
    pub(super) fn contradicted(&mut self, partition: Partition, detail: &'static str) -> Result<(), WorkerError> {
        self.log.stop_restore(partition)?;
        let Some(seat) = self.seats.get_mut(&partition) else {
            return Ok(());
        };
        if seat.has_contradicted {
            return Err(WorkerError::Contradiction { partition, detail });
        }
        tracing::warn!(%partition, detail, "topics contradict each other, looking once more");
        seat.has_contradicted = true;
        if let Some(task) = &mut seat.task {
            task.reload();
        }
        Ok(())
    }

    pub(super) fn out_of_range(&mut self, partition: Partition) -> Result<(), WorkerError> {
        // What was taken cannot be read again.
        if !self.is_rebuild_due {
            self.settle()?;
        }
        // The join looks at the extent of the partition again and reports what was lost.
        if let Some(task) = self.seats.get_mut(&partition).and_then(|seat| seat.task.as_mut()) {
            tracing::warn!(%partition, "commands are out of range, joining again");
            task.reload();
        }
        Ok(())
    }

    pub(super) fn rebuild_if_due(&mut self) -> Result<(), WorkerError> {
        if !self.is_rebuild_due || self.stalled_until > self.clock.boot() {
            return Ok(());
        }
        self.observer.entered("rebuild producers", COMMIT_BOUND);
        let rebuilt = self.log.rebuild();
        self.observer.left();
        match rebuilt {
            Ok(()) => {
                self.is_rebuild_due = false;
                self.failures = 0;
                Ok(())
            }
            Err(LogError::Retriable { doing, detail }) => {
                self.stall(&format!("{doing}: {detail}"), "producers not ready yet");
                Ok(())
            }
            Err(error @ LogError::Fatal { .. }) => Err(error.into()),
        }
    }

    /// Takes every seat one step further that is not restoring yet: opens its store, commits its barrier.
    pub(super) fn join(&mut self) -> Result<(), WorkerError> {
        let boot = self.clock.boot();
        if self.is_rebuild_due || self.stalled_until > boot {
            return Ok(());
        }
        let due: Vec<Partition> = self
            .seats
            .iter()
            .filter(|(_, seat)| seat.task.as_ref().is_none_or(|task| *task.phase() == Phase::Joining))
            .filter(|(_, seat)| seat.retry_at <= boot)
            .map(|(partition, _)| *partition)
            .collect();
        let mut joining = Vec::new();
        for partition in due {
            self.observer.entered("take over a partition", CALL_BOUND);
            let prepared = if partition.0 < self.settings.rules.partitions {
                self.prepare_join(partition).map(Some)
            } else {
                self.join_forwarding(partition).map(|()| None)
            };
            self.observer.left();
            match prepared {
                Ok(ready) => joining.extend(ready),
                Err(WorkerError::Log(LogError::Retriable { doing, detail })) => {
                    tracing::warn!(%partition, doing, detail, "cannot take the partition over yet");
                    if let Some(seat) = self.seats.get_mut(&partition) {
                        back_off(seat, boot);
                    }
                }
                Err(WorkerError::Store(error)) => self.close(partition, &error)?,
                Err(error) => return Err(error),
            }
            if self.clock.boot().saturating_sub(boot) >= JOIN_SLICE {
                break;
            }
        }
        if !joining.is_empty() {
            self.commit_barriers(joining)?;
        }
        Ok(())
    }

    /// Takes a partition over that the command topic has and the changelog has not. The group's position is the truth here:
    /// what is read is forwarded in the transaction that moves it.
    fn join_forwarding(&mut self, partition: Partition) -> Result<(), WorkerError> {
        if let Some(seat) = self.seats.get_mut(&partition) {
            // Its store is still open; it holds nothing.
            seat.task = None;
        }
        let fencing = self.log.fencing_position(partition)?;
        let extent = self.log.input_extent(partition)?;
        if fencing.position > extent.end {
            let detail = "the command topic ends before the position of the group: it was recreated or truncated";
            return Err(WorkerError::Contradiction { partition, detail });
        }
        let position = fencing.position.max(extent.start);
        let lost = position.0.abs_diff(fencing.position.0);
        if lost > 0 {
            tracing::error!(%partition, lost, %position, "commands were removed from the topic before they were read");
            self.observer.input_lost(partition, lost);
        }
        let store = self.open_store(partition)?;
        let mut task = Task::new(partition, store, position)?;
        task.begin_forwarding(position);
        tracing::warn!(
            %partition,
            %position,
            "forwarding only: the command topic has more partitions than the changelog"
        );
        let seat = self.seats.entry(partition).or_insert_with(Seat::vacant);
        seat.failures = 0;
        seat.task = Some(task);
        seat.is_rewind_due = true;
        self.observer.task(partition, TaskState::Running);
        Ok(())
    }

    fn prepare_join(&mut self, partition: Partition) -> Result<Joining, WorkerError> {
        let fencing = self.log.fencing_position(partition)?;
        let input = InputAtJoin { fencing, extent: self.log.input_extent(partition)? };
        let changelog = self.log.changelog_extent(partition)?;
        let topic_ids = self.log.topic_ids()?;
        let vacant = self.seats.get(&partition).is_none_or(|seat| seat.task.is_none());
        if vacant {
            let store = self.open_store(partition)?;
            let task = Task::new(partition, store, fencing.position)?;
            self.seats.entry(partition).or_insert_with(Seat::vacant).task = Some(task);
        }
        let task = self
            .seats
            .get_mut(&partition)
            .and_then(|seat| seat.task.as_mut())
            .expect("the task was there or has just been made");
        if let Some(detail) = task.identify(topic_ids) {
            return Err(WorkerError::Contradiction { partition, detail });
        }
        let Some(from) = task.restore_from(changelog) else {
            let detail = "the changelog ends before the position of the local store: it was recreated or truncated";
            return Err(WorkerError::Contradiction { partition, detail });
        };
        let nonce = self.nonces.u64(1..);
        Ok(Joining { partition, nonce, input, start: RestoreStart { nonce, until: from, from, input } })
    }

    fn open_store(&mut self, partition: Partition) -> Result<T::Store, StoreError> {
        let store = match self.stores.open(partition) {
            Ok(store) => store,
            Err(error @ (StoreError::Corrupt { .. } | StoreError::UnsupportedFormat { .. })) => {
                tracing::error!(%partition, %error, "store discarded, restoring it from the changelog");
                self.stores.discard(partition)?;
                return self.stores.open(partition);
            }
            Err(error) => return Err(error),
        };
        let header = store.header();
        let age = header.level_at.map(|level_at| self.now.since(level_at));
        let reason = if header.partition.is_some_and(|of| of != partition) {
            "it belongs to another partition"
        } else if age.is_some_and(|age| age > self.settings.store_age_max) && !is_on(Bug::AgeCheckLeftOut) {
            "it is so old that tombstones may be gone from the changelog"
        } else if header.undecodable > 0 {
            "records of the changelog could not be decoded when it was built"
        } else {
            return Ok(store);
        };
        tracing::warn!(%partition, reason, "store discarded, restoring it from the changelog");
        drop(store);
        self.stores.discard(partition)?;
        self.stores.open(partition)
    }

    fn commit_barriers(&mut self, joining: Vec<Joining>) -> Result<(), WorkerError> {
        let mut transaction = Transaction::default();
        for ready in &joining {
            let seat = self.seats.get(&ready.partition);
            if let Some(task) = seat.and_then(|seat| seat.task.as_ref()) {
                transaction.emissions.push(task.barrier(ready.nonce, &self.settings.rules.owner));
                let position = ready.input.fencing.position;
                let position = if is_on(Bug::InvalidPositionAtFirst) { Position(-1001) } else { position };
                transaction.positions.insert(ready.partition, position);
            }
        }
        let (outcome, took) = self.commit("commit barriers", &transaction);
        match outcome {
            CommitOutcome::Committed(committed) => {
                self.failures = 0;
                self.observer.transaction(TransactionEnd::Committed, took, &Tally::default());
                self.confirm_clock(&committed, took);
                for ready in joining {
                    self.begin_restore(&ready, committed.changelog.get(&ready.partition).and_then(Places::end))?;
                }
            }
            CommitOutcome::Aborted(aborted) => {
                self.observer.transaction(TransactionEnd::Aborted, took, &Tally::default());
                let detail = format!("{} {:?}", aborted.detail, aborted.refused);
                self.stall(&detail, "barrier aborted, doing it again");
            }
            CommitOutcome::Unknown { detail } => {
                self.observer.transaction(TransactionEnd::Unknown, took, &Tally::default());
                self.is_rebuild_due = true;
                self.stall(&detail, "outcome of a barrier is not known, doing it again");
            }
        }
        Ok(())
    }

    fn begin_restore(&mut self, ready: &Joining, until: Option<Position>) -> Result<(), WorkerError> {
        let boot = self.clock.boot();
        let partition = ready.partition;
        let Some(seat) = self.seats.get_mut(&partition) else {
            return Ok(());
        };
        let Some(until) = until else {
            // A broker may accept a record sent twice without telling its place again.
            tracing::warn!(%partition, "the place of the barrier is not known, writing another");
            back_off(seat, boot);
            return Ok(());
        };
        let start = RestoreStart { until, ..ready.start };
        // A partition that was closed counts as closed until its restore has succeeded.
        let was_closed = seat.failures > 0;
        if let Some(task) = &mut seat.task {
            task.begin_restore(start, self.now, boot);
            tracing::info!(%partition, from = %start.from, until = %start.until, "restoring");
            self.log.restore(partition, start.from)?;
            if !was_closed {
                self.observer.task(partition, TaskState::Restoring);
            }
        }
        Ok(())
    }
}

fn back_off<S>(seat: &mut Seat<S>, boot: Duration) {
    let wait = (RETRY_FIRST * 2_u32.pow(seat.failures.min(7))).min(RETRY_MAX);
    seat.failures = seat.failures.saturating_add(1);
    seat.retry_at = boot + wait;
}
