//! Trouble that comes by itself: which, when, and when it ends.
//!
//! Owns the schedule of each class and what has to be undone. Trouble inside of calls is in `sim`. Keeps: a class follows a
//! schedule of its own; what has begun ends, at the latest when the run calms down.

use std::collections::BTreeMap;
use std::rc::Rc;

use punctual::log::Destination;
use punctual::position::Partition;

use crate::plan::Fault;
use crate::setting::{KINDS, PLAIN_KINDS, all_kinds, kind_number};
use crate::sim::{Millis, Sim};

const HOUR: Millis = 3_600_000;
/// How long an older release runs, a topic refuses, a disk is full.
const PHASE: Millis = 5_000;

/// The classes that come by themselves.
const SCHEDULED: [Fault; 17] = [
    Fault::Kill,
    Fault::Evict,
    Fault::Rebalance,
    Fault::Duplicate,
    Fault::Outage,
    Fault::SlowMarkers,
    Fault::TopicError,
    Fault::OffsetsLost,
    Fault::Compaction,
    Fault::Retention,
    Fault::DiskLoss,
    Fault::DiskFull,
    Fault::CorruptRow,
    Fault::CorruptStore,
    Fault::ClockStep,
    Fault::OldBinary,
    Fault::AddedPartitions,
];

/// What ends a piece of trouble.
#[derive(Clone, Debug)]
enum Undo {
    Markers,
    Topic(Destination),
    Disk(usize),
    Clock(usize, Millis),
    Duplicate(usize),
    Return(usize),
}

#[derive(Default)]
pub(crate) struct Trouble {
    next: BTreeMap<Fault, Millis>,
    undo: Vec<(Millis, Undo)>,
    /// Since when all is calm and everything is done.
    pub(crate) settled_since: Option<Millis>,
}

impl Trouble {
    /// Returns when something begins or ends.
    pub(crate) fn next_at(&self, sim: &Sim) -> Option<Millis> {
        let begins = self.next.values().copied().filter(|_| sim.is_troubled());
        begins.chain(self.undo.iter().map(|(at, _)| *at)).min()
    }

    fn take_due(&mut self, sim: &Sim) -> (Vec<Fault>, Vec<Undo>) {
        let now = sim.now();
        let mut begins = Vec::new();
        for fault in SCHEDULED.into_iter().filter(|fault| sim.plan.has(*fault)) {
            let pause = |sim: &Sim| sim.draw(name(fault), |rng| rng.i64(1..=sim.plan.trouble_pace * 2));
            let next = *self.next.entry(fault).or_insert_with(|| now + pause(sim));
            if next <= now && sim.is_troubled() {
                begins.push(fault);
                self.next.insert(fault, now + pause(sim));
            }
        }
        let (ends, later) = std::mem::take(&mut self.undo).into_iter().partition(|(at, _)| *at <= now);
        self.undo = later;
        let ends: Vec<(Millis, Undo)> = ends;
        (begins, ends.into_iter().map(|(_, undo)| undo).collect())
    }
}

/// Does what is due.
pub(crate) fn act(sim: &Rc<Sim>) {
    let (begins, ends) = sim.trouble.borrow_mut().take_due(sim);
    for undo in ends {
        end(sim, &undo);
    }
    for fault in begins {
        if sim.may_trouble() {
            sim.step();
            begin(sim, fault);
        }
    }
}

/// Ends all trouble, and lets every pod run the newest release on a sound disk.
pub(crate) fn calm(sim: &Rc<Sim>) {
    sim.note(|| "THE TROUBLE ENDS".to_owned());
    sim.calm();
    sim.oracle.borrow_mut().calm(sim.now());
    let undo = std::mem::take(&mut sim.trouble.borrow_mut().undo);
    for (_, undo) in undo {
        end(sim, &undo);
    }
    for pod in sim.pods.iter().take(sim.plan.pods) {
        let state = pod.state.borrow();
        let is_marred = state.disk.borrow().files.values().any(|files| files.is_marred);
        let (is_old, skew) = (state.is_old, state.skew.now);
        drop(state);
        if is_marred {
            // A row that rotted comes back with the next restore only.
            pod.kill(sim);
            pod.state.borrow().disk.borrow_mut().lose();
        }
        pod.state.borrow().reader.borrow_mut().deaf_until = 0;
        if is_old {
            pod.kill(sim);
            pod.state.borrow_mut().is_old = false;
        }
        pod.step_clock(-skew);
        pod.start_at(sim.now());
    }
}

