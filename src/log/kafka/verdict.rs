//! What an error of Kafka means for a transaction.
//!
//! Owns the classification of error codes. Never talks to Kafka: it takes codes and flags and returns values.
//! Keeps: *aborted* is said only of what is known not to be committed; an error after the request to commit was sent is
//! *unknown*.

use rdkafka::error::{KafkaError, RDKafkaError, RDKafkaErrorCode as Code};

use crate::log::transaction::Remedy;

/// What the failed delivery of a record means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryFailure {
    /// The topic does not take this record: it is gone, we have no rights, or the record is too large or bad.
    Refused,
    /// The record waited in vain: its topic, or the whole cluster, is slow or away.
    Late,
    /// The record went with the transaction; the cause is elsewhere.
    Collateral,
    /// Something else that does not speak against the topic.
    Other,
}

/// Codes with which a topic says that it does not take a record.
const REFUSALS: &[Code] = &[
    Code::UnknownTopic,
    Code::UnknownPartition,
    Code::UnknownTopicOrPartition,
    Code::UnknownTopicId,
    Code::InvalidTopic,
    Code::TopicAuthorizationFailed,
    Code::MessageSizeTooLarge,
    Code::InvalidMessageSize,
    Code::MessageBatchTooLarge,
    Code::InvalidMessage,
    Code::InvalidRecord,
    Code::InvalidTimestamp,
    Code::PolicyViolation,
    Code::UnsupportedForMessageFormat,
    Code::UnsupportedCompressionType,
];

/// Codes with which the group says that we are no longer the member that we think.
const FENCED_MEMBER: &[Code] = &[
    Code::IllegalGeneration,
    Code::UnknownMemberId,
    Code::FencedInstanceId,
    Code::RebalanceInProgress,
    Code::FencedMemberEpoch,
    Code::StaleMemberEpoch,
];

/// Returns what the failed delivery of a record means.
pub(super) fn delivery_failure(code: Code) -> DeliveryFailure {
    if REFUSALS.contains(&code) {
        DeliveryFailure::Refused
    } else if code == Code::MessageTimedOut {
        DeliveryFailure::Late
    } else if [Code::PurgeQueue, Code::PurgeInflight, Code::InvalidDifferentRecord].contains(&code) {
        // The broker names the bad record of a batch; the others of the batch fail as *different record*.
        DeliveryFailure::Collateral
    } else {
        DeliveryFailure::Other
    }
}

/// Returns whether a topic may be the cause of a transaction's error. The coordinator refuses all partitions of a request
/// for the sake of one, and the error does not say which.
pub(super) fn may_be_topic(code: Code) -> bool {
    code == Code::OperationNotAttempted || REFUSALS.contains(&code)
}

/// An error of a transactional call, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallError {
    /// Its code.
    pub(super) code: Code,
    /// Whether the client is broken for good.
    pub(super) is_fatal: bool,
    /// Whether the transaction has failed and only an abort ends it.
    pub(super) requires_abort: bool,
    /// Whether the records were not all delivered, so that nothing was committed yet: the call is to be made again.
    pub(super) is_flush: bool,
    /// What it says.
    pub(super) detail: String,
}

impl CallError {
    /// Takes an error of rust-rdkafka apart.
    pub(super) fn of(error: &KafkaError) -> Self {
        if let KafkaError::Transaction(native) = error {
            return Self::of_native(native);
        }
        Self {
            code: error.rdkafka_error_code().unwrap_or(Code::Fail),
            is_fatal: false,
            requires_abort: false,
            is_flush: matches!(error, KafkaError::Flush(_)),
            detail: error.to_string(),
        }
    }

    fn of_native(error: &RDKafkaError) -> Self {
        Self {
            code: error.code(),
            is_fatal: error.is_fatal(),
            requires_abort: error.txn_requires_abort(),
            is_flush: false,
            detail: format!("{} ({})", error.string(), error.name()),
        }
    }
}

/// Returns what to do when a call failed before the commit was asked for.
pub(super) fn before_commit(error: &CallError) -> Remedy {
    // A producer that was fenced cannot abort; whoever fenced it has.
    if error.is_fatal { Remedy::GiveUp } else { Remedy::Abort }
}

/// Returns what to do when the call to commit failed.
pub(super) fn at_commit(error: &CallError) -> Remedy {
    if error.is_flush {
        return Remedy::Again;
    }
    // *Inconsistent* is librdkafka's own check before it sends anything: a record was not delivered. Every other error
    // may have come after the coordinator had decided.
    if error.code == Code::Inconsistent && error.requires_abort && !error.is_fatal {
        return Remedy::Abort;
    }
    Remedy::GiveUp
}

/// Returns whether a failed abort says that there is nothing to abort. When the coordinator refused every partition it has
/// no open transaction, and librdkafka asks it to end one all the same.
pub(super) fn nothing_was_open(error: &CallError) -> bool {
    error.code == Code::InvalidTransactionalState
}

/// Returns whether the group says that we are no longer its member.
pub(super) fn is_fenced_member(code: Code) -> bool {
    FENCED_MEMBER.contains(&code)
}

/// Returns whether the coordinator says that the producer's id has a new owner. It says so too of a transaction that it
/// has timed out.
pub(super) fn is_fenced_producer(code: Code) -> bool {
    [Code::Fenced, Code::ProducerFenced, Code::InvalidProducerEpoch].contains(&code)
}

/// Returns whether waiting for a predecessor's transaction, or for a broker, may help.
pub(super) fn init_may_succeed_later(error: &KafkaError) -> bool {
    matches!(error, KafkaError::Transaction(native) if !native.is_fatal())
}

#[cfg(test)]
#[path = "verdict_test.rs"]
mod tests;
