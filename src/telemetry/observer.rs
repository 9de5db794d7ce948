//! What a worker tells, turned into metrics and health.
//!
//! Owns [`WorkerObserver`]. Never asks anything back. Keeps: gauges are sums over the tasks that are here now, recomputed from
//! what each last told, so that they cannot drift or fall below zero; a kind that this process does not know is one label.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::health::Health;
use super::metrics;
use super::vitals::state_name;
use crate::position::Partition;
use crate::task::tally::Tally;
use crate::time::Clock;
use crate::timer::kind::{KindNumber, Registry};
use crate::timer::outcome::Reason;
use crate::worker::observer::{Holdings, Observer, TaskState, TickReport, TransactionEnd};

const STATES: [TaskState; 4] = [TaskState::Restoring, TaskState::CatchingUp, TaskState::Running, TaskState::Closed];
/// The label of kinds that this process does not know: their names are not known either.
const UNKNOWN_KIND: &str = "unknown";

/// Listens to one worker.
pub struct WorkerObserver<C> {
    worker: usize,
    health: Arc<Health>,
    clock: C,
    kinds: BTreeMap<KindNumber, KindMetrics>,
    unknown: KindMetrics,
    passes: PassMetrics,
    flow: FlowMetrics,
    tasks: BTreeMap<Partition, TaskState>,
    holdings: BTreeMap<Partition, Holdings>,
    /// When the tasks that are not running yet were assigned, by the boot clock.
    begun: BTreeMap<Partition, Duration>,
}

/// The metrics of one kind, looked up once: recording is then an atomic operation.
struct KindMetrics {
    armed: Counter,
    fired: Counter,
    failed: Counter,
    expired: Counter,
    lateness: Histogram,
    pending: Gauge,
    paused: Gauge,
    overdue: Gauge,
    held: Gauge,
}

/// The metrics of the worker's passes.
struct PassMetrics {
    tick: Histogram,
    saturated: Counter,
    scanned: Counter,
    undecodable: Counter,
    unknown_kind: Gauge,
    remembered: Gauge,
    oldest_overdue: Gauge,
    clock_held: Gauge,
    tasks: BTreeMap<TaskState, Gauge>,
}

/// The metrics of transactions, shared by all workers.
struct FlowMetrics {
    disarmed: Counter,
    unchanged: Counter,
    late: Counter,
    forwarded: Counter,
    answers: Counter,
    outbox: Counter,
    raced: Counter,
    rejected: BTreeMap<Reason, Counter>,
    transactions: BTreeMap<TransactionEnd, Counter>,
    commit: Histogram,
    restore: Histogram,
    input_lost: Counter,
    foreign_records: Counter,
}

impl<C: Clock> WorkerObserver<C> {
    /// Returns the observer of a worker; every series that it can count in is there from the start, at 0.
    pub fn new(worker: usize, registry: &Registry, health: Arc<Health>, clock: C) -> Self {
        let label = worker.to_string();
        Self {
            worker,
            health,
            clock,
            kinds: registry.iter().map(|kind| (kind.number, KindMetrics::new(&kind.name, &label))).collect(),
            unknown: KindMetrics::new(UNKNOWN_KIND, &label),
            passes: PassMetrics::new(&label),
            flow: FlowMetrics::new(),
            tasks: BTreeMap::new(),
            holdings: BTreeMap::new(),
            begun: BTreeMap::new(),
        }
    }

    fn kind(&self, number: KindNumber) -> &KindMetrics {
        self.kinds.get(&number).unwrap_or(&self.unknown)
    }

    fn show_tasks(&self) {
        for (state, gauge) in &self.passes.tasks {
            gauge.set(as_f64(self.tasks.values().filter(|s| *s == state).count() as u64));
        }
    }

