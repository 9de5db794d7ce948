//! A committed transaction, taken apart.
//!
//! Owns the reading of its records. Decodes with the library's `wire`, which has tests of its own. Keeps: every record is in
//! exactly one part.

use std::collections::BTreeMap;

use bytes::Bytes;
use punctual::log::Destination;
use punctual::position::Partition;
use punctual::timer::model::Header;
use punctual::wire;
use punctual::wire::answer::Received;
use punctual::wire::key::StateKey;
use punctual::wire::state::Meta;

use crate::broker::partition::Data;
use crate::broker::transactions::Decision;
use crate::client::NUMBER;
use crate::sim::Violation;

/// The header of a command that was forwarded.
pub(crate) const FORWARDED: &str = "punctual-forwarded";

/// A fired record.
#[derive(Clone, Debug)]
pub(crate) struct Fired {
    pub(crate) topic: Destination,
    pub(crate) partition: Partition,
    pub(crate) data: Data,
}

/// What a transaction did to one partition's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) meta: Option<Meta>,
    pub(crate) has_barrier: bool,
    /// The offset of the last record.
    pub(crate) last: i64,
    /// The last value of each key.
    pub(crate) values: BTreeMap<StateKey, Option<Bytes>>,
}

#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) changes: BTreeMap<Partition, Changes>,
    pub(crate) answers: Vec<Received>,
    pub(crate) fired: Vec<Fired>,
    pub(crate) outbox: Vec<(Destination, Data)>,
    pub(crate) letters: Vec<Data>,
    /// The command's number, and where it was sent.
    pub(crate) forwards: Vec<(u64, Partition, Data)>,
}

/// Takes a transaction apart.
///
/// # Errors
/// When a record cannot be read.
pub(crate) fn take_apart(decision: &Decision) -> Result<Parts, Violation> {
    let mut parts = Parts::default();
    let unreadable = |what: &str, error: String| Violation { id: "INV-WIRE-2", detail: format!("{what}: {error}") };
    for ((topic, partition), offset, data) in &decision.records {
        match topic {
            Destination::Changelog => {
                let changes = parts.changes.entry(*partition).or_default();
                changes.last = *offset;
                let key = data.key.clone().unwrap_or_else(Bytes::new);
                let key = StateKey::decode(&key).map_err(|error| unreadable("a key", error.to_string()))?;
                match (&key, &data.value) {
                    (StateKey::Meta, Some(value)) => {
                        changes.meta =
                            Some(Meta::decode(value).map_err(|error| unreadable("meta", error.to_string()))?);
                    }
                    (StateKey::Barrier, _) => changes.has_barrier = true,
                    (StateKey::Meta | StateKey::Run(_) | StateKey::Timer(_) | StateKey::Remembered(_), _) => {}
                }
                changes.values.insert(key, data.value.clone());
            }
            Destination::Results => {
                let value = data.value.clone().unwrap_or_else(Bytes::new);
                let answer = wire::answer::decode(&value, &data.headers);
                parts.answers.push(answer.map_err(|error| unreadable("an answer", error.to_string()))?);
            }
            Destination::Fired(_) => {
                parts.fired.push(Fired { topic: *topic, partition: *partition, data: data.clone() });
            }
            Destination::Outbox(_) => parts.outbox.push((*topic, data.clone())),
            Destination::DeadLetter => parts.letters.push(data.clone()),
            Destination::Arm => {
                let number = number_of(data).ok_or_else(|| unreadable("a forward", "it lost its header".to_owned()))?;
                parts.forwards.push((number, *partition, data.clone()));
            }
        }
    }
    Ok(parts)
}

/// Returns the number of the command that a record carries.
pub(crate) fn number_of(data: &Data) -> Option<u64> {
    text(&data.headers, NUMBER)?.parse().ok()
}

/// Returns where a forwarded command stood before.
pub(crate) fn origin_of(data: &Data) -> Option<(Partition, i64)> {
    let (partition, offset) = text(&data.headers, FORWARDED)?.split_once('@')?;
    Some((Partition(partition.parse().ok()?), offset.parse().ok()?))
}

/// Returns a header as text.
pub(crate) fn text<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
    let header = headers.iter().find(|header| header.key == name)?;
    std::str::from_utf8(header.value.as_ref()?).ok()
}
