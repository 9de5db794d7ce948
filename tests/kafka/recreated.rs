//! Topics that change under the service: they grow, lose their records, or are deleted and created anew.

use std::time::Duration;

use serde_json::json;

use crate::harness::broker::Broker;
use crate::harness::deployment::PARTITIONS;
use crate::harness::scene::{Scene, after};
use crate::harness::serve::Serve;
use crate::harness::topics::TopicAdmin;
use crate::harness::{now, wait};

/// A topic that is no longer what it was is noticed by a look every half minute, or by the next transaction.
const NOTICE_BOUND: Duration = Duration::from_secs(75);
/// A client learns of new partitions with its next look at the topics.
const GROWTH_BOUND: Duration = Duration::from_secs(75);
const CHANGELOG: &[(&str, &str)] = &[("cleanup.policy", "compact"), ("message.timestamp.type", "LogAppendTime")];

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn admin(scene: &Scene) -> TopicAdmin {
    TopicAdmin::new(scene.deployment.client())
}

/// R26: the command topic grows while the service runs. What comes to the new partitions is forwarded, and fires once.
#[test]
fn commands_on_added_partitions_are_forwarded() {
    let mut scene = Scene::new(Broker::shared(), "grown");
    let process = scene.serve("a");
    scene.arm_many("before", 50, seconds(2), seconds(4));
    scene.wait_until_answered();
    admin(&scene).widen(&scene.deployment.topic("arm"), 7);
    // A client that has seen the new partitions: most of its commands are strays from now on.
    scene.commands = scene.deployment.commands();
    scene.arm_many("after", 200, seconds(8), seconds(12));
    wait::until_true(GROWTH_BOUND, "commands are forwarded", || process.metric("punctual_forwarded_total") > 0.0);
    scene.wait_until_answered();
    scene.settle_all();
}

/// R26: the changelog is created anew under a running service: it stops, and says why.
#[test]
fn a_changelog_that_is_created_anew_stops_the_process_by_name() {
    check_created_anew_while_running("changelog", CHANGELOG);
}

/// R26: the same with the command topic.
#[test]
fn a_command_topic_that_is_created_anew_stops_the_process_by_name() {
    check_created_anew_while_running("arm", &[]);
}

fn check_created_anew_while_running(topic: &str, settings: &[(&str, &str)]) {
    let mut scene = Scene::new(Broker::shared(), &format!("anew-{topic}"));
    let mut process = scene_with_fired_timers(&mut scene);
    admin(&scene).recreate(&scene.deployment.topic(topic), PARTITIONS, settings);
    check_ends_by_name(&mut process);
}

/// R26: the changelog was created anew while nobody ran: the next start is refused, and nothing of before fires again.
#[test]
fn a_changelog_that_was_created_anew_refuses_the_start_by_name() {
    check_created_anew_while_stopped("changelog", CHANGELOG);
}

/// R26: the same with the command topic.
#[test]
fn a_command_topic_that_was_created_anew_refuses_the_start_by_name() {
    check_created_anew_while_stopped("arm", &[]);
}

fn check_created_anew_while_stopped(topic: &str, settings: &[(&str, &str)]) {
    let mut scene = Scene::new(Broker::shared(), &format!("anew-stopped-{topic}"));
    scene_with_fired_timers(&mut scene).stop();
    admin(&scene).recreate(&scene.deployment.topic(topic), PARTITIONS, settings);
    check_ends_by_name(&mut scene.deployment.launch("a"));
    scene.settle(now());
}

fn scene_with_fired_timers(scene: &mut Scene) -> Serve {
    let process = scene.serve("a");
    scene.arm_many("r", 50, seconds(0), seconds(1));
    scene.wait_until_answered();
    scene.wait_until_fired(50);
    process
}

fn check_ends_by_name(process: &mut Serve) {
    let status = process.wait_for_end(NOTICE_BOUND);
    assert!(!status.success(), "it ended as if all were well");
    let words = process.log_tail();
    assert!(words.contains("created anew") || words.contains("recreated"), "no clear word:\n{words}");
}

/// N10: the command topic keeps its records for moments, the timers wait for long: the state holds all of them.
#[test]
fn timers_outlive_the_records_that_armed_them() {
    let mut scene = Scene::new(Broker::shared(), "retention");
    let mut process = scene.serve("a");
    let due = after(seconds(10));
    (0..100).for_each(|number| scene.arm(&format!("r-{number}"), "t", due));
    scene.wait_until_answered();
    admin(&scene).truncate(&scene.deployment.topic("arm"));
    process.kill();
    std::fs::remove_dir_all(scene.deployment.state_directory("a")).unwrap();
    let process = scene.serve("a");
    scene.settle_all();
    let lost = process.metric("punctual_input_lost_records_total");
    assert!(lost < 0.5, "{lost} commands are counted as lost, all were read");
}

/// D2, L6: the fired topic of one kind is away when its timers are due. They fire when it is back; the other kind never waits.
#[test]
fn a_missing_fired_topic_delays_its_own_kind_only() {
    let mut scene = Scene::new(Broker::shared(), "missing");
    let process = scene.serve("a");
    let topic = scene.deployment.topic("fired.payment");
    // The readers of the scene are of the topic that is deleted now.
    scene.fired = scene.deployment.reader(&["fired.email"]);
    admin(&scene).delete(&topic);
    let due = after(seconds(1));
    for number in 0..40 {
        let run = format!("held-{number}");
        scene.command(&run, json!({"arm": {"timer_id": "t", "kind": "payment", "at": due.to_string()}}));
    }
    let held = || process.metric_with("punctual_kind_held", "kind=\"payment\"") > 0.5;
    wait::until_true(seconds(30), "the kind is held", held);
    scene.arm_many("free", 40, seconds(0), seconds(2));
    scene.wait_until_answered();
    // Exactly: while the other kind is held.
    scene.settle_all();
    assert!(held(), "the other kind is held all the time");
    admin(&scene).create(&topic, PARTITIONS, &[]);
    let back = scene.deployment.reader(&["fired.payment"]);
    for number in 0..40 {
        scene.account.armed(&format!("default/held-{number}/t"), due);
    }
    let both = || scene.fired.count() + back.count() >= 80;
    wait::until_true(seconds(30), "the held kind fires", both);
    let records = [scene.fired.records(), back.records()].concat();
    let report = scene.account.judge(&records, after(Duration::ZERO));
    assert!(report.is_exact(), "{report}");
}
