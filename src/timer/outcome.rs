//! What the core decides: data that the layers above carry out.
//!
//! Owns [`Mutation`], the only way that state changes, and what is emitted beside it. Never carries anything out.
//! Keeps: live work, restore, simulator and oracle all fold the same mutations.

use std::time::Duration;

use super::command::Reply;
use super::identity::{RunKey, TimerKey};
use super::kind::KindNumber;
use super::model::{DueKey, Ending, Generation, Located, Remembered, RunState, Timer};
use crate::time::Timestamp;

/// A change of state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A timer is created or changed.
    Put {
        /// The timer as it is from now on.
        timer: Box<Timer>,
        /// Where a row of the same identity was found before, live or swept.
        previous: Option<Located>,
    },
    /// A timer is removed.
    Remove {
        /// The timer's identity.
        key: TimerKey,
        /// Where it was found.
        previous: Located,
    },
    /// What is known of a run changes; the empty state removes its row.
    Run {
        /// The run.
        run: RunKey,
        /// Its state as it was.
        previous: RunState,
        /// Its state from now on.
        state: RunState,
    },
    /// What is remembered of a timer id changes.
    Remember {
        /// The id.
        key: TimerKey,
        /// What was remembered before.
        previous: Option<Remembered>,
        /// What is remembered from now on; `None` forgets the id.
        state: Option<Remembered>,
    },
    /// Every row of the kind below `to` is gone: scans may start there. Local to the store, not in the changelog.
    Advance {
        /// The kind.
        kind: KindNumber,
        /// The new start of scans.
        to: DueKey,
    },
}

impl Mutation {
    /// Returns the next generation to give once it is folded, if `next` was it before.
    #[must_use]
    pub fn generation_behind(&self, next: Generation) -> Generation {
        match self {
            Self::Put { timer, .. } if timer.generation >= next => Generation(timer.generation.0.saturating_add(1)),
            Self::Put { .. }
            | Self::Remove { .. }
            | Self::Run { .. }
            | Self::Remember { .. }
            | Self::Advance { .. } => next,
        }
    }
}

/// What a command or a tick leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The changes of state, in order.
    pub mutations: Vec<Mutation>,
    /// The timers that fire.
    pub fired: Vec<FiredEvent>,
    /// The timers that are not to fire any more, and go to the dead-letter topic.
    pub expired: Vec<Expired>,
    /// The answers to commands with a correlation id.
    pub answers: Vec<Answer>,
    /// Whether the command came too late: its timer has ended, and the id is remembered.
    pub is_late: bool,
    /// Why the command was rejected, if it was. A rejected command changes nothing (INV-REJECT-1).
    pub rejection: Option<Rejection>,
}

/// A timer that fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiredEvent {
    /// The timer, with payload, key, headers and outbox as they go out: as armed, or as its handler made them.
    pub timer: Timer,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The tick's `now`.
    pub fired: Timestamp,
    /// What it does beside its outbox records.
    pub effect: Effect,
}

impl FiredEvent {
    /// Returns how late it is: since its due, its arming or its wake, whichever is latest. The wake is later than the due after
    /// another attempt, or after a resume.
    pub fn lateness(&self) -> Duration {
        self.fired.since(self.timer.due.max(self.timer.armed).max(self.timer.wake))
    }
}

/// What a fire does beside its outbox records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The fired event goes out.
    Published,
    /// The timer has fired, and its handler wanted no event.
    Silent,
    /// The timer is armed anew, for another instant.
    Rescheduled,
}

/// A timer that is not to fire any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The timer; its attempt is how often it was attempted.
    pub timer: Timer,
    /// Why.
    pub reason: ExpiryReason,
    /// The tick's `now`.
    pub at: Timestamp,
}

/// Why a timer is not to fire any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryReason {
    /// It was delivered by claim as often as it may be, and nobody disarmed it.
    AttemptsExhausted,
    /// It is later than its kind allows.
    TooLate,
}

