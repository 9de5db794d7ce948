//! Removes all timers of a run: disarm-run and seal-run.
//!
//! A small run is removed within the command. A large one gets a [`Sweep`], in force at once because every reader asks
//! [`RunState::swept`], and worked off in slices by [`work_off`], which answers with the count in the end.
//!
//! ```text
//!   begin ── all rows fit one slice ──▶ removed, answered
//!     └───── more rows ──▶ Sweep { below, removed, replies } ──▶ work_off … work_off ──▶ answered
//! ```
//!
//! Never touches a timer armed after the command (INV-SWEEP-1): its generation is not below [`Sweep::below`].

use std::time::Duration;

use super::apply::Context;
use super::command::Reply;
use super::identity::RunKey;
use super::kind::Registry;
use super::model::{Ending, Generation, RunState, SWEEP_REPLIES_MAX, Seal, Sweep, SweepReply};
use super::outcome::{Answer, Mutation, Outcome, Reason, Rejection, Verdict};
use super::remember;
use super::view::View;
use crate::planted::{Bug, is_on};
use crate::time::Timestamp;

/// Most rows removed within the command itself; a larger run is worked off in slices.
pub const SLICE_ROWS: usize = 256;

/// The wish to remove a run's timers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub run: &'a RunKey,
    pub seal: Option<Seal>,
    pub reply: Option<&'a Reply>,
    pub context: &'a Context<'a>,
}

/// Returns the seal that a retention asks for.
pub(super) fn seal(retention: Option<Duration>, from: Timestamp) -> Result<Seal, Rejection> {
    let Some(retention) = retention else {
        return Ok(Seal { until: None });
    };
    if retention < Duration::from_millis(1) {
        let detail = "retention is zero; give a duration above zero, or none to seal for ever";
        return Err(Rejection::new(Reason::InvalidDuration, detail));
    }
    if let Some(until) = from.checked_add(retention) {
        return Ok(Seal { until: Some(until) });
    }
    let detail = format!("retention of {} s ends beyond the year 9999", retention.as_secs());
    Err(Rejection::new(Reason::InvalidDuration, detail))
}

/// Begins the removal. Returns the verdict, or `None` if it is given later, when the sweep ends.
pub(super) fn begin<V: View>(
    view: &V,
    request: &Request<'_>,
    outcome: &mut Outcome,
) -> Result<Option<Verdict>, V::Error> {
    let below = request.context.next_generation;
    let previous = view.run(request.run)?;
    let mut state =
        RunState { seal: request.seal.map_or(previous.seal, |new| Some(longer(previous.seal, new))), sweep: None };
    if let Some(sweep) = &previous.sweep {
        if sweep.replies.len() >= SWEEP_REPLIES_MAX {
            let detail = format!("{SWEEP_REPLIES_MAX} commands wait for this run to be disarmed; send it again later");
            return Ok(Some(Verdict::Rejected(Rejection::new(Reason::Busy, detail))));
        }
        let mut sweep = sweep.clone();
        sweep.below = below;
        sweep.replies.extend(reply_of(request));
        state.sweep = Some(sweep);
        outcome.mutations.push(Mutation::Run { run: request.run.clone(), previous, state });
        return Ok(None);
    }
    let slice = Slice { run: request.run, below, rows_max: SLICE_ROWS };
    let removed = remove_slice(view, &slice, request.context.registry, request.context.now, outcome)?;
    if !removed.is_last {
        state.sweep = Some(Sweep { below, removed: removed.rows, replies: reply_of(request).into_iter().collect() });
    }
    let verdict = removed.is_last.then(|| verdict(request.seal.is_some(), removed.rows));
    if state != previous {
        outcome.mutations.push(Mutation::Run { run: request.run.clone(), previous, state });
    }
    Ok(verdict)
}

/// Works off one slice of a run's sweep, or ends its seal; called for the runs on the agenda.
///
/// # Errors
/// When the state cannot be read.
pub fn work_off<V: View>(
    view: &V,
    run: &RunKey,
    registry: &Registry,
    now: Timestamp,
    rows_max: usize,
) -> Result<Outcome, V::Error> {
    let mut outcome = Outcome::default();
    let previous = view.run(run)?;
    let mut state = previous.clone();
    if state.seal.is_some_and(|seal| !seal.holds(now)) {
        state.seal = None;
    }
    if let Some(mut sweep) = state.sweep.take() {
        let slice = Slice { run, below: sweep.below, rows_max: rows_max.max(1) };
        let removed = remove_slice(view, &slice, registry, now, &mut outcome)?;
        sweep.removed += removed.rows;
        if removed.is_last {
            for waiting in &sweep.replies {
                outcome.answers.push(Answer {
                    reply: waiting.reply.clone(),
                    run: run.clone(),
                    timer: None,
                    verdict: verdict(waiting.sealed, sweep.removed),
                });
            }
        } else {
            state.sweep = Some(sweep);
        }
    }
    if state != previous {
        outcome.mutations.push(Mutation::Run { run: run.clone(), previous, state });
    }
    Ok(outcome)
}

/// Counts swept rows that an arm replaced or a fire met before the sweep did.
pub(super) fn count(run: RunKey, previous: RunState, rows: u64) -> Mutation {
    let mut state = previous.clone();
    if let Some(sweep) = &mut state.sweep {
        sweep.removed += rows;
    }
    Mutation::Run { run, previous, state }
}

/// A part of a run's timers that is removed at once.
struct Slice<'a> {
    run: &'a RunKey,
    below: Generation,
    rows_max: usize,
}

struct Removed {
    rows: u64,
    is_last: bool,
}

fn remove_slice<V: View>(
    view: &V,
    slice: &Slice<'_>,
    registry: &Registry,
    now: Timestamp,
    outcome: &mut Outcome,
) -> Result<Removed, V::Error> {
    let Slice { run, below, rows_max } = *slice;
    let mut removed = Removed { rows: 0, is_last: false };
    let mut after = None;
    // A page may consist of newer timers only, so pages are read until enough was removed; each page moves on.
    loop {
        let page = view.timers_of(run, after.as_ref(), rows_max)?;
        removed.is_last = page.len() < rows_max;
        for (key, located) in page {
            after = Some(key.id.clone());
            if located.at.generation < below || is_on(Bug::SweepTakesNewer) {
                let ending = Ending::Disarmed(located.at.generation);
                let remembers = remember::ended(view, &key, registry.get(located.kind), ending, now)?;
                outcome.mutations.push(Mutation::Remove { key, previous: located });
                outcome.mutations.extend(remembers);
                removed.rows += 1;
            }
        }
        if removed.is_last || removed.rows > 0 {
            return Ok(removed);
        }
    }
}

fn verdict(sealed: bool, count: u64) -> Verdict {
    if sealed { Verdict::RunSealed { count } } else { Verdict::RunDisarmed { count } }
}

fn reply_of(request: &Request<'_>) -> Option<SweepReply> {
    request.reply.map(|reply| SweepReply { reply: reply.clone(), sealed: request.seal.is_some() })
}

/// A seal is idempotent: sealing again never shortens it.
fn longer(old: Option<Seal>, new: Seal) -> Seal {
    match old {
        Some(Seal { until: None }) => Seal { until: None },
        Some(Seal { until: Some(old) }) => Seal { until: new.until.map(|new| new.max(old)) },
        None => new,
    }
}

#[cfg(test)]
#[path = "sweep_test.rs"]
mod tests;
