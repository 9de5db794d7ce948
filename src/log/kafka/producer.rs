//! The transactional clients of librdkafka.
//!
//! Owns [`Line`], on which the order of a transaction and the turns of the producers run, and [`TransactionalProducer`], a
//! client with a transactional id. Never decides in which order calls are made, nor what follows from a failure.
//! Keeps: every call has a bound, and reports are entered while it waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header as NativeHeader, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use super::deadline::{self, Deadline};
use super::positions::PositionSender;
use super::probe::{Probe, client_error, native_partition};
use super::report::ReportContext;
use super::settings::{KafkaSettings, MESSAGE_TIMEOUT, TRANSACTION_TIMEOUT, producer_config};
use super::verdict::{
    CallError, DeliveryFailure, at_commit, before_commit, delivery_failure, init_may_succeed_later, is_fenced_member,
    is_fenced_producer, may_be_topic, nothing_was_open,
};
use crate::log::transaction::{AbortFound, CallFailure, Cluster, Remedy};
use crate::log::{Committed, Destination, Emission, LogError};

/// How long an abort may take before the producer is given up.
const ABORT_PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at delivery reports. rust-rdkafka's `poll` spins for its last millisecond, which would take the core
/// that the broker needs.
const DRAIN_STEP: Duration = Duration::from_micros(150);
/// After this time without an end, the cluster is asked whether the topics are still there.
const ASK_AFTER: Duration = Duration::from_millis(250);
/// Between two calls of an abort that cannot go on yet.
const ABORT_STEP: Duration = Duration::from_millis(10);

/// Why a destination takes no records that the settings give no topic.
const NO_TOPIC: &str = "no topic is configured";

/// A line to the cluster.
pub(super) struct Line<'a> {
    /// How to reach it, and the names of the topics.
    pub(super) settings: &'a KafkaSettings,
    /// Who can be asked.
    pub(super) probe: &'a Probe,
}

/// What the broker checks before it takes a transaction.
pub(super) struct Fence<'a> {
    /// The next command to read, of every assigned partition.
    pub(super) positions: TopicPartitionList,
    /// Who we are in the group.
    pub(super) group: &'a Arc<ConsumerGroupMetadata>,
}

/// A client that writes transactions.
pub(super) struct TransactionalProducer {
    producer: Arc<BaseProducer<ReportContext>>,
    positions: PositionSender,
}

impl<'a> Cluster for Line<'a> {
    type Client = TransactionalProducer;
    type Fence = Fence<'a>;

    fn make(&self, number: usize) -> Result<TransactionalProducer, LogError> {
        let created = producer_config(self.settings, number).create_with_context(ReportContext::default());
        let producer: BaseProducer<ReportContext> =
            created.map_err(|error| client_error("making a transactional producer", &error))?;
        Ok(TransactionalProducer { producer: Arc::new(producer), positions: PositionSender::start()? })
    }

    fn init(&self, client: &TransactionalProducer) -> Result<bool, LogError> {
        client.serve();
        match client.producer.init_transactions(Duration::ZERO) {
            Ok(()) => Ok(true),
            Err(error) if init_may_succeed_later(&error) => Ok(false),
            Err(error) => Err(LogError::Fatal {
                doing: "taking over a transactional id".to_owned(),
                detail: format!(
                    "{}; the user needs the rights Write and Describe on the transactional ids that start with `{}-`",
                    CallError::of(&error).detail,
                    self.settings.group
                ),
            }),
        }
    }

