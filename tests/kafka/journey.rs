//! The whole journey of commands and timers, as the documentation tells it: what goes in, what comes out, and the answers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::broker::Broker;
use crate::harness::now;
use crate::harness::reader::Received;
use crate::harness::scene::{Scene, after};

const BOUND: Duration = Duration::from_secs(30);

fn outcomes(results: &[Received], run: &str) -> Vec<String> {
    let of_run = results.iter().map(Received::json).filter(|result| result["run"] == run);
    of_run.map(|result| result["outcome"].as_str().unwrap().to_owned()).collect()
}

// The answers to the commands of one run come in the order of the commands: all are on one partition.
#[test]
fn each_command_is_answered_by_what_it_did() {
    let mut scene = Scene::new(Broker::shared(), "answers");
    let _process = scene.serve("a");
    let far = after(Duration::from_hours(1)).to_string();
    let arm = |timer_id: &str| json!({"arm": {"timer_id": timer_id, "kind": "email", "at": far}});
    let mut replace = arm("t");
    replace["arm"]["on_conflict"] = json!("replace");
    for command in [arm("t"), arm("t"), replace, json!({"disarm": {"timer_id": "t", "generation": 999_999}})] {
        scene.command("one", command);
    }
    scene.command("one", json!({"disarm": {"timer_id": "t"}}));
    scene.command("one", json!({"disarm": {"timer_id": "t"}}));
    for timer_id in ["a", "b", "c"] {
        scene.command("many", arm(timer_id));
    }
    scene.command("many", json!({"disarm_run": {}}));
    scene.command("many", json!({"disarm_run": {}}));
    scene.command("sealed", arm("t"));
    scene.command("sealed", json!({"seal_run": {"retention": "P7D"}}));
    scene.command("sealed", arm("u"));
    scene.command("wrong", json!({"arm": {"timer_id": "t", "kind": "nobody", "at": far}}));
    scene.wait_until_answered();
    let results = scene.results.records();
    let expected = ["armed", "already_armed", "replaced", "changed", "disarmed", "not_found"];
    assert_eq!(outcomes(&results, "one"), expected);
    assert_eq!(outcomes(&results, "many"), ["armed", "armed", "armed", "run_disarmed", "run_disarmed"]);
    assert_eq!(outcomes(&results, "sealed"), ["armed", "run_sealed", "sealed"]);
    assert_eq!(outcomes(&results, "wrong"), ["rejected"]);
    let all: Vec<Value> = results.iter().map(Received::json).collect();
    let counts: Vec<_> =
        all.iter().filter(|result| result["run"] != "one").filter_map(|r| r["count"].as_u64()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 4, "three timers of one run and one of the other were removed: {all:#?}");
    let generation = |outcome: &str| all.iter().find(|r| r["outcome"] == outcome).unwrap()["generation"].as_u64();
    assert!(generation("replaced") > generation("armed"), "a replaced timer has a later generation: {all:#?}");
    assert_eq!(scene.fired.count(), 0, "nothing is due");
}

// T5: duplicate names, binary and empty values, null: byte-exact through to the fired record.
#[test]
fn a_fired_record_carries_what_was_armed() {
    let mut scene = Scene::new(Broker::shared(), "carried");
    let outbox = scene.deployment.reader(&["outbox.payment"]);
    let _process = scene.serve("a");
    let due = after(Duration::from_secs(2));
    let identity = "acme/order-42/reminder";
    scene.account.armed(identity, due);
    let command = json!({"tenant": "acme", "correlation_id": "c", "arm": {
        "timer_id": "reminder", "kind": 2, "at": due.to_string(), "payload_base64": "AAEC/w==", "key": "other-key",
        "headers": [{"key": "x", "value": "text"}, {"key": "x", "value_base64": "/w=="}, {"key": "empty", "value": ""}],
        "outbox": [{"key": "k", "value": "v", "headers": [{"key": "h", "value": "1"}]}, {"key": "k2", "value": "w"}],
    }});
    scene.command("order-42", command);
    // Another run, whose fired record has the defaults.
    scene.account.armed("default/plain/t", due);
    scene.command("plain", json!({"arm": {"timer_id": "t", "kind": "email", "at": due.to_string()}}));
    scene.wait_until_answered();
    scene.settle_all();
    let fired = scene.fired.records();
    let event = fired.iter().find(|event| event.header("ce_subject") == Some(identity)).unwrap();
    assert_eq!(event.topic, "carried.fired.payment");
    assert_eq!(event.key.as_deref(), Some(&b"other-key"[..]));
    assert_eq!(event.value.as_deref(), Some(&[0, 1, 2, 0xFF][..]));
    let own: Vec<_> = event.headers.iter().skip_while(|(name, _)| name != "x").cloned().collect();
    let header = |name: &str, value: &[u8]| (name.to_owned(), Some(value.to_vec()));
    assert_eq!(own, [header("x", b"text"), header("x", &[0xFF]), header("empty", b"")]);
    check_metadata(event, &due.to_string());
    let plain = fired.iter().find(|event| event.header("ce_subject") == Some("default/plain/t")).unwrap();
    assert_eq!((plain.key.as_deref(), plain.value.as_deref()), (Some(&b"default/plain"[..]), None));
    let outbox = outbox.wait_for(2, BOUND, "the outbox records come with the fire");
    let mut pairs: Vec<_> =
        outbox.iter().map(|record| (record.key.clone().unwrap(), record.text().to_owned())).collect();
    pairs.sort();
    assert_eq!(pairs, [(b"k".to_vec(), "v".to_owned()), (b"k2".to_vec(), "w".to_owned())]);
}

