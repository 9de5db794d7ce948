//! The thread that reads changelogs, so that partitions are restored while others fire.
//!
//! ```text
//!   worker ── restore, stop ──→ thread: one consumer, assigned by hand
//!          ←── batches ──────── bounded: BATCHES_MAX batches of about BATCH_BYTES
//! ```
//!
//! Owns the thread, its consumer and the positions of what it reads. Never joins the group, never decides when a restore is
//! done. Keeps: the batches of a partition are in order and without gaps from the position that was asked for, and none of
//! a restore that was stopped is handed out.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::{Offset as NativeOffset, TopicPartitionList};

use super::client::PlainContext;
use super::deadline::Deadline;
use super::input::Room;
use super::probe::{client_error, native_partition};
use super::settings::{KafkaSettings, restore_config};
use crate::log::{ChangelogBatch, ChangelogRecord, LogError};
use crate::position::{Offset, Partition, Position};

/// How many records of a partition make a batch.
const BATCH_RECORDS: usize = 512;
/// How many bytes make a round of batches; one record more may exceed it.
const BATCH_BYTES: usize = 512 * 1024;
/// How many batches may wait for the worker.
const BATCHES_MAX: usize = 8;
/// How long the thread waits for records before it looks for commands.
const POLL: Duration = Duration::from_millis(10);
/// How long the thread waits for commands while it reads nothing.
const IDLE: Duration = Duration::from_millis(500);

/// How long a partition may be silent before it is read on with a new client.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// What the worker asks of the thread.
#[derive(Debug)]
enum Command {
    Start { partition: Partition, from: Position, number: u64 },
    Stop(Partition),
}

/// What the thread tells.
type Told = Result<(u64, ChangelogBatch), String>;

/// The worker's end of the thread.
pub(super) struct Restorer {
    commands: Sender<Command>,
    told: Receiver<Told>,
    thread: JoinHandle<()>,
    /// The restores that run, each with the number that its batches carry.
    running: BTreeMap<Partition, u64>,
    next_number: u64,
}

impl Restorer {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when a property is wrong or there is no thread to be had.
    pub(super) fn start(settings: &KafkaSettings) -> Result<Self, LogError> {
        let consumer = open(settings)?;
        let (commands, commands_there) = mpsc::channel();
        let (told_there, told) = mpsc::sync_channel(BATCHES_MAX);
        let reader = Reader {
            settings: settings.clone(),
            consumer,
            commands: commands_there,
            told: told_there,
            reading: BTreeMap::new(),
            changed: BTreeSet::new(),
        };
        let thread = thread::Builder::new().name("kafka-restore".to_owned()).spawn(move || reader.run());
        let thread = thread.map_err(|error| LogError::Fatal {
            doing: "starting the thread that reads changelogs".to_owned(),
            detail: error.to_string(),
        })?;
        Ok(Self { commands, told, thread, running: BTreeMap::new(), next_number: 0 })
    }

    /// Returns whether anything is being restored.
    pub(super) fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Starts reading a partition, or starts it anew from another position.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when the thread is gone.
    pub(super) fn restore(&mut self, partition: Partition, from: Position) -> Result<(), LogError> {
        let number = self.next_number;
        self.next_number += 1;
        self.commands.send(Command::Start { partition, from, number }).map_err(|_| gone())?;
        self.running.insert(partition, number);
        Ok(())
    }

    /// Stops reading a partition.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when the thread is gone.
    pub(super) fn stop(&mut self, partition: Partition) -> Result<(), LogError> {
        if self.running.remove(&partition).is_none() {
            return Ok(());
        }
        self.commands.send(Command::Stop(partition)).map_err(|_| gone())
    }

