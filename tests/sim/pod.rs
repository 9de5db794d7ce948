//! A pod: a process with a worker, a disk and a clock, which can die at any call.
//!
//! Owns the life of the process. Never looks into the worker but through its observer. Keeps: when a process dies its
//! memory is gone, and only what was durable is on its disk.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::time::Duration;

use punctual::log::LogError;
use punctual::position::Partition;
use punctual::task::tally::Tally;
use punctual::time::{Clock, Timestamp};
use punctual::timer::kind::KindNumber;
use punctual::worker::observer::{Holdings, Observer, TaskState, TickReport, TransactionEnd};
use punctual::worker::{Worker, WorkerError};

use crate::disk::{Disk, SimStores};
use crate::log::SimLog;
use crate::reader::Reader;
use crate::setting::worker_settings;
use crate::sim::{Crash, EPOCH, Millis, Sim, Violation};

type SimWorker = Worker<SimLog, SimStores, SimClock, Watch>;

/// How long a process takes to start again.
const RESTART: (Millis, Millis) = (5, 800);

/// A pod's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Skew {
    pub(crate) now: Millis,
    /// The least and the most since the process started.
    pub(crate) low: Millis,
    pub(crate) high: Millis,
}

#[expect(clippy::struct_excessive_bools, reason = "a process can be all of these at once")]
pub(crate) struct State {
    worker: Option<SimWorker>,
    /// Rises with each start of any pod; 0 while it is down.
    pub(crate) incarnation: u64,
    pub(crate) reader: Rc<RefCell<Reader>>,
    pub(crate) disk: Rc<RefCell<Disk>>,
    pub(crate) skew: Skew,
    wakes_at: Millis,
    /// The loop of a process takes a moment for each pass.
    not_before: Millis,
    /// When all its tasks were last running.
    level_since: Millis,
    starts_at: Option<Millis>,
    /// Whether it is to be there at all.
    is_wanted: bool,
    is_inside: bool,
    is_doomed: bool,
    is_silent: bool,
    pub(crate) tasks: BTreeMap<Partition, TaskState>,
    pub(crate) is_old: bool,
    starts: u64,
}

pub(crate) struct Pod {
    pub(crate) number: usize,
    pub(crate) instance: String,
    pub(crate) state: RefCell<State>,
}

impl Pod {
    /// Returns a pod that is down until it is started.
    pub(crate) fn new(number: usize, instance: String) -> Self {
        let state = State {
            worker: None,
            incarnation: 0,
            reader: Rc::default(),
            disk: Rc::default(),
            skew: Skew::default(),
            wakes_at: 0,
            not_before: 0,
            level_since: 0,
            starts_at: None,
            is_wanted: false,
            is_inside: false,
            is_doomed: false,
            is_silent: false,
            tasks: BTreeMap::new(),
            is_old: false,
            starts: 0,
        };
        Self { number, instance, state: RefCell::new(state) }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state.borrow().incarnation != 0
    }

    pub(crate) fn is_doomed(&self) -> bool {
        self.state.borrow().is_doomed
    }

    pub(crate) fn sleeps_until(&self, until: Millis) {
        self.state.borrow_mut().wakes_at = until;
    }

    /// Moves the wall clock.
    pub(crate) fn step_clock(&self, by: Millis) {
        let skew = &mut self.state.borrow_mut().skew;
        skew.now += by;
        skew.low = skew.low.min(skew.now);
        skew.high = skew.high.max(skew.now);
    }

    /// Returns whether the process has not restored for so long.
    pub(crate) fn is_quick(&self, sim: &Sim, long: Millis) -> bool {
        !self.is_restoring() || sim.now() - self.state.borrow().level_since <= long
    }

    /// Returns whether a task of the process is not level with its changelog.
    pub(crate) fn is_restoring(&self) -> bool {
        let state = self.state.borrow();
        state.incarnation != 0 && state.tasks.values().any(|task| *task != TaskState::Running)
    }

    /// The process starts at an instant, if it is down.
    pub(crate) fn start_at(&self, at: Millis) {
        self.state.borrow_mut().is_wanted = true;
        self.restart_at(at);
    }

    fn restart_at(&self, at: Millis) {
        let mut state = self.state.borrow_mut();
        if state.incarnation == 0 && state.is_wanted {
            state.starts_at = Some(state.starts_at.map_or(at, |earlier| earlier.min(at)));
        }
    }

    /// The process is not to start by itself.
    pub(crate) fn stay_down(&self) {
        let mut state = self.state.borrow_mut();
        state.is_wanted = false;
        state.starts_at = None;
    }

