//! INV-OWNER-2: nothing is seen of a process that another has followed: behind the barrier of the next owner of a partition
//! no record of the one before is committed. What stands before the barrier may be decided after it: the next owner waits for
//! that, since a committed reader does not see the barrier until then (D11, D17, D18, R24).

use crate::oracle::Oracle;
use crate::oracle::parts::Parts;
use crate::sim::Violation;

pub(crate) fn check(oracle: &mut Oracle, parts: &Parts, owner: u64) -> Result<(), Violation> {
    for (partition, changes) in &parts.changes {
        let home = oracle.homes.entry(*partition).or_default();
        if changes.has_barrier && changes.last < home.barrier {
            // The barrier of the one before, decided late (R24): it stands in front, and changes nothing.
        } else if changes.has_barrier {
            home.owner = owner;
            home.barrier = changes.last;
        } else if home.owner != owner && home.barrier < changes.last {
            let detail = format!(
                "process {owner} changed partition {partition} behind the barrier of process {}: {changes:?}",
                home.owner
            );
            return Err(Violation { id: "INV-OWNER-2", detail });
        }
    }
    Ok(())
}
