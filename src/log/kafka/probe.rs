//! The client that asks: extents, committed positions, topics.
//!
//! Owns a consumer that sees open transactions and never joins the group. Never reads records.
//! Keeps: each question has a bound, and an answer holds an error per partition that is looked at.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::Offset as NativeOffset;
use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::RDKafkaErrorCode;

use super::client::PlainContext;
use super::deadline::{Deadline, pause};
use super::native::{self, TopicDescription};
use super::settings::{KafkaSettings, probe_config};
use crate::log::{Extent, LogError};
use crate::position::{Partition, Position};

/// How long the broker may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for an answer that only saves time.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);
/// How long to wait for the end of a transaction that moves a position: its markers take milliseconds.
const SETTLED_PATIENCE: Duration = Duration::from_millis(200);
/// Between two looks for it.
const SETTLED_STEP: Duration = Duration::from_millis(5);
/// How many log lines and errors of the client are served at once.
const EVENTS_MAX: usize = 64;

/// A client that asks.
pub(super) struct Probe {
    consumer: BaseConsumer<PlainContext>,
}

impl Probe {
    /// Makes the client; it connects by itself.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when a property is wrong.
    pub(super) fn new(settings: &KafkaSettings) -> Result<Self, LogError> {
        let created = probe_config(settings).create_with_context(PlainContext { role: "probe" });
        let consumer = created.map_err(|error| client_error("making the client that asks", &error))?;
        Ok(Self { consumer })
    }

    /// Serves the client's log lines and errors, which would gather otherwise.
    pub(super) fn serve(&self) {
        for _ in 0..EVENTS_MAX {
            if self.consumer.poll(Duration::ZERO).is_none() {
                return;
            }
        }
    }

    /// Returns the extent of a partition, records of open transactions included.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the broker does not answer.
    pub(super) fn extent(&self, topic: &str, partition: Partition) -> Result<Extent, LogError> {
        self.extent_within(topic, partition, PATIENCE)
    }

    /// The same, for a question that only saves time.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the broker does not answer soon.
    pub(super) fn extent_soon(&self, topic: &str, partition: Partition) -> Result<Extent, LogError> {
        self.extent_within(topic, partition, SHORT_PATIENCE)
    }

    fn extent_within(&self, topic: &str, partition: Partition, patience: Duration) -> Result<Extent, LogError> {
        let ask = || self.consumer.fetch_watermarks(topic, native_partition(partition), patience);
        let answer = ask().or_else(|error| match error.rdkafka_error_code() {
            // A partition without a leader is forgotten until the client asks about its topic anew, which it does rarely.
            Some(RDKafkaErrorCode::UnknownPartition | RDKafkaErrorCode::UnknownTopic) => {
                self.consumer.fetch_metadata(Some(topic), patience).and_then(|_| ask())
            }
            Some(_) | None => Err(error),
        });
        let doing = || format!("asking for the extent of {topic} [{partition}]");
        let (start, end) = answer.map_err(|error| LogError::Retriable { doing: doing(), detail: error.to_string() })?;
        if start < 0 || end < start {
            return Err(LogError::Retriable { doing: doing(), detail: format!("the answer is {start} to {end}") });
        }
        Ok(Extent { start: Position(start), end: Position(end) })
    }

    /// Returns the group's committed position of a partition, if there is one. A transaction that has just committed may not
    /// show in it yet: this client sees open transactions, so the broker does not tell it of them.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the broker does not answer.
    pub(super) fn committed(&self, topic: &str, partition: Partition) -> Result<Option<Position>, LogError> {
        committed_within(&self.consumer, topic, &[partition], PATIENCE).map(|found| found.get(&partition).copied())
    }

    /// The same for several partitions, or none at all if the broker does not answer soon.
    pub(super) fn committed_soon(&self, topic: &str, partitions: &[Partition]) -> BTreeMap<Partition, Position> {
        committed_within(&self.consumer, topic, partitions, SHORT_PATIENCE).unwrap_or_default()
    }

    /// Describes topics, in their order.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the cluster does not answer.
    pub(super) fn describe(&self, topics: &[&str]) -> Result<Vec<TopicDescription>, LogError> {
        self.describe_within(topics, PATIENCE)
    }

