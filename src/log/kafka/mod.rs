//! The log on Kafka: one worker's consumer, producers and restore thread.
//!
//! ```text
//!                 ┌─ consumer   reads commands, is the member of the group
//!   KafkaLog ─────┼─ producer ─ report   the clients that `log::transaction` writes with
//!   (the seam)    ├─ restore    reads changelogs on a thread of its own
//!                 └─ probe      asks: extents, committed positions, topics
//!
//!   beside it: tool ─ topics    for people: commands and answers from outside; topics created and checked
//! ```
//!
//! Owns everything that talks to Kafka; the only user of rdkafka in the crate. Never knows a store or a timer.
//! Keeps: a transaction is fenced by its positions and by the generation that was captured after the last poll
//! (INV-LOG-1); every call has a bound.

mod client;
mod consumer;
mod deadline;
mod input;
#[expect(
    unsafe_code,
    reason = "rust-rdkafka does not offer these calls of librdkafka; each block says why it is sound"
)]
mod native;
mod patrol;
mod positions;
mod probe;
mod producer;
mod rebalance;
mod report;
mod restore;
pub mod settings;
mod throttle;
pub mod tool;
pub mod topics;
mod verdict;

use std::mem;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use self::consumer::{GroupConsumer, MemberError};
use self::deadline::Deadline;
use self::input::Room;
use self::patrol::Patrol;
use self::probe::Probe;
use self::producer::{Fence, Line, TransactionalProducer};
use self::restore::Restorer;
use self::settings::{KafkaSettings, Topics};
use super::transaction::rotation::Producers;
use super::{Aborted, CommitOutcome, Extent, FencingPosition, Log, LogError, LogEvent, TopicIds, Transaction};
use crate::position::{Partition, Position};

/// How long a poll waits at a time while something is being restored, so that batches are not late.
const RESTORE_SLICE: Duration = Duration::from_millis(3);
/// How long closing may take before it is left to a thread of its own.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// A worker's end of Kafka.
pub struct KafkaLog {
    settings: KafkaSettings,
    topics: Topics,
    partitions: u32,
    /// Set when the member was fenced and joined anew; fenced again before it is over, it has a rival.
    last_fenced: Option<Deadline>,
    /// Present until the log is dropped.
    clients: Option<Clients>,
    /// A partition's position may be outside of the log, and it is not known yet which.
    is_out_of_range: bool,
    patrol: Patrol,
}

/// The clients; they are closed under a watchdog.
struct Clients {
    consumer: GroupConsumer,
    producers: Producers<TransactionalProducer>,
    restorer: Restorer,
    probe: Probe,
}

impl KafkaLog {
    /// Connects: takes the transactional ids over, which settles what a predecessor left open, then joins the group.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the cluster does not answer in time, [`LogError::Fatal`] when a setting is wrong or a
    /// right is missing.
    pub fn connect(settings: &KafkaSettings) -> Result<Self, LogError> {
        let probe = Probe::new(settings)?;
        topic_ids(&probe, &settings.topics, settings.partitions)?;
        let producers = Producers::new(&Line { settings, probe: &probe })?;
        let restorer = Restorer::start(settings)?;
        let consumer = GroupConsumer::join(settings)?;
        Ok(Self {
            settings: settings.clone(),
            topics: settings.topics.clone(),
            partitions: settings.partitions,
            last_fenced: None,
            clients: Some(Clients { consumer, producers, restorer, probe }),
            is_out_of_range: false,
            patrol: Patrol::new(),
        })
    }

    /// Replaces a fenced member by a new one, which takes the instance id back; what it held is lost.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when the client is broken, or there is a rival.
    fn join_anew(&mut self, error: MemberError, events: &mut Vec<LogEvent>) -> Result<(), LogError> {
        let doing = || format!("being the member `{}` of the group", self.settings.instance);
        let detail = match error {
            MemberError::Broken(detail) => format!("{detail}; restart the process"),
            MemberError::Fenced(detail) if self.last_fenced.as_ref().is_some_and(|last| !last.is_over()) => {
                format!(
                    "{detail}; another process joins with this instance id again and again: give each process an `instance` \
                     of its own"
                )
            }
            MemberError::Fenced(detail) => {
                tracing::warn!(detail, "fenced by a member with this instance id, joining anew");
                // It takes a session to be fenced by oneself again: brokers that restart over and over are no rival.
                self.last_fenced = Some(Deadline::after(self.settings.session_timeout));
                let new = GroupConsumer::join(&self.settings)?;
                let clients = self.clients();
                let held = clients.consumer.held();
                let old = mem::replace(&mut clients.consumer, new);
                if !held.is_empty() {
                    events.push(LogEvent::Lost(held));
                }
                retire(old);
                return Ok(());
            }
        };
        Err(LogError::Fatal { doing: doing(), detail })
    }

