//! INV-PAUSE-1: what is paused does not fire, nor expire, nor is it dated anew, until it is resumed; in a store it has no wake. What a resume
//! does to due and generation is compared with the answers and the changelog.

use punctual::position::Partition;
use punctual::store::Store;
use punctual::store::memory::MemoryStore;

use crate::murmur::java_partition;
use crate::oracle::Oracle;
use crate::oracle::happening::{Happening, name_of};
use crate::sim::{Sim, Violation};

/// Checks that what time did to a timer was not done to a paused one.
pub(crate) fn check(oracle: &Oracle, sim: &Sim, happening: &Happening) -> Result<(), Violation> {
    let Some(name) = name_of(happening) else { return Ok(()) };
    let home = java_partition(format!("{}/{}", name.0.0, name.0.1).as_bytes(), sim.plan.partitions);
    let timer = oracle.homes.get(&home).and_then(|home| home.timers.get(&name));
    match timer.filter(|timer| timer.is_paused) {
        Some(timer) => Err(violation(format!("{name:?} is paused, and has its turn: {timer:?}"))),
        None => Ok(()),
    }
}

/// Checks that a store counts as many paused timers as it has parked.
pub(crate) fn check_store(partition: Partition, store: &MemoryStore, parked: u64) -> Result<(), Violation> {
    let counted: u64 = store.header().paused.values().sum();
    if counted == parked {
        return Ok(());
    }
    Err(violation(format!("partition {partition} counts {counted} paused timers, and has {parked}")))
}

fn violation(detail: String) -> Violation {
    Violation { id: "INV-PAUSE-1", detail }
}
