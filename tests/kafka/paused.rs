//! Timers that are paused: through a kill and a lost disk, until they are resumed; one-time, recurring and held ones.

use std::fs;
use std::time::Duration;

use punctual::time::Timestamp;
use serde_json::{Value, json};

use crate::harness::broker::Broker;
use crate::harness::commands::Partitioner;
use crate::harness::reader::{Reader, Received};
use crate::harness::scene::{Scene, after, wait_for_instant};
use crate::harness::serve::Serve;
use crate::harness::{now, wait};

const BOUND: Duration = Duration::from_secs(40);
/// One-time timers, half of which are paused.
const TIMERS: usize = 40;
/// How often the timer that recurs fires.
const COUNT: u64 = 4;

/// A scene whose timers recur in one kind, and are held in another: neither is in the account of the one-time ones.
fn scene(name: &str) -> Scene {
    let kinds = json!([
        {"number": 1, "name": "email"},
        {"number": 2, "name": "payment"},
        {"number": 3, "name": "report"},
        {"number": 4, "name": "job", "delivery": "claim", "lease": "2s"},
    ]);
    Scene::with(Broker::shared(), name, |settings| settings["kinds"] = kinds)
}

fn pause(scene: &mut Scene, run: &str) {
    scene.command(run, json!({"pause": {"timer_id": "t"}}));
}

fn resume(scene: &mut Scene, run: &str) {
    scene.command(run, json!({"resume": {"timer_id": "t"}}));
}

/// Returns the answer to the last command.
fn last_answer(scene: &Scene) -> Value {
    scene.wait_until_answered();
    scene.results.records().iter().map(Received::json).max_by_key(number).unwrap()
}

fn number(answer: &Value) -> u64 {
    answer["correlation_id"].as_str().unwrap().parse().unwrap()
}

fn dues(reader: &Reader) -> Vec<Timestamp> {
    let due = |event: &Received| Timestamp::parse(event.header("punctual-due").unwrap()).unwrap();
    reader.records().iter().map(due).collect()
}

fn attempts(reader: &Reader) -> Vec<String> {
    reader.records().iter().map(|event| event.header("punctual-attempt").unwrap().to_owned()).collect()
}

fn wait_until_paused(process: &Serve, count: usize) {
    let gauge = || process.metric("punctual_paused_timers");
    let count = f64::from(u32::try_from(count).unwrap());
    wait::until_true(BOUND, "the gauge shows what is paused", || (gauge() - count).abs() < 0.5);
}

/// Arms timers of each sort, lets the recurring and the held one fire once, and pauses those and half of the others. Returns when
/// the one-time ones are due.
fn arm_and_pause(scene: &mut Scene, reports: &Reader, jobs: &Reader) -> Timestamp {
    let every = json!({"timer_id": "t", "kind": "report", "every": {"interval": "PT1S", "count": COUNT}});
    scene.command("report", json!({"arm": every}));
    scene.command("job", json!({"arm": {"timer_id": "t", "kind": "job", "after": "PT0.5S"}}));
    scene.commands.flush();
    reports.wait_for(1, BOUND, "the recurring timer has fired");
    jobs.wait_for(1, BOUND, "the claimed timer is delivered");
    pause(scene, "report");
    pause(scene, "job");
    scene.wait_until_answered();
    let due = after(Duration::from_secs(5));
    for number in 0..TIMERS {
        let run = format!("r-{number}");
        if number % 2 == 0 {
            // Not in the account yet: it must not fire.
            scene.command(&run, json!({"arm": {"timer_id": "t", "kind": "email", "at": due.to_string()}}));
            pause(scene, &run);
        } else {
            scene.arm(&run, "t", due);
        }
    }
    scene.wait_until_answered();
    due
}

// N8, D6: nothing that is paused fires, through a kill and a restore from nothing, and everything does once it is resumed.
#[test]
fn paused_timers_outlive_the_process_and_its_disk() {
    let mut scene = scene("paused");
    let (reports, jobs) = (scene.deployment.reader(&["fired.report"]), scene.deployment.reader(&["fired.job"]));
    let mut process = scene.serve("a");
    let due = arm_and_pause(&mut scene, &reports, &jobs);
    let (reported, delivered) = (dues(&reports), attempts(&jobs));
    wait_until_paused(&process, TIMERS / 2 + 2);
    process.kill();
    fs::remove_dir_all(scene.deployment.state_directory("a")).unwrap();
    let process = scene.serve("a");
    wait_for_instant(due);
    assert_eq!(scene.settle(due).fired(), TIMERS / 2, "the others are paused");
    assert_eq!((dues(&reports), attempts(&jobs)), (reported.clone(), delivered), "neither occurrence nor redelivery");
    wait_until_paused(&process, TIMERS / 2 + 2);
    assert!(process.metric("punctual_overdue_timers") < 0.5, "what is paused is not overdue");

    for number in (0..TIMERS).step_by(2) {
        let run = format!("r-{number}");
        scene.account.armed(&format!("default/{run}/t"), due);
        resume(&mut scene, &run);
    }
    resume(&mut scene, "job");
    let asked = now();
    resume(&mut scene, "report");
    let answer = last_answer(&scene);
    assert_eq!(answer["outcome"], "resumed", "{answer}");
    assert_eq!(scene.settle_all().fired(), TIMERS);
    jobs.wait_for(2, BOUND, "the claimed timer is delivered again");
    assert_eq!(attempts(&jobs)[..2], ["1", "2"], "under the next number");
    scene.command("job", json!({"disarm": {"timer_id": "t"}}));

    reports.wait_for(usize::try_from(COUNT).unwrap(), BOUND, "the recurring timer has fired as often as it may");
    let fired = dues(&reports);
    let missed = fired[reported.len()..].iter().filter(|due| **due < asked).count();
    assert_eq!(missed, 0, "nothing is caught up with: {fired:?}, resumed at {asked}");
    assert_eq!(answer["due"], fired[reported.len()].to_string(), "the answer says when");
    resume(&mut scene, "report");
    assert_eq!(last_answer(&scene)["outcome"], "not_found", "it has ended");
    assert_eq!(fired.len(), usize::try_from(COUNT).unwrap(), "what was missed counts for nothing");
    wait_until_paused(&process, 0);
}

// D1: a client of another partitioner pauses and resumes: each command is forwarded to its timer.
#[test]
fn a_pause_from_another_partitioner_is_forwarded() {
    let mut scene = scene("paused-strays");
    let process = scene.serve("a");
    let due = after(Duration::from_secs(4));
    let runs: Vec<String> = (0..TIMERS).map(|number| format!("r-{number}")).collect();
    for run in &runs {
        scene.arm(run, "t", due);
    }
    scene.wait_until_answered();
    scene.commands = scene.deployment.commands_partitioned_by(Partitioner::Crc32);
    for run in &runs {
        pause(&mut scene, run);
    }
    scene.wait_until_answered();
    assert!(process.metric("punctual_forwarded_total") > 0.0, "no command was forwarded");
    wait_for_instant(due);
    wait_until_paused(&process, TIMERS);
    assert_eq!(scene.fired.count(), 0, "all are paused");
    for run in &runs {
        resume(&mut scene, run);
    }
    assert_eq!(scene.settle_all().fired(), TIMERS);
}
