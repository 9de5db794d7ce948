//! What a worker is told at its start.
//!
//! Owns [`Settings`]. Never has a default: those are in `config/punctual.yaml`.

use std::time::Duration;

use crate::task::rules::Rules;
use crate::timer::budget::Budget;

/// What a worker is told at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The rules of its tasks.
    pub rules: Rules,
    /// What one tick may fire.
    pub budget: Budget,
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
}
