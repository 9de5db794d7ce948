//! INV-FOLD-1: the changelog, folded, is what was promised: each timer as it was armed, each seal, and the counter of
//! generations (INV-GEN-1); and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use punctual::log::Destination;
use punctual::position::Partition;
use punctual::time::Timestamp;
use punctual::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use punctual::timer::model::{RunState, Timer};
use punctual::wire::key::StateKey;
use punctual::wire::state::{decode_run, decode_timer};

use crate::client::ArmAsk;
use crate::invariants::{claims, recurring};
use crate::oracle::parts::Changes;
use crate::oracle::settle::Writer;
use crate::oracle::{Armed, Oracle, RunName, TimerName};
use crate::sim::{EPOCH, Sim, Violation};

/// Checks the timers that a transaction changed, or had to change.
pub(crate) fn check(
    oracle: &Oracle,
    sim: &Sim,
    changes: &BTreeMap<Partition, Changes>,
    touched: &BTreeSet<(Partition, TimerName)>,
) -> Result<(), Violation> {
    for (partition, changes) in changes {
        let next = oracle.homes[partition].next_generation;
        if let Some(meta) = changes.meta.as_ref().filter(|meta| meta.next_generation.0 != next) {
            let detail = format!("partition {partition}: {meta:?}, promised was {next}");
            return Err(Violation { id: "INV-GEN-1", detail });
        }
        for key in changes.values.keys() {
            if let StateKey::Timer(key) = key {
                check_timer(oracle, sim, *partition, &timer_name(key))?;
            }
        }
    }
    touched.iter().try_for_each(|(partition, name)| check_timer(oracle, sim, *partition, name))
}

/// Checks the runs that a transaction changed, or had to change.
pub(crate) fn check_runs(
    oracle: &mut Oracle,
    sim: &Sim,
    changes: &BTreeMap<Partition, Changes>,
    mut runs: BTreeSet<(Partition, RunName)>,
    writer: &Writer,
) -> Result<(), Violation> {
    for (partition, changes) in changes {
        let of_run = changes.values.keys().filter_map(|key| match key {
            StateKey::Run(run) => Some((*partition, run_name(run))),
            StateKey::Timer(_) | StateKey::Remembered(_) | StateKey::Meta | StateKey::Barrier => None,
        });
        runs.extend(of_run);
    }
    runs.into_iter().try_for_each(|(partition, run)| check_run(oracle, sim, partition, &run, writer))
}

/// Checks one timer of the changelog as it is committed now.
pub(crate) fn check_timer(oracle: &Oracle, sim: &Sim, home: Partition, name: &TimerName) -> Result<(), Violation> {
    let promised = oracle.homes.get(&home).and_then(|home| home.timers.get(name));
    let stored = stored_timer(sim, home, name)?;
    let is_right = match (promised, &stored) {
        (None, None) => true,
        (Some(armed), Some(timer)) => is_equal(armed, timer),
        (Some(_), None) => false,
        // A sweep is in force at once; its rows go later.
        (None, Some(timer)) => stored_run(sim, home, &timer.key.run)?.swept(timer.generation),
    };
    if is_right {
        return Ok(());
    }
    let detail = format!("partition {home}, {name:?}: promised is {promised:?}, the changelog has {stored:?}");
    Err(Violation { id: "INV-FOLD-1", detail })
}

fn check_run(
    oracle: &mut Oracle,
    sim: &Sim,
    home: Partition,
    name: &RunName,
    writer: &Writer,
) -> Result<(), Violation> {
    let stored =
        stored_run(sim, home, &run_key(name))?.seal.map(|seal| seal.until.map_or(i64::MAX, Timestamp::as_millis));
    let model = oracle.homes.entry(home).or_default().runs.entry(name.clone()).or_default();
    let has_ended = model.sealed_until.is_some_and(|until| until <= EPOCH + sim.now() + writer.skew.high);
    if stored.is_none() && has_ended {
        model.sealed_until = None;
    }
    let is_right = match (model.sealed_until, stored) {
        (None, None) => true,
        (Some(promised), Some(stored)) => promised == stored || is_close(promised, stored, writer),
        (None, Some(_)) | (Some(_), None) => false,
    };
    if is_right {
        model.sealed_until = stored;
        return Ok(());
    }
    let detail = format!(
        "partition {home}, run {name:?}: sealed until {:?}, the changelog has {stored:?}, clock {:?}",
        model.sealed_until.map(|until| until - EPOCH),
        writer.skew
    );
    Err(Violation { id: "INV-FOLD-1", detail })
}

