//! A log of vectors for the tests of the loop: one broker, any number of workers, outcomes on demand.
//!
//! Owns the least that the contract of [`Log`] asks for. The simulator has a broker with Kafka's own rules.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use crate::log::{
    Aborted, ChangelogBatch, ChangelogRecord, CommitOutcome, Committed, Destination, Emission, Extent, FencingPosition,
    InputRecord, Log, LogError, LogEvent, TopicIds, Transaction,
};
use crate::position::{Offset, Partition, Position};
use crate::time::{Clock, Timestamp};

/// How the next transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Abort,
    UnknownButCommitted,
    UnknownAndAborted,
}

/// What all workers share.
#[derive(Default)]
pub(super) struct Broker {
    pub(super) commands: BTreeMap<Partition, Vec<InputRecord>>,
    pub(super) changelog: BTreeMap<Partition, Vec<ChangelogRecord>>,
    pub(super) output: Vec<Emission>,
    pub(super) committed: BTreeMap<Partition, Position>,
    pub(super) ends: VecDeque<End>,
    pub(super) refusing: BTreeSet<Destination>,
    pub(super) transactions: usize,
    /// Where the commands of a partition start, if records were removed.
    pub(super) starts: BTreeMap<Partition, Position>,
    /// How many records of a changelog are read in one poll; at least two.
    pub(super) restored_at_once: usize,
    /// Records of commands that were read, again and again if they are.
    pub(super) reads: usize,
    /// The broker's clock, if it stamps what it appends.
    pub(super) clock: Option<Hands>,
    /// How long a commit takes after the append; needs the clock.
    pub(super) commit_takes: Duration,
    /// The largest record that the command topic takes, if there is a limit.
    pub(super) arm_bytes_max: Option<usize>,
    /// Whether the next transaction does not tell where its records are.
    pub(super) hides_places: bool,
    /// How many transactions there are before a changelog can be read again.
    pub(super) hung_until: usize,
}

impl Broker {
    pub(super) fn produce(&mut self, partition: Partition, timestamp: Timestamp, value: Bytes) {
        let records = self.commands.entry(partition).or_default();
        let offset = Offset(i64::try_from(records.len()).unwrap());
        records.push(InputRecord {
            partition,
            offset,
            timestamp: Some(timestamp),
            key: None,
            value: Some(value),
            headers: Vec::new(),
        });
    }

    pub(super) fn sent_to(&self, destination: Destination) -> Vec<&Emission> {
        self.output.iter().filter(|emission| emission.to == destination).collect()
    }

    fn refuses(&self, emission: &Emission) -> bool {
        let bytes = emission.value.as_ref().map_or(0, Bytes::len);
        let is_too_large = emission.to == Destination::Arm && self.arm_bytes_max.is_some_and(|max| bytes > max);
        is_too_large || self.refusing.contains(&emission.to)
    }

    fn write(&mut self, transaction: &Transaction) -> Committed {
        let mut committed = Committed::default();
        for emission in &transaction.emissions {
            if emission.to == Destination::Changelog {
                let partition = emission.partition.unwrap();
                assert!(transaction.positions.contains_key(&partition), "INV-FENCE-1");
                let records = self.changelog.entry(partition).or_default();
                let offset = Offset(i64::try_from(records.len()).unwrap());
                let (key, value) = (emission.key.clone().unwrap(), emission.value.clone());
                records.push(ChangelogRecord { offset, key, value });
                committed.changelog.entry(partition).or_default().insert(offset);
            }
            if let (Destination::Arm, Some(home)) = (emission.to, emission.partition) {
                let records = self.commands.entry(home).or_default();
                let offset = Offset(i64::try_from(records.len()).unwrap());
                records.push(InputRecord {
                    partition: home,
                    offset,
                    timestamp: emission.timestamp,
                    key: emission.key.clone(),
                    value: emission.value.clone(),
                    headers: emission.headers.clone(),
                });
            }
            self.output.push(emission.clone());
        }
        for (partition, position) in &transaction.positions {
            let before = self.committed.insert(*partition, *position);
            assert!(before.is_none_or(|before| before <= *position), "INV-POS-1: {before:?} then {position:?}");
        }
        if let Some(clock) = &self.clock {
            committed.appended = Some(clock.wall());
            clock.advance(self.commit_takes);
        }
        if std::mem::take(&mut self.hides_places) {
            committed.changelog.clear();
        }
        committed
    }
}

/// One worker's end of the broker.
#[derive(Default)]
pub(super) struct FakeLog {
    broker: Rc<RefCell<Broker>>,
    pub(super) events: Rc<RefCell<VecDeque<LogEvent>>>,
    consuming: BTreeMap<Partition, Position>,
    restoring: BTreeMap<Partition, Position>,
    pub(super) last_patience: Rc<Cell<Duration>>,
}

impl FakeLog {
    pub(super) fn new(broker: &Rc<RefCell<Broker>>) -> Self {
        Self { broker: Rc::clone(broker), ..Self::default() }
    }
}

fn extent(records: usize) -> Extent {
    Extent { start: Position(0), end: Position(i64::try_from(records).unwrap()) }
}

