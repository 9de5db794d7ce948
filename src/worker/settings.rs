//! What a worker is told at its start.
//!
//! Owns [`Settings`]. Never has a default: those are in `config/punctual.yaml`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::timer::budget::Budget;
use crate::timer::kind::{KindNumber, Registry};
use crate::timer::limits::Limits;

/// What a worker is told at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The kinds that this binary knows.
    pub registry: Registry,
    /// The limits that arms are judged by.
    pub limits: Limits,
    /// What one tick may fire.
    pub budget: Budget,
    /// The partition count of the changelog: identities are spread over so many.
    pub partitions: u32,
    /// The name of the command topic, for the headers of dead letters.
    pub arm_topic: String,
    /// Whether there is a results topic.
    pub results: bool,
    /// The `ce_source` of fired events.
    pub source: String,
    /// The name under which this worker marks its barriers.
    pub owner: String,
    /// Largest record that the dead-letter topic takes; a larger original is truncated.
    pub dead_letter_bytes_max: usize,
    /// How long arms may wait for a commit when nothing fires.
    pub commit_linger: Duration,
    /// How often a store is made durable when it has changed.
    pub flush_interval: Duration,
    /// A restore that makes no progress for this long ends the process.
    pub restore_stall_timeout: Duration,
    /// A local store that was level with the changelog longer ago than this is discarded: half of the changelog's
    /// `delete.retention.ms`.
    pub store_age_max: Duration,
    /// Largest forward step of the wall clock that is believed without confirmation.
    pub clock_step_max: Duration,
    /// The names of kinds, for messages.
    pub kind_names: BTreeMap<KindNumber, String>,
}