/// The outcome of a command, for the client that asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whom to answer.
    pub reply: Reply,
    /// The run that the command was about.
    pub run: RunKey,
    /// The timer that the command was about.
    pub timer: Option<TimerKey>,
    /// What came of it.
    pub verdict: Verdict,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The timer is armed.
    Armed {
        /// Its version.
        generation: Generation,
        /// Its resolved due.
        due: Timestamp,
    },
    /// A timer with this identity was armed before and stays as it is.
    AlreadyArmed {
        /// The version of the armed timer.
        generation: Generation,
    },
    /// The id has ended and is remembered: no timer was armed.
    AlreadyEnded {
        /// How it ended.
        ending: Ending,
    },
    /// The armed timer was replaced.
    Replaced {
        /// The new version.
        generation: Generation,
        /// The new due.
        due: Timestamp,
    },
    /// The timer is cancelled.
    Disarmed {
        /// The version that was cancelled.
        generation: Generation,
    },
    /// The timer is paused, now or since an earlier pause.
    Paused {
        /// Its version.
        generation: Generation,
    },
    /// The timer goes on.
    Resumed {
        /// Its version: a new one if it recurs and its due has passed.
        generation: Generation,
        /// Its due; what has passed fires at once.
        due: Timestamp,
    },
    /// The timer was not paused when the resume came, and goes on.
    NotPaused {
        /// Its version.
        generation: Generation,
    },
    /// The timer recurs, and no occurrence is left after the resume: it is gone.
    Ended {
        /// The version that has ended.
        generation: Generation,
    },
    /// No timer with this identity is armed: it never was, has fired, or was disarmed.
    NotFound,
    /// The timer had fired for the last time, or gone to the dead-letter topic, when the disarm came.
    TooLate {
        /// The version that had ended.
        generation: Generation,
    },
    /// The armed timer has another version than the command named.
    Changed {
        /// The version of the armed timer.
        generation: Generation,
    },
    /// The run's timers are cancelled.
    RunDisarmed {
        /// How many.
        count: u64,
    },
    /// The run is sealed and its timers are cancelled.
    RunSealed {
        /// How many.
        count: u64,
    },
    /// The arm met a sealed run and was refused.
    Sealed,
    /// The arm was past due and its kind skips those.
    Skipped,
    /// The command was rejected.
    Rejected(Rejection),
}

/// Why a command is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The stable code.
    pub reason: Reason,
    /// One sentence that names the field, the value and the remedy.
    pub detail: String,
}

impl Rejection {
    /// Returns a rejection.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

/// The stable codes of rejections. The numbers are those of `punctual.v1.Reason` and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The record is not a command: not protobuf, not JSON, an unknown or missing field, no value.
    Unreadable = 1,
    /// Tenant, run, timer id or correlation id is not valid.
    InvalidIdentity = 2,
    /// No kind has this name.
    UnknownKind = 3,
    /// The kind number is 0 or above 255.
    InvalidKind = 4,
    /// The instant is not one, is negative, or overflows.
    InvalidDue = 5,
    /// The instant looks like seconds where milliseconds are meant.
    DueInSeconds = 6,
    /// The due is further away than the horizon.
    BeyondHorizon = 7,
    /// The due is not after the arming and the kind rejects those.
    PastDue = 8,
    /// The duration is not positive, or overflows.
    InvalidDuration = 9,
    /// `after` needs the record's timestamp, and it has none.
    MissingTimestamp = 10,
    /// The record's timestamp is ahead of our clock by more than the allowed skew.
    TimestampAhead = 11,
    /// A header has the prefix `punctual-` or `ce_`, or an empty name.
    ReservedHeader = 12,
    /// The record would not fit its topic when fired.
    TooLarge = 13,
    /// There are more outbox records or headers than allowed.
    TooMany = 14,
    /// The kind has no outbox topic.
    NoOutbox = 15,
    /// The record was forwarded before and is still on a wrong partition.
    ForwardLoop = 16,
    /// Too many commands wait for the same run to be disarmed.
    Busy = 17,
    /// A zone, a civil time, a cron expression or an interval is not one, or it never fires.
    InvalidSchedule = 18,
    /// No rule has this name.
    UnknownRule = 19,
    /// Parameters of a rule are missing, or are not what it needs.
    InvalidParameters = 20,
    /// The instant of a rule is beyond what can be computed, or beyond the dates that its calendar covers.
    OutOfRange = 21,
}

impl Reason {
    /// All reasons, in order of their numbers.
    pub const ALL: [Self; 21] = [
        Self::Unreadable,
        Self::InvalidIdentity,
        Self::UnknownKind,
        Self::InvalidKind,
        Self::InvalidDue,
        Self::DueInSeconds,
        Self::BeyondHorizon,
        Self::PastDue,
        Self::InvalidDuration,
        Self::MissingTimestamp,
        Self::TimestampAhead,
        Self::ReservedHeader,
        Self::TooLarge,
        Self::TooMany,
        Self::NoOutbox,
        Self::ForwardLoop,
        Self::Busy,
        Self::InvalidSchedule,
        Self::UnknownRule,
        Self::InvalidParameters,
        Self::OutOfRange,
    ];

    /// Returns the name used in headers, JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::InvalidIdentity => "invalid_identity",
            Self::UnknownKind => "unknown_kind",
            Self::InvalidKind => "invalid_kind",
            Self::InvalidDue => "invalid_due",
            Self::DueInSeconds => "due_in_seconds",
            Self::BeyondHorizon => "beyond_horizon",
            Self::PastDue => "past_due",
            Self::InvalidDuration => "invalid_duration",
            Self::MissingTimestamp => "missing_timestamp",
            Self::TimestampAhead => "timestamp_ahead",
            Self::ReservedHeader => "reserved_header",
            Self::TooLarge => "too_large",
            Self::TooMany => "too_many",
            Self::NoOutbox => "no_outbox",
            Self::ForwardLoop => "forward_loop",
            Self::Busy => "busy",
            Self::InvalidSchedule => "invalid_schedule",
            Self::UnknownRule => "unknown_rule",
            Self::InvalidParameters => "invalid_parameters",
            Self::OutOfRange => "out_of_range",
        }
    }
}
