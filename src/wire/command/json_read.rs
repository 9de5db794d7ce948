//! Commands read from JSON.
//!
//! Owns the fields of the JSON form and how its texts become numbers and bytes. It is made for a shell: instants are
//! RFC 3339, durations ISO 8601, bytes are text or base64. `json_write` is its inverse.
//!
//! ```json
//! {"tenant":"acme","run":"order-42","correlation_id":"c-1",
//!  "arm":{"timer_id":"reminder","kind":"email","at":"2026-12-01T09:00:00.250Z","payload":"text"}}
//! ```
//!
//! Keeps: unknown, repeated and contradicting fields are refused by name, at any depth; a field that is null is absent.

use super::{Glimpse, form, json_when};
use crate::timer::outcome::{Reason, Rejection};
use crate::wire::json::{Json, Members};
use crate::wire::{duration, proto};

const COMMAND_FIELDS: [&str; 9] =
    ["tenant", "run", "correlation_id", "arm", "disarm", "disarm_run", "seal_run", "pause", "resume"];
const ACTIONS: [&str; 6] = ["arm", "disarm", "disarm_run", "seal_run", "pause", "resume"];
/// The actions that are about one timer.
const TIMER_ACTIONS: [&str; 4] = ["arm", "disarm", "pause", "resume"];
const ARM_FIELDS: [&str; 15] = [
    "timer_id",
    "kind",
    "at",
    "after",
    "cron",
    "every",
    "local",
    "calendar",
    "on_conflict",
    "payload",
    "payload_base64",
    "key",
    "key_base64",
    "headers",
    "outbox",
];
const OUTBOX_FIELDS: [&str; 5] = ["key", "key_base64", "value", "value_base64", "headers"];
const HEADER_FIELDS: [&str; 3] = ["key", "value", "value_base64"];

pub(super) fn glimpse(tree: &Json) -> Glimpse {
    let text = |json: Option<&Json>| json.and_then(Json::as_text).map(str::to_owned);
    let action = TIMER_ACTIONS.into_iter().find_map(|name| tree.member(name));
    Glimpse {
        correlation_id: text(tree.member("correlation_id")),
        tenant: text(tree.member("tenant")),
        run: text(tree.member("run")),
        timer_id: text(action.and_then(|action| action.member("timer_id"))),
    }
}

pub(super) fn read(tree: Json) -> Result<proto::Command, Rejection> {
    let mut members = Members::open(tree, "", &COMMAND_FIELDS)?;
    Ok(proto::Command {
        tenant: members.text("tenant")?.unwrap_or_default(),
        run: members.required_text("run")?,
        correlation_id: members.text("correlation_id")?.unwrap_or_default(),
        action: Some(read_action(&mut members)?),
    })
}

fn read_action(members: &mut Members) -> Result<proto::command::Action, Rejection> {
    use proto::command::Action;
    let mut given = Vec::new();
    for name in ACTIONS {
        given.extend(members.take(name).map(|value| (name, value)));
    }
    let names: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
    let names = names.join(" and ");
    let mut given = given.into_iter();
    match (given.next(), given.next()) {
        (Some(("arm", arm)), None) => Ok(Action::Arm(read_arm(arm)?)),
        (Some((name @ "disarm", disarm)), None) => {
            let (timer_id, generation) = read_about(name, disarm)?;
            Ok(Action::Disarm(proto::Disarm { timer_id, generation }))
        }
        (Some((name @ "pause", pause)), None) => {
            let (timer_id, generation) = read_about(name, pause)?;
            Ok(Action::Pause(proto::Pause { timer_id, generation }))
        }
        (Some((name @ "resume", resume)), None) => {
            let (timer_id, generation) = read_about(name, resume)?;
            Ok(Action::Resume(proto::Resume { timer_id, generation }))
        }
        (Some(("disarm_run", disarm_run)), None) => {
            Members::open(disarm_run, "disarm_run", &[])?;
            Ok(Action::DisarmRun(proto::DisarmRun {}))
        }
        (Some((_, seal_run)), None) => Ok(Action::SealRun(read_seal_run(seal_run)?)),
        (Some(_), Some(_)) => Err(unreadable(format!("the command has {names}; send one action in a record"))),
        (None, _) => {
            Err(unreadable("the command has no action; give one of arm, disarm, disarm_run, seal_run, pause, resume"))
        }
    }
}