/// A seal counts from the process's clock if that is behind the record's timestamp.
fn is_close(promised: i64, stored: i64, writer: &Writer) -> bool {
    writer.skew.low < 0 && (promised - stored).abs() <= -writer.skew.low
}

/// Returns whether a transaction writes the timer that an arm asked for, with this generation.
pub(crate) fn writes(changes: &Changes, name: &TimerName, generation: u64, ask: &ArmAsk) -> bool {
    let value = changes.values.get(&StateKey::Timer(timer_key(name))).and_then(Option::as_ref);
    let timer = value.and_then(|value| decode_timer(value).ok());
    timer.is_some_and(|timer| timer.generation.0 == generation && carries(&timer, ask))
}

/// Returns whether a transaction writes this version of a timer.
pub(crate) fn has_version(changes: &Changes, name: &TimerName, generation: u64) -> bool {
    let value = changes.values.get(&StateKey::Timer(timer_key(name))).and_then(Option::as_ref);
    value.and_then(|value| decode_timer(value).ok()).is_some_and(|timer| timer.generation.0 == generation)
}

fn carries(timer: &Timer, ask: &ArmAsk) -> bool {
    timer.payload == ask.payload
        && timer.record_key == ask.key
        && timer.headers == ask.headers
        && timer.outbox == ask.outbox
}

fn stored_timer(sim: &Sim, home: Partition, name: &TimerName) -> Result<Option<Timer>, Violation> {
    let Some(value) = committed(sim, home, &StateKey::Timer(timer_key(name))) else { return Ok(None) };
    decode_timer(&value).map(Some).map_err(|error| unreadable(&error))
}

fn stored_run(sim: &Sim, home: Partition, run: &RunKey) -> Result<RunState, Violation> {
    match committed(sim, home, &StateKey::Run(run.clone())) {
        None => Ok(RunState::default()),
        Some(value) => decode_run(&value).map_err(|error| unreadable(&error)),
    }
}

fn committed(sim: &Sim, home: Partition, key: &StateKey) -> Option<Bytes> {
    let broker = sim.broker.borrow();
    let log = broker.log((Destination::Changelog, home));
    log.committed_below(&key.encode(), i64::MAX).and_then(|data| data.value.clone())
}

fn is_equal(armed: &Armed, timer: &Timer) -> bool {
    timer.generation.0 == armed.generation
        && timer.due.as_millis() == armed.due
        && claims::is_held(armed, timer)
        && timer.paused.is_some() == armed.is_paused
        && u32::from(timer.kind.get()) == armed.kind
        && (armed.at.0..=armed.at.1).contains(&timer.armed.as_millis())
        && recurring::is_stored(armed, timer)
        && carries(timer, &armed.ask)
}

fn unreadable(error: &dyn std::fmt::Display) -> Violation {
    Violation { id: "INV-WIRE-2", detail: error.to_string() }
}

pub(crate) fn timer_key(name: &TimerName) -> TimerKey {
    TimerKey { run: run_key(&name.0), id: TimerId::parse(&name.1).expect("valid") }
}

fn run_key((tenant, run): &RunName) -> RunKey {
    RunKey { tenant: Tenant::parse(tenant).expect("valid"), run: Run::parse(run).expect("valid") }
}

fn run_name(run: &RunKey) -> RunName {
    (run.tenant.as_str().to_owned(), run.run.as_str().to_owned())
}

pub(crate) fn timer_name(key: &TimerKey) -> TimerName {
    (run_name(&key.run), key.id.as_str().to_owned())
}