    fn show_holdings(&self) {
        let sum = |counts: fn(&Holdings) -> &BTreeMap<KindNumber, u64>| {
            let mut sums: BTreeMap<KindNumber, u64> = BTreeMap::new();
            for (kind, count) in self.holdings.values().flat_map(counts) {
                *sums.entry(*kind).or_insert(0) += count;
            }
            sums
        };
        let (pending, overdue) = (sum(|holdings| &holdings.pending), sum(|holdings| &holdings.overdue));
        let paused = sum(|holdings| &holdings.paused);
        let count = |sums: &BTreeMap<KindNumber, u64>, kind| as_f64(sums.get(kind).copied().unwrap_or(0));
        for (kind, metrics) in &self.kinds {
            metrics.pending.set(count(&pending, kind));
            metrics.paused.set(count(&paused, kind));
            metrics.overdue.set(count(&overdue, kind));
        }
        let unknown = |sums: &BTreeMap<KindNumber, u64>| {
            as_f64(sums.iter().filter(|(kind, _)| !self.kinds.contains_key(kind)).map(|(_, count)| count).sum())
        };
        self.unknown.pending.set(unknown(&pending));
        self.unknown.paused.set(unknown(&paused));
        self.unknown.overdue.set(unknown(&overdue));
        self.passes.unknown_kind.set(unknown(&pending));
        self.passes.remembered.set(as_f64(self.holdings.values().map(|holdings| holdings.remembered).sum()));
        let oldest = self.holdings.values().map(|holdings| holdings.oldest_overdue).max().unwrap_or_default();
        self.passes.oldest_overdue.set(oldest.as_secs_f64());
    }

    fn show_restore(partition: Partition, done: u64, total: u64) {
        let partition = partition.to_string();
        gauge!(metrics::RESTORE_DONE.name, "partition" => partition.clone()).set(as_f64(done));
        gauge!(metrics::RESTORE_TOTAL.name, "partition" => partition).set(as_f64(total));
    }
}

impl<C: Clock> Observer for WorkerObserver<C> {
    fn entered(&mut self, call: &'static str, bound: Duration) {
        let now = self.clock.boot();
        self.health.update(self.worker, |vitals| vitals.entered(now, call, bound));
    }

    fn left(&mut self) {
        let now = self.clock.boot();
        self.health.update(self.worker, |vitals| vitals.seen(now));
    }

    fn ticked(&mut self, report: &TickReport) {
        let now = self.clock.boot();
        self.health.update(self.worker, |vitals| vitals.seen(now));
        self.passes.tick.record(report.busy.as_secs_f64());
        self.passes.scanned.increment(report.scanned as u64);
        self.passes.undecodable.increment(report.undecodable as u64);
        self.passes.saturated.increment(u64::from(report.saturated));
    }

    fn transaction(&mut self, end: TransactionEnd, took: Duration, tally: &Tally) {
        if let Some(counter) = self.flow.transactions.get(&end) {
            counter.increment(1);
        }
        match end {
            TransactionEnd::Committed => self.flow.commit.record(took.as_secs_f64()),
            // What it did has not happened.
            TransactionEnd::Aborted | TransactionEnd::Unknown => return,
        }
        for (kind, count) in &tally.armed {
            self.kind(*kind).armed.increment(*count);
        }
        for (kind, count) in &tally.failed {
            self.kind(*kind).failed.increment(*count);
        }
        for (kind, count) in &tally.expired {
            self.kind(*kind).expired.increment(*count);
        }
        for (kind, lateness) in &tally.fired {
            let metrics = self.kind(*kind);
            metrics.fired.increment(1);
            metrics.lateness.record(lateness.as_secs_f64());
        }
        for (reason, count) in &tally.rejected {
            if let Some(counter) = self.flow.rejected.get(reason) {
                counter.increment(*count);
            }
        }
        self.flow.disarmed.increment(tally.disarmed);
        self.flow.unchanged.increment(tally.unchanged);
        self.flow.late.increment(tally.late);
        self.flow.forwarded.increment(tally.forwarded);
        self.flow.answers.increment(tally.answered);
        self.flow.outbox.increment(tally.outbox);
        self.flow.raced.increment(tally.raced);
    }

    fn task(&mut self, partition: Partition, state: TaskState) {
        self.health.update(self.worker, |vitals| vitals.task(partition, state));
        self.tasks.insert(partition, state);
        self.show_tasks();
        match state {
            TaskState::Restoring => {
                self.begun.entry(partition).or_insert(self.clock.boot());
            }
            TaskState::CatchingUp | TaskState::Closed => Self::show_restore(partition, 0, 0),
            TaskState::Running => {
                Self::show_restore(partition, 0, 0);
                if let Some(begun) = self.begun.remove(&partition) {
                    self.flow.restore.record(self.clock.boot().saturating_sub(begun).as_secs_f64());
                }
            }
        }
    }

    fn task_gone(&mut self, partition: Partition) {
        self.health.update(self.worker, |vitals| vitals.task_gone(partition));
        self.tasks.remove(&partition);
        self.holdings.remove(&partition);
        self.begun.remove(&partition);
        self.show_tasks();
        self.show_holdings();
        Self::show_restore(partition, 0, 0);
    }

    fn restore(&mut self, partition: Partition, done: u64, total: u64) {
        self.health.update(self.worker, |vitals| vitals.restore(partition, done, total));
        Self::show_restore(partition, done, total);
    }

