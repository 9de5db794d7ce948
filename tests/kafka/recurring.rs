//! Timers that recur, and those that name a civil time or a rule, from the wire to the fired record.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Duration;

use punctual::time::Timestamp;
use serde_json::{Value, json};

use crate::harness::broker::Broker;
use crate::harness::reader::Received;
use crate::harness::scene::{Scene, after, wait_for_instant};
use crate::harness::{now, wait};

const BOUND: Duration = Duration::from_secs(40);
const SECOND: Duration = Duration::from_secs(1);

fn scene(name: &str) -> Scene {
    Scene::new(Broker::shared(), name)
}

fn due_of(event: &Received) -> Timestamp {
    Timestamp::parse(event.header("punctual-due").unwrap()).unwrap()
}

fn number_of(event: &Received, header: &str) -> u64 {
    event.header(header).unwrap().parse().unwrap()
}

/// Checks the fires of one timer: each a new version, of a new occurrence, counted, and not before its due.
fn check_fires(fires: &[Received], is_occurrence: impl Fn(Timestamp) -> bool) {
    for (index, event) in fires.iter().enumerate() {
        let due = due_of(event);
        assert!(is_occurrence(due), "{due} is no occurrence");
        assert!(event.at >= due, "{due} is early");
        assert_eq!(number_of(event, "punctual-occurrence"), index as u64 + 1, "each fire is counted");
    }
    for pair in fires.windows(2) {
        assert!(due_of(&pair[0]) < due_of(&pair[1]), "occurrences come in order, each once");
        assert!(
            number_of(&pair[0], "punctual-generation") < number_of(&pair[1], "punctual-generation"),
            "new versions"
        );
    }
}

fn outcome(scene: &Scene) -> Value {
    scene.results.records().last().unwrap().json()["outcome"].clone()
}

// L7: what was missed while nothing ran is one fire, and the next ones are where they always would be.
#[test]
fn a_recurring_timer_fires_as_often_as_it_may_through_crashes() {
    const COUNT: usize = 6;
    let mut scene = scene("recurring");
    let mut process = scene.serve("a");
    let anchor = now();
    let every = json!({"interval": "PT1S", "anchor": anchor.to_string(), "count": COUNT});
    scene.command("r", json!({"arm": {"timer_id": "t", "kind": "email", "every": every, "payload": "text"}}));
    scene.wait_until_fired(2);
    process.kill();
    let missed = scene.fired.records().last().map(due_of).unwrap();
    wait_for_instant(missed.checked_add(SECOND * 4).unwrap());
    fs::remove_dir_all(scene.deployment.state_directory("a")).unwrap();
    let back = now();
    let _process = scene.serve("a");
    scene.wait_until_fired(COUNT);
    scene.command("r", json!({"disarm": {"timer_id": "t"}}));
    scene.wait_until_answered();
    assert_eq!(outcome(&scene), "not_found", "the last occurrence ends it");
    let fires = scene.fired.records();
    assert_eq!(fires.len(), COUNT);
    check_fires(&fires, |due| (due.as_millis() - anchor.as_millis()) % 1_000 == 0);
    let late = fires.iter().filter(|event| due_of(event) < back && event.at >= back).count();
    assert_eq!(late, 1, "one fire for all that was missed");
}

#[test]
fn a_cron_expression_fires_at_its_seconds_until_its_end() {
    let mut scene = scene("cron");
    let _process = scene.serve("a");
    let until = after(SECOND * 6);
    let cron = json!({"expression": "*/2 * * * * *", "zone": "Asia/Kathmandu", "until": until.to_string()});
    scene.command("r", json!({"arm": {"timer_id": "t", "kind": "email", "cron": cron}}));
    scene.wait_until_answered();
    wait_for_instant(until);
    let is_gone = || {
        let fires = scene.fired.records();
        fires.last().is_some_and(|event| due_of(event).checked_add(SECOND * 2).unwrap() > until)
    };
    wait::until_true(BOUND, "the last occurrence before the end fires", is_gone);
    scene.command("r", json!({"disarm": {"timer_id": "t"}}));
    scene.wait_until_answered();
    assert_eq!(outcome(&scene), "not_found");
    let fires = scene.fired.records();
    assert!((2..=4).contains(&fires.len()), "{} in six seconds", fires.len());
    check_fires(&fires, |due| due.as_millis() % 2_000 == 0 && due <= until);
}

