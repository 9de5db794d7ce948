//! Times as they are typed.
//!
//! Owns what the flags that say when, and `--retention`, take. Keeps: a form that two people could read differently is refused, with
//! the form that was probably meant.

use std::time::Duration;

use super::failure::Failure;
use super::when_args::{ScheduleArgs, WhenArgs};
use crate::calendar::ScheduleError;
use crate::calendar::cron::Cron;
use crate::calendar::interval::Interval;
use crate::calendar::local::LocalTime;
use crate::calendar::parameters::{Parameter, Parameters};
use crate::calendar::zone::{Disambiguation, Zone};
use crate::time::Timestamp;
use crate::timer::command::{RecurringWish, RuleWish, When};
use crate::wire::duration::{parse_millis, write_millis};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Reads the flags that say when.
///
/// # Errors
/// When a value is none, or a flag does not go with the form that is given.
pub(super) fn when(args: &WhenArgs, schedule: &ScheduleArgs) -> Result<When, Failure> {
    let WhenArgs { at, after, cron, every, local, calendar } = args;
    refuse_strays(args, schedule)?;
    if let Some(text) = at {
        return instant(text).map(When::At);
    }
    if let Some(text) = after {
        return positive_millis("--after", text).map(When::AfterMillis);
    }
    if let Some(text) = cron {
        let cron = Cron::parse(text, zone_or_utc(schedule)?).map_err(|error| refused("--cron", &error))?;
        return recurring(RuleWish::Cron(cron), schedule);
    }
    if let Some(text) = every {
        let interval = Interval::parse(text).map_err(|error| refused("--every", &error))?;
        let anchor = optional_instant("--anchor", schedule.anchor.as_deref())?;
        return recurring(RuleWish::Every { interval, zone: zone_or_utc(schedule)?, anchor }, schedule);
    }
    if let Some(text) = local {
        let Some(zone) = &schedule.zone else {
            return Err(Failure::usage("--local needs a zone").with_remedy("add --zone Europe/Berlin, or --zone UTC"));
        };
        let zone = Zone::get(zone).map_err(|error| refused("--zone", &error))?;
        let policy = schedule.disambiguation.as_deref().map(Disambiguation::parse).transpose();
        let policy = policy.map_err(|error| refused("--disambiguation", &error))?.unwrap_or_default();
        return LocalTime::parse(text, zone, policy).map(When::Local).map_err(|error| refused("--local", &error));
    }
    let Some(rule) = calendar else {
        // The parser of the command line asks for one of them.
        return Err(Failure::usage("none of --at, --after, --cron, --every, --local and --calendar is given"));
    };
    let parameters = schedule.parameters.iter().map(|text| parameter(text)).collect::<Result<_, _>>()?;
    Ok(When::Calendar { rule: rule.clone(), parameters: Parameters(parameters) })
}

/// Refuses flags that say nothing about the form that is given.
fn refuse_strays(args: &WhenArgs, schedule: &ScheduleArgs) -> Result<(), Failure> {
    let recurs = args.cron.is_some() || args.every.is_some();
    let given = [
        ("--zone", schedule.zone.is_some(), recurs || args.local.is_some(), "--cron, --every or --local"),
        ("--count", schedule.count.is_some(), recurs, "--cron or --every"),
        ("--until", schedule.until.is_some(), recurs, "--cron or --every"),
        ("--anchor", schedule.anchor.is_some(), args.every.is_some(), "--every"),
        ("--disambiguation", schedule.disambiguation.is_some(), args.local.is_some(), "--local"),
        ("--param", !schedule.parameters.is_empty(), args.calendar.is_some(), "--calendar"),
    ];
    match given.into_iter().find(|(_, is_given, is_fitting, _)| *is_given && !*is_fitting) {
        Some((flag, _, _, forms)) => Err(Failure::usage(format!("{flag} goes with {forms}"))),
        None => Ok(()),
    }
}

fn recurring(rule: RuleWish, schedule: &ScheduleArgs) -> Result<When, Failure> {
    let until = optional_instant("--until", schedule.until.as_deref())?;
    Ok(When::Recurring(Box::new(RecurringWish { rule, count: schedule.count, until, from: None })))
}

fn zone_or_utc(schedule: &ScheduleArgs) -> Result<Zone, Failure> {
    let zone = schedule.zone.as_deref().map(Zone::get).transpose();
    Ok(zone.map_err(|error| refused("--zone", &error))?.unwrap_or_else(Zone::utc))
}

fn optional_instant(flag: &str, text: Option<&str>) -> Result<Option<Timestamp>, Failure> {
    text.map(Timestamp::parse).transpose().map_err(|error| Failure::usage(format!("{flag} {error}")))
}

fn parameter(text: &str) -> Result<(String, Parameter), Failure> {
    let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err(
            Failure::usage(format!("--param `{text}` has no name")).with_remedy("write NAME=VALUE, such as n=5")
        );
    };
    let value = value.parse().map_or_else(|_| Parameter::Text(value.to_owned()), Parameter::Integer);
    Ok((name.to_owned(), value))
}

fn refused(flag: &str, error: &ScheduleError) -> Failure {
    Failure::usage(format!("{flag}: {error}"))
}

/// Reads `--retention`.
///
/// # Errors
/// When it is no positive duration.
pub(super) fn retention(text: &str) -> Result<Duration, Failure> {
    positive_millis("--retention", text).map(|millis| Duration::from_millis(millis.unsigned_abs()))
}

