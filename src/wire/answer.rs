//! Results: the outcome of a command, for the client that asked.
//!
//! Owns both encodings of a result and the names of outcomes. Never knows the results topic. Keeps: a result has the
//! encoding of its command, and names and numbers of outcomes and reasons never change.

use bytes::Bytes;
use prost::Message;
use serde::{Deserialize, Serialize};

use super::{DecodeError, content_type, proto};
use crate::time::Timestamp;
use crate::timer::command::Encoding;
use crate::timer::model::{Ending, Generation, Header};
use crate::timer::outcome::{Answer, Reason, Verdict};

/// A result as a client reads it. What a newer service sends is kept as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The correlation id of the command.
    pub correlation_id: String,
    /// The tenant of the command.
    pub tenant: String,
    /// The run of the command.
    pub run: String,
    /// The timer of the command, if it was about one.
    pub timer_id: Option<String>,
    /// The name of the outcome, such as `already_armed`.
    pub outcome: String,
    /// The version of the timer.
    pub generation: Option<u64>,
    /// When the timer will fire.
    pub due: Option<Timestamp>,
    /// How many timers were removed.
    pub count: Option<u64>,
    /// The name of the reason of a rejection, such as `past_due`.
    pub reason: Option<String>,
    /// One sentence about the rejection.
    pub detail: Option<String>,
}

