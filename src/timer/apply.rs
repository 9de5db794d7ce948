//! Judges a command.
//!
//! Owns [`apply`]: a command and the state go in, an [`Outcome`] comes out. Never changes anything itself.
//! Keeps: a rejected command changes nothing (INV-REJECT-1); while a timer is armed, an arm that keeps changes nothing of
//! it (INV-ARM-1); a generation is given once (INV-GEN-1); due is resolved once (`schedule`), from the record's timestamp.

use std::time::Duration;

use super::command::{Action, Arm, Command, OnConflict, Reply};
use super::identity::{RunKey, TimerKey};
use super::kind::{KIND_NUMBER_MAX, Kind, KindNumber, KindRef, PastDue, Registry};
use super::limits::Limits;
use super::model::{Claim, Ending, Generation, Located, RunState, Timer};
use super::outcome::{Answer, Mutation, Outcome, Reason, Rejection, Verdict};
use super::pause;
use super::remember;
use super::schedule::{self, Scheduled};
use super::size::Emitted;
use super::sweep;
use super::view::{Lookup, View};
use crate::calendar::Calendar;
use crate::planted::{Bug, is_on};
use crate::text::shown;
use crate::time::Timestamp;

/// What a command is judged by, beside the state.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The kinds that this binary knows.
    pub registry: &'a Registry,
    /// The limits.
    pub limits: &'a Limits,
    /// The rules and calendars.
    pub calendar: &'a dyn Calendar,
    /// The trusted time.
    pub now: Timestamp,
    /// The timestamp of the command's record, if it has one.
    pub recorded: Option<Timestamp>,
    /// The next generation to give; the command takes at most one.
    pub next_generation: Generation,
}

impl Context<'_> {
    /// Returns the time of the command: its record's timestamp, or ours if it has none or one from the future.
    pub(super) fn time_of_command(&self) -> Timestamp {
        self.recorded.map_or(self.now, |recorded| recorded.min(self.now))
    }
}

/// Who asks for a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A client, whose command may be there twice.
    Client,
    /// A handler: what it returns is applied once, so that its arm is no duplicate of anything.
    Handler,
}

/// Judges a command against the state.
///
/// # Errors
/// When the state cannot be read. A bad command is no error: its outcome carries a rejection.
///
/// # Panics
/// When a rejected command would change something: a programmer's fault.
pub fn apply<V: View>(view: &V, command: &Command, context: &Context<'_>) -> Result<Outcome, V::Error> {
    let mut outcome = Outcome::default();
    let verdict = match &command.action {
        Action::Arm(arm) => judge_arm(view, arm, Origin::Client, context, &mut outcome)?,
        Action::Disarm { key, generation } => disarm(view, key, *generation, context, &mut outcome)?,
        Action::Pause { key, generation } => pause::pause(view, key, *generation, context, &mut outcome)?,
        Action::Resume { key, generation } => pause::resume(view, key, *generation, context, &mut outcome)?,
        Action::DisarmRun { run } => {
            let request = sweep::Request { run, seal: None, reply: command.reply.as_ref(), context };
            match sweep::begin(view, &request, &mut outcome)? {
                Some(verdict) => verdict,
                None => return Ok(outcome),
            }
        }
        Action::SealRun { run, retention } => match sweep::seal(*retention, context.time_of_command()) {
            Ok(seal) => {
                let request = sweep::Request { run, seal: Some(seal), reply: command.reply.as_ref(), context };
                match sweep::begin(view, &request, &mut outcome)? {
                    Some(verdict) => verdict,
                    None => return Ok(outcome),
                }
            }
            Err(rejection) => Verdict::Rejected(rejection),
        },
    };
    if let Verdict::Rejected(rejection) = &verdict {
        assert!(outcome.mutations.is_empty(), "INV-REJECT-1: a rejected command changes nothing");
        outcome.rejection = Some(rejection.clone());
    }
    if let Some(reply) = &command.reply {
        outcome.answers.push(answer(reply, command.action.run(), command.action.timer(), verdict));
    }
    Ok(outcome)
}

/// Judges an arm.
pub(super) fn judge_arm<V: Lookup>(
    view: &V,
    arm: &Arm,
    origin: Origin,
    context: &Context<'_>,
    outcome: &mut Outcome,
) -> Result<Verdict, V::Error> {
    match resolve(arm, origin, context) {
        Ok(resolved) => arm_resolved(view, arm, &resolved, context, outcome),
        Err(rejection) => Ok(Verdict::Rejected(rejection)),
    }
}

