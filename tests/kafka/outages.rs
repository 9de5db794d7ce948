//! Brokers that are away or forget, and threads that hang: what the probes say, and that a stop is a stop.

use std::time::Duration;

use crate::harness::broker::Broker;
use crate::harness::process::{Process, command};
use crate::harness::scene::{Scene, after, wait_for_instant};
use crate::harness::{directory, wait};

const BOUND: Duration = Duration::from_mins(1);

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// O3, O4: the broker is down. The process is live all the time, and a stop ends it within its grace, whatever it was in.
#[test]
fn a_process_without_a_broker_is_live_and_stops_in_time() {
    let mut broker = Broker::start("broker-that-goes");
    let mut scene = Scene::new(&broker, "no-broker");
    let mut process = scene.serve("a");
    let mut peer = scene.serve("b");
    scene.arm_many("r", 400, seconds(12), seconds(50));
    scene.wait_until_answered();
    // No transaction is under way: a broker that is alone loses the markers of what it has decided when it dies. What happens
    // to timers that fire at that moment is the matter of `crashes`.
    wait_for_instant(after(seconds(2)));
    broker.kill();
    let until = after(seconds(8));
    wait::until_true(BOUND, "the broker is away for a while", || {
        for process in [&process, &peer] {
            assert_eq!(process.probe("/livez").0, 200, "a broker that is away is no reason for a restart");
        }
        after(Duration::ZERO) > until
    });
    process.stop();
    // One that starts meanwhile waits, live and not ready, and can be stopped as well.
    let mut process = scene.deployment.launch("a");
    wait::until_true(BOUND, "it answers", || process.probe("/livez").0 == 200);
    assert_eq!(process.probe("/readyz").0, 503, "it has no partition");
    process.stop();
    broker.start_again();
    let _process = scene.serve("a");
    scene.settle_all();
    peer.stop();
}

/// R17: nothing is written for longer than the broker remembers who writes. The next timer fires all the same.
#[test]
fn timers_fire_after_the_broker_has_forgotten_the_producers() {
    let broker = Broker::start_with(
        "broker-that-forgets",
        "transactional.id.expiration.ms=3000\n\
         transaction.remove.expired.transaction.cleanup.interval.ms=500\n\
         producer.id.expiration.ms=2000\n\
         producer.id.expiration.check.interval.ms=500\n",
    );
    let mut scene = Scene::new(&broker, "forgotten");
    let mut process = scene.serve("a");
    scene.arm_many("first", 20, seconds(0), seconds(1));
    for round in 1..=2 {
        scene.arm_many(&format!("then-{round}"), 20, seconds(10 * round), seconds(10 * round));
    }
    scene.wait_until_answered();
    scene.settle_all();
    assert!(process.ended().is_none(), "it goes on");
    assert!(process.metric("punctual_transactions_total") > 2.5, "the process is the one that was started");
}

/// N9: the thread that fires hangs, and no call to Kafka or to the disk excuses it: the probe for life fails.
#[test]
fn a_hung_loop_fails_the_probe_for_life() {
    let mut scene = Scene::new(Broker::shared(), "hung");
    let process = scene.serve("a");
    scene.arm_many("r", 40, seconds(4), seconds(6));
    scene.wait_until_answered();
    assert_eq!(process.probe("/livez").0, 200, "before");
    let Some(freezer) = ThreadFreezer::freeze(process.id(), "worker-0") else {
        println!("skipped: a thread of another process is stopped by root, or by its tracer, only");
        return;
    };
    wait::until_true(BOUND, "the probe fails", || process.probe("/livez").0 == 503);
    let (_, words) = process.probe("/livez");
    assert!(words.contains("worker 0: "), "{words}");
    drop(freezer);
    // Nothing is lost by the hang; here nobody restarts the process.
    wait::until_true(BOUND, "it goes on", || process.probe("/livez").0 == 200);
    scene.settle_all();
}

/// Stops one thread of a process as its tracer. Dropping it lets the thread go on.
struct ThreadFreezer {
    _tracer: Process,
}

const TRACER: &str = "\
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
SEIZE, INTERRUPT = 0x4206, 0x4207
thread = int(sys.argv[1])
for request in (SEIZE, INTERRUPT):
    if libc.ptrace(request, thread, 0, 0) != 0:
        sys.exit('ptrace: ' + os.strerror(ctypes.get_errno()))
os.waitpid(thread, 0x40000000)
print('stopped', flush=True)
signal.pause()
";

impl ThreadFreezer {
    fn freeze(process: u32, name: &str) -> Option<Self> {
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
        let mut threads = threads.map(|thread| thread.unwrap().path());
        let is_named = |path: &std::path::PathBuf| std::fs::read_to_string(path.join("comm")).unwrap().trim() == name;
        let thread = threads.find(is_named).expect("the thread is there");
        let mut python = command("python3");
        python.arg("-c").arg(TRACER).arg(thread.file_name().unwrap());
        let log = directory("hung").join("tracer.log");
        let mut tracer = Process::start("the tracer", python, &log);
        let stopped = wait::until(BOUND, "the thread is stopped", || {
            let is_stopped = std::fs::read_to_string(&log).unwrap().contains("stopped");
            (is_stopped || tracer.ended().is_some()).then_some(is_stopped)
        });
        stopped.then_some(Self { _tracer: tracer })
    }
}

/// R13: everything stops in the midst of firing, stays away while timers are due, and comes back.
#[test]
fn scaling_to_zero_and_back_loses_and_repeats_nothing() {
    let mut scene = Scene::new(Broker::shared(), "zero");
    let (mut first, mut second) = (scene.serve("a"), scene.serve("b"));
    scene.arm_many("r", 1000, seconds(2), seconds(12));
    scene.wait_until_fired(200);
    first.stop();
    second.stop();
    scene.arm_many("meanwhile", 100, seconds(0), seconds(1));
    wait_for_instant(after(seconds(3)));
    let (_first, _second) = (scene.serve("a"), scene.serve("b"));
    scene.wait_until_answered();
    scene.settle_all();
}
