//! What the scenarios stand on: a real broker, the real binary as child processes, and an independent account of records.
//!
//! Owns every process that it starts: all of them end with the tests, however those end. Never links the service into a
//! test: commands go in by plain Kafka clients, events come out by a plain `read_committed` consumer.
//! Keeps: waiting is for a condition and has a bound ([`wait`]); what was armed is counted apart from what was fired.

pub(crate) mod account;
pub(crate) mod broker;
pub(crate) mod chaos;
pub(crate) mod cluster;
pub(crate) mod commands;
pub(crate) mod deployment;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod reader;
pub(crate) mod scene;
pub(crate) mod secured;
pub(crate) mod serve;
pub(crate) mod topics;
pub(crate) mod wait;

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

use punctual::time::system::SystemClock;
use punctual::time::{Clock, Timestamp};

/// Returns the wall clock of this machine, the one that the service fires by.
pub(crate) fn now() -> Timestamp {
    SystemClock.wall()
}

/// Returns a new directory for what a scenario leaves behind. It outlives the tests, so that a failure can be looked
/// into, and is removed when they run the next time.
pub(crate) fn directory(name: &str) -> PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    let root = ROOT.get_or_init(|| {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kafka");
        remove_directories_of_ended_runs(&parent);
        parent.join(std::process::id().to_string())
    });
    let directory = root.join(name);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn remove_directories_of_ended_runs(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for run in entries.map(|entry| entry.unwrap().file_name()) {
        if !Path::new("/proc").join(&run).exists() {
            // Another run that starts beside this one removes them as well.
            let removed = fs::remove_dir_all(parent.join(run));
            assert!(
                removed.is_ok() || removed.is_err_and(|error| error.kind() == ErrorKind::NotFound),
                "it is in the way"
            );
        }
    }
}

/// Returns a port of 127.0.0.1 that nobody listens on, and that Linux gives to no outgoing connection (it takes those
/// from 32768 on), so that a server can come back to it.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(std::process::id() % 8_000).unwrap();
    (0..8_000)
        .map(|_| 12_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 8_000)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a port is free")
}
