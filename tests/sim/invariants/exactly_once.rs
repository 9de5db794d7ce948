//! INV-ONCE-1: each accepted timer that is not disarmed fires exactly once in the committed output, as it was armed, and its
//! outbox records with it. INV-DISARM-1: a disarm that committed before the fire means no fire.

use bytes::Bytes;
use punctual::log::Destination;
use punctual::position::Partition;
use punctual::time::Timestamp;
use punctual::timer::model::Header;
use punctual::wire::fired as names;

use crate::broker::partition::Data;
use crate::invariants::{claims, recurring};
use crate::murmur::java_partition;
use crate::oracle::judge::kind_name;
use crate::oracle::parts::{Fired, text};
use crate::oracle::{Armed, End, Oracle, TimerName};
use crate::setting::kind_number;
use crate::sim::{Sim, Violation};

/// How many headers a fired record has before those of the arm.
const OWN_HEADERS: usize = 15;

/// A timer that fired.
pub(crate) struct Taken {
    pub(crate) home: Partition,
    pub(crate) name: TimerName,
    pub(crate) armed: Armed,
}

/// Takes a fired record from the promise, and its outbox records from `outbox`.
pub(crate) fn check(
    oracle: &mut Oracle,
    sim: &Sim,
    fired: &Fired,
    outbox: &mut Vec<(Destination, Data)>,
) -> Result<Taken, Violation> {
    let headers = &fired.data.headers;
    let named = |name| text(headers, name).unwrap_or("").to_owned();
    let name = ((named(names::TENANT), named(names::RUN)), named(names::TIMER_ID));
    let generation = named(names::GENERATION).parse::<u64>().unwrap_or(0);
    let routing = format!("{}/{}", name.0.0, name.0.1);
    let home = java_partition(routing.as_bytes(), sim.plan.partitions);
    let model = oracle.homes.entry(home).or_default();
    let armed = model.timers.get(&name).filter(|armed| armed.generation == generation);
    let Some(armed) = armed.cloned() else {
        let end = model.ended.get(&(name.clone(), generation));
        let id = if end == Some(&End::Fired) { "INV-ONCE-1" } else { "INV-DISARM-1" };
        let now = model.timers.get(&name).map(|armed| armed.generation);
        let detail = format!("{name:?}/{generation} fires, but it has ended: {end:?}; armed now is {now:?}");
        return Err(Violation { id: if end.is_none() { "INV-ONCE-1" } else { id }, detail });
    };
    check_record(sim, fired, &routing, &name, &armed)?;
    for record in &armed.ask.outbox {
        let to = Destination::Outbox(kind_number(armed.kind));
        let found = outbox.iter().position(|(topic, data)| {
            *topic == to && data.key == record.key && data.value == record.value && data.headers == record.headers
        });
        match found {
            Some(found) => outbox.remove(found),
            None => return Err(violation(format!("{name:?}/{generation} fires without outbox record {record:?}"))),
        };
    }
    let at = text(&fired.data.headers, names::FIRED).and_then(|text| Timestamp::parse(text).ok());
    claims::delivered(model, &name, at.map_or(-1, Timestamp::as_millis))?;
    Ok(Taken { home, name, armed })
}

/// Checks that no outbox record is left over.
pub(crate) fn check_outbox(left: &[(Destination, Data)]) -> Result<(), Violation> {
    if left.is_empty() { Ok(()) } else { Err(violation(format!("outbox records without a fire: {left:?}"))) }
}

/// Returns whether the record is that of this version of a timer.
pub(crate) fn is_of(fired: &Fired, name: &TimerName, generation: u64) -> bool {
    let headers = &fired.data.headers;
    text(headers, names::TENANT) == Some(&name.0.0)
        && text(headers, names::RUN) == Some(&name.0.1)
        && text(headers, names::TIMER_ID) == Some(&name.1)
        && text(headers, names::GENERATION) == Some(&generation.to_string())
}

fn check_record(sim: &Sim, fired: &Fired, routing: &str, name: &TimerName, armed: &Armed) -> Result<(), Violation> {
    let Armed { generation, kind, ask, .. } = armed;
    let key = ask.key.clone().unwrap_or_else(|| Bytes::from(routing.to_owned()));
    let count = sim.broker.borrow().partitions[&fired.topic];
    let is_right = fired.topic == Destination::Fired(kind_number(*kind))
        && fired.partition == java_partition(&key, count)
        && fired.data.key.as_ref() == Some(&key)
        && fired.data.value == ask.payload
        && own_headers(&fired.data.headers, armed)
        && recurring::is_told(fired, armed)
        && text(&fired.data.headers, names::CE_ID) == Some(&format!("{routing}/{}/{generation}", name.1))
        && text(&fired.data.headers, names::KIND) == kind_name(*kind)
        && text(&fired.data.headers, names::ATTEMPT) == Some(&claims::next_attempt(armed).to_string());
    if is_right { Ok(()) } else { Err(violation(format!("{name:?} was armed as {armed:?}, and fired as {fired:?}"))) }
}

fn own_headers(headers: &[Header], armed: &Armed) -> bool {
    let own = OWN_HEADERS + usize::from(recurring::recurs(armed));
    headers.get(own..) == Some(&armed.ask.headers[..])
}

fn violation(detail: String) -> Violation {
    Violation { id: "INV-ONCE-1", detail }
}