impl Log for FakeLog {
    fn poll(&mut self, timeout: Duration, records_max: usize, _bytes_max: usize) -> Result<Vec<LogEvent>, LogError> {
        self.last_patience.set(timeout);
        let mut events: Vec<LogEvent> = self.events.borrow_mut().drain(..).collect();
        let mut broker = self.broker.borrow_mut();
        for (partition, position) in &mut self.restoring {
            if broker.transactions < broker.hung_until {
                continue;
            }
            let from = usize::try_from(position.0).unwrap();
            let records: Vec<ChangelogRecord> = broker
                .changelog
                .get(partition)
                .into_iter()
                .flatten()
                .skip(from)
                .take(broker.restored_at_once.max(2))
                .cloned()
                .collect();
            if let Some(last) = records.last() {
                *position = last.offset.next();
                events.push(LogEvent::Changelog(ChangelogBatch {
                    partition: *partition,
                    position: *position,
                    records,
                }));
            }
        }
        let starts = broker.starts.clone();
        self.consuming.retain(|partition, position| {
            let is_there = starts.get(partition).is_none_or(|start| start <= position);
            if !is_there {
                events.push(LogEvent::OutOfRange(*partition));
            }
            is_there
        });
        for (partition, position) in &mut self.consuming {
            let from = usize::try_from(position.0).unwrap();
            let mut reads = 0;
            for record in broker.commands.get(partition).into_iter().flatten().skip(from).take(records_max) {
                *position = record.offset.next();
                events.push(LogEvent::Record(record.clone()));
                reads += 1;
            }
            broker.reads += reads;
        }
        Ok(events)
    }

    fn accept(&mut self, _partitions: &[Partition]) -> Result<(), LogError> {
        Ok(())
    }

    fn release(&mut self, partitions: &[Partition]) -> Result<(), LogError> {
        for partition in partitions {
            self.consuming.remove(partition);
            self.restoring.remove(partition);
        }
        Ok(())
    }

    fn fencing_position(&mut self, partition: Partition) -> Result<FencingPosition, LogError> {
        let committed = self.broker.borrow().committed.get(&partition).copied();
        Ok(FencingPosition { position: committed.unwrap_or(Position(0)), committed: committed.is_some() })
    }

    fn input_extent(&mut self, partition: Partition) -> Result<Extent, LogError> {
        let broker = self.broker.borrow();
        let start = broker.starts.get(&partition).copied().unwrap_or(Position(0));
        Ok(Extent { start, ..extent(broker.commands.get(&partition).map_or(0, Vec::len)) })
    }

    fn changelog_extent(&mut self, partition: Partition) -> Result<Extent, LogError> {
        Ok(extent(self.broker.borrow().changelog.get(&partition).map_or(0, Vec::len)))
    }

    fn topic_ids(&mut self) -> Result<TopicIds, LogError> {
        Ok(TopicIds { arm: [1; 16], changelog: [2; 16] })
    }

    fn restore(&mut self, partition: Partition, from: Position) -> Result<(), LogError> {
        self.restoring.insert(partition, from);
        Ok(())
    }

    fn stop_restore(&mut self, partition: Partition) -> Result<(), LogError> {
        self.restoring.remove(&partition);
        Ok(())
    }

    fn consume(&mut self, partition: Partition, from: Position) -> Result<(), LogError> {
        self.consuming.insert(partition, from);
        Ok(())
    }

    fn pause(&mut self, partition: Partition) -> Result<(), LogError> {
        self.consuming.remove(&partition);
        Ok(())
    }

    fn position(&self, partition: Partition) -> Option<Position> {
        self.consuming.get(&partition).copied()
    }

    fn commit(&mut self, transaction: &Transaction) -> CommitOutcome {
        let mut broker = self.broker.borrow_mut();
        broker.transactions += 1;
        assert!(!transaction.emissions.is_empty(), "at least one record before the offsets");
        let refused: BTreeMap<Destination, String> = transaction
            .emissions
            .iter()
            .filter(|emission| broker.refuses(emission))
            .map(|emission| (emission.to, "unknown topic".to_owned()))
            .collect();
        if !refused.is_empty() {
            return CommitOutcome::Aborted(Aborted { refused, detail: "refused".to_owned() });
        }
        match broker.ends.pop_front() {
            None => CommitOutcome::Committed(broker.write(transaction)),
            Some(End::Abort) => {
                CommitOutcome::Aborted(Aborted { detail: "asked for".to_owned(), ..Aborted::default() })
            }
            Some(End::UnknownButCommitted) => {
                broker.write(transaction);
                CommitOutcome::Unknown { detail: "asked for".to_owned() }
            }
            Some(End::UnknownAndAborted) => CommitOutcome::Unknown { detail: "asked for".to_owned() },
        }
    }

    fn rebuild(&mut self) -> Result<(), LogError> {
        Ok(())
    }
}

/// A clock that moves by hand.
#[derive(Clone, Default)]
pub(super) struct Hands {
    boot_ms: Rc<Cell<i64>>,
    skew_ms: Rc<Cell<i64>>,
}

/// The wall clock when the boot-time clock is zero: 2026-12-01T00:00:00Z.
const ZERO_MS: i64 = 1_796_083_200_000;

impl Hands {
    pub(super) fn advance(&self, by: Duration) {
        self.boot_ms.set(self.boot_ms.get() + i64::try_from(by.as_millis()).unwrap());
    }

    /// Returns the clock of everybody else, whose wall clock nobody steps.
    pub(super) fn elsewhere(&self) -> Self {
        Self { boot_ms: Rc::clone(&self.boot_ms), skew_ms: Rc::default() }
    }

    /// Steps the wall clock, as somebody who sets it does.
    pub(super) fn step_seconds(&self, seconds: i64) {
        self.skew_ms.set(self.skew_ms.get() + seconds * 1000);
    }
}

impl Clock for Hands {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(ZERO_MS + self.boot_ms.get() + self.skew_ms.get())
    }

    fn boot(&self) -> Duration {
        Duration::from_millis(self.boot_ms.get().unsigned_abs())
    }
}
