//! A fired event as `punctual watch` shows it.
//!
//! Owns [`Event`], read from the headers of a fired record. Never refuses a record: what a foreign record on the topic does
//! not tell stays empty.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::output::{Cell, Format, Output, Tone, preview};
use crate::log::kafka::tool::reader::Incoming;
use crate::time::Timestamp;
use crate::timer::model::Header;
use crate::wire::fired;

/// Widths of the columns: rows come one by one, so they cannot be measured.
const WIDTHS: [usize; 6] = [24, 10, 12, 7, 36, 0];
/// Longest payload in a table, in characters.
const PAYLOAD_CHARACTERS_MAX: usize = 60;
/// Lateness above which it stands out.
const LATE_MS: i64 = 1000;

/// A fired event.
pub(super) struct Event {
    record: Incoming,
    due: Option<Timestamp>,
    armed: Option<Timestamp>,
    fired: Option<Timestamp>,
}

impl Event {
    /// Reads a record.
    pub(super) fn of(record: Incoming) -> Self {
        let instant = |name: &str| text(&record.headers, name).and_then(|text| Timestamp::parse(text).ok());
        let (due, armed, fired) = (instant(fired::DUE), instant(fired::ARMED), instant(fired::FIRED));
        Self { record, due, armed, fired }
    }

    /// Shows the headings of the table.
    ///
    /// # Errors
    /// When the output is closed.
    pub(super) fn show_headings(out: &mut Output<'_>) -> Result<(), Failure> {
        let headings = ["FIRED", "LATENESS", "KIND", "ATTEMPT", "TIMER", "PAYLOAD"];
        out.row(&headings.map(|heading| Cell::toned(heading, Tone::Heading)), &WIDTHS)?;
        Ok(())
    }

    /// Shows the event.
    ///
    /// # Errors
    /// When the output is closed.
    pub(super) fn show(&self, out: &mut Output<'_>) -> Result<(), Failure> {
        match out.format {
            Format::Json => out.json(&self.to_json())?,
            Format::Table => out.row(&self.row(), &WIDTHS)?,
        }
        Ok(())
    }

    /// Returns fired − max(due, armed) in milliseconds; negative would be early.
    fn lateness_ms(&self) -> Option<i64> {
        let due = self.due?.max(self.armed.unwrap_or(Timestamp::EPOCH));
        Some(self.fired?.as_millis() - due.as_millis())
    }

