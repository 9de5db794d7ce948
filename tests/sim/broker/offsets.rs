//! The group's positions.
//!
//! Owns what is committed and what is pending in transactions. Keeps: a pending position is seen when its marker comes, and
//! never hides one that was sent later; who does not ask for stable positions is told the older one.

use std::collections::BTreeMap;

use punctual::position::{Partition, Position};

use super::Refusal;

#[derive(Clone, Copy, Debug)]
struct Sent {
    position: Position,
    sequence: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Offsets {
    committed: BTreeMap<Partition, Sent>,
    pending: BTreeMap<u64, BTreeMap<Partition, Sent>>,
    sequence: u64,
}

impl Offsets {
    pub(super) fn pend(&mut self, producer: u64, positions: &BTreeMap<Partition, Position>) {
        self.sequence += 1;
        let sent = positions
            .iter()
            .map(|(partition, position)| (*partition, Sent { position: *position, sequence: self.sequence }));
        self.pending.entry(producer).or_default().extend(sent);
    }

    pub(super) fn pending_of(&self, producer: u64) -> BTreeMap<Partition, Position> {
        let pending = self.pending.get(&producer).into_iter().flatten();
        pending.map(|(partition, sent)| (*partition, sent.position)).collect()
    }

    pub(super) fn settle(&mut self, producer: u64, is_commit: bool) {
        for (partition, sent) in self.pending.remove(&producer).unwrap_or_default() {
            let is_later = self.committed.get(&partition).is_none_or(|before| before.sequence < sent.sequence);
            if is_commit && is_later {
                self.committed.insert(partition, sent);
            }
        }
    }

    /// `OffsetFetch` of a client that also reads open transactions.
    pub(crate) fn fetch_stale(&self, partition: Partition) -> Option<Position> {
        self.committed.get(&partition).map(|sent| sent.position)
    }

    /// `OffsetFetch` of a client that reads committed records only.
    ///
    /// # Errors
    /// When a transaction on the position is open.
    pub(crate) fn fetch_stable(&self, partition: Partition) -> Result<Option<Position>, Refusal> {
        if self.pending.values().any(|pending| pending.contains_key(&partition)) {
            return Err(Refusal::Unstable);
        }
        Ok(self.fetch_stale(partition))
    }

    /// The group is deleted, or has expired.
    pub(crate) fn forget(&mut self) {
        self.committed.clear();
    }
}
