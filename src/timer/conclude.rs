//! What follows from one attempt to fire a timer.
//!
//! Owns the way from what a handler returned to mutations and what is emitted. Never folds. Keeps: all effects of a fire are there, or
//! none; a timer that failed keeps its due, its payload and its generation, and rests.

use super::apply::{Context, Origin, disarm, judge_arm};
use super::fire::FireRules;
use super::handler::{Attempt, COMMANDS_MAX, Done, Event, Fired, TimerCommand};
use super::kind::Registry;
use super::model::{Ending, Generation, OutboxRecord, Timer};
use super::outcome::{Effect, Expired, ExpiryReason, FiredEvent, Mutation, Outcome, Verdict};
use super::size::Emitted;
use super::staged::Staged;
use super::view::Lookup;
use super::{recurring, redate, remember};
use crate::planted::{Bug, is_on};
use crate::time::Timestamp;

/// What an attempt leads to.
#[derive(Debug, Default)]
pub(super) struct Concluded {
    pub(super) mutations: Vec<Mutation>,
    pub(super) fired: Option<FiredEvent>,
    pub(super) expired: Option<Expired>,
    /// Why the timer rests, if it does.
    pub(super) rest: Option<Rest>,
}

/// Why a timer rests.
#[derive(Debug)]
pub(super) enum Rest {
    /// Its handler asked for it.
    Asked,
    /// Something failed.
    Failed(String),
}

/// Decides what follows from an attempt.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn conclude<V: Lookup>(
    view: &V,
    timer: Timer,
    attempt: Attempt,
    rules: &FireRules<'_>,
    next: Generation,
) -> Result<Concluded, V::Error> {
    let effects = match attempt {
        Attempt::AsArmed => return as_armed(view, timer, rules, next),
        Attempt::Decided(Fired::Done(done)) => done_with(view, &timer, done, rules, next)?,
        Attempt::Decided(Fired::Reschedule { due, payload, outbox }) => {
            let payload = if is_on(Bug::DatedPayloadKept) { timer.payload.clone() } else { payload };
            let dated = Timer { due, wake: due, payload, generation: next, attempt: 0, ..timer.clone() };
            reschedule(&timer, dated, outbox, rules)
        }
        Attempt::Decided(Fired::Retry) => Err(Rest::Asked),
        Attempt::Failed(detail) => Err(Rest::Failed(detail)),
    };
    match effects {
        Ok(concluded) => Ok(concluded),
        Err(rest) => Ok(rested(&timer, rules.now, rest)),
    }
}

/// Retires a timer that is not to fire any more. One that recurs goes on with its next occurrence.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn expire<V: Lookup>(
    view: &V,
    timer: Timer,
    reason: ExpiryReason,
    (registry, now): (&Registry, Timestamp),
    next: Generation,
) -> Result<Concluded, V::Error> {
    let left = recurring::after_fire(&timer, now, next);
    let mutations = changes_to(view, &timer, left, Ending::Expired(timer.generation), (registry, now))?;
    let expired = Some(Expired { timer, reason, at: now });
    Ok(Concluded { mutations, expired, ..Concluded::default() })
}

fn rested(timer: &Timer, now: Timestamp, rest: Rest) -> Concluded {
    let rested = Box::new(redate::after_failure(timer, now));
    let put = Mutation::Put { timer: rested, previous: Some(timer.located()) };
    Concluded { mutations: vec![put], rest: Some(rest), ..Concluded::default() }
}

fn as_armed<V: Lookup>(view: &V, timer: Timer, rules: &FireRules<'_>, next: Generation) -> Result<Concluded, V::Error> {
    let mutations = own_changes(view, &timer, rules, next)?;
    let attempt = timer.attempt.saturating_add(1);
    let fired = FiredEvent { timer, attempt, fired: rules.now, effect: Effect::Published };
    Ok(Concluded { mutations, fired: Some(fired), ..Concluded::default() })
}

/// Returns what a fire does to the timer itself: it is gone, held, or dated anew.
fn own_changes<V: Lookup>(
    view: &V,
    timer: &Timer,
    rules: &FireRules<'_>,
    next: Generation,
) -> Result<Vec<Mutation>, V::Error> {
    if is_on(Bug::FiredRowKept) {
        return Ok(Vec::new());
    }
    let left = match timer.claim {
        None => recurring::after_fire(timer, rules.now, next),
        Some(claim) => Some(redate::after_delivery(timer, claim, rules.now)),
    };
    changes_to(view, timer, left, Ending::Fired(timer.generation), (rules.registry, rules.now))
}

/// Returns the changes from a timer to what is left of it; where nothing is, its id may be remembered.
fn changes_to<V: Lookup>(
    view: &V,
    timer: &Timer,
    left: Option<Timer>,
    ending: Ending,
    (registry, now): (&Registry, Timestamp),
) -> Result<Vec<Mutation>, V::Error> {
    let previous = timer.located();
    if let Some(left) = left {
        return Ok(vec![Mutation::Put { timer: Box::new(left), previous: Some(previous) }]);
    }
    let mut changes = vec![Mutation::Remove { key: timer.key.clone(), previous }];
    changes.extend(remember::ended(view, &timer.key, registry.get(timer.kind), ending, now)?);
    Ok(changes)
}