#[test]
fn a_recurring_timer_ends_with_its_disarm() {
    let mut scene = scene("recurring-ends");
    let _process = scene.serve("a");
    scene.command("r", json!({"arm": {"timer_id": "t", "kind": "email", "every": {"interval": "PT1S"}}}));
    scene.wait_until_fired(2);
    scene.command("r", json!({"disarm": {"timer_id": "t"}}));
    scene.wait_until_answered();
    assert_eq!(outcome(&scene), "disarmed");
    let fired = scene.fired.count();
    let control = after(SECOND * 3);
    scene.command("control", json!({"arm": {"timer_id": "t", "kind": "payment", "at": control.to_string()}}));
    scene.commands.flush();
    let of_control = |event: &Received| event.header("punctual-run") == Some("control");
    wait::until_true(BOUND, "the control timer fires", || scene.fired.records().iter().any(of_control));
    assert_eq!(scene.fired.count(), fired + 1, "no occurrence comes after the disarm");
}

/// A civil time is that of its zone, five and three quarter hours ahead; five working days pass over a weekend and a holiday.
#[test]
fn civil_times_and_rules_are_resolved_once_and_fire() {
    let calendar = json!({"id": "shop", "version": "1", "first": "2026-01-01", "last": "2035-12-31",
        "weekend": ["sat", "sun"], "holidays": ["2027-01-04"]});
    let mut scene = Scene::with(Broker::shared(), "civil", |settings| settings["calendars"] = json!([calendar]));
    let _process = scene.serve("a");
    let due = Timestamp::from_millis((after(SECOND * 2).as_millis() / 1_000) * 1_000);
    let ahead = due.checked_add(Duration::from_mins(5 * 60 + 45)).unwrap().to_string();
    let local = json!({"time": ahead.strip_suffix(".000Z").unwrap(), "zone": "Asia/Kathmandu"});
    scene.account.armed("default/r/local", due);
    scene.command("r", json!({"arm": {"timer_id": "local", "kind": "email", "local": local}}));
    let minutes = json!({"rule": "minutes", "parameters": {"n": 1}});
    scene.command("r", json!({"arm": {"timer_id": "minute", "kind": "email", "calendar": minutes}}));
    let unknown = json!({"rule": "fortnight", "parameters": {}});
    scene.command("r", json!({"arm": {"timer_id": "no", "kind": "email", "calendar": unknown}}));
    let bad = json!({"rule": "business", "parameters": {"n": 0, "calendar": "shop", "zone": "Europe/Nowhere"}});
    scene.command("r", json!({"arm": {"timer_id": "bad", "kind": "email", "calendar": bad}}));
    let far = json!({"rule": "business", "parameters": {"n": 5_000, "calendar": "shop", "zone": "Europe/Berlin"}});
    scene.command("r", json!({"arm": {"timer_id": "far", "kind": "email", "calendar": far}}));
    scene.wait_until_answered();
    let answers: Vec<Value> = scene.results.records().iter().map(Received::json).collect();
    assert_eq!(answers[0]["due"], due.to_string());
    assert_eq!(answers[1]["outcome"], "armed");
    let reasons: Vec<&Value> = answers[2..].iter().map(|answer| &answer["reason"]).collect();
    assert_eq!(reasons, ["unknown_rule", "invalid_parameters", "out_of_range"]);
    scene.settle(due);
}

/// What the command line shows before it arms is what comes.
#[test]
fn the_instants_that_the_tool_shows_are_those_that_fire() {
    let scene = scene("upcoming");
    let _process = scene.serve("a");
    let start = now();
    let tool = |dry: &[&str]| {
        let arm = ["arm", "r", "t", "--kind", "email", "--every", "PT2S", "--output", "json"];
        let mut tool = Command::new(env!("CARGO_BIN_EXE_punctual"));
        let anchor = format!("--anchor={start}");
        let output =
            tool.args(arm).arg(anchor).args(dry).env("PUNCTUAL_CONFIG", scene.deployment.config()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let shown = tool(&["--dry-run"]);
    let shown: BTreeSet<String> =
        shown["next"].as_array().unwrap().iter().map(|at| at.as_str().unwrap().to_owned()).collect();
    assert_eq!(shown.len(), 3, "the next three");
    tool(&["--wait=30s"]);
    scene.wait_until_fired(3);
    let fired: BTreeSet<String> = scene.fired.records().iter().take(3).map(|event| due_of(event).to_string()).collect();
    assert!(fired.intersection(&shown).count() >= 2, "shown {shown:?}, fired {fired:?}");
}
