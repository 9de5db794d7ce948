//! A network that delays, drops and falls silent between the service and its broker. Clients are not behind it.

use std::time::Duration;

use serde_json::json;

use crate::harness::broker::Broker;
use crate::harness::chaos::scaled_time;
use crate::harness::proxy::{END_TXN, Fault, OFFSET_FETCH, PRODUCE, Proxy, Way};
use crate::harness::scene::{Scene, after};
use crate::harness::serve::Serve;
use crate::harness::wait;

/// Longer than the ten seconds after which a broker aborts a transaction of ours.
const BEYOND_TRANSACTION: Duration = Duration::from_secs(12);
/// How long a slow broker takes for a write. A transaction has one for each partition that it writes to, or a few, and here they
/// are answered one behind another: some 8 to 24, which together stay far below the 8 s that a message may take.
const SLOW_WRITE: Duration = Duration::from_millis(150);
/// Bytes a second, on each connection: what the changelog of one partition needs for half a minute.
const SLOW: u32 = 40_000;
const LARGE_PAYLOAD: usize = 5_000;
const BOUND: Duration = Duration::from_mins(1);

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A scene on the shared broker, whose instances reach it through a proxy.
fn scene(name: &str) -> (Scene, Proxy) {
    let broker = Broker::shared();
    let proxy = Proxy::start(broker.port());
    let scene = Scene::with(broker, name, |settings| {
        settings["kafka"]["bootstrap_servers"] = json!(proxy.address());
        settings["store"]["flush_interval"] = json!("1s");
        // Answers that are small enough for a slow line: one that takes longer than a request may take is of no use.
        settings["kafka"]["properties"]["max.partition.fetch.bytes"] = json!("16384");
    });
    (scene, proxy)
}

fn transactions(process: &Serve, outcome: &str) -> f64 {
    process.metric_with("punctual_transactions_total", &format!("outcome=\"{outcome}\""))
}

/// N13: the question for the committed positions gets no answer at the assignment; the partitions recover by themselves.
#[test]
fn a_lost_answer_at_the_assignment_is_asked_for_again() {
    let (mut scene, proxy) = scene("lost-answer");
    let mut process = scene.serve("a");
    scene.arm_many("r", 200, seconds(8), seconds(12));
    scene.wait_until_answered();
    process.kill();
    proxy.fault(OFFSET_FETCH, Way::FromBroker, Fault::Swallow, 3);
    let process = scene.serve("a");
    proxy.wait_for_hits(1);
    scene.settle_all();
    drop(process);
}

/// D12: the end of a transaction reaches the broker after its time-out: nothing of it counts, nothing fires twice. The
/// delayed request arrives in the midst of later transactions of the same producers.
#[test]
fn an_end_of_a_transaction_that_comes_too_late_ends_no_other() {
    let (mut scene, proxy) = scene("late-end");
    let _process = scene.serve("a");
    scene.arm_many("r", 1000, seconds(2), seconds(20));
    scene.wait_until_fired(100);
    proxy.fault(END_TXN, Way::ToBroker, Fault::Delay(BEYOND_TRANSACTION), 1);
    proxy.wait_for_hits(1);
    scene.wait_until_fired(400);
    // And the answer alone: it was committed, and nobody knows.
    proxy.fault(END_TXN, Way::FromBroker, Fault::Delay(BEYOND_TRANSACTION), 1);
    proxy.wait_for_hits(2);
    // Whether the client's second request comes before the time-out or behind it is up to the machine; the account is exact
    // either way.
    scene.settle_all();
}

/// D12: answers to ends of transactions are lost, many of them: each outcome is found out, none is guessed.
#[test]
fn an_outcome_that_is_never_told_is_found_out() {
    let (mut scene, proxy) = scene("untold");
    let _process = scene.serve("a");
    scene.arm_many("r", 1000, seconds(2), seconds(16));
    for fired in [100, 400] {
        scene.wait_until_fired(fired);
        let hits = proxy.hits();
        proxy.fault(END_TXN, Way::FromBroker, Fault::Swallow, 1);
        proxy.wait_for_hits(hits + 1);
    }
    scene.settle_all();
}