    /// Returns the batches that are there, as far as there is room.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when the thread is gone, or a changelog cannot be read.
    pub(super) fn take(&mut self, room: &mut Room) -> Result<Vec<ChangelogBatch>, LogError> {
        let mut batches = Vec::new();
        while !room.is_full() {
            match self.told.try_recv() {
                Ok(Ok((number, batch))) => {
                    if self.running.get(&batch.partition) == Some(&number) {
                        room.take(batch.records.len().max(1), size(&batch));
                        batches.push(batch);
                    }
                }
                Ok(Err(detail)) => {
                    return Err(LogError::Fatal { doing: "reading the changelog".to_owned(), detail });
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(gone()),
            }
        }
        Ok(batches)
    }

    /// Stops the thread and waits for it. May block while the client closes.
    pub(super) fn close(self) {
        let Self { commands, told, thread, .. } = self;
        // Either end tells the thread, whatever it waits for.
        drop((commands, told));
        if thread.join().is_err() {
            tracing::warn!("the thread that reads changelogs had panicked");
        }
    }
}

fn gone() -> LogError {
    LogError::Fatal {
        doing: "reading the changelog".to_owned(),
        detail: "the thread that reads it has ended; see the log above, and restart the process".to_owned(),
    }
}

fn size(batch: &ChangelogBatch) -> usize {
    batch.records.iter().map(record_size).sum()
}

fn record_size(record: &ChangelogRecord) -> usize {
    record.key.len() + record.value.as_ref().map_or(0, Bytes::len)
}

/// Makes the client that reads changelogs.
fn open(settings: &KafkaSettings) -> Result<BaseConsumer<PlainContext>, LogError> {
    let created = restore_config(settings).create_with_context(PlainContext { role: "restore" });
    created.map_err(|error| client_error("making the consumer of the changelog", &error))
}

/// A partition that is being read.
#[derive(Debug)]
struct Reading {
    number: u64,
    next: Position,
    /// Since something was last read of it.
    heard: Deadline,
}

/// The thread.
struct Reader {
    settings: KafkaSettings,
    consumer: BaseConsumer<PlainContext>,
    commands: Receiver<Command>,
    told: SyncSender<Told>,
    reading: BTreeMap<Partition, Reading>,
    /// The partitions that the consumer does not read yet as it should, or no longer.
    changed: BTreeSet<Partition>,
}

impl Reader {
    /// Reads until the worker's end is gone.
    fn run(mut self) {
        while self.obey().is_ok() {
            let read = self.assign().and_then(|()| self.read());
            let told = match read {
                Ok(batches) => batches.into_iter().try_for_each(|batch| self.told.send(Ok(batch))),
                Err(detail) => {
                    let _also_gone = self.told.send(Err(detail));
                    return;
                }
            };
            if told.is_err() {
                return;
            }
        }
    }

    /// Takes the commands that are there; waits for one while nothing is being read.
    fn obey(&mut self) -> Result<(), RecvTimeoutError> {
        loop {
            let is_idle = self.reading.is_empty() && self.changed.is_empty();
            let command = match self.commands.recv_timeout(if is_idle { IDLE } else { Duration::ZERO }) {
                Ok(command) => command,
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
            };
            let partition = match command {
                Command::Start { partition, from, number } => {
                    self.reading.insert(partition, Reading { number, next: from, heard: now() });
                    partition
                }
                Command::Stop(partition) => {
                    self.reading.remove(&partition);
                    partition
                }
            };
            self.changed.insert(partition);
        }
    }

    /// Makes the consumer read what it should; what did not change is not disturbed.
    fn assign(&mut self) -> Result<(), String> {
        let changed = mem::take(&mut self.changed);
        if changed.is_empty() {
            return Ok(());
        }
        let failed = |error: &KafkaError| format!("assigning {}: {error}", self.settings.topics.changelog);
        let assigned = self.consumer.assignment().map_err(|error| failed(&error))?;
        let (mut gone, mut new) = (TopicPartitionList::new(), TopicPartitionList::new());
        for partition in changed {
            let topic = &self.settings.topics.changelog;
            if assigned.find_partition(topic, native_partition(partition)).is_some() {
                gone.add_partition(topic, native_partition(partition));
            }
            if let Some(reading) = self.reading.get(&partition) {
                let offset = NativeOffset::Offset(reading.next.0);
                let added = new.add_partition_offset(topic, native_partition(partition), offset);
                added.map_err(|error| format!("{topic} [{partition}] at {}: {error}", reading.next))?;
            }
        }
        if gone.count() > 0 {
            self.consumer.incremental_unassign(&gone).map_err(|error| failed(&error))?;
        }
        if new.count() > 0 {
            self.consumer.incremental_assign(&new).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Reads on with a new client when a partition is silent for long. It may only wait for somebody's transaction; but after
    /// a restart of the broker one was seen that never read again, while others of the same client did.
    fn renew_if_silent(&mut self) -> Result<(), String> {
        let Some((partition, reading)) = self.reading.iter().find(|(_, reading)| reading.heard.elapsed() > SILENCE_MAX)
        else {
            return Ok(());
        };
        tracing::info!(%partition, next = %reading.next, silent = ?reading.heard.elapsed(), "restore is silent, reading on anew");
        let silent = mem::replace(&mut self.consumer, open(&self.settings).map_err(|error| error.to_string())?);
        let spawned = thread::Builder::new().name("kafka-retire".to_owned()).spawn(move || drop(silent));
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread to close a kafka consumer on, closed in place");
        }
        for reading in self.reading.values_mut() {
            reading.heard = now();
        }
        self.changed = self.reading.keys().copied().collect();
        Ok(())
    }

    /// Reads what is there, or waits a little.
    fn read(&mut self) -> Result<Vec<(u64, ChangelogBatch)>, String> {
        let mut batches = BTreeMap::new();
        let mut bytes = 0;
        let mut records = 0;
        let mut wait = if self.reading.is_empty() { Duration::ZERO } else { POLL };
        while records < BATCH_RECORDS && bytes < BATCH_BYTES {
            match self.consumer.poll(wait) {
                Some(Ok(message)) => {
                    records += 1;
                    bytes += take(&mut self.reading, &mut batches, &message);
                }
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    records += 1;
                    self.step_over_markers(&mut batches);
                }
                Some(Err(error)) => self.look_at(&error)?,
                None => break,
            }
            wait = Duration::ZERO;
        }
        self.renew_if_silent()?;
        Ok(batches.into_values().collect())
    }

