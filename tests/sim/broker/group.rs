//! The group's coordinator, with the cooperative protocol as a client sees it.
//!
//! ```text
//!   join, leave, expiry, release ──▶ rebalance: members join again ──▶ new generation ──▶ Revoked, Assigned
//! ```
//!
//! Owns members, generations and who holds what. Keeps: a partition that is held by a member is given to no other before it
//! is released, or the member has left or expired; a static member that joins again keeps what it has, in the same
//! generation, and fences the older process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use punctual::log::LogEvent;
use punctual::position::Partition;

use super::Refusal;
use crate::sim::Millis;

/// Longest a member takes to hear of a rebalance.
const HEARTBEAT: Millis = 400;

/// Who a member believes to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    pub(crate) member: u64,
    pub(crate) generation: i32,
}

/// How the group looks at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Member,
    Unknown,
    Fenced,
}

#[derive(Clone, Debug)]
struct Member {
    instance: Option<String>,
    generation: i32,
    /// When its session ends if it stays silent; `None` while it is heard of.
    silent_since: Option<Millis>,
    held: BTreeSet<Partition>,
    events: VecDeque<Event>,
    /// Partitions that it was asked for and has not released.
    owing: BTreeSet<Partition>,
    /// Whether it has joined for the generation that is coming, and if not, when it will.
    rejoins_at: Option<Millis>,
}

/// An event of the group, in a form that can be copied.
#[derive(Clone, Debug)]
enum Event {
    Assigned(Vec<Partition>),
    Revoked(Vec<Partition>),
}

pub(crate) struct Group {
    partitions: u32,
    session: Millis,
    generation: i32,
    members: BTreeMap<u64, Member>,
    /// Members that were replaced by one with the same instance id.
    fenced: BTreeSet<u64>,
    is_rebalancing: bool,
    next_member: u64,
    /// Whether the next assignment is to move partitions at random.
    is_shuffling: bool,
    rng: fastrand::Rng,
}

impl Group {
    pub(super) fn new(partitions: u32, session: Millis, seed: u64) -> Self {
        Self {
            partitions,
            session,
            generation: 0,
            members: BTreeMap::new(),
            fenced: BTreeSet::new(),
            is_rebalancing: false,
            next_member: 1,
            is_shuffling: false,
            rng: fastrand::Rng::with_seed(seed ^ 0x6720),
        }
    }

    pub(super) fn set_partitions(&mut self, partitions: u32) {
        self.partitions = partitions;
        self.rebalance(0);
    }

    /// Joins and returns the member's id.
    pub(crate) fn join(&mut self, instance: Option<&str>, now: Millis) -> u64 {
        let id = self.next_member;
        self.next_member += 1;
        let predecessor = self.members.iter().find(|(_, m)| m.instance.is_some() && m.instance.as_deref() == instance);
        let predecessor = predecessor.map(|(id, _)| *id);
        let mut member = Member {
            instance: instance.map(str::to_owned),
            generation: -1,
            silent_since: None,
            held: BTreeSet::new(),
            events: VecDeque::new(),
            owing: BTreeSet::new(),
            rejoins_at: None,
        };
        if let Some(old) = predecessor.and_then(|id| self.members.remove(&id).map(|old| (id, old))) {
            self.fenced.insert(old.0);
            if !self.is_rebalancing && old.1.generation == self.generation && old.1.owing.is_empty() {
                // It is told what it had, in the same generation.
                member.generation = self.generation;
                member.events.push_back(Event::Assigned(old.1.held.iter().copied().collect()));
                member.held = old.1.held;
                self.members.insert(id, member);
                return id;
            }
        }
        member.rejoins_at = Some(now);
        self.members.insert(id, member);
        self.rebalance(now);
        id
    }

    /// Leaves: a dynamic member that stops. What it held is free.
    pub(crate) fn leave(&mut self, member: u64, now: Millis) {
        if self.members.remove(&member).is_some() {
            self.rebalance(now);
        }
    }

    /// The coordinator takes the member for gone although it is alive.
    pub(crate) fn evict(&mut self, member: u64, now: Millis) {
        self.leave(member, now);
    }

    /// Nothing is heard of the member any more.
    pub(crate) fn falls_silent(&mut self, member: u64, now: Millis) {
        if let Some(member) = self.members.get_mut(&member) {
            member.silent_since.get_or_insert(now);
        }
    }

    /// The member is heard of again.
    pub(crate) fn is_heard(&mut self, member: u64) {
        if let Some(member) = self.members.get_mut(&member) {
            member.silent_since = None;
        }
    }

    pub(crate) fn standing(&self, member: u64) -> Standing {
        if self.members.contains_key(&member) {
            Standing::Member
        } else if self.fenced.contains(&member) {
            Standing::Fenced
        } else {
            Standing::Unknown
        }
    }

    /// Returns who the member is now; `None` before its first generation.
    pub(crate) fn membership(&self, member: u64) -> Option<Membership> {
        let generation = self.members.get(&member)?.generation;
        (generation >= 0).then_some(Membership { member, generation })
    }

