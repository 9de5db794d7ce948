//! INV-EXPIRE-1: a timer whose kind expires fires no later than it may; later it is a dead letter instead, once, and nothing sooner. One
//! that recurs goes on with its next occurrence.

use punctual::position::Partition;
use punctual::time::Timestamp;
use punctual::wire::{dead_letter, fired as names};

use crate::broker::partition::Data;
use crate::invariants::{claims, recurring};
use crate::murmur::java_partition;
use crate::oracle::happening::{Happening, name_of};
use crate::oracle::parts::text;
use crate::oracle::settle::Writer;
use crate::oracle::{Armed, Oracle, TimerName};
use crate::setting::expires_after;
use crate::sim::{EPOCH, Millis, Sim, Violation};

/// Returns whether a dead letter is that of a timer.
pub(crate) fn is_expiry(letter: &Data) -> bool {
    let reason = text(&letter.headers, dead_letter::REASON);
    reason == Some(dead_letter::TOO_LATE) || reason == Some(dead_letter::ATTEMPTS_EXHAUSTED)
}

/// Checks that a timer which fired was not too late, by its process's own word.
pub(crate) fn check(armed: &Armed, data: &Data) -> Result<(), Violation> {
    match expires_after(armed.kind) {
        Some(most) if lateness(armed, data) > most => {
            Err(violation(format!("fires {} ms late: {armed:?}", lateness(armed, data))))
        }
        Some(_) | None => Ok(()),
    }
}

/// Takes the dead letter of a timer. Returns the timer.
pub(crate) fn expired(
    oracle: &mut Oracle,
    sim: &Sim,
    letter: &Data,
    writer: &Writer,
) -> Result<(Partition, TimerName), Violation> {
    if text(&letter.headers, dead_letter::REASON) == Some(dead_letter::ATTEMPTS_EXHAUSTED) {
        return claims::expired(oracle, sim, letter);
    }
    let name = name_of(&Happening::Expired(letter.clone())).expect("each letter has headers");
    let partition = java_partition(format!("{}/{}", name.0.0, name.0.1).as_bytes(), sim.plan.partitions);
    let home = oracle.homes.entry(partition).or_default();
    let generation = text(&letter.headers, names::GENERATION).unwrap_or_default();
    let Some(armed) = home.timers.get(&name).filter(|armed| armed.generation.to_string() == generation) else {
        return Err(violation(format!("{name:?}/{generation} expires, and is not armed")));
    };
    let at = said(letter, names::FIRED);
    let is_due = expires_after(armed.kind).is_some_and(|most| lateness(armed, letter) > most);
    if !is_due || at > EPOCH + sim.now() + writer.skew.high || letter.value != armed.ask.payload {
        return Err(violation(format!("{name:?} expires at {} as {letter:?}, promised was {armed:?}", at - EPOCH)));
    }
    oracle.counts.letters += 1;
    recurring::fired(home, &name, at);
    Ok((partition, name))
}

/// Returns how late a record of a timer is: counted from its due, or from its arming if that was later.
fn lateness(armed: &Armed, data: &Data) -> Millis {
    let since = said(data, names::ARMED).clamp(armed.at.0, armed.at.1).max(armed.due);
    said(data, names::FIRED) - since
}

fn said(data: &Data, name: &str) -> i64 {
    let instant = text(&data.headers, name).and_then(|text| Timestamp::parse(text).ok());
    instant.map_or(-1, Timestamp::as_millis)
}

fn violation(detail: String) -> Violation {
    Violation { id: "INV-EXPIRE-1", detail }
}
