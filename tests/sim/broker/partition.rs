//! One partition of a topic: records, markers of transactions, and what a reader may see of them.
//!
//! Owns the entries, the last stable offset, retention and compaction. Never forgets an entry: what retention or compaction
//! has removed is only hidden, so that the oracle can still look at it. Keeps: a committed reader sees nothing at or behind
//! the first record of an open transaction, and compaction removes nothing there.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use punctual::timer::model::Header;

use crate::sim::Millis;

/// A record as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) key: Option<Bytes>,
    pub(crate) value: Option<Bytes>,
    pub(crate) headers: Vec<Header>,
    pub(crate) timestamp: Option<Millis>,
}

/// What a committed reader makes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Visible,
    Open,
    /// Committed, but the marker is not written yet.
    Decided,
    Aborted,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// `None` is the marker of a transaction.
    pub(crate) data: Option<Data>,
    pub(crate) fate: Fate,
    pub(crate) producer: Option<u64>,
    pub(crate) appended: Millis,
    /// Removed by compaction.
    is_gone: bool,
    /// When compaction first met this tombstone.
    cleaned: Option<Millis>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PartitionLog {
    pub(crate) entries: BTreeMap<i64, Entry>,
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// The first offset of each producer's open transaction.
    open: BTreeMap<u64, i64>,
    /// Where the records of each key are.
    by_key: BTreeMap<Bytes, Vec<i64>>,
}

impl PartitionLog {
    /// Appends a record and returns its offset.
    pub(crate) fn append(&mut self, data: Data, producer: Option<u64>, now: Millis) -> i64 {
        let fate = if producer.is_some() { Fate::Open } else { Fate::Visible };
        if let Some(key) = &data.key {
            self.by_key.entry(key.clone()).or_default().push(self.end);
        }
        let offset =
            self.push(Entry { data: Some(data), fate, producer, appended: now, is_gone: false, cleaned: None });
        if let Some(producer) = producer {
            self.open.entry(producer).or_insert(offset);
        }
        offset
    }

    /// Notes that the producer's transaction will commit, and returns its records.
    pub(super) fn decide(&mut self, producer: u64) -> Vec<(i64, Data)> {
        let mut records = Vec::new();
        let Some(first) = self.open.get(&producer) else { return records };
        for (offset, entry) in self.entries.range_mut(first..) {
            if entry.producer == Some(producer)
                && entry.fate == Fate::Open
                && let Some(data) = &entry.data
            {
                entry.fate = Fate::Decided;
                records.push((*offset, data.clone()));
            }
        }
        records
    }

    /// Ends the producer's transaction here.
    pub(crate) fn mark(&mut self, producer: u64, is_commit: bool, now: Millis) {
        if let Some(first) = self.open.remove(&producer) {
            let fate = if is_commit { Fate::Visible } else { Fate::Aborted };
            for (_, entry) in self.entries.range_mut(first..) {
                if entry.producer == Some(producer) && matches!(entry.fate, Fate::Open | Fate::Decided) {
                    entry.fate = fate;
                }
            }
        }
        self.push(Entry {
            data: None,
            fate: Fate::Visible,
            producer: Some(producer),
            appended: now,
            is_gone: false,
            cleaned: None,
        });
    }

    fn push(&mut self, entry: Entry) -> i64 {
        let offset = self.end;
        self.entries.insert(offset, entry);
        self.end += 1;
        offset
    }

    /// Returns the end of what committed readers see.
    pub(crate) fn last_stable(&self) -> i64 {
        self.open.values().copied().min().unwrap_or(self.end)
    }

    /// Returns up to `records_max` committed records from `from` on, and the position behind what was looked at.
    pub(crate) fn fetch(&self, from: i64, records_max: usize) -> (Vec<(i64, &Entry)>, i64) {
        let stable = self.last_stable();
        let mut found = Vec::new();
        for (offset, entry) in self.entries.range(from.max(self.start)..stable.max(from)) {
            if entry.data.is_none() || entry.fate != Fate::Visible || entry.is_gone {
                continue;
            }
            if found.len() == records_max {
                return (found, *offset);
            }
            found.push((*offset, entry));
        }
        (found, stable.max(from))
    }

    /// Removes everything below an offset.
    pub(crate) fn delete_below(&mut self, offset: i64) {
        self.start = self.start.max(offset.min(self.end));
    }

    /// Compacts what is below `until`: of each key the last committed record stays, a tombstone for `retention` longer.
    pub(crate) fn compact(&mut self, until: i64, now: Millis, retention: Millis) {
        let until = until.min(self.last_stable());
        let mut seen = BTreeSet::new();
        for (offset, entry) in self.entries.iter_mut().rev() {
            let Some(data) = &entry.data else { continue };
            if *offset >= until || entry.is_gone {
                continue;
            }
            let is_last = entry.fate == Fate::Visible && seen.insert(data.key.clone());
            let is_tombstone = data.value.is_none();
            let is_old = is_tombstone && now - *entry.cleaned.get_or_insert(now) > retention;
            entry.is_gone = !is_last || is_old;
        }
    }

    /// Returns the last committed record of a key below an offset, whether or not compaction has removed it.
    pub(crate) fn committed_below(&self, key: &Bytes, below: i64) -> Option<&Data> {
        self.last_committed(key, below).and_then(|entry| entry.data.as_ref())
    }

    /// Returns whether compaction has removed that record, since a later one stands at the offset or behind.
    pub(crate) fn is_compacted_below(&self, key: &Bytes, below: i64) -> bool {
        self.last_committed(key, below).is_some_and(|entry| entry.is_gone)
    }

    fn last_committed(&self, key: &Bytes, below: i64) -> Option<&Entry> {
        let offsets = self.by_key.get(key)?;
        let entries = offsets.iter().rev().filter(|offset| **offset < below).map(|offset| &self.entries[offset]);
        let mut committed = entries.filter(|entry| matches!(entry.fate, Fate::Visible | Fate::Decided));
        committed.next()
    }

    /// Returns the keys that records were ever appended with.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Bytes> {
        self.by_key.keys()
    }
}
