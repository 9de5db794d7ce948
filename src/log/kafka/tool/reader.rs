//! A reader of whole topics: answers, fired events.
//!
//! Owns [`Reader`]. Never joins a group and commits nothing. Keeps: it reads committed records only, and where it starts is
//! fixed when [`Reader::open`] returns, so that a command sent afterwards is answered behind that place.

use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::time::Duration;

use bytes::Bytes;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{Offset as NativeOffset, TopicPartitionList};

use super::notes::Notes;
use super::{Connection, describe};
use crate::log::LogError;
use crate::position::{Offset, Partition};
use crate::time::Timestamp;
use crate::timer::model::Header;

/// A name that the client library needs before it reads. Nothing is ever committed under it.
const GROUP: &str = "punctual-tools";

/// Where a reader starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the first record that is still there.
    Beginning,
    /// Behind the last record.
    End,
}

/// A record that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: Partition,
    /// The offset.
    pub offset: Offset,
    /// The timestamp.
    pub timestamp: Option<Timestamp>,
    /// The key.
    pub key: Option<Bytes>,
    /// The value.
    pub value: Option<Bytes>,
    /// The headers, in order.
    pub headers: Vec<Header>,
}

/// Reads all partitions of some topics.
pub struct Reader {
    /// Never dropped: closing waits for a broker that may be gone, and the tool ends anyway.
    consumer: ManuallyDrop<BaseConsumer<Notes>>,
    servers: String,
}

impl Reader {
    /// Fixes where to start and begins to read.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when a topic does not exist, [`LogError::Retriable`] when no broker answers.
    pub fn open(connection: &Connection, topics: &[&str], start: Start) -> Result<Self, LogError> {
        let mut config = connection.config().clone();
        config
            .set("group.id", GROUP)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("isolation.level", "read_committed")
            .set("auto.offset.reset", "earliest")
            .set("fetch.wait.max.ms", "50")
            .remove("group.instance.id");
        let fatal = |error: &KafkaError| LogError::Fatal {
            doing: format!("reading {} on Kafka at {}", topics.join(", "), connection.servers()),
            detail: describe(error),
        };
        let consumer: BaseConsumer<Notes> =
            config.create_with_context(Notes::default()).map_err(|error| fatal(&error))?;
        let consumer = ManuallyDrop::new(consumer);
        let mut assignment = TopicPartitionList::new();
        for (topic, partitions) in counts(connection, topics)? {
            for partition in 0..partitions {
                let extent = connection.extent(topic, Partition(partition))?;
                let from = match start {
                    Start::Beginning => extent.start,
                    Start::End => extent.end,
                };
                let number = i32::try_from(partition).unwrap_or(i32::MAX);
                assignment
                    .add_partition_offset(topic, number, NativeOffset::Offset(from.0))
                    .map_err(|error| fatal(&error))?;
            }
        }
        consumer.assign(&assignment).map_err(|error| fatal(&error))?;
        Ok(Self { consumer, servers: connection.servers().to_owned() })
    }

    /// Returns the next record, or `None` when none came within `timeout`.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when reading cannot go on: no rights, a topic was deleted.
    pub fn next(&self, timeout: Duration) -> Result<Option<Incoming>, LogError> {
        match self.consumer.poll(timeout) {
            None => Ok(None),
            Some(Ok(message)) => Ok(Some(incoming(&message))),
            Some(Err(error)) if is_passing(&error) => {
                tracing::debug!(%error, "a broker is away");
                Ok(None)
            }
            Some(Err(error)) => Err(LogError::Fatal {
                doing: format!("reading from Kafka at {}", self.servers),
                detail: describe(&error),
            }),
        }
    }

    /// Returns the first trouble that the client met, such as a broker that went away.
    pub fn trouble(&self) -> Option<String> {
        self.consumer.context().first()
    }
}

fn counts<'a>(connection: &Connection, topics: &[&'a str]) -> Result<BTreeMap<&'a str, u32>, LogError> {
    let mut counts = BTreeMap::new();
    for topic in topics {
        counts.insert(*topic, connection.partitions(topic)?);
    }
    Ok(counts)
}

/// A client recovers from these by itself; everything else needs a person.
fn is_passing(error: &KafkaError) -> bool {
    let refusals = [
        RDKafkaErrorCode::TopicAuthorizationFailed,
        RDKafkaErrorCode::UnknownTopicOrPartition,
        RDKafkaErrorCode::UnknownTopic,
        RDKafkaErrorCode::UnknownPartition,
        RDKafkaErrorCode::Authentication,
        RDKafkaErrorCode::Fatal,
    ];
    error.rdkafka_error_code().is_some_and(|code| !refusals.contains(&code))
}

fn incoming(message: &BorrowedMessage<'_>) -> Incoming {
    let headers = message.headers().map(|headers| {
        let own = |h: rdkafka::message::Header<'_, &[u8]>| Header {
            key: h.key.to_owned(),
            value: h.value.map(Bytes::copy_from_slice),
        };
        headers.iter().map(own).collect()
    });
    Incoming {
        topic: message.topic().to_owned(),
        partition: Partition(u32::try_from(message.partition()).unwrap_or(0)),
        offset: Offset(message.offset()),
        timestamp: message.timestamp().to_millis().map(Timestamp::from_millis),
        key: message.key().map(Bytes::copy_from_slice),
        value: message.payload().map(Bytes::copy_from_slice),
        headers: headers.unwrap_or_default(),
    }
}
