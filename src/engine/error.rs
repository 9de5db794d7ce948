//! What can go wrong with an engine, by what the caller does next.
//!
//! Owns [`EngineError`] and the way to it from the errors of the layers below. Keeps: a mistake of the caller names the field, its value
//! and the remedy.

use std::fmt::Display;
use std::path::PathBuf;

use crate::store::StoreError;
use crate::text::shown;
use crate::timer::identity::IdentityError;
use crate::timer::outcome::{Reason, Rejection};

/// What can go wrong with an engine. After any of them the state is that of the last call that returned `Ok`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// Another engine, of this process or of another, has the directory. Share a clone, or give each its own directory.
    #[error(
        "directory {path} is locked by another engine; share a clone of it, or give each engine a directory of its own"
    )]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The files are damaged. Nothing is discarded: bring back a copy, or remove the directory.
    #[error("directory {path} is corrupt: {detail}; bring back a copy of it, or remove it and start anew")]
    Corrupt {
        /// The directory.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The files are not an engine's, or those of another release.
    #[error("directory {path} has format {found}, this release reads {supported}; use the release that wrote it")]
    UnsupportedFormat {
        /// The directory.
        path: PathBuf,
        /// The format found; 0 if an engine did not write the directory.
        found: u32,
        /// The format that this release reads and writes.
        supported: u32,
    },
    /// There is no room. Make some, then open the engine again.
    #[error("no space left for directory {path}: {detail}; make room, then open the engine again")]
    Full {
        /// The directory.
        path: PathBuf,
        /// What was attempted.
        detail: String,
    },
    /// Any other failure of the file system.
    #[error("{doing} in directory {path}: {detail}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// The cause.
        detail: String,
    },
    /// An argument is not one. The call changed nothing; another argument is needed.
    #[error("{field} `{value}` {problem}")]
    InvalidArgument {
        /// The argument: `tenant`, `run`, `timer_id`, `kind`, `due`, `now`, `payload`, `retention`, and so on.
        field: &'static str,
        /// Its value, shortened to 64 characters and with control characters escaped.
        value: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
}

impl EngineError {
    /// Returns the refusal of an argument.
    pub(super) fn invalid(field: &'static str, value: impl Display, problem: impl Into<String>) -> Self {
        Self::InvalidArgument { field, value: shown(&value.to_string()), problem: problem.into() }
    }

    /// Returns the refusal of a command about `value`.
    pub(super) fn rejected(rejection: &Rejection, value: impl Display) -> Self {
        Self::invalid(field_of(rejection.reason), value, format!("is refused: {}", rejection.detail))
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Locked { path } => Self::Locked { path },
            StoreError::Corrupt { path, detail } => Self::Corrupt { path, detail },
            StoreError::UnsupportedFormat { path, found, supported } => {
                Self::UnsupportedFormat { path, found, supported }
            }
            StoreError::Full { path, detail } => Self::Full { path, detail },
            StoreError::Io { path, doing, detail } => Self::Io { path, doing, detail },
        }
    }
}

impl From<IdentityError> for EngineError {
    fn from(error: IdentityError) -> Self {
        Self::InvalidArgument { field: error.field, value: error.value, problem: error.problem.to_owned() }
    }
}

/// Returns the argument that a reason is about.
fn field_of(reason: Reason) -> &'static str {
    match reason {
        Reason::InvalidIdentity => "timer_id",
        Reason::UnknownKind | Reason::InvalidKind => "kind",
        Reason::InvalidDue | Reason::DueInSeconds | Reason::BeyondHorizon | Reason::PastDue => "due",
        Reason::InvalidDuration => "retention",
        Reason::ReservedHeader => "headers",
        Reason::TooLarge => "payload",
        Reason::TooMany | Reason::NoOutbox => "outbox",
        Reason::MissingTimestamp | Reason::TimestampAhead => "now",
        Reason::Unreadable
        | Reason::ForwardLoop
        | Reason::Busy
        | Reason::InvalidSchedule
        | Reason::UnknownRule
        | Reason::InvalidParameters
        | Reason::OutOfRange => "command",
    }
}