    /// Notes positions that moved without a record, over markers of transactions and aborted records.
    fn step_over_markers(&mut self, batches: &mut BTreeMap<Partition, (u64, ChangelogBatch)>) {
        let Ok(list) = self.consumer.position() else { return };
        for (partition, reading) in &mut self.reading {
            let found = list
                .find_partition(&self.settings.topics.changelog, native_partition(*partition))
                .map(|element| element.offset());
            let Some(NativeOffset::Offset(offset)) = found else { continue };
            if reading.next < Position(offset) {
                reading.next = Position(offset);
                reading.heard = now();
                batch_of(batches, *partition, reading).position = reading.next;
            }
        }
    }

    /// Judges an error; the context has logged it, and the client goes on by itself after most.
    fn look_at(&self, error: &KafkaError) -> Result<(), String> {
        if let Some((code, detail)) = self.consumer.client().fatal_error() {
            return Err(format!("{detail} ({code})"));
        }
        let code = error.rdkafka_error_code();
        if code == Some(RDKafkaErrorCode::AutoOffsetReset) || code == Some(RDKafkaErrorCode::OffsetOutOfRange) {
            let reading = self.reading.iter().map(|(partition, reading)| format!("[{partition}] at {}", reading.next));
            let reading = reading.collect::<Vec<_>>().join(", ");
            return Err(format!(
                "a position is outside of topic {} (read were {reading}); records were deleted from it, which only \
                 `cleanup.policy=compact` prevents, or the topic was created anew",
                self.settings.topics.changelog
            ));
        }
        Ok(())
    }
}

/// Takes a message into the batch of its partition and returns its size; a stale one is dropped.
fn take(
    reading: &mut BTreeMap<Partition, Reading>,
    batches: &mut BTreeMap<Partition, (u64, ChangelogBatch)>,
    message: &BorrowedMessage<'_>,
) -> usize {
    let Some(partition) = u32::try_from(message.partition()).ok().map(Partition) else { return 0 };
    let Some(reading) = reading.get_mut(&partition) else { return 0 };
    let offset = Offset(message.offset());
    if offset.next() <= reading.next {
        return 0;
    }
    reading.next = offset.next();
    reading.heard = now();
    let batch = batch_of(batches, partition, reading);
    batch.position = reading.next;
    // A record without a key cannot come from us, and compaction refuses it; its place counts.
    let Some(key) = message.key().map(Bytes::copy_from_slice) else { return 0 };
    let record = ChangelogRecord { offset, key, value: message.payload().map(Bytes::copy_from_slice) };
    let bytes = record_size(&record);
    batch.records.push(record);
    bytes
}

/// Returns a deadline that only tells the time since now.
fn now() -> Deadline {
    Deadline::after(Duration::ZERO)
}

fn batch_of<'a>(
    batches: &'a mut BTreeMap<Partition, (u64, ChangelogBatch)>,
    partition: Partition,
    reading: &Reading,
) -> &'a mut ChangelogBatch {
    let empty = || (reading.number, ChangelogBatch { partition, records: Vec::new(), position: reading.next });
    &mut batches.entry(partition).or_insert_with(empty).1
}