fn answer(reply: &Reply, run: &RunKey, timer: Option<&TimerKey>, verdict: Verdict) -> Answer {
    Answer { reply: reply.clone(), run: run.clone(), timer: timer.cloned(), verdict }
}

/// An arm whose kind and due are known and which is within all limits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Resolved {
    kind: KindNumber,
    scheduled: Scheduled,
    armed: Timestamp,
    skip: bool,
    claim: Option<Claim>,
    /// For how long an id that has ended refuses it; `None` is not at all.
    refused_for: Option<Duration>,
}

fn resolve(arm: &Arm, origin: Origin, context: &Context<'_>) -> Result<Resolved, Rejection> {
    let (number, kind) = resolve_kind(&arm.kind, context)?;
    let scheduled = schedule::resolve(&arm.when, context)?;
    let due = scheduled.due;
    let armed = context.time_of_command();
    if due.since(armed) > context.limits.horizon {
        let detail = format!(
            "due {due} is more than limits.horizon, {} days, after the arming at {armed}; is the unit right?",
            context.limits.horizon.as_secs() / 86_400
        );
        return Err(Rejection::new(Reason::BeyondHorizon, detail));
    }
    Emitted::by_arm(arm).check(kind, context.limits)?;
    let judged_at = if is_on(Bug::PastDueFromOurClock) { context.now } else { armed };
    let past_due = if due <= judged_at { kind.map_or(PastDue::Fire, |kind| kind.past_due) } else { PastDue::Fire };
    let claim = kind.and_then(|kind| kind.claim);
    if claim.is_some() && scheduled.recurring.is_some() {
        let detail = "the kind delivers by claim, until a disarm that would end the recurrence too; use another kind";
        return Err(Rejection::new(Reason::InvalidSchedule, detail));
    }
    let refused_for = match origin {
        Origin::Client if arm.on_conflict == OnConflict::Replace && is_on(Bug::ReplacePassesRemembered) => None,
        Origin::Client => Some(kind.map_or(Duration::ZERO, |kind| kind.remember)),
        Origin::Handler => None,
    };
    match past_due {
        PastDue::Fire => Ok(Resolved { kind: number, scheduled, armed, skip: false, claim, refused_for }),
        PastDue::Skip => Ok(Resolved { kind: number, scheduled, armed, skip: true, claim, refused_for }),
        PastDue::Reject => {
            let detail = format!("due {due} is not after the arming at {armed}, and the kind rejects past dues");
            Err(Rejection::new(Reason::PastDue, detail))
        }
    }
}

fn resolve_kind<'a>(kind: &KindRef, context: &Context<'a>) -> Result<(KindNumber, Option<&'a Kind>), Rejection> {
    let registry = context.registry;
    match kind {
        KindRef::Number(number) => {
            let kind = registry.get(*number);
            if kind.is_none() && number.get() > KIND_NUMBER_MAX && !context.limits.takes_reserved_kinds {
                let detail = format!("kind number {number} is reserved for tests; use 1 to {KIND_NUMBER_MAX}");
                return Err(Rejection::new(Reason::InvalidKind, detail));
            }
            Ok((*number, kind))
        }
        KindRef::Name(name) => {
            if let Some(kind) = registry.by_name(name) {
                return Ok((kind.number, Some(kind)));
            }
            let detail =
                format!("kind `{}` is not known here; declare it under `kinds`, or name it by its number", shown(name));
            Err(Rejection::new(Reason::UnknownKind, detail))
        }
    }
}

