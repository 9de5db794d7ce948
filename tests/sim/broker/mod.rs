//! A broker in memory that keeps Kafka's own rules, not those that we would wish for.
//!
//! ```text
//!   partition      records, markers, last stable offset, retention, compaction
//!   transactions   the coordinator: epochs, fencing, markers that come late, time-outs
//!   offsets        the group's positions: pending until the marker, read stale or stable
//!   group          the group's members: generations, static ones, sessions, cooperative hand-over
//! ```
//!
//! Owns everything that survives a crash of a pod, except its disk. Never calls into punctual. Keeps: only the commit of
//! positions checks the generation; records and the end of a transaction check the producer's epoch alone.

pub(crate) mod group;
pub(crate) mod offsets;
pub(crate) mod partition;
pub(crate) mod transactions;

use std::collections::{BTreeMap, BTreeSet};

use punctual::log::Destination;
use punctual::position::Partition;

use crate::sim::Millis;
use group::Group;
use offsets::Offsets;
use partition::{Data, PartitionLog};
use transactions::{Coordinator, Decision, ProducerId};

/// A partition of a topic.
pub(crate) type Place = (Destination, Partition);

/// What the broker answers instead of what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The producer's epoch is not the latest.
    ProducerFenced,
    /// Markers of the last transaction are still being written.
    ConcurrentTransactions,
    /// There is no such transaction.
    InvalidState,
    /// The topic takes no records.
    Topic(Destination),
    /// The member's generation is not the group's.
    IllegalGeneration,
    /// The group does not know the member.
    UnknownMember,
    /// Another member has the instance id.
    FencedInstance,
    /// A transaction on the position is open.
    Unstable,
}

/// Something that the broker does later.
#[derive(Clone, Debug)]
enum Later {
    /// Writes the marker of a transaction into a partition.
    Mark { producer: u64, place: Place, is_commit: bool },
    /// Writes the marker of a transaction to the positions of the group.
    Settle { producer: u64, is_commit: bool },
}

pub(crate) struct Broker {
    pub(crate) logs: BTreeMap<Place, PartitionLog>,
    pub(crate) partitions: BTreeMap<Destination, u32>,
    /// Topics that take no records now.
    pub(crate) refusing: BTreeSet<Destination>,
    pub(crate) group: Group,
    pub(crate) offsets: Offsets,
    /// Copies of requests to end a transaction that are under way still: until when they may arrive.
    copies: BTreeMap<u64, (ProducerId, bool, Millis)>,
    /// The number of each transactional id.
    producers: BTreeMap<String, u64>,
    coordinators: BTreeMap<u64, Coordinator>,
    later: BTreeMap<(Millis, u64), Later>,
    sequence: u64,
    /// How late markers come: chosen anew for each.
    pub(crate) marker_delay: (Millis, Millis),
    /// The transactions that were decided and not looked at yet.
    pub(crate) decided: Vec<Decision>,
    rng: fastrand::Rng,
}

impl Broker {
    pub(crate) fn new(seed: u64, partitions: BTreeMap<Destination, u32>, session: Millis) -> Self {
        let arm = partitions.get(&Destination::Arm).copied().expect("there is an arm topic");
        let mut logs = BTreeMap::new();
        for (topic, count) in &partitions {
            logs.extend((0..*count).map(|partition| ((*topic, Partition(partition)), PartitionLog::default())));
        }
        Self {
            logs,
            partitions,
            refusing: BTreeSet::new(),
            group: Group::new(arm, session, seed),
            offsets: Offsets::default(),
            copies: BTreeMap::new(),
            producers: BTreeMap::new(),
            coordinators: BTreeMap::new(),
            later: BTreeMap::new(),
            sequence: 0,
            marker_delay: (0, 2),
            decided: Vec::new(),
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// Returns the partition, which must exist.
    pub(crate) fn log(&self, place: Place) -> &PartitionLog {
        &self.logs[&place]
    }

    /// Returns the partition, which must exist.
    pub(crate) fn log_mut(&mut self, place: Place) -> &mut PartitionLog {
        self.logs.get_mut(&place).expect("the partition exists")
    }

    /// Appends a record outside of a transaction.
    pub(crate) fn append(&mut self, place: Place, data: Data, now: Millis) -> i64 {
        self.log_mut(place).append(data, None, now)
    }

    /// Adds partitions to the command topic.
    pub(crate) fn add_arm_partitions(&mut self, count: u32) {
        for partition in 0..count {
            self.logs.entry((Destination::Arm, Partition(partition))).or_default();
        }
        self.partitions.insert(Destination::Arm, count);
        self.group.set_partitions(count);
    }

    fn schedule(&mut self, at: Millis, later: Later) {
        self.sequence += 1;
        self.later.insert((at, self.sequence), later);
    }

    /// Returns when the broker next does something by itself.
    pub(crate) fn next_at(&self) -> Option<Millis> {
        let later = self.later.keys().next().map(|(at, _)| *at);
        let expiries = self.coordinators.values().filter_map(Coordinator::expires_at);
        later.into_iter().chain(expiries).chain(self.group.next_at()).min()
    }

    /// Does what is due: late markers, time-outs of transactions, sessions and rebalances of the group.
    pub(crate) fn advance(&mut self, now: Millis) {
        while let Some(entry) = self.later.first_entry().filter(|entry| entry.key().0 <= now) {
            match entry.remove() {
                Later::Mark { producer, place, is_commit } => {
                    self.log_mut(place).mark(producer, is_commit, now);
                    self.marked(producer);
                }
                Later::Settle { producer, is_commit } => {
                    self.offsets.settle(producer, is_commit);
                    self.marked(producer);
                }
            }
        }
        self.expire_transactions(now);
        self.group.advance(now);
    }
}
