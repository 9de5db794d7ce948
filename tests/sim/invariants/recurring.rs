//! INV-CALENDAR-2: a timer that recurs is dated anew by each fire, to the first occurrence after it, counted from its arming; with a
//! new generation (INV-GEN-1), until it has fired as often as it may. What was missed is one fire.

use punctual::timer::model::Timer;
use punctual::wire::fired as names;

use crate::client::WhenAsk;
use crate::oracle::parts::{Fired, text};
use crate::oracle::{Armed, End, Home, TimerName};

/// Takes a fire at the instant `at`, as its process said: the timer is dated anew, or has ended.
pub(crate) fn fired(home: &mut Home, name: &TimerName, at: i64) {
    let Some(armed) = home.end(name, End::Fired) else { return };
    let count = match armed.ask.when {
        WhenAsk::Every { count, .. } | WhenAsk::Cron { count, .. } => count,
        WhenAsk::At(_) | WhenAsk::After(_) => 1,
    };
    let fired = armed.fired + 1;
    let Some(due) = next(&armed, at).filter(|_| fired < count) else {
        home.remember(name, (End::Fired, armed.generation), armed.kind, (at, at));
        return;
    };
    let generation = home.next_generation;
    home.next_generation += 1;
    home.put(name.clone(), Armed { generation, due, wake: due, attempts: 0, fired, ..armed });
}

/// Returns the first occurrence after an instant, if the timer recurs.
pub(crate) fn next(armed: &Armed, at: i64) -> Option<i64> {
    let (anchor, interval) = match armed.ask.when {
        WhenAsk::Every { interval, .. } => (armed.anchor, interval),
        // Each minute is a whole number of steps, and so is the time since 1970.
        WhenAsk::Cron { seconds, .. } => (0, seconds * 1_000),
        WhenAsk::At(_) | WhenAsk::After(_) => return None,
    };
    let passed = (at - anchor) / interval;
    Some(anchor + (passed + 1) * interval)
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
    matches!(armed.ask.when, WhenAsk::Every { .. } | WhenAsk::Cron { .. })
}
