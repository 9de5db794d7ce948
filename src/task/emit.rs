//! Makes records out of what the core decided.
//!
//! Owns the place, key and headers of every record that a task sends. Never sends one.
//! Keeps: payloads and user headers pass byte-exact.

use std::iter;

use bytes::Bytes;

use super::rules::Rules;
use crate::log::{Destination, Emission, InputRecord};
use crate::planted::{Bug, is_on};
use crate::position::Partition;
use crate::store::Batch;
use crate::timer::command::{Command, Encoding};
use crate::timer::kind::{ContentMode, KindNumber};
use crate::timer::model::{Header, Timer};
use crate::timer::outcome::{Answer, Effect, Expired, FiredEvent, Rejection};
use crate::wire;
use crate::wire::dead_letter::Letter;
use crate::wire::forward::Origin;
use crate::wire::key::StateKey;
use crate::wire::state::{Barrier, Meta};

/// Returns the fired record, if there is to be one, and the outbox records of a timer that fires.
pub(super) fn fired(event: &FiredEvent, rules: &Rules) -> Vec<Emission> {
    let kind = event.timer.kind;
    let mut emissions = Vec::with_capacity(1 + event.timer.outbox.len());
    match event.effect {
        Effect::Published => {
            let (value, headers) = event_of(event, rules);
            emissions.push(Emission {
                to: Destination::Fired(kind),
                partition: None,
                key: Some(wire::fired::key(&event.timer)),
                value,
                headers,
                timestamp: None,
            });
        }
        Effect::Silent | Effect::Rescheduled => {}
    }
    let times = if is_on(Bug::OutboxTwice) { 2 } else { 1 };
    for record in event.timer.outbox.iter().flat_map(|record| iter::repeat_n(record, times)) {
        emissions.push(Emission {
            to: Destination::Outbox(kind),
            partition: None,
            key: record.key.clone(),
            value: record.value.clone(),
            headers: record.headers.clone(),
            timestamp: None,
        });
    }
    emissions
}

/// Returns value and headers of a fired record, in the content mode of its kind. One that was armed when its kind had another, and
/// would not fit, goes out in binary mode.
fn event_of(event: &FiredEvent, rules: &Rules) -> (Option<Bytes>, Vec<Header>) {
    let timer = &event.timer;
    let name = name_of(timer.kind, rules);
    let mode = rules.registry.get(timer.kind).map_or(ContentMode::Binary, |kind| kind.content_mode);
    if mode == ContentMode::Structured {
        let own = wire::fired::own_headers(event, &name, &rules.source);
        let (value, headers) = wire::envelope::wrap(timer.payload.as_ref(), own, &timer.headers);
        let beside: usize =
            headers.iter().map(|header| header.key.len() + header.value.as_ref().map_or(0, Bytes::len)).sum();
        if value.len() + beside <= rules.limits.fired_bytes_max {
            return (Some(value), headers);
        }
    }
    (timer.payload.clone(), wire::fired::headers(event, &name, &rules.source))
}

/// Returns the dead letter of a timer that is not to fire any more.
pub(super) fn expired(expired: &Expired, rules: &Rules) -> Emission {
    let Expired { timer, at, .. } = expired;
    let bare = Timer { headers: Vec::new(), ..timer.clone() };
    let last = FiredEvent { timer: bare, attempt: timer.attempt, fired: *at, effect: Effect::Published };
    let identity = wire::fired::headers(&last, &name_of(timer.kind, rules), &rules.source);
    letter(wire::dead_letter::expired(expired, identity, rules.dead_letter_bytes_max))
}

fn letter(letter: Letter) -> Emission {
    Emission {
        to: Destination::DeadLetter,
        partition: None,
        key: letter.key,
        value: letter.value,
        headers: letter.headers,
        timestamp: None,
    }
}

/// Only known kinds are scanned; the number stands in for a name that a test registry lacks.
fn name_of(kind: KindNumber, rules: &Rules) -> String {
    rules.registry.get(kind).map_or_else(|| kind.to_string(), |kind| kind.name.clone())
}

/// Returns the record that answers a command.
pub(super) fn answer(answer: &Answer) -> Emission {
    let (value, headers) = wire::answer::encode(answer);
    Emission {
        to: Destination::Results,
        partition: None,
        key: Some(Bytes::from(answer.run.to_string())),
        value: Some(value),
        headers,
        timestamp: None,
    }
}