    /// Returns when the pod next does something by itself.
    pub(crate) fn next_at(&self, sim: &Sim) -> Option<Millis> {
        let state = self.state.borrow();
        if state.incarnation == 0 {
            return state.starts_at;
        }
        if state.is_inside {
            return None;
        }
        let is_ready = state.reader.borrow().is_ready(&sim.broker.borrow(), sim.now());
        Some(if is_ready { sim.now() } else { state.wakes_at }.max(state.not_before))
    }

    pub(crate) fn falls_silent(&self, sim: &Sim) {
        let mut state = self.state.borrow_mut();
        state.is_silent = true;
        if let Some(member) = state.reader.borrow().member {
            sim.broker.borrow_mut().group.falls_silent(member, sim.now());
        }
    }

    pub(crate) fn is_heard(&self, sim: &Sim) {
        let mut state = self.state.borrow_mut();
        state.is_silent = false;
        if let Some(member) = state.reader.borrow().member {
            sim.broker.borrow_mut().group.is_heard(member);
        }
    }

    /// Does what is due: starts the process, or makes one pass.
    pub(crate) fn act(&self, sim: &Rc<Sim>) {
        if !self.is_up() {
            let is_due = self.state.borrow().starts_at.is_some_and(|at| at <= sim.now());
            if is_due {
                self.run(sim, Self::start);
            }
        } else if self.next_at(sim).is_some_and(|at| at <= sim.now()) {
            self.run(sim, Self::tick);
        }
    }

    /// Runs a part of the process; if it dies in there, it is gone.
    fn run(&self, sim: &Rc<Sim>, part: fn(&Self, &Rc<Sim>) -> Result<(), WorkerError>) {
        sim.step();
        self.state.borrow_mut().is_inside = true;
        let ended = panic::catch_unwind(AssertUnwindSafe(|| part(self, sim)));
        self.state.borrow_mut().is_inside = false;
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.ended(sim, &error),
            Err(payload) => {
                if !payload.is::<Crash>() {
                    let text = payload.downcast_ref::<String>().cloned();
                    let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                    let detail = format!("pod {}: {}", self.number, text.unwrap_or_default());
                    sim.fail(Violation { id: "INV-PANIC-1", detail });
                }
                self.die(sim);
            }
        }
    }

    fn start(&self, sim: &Rc<Sim>) -> Result<(), WorkerError> {
        let incarnation = sim.oracle.borrow_mut().next_incarnation();
        let (reader, disk) = {
            let mut state = self.state.borrow_mut();
            state.incarnation = incarnation;
            state.starts_at = None;
            state.starts += 1;
            state.wakes_at = sim.now();
            state.level_since = sim.now();
            state.reader = Rc::default();
            state.skew = Skew { now: state.skew.now, low: state.skew.now, high: state.skew.now };
            (Rc::clone(&state.reader), Rc::clone(&state.disk))
        };
        sim.note(|| format!("pod {}: starts as process {incarnation}", self.number));
        sim.oracle.borrow_mut().started(incarnation, self.number, self.state.borrow().is_old);
        let log = SimLog::connect(sim, self.number, incarnation, &reader)?;
        let stores = SimStores { sim: Rc::clone(sim), pod: self.number, disk };
        let clock = SimClock { sim: Rc::clone(sim), pod: self.number };
        let watch = Watch { sim: Rc::clone(sim), pod: self.number };
        let settings = worker_settings(&sim.plan, &self.instance, self.state.borrow().is_old);
        let nonces = fastrand::Rng::with_seed(sim.plan.seed ^ incarnation.wrapping_mul(0x9E37_79B9));
        let worker = Worker::new(settings, log, stores, clock, watch).with_nonces(nonces);
        self.state.borrow_mut().worker = Some(worker);
        Ok(())
    }

    fn tick(&self, sim: &Rc<Sim>) -> Result<(), WorkerError> {
        let taken = self.state.borrow_mut().worker.take();
        let Some(mut worker) = taken else { return Ok(()) };
        // If the process dies in there, its memory is dropped with the stack.
        worker.tick()?;
        let mut state = self.state.borrow_mut();
        state.not_before = sim.now() + 1;
        if state.tasks.values().all(|task| *task == TaskState::Running) {
            state.level_since = sim.now();
        }
        state.worker = Some(worker);
        Ok(())
    }

    /// The worker could not go on: the process ends, and is started again.
    fn ended(&self, sim: &Rc<Sim>, error: &WorkerError) {
        sim.note(|| format!("pod {}: ENDS: {error}", self.number));
        match error {
            WorkerError::Log(LogError::Fatal { .. } | LogError::Retriable { .. })
            | WorkerError::Store(_)
            | WorkerError::RestoreStalled { .. } => {}
            WorkerError::Contradiction { .. } => {
                sim.fail(Violation { id: "INV-RESTORE-1", detail: format!("pod {}: {error}", self.number) });
            }
        }
        self.die(sim);
    }

    /// The process dies, now or as soon as it goes on, and is started again a little later.
    pub(crate) fn kill(&self, sim: &Rc<Sim>) {
        if self.state.borrow().is_inside {
            self.state.borrow_mut().is_doomed = true;
        } else if self.is_up() {
            self.die(sim);
        }
    }

    fn die(&self, sim: &Rc<Sim>) {
        self.forget(sim);
        self.state.borrow().disk.borrow_mut().crash();
        let at = sim.now() + sim.draw("restart", |rng| rng.i64(RESTART.0..RESTART.1));
        self.restart_at(at);
    }

    /// The process is stopped in good order.
    pub(crate) fn stop(&self, sim: &Rc<Sim>) {
        if self.state.borrow().is_inside || !self.is_up() {
            return;
        }
        self.run(sim, |pod, _| {
            let taken = pod.state.borrow_mut().worker.take();
            let Some(mut worker) = taken else { return Ok(()) };
            worker.run(&std::sync::atomic::AtomicBool::new(true))?;
            pod.state.borrow_mut().worker = Some(worker);
            Ok(())
        });
        if !self.is_up() {
            return;
        }
        let member = self.state.borrow().reader.borrow().member;
        if let Some(member) = member.filter(|_| !sim.plan.is_static) {
            sim.broker.borrow_mut().group.leave(member, sim.now());
        }
        self.forget(sim);
        self.state.borrow().disk.borrow_mut().close();
    }

    /// Ends the run for this pod: the parts of a worker know the world, which knows the pod.
    pub(crate) fn take_apart(&self) {
        let worker = self.state.borrow_mut().worker.take();
        drop(worker);
    }

    fn forget(&self, sim: &Rc<Sim>) {
        self.falls_silent(sim);
        let worker = {
            let mut state = self.state.borrow_mut();
            state.incarnation = 0;
            state.is_doomed = false;
            state.tasks.clear();
            state.worker.take()
        };
        drop(worker);
        sim.note(|| format!("pod {}: is gone", self.number));
    }
}

