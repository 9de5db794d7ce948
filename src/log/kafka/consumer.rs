//! The member of the group that reads commands.
//!
//! ```text
//!   group gives        accept         consume
//! ──────────────→ told ───────→ paused ───────→ reading ──┐ consume: rewinds
//!                                 │    pause       ↑  │───┘
//!                                 │ ←──────────────┼──┤
//!   group takes, or it was lost   │                   │
//!               told ←────────────┴───────────────────┘     release: forgotten
//! ```
//!
//! Owns the consumer, the partitions it holds, and who it is in the group. Never commits a position, never decides what a
//! rebalance means.
//! Keeps: no record is returned twice or out of order between two calls of `consume`, and none of a paused partition.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerGroupMetadata};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::{Offset as NativeOffset, TopicPartitionList};

use super::deadline::{Deadline, pause};
use super::input::{Room, record};
use super::native::{self, Membership};
use super::probe::{self, client_error, native_partition};
use super::rebalance::{GroupContext, unassign};
use super::settings::{KafkaSettings, group_config};
use crate::log::{InputRecord, LogError, LogEvent};
use crate::position::{Offset, Partition, Position};

/// How long a partition that was just assigned may take until it can be read.
const SEEK_PATIENCE: Duration = Duration::from_secs(3);
/// Between two tries to seek.
const SEEK_STEP: Duration = Duration::from_millis(2);

/// What the consumer knows of a partition it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Assigned, not read.
    Paused,
    /// The next offset that may be returned.
    From(Position),
    /// Not read, and its fetcher may have stopped, because its position is outside of the log.
    Fallen,
}

/// How a member ends.
#[derive(Debug)]
pub(super) enum MemberError {
    /// Another member joined with its instance id. That may have been itself: a coordinator that restarts can answer a
    /// join that the client no longer waits for, and then knows the instance by a member id that nobody uses.
    Fenced(String),
    /// The client is broken for good.
    Broken(String),
}

/// What a poll found beside its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Polled {
    /// A partition's position may lie outside of the log; librdkafka does not say which.
    pub(super) is_out_of_range: bool,
}

/// The member of the group.
pub(super) struct GroupConsumer {
    consumer: BaseConsumer<GroupContext>,
    topic: String,
    held: BTreeMap<Partition, Reading>,
    /// How far librdkafka says that reading has come, asked at most once between two changes.
    native_positions: OnceCell<BTreeMap<Partition, Position>>,
    member: Option<(Membership, Arc<ConsumerGroupMetadata>)>,
}

impl GroupConsumer {
    /// Makes the consumer and joins the group.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when a property is wrong.
    pub(super) fn join(settings: &KafkaSettings) -> Result<Self, LogError> {
        let doing = "making the consumer of commands";
        let created = group_config(settings).create_with_context(GroupContext::default());
        let consumer: BaseConsumer<GroupContext> = created.map_err(|error| client_error(doing, &error))?;
        let topic = settings.topics.arm.clone();
        consumer.subscribe(&[&topic]).map_err(|error| client_error(doing, &error))?;
        Ok(Self { consumer, topic, held: BTreeMap::new(), native_positions: OnceCell::new(), member: None })
    }

    /// Waits up to `timeout` for events and appends them to `events`.
    ///
    /// # Errors
    /// When the member cannot go on.
    pub(super) fn poll(
        &mut self,
        timeout: Duration,
        room: &mut Room,
        events: &mut Vec<LogEvent>,
    ) -> Result<Polled, MemberError> {
        self.native_positions.take();
        let mut polled = Polled::default();
        // In whole milliseconds: rust-rdkafka spins through a fraction of one.
        let mut wait = Duration::from_millis(u64::try_from(timeout.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX));
        while !room.is_full() {
            match self.consumer.poll(wait) {
                Some(Ok(message)) => {
                    if let Some((record, bytes)) = accepted(&mut self.held, &message) {
                        room.take(1, bytes);
                        events.push(LogEvent::Record(record));
                    } else {
                        // Dropped records count too, so that the loop ends.
                        room.take(1, 0);
                    }
                }
                Some(Err(error)) => polled.is_out_of_range |= self.look_at(&error)?,
                None => break,
            }
            if self.consumer.context().has_events() {
                break;
            }
            wait = Duration::ZERO;
        }
        events.extend(self.consumer.context().take_events());
        self.look_who_we_are();
        Ok(polled)
    }

