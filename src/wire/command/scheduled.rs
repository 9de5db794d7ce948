//! The header form: any record, scheduled as it is.
//!
//! ```text
//!   punctual-timer-id: retry-1   punctual-kind: email   punctual-after: PT30M      key, value and all other headers: yours
//! ```
//!
//! Owns the names of the instructions, which are those of the fields of a JSON command behind `punctual-`, with hyphens. They are
//! taken off; key, value and the other headers are those of the fired record. `cron`, `every`, `local` and `calendar` are JSON
//! objects, as in a command.
//! Keeps: an instruction that is unknown, or stands twice, is refused by name; the others are judged as in any command.

use bytes::Bytes;

use super::json_when::{self, FORMS};
use super::{Glimpse, json_read, when};
use crate::timer::command::{Action, Command};
use crate::timer::model::Header;
use crate::timer::outcome::{Reason, Rejection};
use crate::wire::json::{HEADER_PREFIX, Json, Members};
use crate::wire::{proto, record};

const FIELDS: [&str; 12] = [
    "tenant",
    "run",
    "timer_id",
    "kind",
    "correlation_id",
    "on_conflict",
    "at",
    "after",
    "cron",
    "every",
    "local",
    "calendar",
];
/// What the service itself has added: a dead letter may be sent again as it is.
const OWN_PREFIXES: [&str; 2] = ["punctual-dead-letter-", "punctual-forwarded"];

/// Returns whether a record is in this form: one of its headers says when.
pub fn is_scheduled(headers: &[Header]) -> bool {
    headers.iter().any(|header| field_of(header).is_some_and(|field| FORMS.contains(&field.as_str())))
}

/// Returns the name of the field that a header gives, if it is an instruction.
fn field_of(header: &Header) -> Option<String> {
    let name = header.key.strip_prefix(HEADER_PREFIX)?;
    (!is_own(header)).then(|| name.replace('-', "_"))
}

fn is_own(header: &Header) -> bool {
    OWN_PREFIXES.iter().any(|prefix| header.key.starts_with(prefix))
}

/// Returns the headers with which a record says what `command`, which was read from it, has become: its *when* was resolved.
pub fn resolved(headers: &[Header], command: &Command) -> Vec<Header> {
    let says_when = |header: &Header| field_of(header).is_some_and(|field| FORMS.contains(&field.as_str()));
    let mut resolved: Vec<Header> = headers.iter().filter(|header| !says_when(header)).cloned().collect();
    let Action::Arm(arm) = &command.action else { return resolved };
    let when = when::to_proto(&arm.when);
    let fields = serde_json::to_value(json_when::fields(Some(&when))).unwrap_or_default();
    for (field, value) in fields.as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        resolved.push(Header { key: format!("{HEADER_PREFIX}{field}"), value: Some(Bytes::from(text)) });
    }
    resolved
}

pub(super) fn read(
    key: Option<&Bytes>,
    value: Option<&Bytes>,
    headers: &[Header],
) -> Result<proto::Command, Rejection> {
    let mut instructions = Vec::new();
    let mut own = Vec::new();
    for header in headers {
        match field_of(header) {
            Some(field) => instructions.push((field.clone(), instruction(header, &field)?)),
            None if is_own(header) => {}
            None => own.push(header.clone()),
        }
    }
    let mut members = Members::of_headers(instructions, &FIELDS)?;
    let tenant = members.text("tenant")?.unwrap_or_default();
    let run = match members.text("run")? {
        Some(run) => run,
        None => key.and_then(text_of).ok_or_else(|| {
            let detail = "`punctual-run` is missing, and the key is no text that could stand for it; give it";
            Rejection::new(Reason::Unreadable, detail)
        })?,
    };
    let correlation_id = members.text("correlation_id")?.unwrap_or_default();
    let arm = proto::Arm {
        timer_id: members.required_text("timer_id")?,
        kind_ref: Some(json_read::read_kind(&mut members)?),
        when: Some(json_when::read(&mut members)?),
        on_conflict: i32::from(json_read::read_on_conflict(&mut members)?),
        payload: value.cloned(),
        key: key.cloned(),
        headers: record::headers_to_proto(&own),
        outbox: Vec::new(),
    };
    Ok(proto::Command { tenant, run, correlation_id, action: Some(proto::command::Action::Arm(arm)) })
}

/// Returns what a header says, as it would stand in JSON.
fn instruction(header: &Header, field: &str) -> Result<Json, Rejection> {
    let Some(value) = &header.value else { return Ok(Json::Null) };
    match field {
        "cron" | "every" | "local" | "calendar" => Json::parse(value).map_err(|rejection| {
            let detail = format!(
                "`{}` is no JSON: {}; give the object that a command has under `{field}`",
                header.key, rejection.detail
            );
            Rejection { detail, ..rejection }
        }),
        _ => {
            let Some(text) = text_of(value) else {
                let detail = format!("`{}` is not UTF-8; give a text", header.key);
                return Err(Rejection::new(Reason::Unreadable, detail));
            };
            // As on the command line: digits are a number.
            let is_number = field == "kind" && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = is_number.then(|| text.parse().ok()).flatten();
            Ok(number.map_or(Json::Text(text), Json::Whole))
        }
    }
}

fn text_of(value: &Bytes) -> Option<String> {
    String::from_utf8(value.to_vec()).ok()
}

pub(super) fn glimpse(key: Option<&Bytes>, headers: &[Header]) -> Glimpse {
    let text = |name: &str| {
        let header = headers.iter().find(|header| field_of(header).as_deref() == Some(name))?;
        header.value.as_ref().and_then(text_of)
    };
    Glimpse {
        correlation_id: text("correlation_id"),
        tenant: text("tenant"),
        run: text("run").or_else(|| key.and_then(text_of)),
        timer_id: text("timer_id"),
    }
}

#[cfg(test)]
#[path = "scheduled_test.rs"]
mod tests;