/// Returns the command on its way to the partition where it belongs.
pub(super) fn forward(record: &InputRecord, command: &Command, home: Partition) -> Emission {
    let (key, value, mut headers) = if wire::command::is_scheduled(&record.headers) {
        (record.key.clone(), record.value.clone(), wire::command::resolved(&record.headers, command))
    } else {
        encoded(record, command)
    };
    headers.push(wire::forward::header(Origin { partition: record.partition, offset: record.offset }));
    Emission {
        to: Destination::Arm,
        partition: Some(home),
        key,
        value,
        headers,
        timestamp: record.timestamp.filter(|_| !is_on(Bug::ForwardedAfresh)),
    }
}

fn encoded(record: &InputRecord, command: &Command) -> (Option<Bytes>, Option<Bytes>, Vec<Header>) {
    // The answer, and so the command, keeps the encoding of the original; without a reply either will do.
    let encoding = command.reply.as_ref().map_or(Encoding::Protobuf, |reply| reply.encoding);
    let is_kept = |header: &&Header| !header.key.eq_ignore_ascii_case("content-type");
    let mut headers: Vec<Header> = record.headers.iter().filter(is_kept).cloned().collect();
    headers.push(wire::content_type::header(encoding));
    let key = Bytes::from(command.action.run().to_string());
    (Some(key), Some(wire::command::encode(command, encoding)), headers)
}

/// Returns the dead letter of a record that is not a command or was rejected.
pub(super) fn dead_letter(record: &InputRecord, rejection: &Rejection, rules: &Rules) -> Emission {
    let original = wire::dead_letter::Original {
        partition: record.partition,
        offset: record.offset,
        timestamp: record.timestamp,
        headers: &record.headers,
    };
    let headers = wire::dead_letter::headers(&original, rejection, &rules.arm_topic);
    let (key, value) = (record.key.clone(), record.value.clone());
    letter(wire::dead_letter::truncate(key, value, headers, rules.dead_letter_bytes_max))
}

/// Returns the changelog records of a batch: a body for what is there, a tombstone for what was there and is not.
pub(super) fn changes(partition: Partition, batch: &Batch) -> Vec<Emission> {
    let mut emissions = Vec::with_capacity(batch.timers.len() + batch.runs.len() + batch.remembered.len() + 1);
    for change in &batch.timers {
        let body = change.after.as_ref().map(|(_, body)| body.clone());
        assert!(body.is_some() || change.before.is_some(), "INV-NET-1: a batch has net changes only");
        if body.is_none() && is_on(Bug::TombstoneLeftOut) {
            continue;
        }
        emissions.push(changelog(partition, &StateKey::Timer(change.key.clone()), body));
    }
    for change in &batch.remembered {
        let body = change.after.as_ref().map(|(_, body)| body.clone());
        assert!(body.is_some() || change.before.is_some(), "INV-NET-1: a batch has net changes only");
        emissions.push(changelog(partition, &StateKey::Remembered(change.key.clone()), body));
    }
    for change in &batch.runs {
        let body = (!change.after.is_empty()).then(|| change.body.clone());
        emissions.push(changelog(partition, &StateKey::Run(change.run.clone()), body));
    }
    emissions
}

/// Returns the record of the partition's position and generation counter.
pub(super) fn meta(partition: Partition, meta: &Meta) -> Emission {
    changelog(partition, &StateKey::Meta, Some(meta.encode()))
}

/// Returns the record that marks an ownership.
pub(super) fn barrier(partition: Partition, nonce: u64, owner: &str) -> Emission {
    let barrier = Barrier { nonce, owner: owner.to_owned() };
    changelog(partition, &StateKey::Barrier, Some(barrier.encode()))
}

fn changelog(partition: Partition, key: &StateKey, value: Option<Bytes>) -> Emission {
    raw_changelog(partition, key.encode(), value)
}

/// Returns a record of the changelog.
pub(super) fn raw_changelog(partition: Partition, key: Bytes, value: Option<Bytes>) -> Emission {
    Emission {
        to: Destination::Changelog,
        partition: Some(partition),
        key: Some(key),
        value,
        headers: Vec::new(),
        timestamp: None,
    }
}