/// Checks what the service adds, in its order, before the arm's own headers.
fn check_metadata(event: &Received, due: &str) {
    let added = ["ce_specversion", "ce_id", "ce_type", "ce_source", "ce_subject", "ce_time"];
    let own = ["tenant", "run", "timer-id", "kind", "generation", "attempt", "due", "armed", "fired"];
    let expected: Vec<_> =
        added.into_iter().map(String::from).chain(own.iter().map(|name| format!("punctual-{name}"))).collect();
    let names: Vec<_> = event.headers.iter().map(|(name, _)| name.clone()).take(expected.len()).collect();
    assert_eq!(names, expected, "the service's headers come first, in their order");
    let values = [
        ("ce_specversion", "1.0".to_owned()),
        ("ce_id", format!("acme/order-42/reminder/{}", event.header("punctual-generation").unwrap())),
        ("ce_type", "punctual.fired.payment".to_owned()),
        ("punctual-due", due.to_owned()),
        ("punctual-tenant", "acme".to_owned()),
        ("punctual-run", "order-42".to_owned()),
        ("punctual-timer-id", "reminder".to_owned()),
        ("punctual-kind", "payment".to_owned()),
    ];
    for (name, value) in values {
        assert_eq!(event.header(name), Some(value.as_str()), "the header {name}");
    }
}

// A timer is armed in either encoding, due in the past, by a duration, and again after its fire.
#[test]
fn every_form_of_arming_fires() {
    let mut scene = Scene::new(Broker::shared(), "forms");
    let _process = scene.serve("a");
    let due = after(Duration::from_secs(2));
    scene.commands.arm_in_protobuf("protobuf", "t", due);
    scene.account.armed("default/protobuf/t", due);
    scene.arm("past", "t", now());
    scene.wait_until_answered();
    scene.wait_until_fired(2);
    scene.settle_all();
    // D21: once it has fired, the id is free, unless its kind remembers it.
    let before = scene.fired.count();
    scene.command("past", json!({"arm": {"timer_id": "t", "kind": "email", "at": now().to_string()}}));
    let sent = now();
    scene.command("duration", json!({"arm": {"timer_id": "t", "kind": "email", "after": "PT2S"}}));
    let events = scene.fired.wait_for(before + 2, BOUND, "the timer that was armed again, and the one by a duration");
    let by_duration = events.iter().find(|event| event.header("punctual-run") == Some("duration")).unwrap();
    let waited = by_duration.at.since(sent);
    assert!(waited >= Duration::from_secs(2), "fired after {waited:?}, which is early");
    let ids: std::collections::BTreeSet<_> = events.iter().map(|event| event.header("ce_id")).collect();
    assert_eq!(ids.len(), events.len(), "each fire has an id of its own");
}

// A lone timer on an idle process reaches its consumer within tens of milliseconds; the bound here is for a busy machine.
#[test]
fn a_lone_timer_is_on_time() {
    let mut scene = Scene::new(Broker::shared(), "lone");
    let _process = scene.serve("a");
    for number in 0..5 {
        let due = after(Duration::from_millis(700));
        scene.arm(&format!("r-{number}"), "t", due);
        scene.commands.flush();
        scene.wait_until_fired(number + 1);
        let lateness = scene.fired.records()[number].at.since(due);
        assert!(lateness < Duration::from_secs(1), "{lateness:?} late");
    }
    scene.settle_all();
}

/// Any reader of `CloudEvents` finds the event in the value alone, and whoever routes by headers finds those too.
#[test]
fn a_kind_in_structured_mode_fires_envelopes() {
    let kinds = json!([{"number": 1, "name": "email", "content_mode": "structured"}, {"number": 2, "name": "payment"}]);
    let mut scene = Scene::with(Broker::shared(), "structured", |settings| settings["kinds"] = kinds);
    let _process = scene.serve("a");
    let due = after(Duration::from_secs(1));
    scene.account.armed("default/r/t", due);
    let arm = json!({"timer_id": "t", "kind": "email", "at": due.to_string(), "payload": "{\"total\": 1.50}",
        "headers": [{"key": "content-type", "value": "application/json"}, {"key": "x", "value": "1"}]});
    scene.command("r", json!({"arm": arm}));
    scene.settle_all();
    let event = scene.fired.records().remove(0);
    assert_eq!(event.header("content-type"), Some("application/cloudevents+json; charset=utf-8"));
    assert_eq!((event.header("x"), event.header("punctual-run")), (Some("1"), Some("r")));
    let envelope = event.json();
    assert_eq!(envelope["id"], event.header("ce_id").unwrap());
    assert_eq!(envelope["type"], "punctual.fired.email");
    assert_eq!(envelope["punctualdue"], due.to_string());
    assert!(event.text().contains(r#""data":{"total": 1.50}"#), "as it was written: {}", event.text());
}
