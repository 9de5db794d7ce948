//! What is created, and what is left alone.

use std::collections::BTreeMap;

use super::*;
use crate::log::kafka::topics::facts::TopicFacts;
use crate::timer::kind::KindNumber;

fn planned() -> Vec<PlannedTopic> {
    let topic = |destination, name: &str| PlannedTopic { destination, name: name.to_owned() };
    let [one, two] = [1, 2].map(|number| KindNumber::new(number).unwrap());
    vec![
        topic(Destination::Arm, "arm"),
        topic(Destination::Changelog, "changelog"),
        topic(Destination::Fired(one), "fired"),
        topic(Destination::Fired(two), "fired"),
        topic(Destination::DeadLetter, "dead"),
    ]
}

fn cluster(topics: &[(&str, u32)]) -> Cluster {
    let facts = |partitions| TopicFacts { partitions, ..TopicFacts::default() };
    let topics: BTreeMap<_, _> = topics.iter().map(|(name, count)| ((*name).to_owned(), facts(*count))).collect();
    Cluster { brokers: 3, topics }
}

fn shape(specs: &[TopicSpec]) -> Vec<(&str, u32)> {
    specs.iter().map(|spec| (spec.name.as_str(), spec.partitions)).collect()
}

const LAYOUT: Layout = Layout { partitions: 8, replication: 3 };

#[test]
fn a_topic_of_two_kinds_is_created_once() {
    let specs = missing(&planned(), &cluster(&[]), LAYOUT);
    assert_eq!(shape(&specs), [("arm", 8), ("changelog", 8), ("fired", 8), ("dead", 8)]);
}

#[test]
fn new_topics_take_the_count_of_those_that_exist() {
    assert_eq!(
        shape(&missing(&planned(), &cluster(&[("changelog", 4), ("dead", 1)]), LAYOUT)),
        [("arm", 4), ("fired", 4)]
    );
    assert_eq!(
        shape(&missing(&planned(), &cluster(&[("arm", 5), ("fired", 1)]), LAYOUT)),
        [("changelog", 5), ("dead", 5)]
    );
}

#[test]
fn nothing_is_missing_the_second_time() {
    let all = cluster(&[("arm", 8), ("changelog", 8), ("fired", 8), ("dead", 8)]);
    assert_eq!(missing(&planned(), &all, LAYOUT), []);
}

#[test]
fn the_changelog_is_compacted_and_keeps_tombstones_for_a_week() {
    let specs = missing(&planned(), &cluster(&[]), LAYOUT);
    let changelog = specs.iter().find(|spec| spec.name == "changelog").unwrap();
    let config: BTreeMap<_, _> = changelog.config.iter().map(|(key, value)| (*key, value.as_str())).collect();
    assert_eq!(config.get("cleanup.policy"), Some(&"compact"));
    assert_eq!(config.get("delete.retention.ms"), Some(&"604800000"));
    assert_eq!(config.get("message.timestamp.type"), Some(&"LogAppendTime"));
    assert_eq!(config.get("min.insync.replicas"), Some(&"2"));
}

#[test]
fn what_the_broker_decides_is_left_to_it() {
    let specs = missing(&planned(), &cluster(&[]), Layout { replication: -1, ..LAYOUT });
    assert!(specs.iter().all(|spec| spec.config.iter().all(|(key, _)| *key != "min.insync.replicas")), "{specs:?}");
    assert!(specs.iter().all(|spec| spec.replication == -1), "{specs:?}");
}
