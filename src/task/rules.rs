//! What a task is told: the rules by which it judges and the names that it writes.
//!
//! Owns [`Rules`], shared by all tasks of a worker. Never has a default: those are in `config/punctual.yaml`.

use std::sync::Arc;

use crate::calendar::Calendar;
use crate::timer::handler::Handlers;
use crate::timer::kind::Registry;
use crate::timer::limits::Limits;

/// The rules that all tasks of a worker share.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The kinds that this binary knows.
    pub registry: Registry,
    /// The rules and calendars that arms are resolved with.
    pub calendar: Arc<dyn Calendar>,
    /// The limits that arms are judged by.
    pub limits: Limits,
    /// The partition count of the changelog: identities are spread over so many.
    pub partitions: u32,
    /// The name of the command topic, for the headers of dead letters.
    pub arm_topic: String,
    /// Whether there is a results topic.
    pub results: bool,
    /// The `ce_source` of fired events.
    pub source: String,
    /// The name under which barriers are written.
    pub owner: String,
    /// Largest record that the command topic takes; a larger stray command cannot be forwarded.
    pub arm_bytes_max: usize,
    /// Largest record that the dead-letter topic takes; a larger original is truncated.
    pub dead_letter_bytes_max: usize,
    /// What the timers of each kind do when they fire.
    pub handlers: Handlers,
}
