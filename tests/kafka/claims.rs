//! Kinds that deliver by claim: again after each lease, until a disarm, the last attempt, or the seal of the run.

use std::fs;
use std::time::Duration;

use punctual::time::Timestamp;
use serde_json::{Value, json};

use crate::harness::broker::Broker;
use crate::harness::reader::Received;
use crate::harness::scene::{Scene, after};
use crate::harness::{now, wait};

const BOUND: Duration = Duration::from_secs(40);

/// A scene whose timers of the kind `email` are claimed; those of `payment` fire once.
fn scene(name: &str, claim: &Value) -> Scene {
    let mut kind = json!({"number": 1, "name": "email", "delivery": "claim"});
    for (field, value) in claim.as_object().unwrap() {
        kind[field] = value.clone();
    }
    let kinds = json!([kind, {"number": 2, "name": "payment"}]);
    Scene::with(Broker::shared(), name, |settings| settings["kinds"] = kinds)
}

/// Arms a timer of any kind with a payload, without an entry in the account: it is to come more than once.
fn arm(scene: &mut Scene, run: &str, timer_id: &str, kind: &str, due: Timestamp) {
    let arm = json!({"timer_id": timer_id, "kind": kind, "at": due.to_string(), "payload": "text"});
    scene.command(run, json!({"arm": arm}));
}

/// Waits until a timer of the other kind has fired that is due in so long: what would come until then has come.
fn wait_past(scene: &mut Scene, duration: Duration) {
    let is_control = |event: &&Received| event.header("punctual-run") == Some("control");
    let before = scene.fired.records().iter().filter(is_control).count();
    arm(scene, "control", &format!("t-{before}"), "payment", after(duration));
    scene.commands.flush();
    wait::until_true(BOUND, "the control timer fires", || {
        scene.fired.records().iter().filter(is_control).count() > before
    });
}

/// Returns the events of a run, in the order in which they came.
fn events(scene: &Scene, run: &str) -> Vec<Received> {
    let records = scene.fired.records();
    records.into_iter().filter(|event| event.header("punctual-run") == Some(run)).collect()
}

fn wait_for_events(scene: &Scene, run: &str, count: usize) -> Vec<Received> {
    let what = format!("{count} events of {run} come");
    wait::until_true(BOUND, &what, || events(scene, run).len() >= count);
    events(scene, run)
}

fn instant(event: &Received, name: &str) -> Timestamp {
    Timestamp::parse(event.header(name).unwrap()).unwrap()
}

/// Checks that these are the deliveries of one timer: numbered, of one id, each a lease behind the one before.
fn check_deliveries(deliveries: &[Received], due: Timestamp, lease: Duration) {
    for (index, event) in deliveries.iter().enumerate() {
        assert_eq!(event.header("punctual-attempt").unwrap(), (index + 1).to_string(), "numbered");
        assert_eq!(event.header("ce_id"), deliveries[0].header("ce_id"), "one id for all attempts");
        assert_eq!((event.text(), instant(event, "punctual-due")), ("text", due), "as it was armed");
    }
    for pair in deliveries.windows(2) {
        let held = instant(&pair[1], "punctual-fired").since(instant(&pair[0], "punctual-fired"));
        assert!(held >= lease, "held for {held:?} only");
    }
}

// D13, L5: a consumer that takes longer than the lease gets the next attempt, marked as such; those held hide nothing.
#[test]
fn a_claim_is_delivered_again_until_it_is_disarmed() {
    const LEASE: Duration = Duration::from_millis(1_200);
    let mut scene = scene("claims", &json!({"lease": "1200ms"}));
    let _process = scene.serve("a");
    let due = after(Duration::from_millis(500));
    arm(&mut scene, "r", "t", "email", due);
    scene.commands.flush();
    let deliveries = wait_for_events(&scene, "r", 3);
    check_deliveries(&deliveries, due, LEASE);
    arm(&mut scene, "r", "t", "email", after(Duration::from_hours(1)));
    let generation: u64 = deliveries[0].header("punctual-generation").unwrap().parse().unwrap();
    scene.command("r", json!({"disarm": {"timer_id": "t", "generation": generation + 1}}));
    scene.command("r", json!({"disarm": {"timer_id": "t", "generation": generation}}));
    scene.wait_until_answered();
    let outcomes: Vec<Value> =
        scene.results.records()[1..].iter().map(|result| result.json()["outcome"].clone()).collect();
    assert_eq!(outcomes[..3], ["already_armed", "changed", "disarmed"]);
    let delivered = events(&scene, "r");
    wait_past(&mut scene, LEASE * 2);
    check_deliveries(&delivered, due, LEASE);
    assert_eq!(events(&scene, "r").len(), delivered.len(), "no delivery comes after the disarm");
}

