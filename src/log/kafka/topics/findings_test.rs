//! Sound topics, and each way in which they can be wrong.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};

use super::*;
use crate::timer::kind::KindNumber;

/// Changes the facts of a sound cluster and compares what is found then.
fn check(change: impl FnOnce(&mut Cluster), expected: &Expect) {
    let mut cluster = sound();
    change(&mut cluster);
    let findings = judge(&planned(), &cluster, &Limits::default());
    let lines: Vec<String> = findings.iter().map(|finding| format!("{}: {finding}\n", finding.severity)).collect();
    expected.assert_eq(&lines.concat());
}

fn planned() -> Vec<PlannedTopic> {
    let topic = |destination, name: &str| PlannedTopic { destination, name: name.to_owned() };
    let [one, two] = [1, 2].map(|number| KindNumber::new(number).unwrap());
    vec![
        topic(Destination::Arm, "arm"),
        topic(Destination::Changelog, "changelog"),
        topic(Destination::Fired(one), "fired"),
        topic(Destination::Fired(two), "fired"),
        topic(Destination::Results, "results"),
    ]
}

fn sound() -> Cluster {
    let common = [("min.insync.replicas", "2"), ("max.message.bytes", "1048588"), ("cleanup.policy", "delete")];
    let changelog = [
        ("cleanup.policy", "compact"),
        ("message.timestamp.type", "LogAppendTime"),
        ("delete.retention.ms", "604800000"),
        ("max.message.bytes", "4194304"),
    ];
    let facts = |extra: &[(&str, &str)]| TopicFacts {
        partitions: 8,
        replication: 3,
        is_empty: false,
        config: common.iter().chain(extra).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
    };
    let topics = [
        ("arm", facts(&[("retention.ms", "-1")])),
        ("changelog", facts(&changelog)),
        ("fired", facts(&[])),
        ("results", facts(&[])),
    ];
    Cluster { brokers: 3, topics: topics.map(|(name, facts)| (name.to_owned(), facts)).into() }
}

fn topic<'a>(cluster: &'a mut Cluster, name: &str) -> &'a mut TopicFacts {
    cluster.topics.get_mut(name).unwrap()
}

fn set(cluster: &mut Cluster, name: &str, settings: &[(&str, &str)]) {
    let settings: BTreeMap<_, _> = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    topic(cluster, name).config.extend(settings);
}

#[test]
fn nothing_is_said_of_sound_topics() {
    check(|_| {}, &expect![""]);
}

