//! INV-HANDLER-1: what a handler returns takes effect once, with its fire: the timer that it dates anew is a new version with its new
//! payload, and no event goes out; the timers that it arms and disarms are armed and gone.

use bytes::Bytes;
use punctual::position::Partition;
use punctual::wire::fired as names;

use crate::broker::partition::Data;
use crate::client::{ArmAsk, KindAsk, WhenAsk};
use crate::handlers::{self, CHAINED, CHAINED_KIND, CHAINED_PAUSE, DATED, DATED_PAUSE, VERSION};
use crate::invariants::exactly_once::Taken;
use crate::murmur::java_partition;
use crate::oracle::happening::{Happening, name_of};
use crate::oracle::parts::{Fired, text};
use crate::oracle::settle::Writer;
use crate::oracle::{Armed, End, Oracle, TimerName};
use crate::setting::{DATED_KIND, Delivery, delivery_of};
use crate::sim::{EPOCH, Sim, Violation};

/// Takes a timer that its handler dated anew. Returns the timer.
pub(crate) fn dated(
    oracle: &mut Oracle,
    sim: &Sim,
    data: &Data,
    writer: &Writer,
) -> Result<(Partition, TimerName), Violation> {
    let number = |name| text(&data.headers, name).and_then(|text| text.parse::<i64>().ok()).unwrap_or(-1);
    let (at, version) = (number(DATED), number(VERSION));
    let name = name_of(&Happening::Dated(data.clone())).ok_or_else(|| violation(format!("no timer: {data:?}")))?;
    let partition = java_partition(format!("{}/{}", name.0.0, name.0.1).as_bytes(), sim.plan.partitions);
    let home = oracle.homes.entry(partition).or_default();
    let armed = home.timers.get(&name).filter(|armed| i64::try_from(armed.generation) == Ok(version));
    let Some(armed) = armed.cloned() else {
        let end = home.ended.get(&(name.clone(), version.unsigned_abs()));
        return Err(violation(format!("{name:?}/{version} is dated anew, but it has ended: {end:?}")));
    };
    let payload = handlers::dated(armed.ask.payload.as_ref()).filter(|_| armed.kind == DATED_KIND);
    let Some(payload) = payload.filter(|_| armed.wake <= at && at <= EPOCH + sim.now() + writer.skew.high) else {
        return Err(violation(format!("{name:?} is dated anew at {}: {armed:?}", at - EPOCH)));
    };
    home.end(&name, End::Dated);
    let generation = home.next_generation;
    home.next_generation += 1;
    let due = at + DATED_PAUSE;
    let ask = ArmAsk { payload: Some(payload), ..armed.ask.clone() };
    home.put(name.clone(), Armed { generation, due, wake: due, attempts: 0, ask, ..armed });
    Ok((partition, name))
}

/// Checks that a timer which is to be dated anew does not fire instead, and takes what the handler of one that fired did to others.
/// Returns those.
pub(crate) fn fired(oracle: &mut Oracle, taken: &Taken, fired: &Fired) -> Result<Vec<TimerName>, Violation> {
    let armed = &taken.armed;
    if armed.kind == DATED_KIND && handlers::dated(armed.ask.payload.as_ref()).is_some() {
        return Err(violation(format!("{:?} fires, and was to be dated anew: {armed:?}", taken.name)));
    }
    if delivery_of(armed.kind) != Delivery::Chained {
        return Ok(Vec::new());
    }
    let at = text(&fired.data.headers, names::FIRED).and_then(|text| punctual::time::Timestamp::parse(text).ok());
    let at = at.map_or(-1, punctual::time::Timestamp::as_millis);
    let (run, (next, stop)) = (&taken.name.0, handlers::chained(&taken.name.1));
    let home = oracle.homes.entry(taken.home).or_default();
    home.end(&(run.clone(), stop.clone()), End::Disarmed);
    let is_sealed = home.runs.get(run).and_then(|run| run.sealed_until).is_some_and(|until| at < until);
    if !is_sealed {
        let ask = ArmAsk {
            id: next.clone(),
            kind: KindAsk::Name(CHAINED_KIND.1),
            when: WhenAsk::After(CHAINED_PAUSE),
            is_replacing: true,
            payload: Some(Bytes::from_static(CHAINED)),
            key: None,
            headers: Vec::new(),
            outbox: Vec::new(),
        };
        let (generation, due) = (home.next_generation, at + CHAINED_PAUSE);
        home.next_generation += 1;
        let (kind, sent) = (CHAINED_KIND.0, armed.sent);
        let timer = Armed {
            generation,
            due,
            wake: due,
            is_paused: false,
            attempts: 0,
            kind,
            at: (at, at),
            ask,
            anchor: at,
            fired: 0,
            sent,
        };
        home.put((run.clone(), next.clone()), timer);
    }
    Ok(vec![(run.clone(), next), (run.clone(), stop)])
}

fn violation(detail: String) -> Violation {
    Violation { id: "INV-HANDLER-1", detail }
}
