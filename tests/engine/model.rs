//! The engine against a plain model: a map of timers, by the documents.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use punctual::engine::{
    Arm, ArmAnswer, Claimed, DisarmAnswer, Engine, Generation, OnConflict, PauseAnswer, ResumeAnswer,
};
use tempfile::TempDir;

use crate::rig::{LEASE, at, options, wish};

const TENANTS: [&str; 2] = ["default", "b"];
const RUNS: [&str; 3] = ["r", "r0", "é"];
const IDS: [&str; 3] = ["a", "b", "b "];

#[derive(Clone, Debug)]
enum Step {
    Arm { tenant: usize, run: usize, id: usize, kind: u32, due: i64, replaces: bool },
    Disarm { tenant: usize, run: usize, id: usize, version: Option<u64> },
    Pause { tenant: usize, run: usize, id: usize, version: Option<u64> },
    Resume { tenant: usize, run: usize, id: usize, version: Option<u64> },
    DisarmRun { tenant: usize, run: usize },
    Seal { tenant: usize, run: usize, retention: Option<u64> },
    Claim { tenant: usize, limit: usize },
    Pass { by: i64 },
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (tenant, run, id) = (0..TENANTS.len(), 0..RUNS.len(), 0..IDS.len());
    let armed = (tenant.clone(), run.clone(), id.clone(), 1..4_u32, 0..200_000_i64, any::<bool>());
    let disarmed = (tenant.clone(), run.clone(), id, prop::option::of(0..20_u64));
    let retention = prop::option::weighted(0.9, 1..100_000_u64);
    let step = prop_oneof![
        10 => armed.prop_map(|(tenant, run, id, kind, due, replaces)| Step::Arm { tenant, run, id, kind, due, replaces }),
        4 => disarmed.clone().prop_map(|(tenant, run, id, version)| Step::Disarm { tenant, run, id, version }),
        1 => (tenant.clone(), run.clone()).prop_map(|(tenant, run)| Step::DisarmRun { tenant, run }),
        1 => (tenant.clone(), run, retention).prop_map(|(tenant, run, retention)| Step::Seal { tenant, run, retention }),
        6 => (tenant, prop_oneof![0..4_usize, Just(usize::MAX)]).prop_map(|(tenant, limit)| Step::Claim { tenant, limit }),
        // The clock may go back.
        5 => (-20_000..60_000_i64).prop_map(|by| Step::Pass { by }),
        1 => Just(Step::Reopen),
        4 => disarmed.clone().prop_map(|(tenant, run, id, version)| Step::Pause { tenant, run, id, version }),
        6 => disarmed.prop_map(|(tenant, run, id, version)| Step::Resume { tenant, run, id, version }),
    ];
    proptest::collection::vec(step, 1..80)
}

type Key = (usize, usize, usize);

#[derive(Clone, Debug)]
struct Timer {
    kind: u32,
    due: i64,
    wake: i64,
    attempt: u32,
    generation: Generation,
    is_paused: bool,
}

#[derive(Debug)]
struct Model {
    timers: BTreeMap<Key, Timer>,
    /// When the seal of a run ends; `None` is never.
    seals: BTreeMap<(usize, usize), Option<i64>>,
    now: i64,
    last_generation: Generation,
}

impl Model {
    fn is_sealed(&self, tenant: usize, run: usize) -> bool {
        self.seals.get(&(tenant, run)).is_some_and(|until| until.is_none_or(|until| self.now < until))
    }

    fn remove_run(&mut self, tenant: usize, run: usize) -> u64 {
        let before = self.timers.len();
        self.timers.retain(|(t, r, _), _| (*t, *r) != (tenant, run));
        u64::try_from(before - self.timers.len()).unwrap()
    }

