//! Disks that fill up, break, or hold what is out of date.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::harness::broker::Broker;
use crate::harness::deployment::PARTITIONS;
use crate::harness::scene::{Scene, after, wait_for_instant};
use crate::harness::serve::Serve;
use crate::harness::topics::TopicAdmin;
use crate::harness::wait;

const BOUND: Duration = Duration::from_mins(1);

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A scene whose stores are made durable every second.
fn scene(broker: &Broker, name: &str) -> Scene {
    Scene::with(broker, name, |settings| settings["store"]["flush_interval"] = json!("1s"))
}

/// Returns `from` and `until` of the last restore of each partition, by the log.
fn restores(process: &Serve) -> BTreeMap<i64, (i64, i64)> {
    let log = process.log();
    let field = |line: &str, name: &str| -> i64 {
        let value = line.split_once(&format!(" {name}=")).unwrap().1;
        value.split(' ').next().unwrap().parse().unwrap()
    };
    let lines = log.lines().filter(|line| line.contains(" restoring partition="));
    lines.map(|line| (field(line, "partition"), (field(line, "from"), field(line, "until")))).collect()
}

/// A file system of memory with a size. Dropping it unmounts it.
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts it; `None` where that takes rights that we do not have.
    fn mount(path: &Path, size: &str) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(path);
        let output = mount.output().ok()?;
        output.status.success().then(|| Self { path: path.to_owned() })
    }

    /// Writes a file until nothing fits any more.
    fn fill(&self) -> PathBuf {
        let ballast = self.path.join("ballast");
        let mut file = File::create(&ballast).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, for a process may still have files open in it; an error leaves some megabytes until the next boot.
        drop(Command::new("umount").arg("--lazy").arg(&self.path).status());
    }
}

/// R28: the state volume is full under load, then there is room again.
#[test]
fn a_full_volume_closes_tasks_that_come_back_when_there_is_room() {
    let mut scene = scene(Broker::shared(), "full");
    let Some(disk) = SmallDisk::mount(&scene.deployment.state_directory("a"), "64m") else {
        println!("skipped: a small file system is mounted by root only");
        return;
    };
    let mut process = scene.serve("a");
    // Due late enough to be stored: a timer that fires as soon as it is armed takes no room.
    let arm = |scene: &mut Scene, name: &str| {
        let due = after(seconds(20));
        (0..400).for_each(|number| scene.arm_with_payload(&format!("{name}-{number}"), "t", due, 2_000));
    };
    arm(&mut scene, "before");
    scene.wait_until_answered();
    let ballast = disk.fill();
    let mut round = 0;
    wait::until_true(BOUND, "a task is closed", || {
        arm(&mut scene, &format!("during-{round}"));
        round += 1;
        scene.commands.flush();
        process.tasks("closed") > 0
    });
    let (status, words) = process.probe("/readyz");
    assert!(status == 503 && words.contains("the store is full or failing"), "{status} {words}");
    assert_eq!(process.probe("/livez").0, 200, "a restart makes no room");
    fs::remove_file(ballast).unwrap();
    wait::until_true(BOUND, "all tasks run again", || process.tasks("running") == 4);
    process.wait_until_ready();
    scene.settle_all();
}

/// R7: one store has a truncated table, another no list of its files: both partitions heal, the others go on as they were.
#[test]
fn damaged_stores_are_restored_and_the_others_are_not() {
    let mut scene = scene(Broker::shared(), "damaged");
    let mut process = scene.serve("a");
    scene.arm_many("r", 400, seconds(10), seconds(12));
    scene.wait_until_answered();
    process.stop();
    let partition = |number: u32| scene.deployment.state_directory("a").join(format!("partition-{number}"));
    let files = fs::read_dir(partition(0)).unwrap().map(|entry| entry.unwrap().path());
    let tables: Vec<_> = files.filter(|path| path.extension().is_some_and(|kind| kind == "sst")).collect();
    for table in &tables {
        let length = fs::metadata(table).unwrap().len();
        File::options().write(true).open(table).unwrap().set_len(length / 2).unwrap();
    }
    assert!(!tables.is_empty(), "there is a table to truncate");
    fs::remove_file(partition(1).join("CURRENT")).unwrap();
    let process = scene.serve("a");
    let from: Vec<bool> = restores(&process).values().map(|(from, _)| *from > 0).collect();
    assert_eq!(from, [false, false, true, true], "who restores from the beginning:\n{}", process.log_tail());
    scene.settle_all();
}

