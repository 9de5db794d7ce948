//! The entries of an embedded engine's outbox.
//!
//! Owns their encoding, `proto/punctual/v1/outbox.proto`. Keeps: what is decoded after it was encoded is the same value
//! (INV-WIRE-2); an entry of a newer release is recognised and never read by half.

use bytes::Bytes;
use prost::Message;

use super::proto::{self, outbox_entry};
use super::state::{check_reader, decode, generation, instant};
use super::{DecodeError, record};
use crate::time::Timestamp;
use crate::timer::emitted::{Emitted, What};
use crate::timer::handler::Event;
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::Generation;
use crate::timer::outcome::ExpiryReason;

/// The version that every entry needs.
const READER_MIN: u32 = 1;
const WHAT: &str = "outbox entry";

/// Writes an entry.
pub fn encode(emitted: &Emitted) -> Bytes {
    let what = match &emitted.what {
        What::Event(event) => outbox_entry::What::Event(event_to_proto(event)),
        What::Record(record) => outbox_entry::What::Record(record::outbox_record_to_proto(record)),
        What::Expired { reason, event } => outbox_entry::What::Expired(proto::ExpiredEvent {
            reason: i32::from(reason_to_proto(*reason)),
            event: Some(event_to_proto(event)),
        }),
    };
    let message = proto::OutboxEntry {
        reader_min: READER_MIN,
        tenant: emitted.key.run.tenant.as_str().to_owned(),
        run: emitted.key.run.run.as_str().to_owned(),
        timer_id: emitted.key.id.as_str().to_owned(),
        kind: u32::from(emitted.kind.get()),
        generation: emitted.generation.0,
        attempt: emitted.attempt,
        due_ms: emitted.due.as_millis(),
        armed_ms: emitted.armed.as_millis(),
        fired_ms: emitted.fired.as_millis(),
        what: Some(what),
    };
    Bytes::from(message.encode_to_vec())
}

/// Reads an entry.
///
/// # Errors
/// [`DecodeError::TooNew`] when a newer release wrote it, [`DecodeError::Malformed`] when it contradicts itself.
pub fn decode_entry(bytes: &[u8]) -> Result<Emitted, DecodeError> {
    let message: proto::OutboxEntry = decode(WHAT, bytes)?;
    check_reader(WHAT, message.reader_min)?;
    from_proto(message).map_err(|problem| DecodeError::malformed(WHAT, problem))
}

fn from_proto(message: proto::OutboxEntry) -> Result<Emitted, String> {
    // The empty tenant is a way to write the default one in commands; an entry has the name.
    if message.tenant.is_empty() {
        return Err("it has no tenant".to_owned());
    }
    let tenant = Tenant::parse(&message.tenant).map_err(|error| error.to_string())?;
    let run = Run::parse(&message.run).map_err(|error| error.to_string())?;
    let id = TimerId::parse(&message.timer_id).map_err(|error| error.to_string())?;
    let kind = KindNumber::new(message.kind).ok_or_else(|| format!("its kind is {}", message.kind))?;
    let what = match message.what {
        Some(outbox_entry::What::Event(event)) => What::Event(event_from_proto(event)),
        Some(outbox_entry::What::Record(record)) => What::Record(record::outbox_record_from_proto(record)),
        Some(outbox_entry::What::Expired(expired)) => What::Expired {
            reason: reason_from_proto(expired.reason())?,
            event: event_from_proto(expired.event.ok_or("it has no event")?),
        },
        None => return Err("it emits nothing".to_owned()),
    };
    Ok(Emitted {
        key: TimerKey { run: RunKey { tenant, run }, id },
        kind,
        generation: generation(message.generation, Generation::MAX)?,
        attempt: message.attempt,
        due: instant("due", message.due_ms)?,
        armed: Timestamp::from_millis(message.armed_ms),
        fired: instant("time of fire", message.fired_ms)?,
        what,
    })
}

fn event_to_proto(event: &Event) -> proto::EmittedEvent {
    proto::EmittedEvent {
        payload: event.payload.clone(),
        key: event.record_key.clone(),
        headers: record::headers_to_proto(&event.headers),
    }
}

fn event_from_proto(event: proto::EmittedEvent) -> Event {
    Event { payload: event.payload, record_key: event.key, headers: record::headers_from_proto(event.headers) }
}

