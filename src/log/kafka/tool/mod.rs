//! A plain Kafka client for tools: it produces commands and reads answers and fired events, outside of any group.
//!
//! Owns [`Connection`], the [`producer`] of commands and the [`reader`] of topics. Never joins the consumer group of the
//! service, never commits an offset, never creates a topic.
//! Keeps: each request is bounded by the connection's time-out, and a broker that cannot be reached is an error that
//! names the bootstrap servers and what was met there.

pub mod notes;
pub mod producer;
pub mod reader;
pub(super) mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::{Metadata, MetadataTopic};

use self::notes::Notes;
use super::deadline::{Deadline, pause};
use super::settings::base_config;
use crate::log::{Extent, LogError};
use crate::position::{Partition, Position};

/// Events taken from the client after a failure, to learn its cause; more than a failing start ever has.
const EVENTS_DRAINED_MAX: usize = 100;

/// What a broker answers while the leader of a partition is being found, as for a topic that was just created.
const LEADERLESS: [RDKafkaErrorCode; 5] = [
    RDKafkaErrorCode::NotLeaderForPartition,
    RDKafkaErrorCode::LeaderNotAvailable,
    RDKafkaErrorCode::UnknownTopicOrPartition,
    RDKafkaErrorCode::UnknownTopic,
    RDKafkaErrorCode::UnknownPartition,
];
/// Pause between two looks at what is about to come.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection to the cluster.
pub struct Connection {
    config: ClientConfig,
    servers: String,
    probe: BaseConsumer<Notes>,
    timeout: Duration,
}

impl Connection {
    /// Prepares a connection with the user's librdkafka properties. `timeout` bounds each request.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when a property is refused.
    pub fn new(
        bootstrap_servers: &str,
        properties: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> Result<Self, LogError> {
        // Without a group the client asks no coordinator and needs no rights on a group.
        let config = base_config(bootstrap_servers, properties);
        let probe = config.create_with_context(Notes::default()).map_err(|error| LogError::Fatal {
            doing: "creating the Kafka client".to_owned(),
            detail: describe(&error),
        })?;
        Ok(Self { config, servers: bootstrap_servers.to_owned(), probe, timeout })
    }

    /// Returns the bootstrap servers.
    pub fn servers(&self) -> &str {
        &self.servers
    }

    /// Returns how many partitions the topic has.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when no broker answers, [`LogError::Fatal`] when the topic does not exist.
    pub fn partitions(&self, topic: &str) -> Result<u32, LogError> {
        let metadata = self.metadata()?;
        let found = metadata.topics().iter().find(|t| t.name() == topic && !t.partitions().is_empty());
        let Some(found) = found else {
            return Err(LogError::Fatal {
                doing: format!("looking for topic `{topic}` on Kafka at {}", self.servers),
                detail: "it does not exist; `punctual topics create` creates it".to_owned(),
            });
        };
        Ok(u32::try_from(found.partitions().len()).unwrap_or(u32::MAX))
    }

    pub(super) fn config(&self) -> &ClientConfig {
        &self.config
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Reads the metadata of the whole cluster: asking for one topic by name could create it.
    pub(super) fn metadata(&self) -> Result<Metadata, LogError> {
        self.probe.fetch_metadata(None, self.timeout).map_err(|error| LogError::Retriable {
            doing: format!("connecting to Kafka at {}", self.servers),
            detail: self.cause(&error),
        })
    }

    /// Returns whether no partition of the topic holds a record.
    pub(super) fn is_empty(&self, topic: &str, partitions: u32) -> Result<bool, LogError> {
        for partition in 0..partitions {
            let extent = self.extent(topic, Partition(partition))?;
            if extent.start < extent.end {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the first and the next offset of a partition. One whose leader is about to be known is asked again.
    pub(super) fn extent(&self, topic: &str, partition: Partition) -> Result<Extent, LogError> {
        let number = i32::try_from(partition.0).unwrap_or(i32::MAX);
        let deadline = Deadline::after(self.timeout);
        loop {
            let error = match self.probe.fetch_watermarks(topic, number, deadline.remaining().max(PAUSE)) {
                Ok((start, end)) => return Ok(Extent { start: Position(start), end: Position(end) }),
                Err(error) => error,
            };
            let is_passing = error.rdkafka_error_code().is_some_and(|code| LEADERLESS.contains(&code));
            if !is_passing || deadline.is_over() {
                return Err(LogError::Retriable {
                    doing: format!("asking Kafka at {} for the extent of {topic}/{partition}", self.servers),
                    detail: self.cause(&error),
                });
            }
            pause(PAUSE);
        }
    }

    /// Waits until the brokers know the topics, and each of their partitions has a leader that answers. The time-out bounds
    /// the wait for the next of them: many partitions take longer than a few.
    pub(super) fn wait_until_usable(&self, topics: &BTreeMap<&str, u32>) -> Result<(), LogError> {
        let mut deadline = Deadline::after(self.timeout);
        let mut missing = topics.len();
        loop {
            let metadata = self.metadata()?;
            let known: BTreeSet<&str> =
                metadata.topics().iter().filter(|t| !t.partitions().is_empty()).map(MetadataTopic::name).collect();
            let unknown: Vec<&str> = topics.keys().copied().filter(|topic| !known.contains(topic)).collect();
            let Some(first) = unknown.first() else {
                break;
            };
            if unknown.len() < missing {
                missing = unknown.len();
                deadline = Deadline::after(self.timeout);
            }
            if deadline.is_over() {
                return Err(LogError::Retriable {
                    doing: format!("waiting for new topics on Kafka at {}", self.servers),
                    detail: format!("topic `{first}` was created, and is not known to the brokers yet"),
                });
            }
            pause(PAUSE);
        }
        for (topic, partitions) in topics {
            for partition in 0..*partitions {
                self.extent(topic, Partition(partition))?;
            }
        }
        Ok(())
    }

    /// Returns what went wrong, as far as the client's own notes tell.
    fn cause(&self, error: &KafkaError) -> String {
        // An event that was handled looks like no event, so that the end of the queue cannot be told.
        for _ in 0..EVENTS_DRAINED_MAX {
            let _ = self.probe.poll(Duration::ZERO);
        }
        match self.probe.context().first() {
            Some(note) => note,
            None if error.rdkafka_error_code() == Some(RDKafkaErrorCode::OperationTimedOut) => {
                format!("no answer within {:?}", self.timeout)
            }
            None => describe(error),
        }
    }
}

/// Returns an error of the client as one line.
pub(super) fn describe(error: &KafkaError) -> String {
    match error.rdkafka_error_code() {
        Some(code) => describe_code(code),
        None => error.to_string(),
    }
}

/// Returns the words of a code: `Broker: Invalid replication factor`.
pub(super) fn describe_code(code: RDKafkaErrorCode) -> String {
    // The client shows `InvalidReplicationFactor (Broker: Invalid replication factor)`.
    let shown = code.to_string();
    let words = shown.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).map(str::to_owned);
    words.unwrap_or(shown)
}
