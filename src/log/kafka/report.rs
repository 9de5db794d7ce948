//! What became of the records of one transaction.
//!
//! Owns the account that delivery reports are entered in, and the context of a producer that enters them. Never decides
//! about the transaction. Keeps: a record is entered once, under the destination that it was sent to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message, Timestamp as NativeTimestamp};
use rdkafka::producer::ProducerContext;
use rdkafka::{ClientContext, Offset as NativeOffset};

use super::client::{log_error, log_line};
use super::verdict::{DeliveryFailure, delivery_failure};
use crate::log::{Committed, Destination};
use crate::position::{Offset, Partition};
use crate::time::Timestamp;

const ROLE: &str = "producer";

/// The account of a transaction's records.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Where each record went, in order of sending.
    sent: Vec<Destination>,
    /// How many records of a destination are under way.
    waiting: BTreeMap<Destination, usize>,
    /// Destinations that took a record.
    delivered: BTreeSet<Destination>,
    /// Destinations that refused a record, with the reason.
    refused: BTreeMap<Destination, String>,
    /// Destinations of which a record waited in vain, with the reason.
    late: BTreeMap<Destination, String>,
    /// The first failure that speaks against no destination.
    other: Option<String>,
    /// What the broker said about the records of the changelog.
    committed: Committed,
}

impl Report {
    /// Enters a record that is about to be sent, and returns its number.
    pub(super) fn enter(&mut self, to: Destination) -> usize {
        *self.waiting.entry(to).or_default() += 1;
        self.sent.push(to);
        self.sent.len() - 1
    }

    /// Enters that a destination refuses.
    pub(super) fn refuse(&mut self, to: Destination, reason: String) {
        self.refused.entry(to).or_insert(reason);
    }

    /// Enters that a record was delivered.
    fn deliver(&mut self, number: usize, partition: i32, offset: i64, appended: Option<Timestamp>) {
        let Some(to) = self.settle(number) else { return };
        self.delivered.insert(to);
        if to != Destination::Changelog {
            return;
        }
        if let (Ok(partition), NativeOffset::Offset(offset)) =
            (u32::try_from(partition), NativeOffset::from_raw(offset))
        {
            self.committed.changelog.entry(Partition(partition)).or_default().insert(Offset(offset));
        }
        self.committed.appended = self.committed.appended.max(appended);
    }

    /// Enters that a record was not delivered.
    fn fail(&mut self, number: usize, code: RDKafkaErrorCode) {
        let Some(to) = self.settle(number) else { return };
        match delivery_failure(code) {
            DeliveryFailure::Refused => self.refuse(to, code.to_string()),
            DeliveryFailure::Late => {
                self.late.entry(to).or_insert_with(|| code.to_string());
            }
            DeliveryFailure::Collateral => {}
            DeliveryFailure::Other => {
                self.other.get_or_insert_with(|| format!("a record to {to} was not delivered: {code}"));
            }
        }
    }

    fn settle(&mut self, number: usize) -> Option<Destination> {
        let to = *self.sent.get(number)?;
        if let Some(count) = self.waiting.get_mut(&to) {
            *count = count.saturating_sub(1);
        }
        Some(to)
    }

    /// Returns why the transaction cannot commit, once something failed.
    pub(super) fn failure(&self) -> Option<String> {
        if let Some((to, reason)) = self.refused.iter().chain(&self.late).next() {
            return Some(format!("a record to {to} was not delivered: {reason}"));
        }
        self.other.clone()
    }

    /// Returns the destinations of which records are under way.
    pub(super) fn waiting(&self) -> BTreeSet<Destination> {
        self.waiting.iter().filter(|(_, count)| **count > 0).map(|(to, _)| *to).collect()
    }

    /// Returns the destinations that refused, with the reason. One whose record waited in vain while another took all of
    /// its own counts: it, not the cluster, is away, or a part of it.
    pub(super) fn refused(&self) -> BTreeMap<Destination, String> {
        let mut refused = self.refused.clone();
        if self.delivered.iter().any(|other| !self.late.contains_key(other)) {
            for (to, reason) in &self.late {
                refused.entry(*to).or_insert_with(|| reason.clone());
            }
        }
        refused
    }

    /// Returns what the broker said about the records of the changelog.
    pub(super) fn committed(&self) -> Committed {
        self.committed.clone()
    }
}

/// The context of a producer: it enters delivery reports.
#[derive(Debug, Default)]
pub(super) struct ReportContext {
    report: Mutex<Report>,
    is_troubled: AtomicBool,
}

