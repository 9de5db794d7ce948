//! INV-CURSOR-1: a kind's cursor never passes a row that is in the store, be it one that cannot be decoded.

use punctual::position::Partition;
use punctual::store::Store;
use punctual::time::Timestamp;
use punctual::timer::model::DueKey;

use crate::sim::Violation;

pub(crate) fn check(partition: Partition, store: &impl Store) -> Result<(), Violation> {
    for (kind, cursor) in &store.header().cursors {
        let rows = store.due_keys(*kind, DueKey::MIN, Timestamp::MAX, 1).expect("memory can be read");
        if let Some(first) = rows.first().filter(|first| *first < cursor) {
            let detail = format!("partition {partition}: the cursor {cursor:?} of kind {kind} has passed {first:?}");
            return Err(Violation { id: "INV-CURSOR-1", detail });
        }
    }
    Ok(())
}
