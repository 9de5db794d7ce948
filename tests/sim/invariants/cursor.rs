//! INV-CURSOR-1: a kind's cursor never passes a row that is there, one that cannot be decoded neither (N1, N11, R25).

use punctual::position::Partition;
use punctual::store::Store;
use punctual::store::memory::MemoryStore;
use punctual::time::Timestamp;
use punctual::timer::model::DueKey;

use crate::setting::all_kinds;
use crate::sim::Violation;

/// Checks a store behind each batch.
pub(crate) fn check(partition: Partition, store: &MemoryStore) -> Result<(), Violation> {
    for kind in all_kinds() {
        let Some(cursor) = store.header().cursors.get(&kind) else { continue };
        let first = store.due_keys(kind, DueKey::MIN, Timestamp::MAX, 1).expect("memory can be read");
        if let Some(passed) = first.first().filter(|first| *first < cursor) {
            let detail = format!("partition {partition}, kind {kind}: the cursor {cursor:?} has passed {passed:?}");
            return Err(Violation { id: "INV-CURSOR-1", detail });
        }
    }
    Ok(())
}
