//! The rows of the due order: a timer's encoded body at its place.
//!
//! Owns the reading of a row. Never fails: what cannot be read is a value, so that it blocks nobody (N11).
//! Keeps: a timer that is returned belongs to the place where it was found.

use crate::timer::model::{Located, Timer};
use crate::timer::view::DueRow;
use crate::wire::state::decode_timer;

/// Reads the row at a place.
pub(super) fn read(at: Located, body: &[u8]) -> DueRow {
    match decode_timer(body) {
        Ok(timer) if timer.located() == at => DueRow::Timer(Box::new(timer)),
        Ok(timer) => {
            let (key, its) = (&timer.key, timer.located());
            DueRow::Undecodable { at: at.at, problem: format!("holds timer {key}, which belongs to {its:?}") }
        }
        Err(error) => DueRow::Undecodable { at: at.at, problem: error.to_string() },
    }
}

/// Reads the timer at a place, if it can be read.
pub(super) fn read_timer(at: Located, body: &[u8]) -> Option<Timer> {
    match read(at, body) {
        DueRow::Timer(timer) => Some(*timer),
        DueRow::Undecodable { .. } => None,
    }
}
