//! Disks and offsets that are lost, and transactions that are left open: the changelog is the truth.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::harness::broker::Broker;
use crate::harness::deployment::PARTITIONS;
use crate::harness::scene::{Scene, after, wait_for_instant};
use crate::harness::serve::Serve;
use crate::harness::wait;

/// How long the broker keeps the transaction of a dead writer: longer than it takes until the timers behind it are due.
const OPEN_TRANSACTION: Duration = Duration::from_secs(15);
const BOUND: Duration = Duration::from_secs(20);
/// A killed member is forgotten after its session time-out; only then can the group be deleted.
const GROUP_BOUND: Duration = Duration::from_secs(30);

// N8: the volume is gone; the timers are not.
#[test]
fn a_lost_state_directory_is_restored() {
    let mut scene = Scene::new(Broker::shared(), "lost-state");
    let mut process = scene_with_fired_and_pending(&mut scene);
    process.kill();
    fs::remove_dir_all(scene.deployment.state_directory("a")).unwrap();
    let _process = scene.serve("a");
    scene.settle_all();
}

// D20: volume and group offsets are gone: nothing that has fired fires again, and nothing is skipped.
#[test]
fn a_lost_state_directory_is_restored_without_the_offsets_of_the_group() {
    let mut scene = Scene::new(Broker::shared(), "lost-offsets");
    let mut process = scene_with_fired_and_pending(&mut scene);
    process.kill();
    fs::remove_dir_all(scene.deployment.state_directory("a")).unwrap();
    delete_group(&scene);
    let _process = scene.serve("a");
    scene.settle_all();
}

// D20: the offsets alone.
#[test]
fn nothing_fires_again_when_the_offsets_of_the_group_are_gone() {
    let mut scene = Scene::new(Broker::shared(), "no-offsets");
    let mut process = scene_with_fired_and_pending(&mut scene);
    process.stop();
    delete_group(&scene);
    let _process = scene.serve("a");
    scene.settle_all();
}

// R1: a dead writer's open transaction hides what was committed above it; a restore that ends there misses timers.
#[test]
fn a_restore_waits_for_the_open_transaction_of_a_dead_writer() {
    let mut scene = Scene::new(Broker::shared(), "dead-writer");
    let mut process = scene.serve("a");
    scene.arm_many("below", 60, Duration::from_secs(12), Duration::from_secs(14));
    scene.wait_until_answered();
    leave_open_transaction(&scene, "changelog");
    // Committed, and hidden by the transaction below it.
    scene.arm_many("above", 60, Duration::from_secs(12), Duration::from_secs(14));
    scene.commands.flush();
    let pending = || process.metric("punctual_pending_timers");
    wait::until_true(Duration::from_secs(20), "all commands are applied", || (pending() - 120.0).abs() < 0.5);
    process.kill();
    fs::remove_dir_all(scene.deployment.state_directory("a")).unwrap();
    let _process = scene.serve("a");
    scene.settle_all();
}

// R27: a dead client's open transaction hides an acknowledged disarm from the service.
#[test]
fn a_disarm_behind_an_open_transaction_is_in_force() {
    let mut scene = Scene::new(Broker::shared(), "dead-client");
    let mut process = scene.serve("a");
    let due = after(Duration::from_secs(6));
    (0..40).for_each(|number| scene.arm(&format!("r-{number}"), "t", due));
    scene.wait_until_answered();
    process.kill();
    leave_open_transaction(&scene, "arm");
    (0..40).for_each(|number| scene.disarm(&format!("r-{number}"), "t"));
    scene.commands.flush();
    wait_for_instant(due);
    let process = scene.deployment.launch("a");
    // The wait shows: what is not seen yet may be a disarm.
    wait::until_true(BOUND, "it waits for the commands behind the transaction", || {
        let (status, words) = process.probe("/readyz");
        status == 503 && words.contains("catching_up: partition") && process.tasks("catching_up") > 0
    });
    assert_eq!(scene.fired.count(), 0, "nothing fires meanwhile");
    scene.wait_until_answered();
    scene.settle_all();
}

