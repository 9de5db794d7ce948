//! Hands due timers to a claimer, who holds each by a lease.
//!
//! ```text
//!   due ──claim──▶ held until now + lease ──▶ claimed again, under the next attempt ──▶ …
//!                                        └──▶ disarmed by the claimer: done
//! ```
//!
//! Owns [`claim_due`], the way to fire without handlers that the embedded engine has. Never lets a row that cannot be read hold up
//! others, and never moves a cursor: the rows of other tenants stay where they are.
//! Keeps: what is claimed is due, in ascending due, then by run and timer id; only the wake and the attempt of a claimed timer
//! change (INV-CLAIM-1); the limit bounds what is returned, not what is looked at.

use std::collections::BTreeMap;
use std::time::Duration;

use super::conclude::expire;
use super::fire::expiry;
use super::identity::{Run, Tenant, TimerId};
use super::kind::{KindNumber, Registry};
use super::model::{Claim, DueKey, Generation, Timer};
use super::outcome::{Effect, FiredEvent, Mutation, Outcome};
use super::redate;
use super::view::{DueRow, View};
use crate::time::Timestamp;

/// Most rows read at once.
const PAGE_ROWS: usize = 512;

/// What a claim asks for.
#[derive(Clone, Copy, Debug)]
pub struct ClaimRules<'a> {
    /// Whose timers.
    pub tenant: &'a Tenant,
    /// The kinds to look at, whether this binary knows them or not.
    pub kinds: &'a [KindNumber],
    /// The kinds that this binary knows.
    pub registry: &'a Registry,
    /// The time of the claim; what is due at it is included.
    pub now: Timestamp,
    /// Most timers claimed.
    pub limit: usize,
    /// How long a claim holds a timer that was armed without a lease of its own.
    pub lease: Duration,
    /// The next generation to give; only timers that recur take any.
    pub next_generation: Generation,
}

/// The timers to be claimed so far, in the order in which they are returned.
type Chosen = BTreeMap<(Timestamp, Run, TimerId), Timer>;

/// The places of rows that cannot be decoded.
pub type Undecodable = Vec<(KindNumber, DueKey)>;

/// Claims what is due. The claimed timers are the outcome's `fired`, in order. Also returned: the rows that cannot be decoded.
///
/// # Errors
/// When the state cannot be read.
pub fn claim_due<V: View>(view: &V, rules: &ClaimRules<'_>) -> Result<(Outcome, Undecodable), V::Error> {
    let mut outcome = Outcome::default();
    let mut undecodable = Undecodable::new();
    if rules.limit == 0 {
        return Ok((outcome, undecodable));
    }
    let (mut chosen, mut next) = (Chosen::new(), rules.next_generation);
    for kind in rules.kinds {
        let mut after = None;
        loop {
            let page = view.due(*kind, after, rules.now, PAGE_ROWS)?;
            let is_last = page.len() < PAGE_ROWS;
            for row in page {
                after = Some(row.at());
                match row {
                    DueRow::Undecodable { at, .. } => undecodable.push((*kind, at)),
                    DueRow::Timer(timer) if timer.key.run.tenant == *rules.tenant => {
                        if !view.is_sweeping() || !view.run(&timer.key.run)?.swept(timer.generation) {
                            choose(*timer, rules, &mut next, &mut chosen, &mut outcome);
                        }
                    }
                    DueRow::Timer(_) => {}
                }
            }
            if is_last {
                break;
            }
        }
    }
    for timer in chosen.into_values() {
        outcome.mutations.push(held(&timer, rules));
        let attempt = timer.attempt.saturating_add(1);
        outcome.fired.push(FiredEvent { timer, attempt, fired: rules.now, effect: Effect::Published });
    }
    Ok((outcome, undecodable))
}

fn choose(timer: Timer, rules: &ClaimRules<'_>, next: &mut Generation, chosen: &mut Chosen, outcome: &mut Outcome) {
    // Judged as one that is delivered by claim, whatever its kind says: later attempts are late by intention.
    let judged = Timer { claim: Some(lease_of(&timer, rules)), ..timer.clone() };
    if let Some(reason) = expiry(&judged, rules.registry.get(timer.kind), rules.now) {
        let concluded = expire(timer, reason, rules.now, *next);
        *next = concluded.mutations.iter().fold(*next, |next, mutation| mutation.generation_behind(next));
        outcome.mutations.extend(concluded.mutations);
        outcome.expired.extend(concluded.expired);
        return;
    }
    chosen.insert((timer.due, timer.key.run.run.clone(), timer.key.id.clone()), timer);
    if chosen.len() > rules.limit {
        chosen.pop_last();
    }
}

fn lease_of(timer: &Timer, rules: &ClaimRules<'_>) -> Claim {
    let of_kind = || rules.registry.get(timer.kind).and_then(|kind| kind.claim);
    timer.claim.or_else(of_kind).unwrap_or(Claim { lease: rules.lease, attempts_max: None })
}

fn held(timer: &Timer, rules: &ClaimRules<'_>) -> Mutation {
    let held = redate::after_delivery(timer, lease_of(timer, rules), rules.now);
    Mutation::Put { timer: Box::new(held), previous: Some(timer.located()) }
}
