//! What the group does to its members.
//!
//! Owns the callback of the consumer, which only queues an event, so that everything happens on the worker's own stack.
//! Never assigns anything, except nothing when the consumer closes. Keeps: events are in the order of the group.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientContext, TopicPartitionList};

use super::client::{log_error, log_line};
use crate::log::LogEvent;
use crate::position::Partition;

const ROLE: &str = "consumer";

/// The context of the consumer: it queues what the group does.
#[derive(Debug, Default)]
pub(super) struct GroupContext {
    events: Mutex<VecDeque<LogEvent>>,
    is_closing: AtomicBool,
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

    /// From now on partitions are given back at once.
    pub(super) fn start_closing(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
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
