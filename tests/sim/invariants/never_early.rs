//! INV-FIRE-1: no timer fires before its due: not by the process's own word, and not by the true time, as far as its clock
//! may be believed.

use punctual::time::Timestamp;
use punctual::wire::fired as names;

use crate::oracle::Armed;
use crate::oracle::parts::{Fired, text};
use crate::oracle::settle::Writer;
use crate::plan::Fault;
use crate::setting::{SKEW, STEP_MAX};
use crate::sim::{EPOCH, Millis, Sim, Violation};

/// How far a clock may be ahead and be believed: a step that needs no confirmation, of a clock that was ahead a little.
const AHEAD_MAX: Millis = STEP_MAX + SKEW;

pub(crate) fn check(sim: &Sim, armed: &Armed, fired: &Fired, writer: &Writer) -> Result<(), Violation> {
    let instant = |name| text(&fired.data.headers, name).and_then(|text| Timestamp::parse(text).ok());
    let said = |name| instant(name).map_or(-1, Timestamp::as_millis);
    let violation = |detail: String| Err(Violation { id: "INV-FIRE-1", detail });
    let (due, at) = (said(names::DUE), said(names::FIRED));
    if due != armed.due {
        return violation(format!("due {} fired as due {due}: {armed:?}", armed.due - EPOCH));
    }
    if at < due {
        return violation(format!("due {} fired at {}", due - EPOCH, at - EPOCH));
    }
    let has_bad_clock = sim.plan.has(Fault::ClockStep) || sim.plan.has(Fault::ClockSkew);
    let ahead_max = if has_bad_clock { AHEAD_MAX } else { 0 };
    let now = EPOCH + sim.now();
    if now < due - ahead_max {
        return violation(format!("due {} fired at the true time {}", due - EPOCH, sim.now()));
    }
    if at > now + writer.skew.high {
        return violation(format!("fired at {}, which no clock has shown yet at {}", at - EPOCH, sim.now()));
    }
    let said_armed = said(names::ARMED);
    if said_armed < armed.at.0 || armed.at.1 < said_armed {
        return violation(format!("armed at {} of {:?}", said_armed - EPOCH, armed.at));
    }
    Ok(())
}
