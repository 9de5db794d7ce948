//! Resolves when a timer fires: once, when its arm is applied.
//!
//! Owns [`Scheduled`], and the way from a calendar's refusals to rejections. Never reads a clock: all counts from the record's
//! timestamp, so that a replay resolves the same, and an outage of ours neither rejects nor moves a due.
//! Keeps: a timer that is armed has an instant.

use super::apply::Context;
use super::command::{RecurringWish, RuleWish, When};
use super::outcome::{Reason, Rejection};
use super::recurring::Recurring;
use crate::calendar::digest::{self, Digest};
use crate::calendar::every::Every;
use crate::calendar::parameters::Parameters;
use crate::calendar::recurrence::{Recurrence, Rule};
use crate::calendar::{CalendarError, ScheduleError};
use crate::planted::{Bug, is_on};
use crate::time::Timestamp;

/// Longest detail of a rejection, in characters: all bad parameters are named, and it becomes a header.
const DETAIL_CHARACTERS_MAX: usize = 1_024;

/// When a timer fires, and how it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// The first instant.
    pub due: Timestamp,
    /// How it recurs.
    pub recurring: Option<Box<Recurring>>,
    /// What it was resolved with.
    pub resolved_with: Option<Digest>,
}

/// Resolves when a timer is to fire.
///
/// # Errors
/// When the record's timestamp is needed and is missing or ahead of us, or no acceptable instant comes of it.
pub fn resolve(when: &When, context: &Context<'_>) -> Result<Scheduled, Rejection> {
    let (due, recurring, resolved_with) = match when {
        When::At(at) => (at_instant(*at, context)?, None, None),
        When::AfterMillis(after) => (after_millis(*after, context)?, None, None),
        When::Recurring(wish) => {
            let (due, recurring) = first_occurrence(wish, context)?;
            (due, Some(Box::new(recurring)), Some(digest::zone_database()))
        }
        When::Local(local) => {
            let due = local.resolve().map_err(|error| invalid(&error))?;
            (due, None, Some(digest::zone_database()))
        }
        When::Calendar { rule, parameters } => {
            (by_rule(rule, parameters, context)?, None, Some(context.calendar.digest()))
        }
    };
    Ok(Scheduled { due, recurring, resolved_with })
}

/// Returns the same *when*, independent of its record's timestamp: it is to be sent again in another record.
///
/// # Errors
/// As [`resolve`].
pub fn independent(when: &When, context: &Context<'_>) -> Result<When, Rejection> {
    match when {
        When::At(_) | When::Local(_) => Ok(when.clone()),
        When::AfterMillis(_) | When::Calendar { .. } => Ok(When::At(resolve(when, context)?.due)),
        When::Recurring(wish) => {
            let from = Some(start(wish, context)?);
            Ok(When::Recurring(Box::new(RecurringWish { from, ..(**wish).clone() })))
        }
    }
}

fn at_instant(at: Timestamp, context: &Context<'_>) -> Result<Timestamp, Rejection> {
    if at < Timestamp::EPOCH || at > Timestamp::MAX {
        let detail = format!("at is {} ms, outside the years 1970 to 9999", at.as_millis());
        return Err(Rejection::new(Reason::InvalidDue, detail));
    }
    if at.as_millis() < context.limits.seconds_suspected_below_ms {
        let detail = format!("at is {} ms since 1970, which looks like seconds; give milliseconds", at.as_millis());
        return Err(Rejection::new(Reason::DueInSeconds, detail));
    }
    Ok(at)
}

fn after_millis(after: i64, context: &Context<'_>) -> Result<Timestamp, Rejection> {
    if after <= 0 {
        let detail = format!("after is {after} ms; give a duration above zero");
        return Err(Rejection::new(Reason::InvalidDuration, detail));
    }
    let recorded = recorded("after", "at", context)?;
    let from = if is_on(Bug::AfterFromOurClock) { context.now } else { recorded };
    from.checked_add_millis(after).ok_or_else(|| {
        let detail = format!("after is {after} ms, which ends beyond the year 9999");
        Rejection::new(Reason::InvalidDuration, detail)
    })
}

fn first_occurrence(wish: &RecurringWish, context: &Context<'_>) -> Result<(Timestamp, Recurring), Rejection> {
    let from = start(wish, context)?;
    let rule = match &wish.rule {
        RuleWish::Cron(cron) => Rule::Cron(Box::new(cron.clone())),
        RuleWish::Every { interval, zone, anchor } => {
            Rule::Every(Every { interval: *interval, anchor: anchor.unwrap_or(from), zone: zone.clone() })
        }
    };
    let recurrence = Recurrence { rule, count: wish.count, until: wish.until };
    if let Some(due) = recurrence.next(from, 0) {
        return Ok((due, Recurring { recurrence, fired: 0 }));
    }
    let detail = match wish.until {
        Some(until) => format!("the timer never fires: nothing is after {from} and not after until, {until}"),
        None => format!("the timer never fires: no occurrence after {from} can be computed"),
    };
    Err(Rejection::new(Reason::InvalidSchedule, detail))
}

/// Returns the instant from which occurrences count.
fn start(wish: &RecurringWish, context: &Context<'_>) -> Result<Timestamp, Rejection> {
    match wish.from {
        Some(from) => Ok(from),
        None => recorded("the recurrence", "from", context),
    }
}

fn by_rule(rule: &str, parameters: &Parameters, context: &Context<'_>) -> Result<Timestamp, Rejection> {
    let from = recorded("the rule", "at", context)?;
    context.calendar.resolve(from, rule, parameters).map_err(|error| {
        let reason = match error {
            CalendarError::UnknownRule { .. } => Reason::UnknownRule,
            CalendarError::BadParameters(_) => Reason::InvalidParameters,
            CalendarError::OutOfRange(_) => Reason::OutOfRange,
        };
        Rejection::new(reason, error.to_string().chars().take(DETAIL_CHARACTERS_MAX).collect::<String>())
    })
}

fn recorded(what: &str, instead: &str, context: &Context<'_>) -> Result<Timestamp, Rejection> {
    let recorded = context.recorded.ok_or_else(|| {
        let detail =
            format!("{what} counts from the record's timestamp, and the record has none; send one, or use {instead}");
        Rejection::new(Reason::MissingTimestamp, detail)
    })?;
    if recorded.since(context.now) > context.limits.skew_max {
        let detail = format!(
            "the record's timestamp {recorded} is more than {} s ahead of {}; set the producer's clock",
            context.limits.skew_max.as_secs(),
            context.now
        );
        return Err(Rejection::new(Reason::TimestampAhead, detail));
    }
    Ok(recorded)
}

fn invalid(error: &ScheduleError) -> Rejection {
    Rejection::new(Reason::InvalidSchedule, error.to_string())
}

#[cfg(test)]
#[path = "schedule_test.rs"]
mod tests;