    fn describe_within(&self, topics: &[&str], patience: Duration) -> Result<Vec<TopicDescription>, LogError> {
        native::describe_topics(self.consumer.client(), topics, patience).map_err(|detail| LogError::Retriable {
            doing: format!("asking about the topics {}", topics.join(", ")),
            detail,
        })
    }

    /// Returns why a topic takes no records from us, for those that do not.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when the cluster does not answer soon.
    pub(super) fn refusals(&self, topics: &[&str]) -> Result<BTreeMap<String, String>, LogError> {
        let mut refusals = BTreeMap::new();
        for (topic, description) in topics.iter().zip(self.describe_within(topics, SHORT_PATIENCE)?) {
            if let Some(reason) = refusal(topic, &description) {
                refusals.insert((*topic).to_owned(), reason);
            }
        }
        Ok(refusals)
    }
}

/// Returns the group's committed position of a partition, if there is one. The consumer reads committed records only: it is
/// told when a transaction that moves the position is not settled yet, and that is waited for a little.
///
/// # Errors
/// [`LogError::Retriable`] when the broker does not answer, or such a transaction is still open.
pub(super) fn settled<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topic: &str,
    partition: Partition,
) -> Result<Option<Position>, LogError> {
    let waited = Deadline::after(SETTLED_PATIENCE);
    loop {
        match committed_within(consumer, topic, &[partition], PATIENCE) {
            Err(LogError::Retriable { .. }) if !waited.is_over() => pause(SETTLED_STEP),
            found => return found.map(|found| found.get(&partition).copied()),
        }
    }
}

fn committed_within<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topic: &str,
    partitions: &[Partition],
    patience: Duration,
) -> Result<BTreeMap<Partition, Position>, LogError> {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for partition in partitions {
        list.add_partition(topic, native_partition(*partition));
    }
    let failed = |detail: String| LogError::Retriable {
        doing: format!("asking for the group's committed positions of {topic}"),
        detail,
    };
    let answer = consumer.committed_offsets(list, patience).map_err(|error| failed(error.to_string()))?;
    let mut found = BTreeMap::new();
    for element in answer.elements() {
        // The whole answer is Ok also when a partition has an error.
        element.error().map_err(|error| failed(format!("partition {}: {error}", element.partition())))?;
        let NativeOffset::Offset(offset) = element.offset() else { continue };
        if let (Ok(partition), 0..) = (u32::try_from(element.partition()), offset) {
            found.insert(Partition(partition), Position(offset));
        }
    }
    Ok(found)
}

fn refusal(topic: &str, description: &TopicDescription) -> Option<String> {
    match &description.error {
        // The leader may be elected at this moment; the topic is there.
        Some((RDKafkaErrorCode::LeaderNotAvailable, _)) => None,
        Some((_, detail)) => Some(format!("topic `{topic}`: {detail}")),
        None if !description.is_writable => Some(format!("topic `{topic}`: no right to write to it")),
        None => None,
    }
}

/// Returns librdkafka's number of a partition.
pub(super) fn native_partition(partition: Partition) -> i32 {
    // Kafka numbers partitions with 32 bits, signed; a larger one exists nowhere, and -2 is refused by librdkafka.
    i32::try_from(partition.0).unwrap_or(-2)
}

/// Returns the error of a client that could not be made.
pub(super) fn client_error(doing: &str, error: &rdkafka::error::KafkaError) -> LogError {
    LogError::Fatal {
        doing: doing.to_owned(),
        detail: format!("{error}; correct `kafka.bootstrap_servers` or `kafka.properties`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(error: Option<RDKafkaErrorCode>, is_writable: bool) -> TopicDescription {
        TopicDescription { id: [0; 16], partitions: 1, error: error.map(|code| (code, "why".to_owned())), is_writable }
    }

    #[test]
    fn a_topic_without_leader_is_still_there() {
        assert_eq!(refusal("t", &description(Some(RDKafkaErrorCode::LeaderNotAvailable), true)), None);
        assert_eq!(refusal("t", &description(None, true)), None);
    }

    #[test]
    fn a_missing_or_forbidden_topic_refuses_by_name() {
        let missing = description(Some(RDKafkaErrorCode::UnknownTopicOrPartition), true);
        assert_eq!(refusal("t", &missing), Some("topic `t`: why".to_owned()));
        assert_eq!(refusal("t", &description(None, false)), Some("topic `t`: no right to write to it".to_owned()));
    }
}
