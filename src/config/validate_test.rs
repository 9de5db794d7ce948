//! Settings judged together (T6, O2): what is no service.

use std::path::PathBuf;

use super::*;
use crate::config::sources::Sources;

const KIND: &str = "kinds: [{number: 1, name: email}, {number: 2, name: payment, outbox: true}]\n";

fn judge(file: &str) -> Result<(), String> {
    let file = Some((PathBuf::from("p.yaml"), format!("{KIND}{file}")));
    let sources = Sources { file, host_name: "host".to_owned(), ..Sources::default() };
    Config::load(&sources).and_then(|config| config.validate()).map_err(|e| e.to_string())
}

#[test]
fn the_defaults_and_a_kind_make_a_service() {
    assert_eq!(judge(""), Ok(()));
}

#[test]
fn a_service_needs_a_kind() {
    let config = Config::load(&Sources { host_name: "host".to_owned(), ..Sources::default() }).unwrap();
    assert_eq!(
        config.validate().unwrap_err().to_string(),
        "kinds: is empty; declare at least one kind, such as [{number: 1, name: email}] (from default)"
    );
}

/// T6: a fired timer must not be read as a command.
#[test]
fn a_fired_topic_that_is_the_arm_topic_is_refused() {
    assert_eq!(
        judge("topics: {fired: timers.arm}"),
        Err("topics.fired: `timers.arm` is to be the fired topic of kind `email`, and topics.arm makes it the arm topic; \
             give each a topic of its own (from p.yaml line 2)"
            .to_owned())
    );
    let sources = Sources {
        set: vec!["kinds=[{number: 1, name: email, fired_topic: timers.arm}]".to_owned()],
        host_name: "host".to_owned(),
        ..Sources::default()
    };
    assert_eq!(
        Config::load(&sources).unwrap().validate().unwrap_err().to_string(),
        "kinds[0].fired_topic: `timers.arm` is to be the fired topic of kind `email`, and topics.arm makes it the arm \
         topic; give each a topic of its own (from flag --set)"
    );
}

#[test]
fn roles_that_break_each_other_share_no_topic() {
    for clash in [
        "changelog: timers.arm",
        "dead_letter: timers.arm",
        "results: timers.arm",
        "outbox: timers.arm",
        "results: timers.changelog",
        "dead_letter: timers.results",
        "fired: timers.changelog",
        "outbox: timers.dead-letter",
    ] {
        let error = judge(&format!("topics: {{{clash}}}")).unwrap_err();
        assert!(error.contains("give each a topic of its own"), "{clash}: {error}");
    }
}

#[test]
fn outputs_of_kinds_may_share_a_topic() {
    assert_eq!(judge("topics: {fired: events, outbox: events}"), Ok(()));
    assert_eq!(judge("topics: {results: ''}"), Ok(()));
}

#[test]
fn names_are_those_that_kafka_takes() {
    assert_eq!(
        judge("topics: {fired: 'timers/{kind}'}"),
        Err("topics.fired: `timers/email` is no topic name (it is to be the fired topic of kind `email`); use 1 to 249 \
             characters of A-Z a-z 0-9 . _ - (from p.yaml line 2)"
            .to_owned())
    );
    assert!(judge("topics: {arm: '..'}").is_err(), "a directory name");
    assert_eq!(
        judge("kafka: {group: a/b}"),
        Err("kafka.group: `a/b` is no valid name; use 1 to 128 characters of A-Z a-z 0-9 . _ - (from p.yaml line 2)"
            .to_owned())
    );
    assert_eq!(judge("instance: a-very-long-release-name-of-fifty-three-characters--1"), Ok(()));
    let sources = Sources { set: vec![KIND.trim().replacen(": ", "=", 1)], ..Sources::default() };
    assert_eq!(
        Config::load(&sources).unwrap().validate().unwrap_err().to_string(),
        "instance: `` is the host name and cannot be the instance; set instance, use 1 to 128 characters of \
         A-Z a-z 0-9 . _ - (from default)"
    );
    assert!(judge("source: a b").unwrap_err().starts_with("source: `a b` has a space"), "no URI reference");
}

/// O2: a typo in a librdkafka property, and one that is ours.
#[test]
fn properties_are_those_of_librdkafka_and_not_ours() {
    assert_eq!(judge("kafka: {properties: {client.rack: 'NO', security.protocol: SASL_SSL}}"), Ok(()));
    let error = judge("kafka:\n  properties:\n    sasl.pasword: hunter2\n").unwrap_err();
    assert!(error.starts_with("kafka.properties.sasl.pasword: ") && error.ends_with("(from p.yaml line 4)"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
    let error = judge("kafka.properties.enable.idempotence: false").unwrap_err();
    assert!(
        error.starts_with("kafka.properties.enable.idempotence: property `enable.idempotence` cannot be set"),
        "{error}"
    );
    let error = judge("kafka.properties.fetch.wait.max.ms: soon").unwrap_err();
    assert!(error.contains("`soon`"), "{error}");
}