fn read_arm(arm: Json) -> Result<proto::Arm, Rejection> {
    let mut members = Members::open(arm, "arm", &ARM_FIELDS)?;
    Ok(proto::Arm {
        timer_id: members.required_text("timer_id")?,
        kind_ref: Some(read_kind(&mut members)?),
        when: Some(json_when::read(&mut members)?),
        on_conflict: i32::from(read_on_conflict(&mut members)?),
        payload: members.bytes("payload")?,
        key: members.bytes("key")?,
        headers: read_headers(&mut members)?,
        outbox: read_outbox(&mut members)?,
    })
}

pub(super) fn read_kind(members: &mut Members) -> Result<proto::arm::KindRef, Rejection> {
    match members.take("kind") {
        None => Err(members.missing("kind")),
        Some(Json::Text(name)) => Ok(proto::arm::KindRef::Kind(name)),
        Some(Json::Whole(number)) => match u32::try_from(number) {
            Ok(number) => Ok(proto::arm::KindRef::KindNumber(number)),
            Err(_) => Err(form::invalid_kind(&number.to_string())),
        },
        Some(number @ (Json::Negative(_) | Json::Other(_))) => Err(form::invalid_kind(&number.to_string())),
        Some(other @ (Json::Null | Json::Bool(_) | Json::List(_) | Json::Object(_))) => {
            Err(members.wrong("kind", &other, "the kind's name, or its number"))
        }
    }
}

pub(super) fn read_on_conflict(members: &mut Members) -> Result<proto::OnConflict, Rejection> {
    match members.text("on_conflict")?.as_deref() {
        None | Some("keep") => Ok(proto::OnConflict::Keep),
        Some("replace") => Ok(proto::OnConflict::Replace),
        Some(other) => Err(members.wrong("on_conflict", &Json::Text(other.to_owned()), "keep or replace")),
    }
}

fn read_headers(members: &mut Members) -> Result<Vec<proto::Header>, Rejection> {
    let list = members.list("headers")?;
    let mut headers = Vec::with_capacity(list.len());
    for (index, header) in list.into_iter().enumerate() {
        let path = format!("{}[{index}]", members.name("headers"));
        let mut header = Members::open(header, &path, &HEADER_FIELDS)?;
        headers.push(proto::Header { key: header.required_text("key")?, value: header.bytes("value")? });
    }
    Ok(headers)
}

fn read_outbox(members: &mut Members) -> Result<Vec<proto::OutboxRecord>, Rejection> {
    let list = members.list("outbox")?;
    let mut records = Vec::with_capacity(list.len());
    for (index, record) in list.into_iter().enumerate() {
        let path = format!("{}[{index}]", members.name("outbox"));
        let mut record = Members::open(record, &path, &OUTBOX_FIELDS)?;
        records.push(proto::OutboxRecord {
            key: record.bytes("key")?,
            value: record.bytes("value")?,
            headers: read_headers(&mut record)?,
        });
    }
    Ok(records)
}

/// Reads what an action has that is about one timer, or one version of it.
fn read_about(name: &str, action: Json) -> Result<(String, Option<u64>), Rejection> {
    let mut members = Members::open(action, name, &["timer_id", "generation"])?;
    Ok((members.required_text("timer_id")?, members.whole("generation")?))
}

fn read_seal_run(seal_run: Json) -> Result<proto::SealRun, Rejection> {
    let mut members = Members::open(seal_run, "seal_run", &["retention"])?;
    let retention = match members.take("retention") {
        None => None,
        Some(Json::Text(text)) => Some(duration::parse_millis(&members.name("retention"), &text)?),
        Some(other) => {
            let expected = "an ISO 8601 duration as a text, such as \"P7D\"";
            let rejection = members.wrong("retention", &other, expected);
            return Err(Rejection { reason: Reason::InvalidDuration, ..rejection });
        }
    };
    Ok(proto::SealRun { retention_ms: retention })
}

fn unreadable(detail: impl Into<String>) -> Rejection {
    Rejection::new(Reason::Unreadable, detail)
}
