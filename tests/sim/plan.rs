//! What a run is made of: everything that its seed decides before it starts.
//!
//! Owns [`Fault`], the classes of trouble, and [`Plan`]. Swarm testing: each seed has a random subset of the classes and its
//! own shape of the world, so that no class hides what another would show. Keeps: each class draws from a stream of its own,
//! so that leaving one out disturbs the others little; that is what makes a failure shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::sim::Millis;

/// A class of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// A process dies inside a call of the log or of a store.
    Crash,
    /// A process dies between two passes, or is stopped in good order.
    Kill,
    /// A process stands still inside a call, beyond its session, and goes on.
    Freeze,
    /// The group takes a member for gone that is alive.
    Evict,
    /// Partitions move.
    Rebalance,
    /// A second process with the same instance id.
    Duplicate,
    /// All processes are gone for long.
    Outage,
    /// Calls take seconds.
    SlowBroker,
    /// Markers of transactions come late.
    SlowMarkers,
    /// A request never arrives.
    LostRequest,
    /// An answer never arrives, although the request did.
    LostAnswer,
    /// A producer is broken for good.
    FatalProducer,
    /// Topics refuse records.
    TopicError,
    /// The group's positions are lost.
    OffsetsLost,
    /// The changelog is compacted, and tombstones vanish.
    Compaction,
    /// Records of commands are removed before they are read.
    Retention,
    /// The disk is lost.
    DiskLoss,
    /// The disk is full for a while.
    DiskFull,
    /// A call of a store fails.
    DiskError,
    /// A row of a store is damaged.
    CorruptRow,
    /// A store is damaged.
    CorruptStore,
    /// A wall clock steps.
    ClockStep,
    /// Wall clocks differ.
    ClockSkew,
    /// A process is an older release that does not know all kinds.
    OldBinary,
    /// A client keeps a transaction open, or aborts it.
    OpenTransaction,
    /// A client partitions differently.
    Stray,
    /// Partitions are added to the command topic.
    AddedPartitions,
    /// Records that are no commands, or bad ones.
    Garbage,
    /// Many timers of one run.
    Crowd,
}

impl Fault {
    pub(crate) const ALL: [Self; 29] = [
        Self::Crash,
        Self::Kill,
        Self::Freeze,
        Self::Evict,
        Self::Rebalance,
        Self::Duplicate,
        Self::Outage,
        Self::SlowBroker,
        Self::SlowMarkers,
        Self::LostRequest,
        Self::LostAnswer,
        Self::FatalProducer,
        Self::TopicError,
        Self::OffsetsLost,
        Self::Compaction,
        Self::Retention,
        Self::DiskLoss,
        Self::DiskFull,
        Self::DiskError,
        Self::CorruptRow,
        Self::CorruptStore,
        Self::ClockStep,
        Self::ClockSkew,
        Self::OldBinary,
        Self::OpenTransaction,
        Self::Stray,
        Self::AddedPartitions,
        Self::Garbage,
        Self::Crowd,
    ];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Everything that is decided before a run starts.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) faults: BTreeSet<Fault>,
    /// How many commands clients send before the trouble ends.
    pub(crate) commands: u32,
    /// Commands that are left out, so that a failure can be made small.
    pub(crate) skipped: BTreeSet<u32>,
    /// How many events of trouble there are at most, so that a failure can be cut short.
    pub(crate) troubles: u32,
    pub(crate) pods: usize,
    pub(crate) partitions: u32,
    pub(crate) is_static: bool,
    pub(crate) session: Millis,
    pub(crate) transaction_timeout: Millis,
    /// How long tombstones stay; a store may be half as old.
    pub(crate) tombstones: Millis,
    pub(crate) flush_interval: Millis,
    pub(crate) linger: Millis,
    pub(crate) fired_max: usize,
    /// Mean time between two commands.
    pub(crate) pace: Millis,
    /// Longest time from arming to due that is usual here.
    pub(crate) reach: Millis,
    pub(crate) runs: u32,
    pub(crate) ids: u32,
    /// One call in so many is hit, where a class hits calls.
    pub(crate) calls_between: u32,
    /// Mean time between two events of one class.
    pub(crate) trouble_pace: Millis,
    /// Whether some commands ask for no answer. What may have come of them is then known without one, so that there are no
    /// seals that end, no remembered ids and no odd clocks.
    pub(crate) has_silence: bool,
    /// Whether there are seals that end: where clocks are odd, nobody can say when.
    pub(crate) has_ending_seals: bool,
    /// Whether clients send commands twice.
    pub(crate) has_copies: bool,
    /// Whether there are kinds that are claimed, that expire, and that have handlers, and arms by cron.
    pub(crate) has_specials: bool,
    /// Whether ids that have ended are remembered.
    pub(crate) has_remember: bool,
    /// Whether clients pause and resume timers: where clocks are odd, nobody can say from when a resumed timer counts.
    pub(crate) has_pauses: bool,
}

