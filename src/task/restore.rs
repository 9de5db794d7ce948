//! Rebuilds a partition's state from its changelog.
//!
//! Owns [`Restore`] and the way from changelog records to mutations. Never reads the log itself: batches are handed in, so
//! that the worker's other partitions keep firing in between.
//! Keeps: the state is complete when the task's own barrier has been read (INV-RESTORE-1), because the barrier was written
//! after the fence of the previous owner, and reading it proves that everything before it was read.

use std::time::Duration;

use super::watch::Watch;
use super::{Phase, Reached, Task, emit};
use crate::log::places::Places;
use crate::log::{ChangelogBatch, ChangelogRecord, Emission, Extent, FencingPosition, TopicIds};
use crate::planted::{Bug, is_on};
use crate::position::Position;
use crate::store::{Store, StoreError};
use crate::time::Timestamp;
use crate::timer::identity::TimerKey;
use crate::timer::model::{Generation, Located, RunState};
use crate::timer::outcome::Mutation;
use crate::timer::view::Lookup;
use crate::wire;
use crate::wire::key::StateKey;
use crate::wire::state::{Barrier, Meta};

/// A restore under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    /// The nonce of the task's own barrier.
    nonce: u64,
    /// The position behind the barrier.
    until: Position,
    /// Where the restore began.
    from: Position,
    /// How far it has come.
    reached: Position,
    /// When its barrier was committed, at the earliest: until then nobody else has written, and all of that is read.
    began: Timestamp,
    /// The boot-clock time of the last progress.
    progressed_at: Duration,
    /// The boot-clock time of the last barrier.
    marked_at: Duration,
    /// The position that the changelog holds for the commands, as far as it was read.
    meta_position: Option<Position>,
    /// Whether the last record of that position could not be read.
    is_meta_unreadable: bool,
    /// What the group and the command topic said at the assignment.
    input: InputAtJoin,
    /// How many records could not be decoded; they stay in the changelog.
    undecodable: u64,
}

/// What was known of a partition's commands when it was assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputAtJoin {
    /// The group's position.
    pub fencing: FencingPosition,
    /// The extent of the partition, records of open transactions included.
    pub extent: Extent,
}

/// Where a restore begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreStart {
    /// The nonce of the barrier that was committed.
    pub nonce: u64,
    /// The position behind the barrier.
    pub until: Position,
    /// Where reading begins.
    pub from: Position,
    /// What was known of the commands.
    pub input: InputAtJoin,
}

/// How a restore ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// There is more to read.
    NotYet,
    /// Commands are to be read from here; so many were removed from the topic before they were read.
    From {
        /// The position.
        position: Position,
        /// The number of lost commands.
        lost: u64,
    },
    /// The topics contradict each other; going on would fire twice or lose timers.
    Contradiction(&'static str),
}

impl Restore {
    /// Returns how many offsets were read, and how many there are.
    pub fn progress(&self) -> (u64, u64) {
        let span = |to: Position| to.0.saturating_sub(self.from.0).max(0).unsigned_abs();
        (span(self.reached), span(self.until))
    }

    /// Returns whether nothing was read for so long.
    pub fn is_stalled(&self, boot: Duration, timeout: Duration) -> bool {
        boot.saturating_sub(self.progressed_at) > timeout
    }

    /// Returns whether nothing was read, and no barrier was written, for so long.
    pub fn is_silent(&self, boot: Duration, patience: Duration) -> bool {
        boot.saturating_sub(self.progressed_at.max(self.marked_at)) > patience
    }
}

impl<S: Store> Task<S> {
    /// Returns the record that marks this ownership in the changelog.
    pub fn barrier(&self, nonce: u64, owner: &str) -> Emission {
        emit::barrier(self.partition, nonce, owner)
    }

    /// Returns the barrier once more, and the position that fences it, if a restore is under way and has read nothing for as long
    /// as `patience`.
    pub fn barrier_again(&self, owner: &str, boot: Duration, patience: Duration) -> Option<(Emission, Position)> {
        let Phase::Restoring(restore) = &self.phase else { return None };
        restore.is_silent(boot, patience).then(|| (self.barrier(restore.nonce, owner), restore.input.fencing.position))
    }

    /// Enters that [`Task::barrier_again`] was written; `places` is where, if that is known.
    pub fn marked_again(&mut self, places: Option<&Places>, boot: Duration) {
        if let Phase::Restoring(restore) = &mut self.phase {
            restore.marked_at = boot;
            self.watch.committed(places, 1);
        }
    }

    /// Returns where the changelog has to be read from, given what is there of it; `None` if the store is ahead of it.
    pub fn restore_from(&self, changelog: Extent) -> Option<Position> {
        match self.overlay.store().header().changelog_position {
            Some(position) if position > changelog.end => None,
            Some(position) if is_on(Bug::RestoreBeginsLate) => Some(Position(position.0 + 1).min(changelog.end)),
            Some(position) => Some(position.max(changelog.start)),
            None => Some(changelog.start),
        }
    }

