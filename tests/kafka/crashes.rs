//! Processes and brokers that die, hang, come back or join: nothing is lost, nothing fires twice.

use std::time::Duration;

use crate::harness::broker::Broker;
use crate::harness::chaos::scaled_time;
use crate::harness::scene::{Scene, after, wait_for_instant};

/// How long a frozen process stays so after its partitions were taken over.
const ZOMBIE_LEEWAY: Duration = seconds(3);

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

// N7, D6: timers are due all around the crash, some of them inside the transaction that it breaks.
#[test]
fn a_killed_process_loses_and_repeats_nothing() {
    let mut scene = Scene::new(Broker::shared(), "kill");
    let (mut first, _second) = (scene.serve("a"), scene.serve("b"));
    scene.arm_many("early", 1500, seconds(2), seconds(6));
    scene.wait_until_fired(500);
    first.kill();
    // Commands keep coming for partitions that nobody owns.
    scene.arm_many("late", 500, seconds(1), seconds(12));
    scene.wait_until_fired(1600);
    // It comes back with the state that it had, and takes partitions again.
    let _first = scene.serve("a");
    scene.wait_until_answered();
    scene.settle_all();
}

// D6, R6: the only process, killed again and again, also while it restores.
#[test]
fn a_process_that_is_killed_over_and_over_loses_and_repeats_nothing() {
    let mut scene = Scene::new(Broker::shared(), "kills");
    scene.arm_many("r", 2000, seconds(2), seconds(14));
    let mut process = scene.serve("a");
    for fired in [200, 600, 1000] {
        scene.wait_until_fired(fired);
        process.kill();
        process = scene.deployment.launch("a");
    }
    process.wait_until_ready();
    scene.settle_all();
}

// D5: while the owner is stopped a peer takes its partitions over; what it had open must not commit when it goes on.
#[test]
fn a_zombie_commits_nothing() {
    let mut scene = Scene::new(Broker::shared(), "zombie");
    let (mut frozen, _peer) = (scene.serve("a"), scene.serve("b"));
    scene.arm_many("early", 1500, seconds(2), seconds(6));
    scene.wait_until_fired(500);
    frozen.freeze();
    scene.wait_until_fired(1500);
    wait_for_instant(after(scaled_time(ZOMBIE_LEEWAY)));
    scene.arm_many("late", 300, seconds(0), seconds(5));
    frozen.thaw();
    scene.settle_all();
    // It joins again, or it has ended: both are well, silence is not.
    if frozen.ended().is_none() {
        frozen.wait_until_ready();
    }
}

// D3, R13: partitions move while their timers fire, and the first owner leaves.
#[test]
fn a_rebalance_loses_and_repeats_nothing() {
    let mut scene = Scene::new(Broker::shared(), "rebalance");
    let mut first = scene.serve("a");
    scene.arm_many("r", 1500, seconds(2), seconds(16));
    scene.wait_until_fired(150);
    let _second = scene.serve("b");
    scene.wait_until_fired(450);
    let _third = scene.serve("c");
    scene.wait_until_fired(800);
    first.stop();
    scene.settle_all();
}

// N2, D9: what is far away stays, what is due fires, with no input at all after the restart.
#[test]
fn a_restart_without_any_input_fires_on_time() {
    let mut scene = Scene::new(Broker::shared(), "restart");
    let mut process = scene.serve("a");
    let far = after(Duration::from_hours(1));
    (0..50).for_each(|number| scene.arm(&format!("far-{number}"), "t", far));
    let due = after(seconds(8));
    (0..50).for_each(|number| scene.arm(&format!("near-{number}"), "t", due));
    scene.wait_until_answered();
    process.stop();
    let process = scene.serve("a");
    let report = scene.settle(due);
    assert_eq!((report.fired(), report.pending()), (50, 50), "{report}");
    let pending = process.metric("punctual_pending_timers");
    assert!((pending - 50.0).abs() < 0.5, "the service counts {pending} pending timers, 50 are");
}

// R16, R19: the broker dies while timers fire, and comes back.
#[test]
fn a_broker_that_restarts_loses_and_repeats_nothing() {
    let mut broker = Broker::start("broker-of-its-own");
    let mut scene = Scene::new(&broker, "outage");
    let _process = scene.serve("a");
    scene.arm_many("r", 1500, seconds(2), seconds(25));
    scene.wait_until_fired(150);
    broker.kill();
    broker.start_again();
    scene.arm_many("s", 50, seconds(2), seconds(4));
    scene.settle_all();
}

// D10: a disarm that was acknowledged while nobody ran counts, though its timer is overdue at the restart.
#[test]
fn a_disarm_before_the_restart_is_in_force() {
    let mut scene = Scene::new(Broker::shared(), "disarm");
    let mut process = scene.serve("a");
    let due = after(seconds(6));
    (0..100).for_each(|number| scene.arm(&format!("r-{number}"), "t", due));
    scene.wait_until_answered();
    process.kill();
    (0..100).step_by(2).for_each(|number| scene.disarm(&format!("r-{number}"), "t"));
    scene.commands.flush();
    wait_for_instant(due);
    let _process = scene.serve("a");
    let report = scene.settle_all();
    assert_eq!(report.fired(), 50, "{report}");
}
