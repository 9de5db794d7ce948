//! One transactional producer, and the order that fences.
//!
//! ```text
//! begin → send every record → drain → send the positions → commit → committed
//!   │          │                │            │               └─────→ unknown
//!   └──────────┴────────────────┴────────────┴──→ abort ──→ aborted, or unknown when the abort fails
//! ```
//!
//! Owns a client with a transactional id. Never begins before the outcome of the transaction before is known.
//! Keeps: no record is under way when the positions are sent (INV-LOG-1). Only they are checked against the group's
//! generation; a record that lands behind them would not be fenced.

use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header as NativeHeader, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use super::deadline::{Deadline, pause};
use super::probe::{Probe, client_error, native_partition};
use super::report::ReportContext;
use super::settings::{KafkaSettings, MESSAGE_TIMEOUT, SOCKET_TIMEOUT, TRANSACTION_TIMEOUT, Topics, producer_config};
use super::verdict::{
    CallError, DeliveryFailure, Remedy, at_commit, before_commit, delivery_failure, is_fenced_member,
    is_fenced_producer, may_be_topic, nothing_was_open,
};
use crate::log::{Aborted, CommitOutcome, Destination, Emission, LogError, Transaction};

/// How long a commit may take before its outcome is called unknown: longer than the broker keeps a transaction open and
/// than a failed request takes to be sent again.
const COMMIT_PATIENCE: Duration = Duration::from_secs(25);
/// How long an abort may take before the producer is given up.
const ABORT_PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at delivery reports. rust-rdkafka's `poll` spins for its last millisecond, which would take the core
/// that the broker needs.
const DRAIN_STEP: Duration = Duration::from_micros(150);
/// After this time without an end, the cluster is asked whether the topics are still there.
const ASK_AFTER: Duration = Duration::from_millis(250);
/// Between two calls of an abort that cannot go on yet.
const ABORT_STEP: Duration = Duration::from_millis(10);

/// Where records go, and who knows about it.
pub(super) struct Route<'a> {
    /// The names of the topics.
    pub(super) topics: &'a Topics,
    /// Who can be asked about them.
    pub(super) probe: &'a Probe,
}

/// What the broker checks before it takes the transaction.
pub(super) struct Fence<'a> {
    /// The next command to read, of every assigned partition.
    pub(super) positions: &'a TopicPartitionList,
    /// Who we are in the group.
    pub(super) group: &'a ConsumerGroupMetadata,
}

/// How a transaction ended.
pub(super) struct Ending {
    /// For the worker.
    pub(super) outcome: CommitOutcome,
    /// Whether the producer may write the next one.
    pub(super) is_sound: bool,
    /// Whether somebody else has taken the producer's id over, or the broker has timed the transaction out.
    pub(super) is_fenced: bool,
}

/// Why a step failed.
struct StepError {
    remedy: Remedy,
    /// Whether a topic may be the cause, which the error does not name.
    may_be_topic: bool,
    detail: String,
}

impl StepError {
    fn abort(detail: String) -> Self {
        Self { remedy: Remedy::Abort, may_be_topic: false, detail }
    }

    fn of(doing: &str, error: &KafkaError) -> Self {
        let error = CallError::of(error);
        let cause = if is_fenced_member(error.code) { "no longer this member of the group: " } else { "" };
        Self {
            remedy: before_commit(&error),
            may_be_topic: may_be_topic(error.code),
            detail: format!("{doing}: {cause}{}", error.detail),
        }
    }
}

/// A client that writes transactions.
pub(super) struct TransactionalProducer {
    producer: BaseProducer<ReportContext>,
}

impl TransactionalProducer {
    /// Makes the client; it connects by itself.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when a property is wrong.
    pub(super) fn new(settings: &KafkaSettings, number: usize) -> Result<Self, LogError> {
        let created = producer_config(settings, number).create_with_context(ReportContext::default());
        let producer = created.map_err(|error| client_error("making a transactional producer", &error))?;
        Ok(Self { producer })
    }

    /// Fences whoever had this transactional id and settles what they left open. When it takes longer than `patience` it
    /// goes on by itself and is to be called again.
    ///
    /// # Errors
    /// What librdkafka says.
    pub(super) fn init(&self, patience: Duration) -> Result<(), KafkaError> {
        self.serve();
        self.producer.init_transactions(patience)
    }

    /// Writes a transaction: all of it, or nothing, or it is not known.
    pub(super) fn write(&self, transaction: &Transaction, route: &Route<'_>, fence: &Fence<'_>) -> Ending {
        self.serve();
        self.context().start();
        if let Err(error) = self.producer.begin_transaction() {
            let detail = StepError::of("beginning a transaction", &error).detail;
            return Ending { outcome: aborted(detail), is_sound: false, is_fenced: false };
        }
        match self.send_and_fence(transaction, route, fence) {
            Ok(()) => self.commit(route),
            Err(error) => self.end_failed(error, route),
        }
    }

    fn send_and_fence(&self, transaction: &Transaction, route: &Route<'_>, fence: &Fence<'_>) -> Result<(), StepError> {
        for emission in &transaction.emissions {
            self.send(emission, route.topics)?;
        }
        self.drain(route)?;
        let sent = self.producer.send_offsets_to_transaction(fence.positions, fence.group, TRANSACTION_TIMEOUT);
        sent.map_err(|error| StepError::of("sending the positions of commands", &error))
    }

