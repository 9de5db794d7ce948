//! INV-CALENDAR-2: a timer that recurs is dated anew by each fire, to the first occurrence after it, counted from its arming; with a
//! new generation (INV-GEN-1), until it has fired as often as it may. What was missed is one fire.

use std::collections::BTreeMap;

use punctual::position::Partition;
use punctual::timer::model::Timer;
use punctual::wire::fired as names;
use punctual::wire::key::StateKey;
use punctual::wire::state::decode_timer;

use crate::client::WhenAsk;
use crate::invariants::changelog_folds::timer_key;
use crate::murmur::java_partition;
use crate::oracle::parts::{Changes, Fired, text};
use crate::oracle::{Armed, End, Home, TimerName};
use crate::sim::Sim;

/// Takes a fire at the instant `at`, as its process said: the timer is dated anew, or has ended.
pub(crate) fn fired(home: &mut Home, name: &TimerName, at: i64) {
    let Some(armed) = home.end(name, End::Fired) else { return };
    let fired = armed.fired + 1;
    let (interval, count) = match armed.ask.when {
        WhenAsk::Every { interval, count } => (interval, count),
        WhenAsk::At(_) | WhenAsk::After(_) => (0, 1),
    };
    if fired >= count {
        home.remember(name, (End::Fired, armed.generation), armed.kind, (at, at));
        return;
    }
    let passed = (at - armed.anchor) / interval;
    let due = armed.anchor + (passed + 1) * interval;
    let generation = home.next_generation;
    home.next_generation += 1;
    home.put(name.clone(), Armed { generation, due, wake: due, attempts: 0, fired, ..armed });
}

/// Returns the fired records in the order in which their timers fired, as far as that matters: those that are dated anew got their
/// generations in that order. Kinds have topics of their own, between which a transaction has no order.
pub(crate) fn in_order(sim: &Sim, mut fired: Vec<Fired>, changes: &BTreeMap<Partition, Changes>) -> Vec<Fired> {
    fired.sort_by_cached_key(|fired| {
        let named = |name| text(&fired.data.headers, name).unwrap_or("").to_owned();
        let name = ((named(names::TENANT), named(names::RUN)), named(names::TIMER_ID));
        let home = java_partition(format!("{}/{}", name.0.0, name.0.1).as_bytes(), sim.plan.partitions);
        let written = changes.get(&home).and_then(|changes| changes.values.get(&StateKey::Timer(timer_key(&name))));
        let timer = written.and_then(Option::as_ref).and_then(|value| decode_timer(value).ok());
        timer.map_or(u64::MAX, |timer| timer.generation.0)
    });
    fired
}

/// Returns whether a fired record says which occurrence it is, if its timer recurs.
pub(crate) fn is_told(fired: &Fired, armed: &Armed) -> bool {
    let told = text(&fired.data.headers, names::OCCURRENCE);
    let expected = recurs(armed).then(|| (armed.fired + 1).to_string());
    told == expected.as_deref()
}

/// Returns whether the stored timer recurs as it is promised.
pub(crate) fn is_stored(armed: &Armed, timer: &Timer) -> bool {
    let stored = timer.recurring.as_ref().map(|recurring| recurring.fired);
    stored == recurs(armed).then_some(armed.fired)
}

/// Returns whether the timer is one that recurs.
pub(crate) fn recurs(armed: &Armed) -> bool {
    matches!(armed.ask.when, WhenAsk::Every { .. })
}
