//! The client that is a member of the group, and what the group does to it.
//!
//! Owns how it is made and closed, and its callback, which only queues an event, so that everything happens on the worker's
//! own stack. Never assigns anything, except nothing when the consumer closes. Keeps: events are in the order of the group.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientContext, TopicPartitionList};

use super::client::{log_error, log_line};
use super::deadline::Deadline;
use super::probe::client_error;
use super::settings::{KafkaSettings, group_config};
use crate::log::{LogError, LogEvent};
use crate::position::Partition;

const ROLE: &str = "consumer";
/// Errors that say that a broker is away.
const AWAY: &[RDKafkaErrorCode] = &[
    RDKafkaErrorCode::AllBrokersDown,
    RDKafkaErrorCode::BrokerTransportFailure,
    RDKafkaErrorCode::OperationTimedOut,
    RDKafkaErrorCode::TimedOutQueue,
];

/// Makes the client, which starts to join.
///
/// # Errors
/// [`LogError::Fatal`] when a property is wrong.
pub(super) fn open(settings: &KafkaSettings) -> Result<BaseConsumer<GroupContext>, LogError> {
    let failed = |error: &KafkaError| client_error("making the consumer of commands", error);
    let created = group_config(settings).create_with_context(GroupContext::default());
    let consumer: BaseConsumer<GroupContext> = created.map_err(|error| failed(&error))?;
    consumer.subscribe(&[&settings.topics.arm]).map_err(|error| failed(&error))?;
    Ok(consumer)
}

/// Leaves, if the member is a dynamic one, and closes the client. May block for long.
pub(super) fn close(consumer: BaseConsumer<GroupContext>) {
    consumer.context().is_closing.store(true, Ordering::Relaxed);
    // Also answers a rebalance that is still open, for which the client would wait.
    let _closing = consumer.unassign();
    drop(consumer);
}

/// The context of the consumer: it queues what the group does.
#[derive(Debug, Default)]
pub(super) struct GroupContext {
    events: Mutex<VecDeque<LogEvent>>,
    is_closing: AtomicBool,
    /// Since when the last error of a broker is not over for long.
    trouble: Mutex<Option<Deadline>>,
}

impl GroupContext {
    /// Returns whether the group did something since the last look.
    pub(super) fn has_events(&self) -> bool {
        !self.events().is_empty()
    }

    /// Returns what the group did since the last call, in order.
    pub(super) fn take_events(&self) -> VecDeque<LogEvent> {
        mem::take(&mut *self.events())
    }

    /// Returns whether brokers were away within the last `period`.
    pub(super) fn had_trouble_within(&self, period: Duration) -> bool {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.is_some_and(|trouble| trouble.elapsed() < period)
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<LogEvent>> {
        // The queue is whole between two calls, so that a panic elsewhere does not spoil it.
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for GroupContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log_line(ROLE, level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        if error.rdkafka_error_code().is_some_and(|code| AWAY.contains(&code)) {
            // Only the time since then counts; there is nothing to wait for.
            *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(Deadline::after(Duration::ZERO));
        }
        log_error(ROLE, &error, reason);
    }
}

impl ConsumerContext for GroupContext {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, what: RDKafkaRespErr, list: &mut TopicPartitionList) {
        if self.is_closing.load(Ordering::Relaxed) {
            // Nobody polls any more; without an answer the consumer would never close.
            let _closing = unassign(consumer, list);
            return;
        }
        let numbers = list.elements().into_iter().filter_map(|element| u32::try_from(element.partition()).ok());
        let partitions = numbers.map(Partition).collect();
        let event = if what == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            LogEvent::Assigned(partitions)
        } else if consumer.assignment_lost() {
            LogEvent::Lost(partitions)
        } else {
            LogEvent::Revoked(partitions)
        };
        self.events().push_back(event);
    }
}

/// Gives partitions back, in the way of the group's protocol.
///
/// # Errors
/// When the client refuses.
pub(super) fn unassign(consumer: &BaseConsumer<GroupContext>, list: &TopicPartitionList) -> Result<(), KafkaError> {
    match consumer.rebalance_protocol() {
        RebalanceProtocol::Cooperative => consumer.incremental_unassign(list),
        RebalanceProtocol::None | RebalanceProtocol::Eager => consumer.unassign(),
    }
}
