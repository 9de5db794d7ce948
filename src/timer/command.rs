//! What a client may ask for.
//!
//! Owns the commands as values, parsed at the edge and valid by construction as far as their own fields go.
//! Never judges a command against the state: that is `apply`.

use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;

use super::identity::{RunKey, TimerKey};
use super::kind::KindRef;
use super::model::{Generation, Header, OutboxRecord};
use crate::calendar::cron::Cron;
use crate::calendar::interval::Interval;
use crate::calendar::local::LocalTime;
use crate::calendar::parameters::Parameters;
use crate::calendar::zone::Zone;
use crate::time::Timestamp;

/// A command and the context in which it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Whom to answer, if the client asked for an answer.
    pub reply: Option<Reply>,
    /// What to do.
    pub action: Action,
}

/// How an answer is correlated and encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The client's own text, given back with the answer; 1 to 512 bytes.
    pub correlation_id: String,
    /// The encoding of the command, and so of its answer.
    pub encoding: Encoding,
}

/// How a command or an answer is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `punctual.v1` protobuf.
    Protobuf,
    /// JSON in UTF-8.
    Json,
}

/// What a command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Creates a timer.
    Arm(Box<Arm>),
    /// Cancels a timer.
    Disarm {
        /// The timer.
        key: TimerKey,
        /// Cancels only this version of it.
        generation: Option<Generation>,
    },
    /// Holds a timer until it is resumed.
    Pause {
        /// The timer.
        key: TimerKey,
        /// Pauses only this version of it.
        generation: Option<Generation>,
    },
    /// Lets a paused timer go on.
    Resume {
        /// The timer.
        key: TimerKey,
        /// Resumes only this version of it.
        generation: Option<Generation>,
    },
    /// Cancels all timers of a run.
    DisarmRun {
        /// The run.
        run: RunKey,
    },
    /// Cancels all timers of a run and refuses later arms.
    SealRun {
        /// The run.
        run: RunKey,
        /// How long the seal holds, from the command's record timestamp; `None` is for ever.
        retention: Option<Duration>,
    },
}

impl Action {
    /// Returns the run that the command is about: it decides the partition.
    pub fn run(&self) -> &RunKey {
        match self {
            Self::Arm(arm) => &arm.key.run,
            Self::Disarm { key, .. } | Self::Pause { key, .. } | Self::Resume { key, .. } => &key.run,
            Self::DisarmRun { run } | Self::SealRun { run, .. } => run,
        }
    }

    /// Returns the timer that the command is about, if it is about one.
    pub fn timer(&self) -> Option<&TimerKey> {
        match self {
            Self::Arm(arm) => Some(&arm.key),
            Self::Disarm { key, .. } | Self::Pause { key, .. } | Self::Resume { key, .. } => Some(key),
            Self::DisarmRun { .. } | Self::SealRun { .. } => None,
        }
    }
}

/// The wish for a timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// The timer's identity.
    pub key: TimerKey,
    /// The timer's kind.
    pub kind: KindRef,
    /// When it is to fire.
    pub when: When,
    /// What to do if a timer with this identity is armed already.
    pub on_conflict: OnConflict,
    /// The value of the fired record.
    pub payload: Option<Bytes>,
    /// The key of the fired record; `None` means `tenant/run`.
    pub record_key: Option<Bytes>,
    /// Headers for the fired record.
    pub headers: Vec<Header>,
    /// Records that the fire emits beside its event.
    pub outbox: Vec<OutboxRecord>,
}

/// When a timer is to fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// At an instant.
    At(Timestamp),
    /// So many milliseconds after the record's timestamp; what is not positive is rejected when applied.
    AfterMillis(i64),
    /// Again and again.
    Recurring(Box<RecurringWish>),
    /// At a civil time in a zone.
    Local(LocalTime),
    /// At the instant that a rule names, strictly after the record's timestamp.
    Calendar {
        /// The name of the rule.
        rule: String,
        /// Its parameters.
        parameters: Parameters,
    },
}

/// The wish for a timer that recurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecurringWish {
    /// By what.
    pub rule: RuleWish,
    /// How often it fires at most.
    pub count: Option<NonZeroU64>,
    /// The last instant at which it may fire.
    pub until: Option<Timestamp>,
    /// Occurrences are those strictly after this instant; `None` is the record's timestamp.
    pub from: Option<Timestamp>,
}

/// By what a timer is to recur.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleWish {
    /// By a cron expression.
    Cron(Cron),
    /// By an interval.
    Every {
        /// The interval.
        interval: Interval,
        /// Where days and months are counted.
        zone: Zone,
        /// Occurrence 0; `None` is the instant from which occurrences count.
        anchor: Option<Timestamp>,
    },
}

/// What an arm does when a timer with its identity is armed already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// The armed timer stays as it is.
    #[default]
    Keep,
    /// The armed timer is replaced, with a new generation.
    Replace,
}