    fn arm(&mut self, engine: &Engine, key: Key, (kind, due): (u32, i64), replaces: bool) {
        let (tenant, run, id) = key;
        let on_conflict = if replaces { OnConflict::Replace } else { OnConflict::Keep };
        let tenant_name = TENANTS[tenant].to_owned();
        let arm = Arm { tenant: tenant_name, kind, on_conflict, ..wish(RUNS[run], IDS[id], due) };
        let answer = engine.arm(arm, at(self.now)).unwrap();
        let armed = self.timers.get(&key).map(|timer| timer.generation);
        let generation = match (self.is_sealed(tenant, run), armed, replaces) {
            (true, _, _) => return assert_eq!(answer, ArmAnswer::Sealed, "the run is sealed"),
            (false, Some(generation), false) => {
                return assert_eq!(answer, ArmAnswer::AlreadyArmed { generation }, "the first wins");
            }
            (false, Some(_), true) => {
                let ArmAnswer::Replaced { generation } = answer else { panic!("{answer:?}") };
                generation
            }
            (false, None, _) => {
                let ArmAnswer::Armed { generation } = answer else { panic!("{answer:?}") };
                generation
            }
        };
        assert!(generation > self.last_generation, "{generation:?} was given before");
        self.last_generation = generation;
        self.timers.insert(key, Timer { kind, due, wake: due, attempt: 0, generation, is_paused: false });
    }

    fn disarm(&mut self, engine: &Engine, key: Key, version: Option<u64>) {
        let (tenant, run, id) = key;
        let names = [TENANTS[tenant], RUNS[run], IDS[id]].map(str::to_owned);
        let [tenant_name, run_name, id_name] = names;
        let answer = engine.disarm(tenant_name, run_name, id_name, version.map(Generation)).unwrap();
        let expected = match self.timers.get(&key).map(|timer| timer.generation) {
            None => DisarmAnswer::NotFound,
            Some(generation) if version.is_some_and(|version| version != generation.0) => {
                DisarmAnswer::Changed { generation }
            }
            Some(generation) => {
                self.timers.remove(&key);
                DisarmAnswer::Disarmed { generation }
            }
        };
        assert_eq!(answer, expected, "a disarm of {key:?}");
    }

    fn pause(&mut self, engine: &Engine, (tenant, run, id): Key, version: Option<u64>) {
        let wanted = version.map(Generation);
        let answer = engine.pause(TENANTS[tenant], RUNS[run], IDS[id], wanted, at(self.now)).unwrap();
        let expected = match self.timers.get_mut(&(tenant, run, id)) {
            None => PauseAnswer::NotFound,
            Some(Timer { generation, .. }) if wanted.is_some_and(|wanted| wanted != *generation) => {
                PauseAnswer::Changed { generation: *generation }
            }
            Some(timer) => {
                timer.is_paused = true;
                PauseAnswer::Paused { generation: timer.generation }
            }
        };
        assert_eq!(answer, expected, "a pause");
    }

    fn resume(&mut self, engine: &Engine, (tenant, run, id): Key, version: Option<u64>) {
        let wanted = version.map(Generation);
        let answer = engine.resume(TENANTS[tenant], RUNS[run], IDS[id], wanted, at(self.now)).unwrap();
        let expected = match self.timers.get_mut(&(tenant, run, id)) {
            None => ResumeAnswer::NotFound,
            Some(Timer { generation, .. }) if wanted.is_some_and(|wanted| wanted != *generation) => {
                ResumeAnswer::Changed { generation: *generation }
            }
            Some(Timer { is_paused: false, generation, .. }) => ResumeAnswer::NotPaused { generation: *generation },
            Some(timer) => {
                timer.is_paused = false;
                timer.wake = timer.wake.max(self.now);
                ResumeAnswer::Resumed { generation: timer.generation, due: at(timer.due) }
            }
        };
        assert_eq!(answer, expected, "a resume");
    }