fn name(fault: Fault) -> &'static str {
    match fault {
        Fault::Kill => "kill",
        Fault::Evict => "evict",
        Fault::Rebalance => "rebalance",
        Fault::Duplicate => "duplicate",
        Fault::Outage => "outage",
        Fault::SlowMarkers => "slow markers",
        Fault::TopicError => "topic error",
        Fault::OffsetsLost => "offsets lost",
        Fault::Compaction => "compaction",
        Fault::Retention => "retention",
        Fault::DiskLoss => "disk loss",
        Fault::DiskFull => "disk full",
        Fault::CorruptRow => "corrupt row",
        Fault::CorruptStore => "corrupt store",
        Fault::ClockStep => "clock step",
        Fault::OldBinary => "old binary",
        Fault::AddedPartitions => "added partitions",
        // The others happen inside of calls, or are the clients'.
        Fault::Crash
        | Fault::Freeze
        | Fault::SlowBroker
        | Fault::LostRequest
        | Fault::LostAnswer
        | Fault::FatalProducer
        | Fault::DiskError
        | Fault::ClockSkew
        | Fault::OpenTransaction
        | Fault::Stray
        | Fault::Garbage
        | Fault::Crowd => "other",
    }
}

fn begin(sim: &Rc<Sim>, fault: Fault) {
    let purpose = name(fault);
    sim.note(|| format!("TROUBLE: {fault}"));
    let number = sim.draw(purpose, |rng| rng.usize(0..sim.plan.pods));
    let pod = &sim.pods[number];
    let partition = Partition(sim.draw(purpose, |rng| rng.u32(0..sim.plan.partitions)));
    let until = sim.now() + sim.draw(purpose, |rng| rng.i64(100..PHASE));
    let undo = |undo| sim.trouble.borrow_mut().undo.push((until, undo));
    match fault {
        Fault::Kill => kill(sim, number),
        Fault::Evict => evict(sim, number),
        Fault::Rebalance => sim.broker.borrow_mut().group.shuffle(sim.now()),
        Fault::Duplicate => {
            sim.pods[sim.plan.pods].start_at(sim.now());
            undo(Undo::Duplicate(sim.plan.pods));
        }
        Fault::Outage => outage(sim),
        Fault::SlowMarkers => {
            sim.broker.borrow_mut().marker_delay = (0, sim.draw(purpose, |rng| [50, 500, 5_000][rng.usize(0..3)]));
            undo(Undo::Markers);
        }
        Fault::TopicError => {
            let to = topic(sim);
            sim.note(|| format!("{to} REFUSES until {until}"));
            sim.broker.borrow_mut().refusing.insert(to);
            if to == Destination::Results {
                // Who stands still between the refusal and the commit brings what it left out much later.
                let may_stand_still = sim.plan.has(Fault::Freeze) || sim.plan.has(Fault::SlowBroker);
                let missing_until = if may_stand_still { Millis::MAX } else { until + 2 * PHASE };
                sim.oracle.borrow_mut().answers_missing_until = missing_until;
            }
            undo(Undo::Topic(to));
        }
        Fault::OffsetsLost => sim.broker.borrow_mut().offsets.forget(),
        Fault::Compaction => compact(sim, partition),
        Fault::Retention => delete(sim, partition),
        // One step at a time, or the least and the most that a clock may have said are far apart.
        Fault::ClockStep if sim.trouble.borrow().undo.iter().any(|(_, undo)| matches!(undo, Undo::Clock(..))) => {}
        Fault::ClockStep => {
            let by = sim.draw(purpose, |rng| [9_000, HOUR, -HOUR, -3_000, 500][rng.usize(0..5)]);
            sim.note(|| format!("pod {number}: CLOCK STEPS by {by}"));
            pod.step_clock(by);
            undo(Undo::Clock(number, -by));
        }
        Fault::OldBinary => {
            pod.kill(sim);
            pod.state.borrow_mut().is_old = true;
            undo(Undo::Return(number));
        }
        Fault::AddedPartitions => {
            let count = sim.plan.partitions + sim.draw(purpose, |rng| rng.u32(1..3));
            sim.broker.borrow_mut().add_arm_partitions(count);
            // Once is enough.
            sim.trouble.borrow_mut().next.insert(fault, Millis::MAX);
        }
        Fault::DiskLoss | Fault::DiskFull | Fault::CorruptRow | Fault::CorruptStore => spoil(sim, fault, number, until),
        // The others happen inside of calls, or are the clients'.
        Fault::Crash
        | Fault::Freeze
        | Fault::SlowBroker
        | Fault::LostRequest
        | Fault::LostAnswer
        | Fault::FatalProducer
        | Fault::DiskError
        | Fault::ClockSkew
        | Fault::OpenTransaction
        | Fault::Stray
        | Fault::Garbage
        | Fault::Crowd => {}
    }
}

/// Spoils the disk of a pod.
fn spoil(sim: &Rc<Sim>, fault: Fault, number: usize, until: Millis) {
    let pod = &sim.pods[number];
    let disk = Rc::clone(&pod.state.borrow().disk);
    let partition = Partition(sim.draw(name(fault), |rng| rng.u32(0..sim.plan.partitions)));
    if fault == Fault::DiskLoss {
        pod.kill(sim);
        disk.borrow_mut().lose();
    } else if fault == Fault::DiskFull {
        disk.borrow_mut().is_full = true;
        sim.trouble.borrow_mut().undo.push((until, Undo::Disk(number)));
    } else if fault == Fault::CorruptRow {
        let rotten = disk.borrow_mut().corrupt_row(partition, &all_kinds());
        sim.note(|| format!("pod {number}: ROTTEN ROW of {rotten:?}"));
    } else {
        disk.borrow_mut().corrupt_store(partition);
    }
}

