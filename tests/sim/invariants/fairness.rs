//! INV-FAIR-1: when nothing is wrong, nobody waits long: a storm of one kind or of one run does not hold up another timer
//! for longer than a bound, and the storm itself is worked off in slices.

use crate::oracle::{Armed, Oracle};
use crate::setting::REFUSED_KIND;
use crate::sim::{EPOCH, Millis, Sim, Violation};

/// Longest lateness in calm times. A slice of a storm takes a transaction of some milliseconds.
const LATENESS_MAX: Millis = 400;
/// What each timer that is due at the same time may add to it.
const EACH: Millis = 12;

/// Notes how late a timer fired, if it was due in calm times.
pub(crate) fn note(oracle: &mut Oracle, sim: &Sim, armed: &Armed) {
    let Some(since) = sim.trouble.borrow().settled_since else { return };
    let due = armed.due - EPOCH;
    if armed.sent >= since && armed.kind != REFUSED_KIND {
        oracle.lateness_max = oracle.lateness_max.max(sim.now() - due.max(armed.sent));
    }
}

/// Notes how late a command was taken, if it was sent in calm times.
pub(crate) fn note_command(oracle: &mut Oracle, sim: &Sim, sent: Millis) {
    let Some(since) = sim.trouble.borrow().settled_since else { return };
    if sent >= since {
        oracle.lateness_max = oracle.lateness_max.max(sim.now() - sent);
    }
}

/// Checks the longest lateness of `storm` timers.
pub(crate) fn check(oracle: &Oracle, storm: u32) -> Result<(), Violation> {
    let bound = LATENESS_MAX + EACH * Millis::from(storm);
    if oracle.lateness_max <= bound {
        return Ok(());
    }
    let detail = format!("{} ms late in calm times, the bound is {bound} ms", oracle.lateness_max);
    Err(Violation { id: "INV-FAIR-1", detail })
}
