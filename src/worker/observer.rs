//! What a worker tells about itself.
//!
//! Owns the seam [`Observer`]: telemetry implements it for the service, tests and the simulator implement it by hand.
//! Keeps: an observer changes nothing and cannot fail.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::position::Partition;
use crate::task::tally::Tally;
use crate::timer::kind::KindNumber;

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskState {
    /// It reads its state from the changelog.
    Restoring,
    /// It applies the commands that were there when it was assigned; nothing fires yet.
    CatchingUp,
    /// It applies and fires.
    Running,
    /// Its store is full or failing; it is tried again.
    Closed,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransactionEnd {
    /// It committed.
    Committed,
    /// It was aborted and will be done again.
    Aborted,
    /// Its outcome is not known; the tasks reload.
    Unknown,
}

/// What one pass of a worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickReport {
    /// Commands applied.
    pub applied: usize,
    /// Timers fired.
    pub fired: usize,
    /// Attempts of handlers that failed.
    pub failed: usize,
    /// Timers that changed between the scan and their turn, and did not fire.
    pub raced: usize,
    /// Rows looked at.
    pub scanned: usize,
    /// Rows that could not be decoded; they are kept.
    pub undecodable: usize,
    /// Whether due work was left for the next tick.
    pub saturated: bool,
    /// How long the pass took, waiting for records left out.
    pub busy: Duration,
}

/// What a task holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Pending timers per kind, those of unknown kinds too.
    pub pending: BTreeMap<KindNumber, u64>,
    /// How many of them are paused, per kind.
    pub paused: BTreeMap<KindNumber, u64>,
    /// Timer ids that have ended and are remembered.
    pub remembered: u64,
    /// Timers past their wake per kind, counted up to a bound.
    pub overdue: BTreeMap<KindNumber, u64>,
    /// How long the oldest of them has been due.
    pub oldest_overdue: Duration,
}

/// What listens to a worker.
pub trait Observer {
    /// A call that may block begins; it ends within `bound` unless it hangs.
    fn entered(&mut self, call: &'static str, bound: Duration);
    /// The call has ended.
    fn left(&mut self);
    /// A pass has ended.
    fn ticked(&mut self, report: &TickReport);
    /// A transaction ended after `took`; `tally` is what it did, if it committed.
    fn transaction(&mut self, end: TransactionEnd, took: Duration, tally: &Tally);
    /// A task is in this state from now on.
    fn task(&mut self, partition: Partition, state: TaskState);
    /// A task is no longer here.
    fn task_gone(&mut self, partition: Partition);
    /// A restore has read `done` of `total` offsets.
    fn restore(&mut self, partition: Partition, done: u64, total: u64);
    /// What a task holds, now and then.
    fn holdings(&mut self, partition: Partition, holdings: &Holdings);
    /// The group's answer has been seen for the first time: this worker is a member, with or without partitions.
    fn joined(&mut self);
    /// The clock is held, or no longer held, because of a forward step.
    fn clock_held(&mut self, held: bool);
    /// A kind is held, or no longer held, because its topic refuses records.
    fn kind_held(&mut self, kind: KindNumber, held: bool);
    /// Commands were removed from the topic before they were read.
    fn input_lost(&mut self, partition: Partition, records: u64);
    /// Somebody else wrote these many records to the changelog; they are overwritten.
    fn foreign_records(&mut self, partition: Partition, records: usize);
}