    fn clients(&mut self) -> &mut Clients {
        self.clients.as_mut().expect("the clients are there until the log is dropped")
    }

    fn probe(&self) -> &Probe {
        &self.clients.as_ref().expect("the clients are there until the log is dropped").probe
    }

    /// Finds the partitions whose position is outside of the log, and reads the others on.
    fn find_out_of_range(&mut self, events: &mut Vec<LogEvent>) {
        let topic = self.topics.arm.clone();
        let Clients { consumer, probe, .. } = self.clients();
        let mut fallen = Vec::new();
        for (partition, next) in consumer.reading() {
            match probe.extent(&topic, partition) {
                Ok(extent) if next < extent.start || extent.end < next => fallen.push(partition),
                Ok(_) => {}
                // Asked again with the next poll.
                Err(error) => {
                    tracing::warn!(%partition, %error, "cannot tell whether the position is still in the log");
                    return;
                }
            }
        }
        let restarted = consumer.restart_readers(&fallen);
        events.extend(fallen.into_iter().map(LogEvent::OutOfRange));
        match restarted {
            Ok(()) => self.is_out_of_range = false,
            Err(error) => tracing::warn!(%error, "cannot start reading commands again"),
        }
    }
}

impl Log for KafkaLog {
    fn poll(&mut self, timeout: Duration, records_max: usize, bytes_max: usize) -> Result<Vec<LogEvent>, LogError> {
        let mut events = Vec::new();
        let waited = Deadline::after(timeout);
        if let Some(Clients { consumer, producers, probe, .. }) = &mut self.clients {
            for client in producers.clients() {
                client.serve();
            }
            probe.serve();
            self.patrol.look(&self.topics.arm, consumer, probe);
        }
        loop {
            let Clients { consumer, restorer, .. } = self.clients();
            let mut room = Room { records: records_max, bytes: bytes_max };
            let mut wait = waited.remaining();
            if restorer.is_running() {
                // Half of the room each, so that neither restoring nor reading starves the other.
                room = Room { records: records_max.div_ceil(2), bytes: bytes_max.div_ceil(2) };
                wait = wait.min(RESTORE_SLICE);
            }
            events.extend(restorer.take(&mut room.clone())?.into_iter().map(LogEvent::Changelog));
            if !events.is_empty() {
                wait = Duration::ZERO;
            }
            match consumer.poll(wait, &mut room, &mut events) {
                Ok(polled) => self.is_out_of_range |= polled.is_out_of_range,
                Err(error) => self.join_anew(error, &mut events)?,
            }
            if self.is_out_of_range {
                self.find_out_of_range(&mut events);
            }
            if !events.is_empty() || waited.is_over() {
                return Ok(events);
            }
        }
    }

    fn accept(&mut self, partitions: &[Partition]) -> Result<(), LogError> {
        let known = self.probe().committed_soon(&self.topics.arm, partitions);
        self.clients().consumer.accept(partitions, &known)
    }

    fn release(&mut self, partitions: &[Partition]) -> Result<(), LogError> {
        let Clients { consumer, restorer, .. } = self.clients();
        for partition in partitions {
            restorer.stop(*partition)?;
        }
        consumer.release(partitions)
    }

    fn fencing_position(&mut self, partition: Partition) -> Result<FencingPosition, LogError> {
        // Where a changelog holds the position, the group's only fences: one that a transaction is about to move will do.
        let found = if partition.0 < self.partitions {
            self.probe().committed(&self.topics.arm, partition)?
        } else {
            self.clients().consumer.settled(partition)?
        };
        if let Some(position) = found {
            return Ok(FencingPosition { position, committed: true });
        }
        let start = self.probe().extent(&self.topics.arm, partition)?.start;
        Ok(FencingPosition { position: start, committed: false })
    }

