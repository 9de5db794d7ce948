//! The world of one run: what all its parts share.
//!
//! ```text
//!   event loop ──▶ pod ──▶ Worker (the real one) ──▶ SimLog, SimStore ──▶ gate ──▶ broker, disk
//!       ▲                                                                   │
//!       └──────────── a pod that stands still inside a call ────────────────┘
//! ```
//!
//! Owns simulated time, chance, the trace, and [`Sim::gate`], which every call of the log and of a store passes: there a
//! process dies, or stands still while the rest of the world goes on, on the same thread and the same stack.
//! Keeps: nothing but the seed decides what happens; no part is borrowed while a call passes the gate.

use std::cell::{Cell, RefCell};
use std::panic;
use std::rc::Rc;

use crate::broker::{Broker, Refusal};
use crate::client::Client;
use crate::oracle::Oracle;
use crate::plan::{Chances, Fault, Plan};
use crate::pod::Pod;
use crate::trace::Trace;
use crate::trouble::Trouble;

/// Milliseconds; instants count from the start of the run.
pub(crate) type Millis = i64;

/// The wall clock at the start of a run: 2026-12-01T00:00:00Z.
pub(crate) const EPOCH: Millis = 1_796_083_200_000;

/// What a panic carries that is a crash of a pod, and no finding.
pub(crate) struct Crash;

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) id: &'static str,
    pub(crate) detail: String,
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The broker refused.
    Refused(Refusal),
    /// Nobody answered; what was asked for may have happened.
    NoAnswer,
}

pub(crate) struct Sim {
    pub(crate) plan: Plan,
    now: Cell<Millis>,
    steps: Cell<u64>,
    pub(crate) broker: RefCell<Broker>,
    pub(crate) oracle: RefCell<Oracle>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) client: RefCell<Client>,
    pub(crate) trouble: RefCell<Trouble>,
    chances: RefCell<Chances>,
    pub(crate) trace: RefCell<Trace>,
    violation: RefCell<Option<Violation>>,
    /// Whether trouble may happen now.
    is_troubled: Cell<bool>,
    troubles: Cell<u32>,
}

/// The parts that a run is made of.
pub(crate) struct Parts {
    pub(crate) broker: Broker,
    pub(crate) oracle: Oracle,
    pub(crate) pods: Vec<Pod>,
    pub(crate) client: Client,
    pub(crate) trouble: Trouble,
    pub(crate) trace: Trace,
}

impl Sim {
    pub(crate) fn new(plan: Plan, parts: Parts) -> Rc<Self> {
        let Parts { broker, oracle, pods, client, trouble, trace } = parts;
        Rc::new(Self {
            now: Cell::new(0),
            steps: Cell::new(0),
            broker: RefCell::new(broker),
            oracle: RefCell::new(oracle),
            pods,
            client: RefCell::new(client),
            trouble: RefCell::new(trouble),
            chances: RefCell::new(Chances::new(plan.seed)),
            trace: RefCell::new(trace),
            violation: RefCell::new(None),
            is_troubled: Cell::new(true),
            troubles: Cell::new(0),
            plan,
        })
    }

    pub(crate) fn now(&self) -> Millis {
        self.now.get()
    }

    pub(crate) fn set_now(&self, now: Millis) {
        assert!(self.now.get() <= now, "simulated time goes forward");
        self.now.set(now);
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps.get()
    }

    pub(crate) fn step(&self) {
        self.steps.set(self.steps.get() + 1);
    }

    pub(crate) fn violation(&self) -> Option<Violation> {
        self.violation.borrow().clone()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.violation.borrow().is_some()
    }

    /// Notes that an invariant does not hold; the first one ends the run.
    pub(crate) fn fail(&self, violation: Violation) {
        self.note(|| format!("VIOLATION {}: {}", violation.id, violation.detail));
        self.violation.borrow_mut().get_or_insert(violation);
    }

