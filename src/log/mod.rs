//! The log: where commands come from, and where everything that is to last goes.
//!
//! Owns the seam [`Log`] as one worker sees it: a member of the consumer group that reads commands, commits transactions
//! and reads the changelog. [`kafka`] implements it; the simulator's broker does too. Never knows a store or a timer.
//! Keeps: a transaction is sent, drained, fenced by its positions and committed inside one call (INV-LOG-1), so that none
//! is open between two calls and the outcome of each is known before the next begins (INV-LOG-2).

pub mod kafka;
pub mod places;
pub mod transaction;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use self::places::Places;
use crate::position::{Offset, Partition, Position};
use crate::time::Timestamp;
use crate::timer::kind::KindNumber;
use crate::timer::model::Header;

/// Something that happened in the log.
#[derive(Debug)]
pub enum LogEvent {
    /// The group gave these partitions to this worker. It calls [`Log::accept`].
    Assigned(Vec<Partition>),
    /// The group wants these partitions back. The worker settles, then calls [`Log::release`].
    Revoked(Vec<Partition>),
    /// These partitions are another's already. The worker drops them without a commit, then calls [`Log::release`].
    Lost(Vec<Partition>),
    /// A record of the command topic, of a partition that [`Log::consume`] was called for.
    Record(InputRecord),
    /// Records of the changelog, of a partition that [`Log::restore`] was called for.
    Changelog(ChangelogBatch),
    /// The position of this partition's commands is outside of the log: its records were removed before they were read.
    OutOfRange(Partition),
}

/// A record of the command topic.
#[derive(Clone, Debug)]
pub struct InputRecord {
    /// The partition it was read from.
    pub partition: Partition,
    /// Its offset.
    pub offset: Offset,
    /// Its timestamp; `None` if it has none.
    pub timestamp: Option<Timestamp>,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value; `None` is Kafka's null.
    pub value: Option<Bytes>,
    /// Its headers.
    pub headers: Vec<Header>,
}

/// Some records of one partition of the changelog, in order.
#[derive(Debug)]
pub struct ChangelogBatch {
    /// The partition.
    pub partition: Partition,
    /// The records; may be none when only the position moved, over transaction markers.
    pub records: Vec<ChangelogRecord>,
    /// The position behind the last of them.
    pub position: Position,
}

/// A record of the changelog.
#[derive(Clone, Debug)]
pub struct ChangelogRecord {
    /// Its offset.
    pub offset: Offset,
    /// Its key.
    pub key: Bytes,
    /// Its value; `None` removes the key.
    pub value: Option<Bytes>,
}

/// Where a record goes. The log knows the topics' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// The command topic: a stray command on its way to its partition.
    Arm,
    /// The changelog.
    Changelog,
    /// The fired topic of a kind.
    Fired(KindNumber),
    /// The outbox topic of a kind.
    Outbox(KindNumber),
    /// The dead-letter topic.
    DeadLetter,
    /// The results topic.
    Results,
}

/// A record on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emission {
    /// Where it goes.
    pub to: Destination,
    /// Its partition; `None` leaves it to the partitioner: murmur2 of the key, as Java's.
    pub partition: Option<Partition>,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value; `None` is Kafka's null.
    pub value: Option<Bytes>,
    /// Its headers, in order.
    pub headers: Vec<Header>,
    /// Its timestamp; `None` is the time of sending.
    pub timestamp: Option<Timestamp>,
}

impl Emission {
    /// Returns the size of the record, rounded up.
    pub fn bytes(&self) -> usize {
        /// Framing of a record or of one header, at most.
        const FRAMING_BYTES: usize = 32;
        let size = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        let header = |header: &Header| FRAMING_BYTES + header.key.len() + size(&header.value);
        FRAMING_BYTES + size(&self.key) + size(&self.value) + self.headers.iter().map(header).sum::<usize>()
    }
}

/// One atomic step of the log: records, and the positions that fence them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// What is written; at least one record.
    pub emissions: Vec<Emission>,
    /// The next command to read, of every assigned partition.
    pub positions: BTreeMap<Partition, Position>,
}

/// What became of a transaction. Each variant is a different thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// Everything is in the log. The store may follow.
    Committed(Committed),
    /// Nothing is in the log. The overlay is dropped, the commands are read again.
    Aborted(Aborted),
    /// Nothing is known. The worker calls [`Log::rebuild`], drops the overlay and reloads each task from the changelog.
    Unknown {
        /// The cause.
        detail: String,
    },
}

/// A transaction that committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Per partition of the changelog that was written: the places of the records, as far as the broker told them.
    pub changelog: BTreeMap<Partition, Places>,
    /// The latest time at which the broker appended a changelog record, if that topic has `LogAppendTime`.
    pub appended: Option<Timestamp>,
}

