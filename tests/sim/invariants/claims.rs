//! INV-CLAIM-1: a claimed timer is delivered again when its lease runs out, never earlier, with the next number; after the last
//! attempt it is a dead letter, once. The same for a handler that fails: the attempts that did not go out are counted.

use punctual::position::Partition;
use punctual::timer::model::Timer;
use punctual::wire::fired as names;

use crate::broker::partition::Data;
use crate::handlers::failures_of;
use crate::invariants::recurring;
use crate::murmur::java_partition;
use crate::oracle::parts::text;
use crate::oracle::{Armed, End, Home, Oracle, TimerName};
use crate::setting::{Delivery, delivery_of};
use crate::sim::{EPOCH, Sim, Violation};

/// Returns the number that the next fired record of a timer carries.
pub(crate) fn next_attempt(armed: &Armed) -> u32 {
    match delivery(armed) {
        Delivery::Once | Delivery::Dated | Delivery::Chained => 1,
        Delivery::Claim { .. } => armed.attempts + 1,
        Delivery::Flaky => failures_of(armed.generation) + 1,
    }
}

/// Returns how a timer is delivered. One that recurs, and was armed before its kind was known to deliver by claim, is not claimed.
fn delivery(armed: &Armed) -> Delivery {
    match delivery_of(armed.kind) {
        Delivery::Claim { .. } if recurring::recurs(armed) => Delivery::Once,
        other @ (Delivery::Once | Delivery::Claim { .. } | Delivery::Flaky | Delivery::Dated | Delivery::Chained) => {
            other
        }
    }
}

/// Takes a delivery at the instant `at`, as its process said: the timer is held, or has ended.
pub(crate) fn delivered(home: &mut Home, name: &TimerName, at: i64) -> Result<(), Violation> {
    let Some(armed) = home.timers.get(name) else { return Ok(()) };
    match delivery(armed) {
        Delivery::Once | Delivery::Flaky | Delivery::Dated | Delivery::Chained => {
            recurring::fired(home, name, at);
            Ok(())
        }
        Delivery::Claim { lease, attempts_max } => {
            if at < armed.wake {
                return Err(violation(format!(
                    "{name:?} is held until {}, and fires at {}",
                    armed.wake - EPOCH,
                    at - EPOCH
                )));
            }
            if armed.attempts >= attempts_max {
                return Err(violation(format!("{name:?} fires for the time {} of {attempts_max}", armed.attempts + 1)));
            }
            home.hold(name, at + lease);
            Ok(())
        }
    }
}

/// Takes a letter of a timer that was delivered as often as it may be. Returns the timer.
pub(crate) fn expired(oracle: &mut Oracle, sim: &Sim, letter: &Data) -> Result<(Partition, TimerName), Violation> {
    let named = |name| text(&letter.headers, name).unwrap_or("").to_owned();
    let name = ((named(names::TENANT), named(names::RUN)), named(names::TIMER_ID));
    let routing = format!("{}/{}", name.0.0, name.0.1);
    let partition = java_partition(routing.as_bytes(), sim.plan.partitions);
    let home = oracle.homes.entry(partition).or_default();
    let Some(armed) = home.timers.get(&name).filter(|armed| armed.generation.to_string() == named(names::GENERATION))
    else {
        return Err(violation(format!("{name:?} expires, and is not armed: {letter:?}")));
    };
    let is_due =
        matches!(delivery_of(armed.kind), Delivery::Claim { attempts_max, .. } if armed.attempts == attempts_max);
    let at = punctual::time::Timestamp::parse(&named(names::FIRED)).map_or(-1, punctual::time::Timestamp::as_millis);
    if !is_due || at < armed.wake || letter.value != armed.ask.payload {
        return Err(violation(format!("{name:?} expires as {letter:?}, promised was {armed:?}")));
    }
    oracle.counts.letters += 1;
    if let Some(armed) = home.end(&name, End::Expired) {
        home.remember(&name, (End::Expired, armed.generation), armed.kind, (at, at));
    }
    Ok((partition, name))
}

/// Returns whether wake, attempts and lease of a stored timer are those of the promise.
pub(crate) fn is_held(armed: &Armed, timer: &Timer) -> bool {
    let wake = timer.wake.as_millis();
    match delivery(armed) {
        Delivery::Once | Delivery::Dated | Delivery::Chained => {
            wake == armed.wake && timer.attempt == 0 && timer.claim.is_none()
        }
        // A row of a release that did not know the kind has no lease before its first delivery.
        Delivery::Claim { .. } => {
            wake == armed.wake && timer.attempt == armed.attempts && (timer.claim.is_some() || timer.attempt == 0)
        }
        Delivery::Flaky => {
            let rests = i64::from(timer.attempt) * 5_000;
            timer.attempt <= failures_of(armed.generation)
                && wake >= armed.due + rests
                && (timer.attempt > 0 || rests == 0)
        }
    }
}

fn violation(detail: String) -> Violation {
    Violation { id: "INV-CLAIM-1", detail }
}
