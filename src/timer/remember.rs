//! Remembers timer ids that have ended, so that a duplicate of their arm makes no second timer.
//!
//! ```text
//!   armed ── fired, disarmed, swept, expired ──▶ remembered ── until, in slices ──▶ forgotten
//!   free ─── a disarm that finds nothing ──────▶ remembered     (its arm may come behind it, from another partition)
//! ```
//!
//! Owns what an ending leaves behind and what a command meets there. Never forgets: that follows from the stored end alone, and
//! whoever holds the state does it. Keeps: the end is computed once, from the time of the ending, and is part of the state
//! (INV-REMEMBER-1). An id whose kind remembers nothing leaves nothing.

use super::apply::Context;
use super::identity::TimerKey;
use super::kind::Kind;
use super::model::{Ending, Generation, Remembered};
use super::outcome::{Mutation, Outcome, Verdict};
use super::view::Lookup;
use crate::planted::{Bug, is_on};
use crate::time::Timestamp;

/// Returns the change that remembers the id of a timer that ends at `now`, if its kind is known and asks for it.
pub(super) fn ended<V: Lookup>(
    view: &V,
    key: &TimerKey,
    kind: Option<&Kind>,
    ending: Ending,
    now: Timestamp,
) -> Result<Option<Mutation>, V::Error> {
    let Some(kind) = kind.filter(|kind| !kind.remember.is_zero()) else {
        return Ok(None);
    };
    let previous = view.remembered(key)?;
    let until = now.checked_add(kind.remember).unwrap_or(Timestamp::MAX);
    Ok(Some(Mutation::Remember { key: key.clone(), previous, state: Some(Remembered { ending, ended: now, until }) }))
}

/// Judges a disarm that found no timer.
pub(super) fn disarmed_nothing<V: Lookup>(
    view: &V,
    key: &TimerKey,
    generation: Option<Generation>,
    context: &Context<'_>,
    outcome: &mut Outcome,
) -> Result<Verdict, V::Error> {
    let previous = view.remembered(key)?;
    if let Some(known) = previous.filter(|known| known.holds(context.time_of_command())) {
        return Ok(match known.ending {
            Ending::Fired(ended) | Ending::Expired(ended) if generation.is_none_or(|wanted| wanted == ended) => {
                outcome.is_late = true;
                Verdict::TooLate { generation: ended }
            }
            Ending::Fired(_) | Ending::Expired(_) | Ending::Disarmed(_) | Ending::NeverArmed => Verdict::NotFound,
        });
    }
    let longest = context.registry.remember_longest();
    // Whoever names a generation has seen its arm answered: that arm is not on the way.
    if generation.is_none() && !longest.is_zero() && !is_on(Bug::StragglerArms) {
        let until = context.now.checked_add(longest).unwrap_or(Timestamp::MAX);
        let state = Remembered { ending: Ending::NeverArmed, ended: context.now, until };
        outcome.mutations.push(Mutation::Remember { key: key.clone(), previous, state: Some(state) });
    }
    Ok(Verdict::NotFound)
}

#[cfg(test)]
#[path = "remember_test.rs"]
mod tests;
