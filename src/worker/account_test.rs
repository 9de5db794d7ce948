//! Random commands and random trouble on real stores, and an account of every timer in the end.
//!
//! Keeps: every version of a timer that was answered as armed ends exactly once: fired, disarmed, replaced, or counted by a
//! sweep; and every command is answered exactly once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use super::Worker;
use super::fake_log::{Broker, End, FakeLog, Hands};
use super::tests::{Listener, settings};
use crate::log::{Destination, Emission, LogEvent};
use crate::position::Partition;
use crate::store::rocks::Resources;
use crate::store::rocks::stores::StateDirectory;
use crate::time::{Clock, Timestamp};
use crate::timer::kind::KindNumber;
use crate::wire;

const PARTITIONS: [Partition; 2] = [Partition(0), Partition(1)];
const SEEDS: u64 = 4;
/// Most timers of a run: more than one slice of a sweep.
const CROWD: u32 = 600;

struct World {
    rng: fastrand::Rng,
    broker: Rc<RefCell<Broker>>,
    clock: Hands,
    directory: tempfile::TempDir,
    worker: Option<Worker<FakeLog, StateDirectory, Hands, Listener>>,
    events: Rc<RefCell<VecDeque<LogEvent>>>,
    commands: usize,
    /// When the last trouble ended.
    quiet_since: Timestamp,
}

impl World {
    fn new(seed: u64) -> Self {
        let clock = Hands::default();
        let mut world = Self {
            rng: fastrand::Rng::with_seed(seed),
            broker: Rc::default(),
            directory: tempfile::tempdir().unwrap(),
            worker: None,
            events: Rc::default(),
            commands: 0,
            quiet_since: clock.elsewhere().wall(),
            clock,
        };
        world.broker.borrow_mut().restored_at_once = 200;
        world.broker.borrow_mut().clock = Some(world.clock.elsewhere());
        world.start();
        world
    }

    fn start(&mut self) {
        self.worker = None;
        let log = FakeLog::new(&self.broker);
        self.events = Rc::clone(&log.events);
        let stores = StateDirectory::lock(self.directory.path(), Resources::new(16 << 20)).unwrap();
        let mut settings = settings();
        settings.rules.partitions = 2;
        self.worker = Some(Worker::new(settings, log, stores, self.clock.clone(), Listener::default()));
        self.events.borrow_mut().push_back(LogEvent::Assigned(PARTITIONS.to_vec()));
    }

    fn ticks(&mut self, ticks: usize) {
        for _ in 0..ticks {
            self.worker.as_mut().unwrap().tick().unwrap();
            self.clock.advance(Duration::from_millis(10));
        }
    }