    fn holdings(&mut self, partition: Partition, holdings: &Holdings) {
        self.holdings.insert(partition, holdings.clone());
        self.show_holdings();
    }

    fn joined(&mut self) {
        self.health.update(self.worker, super::vitals::Vitals::joined);
    }

    fn clock_held(&mut self, held: bool) {
        self.passes.clock_held.set(f64::from(u8::from(held)));
    }

    fn kind_held(&mut self, kind: KindNumber, held: bool) {
        self.kind(kind).held.set(f64::from(u8::from(held)));
    }

    fn input_lost(&mut self, _partition: Partition, records: u64) {
        self.flow.input_lost.increment(records);
    }

    fn foreign_records(&mut self, _partition: Partition, records: usize) {
        self.flow.foreign_records.increment(u64::try_from(records).unwrap_or(u64::MAX));
    }
}

impl KindMetrics {
    fn new(kind: &str, worker: &str) -> Self {
        let (kind, worker) = (kind.to_owned(), worker.to_owned());
        Self {
            armed: counter!(metrics::ARMED.name, "kind" => kind.clone()),
            fired: counter!(metrics::FIRED.name, "kind" => kind.clone()),
            failed: counter!(metrics::FAILED.name, "kind" => kind.clone()),
            expired: counter!(metrics::EXPIRED.name, "kind" => kind.clone()),
            lateness: histogram!(metrics::LATENESS.name, "kind" => kind.clone()),
            pending: gauge!(metrics::PENDING.name, "kind" => kind.clone(), "worker" => worker.clone()),
            paused: gauge!(metrics::PAUSED.name, "kind" => kind.clone(), "worker" => worker.clone()),
            overdue: gauge!(metrics::OVERDUE.name, "kind" => kind.clone(), "worker" => worker.clone()),
            held: gauge!(metrics::KIND_HELD.name, "kind" => kind, "worker" => worker),
        }
    }
}

impl PassMetrics {
    fn new(worker: &str) -> Self {
        let worker = || worker.to_owned();
        let task = |state| gauge!(metrics::TASKS.name, "state" => state_name(state), "worker" => worker());
        Self {
            tick: histogram!(metrics::TICK.name, "worker" => worker()),
            saturated: counter!(metrics::SATURATED.name, "worker" => worker()),
            scanned: counter!(metrics::SCANNED.name, "worker" => worker()),
            undecodable: counter!(metrics::UNDECODABLE.name, "worker" => worker()),
            unknown_kind: gauge!(metrics::UNKNOWN_KIND.name, "worker" => worker()),
            remembered: gauge!(metrics::REMEMBERED.name, "worker" => worker()),
            oldest_overdue: gauge!(metrics::OLDEST_OVERDUE.name, "worker" => worker()),
            clock_held: gauge!(metrics::CLOCK_HELD.name, "worker" => worker()),
            tasks: STATES.into_iter().map(|state| (state, task(state))).collect(),
        }
    }
}

impl FlowMetrics {
    fn new() -> Self {
        let rejected = |reason: Reason| counter!(metrics::REJECTED.name, "reason" => reason.name());
        let ends = [
            (TransactionEnd::Committed, "committed"),
            (TransactionEnd::Aborted, "aborted"),
            (TransactionEnd::Unknown, "unknown"),
        ];
        let transactions = ends.map(|(end, name)| (end, counter!(metrics::TRANSACTIONS.name, "outcome" => name)));
        Self {
            disarmed: counter!(metrics::DISARMED.name),
            unchanged: counter!(metrics::UNCHANGED.name),
            late: counter!(metrics::LATE.name),
            forwarded: counter!(metrics::FORWARDED.name),
            answers: counter!(metrics::ANSWERS.name),
            outbox: counter!(metrics::OUTBOX.name),
            raced: counter!(metrics::RACED.name),
            rejected: Reason::ALL.into_iter().map(|reason| (reason, rejected(reason))).collect(),
            transactions: transactions.into_iter().collect(),
            commit: histogram!(metrics::COMMIT.name),
            restore: histogram!(metrics::RESTORE.name),
            input_lost: counter!(metrics::INPUT_LOST.name),
            foreign_records: counter!(metrics::FOREIGN_RECORDS.name),
        }
    }
}

/// Counts up to 2^53 are exact, and no partition holds as many timers.
#[expect(clippy::cast_precision_loss, reason = "gauges are floating-point numbers")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
#[path = "observer_test.rs"]
mod tests;
