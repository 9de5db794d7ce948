//! One partition: its state and its life.
//!
//! ```text
//!             barrier committed             nonce read                 target reached
//!   Joining ──────────────────▶ Restoring ─────────────▶ CatchingUp ◀─────────────────▶ Running
//!      ▲                             │               what reached it was aborted          │
//!      │                             └── outcome unknown, store failed, reload ◀──────────┘
//!      └─────────────────────────────────────────┘
//! ```
//!
//! A partition of the command topic that the changelog does not have (partitions were added) is only forwarded: no identity
//! belongs to it, so it has no state, and its position is the group's.
//!
//! Owns the overlay with the changes of the open transaction, the records that go out with it, the position and the
//! generation counter. Never calls the log: the worker carries records in and transactions out.
//! Keeps: nothing fires before the state is restored and the commands that stood on the partition at its assignment are
//! applied (INV-GATE-1); positions and generations never fall (INV-POS-1, INV-GEN-1); an abort leaves no trace.

pub mod absorb;
pub mod emit;
pub mod mend;
pub mod restore;
pub mod rules;
pub mod settle;
pub mod tally;

mod watch;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::log::{Emission, TopicIds};
use crate::planted::{Bug, is_on};
use crate::position::{Partition, Position};
use crate::store::overlay::Overlay;
use crate::store::{Store, StoreError};
use crate::time::Timestamp;
use crate::timer::fire::Looks;
use crate::timer::kind::KindNumber;
use crate::timer::model::Generation;
use crate::timer::outcome::Mutation;
use restore::Restore;
use settle::InFlight;
use tally::Tally;
use watch::Watch;

/// Where a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its barrier is not committed yet.
    Joining,
    /// It reads the changelog up to its barrier.
    Restoring(Restore),
    /// It applies the commands that were there when it was assigned, up to this position.
    CatchingUp {
        /// The end of the partition as it was at the assignment.
        target: Position,
    },
    /// It applies and fires.
    Running,
    /// It forwards every command to the partition where it belongs; it has no state and no changelog.
    Forwarding,
}

/// One partition's state and life.
#[derive(Debug)]
pub struct Task<S> {
    partition: Partition,
    overlay: Overlay<S>,
    phase: Phase,
    /// The target that was reached by commands of the open transaction: an abort closes the gate again.
    unsettled_target: Option<Position>,
    /// What the open transaction has reached.
    open: Reached,
    /// What the last committed transaction reached.
    committed: Reached,
    /// A valid position for the fence while the own one is not known yet.
    fencing_position: Position,
    /// Until when it is proved that nobody else has written the changelog; `None` before the first barrier.
    owned_at: Option<Timestamp>,
    /// The ids of the topics that the store is built from.
    topic_ids: Option<TopicIds>,
    /// Records that go out with the open transaction, in order; those of the changelog are added when it settles.
    emissions: Vec<Emission>,
    tally: Tally,
    /// Who else writes the changelog.
    watch: Watch,
    /// Keys of the changelog that somebody else wrote, and that are to be written anew.
    overwritten: BTreeSet<Bytes>,
    /// The batch that follows the transaction in flight.
    in_flight: Option<InFlight>,
    /// Per kind, when it needs to be looked at next; a kind that does not stand here has to be looked up.
    wakes: BTreeMap<KindNumber, Option<Timestamp>>,
    /// Where the looks ahead of kinds with much due go on.
    looks: Looks,
}

/// How far a transaction has come.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reached {
    /// The next command to read; not known before the restore.
    position: Option<Position>,
    /// The next generation to give.
    generation: Generation,
    /// Per partition that only forwards, the position behind its last command that came here.
    forwarders: BTreeMap<Partition, Position>,
}