    fn send(&mut self, run: &str, action: &str) {
        self.commands += 1;
        let json = format!(r#"{{"run":"{run}","correlation_id":"{}",{action}}}"#, self.commands);
        // A client's own partitioner: half of the commands are strays.
        let partition = PARTITIONS[self.rng.usize(0..2)];
        self.broker.borrow_mut().produce(partition, self.clock.elsewhere().wall(), Bytes::from(json));
    }

    fn command(&mut self) {
        let run = format!("run-{}", self.rng.u32(0..4));
        let id = self.rng.u32(0..5);
        match self.rng.u32(0..20) {
            0..12 => self.arm(&run, id),
            12..15 => self.send(&run, &format!(r#""disarm":{{"timer_id":"{id}"}}"#)),
            15 => self.send(&run, r#""disarm_run":{}"#),
            16 => self.send(&run, r#""seal_run":{"retention":"PT2S"}"#),
            17 => {
                for id in 0..self.rng.u32(0..CROWD) {
                    self.arm("crowd", id);
                }
            }
            18 => self.send("crowd", r#""disarm_run":{}"#),
            _ => {
                self.arm("crowd", id);
                self.send("crowd", r#""seal_run":{"retention":"PT1S"}"#);
            }
        }
    }

    fn arm(&mut self, run: &str, id: u32) {
        let kind = ["email", "sms"][self.rng.usize(0..2)];
        let conflict = ["keep", "replace"][self.rng.usize(0..2)];
        let after = f64::from(self.rng.u32(1..12_000)) / 1_000.0;
        let arm = format!(
            r#""arm":{{"timer_id":"{id}","kind":"{kind}","after":"PT{after}S","on_conflict":"{conflict}","payload":"{id}"}}"#
        );
        self.send(run, &arm);
    }

    fn trouble(&mut self) {
        let partition = PARTITIONS[self.rng.usize(0..2)];
        let ticks = self.rng.usize(0..60);
        match self.rng.u32(0..10) {
            0 => self.broker.borrow_mut().ends.push_back(End::Abort),
            1 => self.broker.borrow_mut().ends.extend([End::UnknownButCommitted, End::Abort]),
            2 => self.broker.borrow_mut().ends.push_back(End::UnknownAndAborted),
            3 => self.hand_over(LogEvent::Revoked(vec![partition]), partition),
            4 => self.hand_over(LogEvent::Lost(vec![partition]), partition),
            5 => self.events.borrow_mut().push_back(LogEvent::OutOfRange(partition)),
            6 => {
                let fired = Destination::Fired(KindNumber::new(self.rng.u32(1..3)).unwrap());
                let refusing = [fired, Destination::Arm, Destination::Changelog][self.rng.usize(0..3)];
                self.broker.borrow_mut().refusing.insert(refusing);
                self.ticks(ticks);
                self.broker.borrow_mut().refusing.clear();
            }
            7 => {
                self.clock.step_seconds(3_600);
                self.ticks(ticks);
                self.clock.step_seconds(-3_600);
            }
            8 => self.broker.borrow_mut().hides_places = true,
            _ => self.start(),
        }
    }

    fn hand_over(&mut self, event: LogEvent, partition: Partition) {
        self.events.borrow_mut().extend([event, LogEvent::Assigned(vec![partition])]);
    }

    /// Lets all holds end, then sends commands that nothing may delay.
    fn quiet(&mut self) {
        self.broker.borrow_mut().ends.clear();
        self.ticks(4_000);
        self.quiet_since = self.clock.elsewhere().wall();
        for _ in 0..40 {
            self.command();
            self.ticks(3);
        }
        self.ticks(1_500);
    }
}

fn header(emission: &Emission, name: &str) -> String {
    let header = emission.headers.iter().find(|header| header.key == name).unwrap();
    String::from_utf8(header.value.clone().unwrap().to_vec()).unwrap()
}

/// What became of the timers of one run.
#[derive(Debug, Default)]
struct Account {
    born: u64,
    fired: u64,
    disarmed: u64,
    replaced: u64,
    swept: u64,
}

fn check(seed: u64) {
    let mut world = World::new(seed);
    world.ticks(20);
    for _ in 0..60 {
        for _ in 0..world.rng.usize(0..6) {
            world.command();
        }
        let ticks = world.rng.usize(0..40);
        world.ticks(ticks);
        if world.rng.u32(0..3) == 0 {
            world.trouble();
        }
    }
    world.quiet();
    let broker = world.broker.borrow();
    let mut accounts: BTreeMap<String, Account> = BTreeMap::new();
    let mut dues = BTreeMap::new();
    let mut answered = BTreeSet::new();
    let mut last_sweep = None;
    for answer in broker.sent_to(Destination::Results) {
        let answer = wire::answer::decode(&answer.value.clone().unwrap(), &answer.headers).unwrap();
        assert!(answered.insert(answer.correlation_id.clone()), "seed {seed}: answered twice, {answer:?}");
        let account = accounts.entry(answer.run.clone()).or_default();
        // Commands that waited for one sweep are answered one after the other, with the same count.
        let sweep = answer.count.map(|count| (answer.run.clone(), count));
        let is_of_last = sweep.is_some() && sweep == last_sweep;
        last_sweep = sweep;
        match answer.outcome.as_str() {
            "armed" => account.born += 1,
            "replaced" => {
                account.born += 1;
                account.replaced += 1;
            }
            "disarmed" => account.disarmed += 1,
            "run_disarmed" | "run_sealed" if is_of_last => {}
            "run_disarmed" | "run_sealed" => account.swept += answer.count.unwrap(),
            "already_armed" | "not_found" | "sealed" => {}
            other => panic!("seed {seed}: {other}, {answer:?}"),
        }
        if let (Some(due), Some(id), Some(generation)) = (answer.due, &answer.timer_id, answer.generation) {
            dues.insert(format!("default/{}/{id}/{generation}", answer.run), due);
        }
    }
    let mut events = BTreeSet::new();
    for event in broker.output.iter().filter(|emission| matches!(emission.to, Destination::Fired(_))) {
        let id = header(event, "ce_id");
        assert!(events.insert(id.clone()), "seed {seed}: {id} has fired twice");
        let due = *dues.get(&id).unwrap_or_else(|| panic!("seed {seed}: {id} has fired, but was never armed"));
        let fired = Timestamp::parse(&header(event, "punctual-fired")).unwrap();
        let is_early = fired < due || fired > world.clock.elsewhere().wall();
        assert!(!is_early, "seed {seed}: {id} was due {due} and fired {fired}, by a clock that was ahead");
        let is_late = due > world.quiet_since && fired.since(due) > Duration::from_millis(500);
        assert!(!is_late, "seed {seed}: {id} was due {due} and fired {fired}");
        accounts.entry(header(event, "punctual-run")).or_default().fired += 1;
    }
    for (run, account) in &accounts {
        let ended = account.fired + account.disarmed + account.replaced + account.swept;
        assert_eq!(account.born, ended, "seed {seed}: run {run}, {account:?}");
    }
    assert_eq!(answered.len(), world.commands, "seed {seed}: every command is answered");
    for (partition, seat) in &world.worker.as_ref().unwrap().seats {
        let pending = seat.task.as_ref().unwrap().overlay().pending();
        assert!(pending.values().all(|count| *count == 0), "seed {seed}, partition {partition}: {pending:?}");
    }
}

#[test]
fn every_timer_is_accounted_for_whatever_happens() {
    for seed in 0..SEEDS {
        check(seed);
    }
}
