//! Watches the changelog for records of somebody else.
//!
//! ```text
//!   own records │ marker │ own records │ marker │ ?? │ own records          a hole that no marker of ours explains
//!                                               └─▶ read, read_committed ─▶ a record in it is foreign
//! ```
//!
//! Behind its barrier the owner is the only writer, and it knows the places of its records. Between them stand the markers of
//! its own transactions, and what it aborted; only when there is more than its markers explain are the holes read.
//!
//! Owns the holes and the reading of them. Never reads the log itself: the worker hands batches in.
//! Keeps: a committed record of somebody else is found after at most as many transactions as a marker is late.

use std::collections::VecDeque;

use crate::log::places::{Places, Range, size};
use crate::log::{ChangelogBatch, ChangelogRecord};
use crate::position::Position;

/// How many holes are remembered: those whose marker may be late.
const HOLES_MAX: usize = 64;
/// How many offsets may have to be read.
const SPAN_MAX: u64 = 50_000;

/// The watch over a partition's changelog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Watch {
    /// The position behind the own last record; `None` while it is not known.
    end: Option<Position>,
    /// Behind the barrier, oldest first: ranges that hold no record of ours.
    holes: VecDeque<Range>,
    /// How many offsets of the holes may be markers of own transactions.
    markers: u64,
    /// Up to where holes are being read, if they are.
    reading: Option<Position>,
}

impl Watch {
    /// Starts behind an own record.
    pub(super) fn starting(behind: Position) -> Self {
        Self { end: Some(behind), ..Self::default() }
    }

    /// Enters an own transaction that committed `sent` records.
    pub(super) fn committed(&mut self, places: Option<&Places>, sent: u64) {
        if sent == 0 {
            return;
        }
        let Some(places) = places.filter(|places| places.records() == sent) else {
            // A broker may accept a record that was sent twice without telling its place again.
            *self = Self::default();
            return;
        };
        if let Some(end) = self.end {
            self.holes.extend(places.holes(end));
            // That of the transaction before; the own one comes behind the own records.
            self.markers += 1;
        }
        self.end = places.end();
        if self.reading.is_none() {
            self.forget();
        }
    }

    fn forget(&mut self) {
        let is_far = |holes: &VecDeque<Range>| match (holes.front(), holes.back()) {
            (Some((from, _)), Some((_, to))) => size((*from, *to)) > SPAN_MAX,
            (_, _) => false,
        };
        while self.holes.len() > HOLES_MAX || (self.holes.len() > 1 && is_far(&self.holes)) {
            let Some(oldest) = self.holes.pop_front() else { return };
            self.markers = self.markers.saturating_sub(size(oldest));
        }
    }

    /// Returns from where the changelog is to be read, if there is more in the holes than own markers.
    pub(super) fn begin_reading(&mut self) -> Option<Position> {
        let holes: u64 = self.holes.iter().map(|hole| size(*hole)).sum();
        if self.reading.is_some() || holes <= self.markers {
            return None;
        }
        self.reading = self.holes.back().map(|(_, to)| *to);
        self.holes.front().map(|(from, _)| *from)
    }

    /// Takes a batch that was read. Returns the records that are not ours, and whether enough was read.
    pub(super) fn read<'a>(&mut self, batch: &'a ChangelogBatch) -> (Vec<&'a ChangelogRecord>, bool) {
        let Some(until) = self.reading else {
            return (Vec::new(), false);
        };
        let is_foreign = |record: &&ChangelogRecord| {
            let at = Position(record.offset.0);
            self.holes.iter().any(|(from, to)| *from <= at && at < *to && at < until)
        };
        let foreign = batch.records.iter().filter(is_foreign).collect();
        if batch.position < until {
            return (foreign, false);
        }
        self.holes.retain(|(_, to)| *to > until);
        // Markers that were late stand behind, and are read for nothing once more.
        self.markers = 0;
        self.reading = None;
        (foreign, true)
    }
}

#[cfg(test)]
#[path = "watch_test.rs"]
mod tests;
