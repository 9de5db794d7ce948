//! The grammar of cron expressions.
//!
//! ```text
//!   expression = [second] minute hour day-of-month month day-of-week | @daily and its like
//!   field      = "*" | "*/" step | item { "," item }
//!   item       = value | value "-" value | value "-" value "/" step
//!   value      = number | JAN..DEC in months | SUN..SAT in days of week; 0 and 7 are Sunday
//! ```
//!
//! Owns what is refused before croner sees it, for croner takes more: empty items, names anywhere, and the extensions that
//! crons disagree about. Never decides what a value matches.

use crate::text::shown;
use croner::CronPattern;

/// An expression that croner takes, and means by it what we mean.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expression {
    /// Five or six fields.
    pub(super) fields: String,
    /// Whether a field of the time of day has a `*`.
    pub(super) follows_clock: bool,
}

/// Longest expression, in bytes: room for lists of all values in each field.
const EXPRESSION_BYTES_MAX: usize = 1024;
/// A field: its name, its least and greatest value, and the names of its values from the least on.
struct Field {
    name: &'static str,
    first: u16,
    last: u16,
    names: &'static [&'static str],
}

const fn field(name: &'static str, first: u16, last: u16, names: &'static [&'static str]) -> Field {
    Field { name, first, last, names }
}

const ALL_FIELDS: [Field; 6] = [
    field("second", 0, 59, &[]),
    field("minute", 0, 59, &[]),
    field("hour", 0, 23, &[]),
    field("day of month", 1, 31, &[]),
    field("month", 1, 12, MONTHS),
    field("day of week", 0, 7, WEEKDAYS),
];
const FIELDS: usize = 5;
/// The fields before the day of month are the time of day.
const FIELDS_OF_DATE: usize = 3;

const NICKNAMES: &[(&str, &str)] = &[
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];
const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
/// Most days of each month, from January.
const MONTH_DAYS: [u16; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// Checks an expression; the problem names the field.
pub(super) fn parse(text: &str) -> Result<Expression, String> {
    if text.len() > EXPRESSION_BYTES_MAX {
        return Err(format!("it has more than {EXPRESSION_BYTES_MAX} bytes"));
    }
    let text = match NICKNAMES.iter().find(|(nickname, _)| *nickname == text.trim().to_ascii_lowercase()) {
        Some((_, expression)) => (*expression).to_owned(),
        None => text.to_ascii_uppercase(),
    };
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let has_seconds = match fields.len() {
        FIELDS => false,
        6 => true,
        count => return Err(format!("it has {count} fields instead of five, or six with seconds first")),
    };
    for (text, field) in fields.iter().zip(ALL_FIELDS.iter().skip(usize::from(!has_seconds))) {
        check_field(text, field).map_err(|problem| format!("{} `{}` {problem}", field.name, shown(text)))?;
    }
    refuse_ambiguous_days(&fields)?;
    let follows_clock = fields.iter().rev().skip(FIELDS_OF_DATE).any(|field| field.contains('*'));
    Ok(Expression { fields: fields.join(" "), follows_clock })
}

fn check_field(text: &str, field: &Field) -> Result<(), String> {
    if text == "*" {
        return Ok(());
    }
    if let Some(step) = text.strip_prefix("*/") {
        return check_step(step);
    }
    for item in text.split(',') {
        let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
        match (range.split_once('-'), step) {
            (Some((first, last)), step) => {
                // A range to Sunday ends the week, one from Sunday begins it.
                let last = if last == "SUN" { "7" } else { last };
                let (first, last) = (field.value(first)?, field.value(last)?);
                if first > last {
                    return Err(format!("has the range `{range}`, which goes backward; split it"));
                }
                step.map_or(Ok(()), check_step)?;
            }
            (None, None) => field.value(range).map(|_| ())?,
            (None, Some(_)) => return Err(format!("has a step after `{range}` alone; write a range such as 10-59/5")),
        }
    }
    Ok(())
}

fn check_step(step: &str) -> Result<(), String> {
    match number(step) {
        Some(1..) => Ok(()),
        Some(0) | None => Err(format!("has the step `{}`; write a whole number, 1 or more", shown(step))),
    }
}

impl Field {
    fn value(&self, text: &str) -> Result<u16, String> {
        let Self { first, last, names, .. } = self;
        let named = names.iter().position(|name| *name == text).and_then(|at| u16::try_from(at).ok());
        // Months count from 1, days of the week from 0.
        let value = number(text).or(named.map(|at| at + first));
        value.filter(|value| (first..=last).contains(&value)).ok_or_else(|| {
            let words = if names.is_empty() { String::new() } else { format!(", or one of {}", names.join(" ")) };
            format!(
                "has `{}`; write numbers from {first} to {last}{words}, ranges and lists of them, or `*`",
                shown(text)
            )
        })
    }
}

/// To some crons a `*/2` restricts a day like a list does, and either day field suffices; to others it does not, and both
/// must match. Who writes one where it matters is told so.
fn refuse_ambiguous_days(fields: &[&str]) -> Result<(), String> {
    let mut dates = fields.iter().rev();
    let (Some(of_week), Some(of_month)) = (dates.next(), dates.nth(1)) else { return Ok(()) };
    let is_restricted = |field: &str| field != "*";
    let is_stepped = |field: &str| field.starts_with("*/");
    let is_ambiguous =
        is_restricted(of_week) && is_restricted(of_month) && (is_stepped(of_week) || is_stepped(of_month));
    if is_ambiguous {
        return Err(format!(
            "crons disagree about day of month `{of_month}` with day of week `{of_week}`; write the step as a range, such as \
             `1-31/2`, if a day is to match when either field does"
        ));
    }
    Ok(())
}

/// Refuses an expression whose months never have one of its days.
pub(super) fn refuse_impossible(pattern: &CronPattern) -> Result<(), String> {
    let has_any = |values: &[u16]| !values.is_empty();
    // If the days of the week are restricted too, either suffices.
    let exists = !pattern.is_dow_wildcard() && has_any(&pattern.days_of_week.values())
        || pattern.months.values().iter().any(|month| {
            let days = MONTH_DAYS.get(usize::from(*month).saturating_sub(1)).copied().unwrap_or(0);
            pattern.days.values().iter().any(|day| *day <= days)
        });
    if exists { Ok(()) } else { Err("no year has such a date".to_owned()) }
}

fn number(text: &str) -> Option<u16> {
    let is_number = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}
