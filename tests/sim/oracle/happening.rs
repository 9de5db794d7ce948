//! What time did to timers in a transaction: fires, expiries, and timers that their handlers dated anew.
//!
//! Owns their order, as far as it matters. Kinds have topics of their own, between which a transaction has none; what gave
//! generations shows them in the changelog. Keeps: who gave none comes first, since a handler's commands follow its own fire.

use std::collections::BTreeMap;

use punctual::position::Partition;
use punctual::wire::fired as names;
use punctual::wire::key::StateKey;
use punctual::wire::state::decode_timer;

use super::TimerName;
use super::parts::{Changes, Fired, text};
use crate::broker::partition::Data;
use crate::handlers::{DATED, chained};
use crate::invariants::changelog_folds::timer_key;
use crate::murmur::java_partition;
use crate::setting::{Delivery, KINDS};
use crate::sim::Sim;

/// What time did to one timer.
pub(crate) enum Happening {
    Fired(Fired),
    /// Its dead letter.
    Expired(Data),
    /// The record that its handler sent with it.
    Dated(Data),
}

/// Returns the happenings of a transaction in order.
pub(crate) fn in_order(sim: &Sim, mut all: Vec<Happening>, changes: &BTreeMap<Partition, Changes>) -> Vec<Happening> {
    let generation = |name: &TimerName| {
        let home = java_partition(format!("{}/{}", name.0.0, name.0.1).as_bytes(), sim.plan.partitions);
        let value = changes.get(&home)?.values.get(&StateKey::Timer(timer_key(name)))?.as_ref()?;
        Some(decode_timer(value).ok()?.generation.0)
    };
    all.sort_by_cached_key(|happening| {
        let Some(name) = name_of(happening) else { return 0 };
        // A handler may have armed another timer under the name of one that fired before.
        let own = generation(&name).filter(|_| goes_on(happening));
        let given = if is_chained(happening) {
            own.into_iter().chain(generation(&(name.0, chained(&name.1).0))).min()
        } else {
            own
        };
        given.unwrap_or(0)
    });
    all
}

/// Returns whether a record says that a timer was dated anew.
pub(crate) fn is_dating(data: &Data) -> bool {
    text(&data.headers, DATED).is_some()
}

/// Returns the timer that a happening is about.
pub(crate) fn name_of(happening: &Happening) -> Option<TimerName> {
    match happening {
        Happening::Fired(Fired { data, .. }) | Happening::Expired(data) => {
            let named = |name| text(&data.headers, name).unwrap_or("").to_owned();
            Some(((named(names::TENANT), named(names::RUN)), named(names::TIMER_ID)))
        }
        Happening::Dated(data) => {
            let key = std::str::from_utf8(data.key.as_ref()?).ok()?;
            let (tenant, rest) = key.split_once('/')?;
            let (run, id) = rest.split_once('/')?;
            Some(((tenant.to_owned(), run.to_owned()), id.to_owned()))
        }
    }
}

/// Returns whether the timer of a happening lives on, under a new generation if it has not had its last occurrence.
fn goes_on(happening: &Happening) -> bool {
    match happening {
        Happening::Fired(Fired { data, .. }) | Happening::Expired(data) => {
            text(&data.headers, names::OCCURRENCE).is_some()
        }
        Happening::Dated(_) => true,
    }
}

fn is_chained(happening: &Happening) -> bool {
    let Happening::Fired(fired) = happening else { return false };
    let kind = text(&fired.data.headers, names::KIND);
    KINDS.iter().any(|row| row.delivery == Delivery::Chained && Some(row.name) == kind)
}
