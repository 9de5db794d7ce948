//! INV-GATE-1: nothing fires before the commands that stood on the partition at its assignment are applied, those of open
//! transactions too.

use punctual::log::Destination;
use punctual::position::Partition;

use crate::broker::partition::Fate;
use crate::oracle::Oracle;
use crate::sim::{Sim, Violation};

pub(crate) fn check(oracle: &Oracle, sim: &Sim, partition: Partition, owner: u64) -> Result<(), Violation> {
    let Some(gate) = oracle.gates.get(&(owner, partition)) else {
        let detail = format!("process {owner} fires on partition {partition}, which it was never given");
        return Err(Violation { id: "INV-OWNER-2", detail });
    };
    let position = oracle.homes[&partition].position;
    let broker = sim.broker.borrow();
    let log = broker.log((Destination::Arm, partition));
    // What retention has removed cannot be waited for.
    let next = position.max(log.start);
    if *gate <= next {
        return Ok(());
    }
    let mut unread = log.entries.range(next..*gate);
    let unread = unread.find(|(_, entry)| entry.data.is_some() && entry.fate != Fate::Aborted);
    match unread {
        None => Ok(()),
        Some((offset, _)) => {
            let detail = format!(
                "process {owner} fires on partition {partition} at position {position}, and offset {offset} stood there \
                 before its assignment, which ended at {gate}"
            );
            Err(Violation { id: "INV-GATE-1", detail })
        }
    }
}
