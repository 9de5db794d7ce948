//! Pauses and resumes, as they are promised.
//!
//! Owns what may be answered, and what follows. Keeps: of a timer whose handler fails nobody has seen whether an attempt went before,
//! which decides what a resume owes; the answer says it, and what was written.

use super::judge::{Verdict, When, name_of};
use super::settle::{Place, shows};
use super::{Armed, Home, TimerName};
use crate::client::{Ask, Spec};
use crate::handlers::failures_of;
use crate::invariants::recurring;
use crate::setting::{Delivery, delivery_of};

/// Returns all that may come of a pause or a resume; `None` if the command is neither.
pub(crate) fn verdicts(home: &Home, spec: &Spec, when: &When) -> Option<Vec<Verdict>> {
    let (id, wanted, is_pause) = match &spec.ask {
        Ask::Pause { id, generation } => (id, generation, true),
        Ask::Resume { id, generation } => (id, generation, false),
        Ask::Arm(_) | Ask::Disarm { .. } | Ask::DisarmRun | Ask::SealRun { .. } | Ask::Garbage(_) => return None,
    };
    let Some(timer) = home.timers.get(&name_of(spec, id)) else {
        return Some(vec![Verdict::NotFound { is_noted: false }]);
    };
    let generation = timer.generation;
    if wanted.is_some_and(|wanted| wanted != generation) {
        return Some(vec![Verdict::Changed { generation }]);
    }
    let mut found = match (is_pause, timer.is_paused) {
        (true, _) => vec![Verdict::Paused { generation }],
        (false, false) => vec![Verdict::NotPaused { generation }],
        (false, true) => resumed(home, timer, when.recorded),
    };
    if when.has_corrupt_rows {
        // What cannot be read stays as it is.
        found.push(Verdict::Rejected { reason: "unreadable" });
    }
    Some(found)
}

fn resumed(home: &Home, timer: &Armed, at: i64) -> Vec<Verdict> {
    let owed = Verdict::Resumed { generation: timer.generation, due: timer.due };
    let Some(next) = recurring::next(timer, at).filter(|_| timer.due < at) else { return vec![owed] };
    let skipped = Verdict::Resumed { generation: home.next_generation, due: next };
    let may_have_failed = delivery_of(timer.kind) == Delivery::Flaky && failures_of(timer.generation) > 0;
    if may_have_failed { vec![skipped, owed] } else { vec![skipped] }
}

/// The timer is held.
pub(crate) fn pause(home: &mut Home, name: &TimerName) {
    if let Some(timer) = home.timers.get_mut(name) {
        timer.is_paused = true;
        home.dues.remove(&(timer.wake, name.clone()));
    }
}

/// The timer goes on, not before the instant `at`.
pub(crate) fn resume(home: &mut Home, name: &TimerName, (generation, due): (u64, i64), at: i64) {
    let Some(timer) = home.timers.get_mut(name) else { return };
    timer.is_paused = false;
    if generation != timer.generation {
        home.next_generation += 1;
        (timer.generation, timer.due, timer.wake) = (generation, due, due);
    }
    timer.wake = timer.wake.max(at);
    home.dues.insert((timer.wake, name.clone()));
}

/// Returns whether a transaction shows that a timer was resumed as this version, where nobody is answered.
pub(crate) fn is_done(verdict: &Verdict, spec: &Spec, at: &Place<'_>) -> bool {
    let (Verdict::Resumed { generation, .. }, Ask::Resume { id, .. }) = (verdict, &spec.ask) else { return true };
    shows(at, &name_of(spec, id), *generation)
}