/// R4: nothing happens for long, and the process is killed: the stores are durable up to what happened last.
#[test]
fn a_quiet_partition_is_not_restored_after_a_kill() {
    let mut scene = scene(Broker::shared(), "quiet");
    let mut process = scene.serve("a");
    scene.arm_many("r", 400, seconds(12), seconds(14));
    scene.wait_until_answered();
    let admin = TopicAdmin::new(scene.deployment.client());
    let ends = || admin.ends(&scene.deployment.topic("changelog"));
    // Behind the last record stands the marker of its transaction.
    wait::until_true(BOUND, "everything is durable", || {
        let durable = scene.deployment.durable_positions("a");
        durable.values().zip(ends()).filter(|(position, end)| **position >= end - 1).count() == 4
    });
    process.kill();
    let process = scene.serve("a");
    for (partition, (from, until)) in restores(&process) {
        // The marker, and the barrier of the new owner.
        assert!(from > 50 && until - from <= 3, "partition {partition} restored from {from} to {until}");
    }
    scene.settle_all();
}

/// R5: a store that is older than the tombstones of its changelog would bring disarmed timers back.
#[test]
fn a_store_that_is_older_than_the_tombstones_fires_no_ghosts() {
    let broker = Broker::start_with("broker-that-compacts", "log.cleaner.backoff.ms=200\n");
    let mut scene = scene(&broker, "ghosts");
    let admin = TopicAdmin::new(scene.deployment.client());
    let changelog = scene.deployment.topic("changelog");
    admin.set(
        &changelog,
        &[
            ("cleanup.policy", "compact"),
            ("message.timestamp.type", "LogAppendTime"),
            ("delete.retention.ms", "2000"),
            ("segment.ms", "500"),
            ("min.cleanable.dirty.ratio", "0.001"),
        ],
    );
    let mut process = scene.serve("a");
    let due = after(seconds(30));
    (0..100).for_each(|number| scene.arm(&format!("r-{number}"), "t", due));
    scene.wait_until_answered();
    process.stop();
    // A peer disarms them all, and goes on until nothing in the changelog tells of them any more.
    let mut peer = scene.serve("b");
    (0..100).for_each(|number| scene.disarm(&format!("r-{number}"), "t"));
    scene.wait_until_answered();
    let mut round = 0;
    wait::until_true(BOUND, "the tombstones are compacted away", || {
        round += 1;
        (0..20).for_each(|number| scene.arm(&format!("traffic-{number}"), &round.to_string(), after(seconds(1))));
        scene.wait_until_answered();
        let left = scene.deployment.reader(&["changelog"]);
        let all: i64 = admin.ends(&changelog).iter().sum();
        wait_for_instant(after(Duration::from_millis(300)));
        let tells = |record: &crate::harness::reader::Received| {
            record.key.as_deref().is_some_and(|key| key.windows(2).any(|part| part == b"r-"))
        };
        all > 0 && left.count() > 0 && !left.records().iter().any(tells)
    });
    peer.stop();
    let process = scene.serve("a");
    let words = process.log();
    assert!(words.contains("old store removed") || words.contains("it is so old"), "the store was trusted:\n{words}");
    wait_for_instant(due);
    scene.settle_all();
    assert_eq!(PARTITIONS, 4, "as the scenario counts");
}