/// A transaction that was aborted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aborted {
    /// The destinations that refused a record, with the reason: deleted, no rights, record too large.
    pub refused: BTreeMap<Destination, String>,
    /// The cause.
    pub detail: String,
}

/// The first and the next offset of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first record that is still there.
    pub start: Position,
    /// The position behind the last record, committed or not.
    pub end: Position,
}

/// What can go wrong with the log, by what the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A call failed and may succeed when it is made again.
    #[error("{doing}: {detail}")]
    Retriable {
        /// What was being done, and to what.
        doing: String,
        /// The cause.
        detail: String,
    },
    /// The worker cannot go on: another process has its instance id, or the client is broken for good.
    #[error("{doing}: {detail}")]
    Fatal {
        /// What was being done, and to what.
        doing: String,
        /// The cause, and the remedy.
        detail: String,
    },
}

/// A worker's end of the log.
pub trait Log {
    /// Waits up to `timeout` for events and returns what is there, at most `records_max` records or about `bytes_max` bytes.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when the worker must stop; a passing error is logged and waited out inside.
    fn poll(&mut self, timeout: Duration, records_max: usize, bytes_max: usize) -> Result<Vec<LogEvent>, LogError>;

    /// Takes the assigned partitions. Their commands stay paused until [`Log::consume`].
    ///
    /// # Errors
    /// When the client refuses.
    fn accept(&mut self, partitions: &[Partition]) -> Result<(), LogError>;

    /// Gives revoked or lost partitions back and stops everything about them.
    ///
    /// # Errors
    /// When the client refuses.
    fn release(&mut self, partitions: &[Partition]) -> Result<(), LogError>;

    /// Returns the group's position of the partition's commands, or the start of the partition if the group has none: a
    /// number that is always valid in a transaction, and that only fences. Of a partition that the changelog does not have it
    /// is the truth, so that no transaction may be about to move it.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the broker does not answer, or such a transaction is still open.
    fn fencing_position(&mut self, partition: Partition) -> Result<FencingPosition, LogError>;

    /// Returns the extent of the partition of the command topic, records of open transactions included.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the broker does not answer.
    fn input_extent(&mut self, partition: Partition) -> Result<Extent, LogError>;

    /// Returns the extent of the partition of the changelog, records of open transactions included.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the broker does not answer.
    fn changelog_extent(&mut self, partition: Partition) -> Result<Extent, LogError>;

    /// Returns the ids of the command topic and of the changelog, which change when a topic is created anew.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the broker does not answer.
    fn topic_ids(&mut self) -> Result<TopicIds, LogError>;

    /// Starts reading the changelog of the partition at `from`; batches come as [`LogEvent::Changelog`].
    ///
    /// # Errors
    /// When the client refuses.
    fn restore(&mut self, partition: Partition, from: Position) -> Result<(), LogError>;

    /// Stops reading the changelog of the partition.
    ///
    /// # Errors
    /// When the client refuses.
    fn stop_restore(&mut self, partition: Partition) -> Result<(), LogError>;

    /// Reads the partition's commands from `from` on: seeks there and resumes. Called again after an abort, to rewind.
    ///
    /// # Errors
    /// When the client refuses.
    fn consume(&mut self, partition: Partition, from: Position) -> Result<(), LogError>;

    /// Stops reading the partition's commands until [`Log::consume`]: they could not be taken now.
    ///
    /// # Errors
    /// When the client refuses.
    fn pause(&mut self, partition: Partition) -> Result<(), LogError>;

    /// Returns how far the reading of commands has come, transaction markers stepped over; `None` before the first.
    fn position(&self, partition: Partition) -> Option<Position>;

    /// Writes the transaction: all of it, or nothing, or it is not known.
    fn commit(&mut self, transaction: &Transaction) -> CommitOutcome;

    /// Makes new producers, which settles whatever the old ones left open.
    ///
    /// # Errors
    /// [`LogError::Retriable`] while a predecessor's transaction is being settled.
    fn rebuild(&mut self) -> Result<(), LogError>;
}

/// A position that fences, and whether the group ever committed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FencingPosition {
    /// The position.
    pub position: Position,
    /// Whether the group had committed it; otherwise it is the start of the partition.
    pub committed: bool,
}

/// The ids of the topics that hold state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicIds {
    /// The command topic's.
    pub arm: [u8; 16],
    /// The changelog's.
    pub changelog: [u8; 16],
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arm => f.write_str("arm"),
            Self::Changelog => f.write_str("changelog"),
            Self::Fired(kind) => write!(f, "fired of kind {kind}"),
            Self::Outbox(kind) => write!(f, "outbox of kind {kind}"),
            Self::DeadLetter => f.write_str("dead-letter"),
            Self::Results => f.write_str("results"),
        }
    }
}
