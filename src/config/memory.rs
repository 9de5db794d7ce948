//! How much memory the process may use.
//!
//! Owns the reading of cgroup limits, version 1 and 2. Never trusts the size of the host where a limit is set. Keeps: the
//! smallest limit on the way up counts; a file that is absent or unreadable sets none.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// The share of the limit for caches and write buffers: the rest is the heap of the process, librdkafka's queues, and RocksDB's own
/// bookkeeping.
const SHARE_PERCENT: u64 = 40;
/// Without a limit other programs live on the machine too.
const UNLIMITED_BUDGET_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Version 1 says "no limit" by a number near 2^63; no machine has 2^60 bytes.
const UNLIMITED_FROM_BYTES: u64 = 1 << 60;
/// What is taken when nothing can be read: small enough for any machine that runs this.
const UNKNOWN_BUDGET_BYTES: u64 = 256 * 1024 * 1024;

/// Returns the bytes for caches and write buffers, from the files below `root`, which is `/` but in tests.
pub(super) fn auto_budget_bytes(root: &Path) -> u64 {
    let machine = machine_bytes(root);
    match (limit_bytes(root), machine) {
        (Some(limit), Some(machine)) => share(limit.min(machine)),
        (Some(limit), None) => share(limit),
        (None, Some(machine)) => share(machine).min(UNLIMITED_BUDGET_BYTES_MAX),
        (None, None) => UNKNOWN_BUDGET_BYTES,
    }
}

fn share(bytes: u64) -> u64 {
    bytes / 100 * SHARE_PERCENT
}

/// Returns the smallest memory limit on this process's groups.
fn limit_bytes(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = root.join("sys/fs/cgroup");
    let mut least = None;
    for line in groups.lines() {
        // hierarchy:controllers:path
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let limit = if controllers.is_empty() {
            smallest_upwards(&mounts, path, "memory.max")
        } else if controllers.split(',').any(|c| c == "memory") {
            smallest_upwards(&mounts.join("memory"), path, "memory.limit_in_bytes")
        } else {
            None
        };
        least = [least, limit].into_iter().flatten().min();
    }
    least
}

/// Returns the smallest number in files of this name from the group up to the mount. In a container the path may be that of the
/// host, of which only the mount itself is visible.
fn smallest_upwards(mount: &Path, group: &str, file: &str) -> Option<u64> {
    let below: PathBuf = Path::new(group).components().filter(|c| matches!(c, Component::Normal(_))).collect();
    below.ancestors().filter_map(|level| read_limit(&mount.join(level).join(file))).min()
}

fn read_limit(path: &Path) -> Option<u64> {
    // "max" is no number and no limit.
    let bytes: u64 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    (bytes < UNLIMITED_FROM_BYTES).then_some(bytes)
}

fn machine_bytes(root: &Path) -> Option<u64> {
    let info = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1024 * 1024 * 1024;

    fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn budget(files: &[(&str, &str)]) -> u64 {
        let mut all = vec![("proc/meminfo", "MemTotal:       67108864 kB\nMemFree: 1 kB\n")];
        all.extend_from_slice(files);
        auto_budget_bytes(host(&all).path())
    }

    /// O6: a small container on a large host.
    #[test]
    fn a_version_2_limit_counts_and_not_the_host() {
        let limited = budget(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "536870912\n")]);
        assert_eq!(limited, share(536_870_912));
    }

    #[test]
    fn the_smallest_limit_on_the_way_up_counts() {
        let limited = budget(&[
            ("proc/self/cgroup", "0::/pod/container\n"),
            ("sys/fs/cgroup/pod/container/memory.max", "max\n"),
            ("sys/fs/cgroup/pod/memory.max", "268435456\n"),
            ("sys/fs/cgroup/memory.max", "1073741824\n"),
        ]);
        assert_eq!(limited, share(268_435_456));
    }

    #[test]
    fn a_version_1_limit_counts_below_a_path_of_the_host_too() {
        let limited = budget(&[
            ("proc/self/cgroup", "5:cpu:/docker/abc\n4:memory:/docker/abc\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n"),
        ]);
        assert_eq!(limited, share(268_435_456));
    }

    #[test]
    fn no_limit_takes_little_of_a_large_host() {
        let unlimited = budget(&[
            ("proc/self/cgroup", "4:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(unlimited, GIB);
        assert_eq!(budget(&[]), GIB);
    }

    #[test]
    fn a_limit_above_the_host_means_the_host() {
        let wide = budget(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "1099511627776\n")]);
        assert_eq!(wide, share(64 * GIB));
    }

    #[test]
    fn nothing_readable_still_gives_a_budget() {
        assert_eq!(auto_budget_bytes(host(&[]).path()), UNKNOWN_BUDGET_BYTES);
    }
}
