//! The health of the process, shared by its workers and the admin server.
//!
//! Owns [`Health`]: the vitals of every worker under locks of nanoseconds, and the three judgements on all of them. Never reads
//! a clock. Keeps: the process is live, ready or started when each of its workers is.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::vitals::Vitals;

/// The health of the process.
#[derive(Debug)]
pub struct Health {
    workers: Vec<Mutex<Vitals>>,
}

/// A judgement and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Whether it is favourable.
    pub is_good: bool,
    /// One line for each worker that keeps it from being so, or a word that says that none does.
    pub text: String,
}

impl Health {
    /// Returns the health of a process with so many workers that starts now, by the boot clock.
    pub fn new(workers: usize, now: Duration) -> Self {
        Self { workers: (0..workers).map(|_| Mutex::new(Vitals::new(now))).collect() }
    }

    /// Notes that the worker's thread has ended.
    pub fn ended(&self, worker: usize) {
        self.update(worker, Vitals::ended);
    }

    /// Judges whether the process works, restoring or waiting for a broker included; if not, restart it.
    pub fn live(&self, now: Duration) -> Judgement {
        self.judge("live", |vitals| vitals.ailment(now))
    }

    /// Judges whether the process fires what it owns.
    pub fn ready(&self) -> Judgement {
        self.judge("ready", Vitals::unreadiness)
    }

    /// Judges whether the process has joined the group and restored what it was given first.
    pub fn started(&self) -> Judgement {
        self.judge("started", Vitals::start_up)
    }

    pub(super) fn update(&self, worker: usize, change: impl FnOnce(&mut Vitals)) {
        if let Some(vitals) = self.workers.get(worker) {
            // Vitals are whole after each change, so a panic elsewhere spoils nothing.
            change(&mut vitals.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn judge(&self, word: &str, complaint: impl Fn(&Vitals) -> Option<String>) -> Judgement {
        let mut text = String::new();
        for (worker, vitals) in self.workers.iter().enumerate() {
            if let Some(reason) = complaint(&vitals.lock().unwrap_or_else(PoisonError::into_inner)) {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "worker {worker}: {reason}");
            }
        }
        let is_good = text.is_empty();
        if is_good {
            text = format!("{word}\n");
        }
        Judgement { is_good, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_worker_makes_a_bad_process() {
        let health = Health::new(2, Duration::ZERO);
        assert_eq!(health.live(Duration::ZERO), Judgement { is_good: true, text: "live\n".to_owned() });
        health.update(0, Vitals::joined);
        let text = "worker 1: has not joined the group yet\n".to_owned();
        assert_eq!(health.ready(), Judgement { is_good: false, text: text.clone() });
        assert_eq!(health.started(), Judgement { is_good: false, text });
        health.update(1, Vitals::joined);
        assert!(health.ready().is_good, "all workers have joined, none has a task");
        health.ended(1);
        let text = "worker 1: has ended\n".to_owned();
        assert_eq!(health.live(Duration::ZERO), Judgement { is_good: false, text: text.clone() });
        assert_eq!(health.ready(), Judgement { is_good: false, text });
    }

    #[test]
    fn a_panic_under_the_lock_does_not_blind_the_probes() {
        let health = std::sync::Arc::new(Health::new(1, Duration::ZERO));
        let theirs = std::sync::Arc::clone(&health);
        let died = std::thread::spawn(move || theirs.update(0, |_| panic!("while changing"))).join();
        assert!(died.is_err(), "the thread has panicked");
        assert!(health.live(Duration::ZERO).is_good, "still judged");
    }
}
