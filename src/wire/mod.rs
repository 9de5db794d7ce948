//! The wire: bytes and what they mean, in both directions.
//!
//! Owns every encoding that leaves the process: commands, results, fired records, dead letters, the state in the
//! changelog and the store, and the outbox of an embedded engine. The only user of prost. Never knows where bytes come from or go to: no log, no store.
//!
//! ```text
//!   arm topic ──▶ command::decode ──▶ core ──▶ fired::headers, answer::encode, dead_letter::headers ──▶ topics
//!                                      │
//!                                      └────▶ state::encode_*, key::StateKey ◀──▶ changelog, store
//! ```
//!
//! Keeps: bytes are turned into valid values here and nowhere else; no input makes it panic or take memory beyond a
//! constant factor of its size (INV-WIRE-1); what is decoded after it was encoded is the same value (INV-WIRE-2).

pub mod answer;
pub mod command;
pub mod content_type;
pub mod dead_letter;
pub mod duration;
pub mod emitted;
pub mod envelope;
pub mod fired;
pub mod forward;
pub mod key;
pub mod partition;
pub mod remembered;
pub mod state;

mod json;
mod proto;
mod record;
mod recurrence;
#[cfg(test)]
pub(crate) mod strategy;

use std::fmt::Display;

/// What is wrong with stored bytes, by what the caller does with the record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes contradict their format. The record is kept, counted and reported.
    #[error("{what} cannot be decoded: {problem}")]
    Malformed {
        /// What was being decoded.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A newer release wrote the record. It is kept as it is until such a release runs here.
    #[error("{what} was written by a newer release: {problem}; upgrade this instance")]
    TooNew {
        /// What was being decoded.
        what: &'static str,
        /// What this release does not know.
        problem: String,
    },
}

impl DecodeError {
    fn malformed(what: &'static str, problem: impl Display) -> Self {
        Self::Malformed { what, problem: problem.to_string() }
    }
}