    /// Takes assigned partitions, paused. `known` holds positions to start from for those that have one; reading starts
    /// where `consume` says anyway.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the client refuses.
    pub(super) fn accept(
        &mut self,
        partitions: &[Partition],
        known: &BTreeMap<Partition, Position>,
    ) -> Result<(), LogError> {
        let new: Vec<_> = partitions.iter().filter(|partition| !self.held.contains_key(partition)).copied().collect();
        let list = self.list(new.iter().map(|partition| (*partition, known.get(partition).copied())))?;
        let doing = || format!("accepting partitions of {}", self.topic);
        self.consumer.incremental_assign(&list).map_err(|error| refused(doing(), &error))?;
        self.held.extend(new.iter().map(|partition| (*partition, Reading::Paused)));
        if !new.is_empty() {
            self.consumer.pause(&list).map_err(|error| refused(doing(), &error))?;
        }
        Ok(())
    }

    /// Gives partitions back.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the client refuses.
    pub(super) fn release(&mut self, partitions: &[Partition]) -> Result<(), LogError> {
        let held: Vec<_> =
            partitions.iter().filter(|partition| self.held.remove(partition).is_some()).copied().collect();
        if held.is_empty() && !partitions.is_empty() {
            // They were held by an earlier client. An empty list is an answer that the client waits for.
            return Ok(());
        }
        let list = self.list(held.iter().map(|partition| (*partition, None)))?;
        unassign(&self.consumer, &list)
            .map_err(|error| refused(format!("releasing partitions of {}", self.topic), &error))
    }

    /// Reads a partition from a position on.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the client refuses.
    pub(super) fn consume(&mut self, partition: Partition, from: Position) -> Result<(), LogError> {
        match self.held.get(&partition) {
            Some(Reading::Paused | Reading::From(_)) => self.read_from(partition, from, SEEK_PATIENCE),
            Some(Reading::Fallen) => self.read_from(partition, from, Duration::ZERO),
            None => Err(LogError::Retriable {
                doing: format!("reading {} [{partition}]", self.topic),
                detail: "the partition is not held".to_owned(),
            }),
        }
    }

    /// Stops reading a partition until it is consumed again. One that is not being read stays as it is.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the client refuses.
    pub(super) fn pause(&mut self, partition: Partition) -> Result<(), LogError> {
        let Some(Reading::From(next)) = self.held.get(&partition).copied() else { return Ok(()) };
        let list = self.list([(partition, Some(next))])?;
        let doing = || format!("pausing {} [{partition}]", self.topic);
        self.consumer.pause(&list).map_err(|error| refused(doing(), &error))?;
        self.held.insert(partition, Reading::Paused);
        Ok(())
    }

    fn read_from(&mut self, partition: Partition, from: Position, patience: Duration) -> Result<(), LogError> {
        let list = self.list([(partition, Some(from))])?;
        let waited = Deadline::after(patience);
        while let Err(error) = self.seek(&list) {
            // The fetcher of a new partition is still starting; that of a partition that fell out of the log never will.
            if waited.is_over() {
                tracing::debug!(topic = self.topic, %partition, %from, error, "partition does not seek");
                return self.assign_anew(partition, from);
            }
            pause(SEEK_STEP);
        }
        self.resume(partition, from, &list)
    }

