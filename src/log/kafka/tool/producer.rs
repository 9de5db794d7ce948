//! The producer of commands.
//!
//! Owns [`Producer`]. Never sends a record again by itself: a second arm behind a short timer's fire would fire twice, and
//! the idempotent producer that could tell costs half a second at its start. Keeps: a record counts as sent only when all
//! in-sync replicas have it.

use std::time::Duration;

use rdkafka::error::KafkaError;
use rdkafka::message::{Header as NativeHeader, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};

use super::waiting::wait;
use super::{Connection, LEADERLESS, PAUSE, describe};
use crate::log::LogError;
use crate::log::kafka::deadline::{Deadline, pause};
use crate::position::{Offset, Partition};
use crate::time::Timestamp;
use crate::timer::model::Header;

/// A record to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: Partition,
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The headers.
    pub headers: &'a [Header],
    /// The record's timestamp.
    pub timestamp: Timestamp,
}

/// Sends records, one at a time.
pub struct Producer {
    native: FutureProducer,
    servers: String,
    timeout: Duration,
}

impl Producer {
    /// Prepares a producer.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when the settings are refused.
    pub fn new(connection: &Connection) -> Result<Self, LogError> {
        let mut config = connection.config().clone();
        let timeout = connection.timeout().max(Duration::from_secs(1));
        // The broker's own limit is the one that counts.
        if config.get("message.max.bytes").is_none() {
            config.set("message.max.bytes", "16777216");
        }
        config
            .set("acks", "all")
            .set("retries", "0")
            .set("linger.ms", "0")
            .set("socket.timeout.ms", timeout.as_millis().to_string())
            .set("message.timeout.ms", timeout.as_millis().to_string());
        let native = config.create().map_err(|error| LogError::Fatal {
            doing: "creating the Kafka producer".to_owned(),
            detail: describe(&error),
        })?;
        Ok(Self { native, servers: connection.servers().to_owned(), timeout })
    }

    /// Sends a record and waits until it is acknowledged. Returns its offset.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when it is not acknowledged in time; it may have arrived all the same.
    pub fn send(&self, record: &Outgoing<'_>) -> Result<Offset, LogError> {
        let deadline = Deadline::after(self.timeout);
        loop {
            let failure = match self.try_send(record) {
                Ok(offset) => return Ok(offset),
                Err(failure) => failure,
            };
            // A partition without a leader refuses: nothing was written, so that sending again writes it once.
            let is_refusal = failure.rdkafka_error_code().is_some_and(|code| LEADERLESS.contains(&code));
            if !is_refusal || deadline.is_over() {
                return Err(LogError::Retriable {
                    doing: format!("sending to {}/{} on Kafka at {}", record.topic, record.partition, self.servers),
                    detail: describe(&failure),
                });
            }
            pause(PAUSE);
        }
    }

    fn try_send(&self, record: &Outgoing<'_>) -> Result<Offset, KafkaError> {
        let mut headers = OwnedHeaders::new_with_capacity(record.headers.len());
        for header in record.headers {
            headers = headers.insert(NativeHeader { key: &header.key, value: header.value.as_deref() });
        }
        let native = FutureRecord::to(record.topic)
            .partition(i32::try_from(record.partition.0).unwrap_or(i32::MAX))
            .key(record.key)
            .payload(record.value)
            .headers(headers)
            .timestamp(record.timestamp.as_millis());
        let delivery = self.native.send_result(native).map_err(|(refusal, _)| refusal)?;
        match wait(delivery) {
            Ok(Ok(delivered)) => Ok(Offset(delivered.offset)),
            Ok(Err((failure, _))) => Err(failure),
            // The producer lives as long as this call, so that it answers.
            Err(_) => Err(KafkaError::Canceled),
        }
    }
}
