//! The forms of *when* in JSON, read and written.
//!
//! ```json
//! {"at":"2026-12-01T09:00:00.250Z"}   {"after":"PT30M"}
//! {"cron":{"expression":"0 9 * * 1-5","zone":"Europe/Berlin","count":10,"until":"2027-12-31T00:00:00Z"}}
//! {"every":{"interval":"P1M","zone":"Europe/Berlin","anchor":"2027-01-31T08:00:00Z"}}
//! {"local":{"time":"2027-03-28T02:30","zone":"Europe/Berlin","disambiguation":"later"}}
//! {"calendar":{"rule":"business","parameters":{"n":5,"calendar":"de-by","zone":"Europe/Berlin"}}}
//! ```
//!
//! Owns their fields. Keeps: exactly one form is given; what is written is read back as the same.

use std::collections::BTreeMap;

use serde::Serialize;

use super::when;
use crate::calendar::zone::Disambiguation;
use crate::time::Timestamp;
use crate::timer::outcome::{Reason, Rejection};
use crate::wire::json::{Json, Members};
use crate::wire::{duration, proto};

/// The members of an arm that say when.
pub(super) const FORMS: [&str; 6] = ["at", "after", "cron", "every", "local", "calendar"];
const CRON_FIELDS: [&str; 5] = ["expression", "zone", "count", "until", "from"];
const EVERY_FIELDS: [&str; 6] = ["interval", "zone", "anchor", "count", "until", "from"];
const LOCAL_FIELDS: [&str; 3] = ["time", "zone", "disambiguation"];

pub(super) fn read(members: &mut Members) -> Result<proto::arm::When, Rejection> {
    use proto::arm::When;
    let mut given = Vec::new();
    for name in FORMS {
        given.extend(members.take(name).map(|value| (name, value)));
    }
    let mut given = given.into_iter();
    let (name, value) = match (given.next(), given.next()) {
        (Some(only), None) => only,
        (Some((one, _)), Some((other, _))) => {
            let (one, other) = (members.name(one), members.name(other));
            return Err(unreadable(format!("`{one}` and `{other}` are both given; give one of them")));
        }
        (None, _) => {
            let names = FORMS.map(|name| format!("`{}`", members.name(name)));
            return Err(unreadable(format!("{} are all missing; give one of them", names.join(", "))));
        }
    };
    match name {
        "at" => read_instant(members, "at", Some(value)).map(|at| When::AtMs(at.unwrap_or_default())),
        "after" => read_after(members, value).map(When::AfterMs),
        "cron" => read_cron(value, &members.name(name)).map(When::Cron),
        "every" => read_every(value, &members.name(name)).map(When::Every),
        "local" => read_local(value, &members.name(name)).map(When::Local),
        _ => read_calendar(value, &members.name(name)).map(When::Calendar),
    }
}

fn read_instant(members: &Members, name: &str, value: Option<Json>) -> Result<Option<i64>, Rejection> {
    match value {
        None => Ok(None),
        Some(Json::Text(text)) => {
            let instant = Timestamp::parse(&text)
                .map_err(|error| Rejection::new(Reason::InvalidDue, format!("`{}`: {error}", members.name(name))))?;
            Ok(Some(instant.as_millis()))
        }
        Some(other) => {
            let expected = "an RFC 3339 instant as a text, such as \"2026-12-01T09:00:00.250Z\"";
            Err(Rejection { reason: Reason::InvalidDue, ..members.wrong(name, &other, expected) })
        }
    }
}

fn take_instant(members: &mut Members, name: &str) -> Result<Option<i64>, Rejection> {
    let value = members.take(name);
    read_instant(members, name, value)
}

fn read_after(members: &Members, value: Json) -> Result<i64, Rejection> {
    if let Json::Text(after) = value {
        return duration::parse_millis(&members.name("after"), &after);
    }
    let expected = "an ISO 8601 duration as a text, such as \"PT30M\"";
    Err(Rejection { reason: Reason::InvalidDuration, ..members.wrong("after", &value, expected) })
}

fn read_cron(value: Json, path: &str) -> Result<proto::Cron, Rejection> {
    let mut members = Members::open(value, path, &CRON_FIELDS)?;
    Ok(proto::Cron {
        expression: members.required_text("expression")?,
        zone: members.text("zone")?.unwrap_or_default(),
        count: members.whole("count")?,
        until_ms: take_instant(&mut members, "until")?,
        from_ms: take_instant(&mut members, "from")?,
    })
}

fn read_every(value: Json, path: &str) -> Result<proto::Every, Rejection> {
    let mut members = Members::open(value, path, &EVERY_FIELDS)?;
    Ok(proto::Every {
        interval: members.required_text("interval")?,
        zone: members.text("zone")?.unwrap_or_default(),
        anchor_ms: take_instant(&mut members, "anchor")?,
        count: members.whole("count")?,
        until_ms: take_instant(&mut members, "until")?,
        from_ms: take_instant(&mut members, "from")?,
    })
}

