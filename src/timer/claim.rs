//! Hands due timers to a claimer, who holds each by a lease.
//!
//! ```text
//!   due ──claim──▶ held until now + lease ──▶ claimed again, under the next attempt ──▶ …
//!                                        └──▶ disarmed by the claimer: done
//! ```
//!
//! Owns [`claim`], the way to fire without handlers that the embedded engine has. Never looks for what is due: it is given that, in the
//! order of claims. Keeps: what is claimed is due; only the wake and the attempt of a claimed timer change (INV-CLAIM-1); the limit
//! bounds what is claimed, not what is looked at.

use std::time::Duration;

use super::conclude::expire;
use super::fire::expiry;
use super::kind::Registry;
use super::model::{Claim, Generation, Timer};
use super::outcome::{Effect, FiredEvent, Mutation, Outcome};
use super::redate;
use super::view::Lookup;
use crate::time::Timestamp;

/// What a claim asks for.
#[derive(Clone, Copy, Debug)]
pub struct ClaimRules<'a> {
    /// The kinds that this binary knows.
    pub registry: &'a Registry,
    /// The time of the claim.
    pub now: Timestamp,
    /// Most timers claimed.
    pub limit: usize,
    /// How long a claim holds a timer that was armed without a lease of its own.
    pub lease: Duration,
    /// The next generation to give; only timers that recur and have expired take any.
    pub next_generation: Generation,
}

/// Claims the first of some timers that are due. The claimed ones are the outcome's `fired`, in order; those that are not to be
/// claimed any more are its `expired`.
///
/// # Errors
/// When one of the timers is an error: the state cannot be read.
///
/// # Panics
/// When a timer is not due (INV-FIRE-1).
pub fn claim<V: Lookup>(
    view: &V,
    due: impl IntoIterator<Item = Result<Timer, V::Error>>,
    rules: &ClaimRules<'_>,
) -> Result<Outcome, V::Error> {
    let mut outcome = Outcome::default();
    let mut next = rules.next_generation;
    let mut due = due.into_iter();
    while outcome.fired.len() < rules.limit
        && let Some(timer) = due.next().transpose()?
    {
        assert!(timer.wake <= rules.now, "INV-FIRE-1: a timer is never looked at before its wake");
        let lease = lease_of(&timer, rules);
        // Judged as one that is delivered by claim, whatever its kind says: later attempts are late by intention.
        let judged = Timer { claim: Some(lease), ..timer.clone() };
        if let Some(reason) = expiry(&judged, rules.registry.get(timer.kind), rules.now) {
            let concluded = expire(view, timer, reason, (rules.registry, rules.now), next)?;
            next = concluded.mutations.iter().fold(next, |next, mutation| mutation.generation_behind(next));
            outcome.mutations.extend(concluded.mutations);
            outcome.expired.extend(concluded.expired);
            continue;
        }
        let held = redate::after_delivery(&timer, lease, rules.now);
        outcome.mutations.push(Mutation::Put { timer: Box::new(held), previous: Some(timer.located()) });
        let attempt = timer.attempt.saturating_add(1);
        outcome.fired.push(FiredEvent { timer, attempt, fired: rules.now, effect: Effect::Published });
    }
    Ok(outcome)
}

fn lease_of(timer: &Timer, rules: &ClaimRules<'_>) -> Claim {
    let of_kind = || rules.registry.get(timer.kind).and_then(|kind| kind.claim);
    timer.claim.or_else(of_kind).unwrap_or(Claim { lease: rules.lease, attempts_max: None })
}
