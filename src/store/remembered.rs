//! What the open transaction changes of remembered ids.
//!
//! Owns the fold of [`Mutation::Remember`](crate::timer::outcome::Mutation::Remember), and how many ids are remembered. Never
//! reads a store. Keeps: the changes are net; the number is exact; and no id that is remembered ends before [`Memory::first`], so
//! that a tick in which none ends reads nothing.

use std::collections::BTreeMap;

use super::{RememberedChange, StoreHeader};
use crate::time::Timestamp;
use crate::timer::identity::TimerKey;
use crate::timer::model::Remembered;
use crate::wire::remembered::encode_remembered;

/// The changes of remembered ids.
#[derive(Debug)]
pub(super) struct Memory {
    changes: BTreeMap<TimerKey, MemoryEdit>,
    /// How many ids are remembered from now on.
    count: u64,
    /// No remembered id ends before.
    first: Timestamp,
}

/// A remembered id that changes.
#[derive(Debug)]
pub(super) struct MemoryEdit {
    /// What the store remembers of it.
    before: Option<Remembered>,
    /// What is remembered from now on.
    pub(super) after: Option<Remembered>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { changes: BTreeMap::new(), count: 0, first: Timestamp::MAX }
    }
}

impl Memory {
    /// Returns no changes, on a store in which no id ends before `first`.
    pub(super) fn above(header: &StoreHeader, first: Timestamp) -> Self {
        Self { count: header.remembered, first, ..Self::default() }
    }

    /// Takes a change.
    pub(super) fn fold(&mut self, key: TimerKey, previous: Option<Remembered>, state: Option<Remembered>) {
        let before = match self.changes.remove(&key) {
            None => previous,
            Some(edit) => {
                assert_eq!(edit.after, previous, "the mutation knows what is remembered of {key}");
                edit.before
            }
        };
        let by = i64::from(state.is_some()) - i64::from(previous.is_some());
        self.count = self.count.checked_add_signed(by).expect("what is forgotten was counted when it was remembered");
        if let Some(state) = state {
            self.first = self.first.min(state.until);
        }
        if before != state {
            self.changes.insert(key, MemoryEdit { before, after: state });
        }
    }

    /// Returns the change of an id.
    pub(super) fn get(&self, key: &TimerKey) -> Option<&MemoryEdit> {
        self.changes.get(key)
    }

    /// Returns how many ids are remembered.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns an instant before which no remembered id ends; there may be none at it.
    pub(super) fn first(&self) -> Timestamp {
        self.first
    }

    /// Notes that no remembered id ends before `first`.
    pub(super) fn begins_at(&mut self, first: Timestamp) {
        debug_assert!(self.ending(first).all(|(_, state)| state.until == first), "no remembered id ends before");
        self.first = first;
    }

    /// Returns how many of the ids that the store remembers, with an end from `from` to `until`, change.
    pub(super) fn hidden(&self, from: Timestamp, until: Timestamp) -> usize {
        let before = self.changes.values().filter_map(|edit| edit.before);
        before.filter(|before| from <= before.until && before.until <= until).count()
    }

    /// Returns the ids that are remembered anew and end at or before `until`.
    pub(super) fn ending(&self, until: Timestamp) -> impl Iterator<Item = (&TimerKey, Remembered)> {
        let after = self.changes.iter().filter_map(|(key, edit)| edit.after.map(|after| (key, after)));
        after.filter(move |(_, after)| after.until <= until)
    }

    /// Returns the earliest end behind `now` of an id that is remembered anew.
    pub(super) fn first_behind(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.changes.values().filter_map(|edit| edit.after.map(|after| after.until));
        ends.filter(|until| now < *until).min()
    }

    /// Returns the net changes.
    pub(super) fn batch(&self) -> Vec<RememberedChange> {
        let change = |(key, edit): (&TimerKey, &MemoryEdit)| RememberedChange {
            key: key.clone(),
            before: edit.before,
            after: edit.after.map(|after| (after, encode_remembered(&after))),
        };
        self.changes.iter().map(change).collect()
    }

    /// Returns how many ids change.
    pub(super) fn rows(&self) -> usize {
        self.changes.len()
    }
}