fn arm_resolved<V: Lookup>(
    view: &V,
    arm: &Arm,
    resolved: &Resolved,
    context: &Context<'_>,
    outcome: &mut Outcome,
) -> Result<Verdict, V::Error> {
    let run = view.run(&arm.key.run)?;
    if run.seal.is_some_and(|seal| seal.holds(context.time_of_command())) {
        return Ok(Verdict::Sealed);
    }
    let previous = view.locate(&arm.key)?;
    let live = previous.filter(|located| !run.swept(located.at.generation));
    if let (Some(located), OnConflict::Keep) = (live, arm.on_conflict)
        && !is_on(Bug::KeepReplaces)
    {
        return Ok(Verdict::AlreadyArmed { generation: located.at.generation });
    }
    let known = view.remembered(&arm.key)?;
    if live.is_none()
        && let Some(remember) = resolved.refused_for
    {
        let swept = previous.map(|located| (located, &run));
        if let Some(ending) = ended(view, arm, swept, context, outcome)?.or_else(|| {
            known.filter(|known| known.refuses(remember, context.time_of_command())).map(|known| known.ending)
        }) {
            outcome.is_late = true;
            return Ok(Verdict::AlreadyEnded { ending });
        }
    }
    if resolved.skip {
        return Ok(Verdict::Skipped);
    }
    let mut timer = timer_of(arm, resolved, context.next_generation);
    if is_on(Bug::GenerationPerTimer) {
        timer.generation = Generation(previous.map_or(0, |located| located.at.generation.0) + 1);
    }
    let (generation, due) = (timer.generation, timer.due);
    if previous.is_some() && live.is_none() {
        // The row was already gone for everybody; the sweep will not find it any more, so it is counted here.
        outcome.mutations.push(sweep::count(arm.key.run.clone(), run, 1));
    }
    if known.is_some() {
        outcome.mutations.push(Mutation::Remember { key: arm.key.clone(), previous: known, state: None });
    }
    outcome.mutations.push(Mutation::Put { timer: Box::new(timer), previous });
    Ok(match live {
        Some(_) => Verdict::Replaced { generation, due },
        None => Verdict::Armed { generation, due },
    })
}

/// Remembers the id of a timer that a sweep has cancelled and not reached yet, if its kind does. Returns how it ended.
fn ended<V: Lookup>(
    view: &V,
    arm: &Arm,
    swept: Option<(Located, &RunState)>,
    context: &Context<'_>,
    outcome: &mut Outcome,
) -> Result<Option<Ending>, V::Error> {
    let Some((located, run)) = swept else { return Ok(None) };
    let ending = Ending::Disarmed(located.at.generation);
    let kind = context.registry.get(located.kind);
    let Some(remembers) = remember::ended(view, &arm.key, kind, ending, context.now)? else { return Ok(None) };
    outcome.mutations.push(sweep::count(arm.key.run.clone(), run.clone(), 1));
    outcome.mutations.push(Mutation::Remove { key: arm.key.clone(), previous: located });
    outcome.mutations.push(remembers);
    Ok(Some(ending))
}

fn timer_of(arm: &Arm, resolved: &Resolved, generation: Generation) -> Timer {
    Timer {
        key: arm.key.clone(),
        kind: resolved.kind,
        due: resolved.scheduled.due,
        wake: resolved.scheduled.due,
        generation,
        attempt: 0,
        armed: resolved.armed,
        payload: arm.payload.clone(),
        record_key: arm.record_key.clone(),
        headers: arm.headers.clone(),
        outbox: arm.outbox.clone(),
        recurring: resolved.scheduled.recurring.clone(),
        resolved_with: resolved.scheduled.resolved_with,
        paused: None,
        claim: resolved.claim,
    }
}

/// Judges a disarm.
pub(super) fn disarm<V: Lookup>(
    view: &V,
    key: &TimerKey,
    generation: Option<Generation>,
    context: &Context<'_>,
    outcome: &mut Outcome,
) -> Result<Verdict, V::Error> {
    let found = view.locate(key)?;
    let Some(located) = live_timer(view, key, found)? else {
        // A row that a sweep has cancelled is remembered when the sweep reaches it.
        return match found {
            Some(_) => Ok(Verdict::NotFound),
            None => remember::disarmed_nothing(view, key, generation, context, outcome),
        };
    };
    let armed = located.at.generation;
    if generation.is_some_and(|wanted| wanted != armed) && !is_on(Bug::DisarmIgnoresGeneration) {
        return Ok(Verdict::Changed { generation: armed });
    }
    outcome.mutations.push(Mutation::Remove { key: key.clone(), previous: located });
    let kind = context.registry.get(located.kind);
    outcome.mutations.extend(remember::ended(view, key, kind, Ending::Disarmed(armed), context.now)?);
    Ok(Verdict::Disarmed { generation: armed })
}

/// Returns where a timer is that no sweep has cancelled.
pub(super) fn live_timer<V: Lookup>(
    view: &V,
    key: &TimerKey,
    found: Option<Located>,
) -> Result<Option<Located>, V::Error> {
    let Some(located) = found else {
        return Ok(None);
    };
    if view.is_sweeping() && view.run(&key.run)?.swept(located.at.generation) {
        return Ok(None);
    }
    Ok(Some(located))
}

#[cfg(test)]
#[path = "apply_test.rs"]
mod tests;
