//! One run, from its first command to the last check.
//!
//! ```text
//!   commands and trouble ──▶ calm: everything is done, in bounded time ──▶ a storm in calm times ──▶ last look
//! ```
//!
//! Owns the event loop: time jumps to whatever happens next. Keeps: everything that may happen at one instant happens in an
//! order that the seed decides.

use std::rc::Rc;

use punctual::log::Destination;

use crate::asks;
use crate::broker::Broker;
use crate::client::Client;
use crate::invariants::{fairness, liveness, store_is_fold};
use crate::oracle::{Counts, Oracle};
use crate::pauses;
use crate::plan::{Fault, Plan};
use crate::pod::Pod;
use crate::setting::{REFUSED_KIND, SKEW, kind_number, topics};
use crate::sim::{Millis, Parts, Sim, Violation};
use crate::trace::Trace;
use crate::trouble::{self, Trouble};

/// How long everything may take after the trouble has ended: sessions, holds, time-outs of transactions, restores.
const CALM_PATIENCE: Millis = 300_000;
/// Longest hold or pause after a failure.
const HOLDS: Millis = 15_000;
/// Storms that are not measured: a producer may have been fenced long ago, and learns it when it is its turn, of three.
const WARM_UPS: u32 = 3;
/// How long a topic refuses in calm times.
const REFUSAL: Millis = 3_000;
/// How often it is looked whether everything is done.
const LOOK: Millis = 250;
/// More events than a run can need: a loop that does not end is a violation too.
const STEPS_MAX: u64 = 400_000;

/// What a run came to.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) plan: Plan,
    pub(crate) violation: Option<Violation>,
    pub(crate) steps: u64,
    pub(crate) troubles: u32,
    pub(crate) counts: Counts,
    /// Simulated time.
    pub(crate) lasted: Millis,
    pub(crate) trace: String,
}

/// Makes a run.
pub(crate) fn run(plan: &Plan, trace: Trace) -> Report {
    let partitions = topics(plan);
    let mut pods: Vec<Pod> = (0..plan.pods).map(|number| Pod::new(number, format!("pod-{number}"))).collect();
    // The second process of the first instance.
    pods.push(Pod::new(plan.pods, "pod-0".to_owned()));
    let parts = Parts {
        broker: Broker::new(plan.seed, partitions, plan.session),
        oracle: Oracle::new(plan.partitions, plan.has_remember),
        pods,
        client: Client::default(),
        trouble: Trouble::default(),
        trace,
    };
    let sim = Sim::new(plan.clone(), parts);
    for pod in sim.pods.iter().take(plan.pods) {
        pod.start_at(sim.draw("start", |rng| rng.i64(0..1_000)));
        if plan.has(Fault::ClockSkew) {
            pod.step_clock(sim.draw("clock skew", |rng| rng.i64(-SKEW..=SKEW)));
        }
    }
    if let Err(violation) = live(&sim) {
        sim.fail(violation);
    }
    let report = Report {
        plan: plan.clone(),
        violation: sim.violation(),
        steps: sim.steps(),
        troubles: sim.troubles(),
        counts: sim.oracle.borrow().counts,
        lasted: sim.now(),
        trace: sim.trace.borrow().text(),
    };
    for pod in &sim.pods {
        pod.take_apart();
    }
    report
}

fn live(sim: &Rc<Sim>) -> Result<(), Violation> {
    while !sim.client.borrow().is_done(sim) && !sim.has_failed() {
        sim.run_until(sim.now() + LOOK);
    }
    trouble::calm(sim);
    settle(sim)?;
    store_is_fold::check_all(sim)?;
    pauses::resume_all(sim);
    // Holds and pauses after failures end by themselves.
    sim.run_until(sim.now() + HOLDS);
    for _ in 0..WARM_UPS {
        storm(sim);
        settle(sim)?;
    }
    sim.trouble.borrow_mut().settled_since = Some(sim.now());
    let storm = storm(sim);
    // A topic that refuses holds up its own kind only.
    let refusing = sim.draw("storm", |rng| rng.bool().then_some(Destination::Fired(kind_number(REFUSED_KIND))));
    sim.broker.borrow_mut().refusing.extend(refusing);
    sim.run_until(sim.now() + REFUSAL);
    sim.broker.borrow_mut().refusing.clear();
    settle(sim)?;
    fairness::check(&sim.oracle.borrow(), storm)?;
    store_is_fold::check_all(sim)
}

/// Waits until everything is done.
fn settle(sim: &Rc<Sim>) -> Result<(), Violation> {
    let deadline = sim.now() + CALM_PATIENCE + sim.plan.reach;
    loop {
        sim.run_until(sim.now() + LOOK);
        if let Some(violation) = sim.violation() {
            return Err(violation);
        }
        let Some(left) = liveness::unfinished(sim) else {
            let is_over = sim.oracle.borrow().first_due(|kind| kind != crate::setting::UNKNOWN_KIND).is_none();
            if is_over {
                return Ok(());
            }
            continue;
        };
        if sim.now() > deadline {
            return Err(liveness::violation(left));
        }
    }
}

/// Sends many timers for one instant, and some others. Returns how many.
fn storm(sim: &Rc<Sim>) -> u32 {
    let many = sim.draw("storm", |rng| rng.u32(10..80));
    for _ in 0..many {
        let mut client = sim.client.borrow_mut();
        let spec = asks::storm(sim, client.next_number());
        client.send(sim, spec);
    }
    many
}

impl Sim {
    /// Lets the world go on until an instant.
    pub(crate) fn run_until(self: &Rc<Self>, until: Millis) {
        while self.now() < until && !self.has_failed() {
            let next = self.next_at().map_or(until, |next| next.min(until)).max(self.now());
            self.set_now(next);
            self.broker.borrow_mut().advance(next);
            self.observe();
            trouble::act(self);
            self.client.borrow_mut().act(self);
            let first = self.draw("order", |rng| rng.usize(0..self.pods.len()));
            for index in 0..self.pods.len() {
                let pod = &self.pods[(first + index) % self.pods.len()];
                pod.act(self);
            }
            if self.steps() > STEPS_MAX {
                self.fail(liveness::violation("the run does not end".to_owned()));
            }
        }
    }

    fn next_at(&self) -> Option<Millis> {
        let pods = self.pods.iter().filter_map(|pod| pod.next_at(self));
        let others =
            [self.broker.borrow().next_at(), self.trouble.borrow().next_at(self), self.client.borrow().next_at(self)];
        let next = pods.chain(others.into_iter().flatten()).min()?;
        // Whatever is due at this very instant has had its turn.
        Some(next.max(self.now() + 1))
    }
}