    /// On a thread of its own, since that can take its time.
    fn retire(&self, client: TransactionalProducer) {
        let spawned = thread::Builder::new().name("kafka-retire".to_owned()).spawn(move || drop(client));
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread to retire a kafka producer on, retired in place");
        }
    }

    fn begin(&self, client: &TransactionalProducer) -> Result<(), String> {
        client.serve();
        client.context().start();
        client.producer.begin_transaction().map_err(|error| CallError::of(&error).detail)
    }

    fn send(&self, client: &TransactionalProducer, emission: &Emission) -> Result<(), CallFailure> {
        let to = emission.to;
        let Some(topic) = self.settings.topics.name(to) else {
            client.context().report().refuse(to, NO_TOPIC.to_owned());
            return Err(CallFailure::abort(format!("sending a record to {to}: {NO_TOPIC}")));
        };
        let number = client.context().report().enter(to);
        let mut record = record(emission, topic, number);
        let waited = Deadline::after(MESSAGE_TIMEOUT);
        loop {
            let Err((error, returned)) = client.producer.send(record) else { return Ok(()) };
            let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
            if code == RDKafkaErrorCode::QueueFull && !waited.is_over() {
                record = returned;
                client.serve();
                deadline::pause(DRAIN_STEP);
                continue;
            }
            if delivery_failure(code) == DeliveryFailure::Refused {
                client.context().report().refuse(to, code.to_string());
            }
            return Err(CallFailure::abort(format!("sending a record to {to}: {error}")));
        }
    }

    fn drain(&self, client: &TransactionalProducer) -> Result<(), CallFailure> {
        let waited = Deadline::after(TRANSACTION_TIMEOUT);
        let mut ask_after = ASK_AFTER;
        let failed = |detail| Err(CallFailure::abort(detail));
        while client.serve() > 0 {
            if let Some(detail) = client.context().report().failure() {
                return failed(detail);
            }
            if let Some((code, detail)) = client.producer.client().fatal_error() {
                let detail = format!("delivering records: {detail} ({code})");
                return Err(CallFailure { remedy: Remedy::GiveUp, ..CallFailure::abort(detail) });
            }
            if waited.is_over() {
                return failed("records were not delivered within the time of a transaction".to_owned());
            }
            if ask_after <= waited.elapsed() {
                // librdkafka would go on trying a topic that was deleted until its message timeout.
                ask_after *= 4;
                let waiting = client.context().report().waiting();
                let refusals = self.refusals(&waiting).unwrap_or_default();
                let found = !refusals.is_empty();
                for (to, reason) in refusals {
                    client.context().report().refuse(to, reason);
                }
                if found {
                    continue;
                }
            }
            deadline::pause(DRAIN_STEP);
        }
        client.context().report().failure().map_or(Ok(()), failed)
    }

    fn send_positions(&self, client: &TransactionalProducer, fence: &Fence<'a>) -> Result<(), CallFailure> {
        let doing = "sending the positions of commands";
        let Some(sent) = client.positions.send(&client.producer, &fence.positions, fence.group) else {
            let detail = format!("{doing}: no answer, the group's coordinator may have moved");
            return Err(CallFailure { remedy: Remedy::GiveUp, ..CallFailure::abort(detail) });
        };
        sent.map_err(|error| {
            let error = CallError::of(&error);
            let cause = if is_fenced_member(error.code) { "no longer this member of the group: " } else { "" };
            CallFailure {
                remedy: before_commit(&error),
                may_be_topic: may_be_topic(error.code),
                detail: format!("{doing}: {cause}{}", error.detail),
            }
        })
    }

    fn commit(&self, client: &TransactionalProducer, patience: Duration) -> Result<Committed, CallFailure> {
        client.serve();
        let answer = client.producer.commit_transaction(patience);
        client.serve();
        match answer {
            Ok(()) => Ok(client.context().report().committed()),
            Err(error) => {
                let error = CallError::of(&error);
                Err(CallFailure { remedy: at_commit(&error), may_be_topic: false, detail: error.detail })
            }
        }
    }

    fn abort(&self, client: &TransactionalProducer) -> Result<AbortFound, String> {
        let waited = Deadline::after(ABORT_PATIENCE);
        loop {
            // The abort waits for delivery reports, and only polling serves them: until they are in, call it in slices.
            let patience = if client.serve() > 0 { ABORT_STEP } else { waited.remaining() };
            let Err(error) = client.producer.abort_transaction(patience) else {
                client.serve();
                return Ok(AbortFound::Transaction);
            };
            let is_retriable = matches!(&error, KafkaError::Transaction(native) if native.is_retriable());
            let error = CallError::of(&error);
            if nothing_was_open(&error) {
                return Ok(AbortFound::Nothing);
            }
            if !is_retriable || waited.is_over() {
                return Err(error.detail);
            }
            deadline::pause(ABORT_STEP);
        }
    }

    fn refused(&self, client: &TransactionalProducer) -> BTreeMap<Destination, String> {
        client.context().report().refused()
    }

    fn is_troubled(&self, client: &TransactionalProducer) -> bool {
        client.context().is_troubled()
    }

    fn is_fenced(&self, client: &TransactionalProducer) -> bool {
        client.producer.client().fatal_error().is_some_and(|(code, _)| is_fenced_producer(code))
    }

    fn refusals(&self, destinations: &BTreeSet<Destination>) -> Option<BTreeMap<Destination, String>> {
        let named = |to: &Destination| self.settings.topics.name(*to);
        let topics: Vec<&str> = destinations.iter().filter_map(named).collect();
        let refusals = if topics.is_empty() { BTreeMap::new() } else { self.probe.refusals(&topics).ok()? };
        let reason = |to: &Destination| match named(to) {
            Some(topic) => refusals.get(topic).cloned(),
            None => Some(NO_TOPIC.to_owned()),
        };
        Some(destinations.iter().filter_map(|to| Some((*to, reason(to)?))).collect())
    }

    fn now(&self) -> Duration {
        deadline::now()
    }

    fn pause(&self, moment: Duration) {
        deadline::pause(moment);
    }
}

impl TransactionalProducer {
    /// Serves delivery reports, log lines and errors; returns how many records and events are left.
    pub(super) fn serve(&self) -> i32 {
        let mut left = self.producer.in_flight_count();
        while left > 0 {
            self.producer.poll(Duration::ZERO);
            let now_left = self.producer.in_flight_count();
            if left <= now_left {
                return now_left;
            }
            left = now_left;
        }
        left
    }

    fn context(&self) -> &ReportContext {
        self.producer.client().context()
    }
}

fn record<'a>(emission: &'a Emission, topic: &'a str, number: usize) -> BaseRecord<'a, [u8], [u8], usize> {
    let mut record = BaseRecord::with_opaque_to(topic, number);
    record.partition = emission.partition.map(native_partition);
    record.key = emission.key.as_deref();
    record.payload = emission.value.as_deref();
    record.timestamp = emission.timestamp.map(crate::time::Timestamp::as_millis);
    if !emission.headers.is_empty() {
        let mut headers = OwnedHeaders::new_with_capacity(emission.headers.len());
        for header in &emission.headers {
            headers = headers.insert(NativeHeader { key: &header.key, value: header.value.as_deref() });
        }
        record.headers = Some(headers);
    }
    record
}
