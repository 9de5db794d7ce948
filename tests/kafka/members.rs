//! Members that come, go, and race for partitions: what moves is never fired by two, and what stays is not disturbed.

use std::collections::BTreeSet;
use std::time::Duration;

use punctual::time::Timestamp;
use serde_json::json;

use crate::harness::broker::Broker;
use crate::harness::chaos::scaled;
use crate::harness::proxy::{END_TXN, Fault, Proxy, Way};
use crate::harness::reader::Received;
use crate::harness::scene::Scene;
use crate::harness::serve::Serve;
use crate::harness::wait;

const BOUND: Duration = Duration::from_mins(1);
const MIB: u64 = 1024 * 1024;
/// Longest delay of a timer whose partition stays where it is while half of the others move.
const DISTURBANCE_MAX: Duration = Duration::from_secs(5);

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A scene whose members say good-bye, so that partitions move at once.
fn scene_of_dynamic_members(name: &str, partitions: u32) -> Scene {
    Scene::with(Broker::shared(), name, |settings| {
        settings["kafka"]["static_membership"] = json!(false);
        settings["topics"]["partitions"] = json!(partitions);
    })
}

/// R24, D5: the commit of the first owner's barrier is under way for long, while its session ends and a second one takes
/// over. It arrives when the second has committed its own barrier.
#[test]
fn a_barrier_that_commits_late_takes_nothing_from_the_second_owner() {
    let broker = Broker::shared();
    let proxy = Proxy::start(broker.port());
    let mut scene = Scene::new(broker, "late-barrier");
    let mut before = scene.serve("before");
    scene.arm_many("r", 300, seconds(8), seconds(25));
    scene.wait_until_answered();
    before.stop();
    proxy.fault(END_TXN, Way::ToBroker, Fault::Hold, 1);
    let through_proxy = |settings: &mut serde_json::Value| {
        settings["kafka"]["bootstrap_servers"] = json!(proxy.address());
    };
    let mut first = scene.deployment.launch_with("first", through_proxy, &[]);
    proxy.wait_for_hits(1);
    first.freeze();
    let second = scene.deployment.launch("second");
    // Its barriers are committed.
    second.wait_for_words(BOUND, &[" restoring partition=3 "]);
    proxy.release();
    scene.arm_many("s", 300, seconds(5), seconds(20));
    second.wait_for_words(BOUND, &[" running partition=3"]);
    scene.wait_until_fired(100);
    first.thaw();
    scene.settle_all();
    if first.ended().is_none() {
        first.wait_until_ready();
    }
}

/// R18, D3: processes are stopped in the midst of the rebalances that others cause. Each is gone in time, without an error.
#[test]
fn every_stop_during_rebalances_is_in_time() {
    let mut scene = scene_of_dynamic_members("stops", 4);
    let names = ["a", "b", "c"];
    let mut members: Vec<Serve> = names.iter().map(|name| scene.serve(name)).collect();
    let rounds = scaled(9);
    scene.arm_many("r", 100 * rounds, seconds(2), seconds(u64::from(3 * rounds)));
    for round in 0..rounds {
        let next = usize::try_from(round).unwrap() % names.len();
        // It checks the time and the exit code; the other two have just begun to share what its predecessor had.
        members[next].stop();
        members[next] = scene.deployment.launch(names[next]);
        scene.wait_until_fired(usize::try_from(30 * round).unwrap());
    }
    scene.settle_all();
}

/// R21: partitions come and go, over and over; the process that stays keeps the size that it had.
#[test]
fn taking_and_giving_partitions_costs_no_memory() {
    let mut scene = scene_of_dynamic_members("cycles", 4);
    let stays = scene.serve("stays");
    let cycles = scaled(8);
    let mut sizes = Vec::new();
    for cycle in 0..cycles {
        scene.arm_many(&format!("r-{cycle}"), 100, seconds(0), seconds(1));
        let mut peer = scene.serve("peer");
        wait::until_true(BOUND, "both have partitions", || stays.tasks("running") == 2 && peer.tasks("running") == 2);
        peer.stop();
        wait::until_true(BOUND, "one has them all", || stays.tasks("running") == 4);
        sizes.push(stays.resident_bytes() / MIB);
    }
    println!("MiB after each cycle: {sizes:?}");
    // The first cycles fill caches and pools.
    let (early, late) = (sizes[sizes.len() / 2 - 1], sizes[sizes.len() - 1]);
    assert!(late <= early + early / 4 + 8, "it grows: {sizes:?} MiB");
    scene.settle_all();
}

/// R10, R22: 64 partitions, and half of them move under load. The hand-over is bounded, timers of the others are not late,
/// and so many stores and paused partitions take bounded memory.
#[test]
fn moving_half_of_many_partitions_does_not_disturb_the_others() {
    let mut scene = scene_of_dynamic_members("many", 64);
    let stays = scene.serve("stays");
    scene.arm_many("r", 3000, seconds(4), seconds(20));
    scene.wait_until_answered();
    scene.wait_until_fired(300);
    let peer = scene.deployment.launch("peer");
    wait::until_true(BOUND, "half of the partitions have moved", || peer.tasks("running") == 32);
    scene.settle_all();
    let moved = revoked(&stays);
    assert_eq!(moved.len(), 32, "who keeps what");
    let kept = scene.fired.records();
    let late = kept.iter().filter(|event| !moved.contains(&event.partition)).map(lateness).max().unwrap();
    println!("latest of the partitions that stayed: {late:?}; of all: {:?}", kept.iter().map(lateness).max().unwrap());
    assert!(late < DISTURBANCE_MAX, "a timer that stayed was {late:?} late");
    // The budget of the stores is 64 MiB; the rest is clients, and what 64 stores need beside it.
    for process in [&stays, &peer] {
        println!("{} MiB", process.resident_bytes() / MIB);
        assert!(process.resident_bytes() < 400 * MIB, "{} MiB", process.resident_bytes() / MIB);
    }
}

/// Returns the partitions that a process had to give away, by its log.
fn revoked(process: &Serve) -> BTreeSet<i32> {
    let log = process.log();
    let lines = log.lines().filter(|line| line.contains(" revoked partitions="));
    let numbers = lines.flat_map(|line| line.split("Partition(").skip(1));
    numbers.map(|rest| rest.split(')').next().unwrap().parse().unwrap()).collect()
}

fn lateness(event: &Received) -> Duration {
    let instant = |name| Timestamp::parse(event.header(name).unwrap()).unwrap();
    instant("punctual-fired").since(instant("punctual-due"))
}
