//! What a pod's clients have in memory: its place in the group, and how far it has read.
//!
//! Owns [`Reader`], shared with the event loop so that a pod sleeps until there is something for it. Never changes the
//! broker. Keeps: the records of a partition are returned in order and once between two calls of `consume`, and none of a
//! paused one.

use std::collections::BTreeMap;

use bytes::Bytes;
use punctual::log::{ChangelogBatch, ChangelogRecord, Destination, InputRecord, LogEvent};
use punctual::position::{Offset, Partition, Position};
use punctual::time::Timestamp;

use crate::broker::Broker;
use crate::broker::group::Membership;
use crate::sim::EPOCH;

/// What is read of a partition of the command topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Paused,
    From(i64),
    /// Its position is outside of the log.
    Fallen,
}

#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The member's id in the group.
    pub(crate) member: Option<u64>,
    /// Who the member was after the last poll: what fences its transactions until the next.
    pub(crate) captured: Option<Membership>,
    pub(crate) held: BTreeMap<Partition, Reading>,
    pub(crate) restoring: BTreeMap<Partition, i64>,
    /// Until when it does not hear that the group has taken it for gone.
    pub(crate) deaf_until: i64,
}

impl Reader {
    /// Returns whether a poll would return something.
    pub(crate) fn is_ready(&self, broker: &Broker, now: i64) -> bool {
        let hears = self.deaf_until <= now;
        hears && self.member.is_none_or(|member| broker.group.has_events(member))
            || self
                .restoring
                .iter()
                .any(|(partition, from)| *from < broker.log((Destination::Changelog, *partition)).last_stable())
            || self.held.iter().any(|(partition, reading)| match reading {
                Reading::From(from) => {
                    let log = broker.log((Destination::Arm, *partition));
                    *from < log.last_stable() || *from < log.start
                }
                Reading::Paused | Reading::Fallen => false,
            })
    }

    /// Reads the changelogs that are being restored.
    pub(crate) fn read_changelogs(&mut self, broker: &Broker, records_max: usize) -> Vec<LogEvent> {
        let mut events = Vec::new();
        for (partition, next) in &mut self.restoring {
            let (found, position) = broker.log((Destination::Changelog, *partition)).fetch(*next, records_max);
            if position == *next {
                continue;
            }
            let mut records = Vec::new();
            for (offset, entry) in found {
                let Some(data) = &entry.data else { continue };
                let key = data.key.clone().unwrap_or_else(Bytes::new);
                records.push(ChangelogRecord { offset: Offset(offset), key, value: data.value.clone() });
            }
            *next = position;
            let position = Position(position);
            events.push(LogEvent::Changelog(ChangelogBatch { partition: *partition, records, position }));
        }
        events
    }

    /// Reads commands.
    pub(crate) fn read_commands(&mut self, broker: &Broker, records_max: usize) -> Vec<LogEvent> {
        let mut events = Vec::new();
        for (partition, reading) in &mut self.held {
            let Reading::From(next) = *reading else { continue };
            let log = broker.log((Destination::Arm, *partition));
            if next < log.start || log.end < next {
                *reading = Reading::Fallen;
                events.push(LogEvent::OutOfRange(*partition));
                continue;
            }
            let room = records_max.saturating_sub(events.len());
            let (found, position) = log.fetch(next, room);
            for (offset, entry) in found {
                let Some(data) = &entry.data else { continue };
                events.push(LogEvent::Record(InputRecord {
                    partition: *partition,
                    offset: Offset(offset),
                    timestamp: data.timestamp.map(|at| Timestamp::from_millis(EPOCH + at)),
                    key: data.key.clone(),
                    value: data.value.clone(),
                    headers: data.headers.clone(),
                }));
            }
            *reading = Reading::From(position);
        }
        events
    }
}
