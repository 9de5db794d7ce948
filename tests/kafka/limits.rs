//! What the process makes of the limits that it is put under.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::harness::broker::Broker;
use crate::harness::scene::{Scene, after};

const MIB: u64 = 1024 * 1024;
const LIMIT: u64 = 256 * MIB;
const BOUND: Duration = Duration::from_secs(30);

/// A control group with a limit of memory. Dropping it removes it; its process must have ended.
struct MemoryGroup {
    path: PathBuf,
}

impl MemoryGroup {
    /// Makes it; `None` where that takes rights that we do not have.
    fn make(limit: u64) -> Option<Self> {
        let name = format!("punctual-test-{}", std::process::id());
        // Version 1 has a tree of its own for memory.
        let trees = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        trees.into_iter().find_map(|(tree, file)| {
            let path = Path::new(tree).join(&name);
            if !Path::new(tree).join("cgroup.procs").exists() {
                return None;
            }
            fs::create_dir(&path).ok()?;
            let group = Self { path };
            fs::write(group.path.join(file), limit.to_string()).ok().map(|()| group)
        })
    }

    fn take(&self, process: u32) {
        fs::write(self.path.join("cgroup.procs"), process.to_string()).unwrap();
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // An error leaves an empty group until the next boot.
        drop(fs::remove_dir(&self.path));
    }
}

/// O6: a small limit on a large machine: the caches take their share of the limit, and the process lives with it.
#[test]
fn caches_fit_a_small_memory_limit() {
    let Some(group) = MemoryGroup::make(LIMIT) else {
        println!("skipped: control groups are made by root, where they are writable, only");
        return;
    };
    let mut scene = Scene::new(Broker::shared(), "small");
    let mut process =
        scene.deployment.launch_with("a", |settings| settings["store"] = json!({"memory_budget": "auto"}), &[]);
    // Long before it reads its limit: it looks at the topics first.
    group.take(process.id());
    let share = LIMIT / 100 * 40;
    process.wait_for_words(BOUND, &[" started ", &format!("memory_budget_bytes={share}")]);
    process.wait_until_ready();
    for number in 0..2_000 {
        let due = after(Duration::from_secs(1 + number % 5));
        scene.arm_with_payload(&format!("r-{number}"), "t", due, 5_000);
    }
    scene.wait_until_answered();
    scene.settle_all();
    assert!(process.resident_bytes() < LIMIT, "{} MiB", process.resident_bytes() / MIB);
    drop(process);
    drop(group);
}
