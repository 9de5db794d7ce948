//! The command line of people against a running service: commands with their answers, events, topics, state directories.

use std::fmt::Debug;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::broker::Broker;
use crate::harness::deployment::Deployment;
use crate::harness::{now, wait};

const BOUND: Duration = Duration::from_secs(30);

/// Runs the tool on the deployment's topics.
fn run(deployment: &Deployment, arguments: &[&str]) -> Output {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_punctual"));
    tool.args(arguments).env("PUNCTUAL_CONFIG", deployment.config()).output().unwrap()
}

/// Runs the tool, checks its exit code, and returns the JSON values that it wrote.
fn json_of(deployment: &Deployment, code: i32, arguments: &[&str]) -> Vec<Value> {
    let output = run(deployment, &[arguments, &["--output", "json"]].concat());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Sends a command, waits for its answer, and checks what came of it.
#[track_caller]
fn check_answer(deployment: &Deployment, arguments: &[&str], code: i32, outcome: &str) -> Value {
    let receipt = json_of(deployment, code, &[arguments, &["--wait=30s"]].concat());
    assert_eq!(receipt.len(), 1, "{arguments:?}");
    assert_eq!(receipt[0]["answer"]["outcome"], outcome, "{arguments:?}");
    receipt[0].clone()
}

fn sorted<T: Ord + Debug>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort();
    values
}

#[test]
fn every_command_is_answered_and_the_code_says_yes_or_no() {
    let deployment = Deployment::new(Broker::shared(), "tool-answers");
    let _process = deployment.serve("a");
    let arm = ["arm", "order-42", "t1", "--kind", "email", "--after", "PT1H"];
    let armed = check_answer(&deployment, &arm, 0, "armed");
    let generation = armed["answer"]["generation"].to_string();
    check_answer(&deployment, &arm, 0, "already_armed");
    check_answer(&deployment, &[&arm[..], &["--replace"]].concat(), 0, "replaced");
    check_answer(&deployment, &["disarm", "order-42", "t1", "--generation", &generation], 3, "changed");
    check_answer(&deployment, &["disarm", "order-42", "t1"], 0, "disarmed");
    check_answer(&deployment, &["disarm", "order-42", "t1"], 3, "not_found");
    check_answer(&deployment, &arm, 0, "armed");
    let paused = check_answer(&deployment, &["pause", "order-42", "t1"], 0, "paused");
    let generation = paused["answer"]["generation"].to_string();
    check_answer(&deployment, &["resume", "order-42", "t1", "--generation", &generation], 0, "resumed");
    check_answer(&deployment, &["resume", "order-42", "t1"], 0, "not_paused");
    check_answer(&deployment, &["disarm", "order-42", "t1"], 0, "disarmed");
    check_answer(&deployment, &["pause", "order-42", "t1"], 3, "not_found");
    let unknown = check_answer(&deployment, &["arm", "r", "t", "--kind", "fax", "--after", "PT1H"], 3, "rejected");
    assert_eq!(unknown["answer"]["reason"], "unknown_kind");
    check_answer(&deployment, &arm, 0, "armed");
    let disarmed = check_answer(&deployment, &["disarm-run", "order-42"], 0, "run_disarmed");
    assert_eq!(disarmed["answer"]["count"], 1);
    check_answer(&deployment, &["seal-run", "order-42", "--retention", "P1D"], 0, "run_sealed");
    check_answer(&deployment, &arm, 3, "sealed");
    let other_tenant = [&arm[..], &["--tenant", "acme"]].concat();
    check_answer(&deployment, &other_tenant, 0, "armed");
}

#[test]
fn a_command_that_nobody_answers_ends_with_its_own_code() {
    let deployment = Deployment::new(Broker::shared(), "tool-unanswered");
    let output = run(&deployment, &["disarm", "order-42", "t1", "--wait=1s"]);
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("check that `punctual serve` runs"), "the remedy");
}