fn read_local(value: Json, path: &str) -> Result<proto::Local, Rejection> {
    let mut members = Members::open(value, path, &LOCAL_FIELDS)?;
    let disambiguation = match members.text("disambiguation")? {
        None => proto::Disambiguation::Unspecified,
        Some(name) => when::disambiguation_to_proto(Disambiguation::parse(&name).map_err(when::invalid)?),
    };
    Ok(proto::Local {
        time: members.required_text("time")?,
        zone: members.required_text("zone")?,
        disambiguation: i32::from(disambiguation),
    })
}

fn read_calendar(value: Json, path: &str) -> Result<proto::Calendar, Rejection> {
    use proto::parameter::Value;
    let mut members = Members::open(value, path, &["rule", "parameters"])?;
    let rule = members.required_text("rule")?;
    let mut parameters = BTreeMap::new();
    let given = match members.take("parameters") {
        None => Vec::new(),
        Some(Json::Object(given)) => given,
        Some(other) => return Err(members.wrong("parameters", &other, "an object")),
    };
    when::check_count(given.len())?;
    for (name, value) in given {
        let value = match value {
            Json::Text(text) => Value::Text(text),
            Json::Negative(number) => Value::Integer(number),
            Json::Whole(number) => match i64::try_from(number) {
                Ok(number) => Value::Integer(number),
                Err(_) => Value::Other(number.to_string()),
            },
            other @ (Json::Null | Json::Bool(_) | Json::Other(_)) => Value::Other(other.to_string()),
            other @ (Json::List(_) | Json::Object(_)) => {
                let wrong = members.wrong(&format!("parameters.{name}"), &other, "a whole number or a text");
                return Err(Rejection { reason: Reason::InvalidParameters, ..wrong });
            }
        };
        if parameters.insert(name.clone(), proto::Parameter { value: Some(value) }).is_some() {
            let name = members.name(&format!("parameters.{name}"));
            return Err(unreadable(format!("`{name}` stands twice; give it once")));
        }
    }
    Ok(proto::Calendar { rule, parameters })
}

/// The members that say when.
#[derive(Default, Serialize)]
pub(super) struct Fields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<RuleFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<RuleFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local: Option<LocalFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calendar: Option<CalendarFields<'a>>,
}

#[derive(Serialize)]
struct RuleFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    expression: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    zone: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    anchor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

#[derive(Serialize)]
struct LocalFields<'a> {
    time: &'a str,
    zone: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    disambiguation: Option<&'static str>,
}

#[derive(Serialize)]
struct CalendarFields<'a> {
    rule: &'a str,
    parameters: BTreeMap<&'a str, serde_json::Value>,
}

/// Returns the members that say when.
pub(super) fn fields(when: Option<&proto::arm::When>) -> Fields<'_> {
    use proto::arm::When;
    let instant = |millis: Option<i64>| millis.map(|millis| Timestamp::from_millis(millis).to_string());
    match when {
        None => Fields::default(),
        Some(When::AtMs(millis)) => Fields { at: instant(Some(*millis)), ..Fields::default() },
        Some(When::AfterMs(millis)) => Fields { after: Some(duration::write_millis(*millis)), ..Fields::default() },
        Some(When::Cron(cron)) => {
            let rule = RuleFields {
                expression: Some(&cron.expression),
                interval: None,
                zone: &cron.zone,
                anchor: None,
                count: cron.count,
                until: instant(cron.until_ms),
                from: instant(cron.from_ms),
            };
            Fields { cron: Some(rule), ..Fields::default() }
        }
        Some(When::Every(every)) => {
            let rule = RuleFields {
                expression: None,
                interval: Some(&every.interval),
                zone: &every.zone,
                anchor: instant(every.anchor_ms),
                count: every.count,
                until: instant(every.until_ms),
                from: instant(every.from_ms),
            };
            Fields { every: Some(rule), ..Fields::default() }
        }
        Some(When::Local(local)) => {
            let disambiguation = Some(when::disambiguation_of(local.disambiguation()))
                .filter(|disambiguation| *disambiguation != Disambiguation::Compatible)
                .map(Disambiguation::name);
            let local = LocalFields { time: &local.time, zone: &local.zone, disambiguation };
            Fields { local: Some(local), ..Fields::default() }
        }
        Some(When::Calendar(calendar)) => {
            let parameters = calendar.parameters.iter().map(|(name, value)| (name.as_str(), parameter(value)));
            let calendar = CalendarFields { rule: &calendar.rule, parameters: parameters.collect() };
            Fields { calendar: Some(calendar), ..Fields::default() }
        }
    }
}

fn parameter(parameter: &proto::Parameter) -> serde_json::Value {
    use proto::parameter::Value;
    match &parameter.value {
        Some(Value::Integer(value)) => (*value).into(),
        Some(Value::Text(text)) => text.as_str().into(),
        // What is neither is JSON, or was never one: then a text is what a rule refuses as well.
        Some(Value::Other(text)) => serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()),
        None => serde_json::Value::Null,
    }
}

fn unreadable(detail: impl Into<String>) -> Rejection {
    Rejection::new(Reason::Unreadable, detail)
}