impl<S: Store> Task<S> {
    /// Returns a task that is about to join, on top of its local store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn new(partition: Partition, store: S, fencing_position: Position) -> Result<Self, StoreError> {
        let header = store.header();
        let generation = Generation(header.next_generation.0.max(1));
        let start = Reached { position: None, generation, forwarders: header.forwarders.clone() };
        Ok(Self {
            partition,
            overlay: Overlay::new(store)?,
            phase: Phase::Joining,
            unsettled_target: None,
            open: start.clone(),
            committed: start,
            fencing_position,
            owned_at: None,
            topic_ids: None,
            emissions: Vec::new(),
            tally: Tally::default(),
            watch: Watch::default(),
            overwritten: BTreeSet::new(),
            in_flight: None,
            wakes: BTreeMap::new(),
            looks: Looks::new(),
        })
    }

    /// Returns the partition.
    pub fn partition(&self) -> Partition {
        self.partition
    }

    /// Returns where the task stands.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Returns whether the task takes commands.
    pub fn takes_commands(&self) -> bool {
        matches!(self.phase, Phase::CatchingUp { .. } | Phase::Running | Phase::Forwarding)
    }

    /// Returns whether the task has a changelog; one that only forwards has none.
    pub fn has_changelog(&self) -> bool {
        self.phase != Phase::Forwarding
    }

    /// Begins to forward, from the group's position: no changelog holds one.
    ///
    /// # Panics
    /// When the task is not joining.
    pub fn begin_forwarding(&mut self, position: Position) {
        assert!(self.phase == Phase::Joining, "forwarding begins when a task joins");
        self.phase = Phase::Forwarding;
        self.open.position = Some(position);
        self.committed = self.open.clone();
    }

    /// Returns the position that rides in a transaction: the task's own, or a valid one while that is not known.
    pub fn position(&self) -> Position {
        self.open.position.unwrap_or(self.fencing_position)
    }

    /// Returns the committed state and the changes on top of it.
    pub fn overlay(&self) -> &Overlay<S> {
        &self.overlay
    }

    /// Returns whether there is something to commit.
    pub fn is_dirty(&self) -> bool {
        self.open != self.committed
            || !self.emissions.is_empty()
            || !self.overlay.is_empty()
            || !self.overwritten.is_empty()
    }

    /// Returns how many records the open transaction has so far, those of the changelog not counted.
    pub fn emissions_waiting(&self) -> usize {
        self.emissions.len()
    }

    /// Returns about how many bytes the open transaction has so far.
    pub fn bytes_waiting(&self) -> usize {
        self.overlay.changed_bytes() + self.emissions.iter().map(Emission::bytes).sum::<usize>()
    }

    /// Starts to fire if the commands that stood there at the assignment are applied; `reading_position` is how far the
    /// log has read, which steps over transaction markers where the last command's position does not.
    pub fn open_gate(&mut self, reading_position: Option<Position>) -> bool {
        let Phase::CatchingUp { target } = self.phase else {
            return false;
        };
        let reached = reading_position.max(self.open.position);
        if reached.is_some_and(|position| position >= target) {
            self.phase = Phase::Running;
            self.unsettled_target = Some(target);
            return true;
        }
        false
    }

    /// Returns the earliest instant at which one of `kinds`, a run, or a remembered id needs to be looked at.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn next_wake(&mut self, kinds: &[KindNumber]) -> Result<Option<Timestamp>, StoreError> {
        let mut earliest = earlier(self.overlay.next_agenda()?, self.overlay.next_end());
        for kind in kinds {
            earliest = earlier(earliest, self.wake_of(*kind)?);
        }
        Ok(earliest)
    }

    /// Returns when the kind needs to be looked at, if it has a timer.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn wake_of(&mut self, kind: KindNumber) -> Result<Option<Timestamp>, StoreError> {
        if let Some(wake) = self.wakes.get(&kind) {
            return Ok(*wake);
        }
        let wake = self.overlay.next_wake(kind)?;
        self.wakes.insert(kind, wake);
        Ok(wake)
    }

    fn fold(&mut self, mutation: Mutation) {
        match &mutation {
            Mutation::Put { timer, previous } => {
                // A cached wake only ever moves earlier here; one that may have moved later is looked up again.
                if let Some(wake) = self.wakes.get_mut(&timer.kind)
                    && !is_on(Bug::WakeForgetsEarlierArm)
                {
                    let place = timer.due_key();
                    *wake = earlier(*wake, Some(place.wake).filter(|_| !place.is_parked()));
                }
                if let Some(previous) = previous {
                    self.forget_wake(previous.kind, previous.at.wake);
                }
            }
            Mutation::Remove { previous, .. } => self.forget_wake(previous.kind, previous.at.wake),
            Mutation::Run { .. } | Mutation::Remember { .. } | Mutation::Advance { .. } => {}
        }
        self.overlay.fold(mutation);
    }

    fn forget_wake(&mut self, kind: KindNumber, wake: Timestamp) {
        if self.wakes.get(&kind).is_some_and(|cached| cached.is_none_or(|cached| wake <= cached)) {
            self.wakes.remove(&kind);
        }
    }
}

fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
