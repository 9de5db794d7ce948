//! What nearly every scenario is made of: a deployment, a client that arms, a reader of what fires, and the account.
//!
//! Owns the bookkeeping between them. Keeps: every command is noted before it is sent, and carries a correlation id, so that
//! a scenario can wait until it was applied.

use std::time::Duration;

use punctual::time::Timestamp;
use serde_json::{Value, json};

use super::account::{Account, Report};
use super::broker::Broker;
use super::commands::Commands;
use super::deployment::Deployment;
use super::reader::Reader;
use super::serve::Serve;
use super::{now, wait};

/// Longest time from a command to its answer, take-over by another process included.
const ANSWER_BOUND: Duration = Duration::from_secs(40);
/// Longest time that a due timer may be held up by what a scenario breaks.
const FIRE_BOUND: Duration = Duration::from_mins(1);

/// A deployment and everything around it.
pub(crate) struct Scene {
    pub(crate) deployment: Deployment,
    pub(crate) commands: Commands,
    pub(crate) account: Account,
    pub(crate) fired: Reader,
    pub(crate) results: Reader,
    sent: usize,
}

impl Scene {
    /// Sets the scene, with its topics made and no instance running.
    pub(crate) fn new(broker: &Broker, name: &str) -> Self {
        Self::with(broker, name, |_| {})
    }

    /// The same with settings of its own.
    pub(crate) fn with(broker: &Broker, name: &str, change: impl FnOnce(&mut Value)) -> Self {
        Self::of(Deployment::with(broker, name, change))
    }

    /// Sets the scene around a deployment.
    pub(crate) fn of(deployment: Deployment) -> Self {
        let (commands, fired, results) = (deployment.commands(), deployment.fired(), deployment.reader(&["results"]));
        Self { deployment, commands, account: Account::default(), fired, results, sent: 0 }
    }

    /// Starts an instance and waits until it is ready.
    pub(crate) fn serve(&self, instance: &str) -> Serve {
        self.deployment.serve(instance)
    }

    /// Arms a timer of the kind `email`.
    pub(crate) fn arm(&mut self, run: &str, timer_id: &str, due: Timestamp) {
        self.account.armed(&format!("default/{run}/{timer_id}"), due);
        self.command(run, json!({"arm": {"timer_id": timer_id, "kind": "email", "at": due.to_string()}}));
    }

    /// Arms a timer whose payload has so many bytes.
    pub(crate) fn arm_with_payload(&mut self, run: &str, timer_id: &str, due: Timestamp, bytes: usize) {
        self.account.armed(&format!("default/{run}/{timer_id}"), due);
        let payload = "x".repeat(bytes);
        let arm = json!({"timer_id": timer_id, "kind": "email", "at": due.to_string(), "payload": payload});
        self.command(run, json!({"arm": arm}));
    }

    /// Arms `count` timers of as many runs, due evenly from `from` to `to` after now.
    pub(crate) fn arm_many(&mut self, prefix: &str, count: u32, from: Duration, to: Duration) {
        let start = now().checked_add(from).unwrap();
        for number in 0..count {
            let due = start.checked_add(to.saturating_sub(from) * number / count).unwrap();
            self.arm(&format!("{prefix}-{number}"), "t", due);
        }
        self.commands.flush();
    }

    /// Disarms a timer, which must not fire from now on.
    pub(crate) fn disarm(&mut self, run: &str, timer_id: &str) {
        self.account.disarmed(&format!("default/{run}/{timer_id}"));
        self.command(run, json!({"disarm": {"timer_id": timer_id}}));
    }

    /// Sends a command of `run` in JSON with a correlation id, which is its number.
    pub(crate) fn command(&mut self, run: &str, mut command: Value) {
        command["run"] = json!(run);
        command["correlation_id"] = json!(self.sent.to_string());
        self.sent += 1;
        self.commands.send_json(run, &command);
    }

    /// Waits until every command was answered, and so applied.
    pub(crate) fn wait_until_answered(&self) {
        self.commands.flush();
        self.results.wait_for(self.sent, ANSWER_BOUND, "every command is answered");
    }

    /// Waits until `count` timers have fired.
    pub(crate) fn wait_until_fired(&self, count: usize) {
        wait::until_true(FIRE_BOUND, &format!("{count} timers have fired"), || self.fired.count() >= count);
    }

    /// Waits until everything that is due by `until` has fired, and checks the account.
    pub(crate) fn settle(&self, until: Timestamp) -> Report {
        self.account.settle(&self.fired, until, FIRE_BOUND)
    }

    /// Waits until all timers have fired, and checks the account.
    pub(crate) fn settle_all(&self) -> Report {
        self.settle(Timestamp::MAX)
    }
}

/// Returns the instant `duration` from now.
pub(crate) fn after(duration: Duration) -> Timestamp {
    now().checked_add(duration).unwrap()
}

/// Waits for an instant: the dues of timers that the scenario has just armed.
pub(crate) fn wait_for_instant(instant: Timestamp) {
    let bound = instant.since(now()) + Duration::from_secs(1);
    wait::until_true(bound, "the instant comes", || now() >= instant);
}
