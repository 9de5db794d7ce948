//! The transaction coordinator.
//!
//! ```text
//!             add                end, time-out, init                 last marker
//!   Empty ──────────▶ Ongoing ─────────────────────▶ Completing ──────────────────▶ Complete ── add ──▶ Ongoing
//! ```
//!
//! Owns producer ids, epochs and decisions. Keeps: `init` fences: it raises the epoch, aborts what is open and lets what is
//! decided complete; a transaction is decided once, and its markers follow, each in its own time.

use std::collections::{BTreeMap, BTreeSet};

use punctual::position::{Partition, Position};

use super::group::Membership;
use super::partition::Data;
use super::{Broker, Later, Place, Refusal};
use crate::sim::Millis;

/// One request in so many meets the late copy of an earlier one.
const COPY_ONE_IN: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Empty,
    Ongoing { since: Millis },
    Completing { is_commit: bool, markers: usize },
    Complete { is_commit: bool },
}

/// One transactional id.
#[derive(Clone, Debug)]
pub(crate) struct Coordinator {
    epoch: u32,
    timeout: Millis,
    state: State,
    places: BTreeSet<Place>,
    has_offsets: bool,
    /// Who initialised it last.
    owner: u64,
}

impl Coordinator {
    pub(super) fn expires_at(&self) -> Option<Millis> {
        match self.state {
            State::Ongoing { since } => Some(since + self.timeout),
            State::Empty | State::Completing { .. } | State::Complete { .. } => None,
        }
    }
}

/// A transaction that the coordinator has committed: from now on it will be seen, whatever happens.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    /// The incarnation that wrote it; 0 is a client.
    pub(crate) owner: u64,
    pub(crate) records: Vec<(Place, i64, Data)>,
    pub(crate) positions: BTreeMap<Partition, Position>,
}

/// Who a producer is: the number of its transactional id, and its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProducerId {
    pub(crate) producer: u64,
    pub(crate) epoch: u32,
}

impl Broker {
    /// `InitProducerId`.
    pub(crate) fn init_producer(
        &mut self,
        id: &str,
        owner: u64,
        timeout: Millis,
        now: Millis,
    ) -> Result<ProducerId, Refusal> {
        let count = self.producers.len() as u64;
        let producer = *self.producers.entry(id.to_owned()).or_insert(count + 1);
        let coordinator = self.coordinators.entry(producer).or_insert_with(|| Coordinator {
            epoch: 0,
            timeout,
            state: State::Empty,
            places: BTreeSet::new(),
            has_offsets: false,
            owner,
        });
        match coordinator.state {
            State::Ongoing { .. } => {
                coordinator.epoch += 1;
                self.decide(producer, false, now);
                Err(Refusal::ConcurrentTransactions)
            }
            State::Completing { .. } => Err(Refusal::ConcurrentTransactions),
            State::Empty | State::Complete { .. } => {
                coordinator.epoch += 1;
                coordinator.state = State::Empty;
                coordinator.timeout = timeout;
                coordinator.owner = owner;
                Ok(ProducerId { producer, epoch: coordinator.epoch })
            }
        }
    }

    fn coordinator(&mut self, who: ProducerId) -> Result<&mut Coordinator, Refusal> {
        let coordinator = self.coordinators.get_mut(&who.producer).ok_or(Refusal::InvalidState)?;
        if coordinator.epoch != who.epoch {
            return Err(Refusal::ProducerFenced);
        }
        Ok(coordinator)
    }

    fn ongoing(&mut self, who: ProducerId, now: Millis) -> Result<&mut Coordinator, Refusal> {
        let coordinator = self.coordinator(who)?;
        match coordinator.state {
            State::Completing { .. } => return Err(Refusal::ConcurrentTransactions),
            State::Empty | State::Complete { .. } => {
                coordinator.state = State::Ongoing { since: now };
                coordinator.places.clear();
                coordinator.has_offsets = false;
            }
            State::Ongoing { .. } => {}
        }
        Ok(coordinator)
    }

    /// `AddPartitionsToTxn`.
    pub(crate) fn add_partition(&mut self, who: ProducerId, place: Place, now: Millis) -> Result<(), Refusal> {
        if self.refusing.contains(&place.0) {
            return Err(Refusal::Topic(place.0));
        }
        self.ongoing(who, now)?.places.insert(place);
        Ok(())
    }

