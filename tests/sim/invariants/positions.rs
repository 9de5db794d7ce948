//! INV-POS-1: committed positions never regress; the changelog and the group are told the same one, and it passes no
//! command that is not decided (D16: also when markers of one transaction come late while the next commits).

use punctual::log::Destination;
use punctual::position::Partition;

use crate::broker::transactions::Decision;
use crate::oracle::Home;
use crate::oracle::parts::Changes;
use crate::plan::Fault;
use crate::sim::{Sim, Violation};

/// Returns the position of the partition behind the transaction.
pub(crate) fn check(
    sim: &Sim,
    partition: Partition,
    home: &Home,
    changes: &Changes,
    decision: &Decision,
) -> Result<i64, Violation> {
    let before = home.position;
    let told = decision.positions.get(&partition).map(|position| position.0);
    if partition.0 >= sim.plan.partitions {
        // Forwarding only: the group's position is the truth, as long as the group has one.
        let after = told.unwrap_or(before);
        let may_regress = sim.plan.has(Fault::OffsetsLost);
        return if before <= after || may_regress { Ok(after) } else { Err(regress(partition, before, after)) };
    }
    let after = changes.meta.as_ref().map_or(before, |meta| meta.input_position.0);
    if after < before {
        return Err(regress(partition, before, after));
    }
    // Who has lost the partition meanwhile, and changes nothing of it, tells the group a position that a later one hides.
    let has_lost_it = changes.values.is_empty() && home.owner != decision.owner;
    let start = sim.broker.borrow().log((Destination::Arm, partition)).start;
    match told {
        // A barrier only fences, with whatever the group has, or the start of the partition.
        Some(told) if changes.has_barrier && told <= after.max(start) => Ok(after),
        Some(told) if told == after || (has_lost_it && told < after) => Ok(after),
        // Nothing was read yet, and what is below the start was removed before anybody could.
        Some(told) if changes.values.is_empty() && (after..=start).contains(&told) => Ok(after),
        Some(_) | None => {
            let detail = format!("partition {partition}: the changelog is at {after}, the group is told {told:?}");
            Err(Violation { id: "INV-POS-1", detail })
        }
    }
}

fn regress(partition: Partition, before: i64, after: i64) -> Violation {
    Violation { id: "INV-POS-1", detail: format!("partition {partition} went back from {before} to {after}") }
}

pub(crate) fn beyond_end(partition: Partition, offset: i64) -> Violation {
    let detail = format!("partition {partition}: the position passes offset {offset}, which does not exist");
    Violation { id: "INV-POS-1", detail }
}

pub(crate) fn passed_open(partition: Partition, offset: i64) -> Violation {
    let detail = format!("partition {partition}: the position passes offset {offset}, whose transaction is open");
    Violation { id: "INV-POS-1", detail }
}
