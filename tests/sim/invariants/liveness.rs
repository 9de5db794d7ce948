//! INV-LIVE-1: when the trouble has ended everything is done in bounded time: each partition has an owner that is running,
//! every command is taken and answered, and every timer that is due has fired.

use punctual::log::Destination;
use punctual::position::Partition;
use punctual::worker::observer::TaskState;

use crate::broker::partition::Fate;
use crate::setting::UNKNOWN_KIND;
use crate::sim::{EPOCH, Millis, Sim, Violation};

/// How long a seal may be there after it has ended.
const SEAL_LINGERS: Millis = 2_000;

/// Returns what is still to be done; `None` if nothing is.
pub(crate) fn unfinished(sim: &Sim) -> Option<String> {
    let broker = sim.broker.borrow();
    let count = broker.partitions[&Destination::Arm];
    for number in 0..count {
        let partition = Partition(number);
        let is_running = |pod: &crate::pod::Pod| pod.state.borrow().tasks.get(&partition) == Some(&TaskState::Running);
        if !sim.pods.iter().any(is_running) {
            return Some(format!("partition {partition} has no running task"));
        }
        let oracle = sim.oracle.borrow();
        let position = oracle.homes.get(&partition).map_or(0, |home| home.position);
        let log = broker.log((Destination::Arm, partition));
        let mut unread = log.entries.range(position.max(log.start)..);
        let unread = unread.find(|(_, entry)| entry.data.is_some() && entry.fate != Fate::Aborted);
        if let Some((offset, _)) = unread {
            return Some(format!("partition {partition}: offset {offset} is not taken, the position is {position}"));
        }
    }
    let oracle = sim.oracle.borrow();
    if let Some((partition, due, name)) = oracle.first_due(|kind| kind != UNKNOWN_KIND)
        && due <= EPOCH + sim.now()
    {
        return Some(format!("partition {partition}: {name:?}, due {}, has not fired", due - EPOCH));
    }
    for (partition, home) in &oracle.homes {
        let ended = |until: i64| until < EPOCH + sim.now() - SEAL_LINGERS;
        if let Some((run, _)) = home.runs.iter().find(|(_, run)| run.sealed_until.is_some_and(ended)) {
            return Some(format!("partition {partition}: the seal of run {run:?} has ended, and is still there"));
        }
        let waiting = home.runs.iter().find(|(_, run)| run.waiting.iter().any(|w| w.correlation.is_some()));
        if let Some((run, model)) = waiting.filter(|_| oracle.answers_missing_until < 0) {
            return Some(format!("partition {partition}: run {run:?} is not answered: {:?}", model.waiting));
        }
    }
    drop(oracle);
    super::remembered::overstayed(sim)
}

/// Returns the violation of whatever is not done in time.
pub(crate) fn violation(detail: String) -> Violation {
    Violation { id: "INV-LIVE-1", detail }
}