    /// `Produce`, in the transaction. The leader asks the coordinator whether the partition belongs to it.
    pub(crate) fn produce(&mut self, who: ProducerId, place: Place, data: Data, now: Millis) -> Result<i64, Refusal> {
        if self.refusing.contains(&place.0) {
            return Err(Refusal::Topic(place.0));
        }
        self.deliver_copy(who, now);
        let coordinator = self.coordinator(who)?;
        if !matches!(coordinator.state, State::Ongoing { .. }) || !coordinator.places.contains(&place) {
            return Err(Refusal::InvalidState);
        }
        Ok(self.log_mut(place).append(data, Some(who.producer), now))
    }

    /// `AddOffsetsToTxn` and `TxnOffsetCommit`: the only call that looks at the group.
    pub(crate) fn commit_positions(
        &mut self,
        who: ProducerId,
        member: &Membership,
        positions: &BTreeMap<Partition, Position>,
        now: Millis,
    ) -> Result<(), Refusal> {
        self.deliver_copy(who, now);
        self.ongoing(who, now)?.has_offsets = true;
        self.group.check(member)?;
        self.offsets.pend(who.producer, positions);
        Ok(())
    }

    /// `EndTxn`.
    pub(crate) fn end_transaction(&mut self, who: ProducerId, is_commit: bool, now: Millis) -> Result<(), Refusal> {
        match self.coordinator(who)?.state {
            State::Ongoing { .. } => {
                self.decide(who.producer, is_commit, now);
                Ok(())
            }
            State::Completing { is_commit: was, .. } if was == is_commit => Err(Refusal::ConcurrentTransactions),
            State::Complete { is_commit: was } if was == is_commit => Ok(()),
            State::Empty | State::Completing { .. } | State::Complete { .. } => Err(Refusal::InvalidState),
        }
    }

    /// The same request may arrive once more until an instant.
    pub(crate) fn end_again(&mut self, who: ProducerId, is_commit: bool, until: Millis) {
        self.copies.insert(who.producer, (who, is_commit, until));
    }

    /// A copy of an earlier request arrives, at the worst moment: while the producer's next transaction is open.
    fn deliver_copy(&mut self, who: ProducerId, now: Millis) {
        let Some((sent_by, is_commit, until)) = self.copies.get(&who.producer).copied() else { return };
        if until < now {
            self.copies.remove(&who.producer);
        } else if self.rng.u32(0..COPY_ONE_IN) == 0 {
            self.copies.remove(&who.producer);
            let _answer = self.end_transaction(sent_by, is_commit, now);
        }
    }

    fn decide(&mut self, producer: u64, is_commit: bool, now: Millis) {
        let coordinator = self.coordinators.get_mut(&producer).expect("the coordinator exists");
        let owner = coordinator.owner;
        let places = std::mem::take(&mut coordinator.places);
        let has_offsets = coordinator.has_offsets;
        coordinator.state = State::Completing { is_commit, markers: places.len() + usize::from(has_offsets) };
        if is_commit {
            let mut records = Vec::new();
            for place in &places {
                let log = self.logs.get_mut(place).expect("the partition exists");
                records.extend(log.decide(producer).into_iter().map(|(offset, data)| (*place, offset, data)));
            }
            let positions = self.offsets.pending_of(producer);
            self.decided.push(Decision { owner, records, positions });
        }
        for place in places {
            let at = now + self.delay();
            self.schedule(at, Later::Mark { producer, place, is_commit });
        }
        if has_offsets {
            let at = now + self.delay();
            self.schedule(at, Later::Settle { producer, is_commit });
        }
    }

    fn delay(&mut self) -> Millis {
        let (least, most) = self.marker_delay;
        self.rng.i64(least..=most)
    }

    pub(super) fn marked(&mut self, producer: u64) {
        let Some(coordinator) = self.coordinators.get_mut(&producer) else { return };
        if let State::Completing { is_commit, markers } = coordinator.state {
            coordinator.state = match markers {
                0 | 1 => State::Complete { is_commit },
                more => State::Completing { is_commit, markers: more - 1 },
            };
        }
    }

    pub(super) fn expire_transactions(&mut self, now: Millis) {
        let expired = self.coordinators.iter().filter(|(_, c)| c.expires_at().is_some_and(|at| at <= now));
        let expired: Vec<u64> = expired.map(|(producer, _)| *producer).collect();
        for producer in expired {
            if let Some(coordinator) = self.coordinators.get_mut(&producer) {
                coordinator.epoch += 1;
            }
            self.decide(producer, false, now);
        }
    }
}