// Somebody with the right to write removes every key of the changelog; the owner writes its own state anew.
#[test]
fn what_somebody_else_writes_to_the_changelog_is_reported_and_overwritten() {
    let mut scene = Scene::new(Broker::shared(), "foreign");
    let mut process = scene.serve("a");
    let changelog = scene.deployment.reader(&["changelog"]);
    scene.arm_many("pending", 100, Duration::from_secs(12), Duration::from_secs(16));
    scene.wait_until_answered();
    let barrier_and_meta = 2 * usize::try_from(PARTITIONS).unwrap();
    let own = changelog.wait_for(100 + barrier_and_meta, BOUND, "the state of all timers");
    let writer: BaseProducer = scene.deployment.client().create().unwrap();
    let keys: BTreeSet<_> = own.into_iter().map(|record| (record.partition, record.key.unwrap())).collect();
    let topic = scene.deployment.topic("changelog");
    for (partition, key) in &keys {
        let tombstone = BaseRecord::<[u8], [u8]>::to(&topic).partition(*partition).key(key);
        writer.send(tombstone).map_err(|(error, _)| error).unwrap();
    }
    writer.flush(BOUND).unwrap();
    // Noticed with the next own records.
    let found = || process.metric("punctual_changelog_foreign_records_total");
    let written = f64::from(u32::try_from(keys.len()).unwrap());
    let mut number = 0;
    wait::until_true(BOUND, "every record is found", || {
        scene.arm_many(&format!("more-{number}"), 40, Duration::from_secs(12), Duration::from_secs(16));
        scene.wait_until_answered();
        number += 1;
        found() >= written
    });
    assert!((found() - written).abs() < 0.5, "no record of its own is among them: {} of {written}", found());
    let pending = f64::from(100 + 40 * number);
    let is_whole = || (process.metric("punctual_pending_timers") - pending).abs() < 0.5;
    wait::until_true(BOUND, "nothing is gone", is_whole);
    process.stop();
    fs::remove_dir_all(scene.deployment.state_directory("a")).unwrap();
    let _process = scene.serve("a");
    scene.settle_all();
}

/// Returns a process with 100 timers that have fired, and 200 that are still to fire.
fn scene_with_fired_and_pending(scene: &mut Scene) -> Serve {
    let process = scene.serve("a");
    scene.arm_many("fired", 100, Duration::from_secs(0), Duration::from_secs(2));
    scene.arm_many("pending", 200, Duration::from_secs(8), Duration::from_secs(20));
    scene.wait_until_answered();
    scene.wait_until_fired(100);
    process
}

fn delete_group(scene: &Scene) {
    let admin: AdminClient<DefaultClientContext> = scene.deployment.client().create().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    wait::until_true(GROUP_BOUND, "the group can be deleted", || {
        let deletion = admin.delete_groups(&[scene.deployment.group()], &AdminOptions::new());
        runtime.block_on(deletion).is_ok_and(|results| results.iter().all(Result::is_ok))
    });
}

/// Leaves a transaction open on every partition of the topic, by a producer that is gone. The broker ends it after a while.
fn leave_open_transaction(scene: &Scene, topic: &str) {
    let mut config = scene.deployment.client().clone();
    config.set("transactional.id", format!("{}-dead", scene.deployment.group()));
    config.set("transaction.timeout.ms", OPEN_TRANSACTION.as_millis().to_string());
    let writer: BaseProducer = config.create().unwrap();
    writer.init_transactions(BOUND).unwrap();
    writer.begin_transaction().unwrap();
    let topic = scene.deployment.topic(topic);
    for partition in 0..PARTITIONS {
        writer
            .send(BaseRecord::to(&topic).partition(partition).key("dead").payload("dead"))
            .map_err(|(e, _)| e)
            .unwrap();
    }
    // Written, and neither committed nor aborted: dropping the producer leaves it as a crash would.
    writer.flush(BOUND).unwrap();
}