#[test]
fn watching_shows_what_was_armed_as_it_fires() {
    let deployment = Deployment::new(Broker::shared(), "tool-watch");
    let _process = deployment.serve("a");
    let due = now().checked_add(Duration::from_secs(1)).unwrap().to_string();
    let email = ["arm", "order-42", "t1", "--kind", "email", "--at", &due, "--payload", "hello", "--header", "a=b"];
    check_answer(&deployment, &email, 0, "armed");
    let payment =
        ["--kind", "payment", "--after", "PT1S", "--payload-base64", "AP8=", "--outbox", "k=v", "--key", "own"];
    check_answer(&deployment, &[&["arm", "order-42", "t2"], &payment[..]].concat(), 0, "armed");
    let events = json_of(&deployment, 0, &["watch", "--from-beginning", "--count", "2", "--for", "30s"]);
    assert_eq!(sorted(events.iter().map(|event| event["timer_id"].to_string())), ["\"t1\"", "\"t2\""]);
    let by_id = |id: &str| events.iter().find(|event| event["timer_id"] == id).unwrap();
    let (email, payment) = (by_id("t1"), by_id("t2"));
    assert_eq!(email["due"], due);
    assert_eq!(email["payload"], "hello");
    assert_eq!(email["key"], "default/order-42");
    assert_eq!(email["headers"], json!([{"key": "a", "value": "b"}]));
    assert_eq!(payment["payload_base64"], "AP8=");
    assert_eq!(payment["key"], "own");
    assert!(events.iter().all(|event| event["lateness_ms"].as_i64().unwrap() >= 0), "never early: {events:?}");
}

#[test]
fn topics_are_created_once_and_found_sound() {
    let deployment = Deployment::new(Broker::shared(), "tool-topics");
    let again = json_of(&deployment, 0, &["topics", "create"]);
    assert_eq!(again.len(), 7, "{again:?}");
    assert!(again.iter().all(|topic| topic["done"] == "existed" && topic["partitions"] == 4), "{again:?}");
    assert_eq!(json_of(&deployment, 0, &["topics", "validate"]), Vec::<Value>::new());
}

// R8: each way in which topics can be wrong at the start is named, and the service refuses them.
#[test]
fn wrong_topics_are_named() {
    let deployment = Deployment::new(Broker::shared(), "tool-wrong");
    let findings = |change: &str| -> Vec<String> {
        let found = json_of(&deployment, 3, &["topics", "validate", "--set", change]);
        let errors = found.iter().filter(|finding| finding["severity"] == "error");
        errors
            .map(|finding| format!("{} {}", finding["topic"].as_str().unwrap(), finding["key"].as_str().unwrap()))
            .collect()
    };
    // A topic that deletes, in the place of the changelog.
    assert_eq!(findings("topics.changelog=tool-wrong.outbox.payment"), ["tool-wrong.outbox.payment cleanup.policy"]);
    assert_eq!(findings("topics.changelog=tool-wrong.none"), ["tool-wrong.none topic"]);
    let output = run(&deployment, &["topics", "create", "--set", "topics.arm=tool-wrong.more", "--replication", "9"]);
    assert_eq!(output.status.code(), Some(1), "nine replicas on one broker");
    assert!(String::from_utf8_lossy(&output.stdout).contains("topics.replication_factor"), "the key is named");
}

#[test]
fn a_state_directory_is_looked_into_beside_its_owner_and_after_kill_9() {
    let deployment = Deployment::with(Broker::shared(), "tool-inspect", |settings| {
        settings["store"]["flush_interval"] = json!("1s");
    });
    let mut process = deployment.serve("a");
    for run in ["r1", "r2", "r3"] {
        check_answer(&deployment, &["arm", run, "t", "--kind", "email", "--after", "PT1H"], 0, "armed");
    }
    let state = deployment.state_directory("a");
    let pending = || {
        let stores = json_of(&deployment, 0, &["inspect", state.to_str().unwrap()]);
        let kinds = stores.iter().filter_map(|store| store["kinds"].as_array()).flatten();
        kinds.filter_map(|kind| kind["pending"].as_u64()).sum::<u64>()
    };
    wait::until_true(BOUND, "three timers are durable", || pending() == 3);
    process.kill();
    assert_eq!(pending(), 3);
}