    /// Writes a line into the trace.
    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        self.trace.borrow_mut().note(self.now.get(), line);
    }

    /// Draws from the stream of a purpose.
    pub(crate) fn draw<T>(&self, purpose: &'static str, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(self.chances.borrow_mut().of(purpose))
    }

    /// Returns whether one in `one_in` cases of a class of trouble happens now.
    pub(crate) fn strikes(&self, fault: Fault, purpose: &'static str, one_in: u32) -> bool {
        let strikes = self.plan.has(fault) && self.draw(purpose, |rng| rng.u32(0..one_in) == 0);
        strikes && self.may_trouble()
    }

    /// Returns whether one more event of trouble may happen, and counts it.
    pub(crate) fn may_trouble(&self) -> bool {
        if !self.is_troubled.get() || self.troubles.get() >= self.plan.troubles {
            return false;
        }
        self.troubles.set(self.troubles.get() + 1);
        true
    }

    pub(crate) fn troubles(&self) -> u32 {
        self.troubles.get()
    }

    pub(crate) fn is_troubled(&self) -> bool {
        self.is_troubled.get()
    }

    /// Ends all trouble.
    pub(crate) fn calm(&self) {
        self.is_troubled.set(false);
    }

    /// What every call of a pod passes, before it takes effect and after it has.
    pub(crate) fn gate(self: &Rc<Self>, pod: usize, call: &'static str) {
        self.note(|| format!("pod {pod}: {call}"));
        self.die_if_doomed(pod);
        if self.has_failed() {
            // Nothing that follows is of interest.
            panic::resume_unwind(Box::new(Crash));
        }
        if self.strikes(Fault::Crash, "crash", self.plan.calls_between) {
            self.note(|| format!("pod {pod}: CRASH in {call}"));
            panic::resume_unwind(Box::new(Crash));
        }
        if self.strikes(Fault::Freeze, "freeze", self.plan.calls_between) {
            let most = (self.plan.session * 2).max(self.plan.transaction_timeout + 2_000);
            // A restore is taken to last no longer than a part of what a tombstone stays; who is level may sleep over it.
            let most = if self.pods[pod].is_restoring() { most.min(self.plan.tombstones / 4) } else { most };
            let long = self.draw("freeze", |rng| if rng.bool() { rng.i64(1..most) } else { rng.i64(1..200) });
            self.stand_still(pod, long, call);
        }
    }

    fn die_if_doomed(&self, pod: usize) {
        if self.pods[pod].is_doomed() {
            panic::resume_unwind(Box::new(Crash));
        }
    }

    /// The process stands still, and says nothing to the group, while the world goes on.
    fn stand_still(self: &Rc<Self>, pod: usize, long: Millis, call: &'static str) {
        self.note(|| format!("pod {pod}: FREEZE in {call} for {long} ms"));
        self.pods[pod].falls_silent(self);
        self.run_until(self.now() + long);
        self.pods[pod].is_heard(self);
        self.note(|| format!("pod {pod}: goes on in {call}"));
        self.die_if_doomed(pod);
    }

    /// The process waits inside a call; it is alive, and the world goes on.
    pub(crate) fn wait(self: &Rc<Self>, pod: usize, long: Millis) {
        self.run_until(self.now() + long);
        self.die_if_doomed(pod);
    }

    /// Makes one call to the broker: the request may be lost before, the answer after it took effect.
    pub(crate) fn call<T>(
        self: &Rc<Self>,
        pod: usize,
        name: &'static str,
        ask: impl FnOnce(&mut Broker, Millis) -> Result<T, Refusal>,
    ) -> Result<T, CallError> {
        self.gate(pod, name);
        self.take_time(pod);
        if self.strikes(Fault::LostRequest, "lost request", self.plan.calls_between) {
            self.note(|| format!("pod {pod}: {name}: REQUEST LOST"));
            return Err(CallError::NoAnswer);
        }
        let answer = ask(&mut self.broker.borrow_mut(), self.now());
        self.observe();
        if let Err(refusal) = &answer {
            self.note(|| format!("pod {pod}: {name}: {refusal:?}"));
        }
        self.gate(pod, name);
        if self.strikes(Fault::LostAnswer, "lost answer", self.plan.calls_between) {
            self.note(|| format!("pod {pod}: {name}: ANSWER LOST"));
            return Err(CallError::NoAnswer);
        }
        answer.map_err(CallError::Refused)
    }

    /// A call takes a little, or long if the broker is slow.
    fn take_time(self: &Rc<Self>, pod: usize) {
        if self.strikes(Fault::SlowBroker, "slow broker", self.plan.calls_between) {
            let long = self.draw("slow broker", |rng| rng.i64(50..6_000));
            self.note(|| format!("pod {pod}: SLOW BROKER for {long} ms"));
            self.wait(pod, long);
        } else if self.draw("latency", |rng| rng.u32(0..3)) == 0 {
            self.set_now(self.now() + 1);
        }
    }

    /// Lets the oracle look at what was decided.
    pub(crate) fn observe(&self) {
        let decided = std::mem::take(&mut self.broker.borrow_mut().decided);
        for decision in decided {
            let verdict = self.oracle.borrow_mut().judge(self, &decision);
            if let Err(violation) = verdict {
                self.fail(violation);
            }
        }
    }
}
