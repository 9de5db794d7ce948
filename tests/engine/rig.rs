//! What the tests of the engine share.

use std::time::Duration;

use bytes::Bytes;
use punctual::engine::{Arm, Budget, Claimed, Engine, Generation, OnConflict, Options, Tick, TickReport};
use punctual::time::Timestamp;
use tempfile::TempDir;

/// The lease of the engines of the tests, in milliseconds.
pub(crate) const LEASE: i64 = 60_000;

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn options() -> Options {
    Options::new().memory_bytes(16 << 20)
}

/// Runs a check on an engine in memory and on one on disk.
pub(crate) fn on_both(options: &Options, check: impl Fn(&Engine)) {
    check(&Engine::in_memory(options.clone()).unwrap());
    let directory = TempDir::new().unwrap();
    check(&Engine::open(directory.path(), options.clone()).unwrap());
}

/// The wish for a timer of kind 1 of the default tenant, with its identity as its payload.
pub(crate) fn wish(run: &str, timer_id: &str, due: i64) -> Arm {
    Arm {
        tenant: String::new(),
        run: run.to_owned(),
        timer_id: timer_id.to_owned(),
        kind: 1,
        due: at(due),
        payload: Some(Bytes::from(format!("{run}/{timer_id}"))),
        on_conflict: OnConflict::Keep,
    }
}

pub(crate) fn claim(engine: &Engine, now: i64, limit: usize) -> Vec<Claimed> {
    engine.claim_due("default".to_owned(), at(now), limit).unwrap()
}

/// Claims, and returns the identities as `run/timer_id`.
pub(crate) fn claim_names(engine: &Engine, now: i64, limit: usize) -> Vec<String> {
    claim(engine, now, limit).into_iter().map(|claimed| format!("{}/{}", claimed.run, claimed.timer_id)).collect()
}

pub(crate) fn pending(engine: &Engine) -> u64 {
    engine.pending_count("default".to_owned()).unwrap()
}

pub(crate) fn generation(engine: &Engine, run: &str, timer_id: &str) -> Option<Generation> {
    let answer = engine.disarm(String::new(), run.to_owned(), timer_id.to_owned(), Some(Generation(0))).unwrap();
    match answer {
        punctual::engine::DisarmAnswer::Changed { generation } => Some(generation),
        punctual::engine::DisarmAnswer::NotFound => None,
        punctual::engine::DisarmAnswer::Disarmed { .. } => panic!("no timer has version 0"),
    }
}

/// Makes one tick of its own, whose clock stands still.
pub(crate) fn tick(engine: &Engine, now: i64, budget: Budget) -> TickReport {
    engine.fire_due(at(now), &mut Tick::new(budget), &|| Duration::ZERO).unwrap()
}
