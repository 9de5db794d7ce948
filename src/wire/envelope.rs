//! The event as one JSON value: `CloudEvents` in structured mode.
//!
//! Owns the layout of the envelope, and how the payload stands in it. Never changes a payload: it is found again byte for byte, as JSON
//! where it is JSON. Keeps: it is no larger than the core has made room for as the timer was armed (`timer::size`).
//!
//! Sources: `CloudEvents` 1.0.2, JSON event format, 3.1 "Handling of data"; Kafka protocol binding, 3.3 "Structured content mode".

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::content_type::{CONTENT_TYPE, JSON};
use super::fired;
use crate::timer::model::Header;

/// The content type of a record whose value is an envelope.
pub const MEDIA_TYPE: &str = "application/cloudevents+json; charset=utf-8";
/// A longer content type of an arm is left out, as is one that is no text.
const CONTENT_TYPE_BYTES_MAX: usize = 256;
/// What a header of ours is called as an attribute: letters and digits only.
const ATTRIBUTES: &[(&str, &str)] = &[
    (fired::CE_SPECVERSION, "specversion"),
    (fired::CE_ID, "id"),
    (fired::CE_TYPE, "type"),
    (fired::CE_SOURCE, "source"),
    (fired::CE_SUBJECT, "subject"),
    (fired::CE_TIME, "time"),
    (fired::TENANT, "punctualtenant"),
    (fired::RUN, "punctualrun"),
    (fired::TIMER_ID, "punctualtimerid"),
    (fired::KIND, "punctualkind"),
    (fired::GENERATION, "punctualgeneration"),
    (fired::ATTEMPT, "punctualattempt"),
    (fired::DUE, "punctualdue"),
    (fired::ARMED, "punctualarmed"),
    (fired::FIRED, "punctualfired"),
    (fired::OCCURRENCE, "punctualoccurrence"),
];

/// Returns value and headers of the record in structured mode: `own` are the headers that it would have in binary mode before those of
/// the arm. They stay, for consumers that route by headers; the arm's content type is in the envelope, and that of the record is its own.
pub fn wrap(payload: Option<&Bytes>, own: Vec<Header>, arms: &[Header]) -> (Bytes, Vec<Header>) {
    let content_type = arms.iter().rev().find(|header| is_content_type(header));
    let is_known = content_type.is_some();
    let content_type = content_type.and_then(|header| std::str::from_utf8(header.value.as_deref()?).ok());
    let content_type =
        content_type.filter(|text| text.len() <= CONTENT_TYPE_BYTES_MAX && !text.chars().any(char::is_control));
    let mut members: Vec<String> = own.iter().filter_map(attribute).collect();
    members.extend(content_type.map(|text| member("datacontenttype", text)));
    let form = match content_type {
        Some(text) if is_json(text) => Form::Json,
        Some(_) => Form::Text,
        None if is_known => Form::Bytes,
        None => Form::Json,
    };
    members.extend(payload.map(|payload| data(payload, form)));
    let mut headers = own;
    headers.push(Header { key: CONTENT_TYPE.to_owned(), value: Some(Bytes::from_static(MEDIA_TYPE.as_bytes())) });
    headers.extend(arms.iter().filter(|header| !is_content_type(header)).cloned());
    (Bytes::from(format!("{{{}}}", members.join(","))), headers)
}

fn is_content_type(header: &Header) -> bool {
    header.key.eq_ignore_ascii_case(CONTENT_TYPE)
}

fn attribute(header: &Header) -> Option<String> {
    let (_, name) = ATTRIBUTES.iter().find(|(key, _)| *key == header.key)?;
    let value = std::str::from_utf8(header.value.as_deref()?).ok()?;
    Some(member(name, value))
}

fn member(name: &str, value: &str) -> String {
    format!("\"{name}\":{}", Value::from(value))
}

/// How a payload may stand in an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As JSON, if it is: so say its content type, and no content type at all.
    Json,
    /// As a text, if it is one.
    Text,
    /// As base64.
    Bytes,
}

/// Returns the member that has the payload.
fn data(payload: &Bytes, form: Form) -> String {
    let text = std::str::from_utf8(payload).ok();
    let as_text = match (form, text) {
        (Form::Json, Some(text)) if serde_json::from_str::<IgnoredAny>(text).is_ok() => {
            return format!("\"data\":{text}");
        }
        (Form::Text, Some(text)) => Some(member("data", text)),
        (Form::Json | Form::Text | Form::Bytes, _) => None,
    };
    let encoded = format!("\"data_base64\":\"{}\"", STANDARD.encode(payload));
    // Escaped, a text can be six times its size.
    as_text.filter(|member| member.len() <= encoded.len()).unwrap_or(encoded)
}

fn is_json(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type == JSON || media_type.ends_with("+json")
}

#[cfg(test)]
#[path = "envelope_test.rs"]
mod tests;
