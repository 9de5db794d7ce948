//! The real binary, as a child process that a scenario can kill, stop and resume.
//!
//! Owns one process of `punctual serve` and what it shows of itself over HTTP. Never looks into its state directory.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;

use super::process::{Process, command};
use super::wait;

const READY_BOUND: Duration = Duration::from_mins(1);
const HTTP_BOUND: Duration = Duration::from_secs(2);
/// The service promises 15 s, whatever call is in flight.
const STOP_BOUND: Duration = Duration::from_secs(17);
const LOG_TAIL_LINES: usize = 40;
const TASKS_MAX: u16 = 1_000;

/// Variables that an instance is started with, beside those of the tests.
pub(crate) type Environment<'a> = &'a [(&'a str, &'a str)];

/// A running instance.
pub(crate) struct Serve {
    name: String,
    process: Process,
    admin_port: u16,
    log: PathBuf,
}

impl Serve {
    /// Starts an instance with the settings in `config`, its output appended to `log`.
    pub(crate) fn start(
        name: &str,
        config: &Path,
        admin_port: u16,
        log: PathBuf,
        environment: Environment<'_>,
    ) -> Self {
        let mut serve = command(env!("CARGO_BIN_EXE_punctual"));
        serve.arg("serve").arg("--config").arg(config).envs(environment.iter().copied());
        Self { name: name.to_owned(), process: Process::start(name, serve, &log), admin_port, log }
    }

    /// Waits until the instance says that it is ready.
    pub(crate) fn wait_until_ready(&mut self) {
        let what = format!("{} is ready; its log is {}", self.name, self.log.display());
        wait::until_true(READY_BOUND, &what, || {
            if let Some(status) = self.process.ended() {
                panic!("{} has ended with {status}:\n{}", self.name, self.log_tail());
            }
            self.is_ready()
        });
    }

    /// Returns whether the instance says that it is ready.
    pub(crate) fn is_ready(&self) -> bool {
        self.get("/readyz").is_some_and(|(status, _)| status == 200)
    }

    /// Returns the sum of all series of this metric; 0 if there is none.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        self.metric_with(name, "")
    }

    /// The same for the series with this label, such as `state="closed"`.
    pub(crate) fn metric_with(&self, name: &str, label: &str) -> f64 {
        let (_, text) = self.get("/metrics").unwrap_or_default();
        let series = text.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let is_named = series.strip_prefix(name).is_some_and(|labels| labels.is_empty() || labels.starts_with('{'));
            (is_named && series.contains(label)).then(|| value.parse::<f64>().unwrap())
        });
        series.sum()
    }

    /// Returns how many partitions are in this state, by the instance's own word.
    pub(crate) fn tasks(&self, state: &str) -> usize {
        let count = self.metric_with("punctual_tasks", &format!("state=\"{state}\""));
        (0..TASKS_MAX).find(|number| f64::from(*number) > count - 0.5).map_or(0, usize::from)
    }

    /// Returns the answer of an admin page and its status, or 0 if there is none.
    pub(crate) fn probe(&self, path: &str) -> (u16, String) {
        self.get(path).unwrap_or_default()
    }

    /// Returns the bytes of memory that the process holds.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        kib.trim().strip_suffix("kB").unwrap().trim().parse::<u64>().unwrap() * 1024
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits until a line of the log has all these words.
    pub(crate) fn wait_for_words(&self, bound: Duration, words: &[&str]) -> String {
        let is_wanted = |line: &&str| words.iter().all(|word| line.contains(word));
        wait::until(bound, &format!("the log of {} says {words:?}", self.name), || {
            self.log().lines().find(is_wanted).map(str::to_owned)
        })
    }

    /// Returns status and body of an admin page, if the instance answers.
    pub(crate) fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.admin_port)).ok()?;
        connection.set_read_timeout(Some(HTTP_BOUND)).ok()?;
        write!(connection, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, body.to_owned()))
    }

    /// Kills the instance with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Stops it in its own order, and checks that it ends in time and without an error.
    pub(crate) fn stop(&mut self) {
        self.process.signal(Signal::TERM);
        let status = self.process.wait_for_end(STOP_BOUND);
        assert!(status.success(), "{} ended with {status}:\n{}", self.name, self.log_tail());
    }

    /// Freezes the instance as a long pause of the machine would.
    pub(crate) fn freeze(&self) {
        self.process.signal(Signal::STOP);
    }

    /// Lets a frozen instance go on.
    pub(crate) fn thaw(&self) {
        self.process.signal(Signal::CONT);
    }

    /// Returns how the instance ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.ended()
    }

    /// Waits for the end of an instance that is expected to end by itself.
    pub(crate) fn wait_for_end(&mut self, bound: Duration) -> ExitStatus {
        self.process.wait_for_end(bound)
    }

    /// Returns the instance's log, that of earlier processes of this name too.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Returns the last lines of the instance's log.
    pub(crate) fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }
}
