//! Ids that are remembered when their timers have ended: through crashes, lost disks and other partitioners, and until their end.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::broker::Broker;
use crate::harness::commands::Partitioner;
use crate::harness::now;
use crate::harness::reader::Received;
use crate::harness::scene::{Scene, after};
use crate::harness::wait;

const BOUND: Duration = Duration::from_secs(40);

/// A scene whose timers are remembered for so long.
fn scene(name: &str, remember: &str) -> Scene {
    let kinds = json!([{"number": 1, "name": "email", "remember": remember}, {"number": 2, "name": "payment"}]);
    Scene::with(Broker::shared(), name, |settings| settings["kinds"] = kinds)
}

fn again(timer_id: &str) -> Value {
    json!({"arm": {"timer_id": timer_id, "kind": "email", "at": now().to_string(), "on_conflict": "replace"}})
}

fn outcomes(results: &[Received]) -> Vec<String> {
    results.iter().map(|result| result.json()["outcome"].as_str().unwrap().to_owned()).collect()
}

// D21: a client repeats itself, and the process that fired is gone with its disk.
#[test]
fn remembered_ids_outlive_the_process_and_its_disk() {
    let mut scene = scene("remembered", "1h");
    let mut process = scene.serve("a");
    scene.arm("r", "fired", after(Duration::from_secs(1)));
    scene.arm("r", "disarmed", after(Duration::from_hours(1)));
    scene.disarm("r", "disarmed");
    scene.command("r", json!({"disarm": {"timer_id": "never"}}));
    scene.wait_until_answered();
    scene.wait_until_fired(1);
    let repeat = |scene: &mut Scene| {
        for id in ["fired", "disarmed", "never"] {
            scene.command("r", again(id));
        }
        for id in ["fired", "disarmed", "never"] {
            scene.command("r", json!({"disarm": {"timer_id": id}}));
        }
        scene.wait_until_answered();
    };
    repeat(&mut scene);
    assert!(process.metric("punctual_late_commands_total") >= 4.0, "duplicates are counted");
    process.kill();
    fs::remove_dir_all(scene.deployment.state_directory("a")).unwrap();
    let process = scene.serve("a");
    repeat(&mut scene);
    let gauge = || process.metric("punctual_remembered_ids");
    wait::until_true(BOUND, "the gauge shows what came out of the changelog", || gauge() > 2.5);
    let found = outcomes(&scene.results.records());
    assert_eq!(found[..4], ["armed", "armed", "disarmed", "not_found"]);
    let late = ["already_fired", "already_disarmed", "already_disarmed", "too_late", "not_found", "not_found"];
    assert_eq!(found[4..10], late);
    assert_eq!(found[10..], late, "after the restore from nothing");
    scene.settle_all();
    assert_eq!(scene.fired.count(), 1, "no duplicate fired");
}

// D21: at the end the id is free, in the changelog too.
#[test]
fn an_id_is_free_again_when_it_is_forgotten() {
    let mut scene = scene("free-again", "3s");
    let process = scene.serve("a");
    let gauge = || process.metric("punctual_remembered_ids");
    scene.arm("r", "t", after(Duration::from_millis(500)));
    scene.commands.flush();
    scene.wait_until_fired(1);
    scene.command("r", again("t"));
    scene.wait_until_answered();
    let fired = scene.fired.records()[0].at;
    let free = fired.checked_add(Duration::from_secs(5)).unwrap();
    wait::until_true(BOUND, "the id has ended, and is forgotten", || now() >= free && gauge() < 0.5);
    scene.command("r", again("t"));
    scene.wait_until_answered();
    scene.wait_until_fired(2);
    assert_eq!(outcomes(&scene.results.records()), ["armed", "already_fired", "armed"]);
}

// D1: the arm is sent to another partition, is forwarded, and comes behind its disarm.
#[test]
fn an_arm_that_comes_behind_its_disarm_does_not_fire() {
    const RUNS: usize = 40;
    let mut scene = scene("stragglers", "1h");
    let process = scene.serve("a");
    for number in 0..RUNS {
        scene.command(&format!("r-{number}"), json!({"disarm": {"timer_id": "t"}}));
    }
    scene.wait_until_answered();
    scene.commands = scene.deployment.commands_partitioned_by(Partitioner::Crc32);
    for number in 0..RUNS {
        scene.command(&format!("r-{number}"), again("t"));
    }
    scene.wait_until_answered();
    assert!(process.metric("punctual_forwarded_total") > 0.0, "no command was forwarded");
    let found = outcomes(&scene.results.records());
    let count = |outcome: &str| found.iter().filter(|found| *found == outcome).count();
    assert_eq!((count("not_found"), count("already_disarmed")), (RUNS, RUNS), "{found:?}");
    assert_eq!(scene.fired.count(), 0, "each was due at once, and none fired");
}
