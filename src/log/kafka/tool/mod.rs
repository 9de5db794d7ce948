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

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::Metadata;

use self::notes::Notes;
use super::settings::base_config;
use crate::log::LogError;

/// Events taken from the client after a failure, to learn its cause; more than a failing start ever has.
const EVENTS_DRAINED_MAX: usize = 100;

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
            let number = i32::try_from(partition).unwrap_or(i32::MAX);
            let extent = self.probe.fetch_watermarks(topic, number, self.timeout);
            let (low, high) = extent.map_err(|error| LogError::Retriable {
                doing: format!("asking Kafka at {} for the extent of {topic}/{partition}", self.servers),
                detail: self.cause(&error),
            })?;
            if low < high {
                return Ok(false);
            }
        }
        Ok(true)
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