    fn claim(&mut self, engine: &Engine, tenant: usize, limit: usize) {
        let claimed = engine.claim_due(TENANTS[tenant].to_owned(), at(self.now), limit).unwrap();
        // It forgets seals that have ended, so that they do not hold when the clock goes back behind their end.
        let now = self.now;
        self.seals.retain(|_, until| until.is_none_or(|until| now < until));
        let mut due: Vec<(i64, &str, &str, Key)> = self
            .timers
            .iter()
            .filter(|((t, _, _), timer)| *t == tenant && timer.wake <= self.now && !timer.is_paused)
            .map(|(key, timer)| (timer.due, RUNS[key.1], IDS[key.2], *key))
            .collect();
        due.sort_unstable();
        due.truncate(limit);
        let mut expected = Vec::new();
        for (_, run, id, key) in due {
            let timer = self.timers.get_mut(&key).unwrap();
            timer.attempt += 1;
            timer.wake = self.now + LEASE;
            expected.push(Claimed {
                run: run.to_owned(),
                timer_id: id.to_owned(),
                kind: timer.kind,
                due: at(timer.due),
                payload: Some(format!("{run}/{id}").into()),
                attempt: timer.attempt,
                generation: timer.generation,
            });
        }
        assert_eq!(claimed, expected, "a claim at {}", self.now);
    }

    fn take(&mut self, engine: &Engine, step: &Step) {
        match *step {
            Step::Arm { tenant, run, id, kind, due, replaces } => {
                self.arm(engine, (tenant, run, id), (kind, due), replaces);
            }
            Step::Disarm { tenant, run, id, version } => self.disarm(engine, (tenant, run, id), version),
            Step::Pause { tenant, run, id, version } => self.pause(engine, (tenant, run, id), version),
            Step::Resume { tenant, run, id, version } => self.resume(engine, (tenant, run, id), version),
            Step::DisarmRun { tenant, run } => {
                let count = engine.disarm_run(TENANTS[tenant].to_owned(), RUNS[run].to_owned()).unwrap();
                assert_eq!(count, self.remove_run(tenant, run), "what a run had");
            }
            Step::Seal { tenant, run, retention } => {
                let names = (TENANTS[tenant].to_owned(), RUNS[run].to_owned());
                let duration = retention.map(Duration::from_millis);
                let count = engine.seal_run(names.0, names.1, duration, at(self.now)).unwrap();
                assert_eq!(count, self.remove_run(tenant, run), "what a run had");
                let until = retention.map(|retention| self.now + i64::try_from(retention).unwrap());
                let seal = self.seals.entry((tenant, run)).or_insert(until);
                *seal = seal.zip(until).map(|(old, new)| old.max(new));
            }
            Step::Claim { tenant, limit } => self.claim(engine, tenant, limit),
            Step::Pass { by } => self.now = (self.now + by).max(1),
            Step::Reopen => {}
        }
    }

    fn compare(&self, engine: &Engine) {
        for (number, tenant) in TENANTS.iter().enumerate() {
            let count = self.timers.keys().filter(|(t, _, _)| *t == number).count();
            let expected = u64::try_from(count).unwrap();
            assert_eq!(engine.pending_count(*tenant).unwrap(), expected, "of {tenant}");
        }
        let wake = self.timers.values().filter(|timer| !timer.is_paused).map(|timer| timer.wake).min();
        assert_eq!(engine.next_wake().unwrap(), wake.map(at), "the next wake");
    }
}

/// Takes the steps, on an engine that can be opened again if a way is given.
fn check(mut engine: Engine, reopen: Option<&dyn Fn() -> Engine>, steps: &[Step]) {
    let start = Generation(0);
    let mut model = Model { timers: BTreeMap::new(), seals: BTreeMap::new(), now: 1, last_generation: start };
    for step in steps {
        if let (Step::Reopen, Some(reopen)) = (step, reopen) {
            drop(engine);
            engine = reopen();
        }
        model.take(&engine, step);
        model.compare(&engine);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn an_engine_in_memory_does_as_documented(steps in steps()) {
        check(Engine::in_memory(options()).unwrap(), None, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn an_engine_on_disk_does_as_documented(steps in steps()) {
        let directory = TempDir::new().unwrap();
        let open = || Engine::open(directory.path(), options()).unwrap();
        check(open(), Some(&open), &steps);
    }
}