    fn input_extent(&mut self, partition: Partition) -> Result<Extent, LogError> {
        self.probe().extent(&self.topics.arm, partition)
    }

    fn changelog_extent(&mut self, partition: Partition) -> Result<Extent, LogError> {
        self.probe().extent(&self.topics.changelog, partition)
    }

    fn topic_ids(&mut self) -> Result<TopicIds, LogError> {
        topic_ids(self.probe(), &self.topics, self.partitions)
    }

    fn restore(&mut self, partition: Partition, from: Position) -> Result<(), LogError> {
        self.clients().restorer.restore(partition, from)
    }

    fn stop_restore(&mut self, partition: Partition) -> Result<(), LogError> {
        self.clients().restorer.stop(partition)
    }

    fn consume(&mut self, partition: Partition, from: Position) -> Result<(), LogError> {
        self.clients().consumer.consume(partition, from)
    }

    fn pause(&mut self, partition: Partition) -> Result<(), LogError> {
        self.clients().consumer.pause(partition)
    }

    fn position(&self, partition: Partition) -> Option<Position> {
        self.clients.as_ref().and_then(|clients| clients.consumer.position(partition))
    }

    fn commit(&mut self, transaction: &Transaction) -> CommitOutcome {
        let Some(Clients { consumer, producers, probe, .. }) = &mut self.clients else {
            return aborted("the log is closed".to_owned());
        };
        let fence = match consumer.fence(&transaction.positions) {
            Ok((positions, group)) => Fence { positions, group },
            Err(detail) => return aborted(detail),
        };
        producers.commit(&Line { settings: &self.settings, probe }, transaction, &fence)
    }

    fn rebuild(&mut self) -> Result<(), LogError> {
        let Some(Clients { producers, probe, .. }) = &mut self.clients else { return Ok(()) };
        producers.rebuild(&Line { settings: &self.settings, probe })
    }
}

impl Drop for KafkaLog {
    fn drop(&mut self) {
        let Some(Clients { consumer, producers, restorer, probe }) = self.clients.take() else { return };
        let (done, is_done) = mpsc::channel::<()>();
        // librdkafka can block here for ever, for instance when the group's coordinator is away.
        let spawned = thread::Builder::new().name("kafka-close".to_owned()).spawn(move || {
            consumer.close();
            restorer.close();
            drop((producers, probe, done));
        });
        match spawned {
            Ok(_detached) => {
                if is_done.recv_timeout(CLOSE_PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                    tracing::warn!(after = ?CLOSE_PATIENCE, "the kafka clients do not close, left behind");
                }
            }
            Err(error) => tracing::warn!(%error, "no thread to close the kafka clients on, closed in place"),
        }
    }
}

/// Closes a consumer that is no longer of use, on a thread of its own, since that can take its time.
fn retire(consumer: GroupConsumer) {
    let spawned = thread::Builder::new().name("kafka-retire".to_owned()).spawn(move || consumer.close());
    if let Err(error) = spawned {
        tracing::warn!(%error, "no thread to close a kafka consumer on, closed in place");
    }
}

/// Returns the ids of the topics that hold state.
fn topic_ids(probe: &Probe, topics: &Topics, partitions: u32) -> Result<TopicIds, LogError> {
    let doing = || "asking for the topics' ids".to_owned();
    let names = [topics.arm.as_str(), topics.changelog.as_str()];
    let described = probe.describe(&names)?;
    for (topic, description) in names.iter().zip(&described) {
        if let Some((_, detail)) = &description.error {
            return Err(LogError::Retriable { doing: doing(), detail: format!("topic `{topic}`: {detail}") });
        }
    }
    let [arm, changelog] = described.as_slice() else {
        return Err(LogError::Retriable { doing: doing(), detail: "the answer is incomplete".to_owned() });
    };
    if u32::try_from(changelog.partitions) != Ok(partitions) {
        let detail = format!(
            "topic `{}` has {} partitions instead of {partitions}: the partition of every timer depends on their number; \
             create the topic anew with {partitions}, or restore the cluster",
            topics.changelog, changelog.partitions
        );
        return Err(LogError::Fatal { doing: doing(), detail });
    }
    Ok(TopicIds { arm: arm.id, changelog: changelog.id })
}

fn aborted(detail: String) -> CommitOutcome {
    CommitOutcome::Aborted(Aborted { detail, ..Aborted::default() })
}