/// The clock of a pod.
pub(crate) struct SimClock {
    sim: Rc<Sim>,
    pod: usize,
}

impl Clock for SimClock {
    fn wall(&self) -> Timestamp {
        let skew = self.sim.pods[self.pod].state.borrow().skew.now;
        Timestamp::from_millis(EPOCH + self.sim.now() + skew)
    }

    fn boot(&self) -> Duration {
        Duration::from_millis(self.sim.now().unsigned_abs())
    }
}

/// What the simulation sees of a worker.
pub(crate) struct Watch {
    sim: Rc<Sim>,
    pod: usize,
}

impl Observer for Watch {
    fn entered(&mut self, _call: &'static str, _bound: Duration) {}
    fn left(&mut self) {}
    fn ticked(&mut self, _report: &TickReport) {}
    fn transaction(&mut self, _end: TransactionEnd, _took: Duration, _tally: &Tally) {}

    fn task(&mut self, partition: Partition, task: TaskState) {
        self.sim.note(|| format!("pod {}: partition {partition} is {task:?}", self.pod));
        self.sim.pods[self.pod].state.borrow_mut().tasks.insert(partition, task);
    }

    fn task_gone(&mut self, partition: Partition) {
        self.sim.note(|| format!("pod {}: partition {partition} is gone", self.pod));
        self.sim.pods[self.pod].state.borrow_mut().tasks.remove(&partition);
    }

    fn restore(&mut self, _partition: Partition, _done: u64, _total: u64) {}
    fn holdings(&mut self, _partition: Partition, _holdings: &Holdings) {}
    fn joined(&mut self) {}

    fn clock_held(&mut self, held: bool) {
        self.sim.note(|| format!("pod {}: clock held: {held}", self.pod));
    }

    fn kind_held(&mut self, kind: KindNumber, held: bool) {
        self.sim.note(|| format!("pod {}: kind {kind} held: {held}", self.pod));
    }

    fn foreign_records(&mut self, partition: Partition, records: usize) {
        let detail =
            format!("pod {}: partition {partition}: {records} records of its own taken for foreign ones", self.pod);
        self.sim.fail(Violation { id: "INV-WATCH-1", detail });
    }

    fn input_lost(&mut self, partition: Partition, records: u64) {
        self.sim.note(|| format!("pod {}: partition {partition}: {records} commands lost", self.pod));
    }
}
