//! What all clients have in common: their log lines and errors.
//!
//! Owns the way from librdkafka's log to ours, and [`PlainContext`] for clients that need no more. Never decides what an
//! error means. Keeps: a line names the client that it came from.

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::throttle;

/// The context of a client that only logs.
#[derive(Clone, Debug)]
pub(super) struct PlainContext {
    /// What the client is for.
    pub(super) role: &'static str,
}

impl ClientContext for PlainContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log_line(self.role, level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        log_error(self.role, &error, reason);
    }
}

impl ConsumerContext for PlainContext {}

/// What librdkafka warns of although it is handled: a coordinator that is not there yet (it tries again), a failed transaction
/// (the worker tells it with its consequence), the last assignment of a consumer that is closed.
const HANDLED: [&str; 3] = ["GETPID", "TXNERR", "ASSIGN"];

/// Logs a line of librdkafka.
pub(super) fn log_line(role: &str, level: RDKafkaLogLevel, facility: &str, message: &str) {
    // The user's properties go to every client, so that each warns of those for the other kind.
    let is_expected = facility == "CONFWARN" && message.contains("will be ignored by this");
    let level = if is_expected { RDKafkaLogLevel::Debug } else { level };
    match level {
        RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning if HANDLED.contains(&facility) => {
            tracing::debug!(client = role, facility, message, "kafka client handles a fault");
        }
        RDKafkaLogLevel::Emerg
        | RDKafkaLogLevel::Alert
        | RDKafkaLogLevel::Critical
        | RDKafkaLogLevel::Error
        | RDKafkaLogLevel::Warning => {
            if let Some(left_out) = throttle::turn(role, facility) {
                tracing::warn!(client = role, facility, message, left_out, "kafka client warns");
            }
        }
        RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info | RDKafkaLogLevel::Debug => {
            tracing::debug!(client = role, facility, message, "kafka client says");
        }
    }
}

/// Logs an error that concerns a whole client, such as a broker that went away.
pub(super) fn log_error(role: &str, error: &KafkaError, reason: &str) {
    if error.rdkafka_error_code() == Some(RDKafkaErrorCode::PartitionEOF) {
        // How the reader of a changelog learns that it has stepped over the last marker.
        return;
    }
    if let Some(left_out) = throttle::turn(role, &format!("{:?}", error.rdkafka_error_code())) {
        tracing::warn!(client = role, %error, reason, left_out, "kafka client reports an error");
    }
}
