//! INV-FORWARD-1: a command on a wrong partition is forwarded once to its own, with the timestamp that it came with, in the
//! transaction that moves past it.

use punctual::position::Partition;

use crate::broker::partition::Data;
use crate::oracle::Oracle;
use crate::sim::Violation;

pub(crate) fn check(
    oracle: &mut Oracle,
    forwards: &[(u64, Partition, Data)],
    mut expected: Vec<(u64, Partition, Data)>,
) -> Result<(), Violation> {
    for (number, to, data) in forwards {
        oracle.counts.forwards += 1;
        let found = expected.iter().position(|(wanted, home, original)| {
            wanted == number && home == to && original.timestamp == data.timestamp
        });
        match found {
            Some(found) => expected.remove(found),
            None => return Err(violation(format!("command {number} was forwarded to {to}: {data:?}"))),
        };
    }
    match expected.first() {
        None => Ok(()),
        Some((number, home, _)) => Err(violation(format!("command {number} was not forwarded to {home}"))),
    }
}

fn violation(detail: String) -> Violation {
    Violation { id: "INV-FORWARD-1", detail }
}
