//! The forms of *when*, between the generated types and the core's.
//!
//! Owns what a zone, an expression, an interval, a civil time and parameters are judged by at the edge: whether they are ones.
//! Never resolves an instant: the core does. Keeps: the two directions are inverse.

use std::num::NonZeroU64;

use crate::calendar::ScheduleError;
use crate::calendar::cron::Cron;
use crate::calendar::interval::Interval;
use crate::calendar::local::LocalTime;
use crate::calendar::parameters::{Parameter, Parameters};
use crate::calendar::zone::{Disambiguation, Zone};
use crate::text::shown;
use crate::time::Timestamp;
use crate::timer::command::{RecurringWish, RuleWish, When};
use crate::timer::outcome::{Reason, Rejection};
use crate::wire::proto;

/// Most parameters of a rule.
const PARAMETERS_MAX: usize = 16;
/// Longest name of a rule, name of a parameter and text of one, in bytes.
const PARAMETER_BYTES_MAX: usize = 256;
/// The zone that is meant when none is given.
const UTC: &str = "UTC";

pub(super) fn from_proto(when: proto::arm::When) -> Result<When, Rejection> {
    use proto::arm::When as Message;
    match when {
        Message::AtMs(millis) => instant("at_ms", millis).map(When::At),
        Message::AfterMs(millis) => Ok(When::AfterMillis(millis)),
        Message::Cron(cron) => {
            let rule = RuleWish::Cron(Cron::parse(&cron.expression, zone_or_utc(&cron.zone)?).map_err(invalid)?);
            recurring(rule, cron.count, cron.until_ms, cron.from_ms)
        }
        Message::Every(every) => {
            let rule = RuleWish::Every {
                interval: Interval::parse(&every.interval).map_err(invalid)?,
                zone: zone_or_utc(&every.zone)?,
                anchor: every.anchor_ms.map(|millis| instant("anchor_ms", millis)).transpose()?,
            };
            recurring(rule, every.count, every.until_ms, every.from_ms)
        }
        Message::Local(local) => {
            let disambiguation = disambiguation(local.disambiguation)?;
            let zone = Zone::get(&local.zone).map_err(invalid)?;
            LocalTime::parse(&local.time, zone, disambiguation).map(When::Local).map_err(invalid)
        }
        Message::Calendar(calendar) => {
            Ok(When::Calendar { parameters: parameters(calendar.parameters)?, rule: short("rule", calendar.rule)? })
        }
    }
}

fn recurring(
    rule: RuleWish,
    count: Option<u64>,
    until_ms: Option<i64>,
    from_ms: Option<i64>,
) -> Result<When, Rejection> {
    let count = match count {
        Some(count) => Some(NonZeroU64::new(count).ok_or_else(|| {
            Rejection::new(Reason::InvalidSchedule, "count is 0; give 1 or more, or leave it out for no end")
        })?),
        None => None,
    };
    let until = until_ms.map(|millis| instant("until_ms", millis)).transpose()?;
    let from = from_ms.map(|millis| instant("from_ms", millis)).transpose()?;
    Ok(When::Recurring(Box::new(RecurringWish { rule, count, until, from })))
}

fn instant(field: &str, millis: i64) -> Result<Timestamp, Rejection> {
    if (0..=Timestamp::MAX.as_millis()).contains(&millis) {
        return Ok(Timestamp::from_millis(millis));
    }
    let detail =
        format!("{field} is {millis}, outside the years 1970 to 9999; give milliseconds since 1970-01-01T00:00:00Z");
    Err(Rejection::new(Reason::InvalidDue, detail))
}

fn zone_or_utc(name: &str) -> Result<Zone, Rejection> {
    if name.is_empty() { Ok(Zone::utc()) } else { Zone::get(name).map_err(invalid) }
}

fn disambiguation(number: i32) -> Result<Disambiguation, Rejection> {
    proto::Disambiguation::try_from(number).map(disambiguation_of).map_err(|_| {
        let detail =
            format!("disambiguation {number} is not known to this release; give 0 to 4, or upgrade the service");
        Rejection::new(Reason::Unreadable, detail)
    })
}

pub(super) fn disambiguation_of(message: proto::Disambiguation) -> Disambiguation {
    match message {
        proto::Disambiguation::Unspecified | proto::Disambiguation::Compatible => Disambiguation::Compatible,
        proto::Disambiguation::Earlier => Disambiguation::Earlier,
        proto::Disambiguation::Later => Disambiguation::Later,
        proto::Disambiguation::Reject => Disambiguation::Reject,
    }
}

