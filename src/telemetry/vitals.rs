//! The signs of life of one worker.
//!
//! Owns [`Vitals`]: what it last did, what it is in, and where its tasks stand; and the judgements live, ready and started.
//! Never reads a clock: `now` is the boot-clock time as a parameter. Keeps: a worker is live while its last pass, or the call
//! that it names, is within its own bound; ready and started latch.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::position::Partition;
use crate::worker::observer::TaskState;

/// Longest that a worker may compute between two passes or calls. The slices of a pass are bounded by tens of milliseconds; what is
/// above is a hang, or a machine so starved that a restart elsewhere is right.
const COMPUTING_MAX: Duration = Duration::from_secs(30);
const ENDED: &str = "has ended";
/// Most tasks named in a reason.
const NAMED_TASKS_MAX: usize = 8;

/// The signs of life of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vitals {
    /// When the last pass or call ended.
    seen_at: Duration,
    /// The call that the worker is in, and when it has to be back.
    call: Option<(&'static str, Duration)>,
    life: Life,
    /// Latches: every task that it had was restored.
    has_started: bool,
    /// Latches: every task that it had was running.
    has_caught_up: bool,
    tasks: BTreeMap<Partition, Stand>,
}

/// How far a worker is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// The group has not answered yet.
    Starting,
    /// It is a member of the group.
    Member,
    /// Its thread is gone.
    Ended,
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stand {
    state: TaskState,
    done: u64,
    total: u64,
}

impl Vitals {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            seen_at: now,
            call: None,
            life: Life::Starting,
            has_started: false,
            has_caught_up: false,
            tasks: BTreeMap::new(),
        }
    }

    pub(super) fn entered(&mut self, now: Duration, call: &'static str, bound: Duration) {
        self.call = Some((call, now.saturating_add(bound)));
    }

    /// A call or a pass has ended.
    pub(super) fn seen(&mut self, now: Duration) {
        self.seen_at = now;
        self.call = None;
    }

    pub(super) fn joined(&mut self) {
        if self.life == Life::Starting {
            self.life = Life::Member;
        }
        self.latch();
    }

    pub(super) fn ended(&mut self) {
        self.life = Life::Ended;
    }

    pub(super) fn task(&mut self, partition: Partition, state: TaskState) {
        self.tasks.insert(partition, Stand { state, done: 0, total: 0 });
        self.latch();
    }

    pub(super) fn task_gone(&mut self, partition: Partition) {
        self.tasks.remove(&partition);
        self.latch();
    }

    pub(super) fn restore(&mut self, partition: Partition, done: u64, total: u64) {
        if let Some(stand) = self.tasks.get_mut(&partition) {
            (stand.done, stand.total) = (done, total);
        }
    }

    fn latch(&mut self) {
        let all = |good: &[TaskState]| self.tasks.values().all(|stand| good.contains(&stand.state));
        let is_restored = all(&[TaskState::CatchingUp, TaskState::Running]);
        let is_running = all(&[TaskState::Running]);
        let is_member = self.life == Life::Member;
        self.has_started |= is_member && is_restored;
        self.has_caught_up |= is_member && is_running;
    }

    /// Returns what keeps the worker from being live, if anything does.
    pub(super) fn ailment(&self, now: Duration) -> Option<String> {
        if self.life == Life::Ended {
            return Some(ENDED.to_owned());
        }
        match self.call {
            Some((call, until)) if until < now => {
                Some(format!("`{call}` should have been back {} ago", seconds(now.saturating_sub(until))))
            }
            Some(_) => None,
            None => {
                let silent = now.saturating_sub(self.seen_at);
                (silent > COMPUTING_MAX).then(|| format!("has done no pass for {}", seconds(silent)))
            }
        }
    }

    /// Returns what keeps the worker from being ready, if anything does.
    pub(super) fn unreadiness(&self) -> Option<String> {
        let closed = self.in_state(TaskState::Closed);
        if !closed.is_empty() {
            return Some(format!("closed, the store is full or failing: {}", self.named(&closed)));
        }
        self.lacks(self.has_caught_up, &[TaskState::Restoring, TaskState::CatchingUp])
    }

    /// Returns what keeps the worker from having started, if anything does.
    pub(super) fn start_up(&self) -> Option<String> {
        self.lacks(self.has_started, &[TaskState::Restoring, TaskState::Closed])
    }

    fn lacks(&self, is_latched: bool, unfinished: &[TaskState]) -> Option<String> {
        match self.life {
            Life::Ended => return Some(ENDED.to_owned()),
            Life::Starting => return Some("has not joined the group yet".to_owned()),
            Life::Member if is_latched => return None,
            Life::Member => {}
        }
        let parts = unfinished.iter().map(|state| (*state, self.in_state(*state)));
        let parts = parts.filter(|(_, partitions)| !partitions.is_empty());
        let parts: Vec<_> =
            parts.map(|(state, partitions)| format!("{}: {}", state_name(state), self.named(&partitions))).collect();
        Some(parts.join("; "))
    }

    fn in_state(&self, state: TaskState) -> Vec<Partition> {
        self.tasks.iter().filter(|(_, stand)| stand.state == state).map(|(partition, _)| *partition).collect()
    }

    fn named(&self, partitions: &[Partition]) -> String {
        let mut text = String::from("partition");
        for partition in partitions.iter().take(NAMED_TASKS_MAX) {
            // Writing to a String cannot fail.
            let _ = write!(text, " {partition}");
            if let Some(Stand { done, total: total @ 1.., .. }) = self.tasks.get(partition) {
                let _ = write!(text, " ({done} of {total} offsets)");
            }
        }
        if partitions.len() > NAMED_TASKS_MAX {
            let _ = write!(text, " and {} more", partitions.len() - NAMED_TASKS_MAX);
        }
        text
    }
}

/// Returns the name of a state in labels and texts.
pub(super) const fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Restoring => "restoring",
        TaskState::CatchingUp => "catching_up",
        TaskState::Running => "running",
        TaskState::Closed => "closed",
    }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
}

#[cfg(test)]
#[path = "vitals_test.rs"]
mod tests;
