//! Judges a command.
//!
//! Owns [`apply`]: a command and the state go in, an [`Outcome`] comes out. Never changes anything itself.
//! Keeps: a rejected command changes nothing (INV-REJECT-1); while a timer is armed, an arm that keeps changes nothing of
//! it (INV-ARM-1); a generation is given once (INV-GEN-1); due is resolved once (`schedule`), from the record's timestamp.

use super::command::{Action, Arm, Command, OnConflict, Reply};
use super::identity::{RunKey, TimerKey};
use super::kind::{KIND_NUMBER_MAX, Kind, KindNumber, KindRef, PastDue, Registry};
use super::limits::{HEADERS_MAX, Limits, OUTBOX_RECORDS_MAX, fired_bytes, outbox_bytes};
use super::model::{Generation, Header, Located, Timer};
use super::outcome::{Answer, Mutation, Outcome, Reason, Rejection, Verdict};
use super::schedule::{self, Scheduled};
use super::sweep;
use super::view::View;
use crate::calendar::Calendar;
use crate::planted::{Bug, is_on};
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
    fn time_of_command(&self) -> Timestamp {
        self.recorded.map_or(self.now, |recorded| recorded.min(self.now))
    }
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
        Action::Arm(arm) => match resolve(arm, context) {
            Ok(resolved) => arm_resolved(view, arm, &resolved, context, &mut outcome)?,
            Err(rejection) => Verdict::Rejected(rejection),
        },
        Action::Disarm { key, generation } => disarm(view, key, *generation, &mut outcome)?,
        Action::DisarmRun { run } => {
            let request = sweep::Request { run, seal: None, reply: command.reply.as_ref() };
            match sweep::begin(view, &request, context.next_generation, &mut outcome)? {
                Some(verdict) => verdict,
                None => return Ok(outcome),
            }
        }
        Action::SealRun { run, retention } => match sweep::seal(*retention, context.time_of_command()) {
            Ok(seal) => {
                let request = sweep::Request { run, seal: Some(seal), reply: command.reply.as_ref() };
                match sweep::begin(view, &request, context.next_generation, &mut outcome)? {
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
}

fn resolve(arm: &Arm, context: &Context<'_>) -> Result<Resolved, Rejection> {
    let (number, kind) = resolve_kind(&arm.kind, context.registry)?;
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
    check_size(arm, kind, context.limits)?;
    let judged_at = if is_on(Bug::PastDueFromOurClock) { context.now } else { armed };
    let past_due = if due <= judged_at { kind.map_or(PastDue::Fire, |kind| kind.past_due) } else { PastDue::Fire };
    match past_due {
        PastDue::Fire => Ok(Resolved { kind: number, scheduled, armed, skip: false }),
        PastDue::Skip => Ok(Resolved { kind: number, scheduled, armed, skip: true }),
        PastDue::Reject => {
            let detail = format!("due {due} is not after the arming at {armed}, and the kind rejects past dues");
            Err(Rejection::new(Reason::PastDue, detail))
        }
    }
}

fn resolve_kind<'a>(kind: &KindRef, registry: &'a Registry) -> Result<(KindNumber, Option<&'a Kind>), Rejection> {
    match kind {
        KindRef::Number(number) => {
            let kind = registry.get(*number);
            if kind.is_none() && number.get() > KIND_NUMBER_MAX {
                let detail = format!("kind number {number} is reserved for tests; use 1 to {KIND_NUMBER_MAX}");
                return Err(Rejection::new(Reason::InvalidKind, detail));
            }
            Ok((*number, kind))
        }
        KindRef::Name(name) => {
            if let Some(kind) = registry.by_name(name) {
                return Ok((kind.number, Some(kind)));
            }
            let name: String = name.chars().take(64).flat_map(char::escape_debug).collect();
            let detail = format!("kind `{name}` is not known here; declare it under `kinds`, or name it by its number");
            Err(Rejection::new(Reason::UnknownKind, detail))
        }
    }
}

fn check_size(arm: &Arm, kind: Option<&Kind>, limits: &Limits) -> Result<(), Rejection> {
    if arm.outbox.len() > OUTBOX_RECORDS_MAX {
        let detail = format!("outbox has {} records; at most {OUTBOX_RECORDS_MAX} fit", arm.outbox.len());
        return Err(Rejection::new(Reason::TooMany, detail));
    }
    if let Some(kind) = kind.filter(|kind| !kind.outbox && !arm.outbox.is_empty()) {
        let detail = format!("kind `{}` has no outbox topic; set `outbox: true` for it", kind.name);
        return Err(Rejection::new(Reason::NoOutbox, detail));
    }
    check_headers(&arm.headers)?;
    for record in &arm.outbox {
        check_headers(&record.headers)?;
    }
    let outbox: usize = arm.outbox.iter().map(outbox_bytes).sum();
    if outbox > limits.outbox_bytes_max {
        let detail = format!("outbox takes {outbox} bytes; at most {} fit", limits.outbox_bytes_max);
        return Err(Rejection::new(Reason::TooLarge, detail));
    }
    let fired = fired_bytes(arm);
    // The stored row carries both, and must fit the changelog as the fired record must fit its topic.
    if fired.saturating_add(outbox) > limits.fired_bytes_max {
        let detail = format!(
            "the fired record and its outbox would take {} bytes; at most {} fit (limits.fired_bytes_max)",
            fired.saturating_add(outbox),
            limits.fired_bytes_max
        );
        return Err(Rejection::new(Reason::TooLarge, detail));
    }
    Ok(())
}

fn check_headers(headers: &[Header]) -> Result<(), Rejection> {
    if headers.len() > HEADERS_MAX {
        let detail = format!("a record has {} headers; at most {HEADERS_MAX} fit", headers.len());
        return Err(Rejection::new(Reason::TooMany, detail));
    }
    for header in headers {
        if header.key.is_empty() || header.key.starts_with("punctual-") || header.key.starts_with("ce_") {
            let key: String = header.key.chars().take(64).collect();
            let detail =
                format!("header `{key}` is reserved; names are not empty and do not start with punctual- or ce_");
            return Err(Rejection::new(Reason::ReservedHeader, detail));
        }
    }
    Ok(())
}

fn arm_resolved<V: View>(
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
    outcome.mutations.push(Mutation::Put { timer: Box::new(timer), previous });
    Ok(match live {
        Some(_) => Verdict::Replaced { generation, due },
        None => Verdict::Armed { generation, due },
    })
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
    }
}

fn disarm<V: View>(
    view: &V,
    key: &TimerKey,
    generation: Option<Generation>,
    outcome: &mut Outcome,
) -> Result<Verdict, V::Error> {
    let Some(located) = live_timer(view, key)? else {
        return Ok(Verdict::NotFound);
    };
    let armed = located.at.generation;
    if generation.is_some_and(|wanted| wanted != armed) && !is_on(Bug::DisarmIgnoresGeneration) {
        return Ok(Verdict::Changed { generation: armed });
    }
    outcome.mutations.push(Mutation::Remove { key: key.clone(), previous: located });
    Ok(Verdict::Disarmed { generation: armed })
}

fn live_timer<V: View>(view: &V, key: &TimerKey) -> Result<Option<Located>, V::Error> {
    let Some(located) = view.locate(key)? else {
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
