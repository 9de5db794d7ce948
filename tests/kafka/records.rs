//! Records that are no good commands, or came to a wrong partition: named, and no harm to their neighbours.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::broker::Broker;
use crate::harness::commands::Partitioner;
use crate::harness::reader::Received;
use crate::harness::scene::{Scene, after};

const BOUND: Duration = Duration::from_secs(30);
/// Just what the broker takes with its framing: a copy with the reason in its headers does not fit.
const LARGEST_VALUE_BYTES: usize = 1_048_400;

// L4, L13, T1: each kind of bad record, with the code of its reason.
#[test]
fn bad_records_are_named_and_harm_no_neighbour() {
    let mut scene = Scene::new(Broker::shared(), "bad-records");
    let letters = scene.deployment.reader(&["dead-letter"]);
    let _process = scene.serve("a");
    // One run, and so one partition, for all: what is behind a bad record must still fire.
    let arm = |change: &dyn Fn(&mut Value)| {
        let mut command = json!({"run": "r", "arm": {"timer_id": "bad", "kind": "email", "after": "PT1S"}});
        change(&mut command);
        command.to_string().into_bytes()
    };
    let json_type = "application/json";
    let large = vec![0xFF; LARGEST_VALUE_BYTES];
    let bad: Vec<(Option<Vec<u8>>, &str, &str)> = vec![
        (None, json_type, "unreadable"),
        (Some(Vec::new()), json_type, "unreadable"),
        (Some(b"{".to_vec()), json_type, "unreadable"),
        (Some(vec![0xFF; 40]), "application/x-protobuf", "unreadable"),
        (Some(large.clone()), "application/x-protobuf", "unreadable"),
        (Some(arm(&|command| command["arm"]["kidn"] = json!(1))), json_type, "unreadable"),
        (Some(arm(&|command| command["arm"] = Value::Null)), json_type, "unreadable"),
        (Some(arm(&|command| command["run"] = json!(""))), json_type, "invalid_identity"),
        (Some(arm(&|command| command["tenant"] = json!("a/b"))), json_type, "invalid_identity"),
        (Some(arm(&|command| command["arm"]["kind"] = json!("nobody"))), json_type, "unknown_kind"),
        (Some(arm(&|command| command["arm"]["kind"] = json!(0))), json_type, "invalid_kind"),
        (Some(arm(&|command| command["arm"]["after"] = json!("PT0S"))), json_type, "invalid_duration"),
        (Some(arm(&|command| command["arm"]["after"] = json!("P401D"))), json_type, "beyond_horizon"),
        (
            Some(arm(&|command| command["arm"]["headers"] = json!([{"key": "ce_id", "value": "x"}]))),
            json_type,
            "reserved_header",
        ),
        (Some(arm(&|command| command["arm"]["outbox"] = json!([{"key": "k", "value": "v"}]))), json_type, "no_outbox"),
    ];
    let due = after(Duration::from_secs(5));
    let mut expected = BTreeMap::<&str, usize>::new();
    for (number, (value, content_type, reason)) in bad.iter().enumerate() {
        scene.arm("r", &format!("neighbour-{number}"), due);
        scene.commands.send(Some("default/r"), value.as_deref(), content_type);
        *expected.entry(*reason).or_default() += 1;
    }
    scene.arm("r", "last", due);
    scene.commands.flush();
    let letters = letters.wait_for(bad.len(), BOUND, "every bad record becomes a dead letter");
    let mut found = BTreeMap::<&str, usize>::new();
    for letter in &letters {
        *found.entry(letter.header("punctual-dead-letter-reason").unwrap_or("(none)")).or_default() += 1;
        assert_eq!(letter.header("punctual-dead-letter-topic"), Some("bad-records.arm"));
        assert!(letter.header("punctual-dead-letter-detail").is_some_and(|detail| !detail.is_empty()), "no detail");
    }
    assert_eq!(found, expected);
    let whole = letters.iter().filter(|letter| bad.iter().any(|(value, ..)| *value == letter.value)).count();
    assert_eq!(whole, bad.len() - 1, "all but the large one come with their bytes");
    let cut = letters.iter().filter(|letter| letter.header("punctual-dead-letter-truncated").is_some()).count();
    assert_eq!(cut, 1, "the large one is marked as cut");
    scene.settle_all();
}

