//! What one transaction did, for the metrics.
//!
//! Owns [`Tally`]. Keeps: it is reported when the transaction has committed and dropped when it has not, so that no
//! count rises twice for one event.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::timer::kind::KindNumber;
use crate::timer::outcome::Reason;

/// What one transaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Timers armed, replaced or dated anew by their handler, per kind.
    pub armed: BTreeMap<KindNumber, u64>,
    /// Timers removed by a disarm, a disarm-run, a seal, or a resume that found no occurrence left.
    pub disarmed: u64,
    /// Commands that changed nothing: duplicates, commands about timers that are not there, arms of a sealed run.
    pub unchanged: u64,
    /// Commands that came after their timer had ended, and met its remembered id.
    pub late: u64,
    /// Commands rejected, per reason; each is on the dead-letter topic.
    pub rejected: BTreeMap<Reason, u64>,
    /// Commands forwarded to the partition where they belong.
    pub forwarded: u64,
    /// Answers sent to the results topic.
    pub answered: u64,
    /// Timers fired: their kind and their lateness, fired − max(due, time of arming, time of a resume).
    pub fired: Vec<(KindNumber, Duration)>,
    /// Outbox records sent.
    pub outbox: u64,
    /// Attempts that failed, per kind; their timers rest and are tried again.
    pub failed: BTreeMap<KindNumber, u64>,
    /// Timers that are not to fire any more, per kind; each is on the dead-letter topic.
    pub expired: BTreeMap<KindNumber, u64>,
    /// Timers that changed between the scan and their turn, and so did not fire.
    pub raced: u64,
}

impl Tally {
    /// Adds what another did.
    pub fn add(&mut self, other: &Self) {
        let of_kinds =
            [(&mut self.armed, &other.armed), (&mut self.failed, &other.failed), (&mut self.expired, &other.expired)];
        for (mine, others) in of_kinds {
            for (kind, count) in others {
                *mine.entry(*kind).or_insert(0) += count;
            }
        }
        for (reason, count) in &other.rejected {
            *self.rejected.entry(*reason).or_insert(0) += count;
        }
        self.disarmed += other.disarmed;
        self.unchanged += other.unchanged;
        self.late += other.late;
        self.forwarded += other.forwarded;
        self.answered += other.answered;
        self.outbox += other.outbox;
        self.raced += other.raced;
        self.fired.extend_from_slice(&other.fired);
    }
}