    fn text(&self, name: &str) -> Option<&str> {
        text(&self.record.headers, name)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    fn row(&self) -> [Cell; 6] {
        let lateness = self.lateness_ms();
        let tone = match lateness {
            Some(..0) => Tone::Bad,
            Some(late) if late > LATE_MS => Tone::Warning,
            Some(_) | None => Tone::Plain,
        };
        let payload = self.record.value.as_ref().map(|value| preview(value, PAYLOAD_CHARACTERS_MAX));
        let place = || format!("{}/{} at offset {}", self.record.topic, self.record.partition, self.record.offset);
        [
            self.fired.map_or("-".to_owned(), |at| at.to_string()).into(),
            Cell::toned(lateness.map_or("-".to_owned(), |late| format!("{late} ms")), tone),
            self.text(fired::KIND).unwrap_or("-").into(),
            self.text(fired::ATTEMPT).unwrap_or("-").into(),
            self.text(fired::CE_SUBJECT).map_or_else(place, str::to_owned).into(),
            payload.unwrap_or_default().into(),
        ]
    }

    fn to_json(&self) -> Value {
        let record = &self.record;
        let mut value = json!({
            "topic": record.topic,
            "partition": record.partition.0,
            "offset": record.offset.0,
            "tenant": self.text(fired::TENANT),
            "run": self.text(fired::RUN),
            "timer_id": self.text(fired::TIMER_ID),
            "kind": self.text(fired::KIND),
            "generation": self.number(fired::GENERATION),
            "attempt": self.number(fired::ATTEMPT),
            "due": self.due.map(|at| at.to_string()),
            "armed": self.armed.map(|at| at.to_string()),
            "fired": self.fired.map(|at| at.to_string()),
            "lateness_ms": self.lateness_ms(),
            "headers": record.headers.iter().filter(|header| !is_own(header)).map(header_json).collect::<Vec<_>>(),
        });
        if let Some(fields) = value.as_object_mut() {
            insert_bytes(fields, "key", record.key.as_ref());
            insert_bytes(fields, "payload", record.value.as_ref());
        }
        value
    }
}

/// Arms cannot carry headers with these prefixes, so they are the service's own.
fn is_own(header: &Header) -> bool {
    header.key.starts_with("punctual-") || header.key.starts_with("ce_")
}

fn header_json(header: &Header) -> Value {
    let mut fields = Map::new();
    fields.insert("key".to_owned(), Value::from(header.key.as_str()));
    insert_bytes(&mut fields, "value", header.value.as_ref());
    Value::from(fields)
}

/// Bytes that are text stand under the name, others as base64 under `name_base64`: the same as in commands.
fn insert_bytes(fields: &mut Map<String, Value>, name: &str, bytes: Option<&Bytes>) {
    match bytes.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => fields.insert(name.to_owned(), Value::Null),
        Some((_, Ok(text))) => fields.insert(name.to_owned(), Value::from(text)),
        Some((bytes, Err(_))) => fields.insert(format!("{name}_base64"), Value::from(STANDARD.encode(bytes))),
    };
}

fn text<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
    let header = headers.iter().find(|header| header.key == name)?;
    std::str::from_utf8(header.value.as_ref()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::{Offset, Partition};

    fn shown(format: Format, headers: &[(&str, &[u8])], value: &'static [u8]) -> String {
        let header = |(key, value): &(&str, &[u8])| Header {
            key: (*key).to_owned(),
            value: Some(Bytes::copy_from_slice(value)),
        };
        let record = Incoming {
            topic: "timers.fired.email".to_owned(),
            partition: Partition(1),
            offset: Offset(9),
            timestamp: None,
            key: Some(Bytes::from_static(b"acme/order-42")),
            value: Some(Bytes::from_static(value)),
            headers: headers.iter().map(header).collect(),
        };
        let mut sink = Vec::new();
        Event::of(record).show(&mut Output::new(format, &mut sink, false)).unwrap();
        String::from_utf8(sink).unwrap()
    }

    const HEADERS: [(&str, &[u8]); 6] = [
        ("ce_subject", b"acme/order-42/t1"),
        ("punctual-kind", b"email"),
        ("punctual-due", b"2026-12-01T09:00:00.000Z"),
        ("punctual-armed", b"2026-12-01T09:00:05.000Z"),
        ("punctual-fired", b"2026-12-01T09:00:05.012Z"),
        ("trace", b"\xff"),
    ];

    #[test]
    fn l9_lateness_counts_from_the_arming_of_what_was_due_before() {
        assert_eq!(
            shown(Format::Table, &HEADERS, b"hello"),
            "2026-12-01T09:00:05.012Z  12 ms       email         -        acme/order-42/t1                      hello\n"
        );
    }

    #[test]
    fn bytes_are_told_from_text_in_json() {
        let shown: Value = serde_json::from_str(&shown(Format::Json, &HEADERS, b"\x00\xff")).unwrap();
        assert_eq!(shown["payload_base64"], "AP8=");
        assert_eq!(shown["key"], "acme/order-42");
        assert_eq!(shown["lateness_ms"], 12);
        assert_eq!(shown["headers"], json!([{"key": "trace", "value_base64": "/w=="}]));
    }

    #[test]
    fn a_foreign_record_is_shown_by_its_place() {
        assert!(shown(Format::Table, &[], b"x").contains("timers.fired.email/1 at offset 9"), "its place");
    }
}
