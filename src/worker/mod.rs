//! The loop that drives the tasks of one thread.
//!
//! One consumer, its transactional producers, many tasks. A tick is: wait for events, take commands, fire what is due,
//! maybe commit. Everything happens on this thread's own stack: no locks, no futures, no callbacks.
//!
//! ```text
//!   poll ─▶ group events ─▶ changelog ─▶ commands ─▶ join ─▶ gates ─▶ fire ─▶ settle ─▶ housekeeping ─▶ poll …
//! ```
//!
//! Owns the assignment and the transaction. Keeps: a tick that fired commits at once, arms alone wait up to the linger;
//! revoked partitions are settled before they are given back, lost ones are dropped (INV-OWNER-1).

mod assign;
#[cfg(test)]
mod fake_log;
mod hold;
mod housekeeping;
mod settle;
mod tick;

pub mod observer;
pub mod settings;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::log::{Log, LogError, TopicIds};
use crate::position::Partition;
use crate::store::{StoreError, Stores};
use crate::task::Task;
use crate::time::guard::ClockGuard;
use crate::time::{Clock, Timestamp};
use crate::timer::kind::KindNumber;
use hold::Holds;
use observer::Observer;
use settings::Settings;

/// Why a worker ended.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The log ended it.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A store ended it: it is damaged and cannot be discarded.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The topics contradict each other; going on would fire twice or lose timers.
    #[error(
        "partition {partition}: {detail}; bring the old topics back, or begin anew: new names for the arm topic, the changelog \
         and the group, and an empty state directory"
    )]
    Contradiction {
        /// The partition.
        partition: Partition,
        /// What was found.
        detail: &'static str,
    },
    /// A restore made no progress.
    #[error(
        "partition {partition}: the restore read nothing for {seconds} s, at {done} of {total} offsets; see restore.stall_timeout"
    )]
    RestoreStalled {
        /// The partition.
        partition: Partition,
        /// How long it waited, in seconds.
        seconds: u64,
        /// Offsets read.
        done: u64,
        /// Offsets to read.
        total: u64,
    },
}

/// An assigned partition: its task, or the reason why it has none at the moment.
struct Seat<S> {
    task: Option<Task<S>>,
    /// The boot-clock time before which nothing is tried.
    retry_at: Duration,
    /// How often opening or joining has failed in a row.
    failures: u32,
    /// Whether commands were left unapplied and have to be read again from the task's position.
    is_rewind_due: bool,
    /// Whether the last restore found topics that contradict each other.
    has_contradicted: bool,
}

impl<S> Seat<S> {
    fn vacant() -> Self {
        Self { task: None, retry_at: Duration::ZERO, failures: 0, is_rewind_due: false, has_contradicted: false }
    }
}

/// The loop of one thread.
pub struct Worker<L, T: Stores, C, O> {
    settings: Settings,
    log: L,
    stores: T,
    clock: C,
    observer: O,
    /// Draws the nonces of barriers.
    nonces: fastrand::Rng,
    guard: ClockGuard,
    seats: BTreeMap<Partition, Seat<T::Store>>,
    holds: Holds,
    /// The kinds in order of their numbers.
    kinds: Vec<KindNumber>,
    /// Rises with each tick, so that kinds and tasks take turns.
    turn: usize,
    /// The boot-clock time at which the open transaction got its first change.
    dirty_since: Option<Duration>,
    /// Whether the tick has done something that is not to wait for the linger.
    is_urgent: bool,
    /// The boot-clock time before which nothing is taken or fired, after a failed transaction.
    stalled_until: Duration,
    /// How many transactions failed in a row.
    failures: u32,
    /// Whether the producers have to be made anew before the next transaction.
    is_rebuild_due: bool,
    /// The last time that could be trusted: what is due is judged by it.
    now: Timestamp,
    /// The latest time that ever could: commands are judged by it, so that a clock that steps back rejects none of them as
    /// ahead of us.
    latest: Timestamp,
    /// Whether the clock is held because of a forward step.
    is_clock_held: bool,
    /// The boot-clock time of the next probe of the broker's clock.
    probe_at: Duration,
    /// The boot-clock time of the next flush and of the next report of holdings.
    flush_at: Duration,
    report_at: Duration,
    /// The boot-clock time at which waiting partitions are next named.
    name_at: Duration,
    /// The boot-clock time of the next look at the topics, and what the last one saw.
    topics_at: Duration,
    topic_ids: Option<TopicIds>,
    /// Rises with each flush, so that the stores take turns.
    flush_turn: usize,
}

impl<L: Log, T: Stores, C: Clock, O: Observer> Worker<L, T, C, O> {
    /// Returns a worker that has no partitions yet.
    pub fn new(settings: Settings, log: L, stores: T, clock: C, observer: O) -> Self {
        let kinds = settings.rules.registry.iter().map(|kind| kind.number).collect();
        let guard = ClockGuard::new(settings.clock_step_max);
        let now = clock.wall();
        Self {
            settings,
            log,
            stores,
            clock,
            observer,
            nonces: fastrand::Rng::new(),
            guard,
            seats: BTreeMap::new(),
            holds: Holds::default(),
            kinds,
            turn: 0,
            dirty_since: None,
            is_urgent: false,
            stalled_until: Duration::ZERO,
            failures: 0,
            is_rebuild_due: false,
            now,
            latest: now,
            is_clock_held: false,
            probe_at: Duration::ZERO,
            flush_at: Duration::ZERO,
            report_at: Duration::ZERO,
            name_at: Duration::ZERO,
            topics_at: Duration::ZERO,
            topic_ids: None,
            flush_turn: 0,
        }
    }

    /// Draws the nonces of barriers from here: no two workers may share a stream.
    #[must_use]
    pub fn with_nonces(self, nonces: fastrand::Rng) -> Self {
        Self { nonces, ..self }
    }

    /// Runs until `stop` is set, then settles and makes the stores durable.
    ///
    /// # Errors
    /// When the worker cannot go on; the process is to end loudly.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), WorkerError> {
        while !stop.load(Ordering::Relaxed) {
            self.tick()?;
        }
        self.settle()?;
        let partitions: Vec<Partition> = self.seats.keys().copied().collect();
        self.vacate(&partitions);
        Ok(())
    }
}

#[cfg(test)]
#[path = "worker_test.rs"]
mod tests;

#[cfg(test)]
#[path = "trouble_test.rs"]
mod trouble_tests;

#[cfg(test)]
#[path = "foreign_test.rs"]
mod foreign_tests;

#[cfg(test)]
#[path = "forward_test.rs"]
mod forward_tests;

#[cfg(test)]
#[path = "account_test.rs"]
mod account_tests;

#[cfg(test)]
#[path = "found_test.rs"]
mod found_tests;

#[cfg(test)]
#[path = "handler_test.rs"]
mod handler_tests;

#[cfg(test)]
#[path = "edges_test.rs"]
mod edges_tests;

#[cfg(test)]
#[path = "pause_test.rs"]
mod pause_tests;
