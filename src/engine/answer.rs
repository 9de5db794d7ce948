//! What an engine answers.
//!
//! Owns the answers as values of their own, so that each call has those that it can give. Never decides one.

use bytes::Bytes;

use crate::time::Timestamp;
use crate::timer::emitted::Emitted;
use crate::timer::model::Generation;
use crate::timer::outcome::{FiredEvent, Verdict};
use crate::wire::DecodeError;

/// What came of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArmAnswer {
    /// The timer is armed.
    Armed {
        /// Its version.
        generation: Generation,
    },
    /// A timer with this identity was armed before and stays as it is, held or not.
    AlreadyArmed {
        /// The version of that timer.
        generation: Generation,
    },
    /// The armed timer was replaced.
    Replaced {
        /// The new version.
        generation: Generation,
    },
    /// The run is sealed: nothing was armed.
    Sealed,
    /// The due has passed, and the kind skips those: nothing was armed.
    Skipped,
}

impl ArmAnswer {
    /// Returns the answer, if the verdict is one on an arm.
    pub(super) fn of(verdict: &Verdict) -> Option<Self> {
        match *verdict {
            Verdict::Armed { generation, .. } => Some(Self::Armed { generation }),
            Verdict::AlreadyArmed { generation } => Some(Self::AlreadyArmed { generation }),
            Verdict::Replaced { generation, .. } => Some(Self::Replaced { generation }),
            Verdict::Sealed => Some(Self::Sealed),
            Verdict::Skipped => Some(Self::Skipped),
            Verdict::Disarmed { .. }
            | Verdict::Paused { .. }
            | Verdict::Resumed { .. }
            | Verdict::NotPaused { .. }
            | Verdict::Ended { .. }
            | Verdict::NotFound
            | Verdict::Changed { .. }
            | Verdict::AlreadyEnded { .. }
            | Verdict::TooLate { .. }
            | Verdict::RunDisarmed { .. }
            | Verdict::RunSealed { .. }
            | Verdict::Rejected(_) => None,
        }
    }
}

/// What came of a disarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisarmAnswer {
    /// The timer is gone.
    Disarmed {
        /// The version that was armed.
        generation: Generation,
    },
    /// No timer with this identity is armed: it never was, has fired, or was disarmed.
    NotFound,
    /// The armed timer has another version than the one that was named, and stays.
    Changed {
        /// The version of the armed timer.
        generation: Generation,
    },
}

impl DisarmAnswer {
    /// Returns the answer, if the verdict is one on a disarm.
    pub(super) fn of(verdict: &Verdict) -> Option<Self> {
        match *verdict {
            Verdict::Disarmed { generation } => Some(Self::Disarmed { generation }),
            Verdict::NotFound => Some(Self::NotFound),
            Verdict::Changed { generation } => Some(Self::Changed { generation }),
            Verdict::Paused { .. }
            | Verdict::Resumed { .. }
            | Verdict::NotPaused { .. }
            | Verdict::Ended { .. }
            | Verdict::Armed { .. }
            | Verdict::AlreadyArmed { .. }
            | Verdict::Replaced { .. }
            | Verdict::AlreadyEnded { .. }
            | Verdict::TooLate { .. }
            | Verdict::RunDisarmed { .. }
            | Verdict::RunSealed { .. }
            | Verdict::Sealed
            | Verdict::Skipped
            | Verdict::Rejected(_) => None,
        }
    }
}

/// What came of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseAnswer {
    /// The timer is paused, now or since an earlier pause.
    Paused {
        /// Its version.
        generation: Generation,
    },
    /// No timer with this identity is armed: it never was, has fired, or was disarmed.
    NotFound,
    /// The armed timer has another version than the one that was named, and is not touched.
    Changed {
        /// The version of the armed timer.
        generation: Generation,
    },
}

impl PauseAnswer {
    /// Returns the answer, if the verdict is one on a pause.
    pub(super) fn of(verdict: &Verdict) -> Option<Self> {
        match *verdict {
            Verdict::Paused { generation } => Some(Self::Paused { generation }),
            Verdict::NotFound => Some(Self::NotFound),
            Verdict::Changed { generation } => Some(Self::Changed { generation }),
            Verdict::Armed { .. }
            | Verdict::AlreadyArmed { .. }
            | Verdict::Replaced { .. }
            | Verdict::Disarmed { .. }
            | Verdict::Resumed { .. }
            | Verdict::NotPaused { .. }
            | Verdict::Ended { .. }
            | Verdict::AlreadyEnded { .. }
            | Verdict::TooLate { .. }
            | Verdict::RunDisarmed { .. }
            | Verdict::RunSealed { .. }
            | Verdict::Sealed
            | Verdict::Skipped
            | Verdict::Rejected(_) => None,
        }
    }
}