/// What is the default is left out: a forwarded command must not outgrow the one that was sent.
pub(super) fn disambiguation_to_proto(disambiguation: Disambiguation) -> proto::Disambiguation {
    match disambiguation {
        Disambiguation::Compatible => proto::Disambiguation::Unspecified,
        Disambiguation::Earlier => proto::Disambiguation::Earlier,
        Disambiguation::Later => proto::Disambiguation::Later,
        Disambiguation::Reject => proto::Disambiguation::Reject,
    }
}

/// Checks how many parameters a rule is given, before any is kept.
pub(super) fn check_count(count: usize) -> Result<(), Rejection> {
    if count <= PARAMETERS_MAX {
        return Ok(());
    }
    let detail = format!("the rule has {count} parameters; at most {PARAMETERS_MAX} fit");
    Err(Rejection::new(Reason::TooMany, detail))
}

fn parameters(given: std::collections::BTreeMap<String, proto::Parameter>) -> Result<Parameters, Rejection> {
    use proto::parameter::Value;
    check_count(given.len())?;
    let mut parameters = Parameters::default();
    for (name, parameter) in given {
        let value = match parameter.value {
            Some(Value::Integer(value)) => Parameter::Integer(value),
            Some(Value::Text(text)) => Parameter::Text(short("a parameter", text)?),
            Some(Value::Other(text)) => Parameter::Other(short("a parameter", text)?),
            None => {
                let detail = format!("parameter `{}` has no value that this release knows", shown(&name));
                return Err(Rejection::new(Reason::InvalidParameters, detail));
            }
        };
        parameters.0.insert(short("the name of a parameter", name)?, value);
    }
    Ok(parameters)
}

fn short(what: &str, text: String) -> Result<String, Rejection> {
    if text.len() <= PARAMETER_BYTES_MAX {
        return Ok(text);
    }
    let detail = format!("{what} `{}` has {} bytes; at most {PARAMETER_BYTES_MAX} fit", shown(&text), text.len());
    Err(Rejection::new(Reason::InvalidParameters, detail))
}

#[expect(clippy::needless_pass_by_value, reason = "it stands where an error is mapped")]
pub(super) fn invalid(error: ScheduleError) -> Rejection {
    Rejection::new(Reason::InvalidSchedule, error.to_string())
}

pub(super) fn to_proto(when: &When) -> proto::arm::When {
    use proto::arm::When as Message;
    match when {
        When::At(at) => Message::AtMs(at.as_millis()),
        When::AfterMillis(millis) => Message::AfterMs(*millis),
        When::Recurring(wish) => {
            let count = wish.count.map(NonZeroU64::get);
            let (until_ms, from_ms) = (wish.until.map(Timestamp::as_millis), wish.from.map(Timestamp::as_millis));
            match &wish.rule {
                RuleWish::Cron(cron) => Message::Cron(proto::Cron {
                    expression: cron.text().to_owned(),
                    zone: zone_name(cron.zone()),
                    count,
                    until_ms,
                    from_ms,
                }),
                RuleWish::Every { interval, zone, anchor } => Message::Every(proto::Every {
                    interval: interval.to_string(),
                    zone: zone_name(zone),
                    anchor_ms: anchor.map(Timestamp::as_millis),
                    count,
                    until_ms,
                    from_ms,
                }),
            }
        }
        When::Local(local) => Message::Local(proto::Local {
            time: local.civil.to_string(),
            zone: local.zone.name().to_owned(),
            disambiguation: i32::from(disambiguation_to_proto(local.disambiguation)),
        }),
        When::Calendar { rule, parameters } => {
            let parameters = parameters.0.iter().map(|(name, value)| (name.clone(), parameter_to_proto(value)));
            Message::Calendar(proto::Calendar { rule: rule.clone(), parameters: parameters.collect() })
        }
    }
}

/// UTC is left out as well.
fn zone_name(zone: &Zone) -> String {
    Some(zone.name()).filter(|name| *name != UTC).unwrap_or_default().to_owned()
}

fn parameter_to_proto(value: &Parameter) -> proto::Parameter {
    use proto::parameter::Value;
    let value = match value {
        Parameter::Integer(value) => Value::Integer(*value),
        Parameter::Text(text) => Value::Text(text.clone()),
        Parameter::Other(text) => Value::Other(text.clone()),
    };
    proto::Parameter { value: Some(value) }
}

#[cfg(test)]
#[path = "when_test.rs"]
mod tests;