    fn send(&self, emission: &Emission, topics: &Topics) -> Result<(), StepError> {
        let to = emission.to;
        let Some(topic) = topics.name(to) else {
            let reason = "no topic is configured".to_owned();
            self.context().report().refuse(to, reason.clone());
            return Err(StepError::abort(format!("sending a record to {to}: {reason}")));
        };
        let number = self.context().report().enter(to);
        let mut record = record(emission, topic, number);
        let waited = Deadline::after(MESSAGE_TIMEOUT);
        loop {
            let Err((error, returned)) = self.producer.send(record) else { return Ok(()) };
            let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
            if code == RDKafkaErrorCode::QueueFull && !waited.is_over() {
                record = returned;
                self.serve();
                pause(DRAIN_STEP);
                continue;
            }
            if delivery_failure(code) == DeliveryFailure::Refused {
                self.context().report().refuse(to, code.to_string());
            }
            return Err(StepError::abort(format!("sending a record to {to}: {error}")));
        }
    }

    /// Waits until every record is delivered, or one is not.
    fn drain(&self, route: &Route<'_>) -> Result<(), StepError> {
        let waited = Deadline::after(TRANSACTION_TIMEOUT);
        let mut ask_after = ASK_AFTER;
        let failed = |detail| Err(StepError::abort(detail));
        while self.serve() > 0 {
            if let Some(detail) = self.context().report().failure() {
                return failed(detail);
            }
            if let Some((code, detail)) = self.producer.client().fatal_error() {
                let detail = format!("delivering records: {detail} ({code})");
                return Err(StepError { remedy: Remedy::GiveUp, ..StepError::abort(detail) });
            }
            if waited.is_over() {
                return failed("records were not delivered within the time of a transaction".to_owned());
            }
            if ask_after <= waited.elapsed() {
                // librdkafka would go on trying a topic that was deleted until its message timeout.
                ask_after *= 4;
                let waiting = self.context().report().waiting();
                if self.ask(&waiting, route) {
                    continue;
                }
            }
            pause(DRAIN_STEP);
        }
        self.context().report().failure().map_or(Ok(()), failed)
    }

    /// Asks the cluster whether it would take records for `destinations`, and enters refusals. Returns whether there were.
    fn ask(&self, destinations: &[Destination], route: &Route<'_>) -> bool {
        let topics: Vec<&str> = destinations.iter().filter_map(|to| route.topics.name(*to)).collect();
        let Ok(refusals) = route.probe.refusals(&topics) else { return false };
        let mut report = self.context().report();
        for to in destinations {
            if let Some(reason) = route.topics.name(*to).and_then(|topic| refusals.get(topic)) {
                report.refuse(*to, reason.clone());
            }
        }
        !refusals.is_empty()
    }

    fn commit(&self, route: &Route<'_>) -> Ending {
        let waited = Deadline::after(COMMIT_PATIENCE);
        loop {
            let Err(error) = self.producer.commit_transaction(waited.remaining()) else { break };
            let error = CallError::of(&error);
            match at_commit(&error) {
                Remedy::Again if !waited.is_over() => {
                    self.serve();
                }
                Remedy::Abort => return self.end_failed(StepError::abort(error.detail), route),
                Remedy::Again | Remedy::GiveUp => return self.unknown(format!("committing: {}", error.detail)),
            }
        }
        Ending {
            outcome: CommitOutcome::Committed(self.context().report().committed()),
            is_sound: self.is_sound(&waited),
            is_fenced: false,
        }
    }

    /// Ends a transaction that cannot commit.
    fn end_failed(&self, error: StepError, route: &Route<'_>) -> Ending {
        let StepError { remedy, may_be_topic, detail } = error;
        if remedy == Remedy::GiveUp {
            return self.unknown(detail);
        }
        let is_sound = match self.abort() {
            Ok(is_sound) => is_sound,
            Err(error) => return self.unknown(format!("{detail}; and aborting failed: {error}")),
        };
        let mut refused = self.context().report().refused();
        if refused.is_empty() && may_be_topic {
            let destinations = self.context().report().destinations();
            self.ask(&destinations, route);
            refused = self.context().report().refused();
        }
        Ending { outcome: CommitOutcome::Aborted(Aborted { refused, detail }), is_sound, is_fenced: false }
    }

    /// Aborts, and returns whether the producer may be used again.
    fn abort(&self) -> Result<bool, String> {
        let waited = Deadline::after(ABORT_PATIENCE);
        loop {
            // The abort waits for delivery reports, and only polling serves them: until they are in, call it in slices.
            let patience = if self.serve() > 0 { ABORT_STEP } else { waited.remaining() };
            let Err(error) = self.producer.abort_transaction(patience) else { return Ok(self.is_sound(&waited)) };
            let is_retriable = matches!(&error, KafkaError::Transaction(native) if native.is_retriable());
            let error = CallError::of(&error);
            if nothing_was_open(&error) {
                return Ok(false);
            }
            if !is_retriable || waited.is_over() {
                return Err(error.detail);
            }
            pause(ABORT_STEP);
        }
    }

    /// Returns whether the producer may be used again after a call to end a transaction. librdkafka sends that request
    /// again when no answer came; a delayed duplicate of it could end the next transaction.
    fn is_sound(&self, waited: &Deadline) -> bool {
        self.serve();
        waited.elapsed() < SOCKET_TIMEOUT && !self.context().is_troubled()
    }

    fn unknown(&self, detail: String) -> Ending {
        let is_fenced = self.producer.client().fatal_error().is_some_and(|(code, _)| is_fenced_producer(code));
        Ending { outcome: CommitOutcome::Unknown { detail }, is_sound: false, is_fenced }
    }

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

fn aborted(detail: String) -> CommitOutcome {
    CommitOutcome::Aborted(Aborted { detail, ..Aborted::default() })
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
