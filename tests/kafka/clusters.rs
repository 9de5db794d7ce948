//! Clusters of three brokers of which one dies, and brokers of another release.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::broker::Broker;
use crate::harness::cluster::Cluster;
use crate::harness::deployment::{Deployment, PARTITIONS};
use crate::harness::scene::{Scene, after};
use crate::harness::topics::TopicAdmin;
use crate::harness::wait;

const BOUND: Duration = Duration::from_mins(1);
/// The oldest release of the protocol's fourth generation.
const OLD_RELEASE: &str = "4.0.2";
/// Partitions of the cluster's own topics, as `scripts/kafka` sets them.
const COORDINATORS: i32 = 4;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn scene_on(cluster: &Cluster, name: &str) -> Scene {
    let change = |settings: &mut Value| {
        settings["kafka"]["bootstrap_servers"] = json!(cluster.addresses());
        settings["topics"]["replication_factor"] = json!(3);
    };
    Scene::of(Deployment::on(cluster.client(), name, change))
}

/// Returns the partition of a cluster's own topic that is for this group or transactional id, as Java computes it.
fn coordinator_partition(id: &str) -> i32 {
    let hash = id.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    (hash & i32::MAX) % COORDINATORS
}

/// R23, D16, D2: each of three brokers is killed and comes back, one after the other, while timers fire: first who leads
/// the group, then who leads its transactions, at last the one that alone has the fired topic of a kind.
#[test]
fn a_cluster_that_loses_each_broker_in_turn_loses_and_repeats_nothing() {
    let mut cluster = Cluster::start("cluster");
    let mut scene = scene_on(&cluster, "cluster-scene");
    let (_first, _second) = (scene.serve("a"), scene.serve("b"));
    scene.arm_many("r", 1500, seconds(2), seconds(45));
    scene.wait_until_fired(50);
    let group = coordinator_partition(scene.deployment.group());
    let writer = coordinator_partition(&format!("{}-a-0-0", scene.deployment.group()));
    for (topic, partition) in [("__consumer_offsets", group), ("__transaction_state", writer)] {
        let leader = cluster.leader(topic, partition);
        let before = scene.fired.count();
        cluster.node(leader).kill();
        // The two others go on without it.
        scene.wait_until_fired(before + 100);
        cluster.node(leader).start_again();
        cluster.wait_until_whole();
    }
    scene.settle_all();
    check_lonely_topic(&mut cluster, &mut scene);
}

/// The fired topic of one kind is on one broker only, which is away when its timers are due.
fn check_lonely_topic(cluster: &mut Cluster, scene: &mut Scene) {
    let admin = TopicAdmin::new(scene.deployment.client());
    let topic = scene.deployment.topic("fired.payment");
    admin.recreate(&topic, PARTITIONS, &[("min.insync.replicas", "1")]);
    let owner = cluster.leader(&topic, 0);
    let runs: Vec<String> = (0..40).map(|number| format!("lonely-{number}")).collect();
    let due = after(seconds(3));
    for run in &runs {
        scene.command(run, json!({"arm": {"timer_id": "t", "kind": "payment", "at": due.to_string()}}));
    }
    scene.wait_until_answered();
    cluster.node(owner).kill();
    scene.arm_many("free", 40, seconds(3), seconds(4));
    let others = scene.fired.count() + 40;
    scene.wait_until_fired(others);
    cluster.node(owner).start_again();
    let back = scene.deployment.reader(&["fired.payment"]);
    wait::until_true(BOUND, "the timers of the lonely topic fire", || back.count() >= runs.len());
    for run in &runs {
        scene.account.armed(&format!("default/{run}/t"), due);
    }
    let email = scene.fired.records().into_iter().filter(|event| event.topic != topic);
    let report = scene.account.judge(&email.chain(back.records()).collect::<Vec<_>>(), after(Duration::ZERO));
    assert!(report.is_exact(), "{report}");
}

/// R23: the whole way on a broker of an older release, which is killed in between.
#[test]
fn a_broker_of_an_older_release_serves_as_well() {
    let Some(libs) = jars_of(OLD_RELEASE) else {
        println!("skipped: Maven does not give Kafka {OLD_RELEASE}");
        return;
    };
    let mut broker = Broker::launch("older-broker", "", Some(libs));
    broker.wait_until_ready();
    let mut scene = Scene::new(&broker, "older");
    let mut process = scene.serve("a");
    scene.arm_many("r", 500, seconds(1), seconds(12));
    scene.arm_many("disarmed", 50, seconds(30), seconds(30));
    (0..50).for_each(|number| scene.disarm(&format!("disarmed-{number}"), "t"));
    scene.wait_until_answered();
    scene.wait_until_fired(100);
    broker.kill();
    broker.start_again();
    process.kill();
    let _process = scene.serve("a");
    scene.settle_all();
}

/// Has Maven fetch the jars of a release, once; `None` if it cannot.
fn jars_of(release: &str) -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/kafka-libs");
    let output = Command::new(script).arg(release).output().unwrap();
    let path = String::from_utf8(output.stdout).unwrap();
    output.status.success().then(|| PathBuf::from(path.trim()))
}