    fn assign_anew(&mut self, partition: Partition, from: Position) -> Result<(), LogError> {
        let doing = || format!("assigning {} [{partition}] anew at {from}", self.topic);
        let list = self.list([(partition, Some(from))])?;
        self.consumer.incremental_unassign(&list).map_err(|error| refused(doing(), &error))?;
        self.consumer.incremental_assign(&list).map_err(|error| refused(doing(), &error))?;
        self.resume(partition, from, &list)
    }

    fn resume(&mut self, partition: Partition, from: Position, list: &TopicPartitionList) -> Result<(), LogError> {
        let resumed = self.consumer.resume(list);
        resumed.map_err(|error| refused(format!("reading {} [{partition}] from {from}", self.topic), &error))?;
        self.held.insert(partition, Reading::From(from));
        self.native_positions.take();
        Ok(())
    }

    fn seek(&self, list: &TopicPartitionList) -> Result<(), String> {
        let answer = self.consumer.seek_partitions(list.clone(), SEEK_PATIENCE).map_err(|error| error.to_string())?;
        // The whole answer is Ok also when a partition has an error.
        answer.elements().iter().try_for_each(|element| element.error().map_err(|error| error.to_string()))
    }

    /// Returns how far the reading of a partition has come, markers of transactions stepped over.
    pub(super) fn position(&self, partition: Partition) -> Option<Position> {
        let Some(Reading::From(next)) = self.held.get(&partition) else { return None };
        let native = self.native_positions.get_or_init(|| self.ask_positions().unwrap_or_default()).get(&partition);
        Some(native.map_or(*next, |native| *native.max(next)))
    }

    fn ask_positions(&self) -> Result<BTreeMap<Partition, Position>, KafkaError> {
        let list = self.consumer.position()?;
        let known = list.elements().into_iter().filter_map(|element| match element.offset() {
            NativeOffset::Offset(offset) => {
                Some((Partition(u32::try_from(element.partition()).ok()?), Position(offset)))
            }
            NativeOffset::Beginning
            | NativeOffset::End
            | NativeOffset::Stored
            | NativeOffset::Invalid
            | NativeOffset::OffsetTail(_) => None,
        });
        Ok(known.collect())
    }

    /// Returns the group's position of a partition, if there is one, once no transaction is about to move it.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the broker does not answer, or such a transaction is still open.
    pub(super) fn settled(&self, partition: Partition) -> Result<Option<Position>, LogError> {
        probe::settled(&self.consumer, &self.topic, partition)
    }

    /// Returns the partitions that are being read, with the next offset.
    pub(super) fn reading(&self) -> Vec<(Partition, Position)> {
        let next = |(partition, reading): (&Partition, &Reading)| match reading {
            Reading::From(next) => Some((*partition, *next)),
            Reading::Paused | Reading::Fallen => None,
        };
        self.held.iter().filter_map(next).collect()
    }

    /// Starts readers again after one has stopped because its position is outside of the log: `fallen` are those whose
    /// position is; they are not read until they are told where to go on.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the client refuses.
    pub(super) fn restart_readers(&mut self, fallen: &[Partition]) -> Result<(), LogError> {
        for (partition, reading) in &mut self.held {
            if *reading == Reading::Paused || fallen.contains(partition) {
                *reading = Reading::Fallen;
            }
        }
        for (partition, next) in self.reading() {
            self.read_from(partition, next, Duration::ZERO)?;
        }
        Ok(())
    }

    /// Reads a partition on anew, from where it is.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the client refuses.
    pub(super) fn restart_reader(&mut self, partition: Partition) -> Result<(), LogError> {
        match self.held.get(&partition) {
            Some(Reading::From(next)) => self.assign_anew(partition, *next),
            Some(Reading::Paused | Reading::Fallen) | None => Ok(()),
        }
    }

