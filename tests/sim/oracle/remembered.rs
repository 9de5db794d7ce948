//! Ids that have ended, as they are promised to be remembered.
//!
//! Owns what is known of the time of an ending. Keeps: as soon as the changelog shows it, it is exact.

use super::{End, Home, TimerName};
use crate::setting::{kinds_of, remember_of};

/// What is remembered of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// How its timer ended, and which version; `None` if a disarm found nothing.
    pub(crate) end: Option<(End, u64)>,
    /// When it ended: between these, by the clock of the process, in milliseconds since 1970. Of a timer that a sweep has cancelled
    /// and not reached yet the later one is not known: `i64::MAX`.
    pub(crate) ended: (i64, i64),
    /// For how long it is remembered from then on.
    pub(crate) lasts: i64,
}

impl Memory {
    /// Returns when the id is forgotten, at the earliest and at the latest.
    pub(crate) fn until(&self) -> (i64, i64) {
        (self.ended.0.saturating_add(self.lasts), self.ended.1.saturating_add(self.lasts))
    }

    /// Returns what it may be: as it ended at the earliest and at the latest.
    pub(crate) fn extremes(&self) -> [Self; 2] {
        let (first, last) = self.ended;
        [Self { ended: (first, first), ..self.clone() }, Self { ended: (last, last), ..self.clone() }]
    }

    /// Returns whether it is known to be exactly so that it refuses an arm of a kind that remembers for so long.
    pub(crate) fn refuses(&self, remember: i64, time: i64) -> bool {
        let is_of_kind = self.end.is_some() || time < self.ended.0.saturating_add(remember);
        is_of_kind && time < self.until().0
    }
}

/// Returns the longest time for which a kind remembers, where a release knows these kinds.
pub(crate) fn longest(home: &Home, is_old: bool) -> i64 {
    let lasts = kinds_of(is_old).map(|kind| remember_of(home.has_remember, kind.number));
    lasts.max().unwrap_or(0)
}

impl Home {
    /// The timer has ended for good.
    pub(crate) fn remember(&mut self, name: &TimerName, (end, generation): (End, u64), kind: u32, ended: (i64, i64)) {
        let lasts = remember_of(self.has_remember, kind);
        if lasts > 0 {
            self.remembered.insert(name.clone(), vec![Memory { end: Some((end, generation)), ended, lasts }]);
        }
    }

    /// Returns what may be remembered of an id while a process's clock may have said `high`.
    pub(crate) fn memories(&self, name: &TimerName, high: i64) -> Vec<Option<Memory>> {
        let Some(known) = self.remembered.get(name) else { return vec![None] };
        let mut memories: Vec<Option<Memory>> = known.iter().flat_map(Memory::extremes).map(Some).collect();
        // One that has lapsed may be gone or not.
        if known.iter().any(|memory| memory.until().0 <= high) || self.unsure.contains(name) {
            memories.push(None);
        }
        memories.dedup();
        memories
    }
}