type Effects = Result<Concluded, Rest>;

fn done_with<V: Lookup>(
    view: &V,
    timer: &Timer,
    done: Done,
    rules: &FireRules<'_>,
    next: Generation,
) -> Result<Effects, V::Error> {
    let effect = if done.event.is_some() { Effect::Published } else { Effect::Silent };
    let Event { payload, record_key, headers } = done.event.unwrap_or_else(|| Event::of(timer));
    let emitted = Timer { payload, record_key, headers, outbox: done.outbox, ..timer.clone() };
    if let Err(detail) = check_size(&emitted, rules) {
        return Ok(Err(Rest::Failed(detail)));
    }
    if done.commands.len() > COMMANDS_MAX {
        let detail = format!("the handler returned {} commands; at most {COMMANDS_MAX} fit", done.commands.len());
        return Ok(Err(Rest::Failed(detail)));
    }
    let attempt = timer.attempt.saturating_add(1);
    let mut staged = Staged::on(view);
    if !done.commands.is_empty() {
        staged.index();
    }
    let mut next = next;
    for mutation in own_changes(view, timer, rules, next)? {
        next = mutation.generation_behind(next);
        staged.push(mutation);
    }
    for command in done.commands.iter().filter(|_| !is_on(Bug::HandlerCommandsLeftOut)) {
        match take_command(&staged, command, rules, next)? {
            Ok(mutations) => {
                for mutation in mutations {
                    next = mutation.generation_behind(next);
                    staged.push(mutation);
                }
            }
            Err(detail) => return Ok(Err(Rest::Failed(detail))),
        }
    }
    let fired = FiredEvent { timer: emitted, attempt, fired: rules.now, effect };
    Ok(Ok(Concluded { mutations: staged.into_mutations(), fired: Some(fired), ..Concluded::default() }))
}

fn take_command<V: Lookup>(
    view: &V,
    command: &TimerCommand,
    rules: &FireRules<'_>,
    next: Generation,
) -> Result<Result<Vec<Mutation>, String>, V::Error> {
    let key = command.key();
    if !(rules.is_here)(&key.run) {
        let detail = format!(
            "the handler returned a command for {key}, which belongs to another partition; send it to the command topic by an \
             outbox record"
        );
        return Ok(Err(detail));
    }
    let mut outcome = Outcome::default();
    let context = Context {
        registry: rules.registry,
        limits: rules.limits,
        calendar: rules.calendar,
        now: rules.now,
        recorded: Some(rules.now),
        next_generation: next,
    };
    let verdict = match command {
        TimerCommand::Arm(arm) => judge_arm(view, arm, Origin::Handler, &context, &mut outcome)?,
        TimerCommand::Disarm { key, generation } => disarm(view, key, *generation, &context, &mut outcome)?,
    };
    match verdict {
        Verdict::Rejected(rejection) => Ok(Err(format!("the handler's command for {key}: {}", rejection.detail))),
        Verdict::Armed { .. }
        | Verdict::AlreadyArmed { .. }
        | Verdict::AlreadyEnded { .. }
        | Verdict::Replaced { .. }
        | Verdict::Disarmed { .. }
        | Verdict::Paused { .. }
        | Verdict::Resumed { .. }
        | Verdict::NotPaused { .. }
        | Verdict::Ended { .. }
        | Verdict::NotFound
        | Verdict::TooLate { .. }
        | Verdict::Changed { .. }
        | Verdict::RunDisarmed { .. }
        | Verdict::RunSealed { .. }
        | Verdict::Sealed
        | Verdict::Skipped => Ok(Ok(outcome.mutations)),
    }
}

/// Arms a timer anew. A due after now differs from the one before, which has passed.
fn reschedule(timer: &Timer, dated: Timer, outbox: Vec<OutboxRecord>, rules: &FireRules<'_>) -> Effects {
    let (due, now) = (dated.due, rules.now);
    if due <= now {
        return Err(Rest::Failed(format!("the handler reschedules to {due}, which is not after {now}; add a pause")));
    }
    if due.since(now) > rules.limits.horizon || due > Timestamp::MAX {
        return Err(Rest::Failed(format!("the handler reschedules to {due}, which is beyond limits.horizon")));
    }
    check_size(&dated, rules).map_err(Rest::Failed)?;
    let emitted = Timer { outbox, ..timer.clone() };
    check_size(&emitted, rules).map_err(Rest::Failed)?;
    let attempt = timer.attempt.saturating_add(1);
    let fired = FiredEvent { timer: emitted, attempt, fired: now, effect: Effect::Rescheduled };
    let put = Mutation::Put { timer: Box::new(dated), previous: Some(timer.located()) };
    Ok(Concluded { mutations: vec![put], fired: Some(fired), ..Concluded::default() })
}

fn check_size(timer: &Timer, rules: &FireRules<'_>) -> Result<(), String> {
    Emitted::by_timer(timer)
        .check(rules.registry.get(timer.kind), rules.limits)
        .map_err(|rejection| format!("what the handler returned: {}", rejection.detail))
}

#[cfg(test)]
#[path = "conclude_test.rs"]
mod tests;
