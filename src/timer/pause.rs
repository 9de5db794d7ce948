//! Holds a timer, and lets it go on: pause and resume.
//!
//! ```text
//!   armed, held, resting ──pause──▶ paused: parked behind all instants ──resume──▶ as before, not before the resume
//!                                   (due, wake, attempt, recurrence stay)     └──▶ recurs, due has passed: the next occurrence, or gone
//! ```
//!
//! Owns the judging of both commands. Never lets fire what was missed: a resumed timer that recurs goes on with the next occurrence,
//! unless one was attempted before and is owed. Keeps: a paused timer has no wake, and a resume moves no due but to a later
//! occurrence, under a new generation (INV-PAUSE-1); what fires at once after a resume is as late as the resume, not as its due.

use super::apply::{Context, live_timer};
use super::identity::TimerKey;
use super::model::{Ending, Generation, Timer};
use super::outcome::{Mutation, Outcome, Reason, Rejection, Verdict};
use super::recurring;
use super::remember;
use super::view::View;
use crate::planted::{Bug, is_on};
use crate::time::Timestamp;

/// Judges a pause.
pub(super) fn pause<V: View>(
    view: &V,
    key: &TimerKey,
    wanted: Option<Generation>,
    context: &Context<'_>,
    outcome: &mut Outcome,
) -> Result<Verdict, V::Error> {
    let timer = match find(view, key, wanted.filter(|_| !is_on(Bug::PauseIgnoresGeneration)))? {
        Ok(timer) => timer,
        Err(verdict) => return Ok(verdict),
    };
    let generation = timer.generation;
    if timer.paused.is_none() {
        let previous = Some(timer.located());
        let timer = Box::new(Timer { paused: Some(context.time_of_command()), ..timer });
        outcome.mutations.push(Mutation::Put { timer, previous });
    }
    Ok(Verdict::Paused { generation })
}

/// Judges a resume.
pub(super) fn resume<V: View>(
    view: &V,
    key: &TimerKey,
    wanted: Option<Generation>,
    context: &Context<'_>,
    outcome: &mut Outcome,
) -> Result<Verdict, V::Error> {
    let timer = match find(view, key, wanted)? {
        Ok(timer) => timer,
        Err(verdict) => return Ok(verdict),
    };
    let generation = timer.generation;
    if timer.paused.is_none() {
        return Ok(Verdict::NotPaused { generation });
    }
    let previous = timer.located();
    let Some(resumed) = resumed(&timer, context.time_of_command(), context.next_generation) else {
        outcome.mutations.push(Mutation::Remove { key: key.clone(), previous });
        let kind = context.registry.get(timer.kind);
        outcome.mutations.extend(remember::ended(view, key, kind, Ending::Disarmed(generation), context.now)?);
        return Ok(Verdict::Ended { generation });
    };
    let verdict = Verdict::Resumed { generation: resumed.generation, due: resumed.due };
    outcome.mutations.push(Mutation::Put { timer: Box::new(resumed), previous: Some(previous) });
    Ok(verdict)
}

/// Returns the timer that a command is about, or the verdict if there is none.
fn find<V: View>(view: &V, key: &TimerKey, wanted: Option<Generation>) -> Result<Result<Timer, Verdict>, V::Error> {
    let found = view.locate(key)?;
    let Some(located) = live_timer(view, key, found)? else {
        return Ok(Err(Verdict::NotFound));
    };
    let armed = located.at.generation;
    if wanted.is_some_and(|wanted| wanted != armed) {
        return Ok(Err(Verdict::Changed { generation: armed }));
    }
    Ok(view.timer(located)?.ok_or_else(|| {
        let detail = format!(
            "timer {key} is stored and cannot be read, so it stays as it is; disarm it, or arm it with replace"
        );
        Verdict::Rejected(Rejection::new(Reason::Unreadable, detail))
    }))
}

/// Returns the timer as a resume at `at` leaves it; `None` if it recurs and has no occurrence left.
fn resumed(timer: &Timer, at: Timestamp, next_generation: Generation) -> Option<Timer> {
    let timer = Timer { paused: None, wake: timer.wake.max(at), ..timer.clone() };
    // An occurrence that was attempted was due before the pause: it is owed still.
    let is_missed = timer.due < at && timer.attempt == 0 && !is_on(Bug::MissedFiresOnResume);
    match timer.recurring.as_deref().filter(|_| is_missed) {
        Some(recurring) => recurring::after_pause(&timer, recurring, at, next_generation),
        None => Some(timer),
    }
}

#[cfg(test)]
#[path = "pause_test.rs"]
mod tests;

#[cfg(test)]
#[path = "pause_recurring_test.rs"]
mod recurring_tests;
