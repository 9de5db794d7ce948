//! Commands, from and to the records of the arm topic.
//!
//! Owns [`decode_record`], [`decode`], [`encode`], and [`Refused`]: what is still known of a record that is no valid command.
//! All forms meet in the generated `proto::Command`, which one function turns into the core's command.
//!
//! ```text
//!   JSON     ──json_read──▶ proto::Command ──form──▶ timer::command::Command
//!   protobuf ──prost──────▶
//!   headers  ──scheduled──▶
//! ```
//!
//! Never judges a command against the state or the settings: that is `timer::apply`. Keeps: [`decode`] after [`encode`]
//! gives the same command.

mod form;
mod json_read;
mod json_when;
mod json_write;
pub(super) mod parts;
mod scheduled;
mod when;

pub use scheduled::{is_scheduled, resolved};

use bytes::Bytes;
use prost::Message;

use super::json::Json;
use super::{content_type, proto};
use crate::timer::command::{Command, Encoding, Reply};
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::model::Header;
use crate::timer::outcome::{Reason, Rejection};

/// A record that is no valid command, with what could still be read of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why it is refused.
    pub rejection: Rejection,
    /// Whom to answer, if that could be read.
    pub reply: Option<Reply>,
    /// The run that it is about, if that could be read.
    pub run: Option<RunKey>,
    /// The timer that it is about, if that could be read.
    pub timer: Option<TimerKey>,
}

/// Parses a record of the arm topic: a command, or any record with headers that say when it is to be emitted.
///
/// # Errors
/// As [`decode`].
#[expect(clippy::result_large_err, reason = "a refused command is rare, and its caller takes it apart at once")]
pub fn decode_record(key: Option<&Bytes>, value: Option<&Bytes>, headers: &[Header]) -> Result<Command, Refused> {
    if !is_scheduled(headers) {
        return decode(value, headers);
    }
    let command = scheduled::read(key, value, headers).and_then(|message| form::from_proto(message, Encoding::Json));
    command.map_err(|rejection| scheduled::glimpse(key, headers).refuse(rejection, Encoding::Json))
}

/// Parses the value of a command; its headers name the encoding.
///
/// # Errors
/// [`Refused`] when the record is no valid command. The caller answers it, dead-letters it, and goes on.
#[expect(clippy::result_large_err, reason = "a refused command is rare, and its caller takes it apart at once")]
pub fn decode(value: Option<&Bytes>, headers: &[Header]) -> Result<Command, Refused> {
    let nothing_known = |rejection| Refused { rejection, reply: None, run: None, timer: None };
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        let detail = "the record has no value; send a command as protobuf or JSON";
        return Err(nothing_known(Rejection::new(Reason::Unreadable, detail)));
    };
    let encoding = content_type::encoding_of(value, headers).map_err(nothing_known)?;
    // What is refused is read a second time for what is known of it, so that good commands pay nothing for it.
    read(value, encoding).map_err(|rejection| glimpse(value, encoding).refuse(rejection, encoding))
}

fn read(value: &Bytes, encoding: Encoding) -> Result<Command, Rejection> {
    let message = match encoding {
        Encoding::Json => json_read::read(Json::parse(value)?)?,
        Encoding::Protobuf => read_protobuf(value)?,
    };
    form::from_proto(message, encoding)
}

fn read_protobuf(value: &Bytes) -> Result<proto::Command, Rejection> {
    parts::check(value)?;
    proto::Command::decode(value.clone()).map_err(|error| {
        let detail = format!(
            "the value is not a punctual.v1.Command: {error}; for JSON send the header {}: {}",
            content_type::CONTENT_TYPE,
            content_type::JSON
        );
        Rejection::new(Reason::Unreadable, detail)
    })
}

/// What has too many parts to be read is not read for this either: nobody is answered.
fn glimpse(value: &Bytes, encoding: Encoding) -> Glimpse {
    match encoding {
        Encoding::Json => Json::parse(value).map(|tree| json_read::glimpse(&tree)).unwrap_or_default(),
        Encoding::Protobuf => read_protobuf(value).map(form::glimpse).unwrap_or_default(),
    }
}

/// Writes a command so that [`decode`] reads it back. The record needs [`content_type::header`] beside it.
pub fn encode(command: &Command, encoding: Encoding) -> Bytes {
    let message = form::to_proto(command);
    match encoding {
        Encoding::Protobuf => Bytes::from(message.encode_to_vec()),
        Encoding::Json => json_write::write(&message),
    }
}

/// The parts of a command that say whom it is about and whom to answer, valid or not.
#[derive(Debug, Default)]
struct Glimpse {
    correlation_id: Option<String>,
    tenant: Option<String>,
    run: Option<String>,
    timer_id: Option<String>,
}

impl Glimpse {
    fn refuse(self, rejection: Rejection, encoding: Encoding) -> Refused {
        let reply = self.correlation_id.and_then(|id| form::reply(id, encoding).ok().flatten());
        let tenant = Tenant::parse(self.tenant.as_deref().unwrap_or_default()).ok();
        let run = self.run.and_then(|run| Run::parse(&run).ok());
        let run = tenant.zip(run).map(|(tenant, run)| RunKey { tenant, run });
        let id = self.timer_id.and_then(|id| TimerId::parse(&id).ok());
        let timer = run.clone().zip(id).map(|(run, id)| TimerKey { run, id });
        Refused { rejection, reply, run, timer }
    }
}

#[cfg(test)]
mod golden_test;
#[cfg(test)]
mod refused_test;