fn reason_to_proto(reason: ExpiryReason) -> proto::ExpiryReason {
    match reason {
        ExpiryReason::AttemptsExhausted => proto::ExpiryReason::AttemptsExhausted,
        ExpiryReason::TooLate => proto::ExpiryReason::TooLate,
    }
}

fn reason_from_proto(reason: proto::ExpiryReason) -> Result<ExpiryReason, String> {
    match reason {
        proto::ExpiryReason::Unspecified => Err("it expired without a reason".to_owned()),
        proto::ExpiryReason::AttemptsExhausted => Ok(ExpiryReason::AttemptsExhausted),
        proto::ExpiryReason::TooLate => Ok(ExpiryReason::TooLate),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;
    use crate::timer::model::{Header, OutboxRecord};
    use crate::wire::strategy;

    fn emitted() -> impl Strategy<Value = Emitted> {
        let event = || {
            (option::of(strategy::bytes(16)), option::of(strategy::bytes(16)), strategy::headers())
                .prop_map(|(payload, record_key, headers)| Event { payload, record_key, headers })
        };
        let reason = prop_oneof![Just(ExpiryReason::AttemptsExhausted), Just(ExpiryReason::TooLate)];
        let what = prop_oneof![
            event().prop_map(What::Event),
            event().prop_map(|Event { payload, record_key, headers }| {
                What::Record(OutboxRecord { key: record_key, value: payload, headers })
            }),
            (reason, event()).prop_map(|(reason, event)| What::Expired { reason, event }),
        ];
        let of_timer = (strategy::timer_key(), strategy::kind_number(), 0..=Generation::MAX.0, any::<u32>());
        let instants = (strategy::timestamp(), strategy::timestamp(), strategy::timestamp());
        (of_timer, instants, what).prop_map(|((key, kind, generation, attempt), (due, armed, fired), what)| Emitted {
            key,
            kind,
            generation: Generation(generation),
            attempt,
            due,
            armed,
            fired,
            what,
        })
    }

    proptest! {
        #[test]
        fn an_entry_comes_back_as_it_was(entry in emitted()) {
            prop_assert_eq!(decode_entry(&encode(&entry)), Ok(entry));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(entry) = decode_entry(&bytes) {
                prop_assert_eq!(decode_entry(&encode(&entry)), Ok(entry));
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_reader_version_1() {
        let run = RunKey { tenant: Tenant::parse("").unwrap(), run: Run::parse("r").unwrap() };
        let header = Header { key: "h".to_owned(), value: None };
        let mut entry = Emitted {
            key: TimerKey { run, id: TimerId::parse("t").unwrap() },
            kind: KindNumber::new(3).unwrap(),
            generation: Generation(7),
            attempt: 1,
            due: Timestamp::from_millis(1_000),
            armed: Timestamp::from_millis(1),
            fired: Timestamp::from_millis(1_001),
            what: What::Event(Event {
                payload: Some(Bytes::from_static(b"p")),
                record_key: None,
                headers: vec![header],
            }),
        };
        let golden = |entry: &Emitted| format!("{:02x?}", &encode(entry)[..]).replace(", ", "");
        expect!["[0801120764656661756c741a017222017428033007380140e807480150e9075a080a01701a030a0168]"]
            .assert_eq(&golden(&entry));
        entry.what = What::Record(OutboxRecord { key: None, value: Some(Bytes::new()), headers: Vec::new() });
        expect!["[0801120764656661756c741a017222017428033007380140e807480150e90762021200]"].assert_eq(&golden(&entry));
    }

    #[test]
    fn an_entry_of_a_newer_release_is_recognised() {
        let message = proto::OutboxEntry { reader_min: 99, ..proto::OutboxEntry::default() };
        let refusal = decode_entry(&message.encode_to_vec()).unwrap_err();
        assert!(matches!(refusal, DecodeError::TooNew { .. }), "{refusal}");
        let message = proto::OutboxEntry { reader_min: 1, ..proto::OutboxEntry::default() };
        let refusal = decode_entry(&message.encode_to_vec()).unwrap_err();
        assert_eq!(refusal.to_string(), "outbox entry cannot be decoded: it has no tenant");
    }
}