impl Plan {
    /// Returns the plan of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x51A1);
        // Some seeds have little trouble, some much.
        let density = [4, 15, 30, 50][rng.usize(0..4)];
        let mut faults: BTreeSet<Fault> = Fault::ALL.into_iter().filter(|_| rng.u32(0..100) < density).collect();
        if rng.u32(0..6) != 0 {
            faults.remove(&Fault::Crowd);
        }
        // The position of an added partition is the group's: without it nobody can say what was read before it was removed.
        if faults.contains(&Fault::AddedPartitions) {
            faults.remove(&Fault::Retention);
        }
        // Where tombstones vanish soon, nobody may stand still for long, nor go by a clock that is hours behind.
        let is_compacted = faults.contains(&Fault::Compaction);
        if is_compacted && rng.bool() {
            faults.remove(&Fault::ClockStep);
        }
        let are_tombstones_short = is_compacted && !faults.contains(&Fault::ClockStep);
        let has_odd_clocks = faults.contains(&Fault::ClockStep) || faults.contains(&Fault::ClockSkew);
        // What handlers disarm is remembered as well, which the oracle does not know.
        let has_specials = seed % 4 == 3;
        let has_remember = seed % 5 == 2 && !has_specials;
        let has_silence = rng.bool() && !has_odd_clocks && !has_remember && !faults.contains(&Fault::Retention);
        let has_copies = !faults.contains(&Fault::Retention);
        if are_tombstones_short {
            // A store has to come back after a while elsewhere.
            faults.insert(Fault::Rebalance);
            if seed.is_multiple_of(2) {
                faults.insert(Fault::Evict);
            }
        }
        Self {
            tombstones: if are_tombstones_short { 20_000 } else { 86_400_000 },
            seed,
            faults,
            commands: rng.u32(60..240),
            skipped: BTreeSet::new(),
            troubles: u32::MAX,
            // For a tombstone to be missed somebody else has to be there, and it takes a while.
            pods: [1, 2, 2, 3][rng.usize(0..4)].max(if are_tombstones_short { 2 } else { 1 }),
            partitions: [1, 1, 2, 3, 6][rng.usize(0..5)],
            is_static: rng.u32(0..3) != 0,
            session: [2_000, 6_000, 20_000][rng.usize(0..3)],
            transaction_timeout: [2_000, 10_000, 40_000][rng.usize(0..3)],
            flush_interval: [300, 2_000, 60_000][rng.usize(0..3)],
            linger: [0, 20, 100][rng.usize(0..3)],
            fired_max: [2, 8, 100][rng.usize(0..3)],
            pace: [20, 100, 400][rng.usize(0..3)].max(if are_tombstones_short { 400 } else { 0 }),
            reach: if are_tombstones_short { 20_000 } else { [200, 3_000, 20_000][rng.usize(0..3)] },
            runs: rng.u32(1..6),
            ids: rng.u32(1..5),
            calls_between: [60, 400, 2_000][rng.usize(0..3)],
            trouble_pace: [500, 2_500, 8_000][rng.usize(0..3)],
            has_silence,
            has_ending_seals: !has_silence && !has_odd_clocks,
            has_copies,
            has_specials,
            has_remember,
            has_pauses: seed % 3 == 1 && !has_odd_clocks,
        }
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }
}

/// Streams of chance, one for each purpose.
pub(crate) struct Chances {
    streams: BTreeMap<&'static str, fastrand::Rng>,
    seed: u64,
}

impl Chances {
    pub(crate) fn new(seed: u64) -> Self {
        Self { streams: BTreeMap::new(), seed }
    }

    /// Returns the stream of a purpose.
    pub(crate) fn of(&mut self, purpose: &'static str) -> &mut fastrand::Rng {
        let seed = self.seed;
        self.streams.entry(purpose).or_insert_with(|| {
            let hash = purpose
                .bytes()
                .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
            fastrand::Rng::with_seed(hash ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        })
    }
}
