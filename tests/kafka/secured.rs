//! A broker behind TLS and passwords: the whole journey, and what is said to those who are not let in.

use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use punctual::time::Timestamp;
use serde_json::{Value, json};

use crate::harness::scene::Scene;
use crate::harness::secured::{PASSWORD, Secured};
use crate::harness::serve::Serve;

const BOUND: Duration = Duration::from_secs(40);
const END_BOUND: Duration = Duration::from_secs(100);

/// Runs the tool with the deployment's settings, and some over them.
fn run(scene: &Scene, arguments: &[&str]) -> Output {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_punctual"));
    tool.args(arguments).env("PUNCTUAL_CONFIG", scene.deployment.config()).output().unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_whole_journey_over_tls_and_scram() {
    let secured = Secured::shared();
    let mut scene = Scene::with(secured.broker(), "tls", |settings| secured.over_tls(settings));
    // Everything that the service and its client library can say.
    let chatty = |settings: &mut Value| settings["kafka"]["properties"]["debug"] = json!("conf,security,protocol");
    let mut process = scene.deployment.launch_with("a", chatty, &[("RUST_LOG", "trace")]);
    process.wait_until_ready();
    scene.arm_many("r", 40, Duration::from_secs(1), Duration::from_secs(3));
    scene.wait_until_answered();
    let arm = ["arm", "order-42", "t", "--kind", "email", "--after", "PT1S", "--wait=30s", "--output", "json"];
    let armed = run(&scene, &arm);
    assert!(armed.status.success(), "{}", words(&armed));
    let receipt: Value = serde_json::from_slice(&armed.stdout).unwrap();
    let due = Timestamp::parse(receipt["answer"]["due"].as_str().unwrap()).unwrap();
    scene.account.armed("default/order-42/t", due);
    let watched = run(&scene, &["watch", "--from-beginning", "--count", "41", "--for", "40s", "--output", "json"]);
    assert!(watched.status.success(), "{}", words(&watched));
    assert_eq!(String::from_utf8_lossy(&watched.stdout).lines().count(), 41);
    assert_eq!(run(&scene, &["topics", "validate"]).status.code(), Some(0));
    scene.settle_all();
    process.stop();
    let log = process.log();
    assert!(log.contains("sasl.password") || log.contains("SASL"), "the client library has told what it does");
    assert!(!log.contains(PASSWORD), "a password is in the log");
}

#[test]
fn a_wrong_password_is_refused_with_a_clear_word() {
    let expected = ["Authentication failed"];
    let mut process = check_refused("tls-password", &[("sasl.password", "wrong-0123456")], &expected);
    // A cluster may be on its way up; when it has been asked for a minute, the service ends with the reason.
    let status = process.wait_for_end(END_BOUND);
    assert_eq!(status.code(), Some(1), "{}", process.log_tail());
    let log = process.log();
    let last = log.lines().rfind(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(last.contains(expected[0]), "its last word: {last}");
    assert!(!log.contains("0123456") && !log.contains(PASSWORD), "a password is in the log");
}

#[test]
fn an_authority_that_is_not_trusted_is_named() {
    let other = Secured::shared().other_authority();
    let properties = [("ssl.ca.location", other.to_str().unwrap())];
    let mut process = check_refused("tls-authority", &properties, &["certificate verify failed"]);
    process.stop();
    assert!(!process.log().contains(PASSWORD), "a password is in the log");
}

/// A tool that gives up still has clients at work on connections. Its end must not be theirs: OpenSSL's own end frees what they
/// use, so the process died of a signal once in thirty runs.
#[test]
fn a_tool_that_gives_up_ends_with_its_code() {
    const RUNS_PER_THREAD: usize = 50;
    let secured = Secured::shared();
    let other = secured.other_authority();
    let scene = Scene::with(secured.broker(), "tls-end", |settings| secured.over_tls(settings));
    let arguments = [
        "watch",
        "--timeout=100ms",
        &format!("--set=kafka.properties.ssl.ca.location={}", other.display()),
        // At work all the time.
        "--set=kafka.properties.reconnect.backoff.ms=0",
        "--set=kafka.properties.reconnect.backoff.max.ms=1",
    ];
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..RUNS_PER_THREAD {
                    let output = run(&scene, &arguments);
                    assert_eq!(output.status.code(), Some(1), "{}: {}", output.status, words(&output));
                }
            });
        }
    });
}

/// Checks that the tools say these words and end with code 1, that the service says them too, and that no password shows.
/// Returns the service, which is still asking.
fn check_refused(name: &str, properties: &[(&str, &str)], expected: &[&str]) -> Serve {
    let secured = Secured::shared();
    let scene = Scene::with(secured.broker(), name, |settings| secured.over_tls(settings));
    let mut set: Vec<String> = Vec::new();
    for (key, value) in properties {
        set.push("--set".to_owned());
        set.push(format!("kafka.properties.{key}={value}"));
    }
    for command in ["arm order-42 t --kind email --after PT1S", "watch --for 20s", "topics validate", "topics create"] {
        let given = command.split(' ').chain(["--timeout", "3s"]);
        let arguments: Vec<&str> = given.chain(set.iter().map(String::as_str)).collect();
        let output = run(&scene, &arguments);
        let words = words(&output);
        assert_eq!(output.status.code(), Some(1), "{command}: {}: {words}", output.status);
        assert!(expected.iter().all(|word| words.contains(word)), "{command}: {words}");
        assert!(!words.contains("0123456") && !words.contains(PASSWORD), "{command}: {words}");
    }
    let change = |settings: &mut Value| {
        for (key, value) in properties {
            settings["kafka"]["properties"][*key] = json!(value);
        }
    };
    let process = scene.deployment.launch_with("a", change, &[("RUST_LOG", "debug")]);
    process.wait_for_words(BOUND, &[&["cannot read the topics yet"], expected].concat());
    process
}
