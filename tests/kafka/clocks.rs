//! A clock that steps while the service runs: that of our process, never that of the host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::harness::broker::Broker;
use crate::harness::scene::{Scene, after, wait_for_instant};
use crate::harness::serve::Serve;
use crate::harness::{directory, wait};

const BOUND: Duration = Duration::from_secs(30);
const HOUR_SECONDS: i64 = 3_600;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The wall clock of a process, which can be shifted while it runs.
struct ShiftedClock {
    library: PathBuf,
    file: PathBuf,
}

impl ShiftedClock {
    fn new(name: &str, seconds: i64) -> Self {
        let directory = directory(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka/harness/wall_clock.c");
        let clock = Self { library: directory.join("wall_clock.so"), file: directory.join("shift") };
        let mut compiler = Command::new("clang");
        let output = compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&clock.library).arg(source).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        clock.shift(seconds);
        clock
    }

    /// Shifts the clock by so many seconds from the true time.
    fn shift(&self, seconds: i64) {
        // Renamed when it is whole: the process reads it at any time.
        let whole = self.file.with_extension("new");
        fs::write(&whole, seconds.to_string()).unwrap();
        fs::rename(whole, &self.file).unwrap();
    }

    fn serve(&self, scene: &Scene) -> Serve {
        let (library, file) = (self.library.to_str().unwrap(), self.file.to_str().unwrap());
        let mut process =
            scene.deployment.launch_with("a", |_| {}, &[("LD_PRELOAD", library), ("WALL_CLOCK_SHIFT", file)]);
        process.wait_until_ready();
        process
    }
}

fn is_held(process: &Serve) -> bool {
    process.metric("punctual_clock_held") > 0.5
}

/// T3: the clock is an hour ahead of the broker's for a while: everything is held, that is told, and nothing fires early.
#[test]
fn a_clock_that_jumps_ahead_fires_nothing_early() {
    let mut scene = Scene::new(Broker::shared(), "clock-ahead");
    let clock = ShiftedClock::new("clock-ahead", 0);
    let process = clock.serve(&scene);
    scene.arm_many("before", 100, seconds(1), seconds(3));
    scene.arm_many("within", 100, seconds(6), seconds(12));
    scene.wait_until_answered();
    scene.wait_until_fired(20);
    clock.shift(HOUR_SECONDS);
    wait::until_true(BOUND, "the clock is held", || is_held(&process));
    process.wait_for_words(BOUND, &["ERROR", "clock jumped forward"]);
    // It asks the broker every second, whose answers do not confirm it.
    wait_for_instant(after(seconds(4)));
    assert!(is_held(&process), "it is held as long as it is wrong");
    assert_eq!(process.probe("/livez").0, 200, "a wrong clock is no reason for a restart");
    clock.shift(0);
    wait::until_true(BOUND, "the clock is trusted again", || !is_held(&process));
    scene.settle_all();
}

/// T3: the clock is an hour behind for a while: nothing fires early, and nothing is rejected as coming from the future.
#[test]
fn a_clock_that_steps_back_fires_nothing_early_and_nothing_twice() {
    let mut scene = Scene::new(Broker::shared(), "clock-back");
    let clock = ShiftedClock::new("clock-back", 0);
    let _process = clock.serve(&scene);
    scene.arm_many("before", 200, seconds(1), seconds(6));
    scene.wait_until_answered();
    scene.wait_until_fired(50);
    clock.shift(-HOUR_SECONDS);
    scene.arm_many("within", 100, seconds(1), seconds(6));
    scene.wait_until_answered();
    wait_for_instant(after(seconds(3)));
    assert!(scene.fired.count() < 200, "by its clock nothing is due any more");
    clock.shift(0);
    scene.settle_all();
}

/// T3: a process that starts with a clock that is an hour late is corrected: that is a step ahead too, and the broker's
/// append times confirm it.
#[test]
fn a_correction_ahead_is_confirmed_by_the_broker() {
    let mut scene = Scene::with(Broker::shared(), "clock-corrected", |settings| {
        settings["clock"] = json!({"max_skew": "2h"});
    });
    let clock = ShiftedClock::new("clock-corrected", -HOUR_SECONDS);
    let process = clock.serve(&scene);
    scene.arm_many("r", 100, seconds(1), seconds(4));
    scene.wait_until_answered();
    assert_eq!(scene.fired.count(), 0, "by its clock nothing is due");
    clock.shift(0);
    process.wait_for_words(BOUND, &["ERROR", "clock jumped forward"]);
    process.wait_for_words(BOUND, &["clock is trusted again"]);
    scene.settle_all();
}
