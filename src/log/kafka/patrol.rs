//! A look now and then at whether commands are still being read.
//!
//! Owns whose turn it is and where each partition was when it was looked at last. Never reads a record.
//! Keeps: a partition that holds unread records and does not move from one look to the next is read on anew. That may be
//! for nothing, while an open transaction is in front; but after a restart of the broker a fetcher was seen that had stopped.

use std::collections::BTreeMap;
use std::time::Duration;

use super::consumer::GroupConsumer;
use super::deadline::Deadline;
use super::probe::Probe;
use crate::position::{Partition, Position};

/// Between two looks, each at one partition.
const INTERVAL: Duration = Duration::from_secs(1);
/// Between two looks at the same partition, at least.
const ROUND: Duration = Duration::from_secs(10);

/// The patrol.
pub(super) struct Patrol {
    next: Deadline,
    round: Deadline,
    last: Option<Partition>,
    seen: BTreeMap<Partition, Position>,
}

impl Patrol {
    /// Starts with a first look in a while.
    pub(super) fn new() -> Self {
        Self { next: Deadline::after(ROUND), round: Deadline::after(ROUND), last: None, seen: BTreeMap::new() }
    }

    /// Looks at the next partition, when it is time, and reads it on anew if it does not move.
    pub(super) fn look(&mut self, topic: &str, consumer: &mut GroupConsumer, probe: &Probe) {
        if !self.next.is_over() {
            return;
        }
        self.next = Deadline::after(INTERVAL);
        let reading = consumer.reading();
        let behind_last = reading.iter().find(|(partition, _)| self.last.is_none_or(|last| *partition > last));
        let Some((partition, _)) = behind_last.copied() else {
            // The round is over; the next one begins when this one has lasted long enough.
            self.seen.retain(|partition, _| reading.iter().any(|(other, _)| other == partition));
            self.last = None;
            self.next = Deadline::after(self.round.remaining());
            self.round = Deadline::after(self.round.remaining() + ROUND);
            return;
        };
        self.last = Some(partition);
        let Some(position) = consumer.position(partition) else { return };
        let has_moved = self.seen.insert(partition, position) != Some(position);
        // Without an answer there is another look later.
        let Ok(extent) = probe.extent_soon(topic, partition) else { return };
        if has_moved || extent.end <= position {
            return;
        }
        tracing::debug!(%partition, %position, end = %extent.end, "unread commands and no movement, reading on anew");
        if let Err(error) = consumer.restart_reader(partition) {
            tracing::warn!(%partition, %error, "cannot read commands anew");
        }
    }
}