impl ReportContext {
    /// Starts the account of a new transaction.
    pub(super) fn start(&self) {
        *self.report() = Report::default();
        self.is_troubled.store(false, Ordering::Relaxed);
    }

    /// Returns the account.
    pub(super) fn report(&self) -> MutexGuard<'_, Report> {
        // An account is whole between two entries, so that a panic elsewhere does not spoil it.
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the client met an error of a broker since the transaction started.
    pub(super) fn is_troubled(&self) -> bool {
        self.is_troubled.load(Ordering::Relaxed)
    }
}

impl ClientContext for ReportContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log_line(ROLE, level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.is_troubled.store(true, Ordering::Relaxed);
        log_error(ROLE, &error, reason);
    }
}

impl ProducerContext for ReportContext {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        let mut report = self.report();
        match result {
            Ok(message) => {
                let appended = match message.timestamp() {
                    NativeTimestamp::LogAppendTime(millis) => Some(Timestamp::from_millis(millis)),
                    NativeTimestamp::CreateTime(_) | NativeTimestamp::NotAvailable => None,
                };
                report.deliver(number, message.partition(), message.offset(), appended);
            }
            Err((error, _)) => report.fail(number, error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::places::Places;
    use crate::timer::kind::KindNumber;

    fn fired(kind: u32) -> Destination {
        Destination::Fired(KindNumber::new(kind).unwrap())
    }

    #[test]
    fn positions_and_append_time_of_the_changelog_are_the_latest() {
        let mut report = Report::default();
        let numbers: Vec<_> = (0..3).map(|_| report.enter(Destination::Changelog)).collect();
        let event = report.enter(fired(1));
        report.deliver(numbers[1], 0, 8, Some(Timestamp::from_millis(2)));
        report.deliver(numbers[0], 0, 7, Some(Timestamp::from_millis(1)));
        report.deliver(numbers[2], 3, 1, None);
        report.deliver(event, 0, 99, Some(Timestamp::from_millis(9)));
        assert_eq!(report.failure(), None);
        assert_eq!(report.waiting(), BTreeSet::new());
        let places = |offsets: &[i64]| {
            let mut places = Places::default();
            for offset in offsets {
                places.insert(Offset(*offset));
            }
            places
        };
        let changelog = BTreeMap::from([(Partition(0), places(&[7, 8])), (Partition(3), places(&[1]))]);
        assert_eq!(report.committed(), Committed { changelog, appended: Some(Timestamp::from_millis(2)) });
    }

    #[test]
    fn one_refusal_is_one_destination_and_purged_records_are_none() {
        let mut report = Report::default();
        let (one, two) = (report.enter(fired(1)), report.enter(fired(2)));
        report.fail(one, RDKafkaErrorCode::UnknownTopicOrPartition);
        report.fail(two, RDKafkaErrorCode::PurgeQueue);
        assert_eq!(report.refused().into_keys().collect::<Vec<_>>(), [fired(1)]);
        assert!(report.failure().unwrap().contains("fired of kind 1"), "named");
    }

    #[test]
    fn a_late_record_counts_against_its_topic_only_when_others_arrived() {
        let mut report = Report::default();
        let (one, two) = (report.enter(fired(1)), report.enter(fired(2)));
        report.fail(one, RDKafkaErrorCode::MessageTimedOut);
        assert!(report.refused().is_empty(), "perhaps nothing arrives");
        report.deliver(two, 0, 0, None);
        assert_eq!(report.refused().into_keys().collect::<Vec<_>>(), [fired(1)]);
    }

    /// D2: the leader of one partition of a topic is away, that of another is not.
    #[test]
    fn a_topic_that_is_away_in_part_is_the_one_that_refuses() {
        let mut report = Report::default();
        let (here, away, other) = (report.enter(fired(1)), report.enter(fired(1)), report.enter(fired(2)));
        report.deliver(here, 0, 0, None);
        report.fail(away, RDKafkaErrorCode::MessageTimedOut);
        assert!(report.refused().is_empty(), "perhaps it is the cluster");
        report.deliver(other, 0, 0, None);
        assert_eq!(report.refused().into_keys().collect::<Vec<_>>(), [fired(1)]);
    }

    #[test]
    fn a_report_of_an_unknown_record_changes_nothing() {
        let mut report = Report::default();
        report.deliver(5, 0, 0, None);
        report.fail(6, RDKafkaErrorCode::UnknownTopic);
        assert_eq!(report.failure(), None);
    }
}
