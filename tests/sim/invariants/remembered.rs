//! INV-REMEMBER-1: an id that has ended is remembered for as long as its kind asks for, from the moment of its ending on, in the
//! changelog and in the store; it is forgotten soon after, and never before.

use std::collections::{BTreeMap, BTreeSet};

use punctual::log::Destination;
use punctual::position::Partition;
use punctual::store::Store;
use punctual::store::memory::MemoryStore;
use punctual::time::Timestamp;
use punctual::timer::model::{Ending, Remembered};
use punctual::wire::key::StateKey;
use punctual::wire::remembered::{decode_remembered, encode_remembered};

use super::changelog_folds::{timer_key, timer_name};
use crate::oracle::parts::Changes;
use crate::oracle::remembered::Memory;
use crate::oracle::settle::Writer;
use crate::oracle::{End, Oracle, TimerName};
use crate::sim::{EPOCH, Millis, Sim, Violation};

/// How long an id may be remembered after its end, in calm times.
const LINGERS: Millis = 5_000;

/// Checks the ids that a transaction changed, or had to change, and takes what is exact from then on.
pub(crate) fn check(
    oracle: &mut Oracle,
    sim: &Sim,
    changes: &BTreeMap<Partition, Changes>,
    touched: &BTreeSet<(Partition, TimerName)>,
    writer: &Writer,
) -> Result<(), Violation> {
    let mut names = touched.clone();
    for (partition, changes) in changes {
        let ids = changes.values.keys().filter_map(|key| match key {
            StateKey::Remembered(id) => Some((*partition, timer_name(id))),
            StateKey::Timer(_) | StateKey::Run(_) | StateKey::Meta | StateKey::Barrier => None,
        });
        names.extend(ids);
    }
    names.into_iter().try_for_each(|(partition, name)| check_id(oracle, sim, partition, &name, writer))
}

fn check_id(
    oracle: &mut Oracle,
    sim: &Sim,
    partition: Partition,
    name: &TimerName,
    writer: &Writer,
) -> Result<(), Violation> {
    let stored = stored(sim, partition, name)?;
    let now = EPOCH + sim.now() + writer.skew.high;
    let home = oracle.homes.entry(partition).or_default();
    let is_unsure = home.unsure.remove(name);
    let promised = home.remembered.get(name).cloned().unwrap_or_default();
    // The row of a timer that was swept may be there still.
    let is_swept = |memory: &Memory| memory.ended.1 == i64::MAX;
    let has_lapsed = promised.iter().any(|memory| memory.until().0 <= now || is_swept(memory));
    let may_be_none = promised.is_empty() || is_unsure || has_lapsed;
    let is_right = stored.map_or(may_be_none, |state| promised.iter().any(|memory| is_equal(memory, &state)));
    if !is_right {
        let detail = format!(
            "partition {partition}, {name:?}: promised is {promised:?}, the changelog has {stored:?} at {}",
            now - EPOCH
        );
        return Err(Violation { id: "INV-REMEMBER-1", detail });
    }
    let known: Vec<Memory> = match stored {
        Some(state) => vec![memory_of(&state)],
        None => promised.into_iter().filter(is_swept).collect(),
    };
    if known.is_empty() {
        home.remembered.remove(name);
    } else {
        home.remembered.insert(name.clone(), known);
    }
    Ok(())
}

fn is_equal(memory: &Memory, state: &Remembered) -> bool {
    let (ended, until) = (state.ended.as_millis(), state.until.as_millis());
    memory.end == memory_of(state).end
        && (memory.ended.0..=memory.ended.1).contains(&ended)
        && until == ended + memory.lasts
}

fn memory_of(state: &Remembered) -> Memory {
    let (ended, until) = (state.ended.as_millis(), state.until.as_millis());
    let end = match state.ending {
        Ending::Fired(generation) => Some((End::Fired, generation.0)),
        Ending::Disarmed(generation) => Some((End::Disarmed, generation.0)),
        Ending::Expired(generation) => Some((End::Expired, generation.0)),
        Ending::NeverArmed => None,
    };
    Memory { end, ended: (ended, ended), lasts: until - ended }
}

/// Returns whether a transaction remembers that this version of a timer has ended.
pub(crate) fn has_ended(changes: &Changes, name: &TimerName, generation: u64) -> bool {
    let value = changes.values.get(&StateKey::Remembered(timer_key(name))).and_then(Option::as_ref);
    let state = value.and_then(|value| decode_remembered(value).ok());
    state.is_some_and(|state| memory_of(&state).end.is_some_and(|(_, ended)| ended == generation))
}

fn stored(sim: &Sim, partition: Partition, name: &TimerName) -> Result<Option<Remembered>, Violation> {
    let broker = sim.broker.borrow();
    let key = StateKey::Remembered(timer_key(name)).encode();
    let data = broker.log((Destination::Changelog, partition)).committed_below(&key, i64::MAX);
    let state = data.and_then(|data| data.value.as_ref()).map(|value| decode_remembered(value)).transpose();
    state.map_err(|error| Violation { id: "INV-WIRE-2", detail: error.to_string() })
}

/// Compares the ids that a store remembers with those of the changelog below its position.
pub(crate) fn check_store(sim: &Sim, partition: Partition, store: &MemoryStore, below: i64) -> Result<(), Violation> {
    let broker = sim.broker.borrow();
    let log = broker.log((Destination::Changelog, partition));
    let committed = |key: &StateKey| log.committed_below(&key.encode(), below).and_then(|data| data.value.clone());
    let rows = store.ending(Timestamp::EPOCH, Timestamp::MAX, usize::MAX).expect("memory can be read");
    let violation = |detail: String| Err(Violation { id: "INV-STORE-6", detail });
    for (id, state) in &rows {
        let body = committed(&StateKey::Remembered(id.clone()));
        if body != Some(encode_remembered(state)) {
            return violation(format!("partition {partition} remembers {id}: {state:?}, the changelog has {body:?}"));
        }
    }
    let is_id = |key: &StateKey| matches!(key, StateKey::Remembered(_));
    let keys = log.keys().filter_map(|key| StateKey::decode(key).ok()).filter(is_id);
    let ids = keys.filter(|key| committed(key).is_some()).count();
    let count = store.header().remembered;
    if ids != rows.len() || count != rows.len() as u64 {
        return violation(format!(
            "partition {partition} remembers {} ids, counts {count}, the changelog has {ids}",
            rows.len()
        ));
    }
    Ok(())
}

/// Returns an id that should be forgotten by now; `None` if there is none.
pub(crate) fn overstayed(sim: &Sim) -> Option<String> {
    let oracle = sim.oracle.borrow();
    for (partition, home) in &oracle.homes {
        let has_ended = |known: &[Memory]| known.iter().all(|memory| memory.until().1 < EPOCH + sim.now() - LINGERS);
        if let Some((name, known)) = home.remembered.iter().find(|(_, known)| has_ended(known)) {
            return Some(format!("partition {partition}: {name:?} is remembered still: {known:?}"));
        }
    }
    None
}
