//! Commands written as JSON.
//!
//! Owns the order of the fields and the choice between text and base64. Keeps: `json_read` reads back what is written
//! here; bytes take the shorter of the two forms, so that a command that is read and written again fits where it came from.

use base64::Engine;
use bytes::Bytes;
use serde::Serialize;

use super::json_when;
use crate::wire::json::BASE64;
use crate::wire::{duration, proto};

#[derive(Serialize)]
struct CommandFields<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    tenant: &'a str,
    run: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    correlation_id: &'a str,
    #[serde(flatten)]
    action: Option<ActionFields<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ActionFields<'a> {
    Arm(Box<ArmFields<'a>>),
    Disarm(AboutFields<'a>),
    Pause(AboutFields<'a>),
    Resume(AboutFields<'a>),
    DisarmRun {},
    SealRun {
        #[serde(skip_serializing_if = "Option::is_none")]
        retention: Option<String>,
    },
}

#[derive(Serialize)]
struct AboutFields<'a> {
    timer_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
}

#[derive(Serialize)]
struct ArmFields<'a> {
    timer_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<KindField<'a>>,
    #[serde(flatten)]
    when: json_when::Fields<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_conflict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<HeaderFields<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outbox: Vec<OutboxFields<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum KindField<'a> {
    Number(u32),
    Name(&'a str),
}

#[derive(Serialize)]
struct HeaderFields<'a> {
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_base64: Option<String>,
}

#[derive(Serialize)]
struct OutboxFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_base64: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<HeaderFields<'a>>,
}

pub(super) fn write(command: &proto::Command) -> Bytes {
    let fields = CommandFields {
        tenant: &command.tenant,
        run: &command.run,
        correlation_id: &command.correlation_id,
        action: command.action.as_ref().map(action_fields),
    };
    let text = serde_json::to_vec(&fields).expect("texts, numbers and lists are always JSON");
    Bytes::from(text)
}

fn action_fields(action: &proto::command::Action) -> ActionFields<'_> {
    use proto::command::Action;
    match action {
        Action::Arm(arm) => ActionFields::Arm(Box::new(arm_fields(arm))),
        Action::Disarm(proto::Disarm { timer_id, generation }) => {
            ActionFields::Disarm(AboutFields { timer_id, generation: *generation })
        }
        Action::Pause(proto::Pause { timer_id, generation }) => {
            ActionFields::Pause(AboutFields { timer_id, generation: *generation })
        }
        Action::Resume(proto::Resume { timer_id, generation }) => {
            ActionFields::Resume(AboutFields { timer_id, generation: *generation })
        }
        Action::DisarmRun(proto::DisarmRun {}) => ActionFields::DisarmRun {},
        Action::SealRun(seal) => ActionFields::SealRun { retention: seal.retention_ms.map(duration::write_millis) },
    }
}

fn arm_fields(arm: &proto::Arm) -> ArmFields<'_> {
    let kind = arm.kind_ref.as_ref().map(|kind| match kind {
        proto::arm::KindRef::KindNumber(number) => KindField::Number(*number),
        proto::arm::KindRef::Kind(name) => KindField::Name(name),
    });
    let on_conflict = match arm.on_conflict() {
        proto::OnConflict::Unspecified | proto::OnConflict::Keep => None,
        proto::OnConflict::Replace => Some("replace"),
    };
    let (payload, payload_base64) = text_or_base64(arm.payload.as_ref());
    let (key, key_base64) = text_or_base64(arm.key.as_ref());
    ArmFields {
        timer_id: &arm.timer_id,
        kind,
        when: json_when::fields(arm.when.as_ref()),
        on_conflict,
        payload,
        payload_base64,
        key,
        key_base64,
        headers: header_fields(&arm.headers),
        outbox: outbox_fields(&arm.outbox),
    }
}

fn header_fields(headers: &[proto::Header]) -> Vec<HeaderFields<'_>> {
    let mut fields = Vec::with_capacity(headers.len());
    for proto::Header { key, value } in headers {
        let (value, value_base64) = text_or_base64(value.as_ref());
        fields.push(HeaderFields { key, value, value_base64 });
    }
    fields
}

fn outbox_fields(records: &[proto::OutboxRecord]) -> Vec<OutboxFields<'_>> {
    let mut fields = Vec::with_capacity(records.len());
    for proto::OutboxRecord { key, value, headers } in records {
        let (key, key_base64) = text_or_base64(key.as_ref());
        let (value, value_base64) = text_or_base64(value.as_ref());
        fields.push(OutboxFields { key, key_base64, value, value_base64, headers: header_fields(headers) });
    }
    fields
}

/// Returns the bytes as text if they are one and it is no longer than the base64 of them.
fn text_or_base64(bytes: Option<&Bytes>) -> (Option<&str>, Option<String>) {
    let Some(bytes) = bytes else { return (None, None) };
    let base64_bytes = "_base64".len() + bytes.len().div_ceil(3) * 4;
    match std::str::from_utf8(bytes) {
        Ok(text) if escaped_bytes(text) <= base64_bytes => (Some(text), None),
        Ok(_) | Err(_) => (None, Some(BASE64.encode(bytes))),
    }
}

/// Returns the length of the text as JSON writes it: what is not printable takes six bytes.
fn escaped_bytes(text: &str) -> usize {
    let escaped = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0C => 2,
        0x00..0x20 => 6,
        0x20..=0xFF => 1,
    };
    text.bytes().map(escaped).sum()
}