    /// Returns what fences a transaction with these positions.
    ///
    /// # Errors
    /// A text, when we are not a member, or not of these partitions, so that the broker would not fence.
    pub(super) fn fence(
        &self,
        positions: &BTreeMap<Partition, Position>,
    ) -> Result<(TopicPartitionList, &Arc<ConsumerGroupMetadata>), String> {
        let Some((membership, metadata)) = &self.member else {
            return Err("not a member of the group at this moment".to_owned());
        };
        assert!(membership.is_valid(), "INV-LOG-1: only a valid membership is kept");
        if let Some(partition) = positions.keys().find(|partition| !self.held.contains_key(partition)) {
            return Err(format!("partition {partition} is not held"));
        }
        let list = self.list(positions.iter().map(|(partition, position)| (*partition, Some(*position))));
        Ok((list.map_err(|error| error.to_string())?, metadata))
    }

    /// Returns the partitions that it holds.
    pub(super) fn held(&self) -> Vec<Partition> {
        self.held.keys().copied().collect()
    }

    /// Leaves, if the member is a dynamic one, and closes the client. May block for long.
    pub(super) fn close(self) {
        self.consumer.context().start_closing();
        // Also answers a rebalance that is still open, for which the client would wait.
        let _closing = self.consumer.assignment().and_then(|all| unassign(&self.consumer, &all));
    }

    /// Captures who we are in the group, for the transactions until the next poll. A member that has left is no one: the
    /// broker would accept it unfenced.
    fn look_who_we_are(&mut self) {
        let now = native::membership(&self.consumer).filter(Membership::is_valid);
        if now.as_ref() == self.member.as_ref().map(|(membership, _)| membership) {
            return;
        }
        self.member = None;
        // The metadata is another answer than the membership. Between two equal ones it says the same: a generation that was
        // left does not come back.
        let (Some(before), Some(metadata)) = (now, self.consumer.group_metadata()) else { return };
        if native::membership(&self.consumer).as_ref() == Some(&before) {
            self.member = Some((before, Arc::new(metadata)));
        }
    }

    /// Returns whether the error may be about a position outside of the log.
    fn look_at(&self, error: &KafkaError) -> Result<bool, MemberError> {
        if let Some((code, detail)) = self.consumer.client().fatal_error() {
            // The detail has the words of the code already.
            let detail = format!("{detail} ({code:?})");
            return Err(if code == RDKafkaErrorCode::FencedInstanceId {
                MemberError::Fenced(detail)
            } else {
                MemberError::Broken(detail)
            });
        }
        // The context has logged it. The client goes on by itself, or an event says what became of the partitions.
        let code = error.rdkafka_error_code();
        Ok(code == Some(RDKafkaErrorCode::AutoOffsetReset) || code == Some(RDKafkaErrorCode::OffsetOutOfRange))
    }

    fn list(
        &self,
        partitions: impl IntoIterator<Item = (Partition, Option<Position>)>,
    ) -> Result<TopicPartitionList, LogError> {
        let mut list = TopicPartitionList::new();
        for (partition, position) in partitions {
            let offset = NativeOffset::Offset(position.map_or(0, |position| position.0));
            list.add_partition_offset(&self.topic, native_partition(partition), offset)
                .map_err(|error| refused(format!("naming {} [{partition}] at {offset:?}", self.topic), &error))?;
        }
        Ok(list)
    }
}

/// Returns the message as a record with its size, unless its partition is not being read from there.
fn accepted(held: &mut BTreeMap<Partition, Reading>, message: &BorrowedMessage<'_>) -> Option<(InputRecord, usize)> {
    let partition = Partition(u32::try_from(message.partition()).ok()?);
    let offset = Offset(message.offset());
    let Some(Reading::From(next)) = held.get_mut(&partition) else { return None };
    if offset.next() <= *next {
        return None;
    }
    *next = offset.next();
    Some(record(message, partition))
}

fn refused(doing: String, error: &KafkaError) -> LogError {
    LogError::Retriable { doing, detail: error.to_string() }
}
