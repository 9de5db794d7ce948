//! When a timer would fire, shown before it is armed.
//!
//! Owns the way from *when* to its next instants, as the service resolves them. Never sends anything.

use serde_json::json;

use super::failure::Failure;
use super::output::{Format, Output};
use crate::calendar::Calendar;
use crate::calendar::zone::Zone;
use crate::time::Timestamp;
use crate::timer::apply::Context;
use crate::timer::command::{RuleWish, When};
use crate::timer::kind::Registry;
use crate::timer::limits::Limits;
use crate::timer::model::Generation;
use crate::timer::schedule;

/// How many occurrences are shown of a timer that recurs.
const SHOWN: usize = 3;

/// Returns the next instants.
///
/// # Errors
/// When the service would reject it, with the service's own words.
pub(super) fn upcoming(
    when: &When,
    calendar: &dyn Calendar,
    limits: &Limits,
    now: Timestamp,
) -> Result<Vec<Timestamp>, Failure> {
    let registry = Registry::default();
    let context =
        Context { registry: &registry, limits, calendar, now, recorded: Some(now), next_generation: Generation(1) };
    let scheduled = schedule::resolve(when, &context).map_err(|rejection| Failure::usage(rejection.detail))?;
    let mut upcoming = vec![scheduled.due];
    if let Some(recurring) = scheduled.recurring {
        upcoming.extend(recurring.recurrence.upcoming(scheduled.due, 1, SHOWN - 1));
    }
    Ok(upcoming)
}

/// Shows the instants, on the clock of the zone too if there is one.
///
/// # Errors
/// When the output is closed.
pub(super) fn show(when: &When, upcoming: &[Timestamp], out: &mut Output<'_>) -> Result<(), Failure> {
    let zone = zone(when);
    if out.format == Format::Json {
        let next: Vec<String> = upcoming.iter().map(ToString::to_string).collect();
        out.json(&json!({ "next": next }))?;
        return Ok(());
    }
    for at in upcoming {
        match zone.and_then(|zone| Some((zone, zone.civil(*at)?))) {
            Some((zone, civil)) => out.line(&format!("next {at}, {civil} in {zone}"))?,
            None => out.line(&format!("next {at}"))?,
        }
    }
    Ok(())
}

fn zone(when: &When) -> Option<&Zone> {
    match when {
        When::At(_) | When::AfterMillis(_) | When::Calendar { .. } => None,
        When::Local(local) => Some(&local.zone),
        When::Recurring(wish) => match &wish.rule {
            RuleWish::Cron(cron) => Some(cron.zone()),
            RuleWish::Every { zone, .. } => Some(zone),
        },
    }
}