// D1: a client with librdkafka's default partitioner arms, one with Java's disarms.
#[test]
fn strays_are_forwarded_to_their_partition() {
    let mut scene = Scene::new(Broker::shared(), "strays");
    let process = scene.serve("a");
    let murmur2 = std::mem::replace(&mut scene.commands, scene.deployment.commands_partitioned_by(Partitioner::Crc32));
    let due = after(Duration::from_secs(6));
    (0..100).for_each(|number| scene.arm(&format!("r-{number}"), "t", due));
    // Applied, so that no order between two clients is asked for.
    scene.wait_until_answered();
    scene.commands = murmur2;
    (0..100).step_by(2).for_each(|number| scene.disarm(&format!("r-{number}"), "t"));
    scene.wait_until_answered();
    assert!(process.metric("punctual_forwarded_total") > 0.0, "no command was forwarded");
    scene.settle_all();
}

// L4: commands without a key, and under the key of somebody else, reach the run that they name.
#[test]
fn the_identity_decides_and_not_the_key() {
    let mut scene = Scene::new(Broker::shared(), "keys");
    let _process = scene.serve("a");
    let due = after(Duration::from_secs(4));
    for number in 0..40 {
        let (run, key) = (format!("r-{number}"), [None, Some("default/other")][number % 2]);
        scene.account.armed(&format!("default/{run}/t"), due);
        let command = json!({"run": run, "arm": {"timer_id": "t", "kind": "email", "at": due.to_string()}});
        scene.commands.send(key, Some(command.to_string().as_bytes()), "application/json");
    }
    scene.commands.flush();
    scene.settle_all();
}

/// Any record, scheduled as it is: its key, value and headers come back, whatever partition its key led it to.
#[test]
fn a_record_is_scheduled_as_it_is() {
    let mut scene = Scene::new(Broker::shared(), "as-it-is");
    let process = scene.serve("a");
    let due = after(Duration::from_secs(4));
    let at = due.to_string();
    let value: &[u8] = &[0xFF, 0x00, b'{'];
    for number in 0..40 {
        let (key, timer_id) = (format!("customer-{number}"), format!("t-{number}"));
        scene.account.armed(&format!("default/{key}/{timer_id}"), due);
        let headers: [(&str, Option<&[u8]>); 7] = [
            ("content-type", Some(b"application/avro")),
            ("punctual-timer-id", Some(timer_id.as_bytes())),
            ("x", Some(&[0xFF])),
            ("punctual-kind", Some(b"email")),
            ("punctual-at", Some(at.as_bytes())),
            ("x", None),
            ("punctual-correlation-id", Some(timer_id.as_bytes())),
        ];
        // Every other is a tombstone.
        scene.commands.send_record(Some(&key), (number % 2 == 0).then_some(value), &headers);
    }
    scene.commands.flush();
    scene.results.wait_for(40, BOUND, "every record is answered");
    scene.settle_all();
    assert!(process.metric("punctual_forwarded_total") > 0.0, "no record was on another partition than its run's");
    for event in scene.fired.records() {
        let number: usize = event.header("punctual-timer-id").unwrap()["t-".len()..].parse().unwrap();
        assert_eq!(event.key.as_deref(), Some(format!("customer-{number}").as_bytes()));
        assert_eq!(event.value.as_deref(), number.is_multiple_of(2).then_some(value));
        let own: Vec<_> =
            event.headers.iter().filter(|(key, _)| !key.starts_with("ce_") && !key.starts_with("punctual-")).collect();
        let expected = [
            ("content-type".to_owned(), Some(b"application/avro".to_vec())),
            ("x".to_owned(), Some(vec![0xFF])),
            ("x".to_owned(), None),
        ];
        assert_eq!(own, expected.iter().collect::<Vec<_>>());
    }
    let outcome = |answer: &Received| serde_json::from_slice::<Value>(answer.value.as_ref().unwrap()).unwrap();
    assert!(scene.results.records().iter().all(|answer| outcome(answer)["outcome"] == "armed"), "answered in JSON");
}
