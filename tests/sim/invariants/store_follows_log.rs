//! INV-STORE-2: the store never runs ahead of the log: each row of a batch is what the committed changelog holds below the
//! position that the batch brings the store to (INV-STORE-1).

use bytes::Bytes;
use punctual::log::Destination;
use punctual::position::Partition;
use punctual::store::Batch;
use punctual::wire::key::StateKey;
use punctual::wire::state::Meta;
use punctual::worker::observer::TaskState;

use crate::sim::{Sim, Violation};

pub(crate) fn check_batch(sim: &Sim, pod: usize, partition: Partition, batch: &Batch) -> Result<(), Violation> {
    if partition.0 >= sim.plan.partitions {
        return Ok(());
    }
    let below = batch.header.changelog_position.map_or(0, |position| position.0);
    let rows = batch.timers.iter().map(|change| {
        let body = change.after.as_ref().map(|(_, body)| body.clone());
        (StateKey::Timer(change.key.clone()), body)
    });
    let runs = batch.runs.iter().map(|change| {
        let body = (!change.after.is_empty()).then(|| change.body.clone());
        (StateKey::Run(change.run.clone()), body)
    });
    let ids = batch.remembered.iter().map(|change| {
        let body = change.after.as_ref().map(|(_, body)| body.clone());
        (StateKey::Remembered(change.key.clone()), body)
    });
    for (key, body) in rows.chain(runs).chain(ids) {
        let committed = committed(sim, partition, &key, below);
        // A broker does not always tell where a record is: the store then holds more than its position says.
        if committed != body && body != self::committed(sim, partition, &key, i64::MAX) {
            let detail = format!(
                "partition {partition}: {key:?} is written as {body:?}, below {below} the changelog holds {committed:?}"
            );
            return Err(Violation { id: "INV-STORE-2", detail });
        }
    }
    let task = sim.pods[pod].state.borrow().tasks.get(&partition).copied();
    if !matches!(task, Some(TaskState::CatchingUp | TaskState::Running)) {
        // What compaction has removed was written anew further on, which is not read yet.
        return Ok(());
    }
    let position = |below| {
        let meta = committed(sim, partition, &StateKey::Meta, below).and_then(|value| Meta::decode(&value).ok());
        meta.map(|meta| meta.input_position)
    };
    let (position, latest) = (position(below), position(i64::MAX));
    let written = batch.header.input_position;
    // Who stood still while it restored reads no more what a later owner has written anew, and learns that it has lost the partition.
    let broker = sim.broker.borrow();
    let log = broker.log((Destination::Changelog, partition));
    let is_behind = written < position && !log.is_compacted_below(&StateKey::Meta.encode(), below);
    if is_behind || latest < written {
        let detail = format!(
            "partition {partition}: position {written:?} is written, below {below} the changelog holds {position:?}"
        );
        return Err(Violation { id: "INV-STORE-1", detail });
    }
    Ok(())
}

fn committed(sim: &Sim, partition: Partition, key: &StateKey, below: i64) -> Option<Bytes> {
    let broker = sim.broker.borrow();
    let log = broker.log((Destination::Changelog, partition));
    log.committed_below(&key.encode(), below).and_then(|data| data.value.clone())
}