#[test]
fn a_missing_topic_is_an_error() {
    check(
        |cluster| {
            cluster.topics.remove("fired");
        },
        &expect![[r#"
            error: topic `fired`: topic is missing, expected the topic for fired of kind 1; run `punctual topics create`, for nothing else creates it; one that is there is seen with a right to it
        "#]],
    );
}

#[test]
fn r8_a_changelog_that_deletes_is_an_error() {
    check(
        |cluster| set(cluster, "changelog", &[("cleanup.policy", "compact,delete")]),
        &expect![[r#"
            error: topic `changelog`: cleanup.policy is compact,delete, expected compact; set it (kafka-configs.sh --bootstrap-server SERVERS --alter --topic changelog --add-config cleanup.policy=compact): deleting old records loses timers that are pending
        "#]],
    );
    check(
        |cluster| set(cluster, "changelog", &[("cleanup.policy", "delete")]),
        &expect![[r#"
            error: topic `changelog`: cleanup.policy is delete, expected compact; set it (kafka-configs.sh --bootstrap-server SERVERS --alter --topic changelog --add-config cleanup.policy=compact): deleting old records loses timers that are pending
        "#]],
    );
}

#[test]
fn compaction_of_commands_is_an_error_and_of_events_a_warning() {
    check(
        |cluster| {
            set(cluster, "arm", &[("cleanup.policy", "compact")]);
            set(cluster, "fired", &[("cleanup.policy", "compact")]);
        },
        &expect![[r#"
            error: topic `arm`: cleanup.policy is compact, expected delete; set it (kafka-configs.sh --bootstrap-server SERVERS --alter --topic arm --add-config cleanup.policy=delete): commands of one run share a key, so compaction drops commands that were not read yet
            warning: topic `fired`: cleanup.policy is compact, expected delete; set it (kafka-configs.sh --bootstrap-server SERVERS --alter --topic fired --add-config cleanup.policy=delete): records of one run share a key, so compaction drops all but the last
        "#]],
    );
}

#[test]
fn r8_a_wrong_partition_count_is_an_error_while_nothing_is_lost_by_a_new_start() {
    check(
        |cluster| {
            topic(cluster, "changelog").partitions = 1;
            topic(cluster, "changelog").is_empty = true;
        },
        &expect![[r"
            error: topic `changelog`: partitions is 1, expected 8 as `arm` has; delete `changelog`, which holds nothing yet, and run `punctual topics create`: state and commands share partitions
        "]],
    );
}

#[test]
fn r26_partitions_added_to_the_command_topic_are_a_warning() {
    check(
        |cluster| {
            topic(cluster, "arm").partitions = 12;
            topic(cluster, "fired").partitions = 12;
        },
        &expect![[r"
            warning: topic `changelog`: partitions is 8, expected 12 as `arm` has; commands on the partitions of `arm` from 8 on are only forwarded; never add partitions to the changelog
        "]],
    );
}

#[test]
fn r26_a_changelog_that_grew_is_an_error() {
    check(
        |cluster| topic(cluster, "changelog").partitions = 12,
        &expect![[r#"
            error: topic `changelog`: partitions is 12, expected 8 as `arm` has; if it grew, its state is split and must be drained; if not, add partitions to `arm` (kafka-topics.sh --bootstrap-server SERVERS --alter --topic arm --partitions 12)
        "#]],
    );
}

#[test]
fn a_fired_topic_with_another_count_is_a_warning() {
    check(
        |cluster| topic(cluster, "fired").partitions = 3,
        &expect![[r"
        warning: topic `fired`: partitions is 3, expected 8 as `arm` has; with equal counts a transaction touches one partition of it, not many: it commits faster
    "]],
    );
}

#[test]
fn replicas_that_can_never_be_in_sync_are_an_error() {
    check(
        |cluster| topic(cluster, "arm").replication = 1,
        &expect![[r#"
            error: topic `arm`: min.insync.replicas is 2, expected 1; set it (kafka-configs.sh --bootstrap-server SERVERS --alter --topic arm --add-config min.insync.replicas=1): with 1 replicas no write is ever acknowledged
            warning: topic `arm`: replication is 1, expected 3; move it to three brokers (kafka-reassign-partitions.sh): what it holds is lost with its disk
        "#]],
    );
}

#[test]
fn too_few_or_too_many_replicas_in_sync_are_a_warning() {
    check(
        |cluster| {
            set(cluster, "changelog", &[("min.insync.replicas", "1")]);
            set(cluster, "results", &[("min.insync.replicas", "3")]);
        },
        &expect![[r#"
            warning: topic `changelog`: min.insync.replicas is 1, expected 2; set it (kafka-configs.sh --bootstrap-server SERVERS --alter --topic changelog --add-config min.insync.replicas=2): what one replica acknowledges is lost with its disk
            warning: topic `results`: min.insync.replicas is 3, expected 2; set it (kafka-configs.sh --bootstrap-server SERVERS --alter --topic results --add-config min.insync.replicas=2): with 3 of 3 replicas required, one broker away stops all writing
        "#]],
    );
}

#[test]
fn one_broker_is_no_finding() {
    check(
        |cluster| {
            cluster.brokers = 1;
            for facts in cluster.topics.values_mut() {
                facts.replication = 1;
                facts.config.insert("min.insync.replicas".to_owned(), "1".to_owned());
            }
        },
        &expect![""],
    );
}

#[test]
fn times_that_are_too_short_are_a_warning() {
    check(
        |cluster| {
            set(cluster, "arm", &[("retention.ms", "3600000")]);
            set(cluster, "changelog", &[("delete.retention.ms", "86400000"), ("message.timestamp.type", "CreateTime")]);
        },
        &expect![[r#"
            warning: topic `arm`: retention.ms is 3600000, expected 604800000; set it (kafka-configs.sh --bootstrap-server SERVERS --alter --topic arm --add-config retention.ms=604800000): commands that were not read within this time are lost
            warning: topic `changelog`: message.timestamp.type is CreateTime, expected LogAppendTime; set it (kafka-configs.sh --bootstrap-server SERVERS --alter --topic changelog --add-config message.timestamp.type=LogAppendTime): the append time is what the clock guard confirms a step of the clock by
            warning: topic `changelog`: delete.retention.ms is 86400000, expected 604800000; set it (kafka-configs.sh --bootstrap-server SERVERS --alter --topic changelog --add-config delete.retention.ms=604800000): a state directory older than half of it is discarded and restored from the start
        "#]],
    );
}

#[test]
fn a_changelog_that_forgets_within_an_ordinary_stop_is_a_warning() {
    check(
        |cluster| set(cluster, "changelog", &[("delete.retention.ms", "60000")]),
        &expect![[r#"
            warning: topic `changelog`: delete.retention.ms is 60000, expected 604800000; set it (kafka-configs.sh --bootstrap-server SERVERS --alter --topic changelog --add-config delete.retention.ms=604800000): a state directory is older than half of it after nearly every stop, and is then restored from the start
        "#]],
    );
}

#[test]
fn records_that_would_not_fit_are_a_warning() {
    check(
        |cluster| {
            set(cluster, "changelog", &[("max.message.bytes", "500000")]);
            set(cluster, "fired", &[("max.message.bytes", "500000")]);
        },
        &expect![[r#"
            warning: topic `changelog`: max.message.bytes is 500000, expected 1262144; set it (kafka-configs.sh --bootstrap-server SERVERS --alter --topic changelog --add-config max.message.bytes=1262144): a timer whose state is larger than this cannot be stored
            warning: topic `fired`: max.message.bytes is 500000, expected 1000000; set it (kafka-configs.sh --bootstrap-server SERVERS --alter --topic fired --add-config max.message.bytes=1000000): arms whose fired record is larger than this are rejected
        "#]],
    );
}
