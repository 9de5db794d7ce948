//! What librdkafka says beside its return codes: the code is "broker transport failure", the note "connection refused".
//!
//! Owns [`Notes`]. Never prints: whoever reports the failure takes the note. Keeps: the memory is bounded.

use std::sync::{Mutex, PoisonError};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// The first cause of trouble that the client noted.
#[derive(Debug, Default)]
pub struct Notes {
    first: Mutex<Option<String>>,
}

impl Notes {
    /// Returns the first note, if there is one.
    pub fn first(&self) -> Option<String> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ClientContext for Notes {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(?level, facility, message, "librdkafka");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // "All brokers are down" follows the cause and says nothing about it.
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) {
            return;
        }
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            *first = Some(reason.to_owned());
        }
    }
}

impl ConsumerContext for Notes {}
