//! INV-FENCE-1: every partition whose records are in a transaction has a valid position in it.

use crate::broker::transactions::Decision;
use crate::oracle::parts::Parts;
use crate::sim::Violation;

pub(crate) fn check(parts: &Parts, decision: &Decision) -> Result<(), Violation> {
    let unfenced = parts.changes.keys().find(|partition| !decision.positions.contains_key(partition));
    match unfenced {
        None if !decision.positions.is_empty() => Ok(()),
        None => Err(violation("a transaction has no position".to_owned())),
        Some(partition) => Err(violation(format!("records of partition {partition} are not fenced"))),
    }
}

fn violation(detail: String) -> Violation {
    Violation { id: "INV-FENCE-1", detail }
}
