//! INV-STORE-6: the store of a task that is level with its changelog is the fold of the committed changelog, row for row,
//! and the changelog as a whole is what was promised.

use std::collections::BTreeSet;

use punctual::log::Destination;
use punctual::position::Partition;
use punctual::store::Store;
use punctual::store::memory::MemoryStore;
use punctual::time::Timestamp;
use punctual::timer::identity::TimerKey;
use punctual::timer::model::DueKey;
use punctual::timer::view::DueRow;
use punctual::wire::key::StateKey;
use punctual::wire::state::encode_timer;

use super::changelog_folds;
use crate::setting::all_kinds;
use crate::sim::{Sim, Violation};

/// Compares every store that is level, and every changelog.
pub(crate) fn check_all(sim: &Sim) -> Result<(), Violation> {
    for number in 0..sim.plan.partitions {
        check_changelog(sim, Partition(number))?;
    }
    for pod in &sim.pods {
        let state = pod.state.borrow();
        let disk = state.disk.borrow();
        for (partition, files) in &disk.files {
            if state.tasks.contains_key(partition) && !files.is_marred {
                check_store(sim, *partition, &files.live.borrow())?;
            }
        }
    }
    Ok(())
}

fn check_changelog(sim: &Sim, partition: Partition) -> Result<(), Violation> {
    let oracle = sim.oracle.borrow();
    let mut names: BTreeSet<_> = oracle.homes[&partition].timers.keys().cloned().collect();
    for key in keys(sim, partition) {
        if let StateKey::Timer(key) = key {
            names.insert(changelog_folds::timer_name(&key));
        }
    }
    names.iter().try_for_each(|name| changelog_folds::check_timer(&oracle, sim, partition, name))
}

fn check_store(sim: &Sim, partition: Partition, store: &MemoryStore) -> Result<(), Violation> {
    let broker = sim.broker.borrow();
    let Some(log) = broker.logs.get(&(Destination::Changelog, partition)) else { return Ok(()) };
    let below = store.header().changelog_position.map_or(0, |position| position.0);
    if log.entries.range(below..).any(|(_, entry)| entry.data.is_some()) {
        // Not level yet.
        return Ok(());
    }
    let committed = |key: &StateKey| log.committed_below(&key.encode(), below).and_then(|data| data.value.clone());
    let violation = |detail: String| Err(Violation { id: "INV-STORE-6", detail });
    let (mut rows, mut parked) = (0, 0);
    for kind in all_kinds() {
        // Paused timers are behind all instants.
        let end = Timestamp::from_millis(i64::MAX);
        for row in store.due(kind, DueKey::MIN, end, usize::MAX).expect("memory can be read") {
            let DueRow::Timer(timer) = row else { return violation(format!("partition {partition}: {row:?}")) };
            rows += 1;
            parked += u64::from(timer.paused.is_some());
            let body = committed(&StateKey::Timer(timer.key.clone()));
            if body != Some(encode_timer(&timer)) {
                return violation(format!("partition {partition} has {timer:?}, the changelog has {body:?}"));
            }
        }
    }
    let is_timer = |key: &TimerKey| log.committed_below(&StateKey::Timer(key.clone()).encode(), below);
    let timers = log.keys().filter_map(|key| match StateKey::decode(key) {
        Ok(StateKey::Timer(key)) => is_timer(&key).and_then(|data| data.value.clone()),
        Ok(StateKey::Meta | StateKey::Barrier | StateKey::Run(_) | StateKey::Remembered(_)) | Err(_) => None,
    });
    let timers = timers.count();
    let pending: u64 = store.header().pending.values().sum();
    if timers != rows || pending != rows as u64 {
        return violation(format!("partition {partition} has {rows} timers, counts {pending}, the changelog {timers}"));
    }
    drop(broker);
    super::paused::check_store(partition, store, parked)?;
    super::remembered::check_store(sim, partition, store, below)
}

fn keys(sim: &Sim, partition: Partition) -> Vec<StateKey> {
    let broker = sim.broker.borrow();
    let log = broker.log((Destination::Changelog, partition));
    log.keys().filter_map(|key| StateKey::decode(key).ok()).collect()
}