fn instant(text: &str) -> Result<Timestamp, Failure> {
    Timestamp::parse(text).map_err(|error| {
        let failure = Failure::usage(format!("--at {error}"));
        let utc = format!("{text}Z");
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            failure.with_remedy("write the instant, not its number of seconds or milliseconds")
        } else if Timestamp::parse(&utc).is_ok() {
            failure.with_remedy(format!("it has no offset: write {utc} if UTC is meant"))
        } else {
            failure.with_remedy("for a time from now, use --after PT30M")
        }
    })
}

fn positive_millis(flag: &str, text: &str) -> Result<i64, Failure> {
    match parse_millis(flag, text) {
        Ok(millis) if millis > 0 => Ok(millis),
        Ok(_) => Err(Failure::usage(format!("{flag} `{text}` is not longer than nothing"))
            .with_remedy("write a positive duration such as PT30M")),
        Err(rejection) => {
            let failure = Failure::usage(rejection.detail);
            Err(match meant(text) {
                Some(meant) => failure.with_remedy(format!("did you mean {meant}?")),
                None => failure,
            })
        }
    }
}

/// Returns what a duration of the settings (`30m`) is in ISO 8601, unless it has units that vary in length.
fn meant(text: &str) -> Option<String> {
    let has_vague_unit = text.contains('M') || text.contains("mo") || text.contains('y');
    if has_vague_unit {
        return None;
    }
    let duration = humantime::parse_duration(text).ok()?;
    let millis = i64::try_from(duration.as_millis()).ok()?;
    // What was said in days is best answered in days.
    if millis > 0 && millis % DAY_MS == 0 { Some(format!("P{}D", millis / DAY_MS)) } else { Some(write_millis(millis)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(at: Option<&str>, after: Option<&str>) -> String {
        let args = WhenArgs { at: at.map(str::to_owned), after: after.map(str::to_owned), ..WhenArgs::default() };
        let mut told = Vec::new();
        let _ = when(&args, &ScheduleArgs::default()).unwrap_err().report(&mut told);
        String::from_utf8(told).unwrap()
    }

    #[test]
    fn an_instant_and_a_duration_are_read() {
        let at = WhenArgs { at: Some("2026-12-01T10:00:00+01:00".to_owned()), ..WhenArgs::default() };
        assert_eq!(
            when(&at, &ScheduleArgs::default()),
            Ok(When::At(Timestamp::parse("2026-12-01T09:00:00Z").unwrap()))
        );
        let after = WhenArgs { after: Some("PT1.5S".to_owned()), ..WhenArgs::default() };
        assert_eq!(when(&after, &ScheduleArgs::default()), Ok(When::AfterMillis(1500)));
        assert_eq!(retention("P7D"), Ok(Duration::from_hours(7 * 24)));
    }

    #[test]
    fn t9_ambiguous_durations_are_refused_with_what_was_meant() {
        assert!(refusal(None, Some("30m")).ends_with("\n  did you mean PT30M?\n"), "{}", refusal(None, Some("30m")));
        assert!(refusal(None, Some("7d")).ends_with("\n  did you mean P7D?\n"), "{}", refusal(None, Some("7d")));
        assert!(refusal(None, Some("36h")).ends_with("\n  did you mean PT36H?\n"), "{}", refusal(None, Some("36h")));
        assert!(!refusal(None, Some("1M")).contains("did you mean"), "a minute or a month");
        assert!(!refusal(None, Some("P1M")).contains("did you mean"), "a month has no length");
        assert!(refusal(None, Some("PT0S")).contains("--after `PT0S` is not longer than nothing"), "zero");
        assert!(refusal(None, Some("-PT5S")).contains("is not longer than nothing"), "negative");
    }

    #[test]
    fn a_flag_that_does_not_fit_is_refused() {
        let text = |text: &str| Some(text.to_owned());
        let told = |args: WhenArgs, schedule: ScheduleArgs| {
            let mut told = Vec::new();
            let _ = when(&args, &schedule).unwrap_err().report(&mut told);
            String::from_utf8(told).unwrap()
        };
        let after = WhenArgs { after: text("PT5S"), ..WhenArgs::default() };
        let zone = ScheduleArgs { zone: text("UTC"), ..ScheduleArgs::default() };
        assert!(told(after, zone).contains("--zone goes with --cron, --every or --local"), "a zone");
        let cron = WhenArgs { cron: text("0 9 * * *"), ..WhenArgs::default() };
        let anchor = ScheduleArgs { anchor: text("2027-01-01T00:00:00Z"), ..ScheduleArgs::default() };
        assert!(told(cron, anchor).contains("--anchor goes with --every"), "an anchor");
        let local = WhenArgs { local: text("2027-03-28T02:30"), ..WhenArgs::default() };
        assert!(told(local, ScheduleArgs::default()).contains("add --zone Europe/Berlin"), "no zone");
        let rule = WhenArgs { calendar: text("business"), ..WhenArgs::default() };
        let nameless = ScheduleArgs { parameters: vec!["5".to_owned()], ..ScheduleArgs::default() };
        assert!(told(rule, nameless).contains("write NAME=VALUE"), "no name");
    }

    #[test]
    fn instants_that_are_none_are_refused_with_what_was_meant() {
        assert!(
            refusal(Some("2026-12-01T09:00:00"), None).contains("write 2026-12-01T09:00:00Z if UTC is meant"),
            "no offset"
        );
        assert!(refusal(Some("1796115600"), None).contains("not its number of seconds"), "a number");
        assert!(refusal(Some("tomorrow"), None).contains("use --after PT30M"), "a word");
    }
}
