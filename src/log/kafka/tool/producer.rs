//! The producer of commands.
//!
//! Owns [`Producer`]. Never sends a record again by itself: a second arm behind a short timer's fire would fire twice, and
//! the idempotent producer that could tell costs half a second at its start. Keeps: a record counts as sent only when all
//! in-sync replicas have it.

use std::time::Duration;

use rdkafka::message::{Header as NativeHeader, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};

use super::waiting::wait;
use super::{Connection, describe};
use crate::log::LogError;
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
        Ok(Self { native, servers: connection.servers().to_owned() })
    }

    /// Sends a record and waits until it is acknowledged. Returns its offset.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when it is not acknowledged in time; it may have arrived all the same.
    pub fn send(&self, record: &Outgoing<'_>) -> Result<Offset, LogError> {
        let error = |detail: String| LogError::Retriable {
            doing: format!("sending to {}/{} on Kafka at {}", record.topic, record.partition, self.servers),
            detail,
        };
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
        let delivery = self.native.send_result(native).map_err(|(refusal, _)| error(describe(&refusal)))?;
        match wait(delivery) {
            Ok(Ok(delivered)) => Ok(Offset(delivered.offset)),
            Ok(Err((failure, _))) => Err(error(describe(&failure))),
            Err(_) => Err(error("the producer was closed".to_owned())),
        }
    }
}