/// D4: the broker takes long for each write while many timers are due: each is attempted once, no transaction fails.
#[test]
fn a_slow_broker_costs_no_second_attempt() {
    let (mut scene, proxy) = scene("slow");
    let mut process = scene.deployment.launch_with("a", |settings| settings["tick"]["fired_max"] = json!(500), &[]);
    process.wait_until_ready();
    let due = after(seconds(4));
    (0..4000).for_each(|number| scene.arm(&format!("r-{}", number % 200), &format!("t-{number}"), due));
    scene.wait_until_answered();
    let failed = || transactions(&process, "aborted") + transactions(&process, "unknown");
    let (before, committed) = (failed(), transactions(&process, "committed"));
    proxy.fault(PRODUCE, Way::FromBroker, Fault::Delay(SLOW_WRITE), usize::MAX);
    scene.settle_all();
    assert!(proxy.hits() > 0, "the broker was never slow");
    let committed = transactions(&process, "committed") - committed;
    assert!(committed >= 4.0, "{committed} transactions only: the storm was no storm");
    let attempts = scene.fired.records().iter().filter(|event| event.header("punctual-attempt") != Some("1")).count();
    assert_eq!(attempts, 0, "events of a later attempt than the first");
    assert!((failed() - before).abs() < 0.5, "{} transactions failed", failed() - before);
}

/// R15, R19: nothing gets through for longer than any time-out, in the midst of firing; it goes on when the network is back.
#[test]
fn a_silent_network_costs_time_only() {
    let (mut scene, proxy) = scene("silent");
    let process = scene.serve("a");
    scene.arm_many("r", 1000, seconds(2), seconds(14));
    scene.wait_until_fired(100);
    proxy.silence();
    // Until everything is overdue, and every request has timed out.
    let silence = scaled_time(seconds(20));
    let until = after(silence);
    wait::until_true(silence * 2, "it is silent for long", || {
        assert_ne!(process.probe("/livez").0, 503, "a network that is away is no reason for a restart");
        after(Duration::ZERO) > until
    });
    proxy.heal();
    scene.settle_all();
}

/// R15: connections are cut over and over, in the midst of everything.
#[test]
fn cut_connections_lose_and_repeat_nothing() {
    let (mut scene, proxy) = scene("cuts");
    let _process = scene.serve("a");
    scene.arm_many("r", 1000, seconds(2), seconds(14));
    for fired in (50..900).step_by(50) {
        scene.wait_until_fired(fired);
        proxy.cut();
    }
    scene.settle_all();
}

/// R12, O4: one partition restores for long. The process is live and not ready, and says why; the other partitions fire.
#[test]
fn a_long_restore_delays_its_own_partition_only() {
    let (mut scene, proxy) = scene("long-restore");
    let mut process = scene.serve("a");
    let due = after(seconds(15));
    (0..1000).for_each(|number| scene.arm_with_payload(&format!("r-{number}"), "t", due, LARGE_PAYLOAD));
    scene.wait_until_answered();
    process.stop();
    std::fs::remove_dir_all(scene.deployment.state_directory("a").join("partition-0")).unwrap();
    proxy.throttle(Some(SLOW));
    let mut process = scene.deployment.launch("a");
    let commands = scene.deployment.reader(&["arm"]).wait_for(1000, BOUND, "all commands");
    let others = commands.iter().filter(|command| command.partition != 0).count();
    scene.wait_until_fired(others);
    assert_eq!((process.tasks("restoring"), process.tasks("running")), (1, 3), "{}", process.log_tail());
    assert_eq!(process.probe("/livez").0, 200, "a restore is no reason for a restart");
    let (status, words) = process.probe("/readyz");
    assert!(status == 503 && words.contains("restoring: partition 0"), "{status} {words}");
    proxy.throttle(None);
    process.wait_until_ready();
    scene.settle_all();
}

/// R6: a restore that is killed half-way goes on where it was, and does not start over.
#[test]
fn a_restore_that_was_killed_goes_on_where_it_was() {
    let (mut scene, proxy) = scene("killed-restore");
    let mut process = scene.serve("a");
    scene.arm_many("r", 4000, seconds(25), seconds(26));
    scene.wait_until_answered();
    process.stop();
    std::fs::remove_dir_all(scene.deployment.state_directory("a")).unwrap();
    proxy.throttle(Some(SLOW));
    let mut process = scene.deployment.launch("a");
    let durable = || scene.deployment.durable_positions("a");
    let (partition, _) = wait::until(BOUND, "a part is restored and durable", || {
        durable().into_iter().find(|(_, position)| *position > 200)
    });
    process.kill();
    let from = durable()[&partition];
    assert_eq!(process.log().matches(" restored ").count(), 4, "no restore of the second process had ended");
    proxy.throttle(None);
    let process = scene.serve("a");
    let restoring = format!("restoring partition={partition} ");
    let log = process.log();
    let last = log.lines().rfind(|line| line.contains(&restoring)).unwrap();
    assert!(last.contains(&format!("from={from} ")), "{last}\ndoes not go on at {from}");
    scene.settle_all();
}