/// A result in JSON, fields in their order.
#[derive(Serialize, Deserialize)]
struct Fields {
    correlation_id: String,
    tenant: String,
    run: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timer_id: Option<String>,
    outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// Writes the value and the headers of a record of the results topic.
pub fn encode(answer: &Answer) -> (Bytes, Vec<Header>) {
    let message = to_proto(answer);
    let encoding = answer.reply.encoding;
    let value = match encoding {
        Encoding::Protobuf => Bytes::from(message.encode_to_vec()),
        Encoding::Json => to_json(message),
    };
    (value, vec![content_type::header(encoding)])
}

/// Reads a record of the results topic.
///
/// # Errors
/// [`DecodeError::Malformed`] when the record is no result.
pub fn decode(value: &Bytes, headers: &[Header]) -> Result<Received, DecodeError> {
    let encoding = content_type::encoding_of(value, headers).map_err(|rejection| malformed(rejection.detail))?;
    match encoding {
        Encoding::Protobuf => from_proto(proto::Result::decode(value.clone()).map_err(malformed)?),
        Encoding::Json => from_json(serde_json::from_slice(value).map_err(malformed)?),
    }
}

fn to_proto(answer: &Answer) -> proto::Result {
    let outcome = |outcome| proto::Result {
        correlation_id: answer.reply.correlation_id.clone(),
        tenant: answer.run.tenant.as_str().to_owned(),
        run: answer.run.run.as_str().to_owned(),
        timer_id: answer.timer.as_ref().map(|timer| timer.id.as_str().to_owned()),
        outcome: i32::from(outcome),
        ..proto::Result::default()
    };
    match &answer.verdict {
        Verdict::Armed { generation, due } => proto::Result {
            generation: Some(generation.0),
            due_ms: Some(due.as_millis()),
            ..outcome(proto::Outcome::Armed)
        },
        Verdict::AlreadyArmed { generation } => {
            proto::Result { generation: Some(generation.0), ..outcome(proto::Outcome::AlreadyArmed) }
        }
        Verdict::Replaced { generation, due } => proto::Result {
            generation: Some(generation.0),
            due_ms: Some(due.as_millis()),
            ..outcome(proto::Outcome::Replaced)
        },
        Verdict::Disarmed { generation } => {
            proto::Result { generation: Some(generation.0), ..outcome(proto::Outcome::Disarmed) }
        }
        Verdict::Paused { generation } => {
            proto::Result { generation: Some(generation.0), ..outcome(proto::Outcome::Paused) }
        }
        Verdict::Resumed { generation, due } => proto::Result {
            generation: Some(generation.0),
            due_ms: Some(due.as_millis()),
            ..outcome(proto::Outcome::Resumed)
        },
        Verdict::NotPaused { generation } => {
            proto::Result { generation: Some(generation.0), ..outcome(proto::Outcome::NotPaused) }
        }
        Verdict::Ended { generation } => {
            proto::Result { generation: Some(generation.0), ..outcome(proto::Outcome::Ended) }
        }
        Verdict::AlreadyEnded { ending } => {
            let (ending, generation) = ended(*ending);
            proto::Result { generation: generation.map(|generation| generation.0), ..outcome(ending) }
        }
        Verdict::TooLate { generation } => {
            proto::Result { generation: Some(generation.0), ..outcome(proto::Outcome::TooLate) }
        }
        Verdict::NotFound => outcome(proto::Outcome::NotFound),
        Verdict::Changed { generation } => {
            proto::Result { generation: Some(generation.0), ..outcome(proto::Outcome::Changed) }
        }
        Verdict::RunDisarmed { count } => proto::Result { count: Some(*count), ..outcome(proto::Outcome::RunDisarmed) },
        Verdict::RunSealed { count } => proto::Result { count: Some(*count), ..outcome(proto::Outcome::RunSealed) },
        Verdict::Sealed => outcome(proto::Outcome::Sealed),
        Verdict::Skipped => outcome(proto::Outcome::Skipped),
        Verdict::Rejected(rejection) => proto::Result {
            reason: Some(rejection.reason as i32),
            detail: Some(rejection.detail.clone()),
            ..outcome(proto::Outcome::Rejected)
        },
    }
}

/// Returns the outcome of an arm whose id has ended, and the version that did.
fn ended(ending: Ending) -> (proto::Outcome, Option<Generation>) {
    match ending {
        Ending::Fired(generation) => (proto::Outcome::AlreadyFired, Some(generation)),
        Ending::Disarmed(generation) => (proto::Outcome::AlreadyDisarmed, Some(generation)),
        Ending::NeverArmed => (proto::Outcome::AlreadyDisarmed, None),
        Ending::Expired(generation) => (proto::Outcome::AlreadyExpired, Some(generation)),
    }
}

fn to_json(message: proto::Result) -> Bytes {
    let fields = Fields {
        outcome: outcome_name(message.outcome),
        reason: message.reason.map(reason_name),
        due: message.due_ms.map(|millis| Timestamp::from_millis(millis).to_string()),
        correlation_id: message.correlation_id,
        tenant: message.tenant,
        run: message.run,
        timer_id: message.timer_id,
        generation: message.generation,
        count: message.count,
        detail: message.detail,
    };
    Bytes::from(serde_json::to_vec(&fields).expect("texts and numbers are always JSON"))
}

fn from_proto(message: proto::Result) -> Result<Received, DecodeError> {
    if message.outcome == i32::from(proto::Outcome::Unspecified) {
        return Err(malformed("it has no outcome"));
    }
    Ok(Received {
        outcome: outcome_name(message.outcome),
        reason: message.reason.map(reason_name),
        due: message.due_ms.map(Timestamp::from_millis),
        correlation_id: message.correlation_id,
        tenant: message.tenant,
        run: message.run,
        timer_id: message.timer_id,
        generation: message.generation,
        count: message.count,
        detail: message.detail,
    })
}

fn from_json(fields: Fields) -> Result<Received, DecodeError> {
    let due = fields.due.map(|due| Timestamp::parse(&due)).transpose().map_err(malformed)?;
    Ok(Received {
        correlation_id: fields.correlation_id,
        tenant: fields.tenant,
        run: fields.run,
        timer_id: fields.timer_id,
        outcome: fields.outcome,
        generation: fields.generation,
        due,
        count: fields.count,
        reason: fields.reason,
        detail: fields.detail,
    })
}

fn outcome_name(number: i32) -> String {
    let name = match proto::Outcome::try_from(number) {
        Ok(proto::Outcome::Armed) => "armed",
        Ok(proto::Outcome::AlreadyArmed) => "already_armed",
        Ok(proto::Outcome::Replaced) => "replaced",
        Ok(proto::Outcome::Disarmed) => "disarmed",
        Ok(proto::Outcome::NotFound) => "not_found",
        Ok(proto::Outcome::Changed) => "changed",
        Ok(proto::Outcome::RunDisarmed) => "run_disarmed",
        Ok(proto::Outcome::RunSealed) => "run_sealed",
        Ok(proto::Outcome::Sealed) => "sealed",
        Ok(proto::Outcome::Skipped) => "skipped",
        Ok(proto::Outcome::Rejected) => "rejected",
        Ok(proto::Outcome::TooLate) => "too_late",
        Ok(proto::Outcome::AlreadyFired) => "already_fired",
        Ok(proto::Outcome::AlreadyDisarmed) => "already_disarmed",
        Ok(proto::Outcome::AlreadyExpired) => "already_expired",
        Ok(proto::Outcome::Paused) => "paused",
        Ok(proto::Outcome::Resumed) => "resumed",
        Ok(proto::Outcome::NotPaused) => "not_paused",
        Ok(proto::Outcome::Ended) => "ended",
        Ok(proto::Outcome::Unspecified) | Err(_) => return format!("unknown outcome {number}"),
    };
    name.to_owned()
}

fn reason_name(number: i32) -> String {
    match Reason::ALL.into_iter().find(|reason| *reason as i32 == number) {
        Some(reason) => reason.name().to_owned(),
        None => format!("unknown reason {number}"),
    }
}

fn malformed(problem: impl std::fmt::Display) -> DecodeError {
    DecodeError::malformed("result", problem)
}

#[cfg(test)]
#[path = "answer_test.rs"]
mod tests;