    /// Notes the ids of the topics, which are stored with the next batch. Returns what is wrong if the store was built from
    /// other topics: going on would fire from a changelog, or read commands from a place, that is not the store's.
    pub fn identify(&mut self, topic_ids: TopicIds) -> Option<&'static str> {
        self.topic_ids = Some(topic_ids);
        let header = self.overlay.store().header();
        if header.changelog_topic_id.is_some_and(|id| id != topic_ids.changelog) {
            return Some("the changelog topic was deleted and created anew since the local store was built from it");
        }
        if header.arm_topic_id.is_some_and(|id| id != topic_ids.arm) {
            return Some("the command topic was deleted and created anew since the local store was built");
        }
        None
    }

    /// Returns whether the changelog would go back at this position: it was created anew under our feet.
    pub fn would_regress(&self, places: Option<&Places>) -> bool {
        let before = self.overlay.store().header().changelog_position;
        places.and_then(Places::end).is_some_and(|position| before.is_some_and(|before| position <= before))
    }

    /// Begins to restore, once the barrier has committed, in a transaction that began at `now`.
    ///
    /// # Panics
    /// When the task is not joining.
    pub fn begin_restore(&mut self, start: RestoreStart, now: Timestamp, boot: Duration) {
        assert!(self.phase == Phase::Joining, "a restore begins when a task joins");
        self.watch = Watch::starting(start.until);
        self.owned_at = Some(now);
        self.phase = Phase::Restoring(Restore {
            nonce: start.nonce,
            until: start.until,
            from: start.from,
            reached: start.from,
            began: now,
            progressed_at: boot,
            marked_at: boot,
            meta_position: self.overlay.store().header().input_position,
            is_meta_unreadable: false,
            input: start.input,
            undecodable: self.overlay.store().header().undecodable,
        });
    }

    /// Takes a batch of the changelog. Returns whether the restore has ended.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    ///
    /// # Panics
    /// When the batch ends before its own records.
    pub fn restore(&mut self, batch: &ChangelogBatch, boot: Duration) -> Result<Restored, StoreError> {
        let Phase::Restoring(mut restore) = self.phase.clone() else {
            // A batch that was on its way when the restore ended.
            return Ok(Restored::NotYet);
        };
        let mut is_complete = batch.position >= restore.until || is_on(Bug::RestoreEndsEarly);
        for record in &batch.records {
            assert!(record.offset.next() <= batch.position, "a batch ends behind its records");
            if record.offset.next() <= restore.reached {
                continue;
            }
            if restore.until < record.offset.next() {
                // Behind the own barrier somebody else writes: the partition was lost, which is not known here yet.
                break;
            }
            is_complete |= self.restore_record(record, &mut restore)?;
        }
        let position = batch.position.min(restore.until);
        if position > restore.reached {
            restore.reached = position;
            restore.progressed_at = boot;
        }
        let mut changes = self.overlay.batch();
        changes.header.partition = Some(self.partition);
        changes.header.changelog_topic_id = self.topic_ids.map(|ids| ids.changelog);
        changes.header.arm_topic_id = self.topic_ids.map(|ids| ids.arm);
        changes.header.changelog_position = Some(restore.reached);
        changes.header.input_position = restore.meta_position;
        changes.header.next_generation = self.open.generation;
        changes.header.forwarders = self.open.forwarders.clone();
        changes.header.undecodable = restore.undecodable;
        // What is not read yet may be gone when the store is opened again: an unfinished restore makes no store younger.
        let level_at = changes.header.level_at.filter(|_| !is_complete).unwrap_or(restore.began);
        changes.header.level_at = Some(level_at);
        self.overlay.commit(changes)?;
        self.wakes.clear();
        if !is_complete {
            self.phase = Phase::Restoring(restore);
            return Ok(Restored::NotYet);
        }
        Ok(self.finish(&restore))
    }

    fn finish(&mut self, restore: &Restore) -> Restored {
        if restore.is_meta_unreadable {
            return Restored::Contradiction(
                "the position in the changelog cannot be read: a newer release wrote it, which is to be run again, or it was removed",
            );
        }
        let InputAtJoin { fencing, extent } = restore.input;
        let (position, lost) = match restore.meta_position {
            Some(position) if position > extent.end => {
                return Restored::Contradiction(
                    "the command topic ends before the position that the changelog holds: it was recreated or truncated",
                );
            }
            Some(position) if position < extent.start => (extent.start, extent.start.0.abs_diff(position.0)),
            Some(_) if is_on(Bug::PositionFromGroup) => (fencing.position.max(extent.start), 0),
            Some(position) if is_on(Bug::RestoredPositionShort) => (Position(position.0 - 1).max(extent.start), 0),
            Some(position) if is_on(Bug::RestoredPositionBeyond) => (Position(position.0 + 1).min(extent.end), 0),
            Some(position) => (position, 0),
            None if fencing.committed && fencing.position > extent.start => {
                return Restored::Contradiction(
                    "the changelog holds no position although the group has committed one: the changelog was recreated",
                );
            }
            None => (extent.start, 0),
        };
        // What the changelog holds is what was committed; a new position is written with the next transaction.
        self.open.position = Some(position);
        self.committed = Reached { position: restore.meta_position, ..self.open.clone() };
        let target = if is_on(Bug::GateOpenAtOnce) { position } else { extent.end };
        let target = Position(target.0 - i64::from(is_on(Bug::GateOneShort)));
        self.phase = Phase::CatchingUp { target };
        Restored::From { position, lost }
    }

    fn remove_replaced(&mut self, key: TimerKey, previous: Option<Located>) {
        if let Some(previous) = previous {
            self.fold(Mutation::Remove { key, previous });
        }
    }

    fn restore_remembered(
        &mut self,
        key: TimerKey,
        value: Option<&[u8]>,
        restore: &mut Restore,
    ) -> Result<(), StoreError> {
        let previous = self.overlay.remembered(&key)?;
        // What cannot be read replaces what was there: it waits for a release that reads it.
        let state = value.and_then(|value| wire::remembered::decode_remembered(value).ok());
        restore.undecodable += u64::from(value.is_some() && state.is_none());
        if (previous.is_some() || state.is_some()) && !is_on(Bug::RememberedNotRestored) {
            self.fold(Mutation::Remember { key, previous, state });
        }
        Ok(())
    }

    /// Folds one record. Returns whether it is the task's own barrier.
    fn restore_record(&mut self, record: &ChangelogRecord, restore: &mut Restore) -> Result<bool, StoreError> {
        let Ok(key) = StateKey::decode(&record.key) else {
            // A tombstone leaves nothing that could be missing.
            restore.undecodable += u64::from(record.value.is_some());
            return Ok(false);
        };
        match key {
            StateKey::Timer(key) => {
                let previous = self.overlay.locate(&key)?;
                match record.value.as_deref().map(wire::state::decode_timer) {
                    Some(Ok(mut timer)) if timer.key == key && !self.overlay.has_other_at(timer.located(), &key) => {
                        self.open.generation = self.open.generation.max(Generation(timer.generation.0 + 1));
                        timer.paused = timer.paused.filter(|_| !is_on(Bug::PauseNotRestored));
                        self.fold(Mutation::Put { timer: Box::new(timer), previous });
                    }
                    Some(Ok(_) | Err(_)) => {
                        // What it replaces is out of date and must not fire; itself it waits for a release that reads it.
                        restore.undecodable += 1;
                        self.remove_replaced(key, previous);
                    }
                    None if is_on(Bug::TimerTombstoneNotRestored) => {}
                    None => self.remove_replaced(key, previous),
                }
            }
            StateKey::Run(run) => {
                let previous = self.overlay.run(&run)?;
                match record.value.as_deref().map(wire::state::decode_run) {
                    Some(Ok(mut state)) => {
                        if is_on(Bug::SealNotRestored) {
                            state.seal = None;
                        }
                        self.fold(Mutation::Run { run, previous, state });
                    }
                    Some(Err(_)) => restore.undecodable += 1,
                    None if is_on(Bug::RunTombstoneNotRestored) => {}
                    None => self.fold(Mutation::Run { run, previous, state: RunState::default() }),
                }
            }
            StateKey::Remembered(id) => self.restore_remembered(id, record.value.as_deref(), restore)?,
            StateKey::Meta => {
                let meta = record.value.as_deref().and_then(|value| Meta::decode(value).ok());
                restore.is_meta_unreadable = meta.is_none();
                if let Some(meta) = meta {
                    restore.meta_position = Some(meta.input_position);
                    if !is_on(Bug::GenerationNotRestored) {
                        self.open.generation = self.open.generation.max(meta.next_generation);
                    }
                    if !is_on(Bug::ForwardersNotRestored) {
                        self.open.forwarders = meta.forwarders;
                    }
                } else {
                    restore.undecodable += 1;
                }
            }
            StateKey::Barrier => match record.value.as_deref().map(Barrier::decode) {
                Some(Ok(barrier)) => return Ok(barrier.nonce == restore.nonce || is_on(Bug::AnyBarrierEndsRestore)),
                Some(Err(_)) | None => restore.undecodable += 1,
            },
        }
        Ok(false)
    }
}

#[cfg(test)]
#[path = "restore_test.rs"]
mod tests;