// L5: more held than a tick may fire.
#[test]
fn held_timers_hide_nothing_that_is_due_behind_them() {
    const HELD: usize = 300;
    let mut scene = scene("held", &json!({"lease": "1h"}));
    let process = scene.serve("a");
    let due = now();
    for number in 0..HELD {
        arm(&mut scene, "crowd", &format!("t-{number}"), "email", due);
    }
    scene.commands.flush();
    wait_for_events(&scene, "crowd", HELD);
    arm(&mut scene, "behind", "t", "email", after(Duration::from_millis(200)));
    scene.commands.flush();
    wait_for_events(&scene, "behind", 1);
    scene.command("crowd", json!({"disarm_run": {}}));
    scene.wait_until_answered();
    let answer = scene.results.records().last().unwrap().json();
    assert_eq!((&answer["outcome"], &answer["count"]), (&json!("run_disarmed"), &json!(HELD)));
    wait::until_true(BOUND, "one is pending", || (process.metric("punctual_pending_timers") - 1.0).abs() < 0.5);
}

// D13, N8: lease and attempt come out of the changelog.
#[test]
fn a_lease_outlives_the_process_and_its_disk() {
    const LEASE: Duration = Duration::from_secs(5);
    let mut scene = scene("lease", &json!({"lease": "5s"}));
    let mut process = scene.serve("a");
    let due = after(Duration::from_millis(300));
    arm(&mut scene, "r", "t", "email", due);
    scene.commands.flush();
    wait_for_events(&scene, "r", 1);
    process.kill();
    fs::remove_dir_all(scene.deployment.state_directory("a")).unwrap();
    let _process = scene.serve("a");
    check_deliveries(&wait_for_events(&scene, "r", 2), due, LEASE);
}

#[test]
fn a_claim_that_nobody_ends_is_a_dead_letter_after_its_last_attempt() {
    const LEASE: Duration = Duration::from_millis(800);
    let mut scene = scene("attempts", &json!({"lease": "800ms", "max_attempts": 2}));
    let letters = scene.deployment.reader(&["dead-letter"]);
    let _process = scene.serve("a");
    let due = after(Duration::from_millis(300));
    arm(&mut scene, "r", "t", "email", due);
    scene.commands.flush();
    let letter = letters.wait_for(1, BOUND, "the last lease ends").remove(0);
    check_deliveries(&events(&scene, "r"), due, LEASE);
    assert_eq!(events(&scene, "r").len(), 2, "as often as it may");
    assert_eq!(letter.header("punctual-dead-letter-reason"), Some("attempts_exhausted"));
    assert_eq!((letter.header("ce_id"), letter.text()), (events(&scene, "r")[0].header("ce_id"), "text"));
    assert_eq!(letter.header("punctual-attempt"), Some("2"), "the attempts that it had");
    scene.command("r", json!({"disarm": {"timer_id": "t"}}));
    scene.wait_until_answered();
    assert_eq!(scene.results.records().last().unwrap().json()["outcome"], "not_found");
}

#[test]
fn a_sealed_run_delivers_nothing_that_is_held() {
    const LEASE: Duration = Duration::from_millis(800);
    let mut scene = scene("sealed-claims", &json!({"lease": "800ms"}));
    let _process = scene.serve("a");
    for number in 0..3 {
        arm(&mut scene, "r", &format!("t-{number}"), "email", now());
    }
    scene.commands.flush();
    wait_for_events(&scene, "r", 3);
    scene.command("r", json!({"seal_run": {}}));
    scene.wait_until_answered();
    let answer = scene.results.records().last().unwrap().json();
    assert_eq!((&answer["outcome"], &answer["count"]), (&json!("run_sealed"), &json!(3)));
    let delivered = events(&scene, "r").len();
    wait_past(&mut scene, LEASE * 2);
    assert_eq!(events(&scene, "r").len(), delivered, "no delivery comes after the seal");
}
