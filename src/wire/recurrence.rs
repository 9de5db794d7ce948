//! Recurrence as it is stored with a timer.
//!
//! Owns the step between `proto::Recurrence` and the core's. Keeps: what is read back is the same value; a zone or an
//! expression that this release does not know makes the timer one that cannot be decoded, which is kept.

use std::num::NonZeroU64;

use super::proto;
use crate::calendar::cron::Cron;
use crate::calendar::every::Every;
use crate::calendar::interval::Interval;
use crate::calendar::recurrence::{Recurrence, Rule};
use crate::calendar::zone::Zone;
use crate::time::Timestamp;
use crate::timer::recurring::Recurring;

pub(super) fn to_proto(recurring: &Recurring) -> proto::Recurrence {
    let Recurrence { rule, count, until } = &recurring.recurrence;
    let (message, anchor) = match rule {
        Rule::Cron(cron) => (proto::recurrence::Rule::Cron(cron.text().to_owned()), None),
        Rule::Every(every) => (proto::recurrence::Rule::Interval(every.interval.to_string()), Some(every.anchor)),
    };
    proto::Recurrence {
        rule: Some(message),
        zone: rule.zone().name().to_owned(),
        anchor_ms: anchor.map(Timestamp::as_millis),
        count: count.map(NonZeroU64::get),
        until_ms: until.map(Timestamp::as_millis),
        fired: recurring.fired,
    }
}

pub(super) fn from_proto(message: proto::Recurrence) -> Result<Recurring, String> {
    let zone = Zone::get(&message.zone).map_err(|error| error.to_string())?;
    let rule = match (message.rule, message.anchor_ms) {
        (Some(proto::recurrence::Rule::Cron(text)), None) => {
            Rule::Cron(Box::new(Cron::parse(&text, zone).map_err(|error| error.to_string())?))
        }
        (Some(proto::recurrence::Rule::Interval(text)), Some(anchor_ms)) => {
            let interval = Interval::parse(&text).map_err(|error| error.to_string())?;
            Rule::Every(Every { interval, anchor: super::state::instant("anchor", anchor_ms)?, zone })
        }
        (Some(_) | None, _) => {
            return Err("its recurrence has no rule, or not the anchor that goes with it".to_owned());
        }
    };
    let count = match message.count.map(NonZeroU64::new) {
        Some(None) => return Err("it recurs 0 times".to_owned()),
        Some(count) => count,
        None => None,
    };
    if count.is_some_and(|count| message.fired >= count.get()) {
        return Err(format!("it has fired {} times, as often as it may", message.fired));
    }
    let until = message.until_ms.map(|millis| super::state::instant("until", millis)).transpose()?;
    Ok(Recurring { recurrence: Recurrence { rule, count, until }, fired: message.fired })
}