/// What came of a resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeAnswer {
    /// The timer goes on.
    Resumed {
        /// Its version: a new one if it recurs and its due has passed.
        generation: Generation,
        /// Its due; what has passed is due at once.
        due: Timestamp,
    },
    /// The timer was not paused, and goes on as it is.
    NotPaused {
        /// Its version.
        generation: Generation,
    },
    /// The timer recurs, and no occurrence is left: it is gone.
    Ended {
        /// The version that has ended.
        generation: Generation,
    },
    /// No timer with this identity is armed: it never was, has fired, or was disarmed.
    NotFound,
    /// The armed timer has another version than the one that was named, and is not touched.
    Changed {
        /// The version of the armed timer.
        generation: Generation,
    },
}

impl ResumeAnswer {
    /// Returns the answer, if the verdict is one on a resume.
    pub(super) fn of(verdict: &Verdict) -> Option<Self> {
        match *verdict {
            Verdict::Resumed { generation, due } => Some(Self::Resumed { generation, due }),
            Verdict::NotPaused { generation } => Some(Self::NotPaused { generation }),
            Verdict::Ended { generation } => Some(Self::Ended { generation }),
            Verdict::NotFound => Some(Self::NotFound),
            Verdict::Changed { generation } => Some(Self::Changed { generation }),
            Verdict::Armed { .. }
            | Verdict::AlreadyArmed { .. }
            | Verdict::Replaced { .. }
            | Verdict::Disarmed { .. }
            | Verdict::Paused { .. }
            | Verdict::AlreadyEnded { .. }
            | Verdict::TooLate { .. }
            | Verdict::RunDisarmed { .. }
            | Verdict::RunSealed { .. }
            | Verdict::Sealed
            | Verdict::Skipped
            | Verdict::Rejected(_) => None,
        }
    }
}

/// Returns how many timers were removed, if the verdict is one on a disarm-run or a seal-run.
pub(super) fn removed(verdict: &Verdict) -> Option<u64> {
    match *verdict {
        Verdict::RunDisarmed { count } | Verdict::RunSealed { count } => Some(count),
        Verdict::Armed { .. }
        | Verdict::AlreadyArmed { .. }
        | Verdict::Replaced { .. }
        | Verdict::Disarmed { .. }
        | Verdict::Paused { .. }
        | Verdict::Resumed { .. }
        | Verdict::NotPaused { .. }
        | Verdict::Ended { .. }
        | Verdict::NotFound
        | Verdict::Changed { .. }
        | Verdict::AlreadyEnded { .. }
        | Verdict::TooLate { .. }
        | Verdict::Sealed
        | Verdict::Skipped
        | Verdict::Rejected(_) => None,
    }
}

/// A timer that a claimer has for the length of the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The run that owns it.
    pub run: String,
    /// Its name inside the run.
    pub timer_id: String,
    /// The number of its kind.
    pub kind: u32,
    /// When it was due.
    pub due: Timestamp,
    /// The payload, byte for byte.
    pub payload: Option<Bytes>,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// Its version: a disarm that names it does not hit a later timer with the same identity.
    pub generation: Generation,
}

impl From<FiredEvent> for Claimed {
    fn from(event: FiredEvent) -> Self {
        let FiredEvent { timer, attempt, .. } = event;
        Self {
            run: timer.key.run.run.as_str().to_owned(),
            timer_id: timer.key.id.as_str().to_owned(),
            kind: u32::from(timer.kind.get()),
            due: timer.due,
            payload: timer.payload,
            attempt,
            generation: timer.generation,
        }
    }
}

/// An entry of the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number. Numbers rise by one and are given once.
    pub number: u64,
    /// What a timer has emitted, or why the entry cannot be read; such an entry stays until it is acknowledged.
    pub emitted: Result<Emitted, DecodeError>,
}