    pub(super) fn check(&self, who: &Membership) -> Result<(), Refusal> {
        match self.standing(who.member) {
            Standing::Fenced => Err(Refusal::FencedInstance),
            Standing::Unknown => Err(Refusal::UnknownMember),
            Standing::Member if who.generation != self.generation => Err(Refusal::IllegalGeneration),
            Standing::Member => Ok(()),
        }
    }

    /// Returns whether something waits for the member.
    pub(crate) fn has_events(&self, member: u64) -> bool {
        self.members.get(&member).is_none_or(|member| !member.events.is_empty())
    }

    /// Returns what happened to the member since the last call.
    pub(crate) fn take_events(&mut self, member: u64) -> Vec<LogEvent> {
        let events = self.members.get_mut(&member).map(|member| std::mem::take(&mut member.events)).unwrap_or_default();
        let event = |event| match event {
            Event::Assigned(partitions) => LogEvent::Assigned(partitions),
            Event::Revoked(partitions) => LogEvent::Revoked(partitions),
        };
        events.into_iter().map(event).collect()
    }

    /// The member gives partitions back.
    pub(crate) fn released(&mut self, member: u64, partitions: &[Partition], now: Millis) {
        let Some(member) = self.members.get_mut(&member) else { return };
        for partition in partitions {
            member.owing.remove(partition);
            member.held.remove(partition);
        }
        self.rebalance(now);
    }

    /// Partitions move at random, as when members come and go elsewhere.
    pub(crate) fn shuffle(&mut self, now: Millis) {
        self.is_shuffling = true;
        self.rebalance(now);
    }

    fn rebalance(&mut self, now: Millis) {
        if !self.is_rebalancing {
            self.is_rebalancing = true;
            for member in self.members.values_mut() {
                member.rejoins_at.get_or_insert(now + self.rng.i64(0..HEARTBEAT));
            }
        }
    }

    pub(super) fn next_at(&self) -> Option<Millis> {
        let expiries = self.members.values().filter_map(|member| Some(member.silent_since? + self.session));
        let joins = self.members.values().filter(|_| self.is_rebalancing).filter(|member| member.is_free());
        expiries.chain(joins.filter_map(|member| member.rejoins_at)).min()
    }

    pub(super) fn advance(&mut self, now: Millis) {
        let expired =
            self.members.iter().filter(|(_, m)| m.silent_since.is_some_and(|since| since + self.session <= now));
        let expired: Vec<u64> = expired.map(|(id, _)| *id).collect();
        for id in expired {
            self.leave(id, now);
        }
        if !self.is_rebalancing || self.members.is_empty() {
            return;
        }
        for member in self.members.values_mut().filter(|member| member.is_free()) {
            if member.rejoins_at.is_some_and(|at| at <= now) {
                member.rejoins_at = None;
            }
        }
        if self.members.values().all(|member| member.is_free() && member.rejoins_at.is_none()) {
            self.assign();
        }
    }

    fn assign(&mut self) {
        self.generation += 1;
        self.is_rebalancing = false;
        let target = self.target();
        let held: BTreeSet<Partition> = self.members.values().flat_map(|member| &member.held).copied().collect();
        for (id, member) in &mut self.members {
            let wanted: BTreeSet<Partition> =
                target.iter().filter(|(_, to)| *to == id).map(|(partition, _)| *partition).collect();
            let is_first = member.generation < 0;
            member.generation = self.generation;
            let revoked: Vec<Partition> = member.held.difference(&wanted).copied().collect();
            let added: Vec<Partition> = wanted.iter().filter(|p| !held.contains(p)).copied().collect();
            if !revoked.is_empty() {
                member.owing.extend(revoked.iter().copied());
                member.events.push_back(Event::Revoked(revoked));
            }
            if !added.is_empty() || is_first {
                member.held.extend(added.iter().copied());
                member.events.push_back(Event::Assigned(added));
            }
        }
    }

    /// Returns who is to have each partition: who has it, unless that is unfair or all is shuffled.
    fn target(&mut self) -> BTreeMap<Partition, u64> {
        let ids: Vec<u64> = self.members.keys().copied().collect();
        let share = (self.partitions as usize).div_ceil(ids.len());
        let is_shuffling = std::mem::take(&mut self.is_shuffling);
        let mut load: BTreeMap<u64, usize> = ids.iter().map(|id| (*id, 0)).collect();
        let mut target = BTreeMap::new();
        for number in 0..self.partitions {
            let partition = Partition(number);
            let owner = self.members.iter().find(|(_, member)| member.held.contains(&partition)).map(|(id, _)| *id);
            let kept = owner.filter(|owner| load[owner] < share && !(is_shuffling && self.rng.bool()));
            let chosen = kept.or_else(|| {
                let free: Vec<u64> = ids.iter().filter(|id| load[id] < share).copied().collect();
                self.rng.choice(free)
            });
            if let Some(chosen) = chosen {
                *load.entry(chosen).or_default() += 1;
                target.insert(partition, chosen);
            }
        }
        target
    }
}

impl Member {
    /// Returns whether it can join: it has answered everything, and is not silent.
    fn is_free(&self) -> bool {
        self.events.is_empty() && self.owing.is_empty() && self.silent_since.is_none()
    }
}