fn end(sim: &Rc<Sim>, undo: &Undo) {
    sim.note(|| format!("trouble ends: {undo:?}"));
    match undo {
        Undo::Markers => sim.broker.borrow_mut().marker_delay = (0, 2),
        Undo::Topic(to) => {
            sim.broker.borrow_mut().refusing.remove(to);
        }
        Undo::Disk(pod) => sim.pods[*pod].state.borrow().disk.borrow_mut().is_full = false,
        Undo::Clock(pod, by) => sim.pods[*pod].step_clock(*by),
        Undo::Duplicate(pod) => {
            sim.pods[*pod].kill(sim);
            sim.pods[*pod].stay_down();
        }
        Undo::Return(pod) => {
            sim.pods[*pod].kill(sim);
            sim.pods[*pod].state.borrow_mut().is_old = false;
        }
    }
}

fn kill(sim: &Rc<Sim>, number: usize) {
    let pod = &sim.pods[number];
    if sim.draw("kill", fastrand::Rng::bool) {
        pod.kill(sim);
    } else {
        pod.stop(sim);
        pod.start_at(sim.now() + sim.draw("kill", |rng| rng.i64(1..3_000)));
    }
}

fn evict(sim: &Rc<Sim>, number: usize) {
    let reader = Rc::clone(&sim.pods[number].state.borrow().reader);
    let Some(member) = reader.borrow().member else { return };
    if sim.plan.tombstones < HOUR && reader.borrow().deaf_until > sim.now() {
        // It does not know of the last time yet.
        return;
    }
    // It goes on as if nothing had happened until a heartbeat is answered.
    let mut deaf = sim.draw("evict", |rng| rng.i64(0..4_000));
    // Now and then it is cut off for so long that its stores grow old, unless it restores one.
    if sim.plan.tombstones < HOUR && !sim.pods[number].is_restoring() && sim.draw("cut off", |rng| rng.u32(0..4)) == 0 {
        deaf = sim.draw("cut off", |rng| rng.i64(sim.plan.tombstones / 2..sim.plan.tombstones * 2));
    }
    reader.borrow_mut().deaf_until = sim.now() + deaf;
    sim.broker.borrow_mut().group.evict(member, sim.now());
}

fn outage(sim: &Rc<Sim>) {
    let back = sim.now() + sim.draw("outage", |rng| rng.i64(1_000..60_000));
    for pod in sim.pods.iter().take(sim.plan.pods) {
        pod.kill(sim);
        pod.stay_down();
        pod.start_at(back + sim.draw("outage", |rng| rng.i64(0..2_000)));
    }
}

fn topic(sim: &Sim) -> Destination {
    let kinds = if sim.plan.has_specials { KINDS.len() } else { PLAIN_KINDS };
    let kind = KINDS[sim.draw("topic error", |rng| rng.usize(0..kinds))];
    let number = kind_number(kind.number);
    // With retention the oracle needs the answers to know what was read.
    let may_miss_answers = !sim.plan.has(Fault::Retention);
    match sim.draw("topic error", |rng| rng.u32(0..8)) {
        0 => Destination::Arm,
        1 => Destination::Changelog,
        2 => Destination::DeadLetter,
        3 if may_miss_answers => Destination::Results,
        4 if kind.has_outbox => Destination::Outbox(number),
        _ => Destination::Fired(number),
    }
}

fn compact(sim: &Sim, partition: Partition) {
    let retention = sim.plan.tombstones;
    // A restore is taken to last no longer than a part of what a tombstone stays.
    let patient = sim.pods.iter().all(|pod| pod.is_quick(sim, retention / 4));
    let retention = if patient { retention } else { Millis::MAX / 2 };
    let mut broker = sim.broker.borrow_mut();
    let log = broker.log_mut((Destination::Changelog, partition));
    let until = if sim.draw("compaction", fastrand::Rng::bool) {
        log.end
    } else {
        sim.draw("compaction", |rng| rng.i64(0..=log.end))
    };
    log.compact(until, sim.now(), retention);
}

fn delete(sim: &Sim, partition: Partition) {
    let position = sim.oracle.borrow().homes[&partition].position;
    let mut broker = sim.broker.borrow_mut();
    let log = broker.log_mut((Destination::Arm, partition));
    // Most often what was read long ago, now and then what was not.
    let most = if sim.draw("retention", |rng| rng.u32(0..3)) == 0 { log.last_stable() } else { position };
    let below = sim.draw("retention", |rng| rng.i64(0..=most.max(0)));
    log.delete_below(below);
    sim.note(|| format!("commands of {partition} below {below} are gone; taken was {position}"));
}
