//! The one form that both encodings of a command share, and what it means.
//!
//! Owns the step between the generated `proto::Command` and the core's command: identities, kinds, instants and the
//! choice of one action are judged here, alike for both encodings. Keeps: the two directions are inverse.

use std::time::Duration;

use super::{Glimpse, when};
use crate::text::shown;
use crate::timer::command::{Action, Arm, Command, Encoding, OnConflict, Reply};
use crate::timer::identity::{DEFAULT_TENANT, IdentityError, Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::{KindNumber, KindRef};
use crate::timer::model::Generation;
use crate::timer::outcome::{Reason, Rejection};
use crate::wire::{proto, record};

/// Longest correlation id, in bytes.
const CORRELATION_ID_BYTES_MAX: usize = 512;
/// Longest name of a kind, in bytes; a longer one is nobody's.
const KIND_NAME_BYTES_MAX: usize = 64;

pub(super) fn glimpse(message: proto::Command) -> Glimpse {
    use proto::command::Action as Message;
    let timer_id = match message.action {
        Some(Message::Arm(arm)) => Some(arm.timer_id),
        Some(Message::Disarm(disarm)) => Some(disarm.timer_id),
        Some(Message::Pause(pause)) => Some(pause.timer_id),
        Some(Message::Resume(resume)) => Some(resume.timer_id),
        Some(Message::DisarmRun(_) | Message::SealRun(_)) | None => None,
    };
    Glimpse {
        correlation_id: Some(message.correlation_id),
        tenant: Some(message.tenant),
        run: Some(message.run),
        timer_id,
    }
}

/// Returns whom to answer; the empty correlation id asks for no answer.
pub(super) fn reply(correlation_id: String, encoding: Encoding) -> Result<Option<Reply>, Rejection> {
    if correlation_id.len() > CORRELATION_ID_BYTES_MAX {
        let detail = format!(
            "correlation_id `{}` has {} bytes; give it at most {CORRELATION_ID_BYTES_MAX}",
            shown(&correlation_id),
            correlation_id.len()
        );
        return Err(Rejection::new(Reason::InvalidIdentity, detail));
    }
    Ok((!correlation_id.is_empty()).then_some(Reply { correlation_id, encoding }))
}

pub(super) fn from_proto(message: proto::Command, encoding: Encoding) -> Result<Command, Rejection> {
    use proto::command::Action as Message;
    let reply = reply(message.correlation_id, encoding)?;
    let tenant = Tenant::parse(&message.tenant).map_err(|error| invalid(&error))?;
    let run = RunKey { tenant, run: Run::parse(&message.run).map_err(|error| invalid(&error))? };
    let action = match message.action {
        Some(Message::Arm(arm)) => Action::Arm(Box::new(arm_from_proto(run, arm)?)),
        Some(Message::Disarm(proto::Disarm { timer_id, generation })) => {
            Action::Disarm { key: timer_key(run, &timer_id)?, generation: generation.map(Generation) }
        }
        Some(Message::Pause(proto::Pause { timer_id, generation })) => {
            Action::Pause { key: timer_key(run, &timer_id)?, generation: generation.map(Generation) }
        }
        Some(Message::Resume(proto::Resume { timer_id, generation })) => {
            Action::Resume { key: timer_key(run, &timer_id)?, generation: generation.map(Generation) }
        }
        Some(Message::DisarmRun(proto::DisarmRun {})) => Action::DisarmRun { run },
        Some(Message::SealRun(seal)) => {
            Action::SealRun { run, retention: seal.retention_ms.map(retention).transpose()? }
        }
        None => {
            let detail = "the command has no action that this release knows; give one of arm, disarm, disarm_run, \
                          seal_run, pause, resume, or upgrade the service if the client is newer";
            return Err(Rejection::new(Reason::Unreadable, detail));
        }
    };
    Ok(Command { reply, action })
}

fn timer_key(run: RunKey, timer_id: &str) -> Result<TimerKey, Rejection> {
    let id = TimerId::parse(timer_id).map_err(|error| invalid(&error))?;
    Ok(TimerKey { run, id })
}

fn arm_from_proto(run: RunKey, arm: proto::Arm) -> Result<Arm, Rejection> {
    let key = timer_key(run, &arm.timer_id)?;
    let Some(kind) = arm.kind_ref else {
        return Err(unreadable("the arm has no kind; name it, or give its number"));
    };
    let Some(when) = arm.when else {
        let detail = "the arm does not say when, in a form that this release knows; give one of at, after, cron, every, local, calendar";
        return Err(unreadable(detail));
    };
    Ok(Arm {
        key,
        kind: kind_from_proto(kind)?,
        when: when::from_proto(when)?,
        on_conflict: on_conflict_from_proto(arm.on_conflict)?,
        payload: arm.payload,
        record_key: arm.key,
        headers: record::headers_from_proto(arm.headers),
        outbox: record::outbox_from_proto(arm.outbox),
    })
}

fn kind_from_proto(kind: proto::arm::KindRef) -> Result<KindRef, Rejection> {
    match kind {
        proto::arm::KindRef::KindNumber(number) => match KindNumber::new(number) {
            Some(number) => Ok(KindRef::Number(number)),
            None => Err(invalid_kind(&number.to_string())),
        },
        proto::arm::KindRef::Kind(name) if name.is_empty() || name.len() > KIND_NAME_BYTES_MAX => {
            let detail = format!("kind `{}` is no kind's name: those have 1 to 64 characters", shown(&name));
            Err(Rejection::new(Reason::UnknownKind, detail))
        }
        proto::arm::KindRef::Kind(name) => Ok(KindRef::Name(name)),
    }
}

/// Returns the rejection of a number that no kind can have.
pub(super) fn invalid_kind(number: &str) -> Rejection {
    Rejection::new(Reason::InvalidKind, format!("kind number {number} is not one; use 1 to 255, or the kind's name"))
}

fn on_conflict_from_proto(number: i32) -> Result<OnConflict, Rejection> {
    match proto::OnConflict::try_from(number) {
        Ok(proto::OnConflict::Unspecified | proto::OnConflict::Keep) => Ok(OnConflict::Keep),
        Ok(proto::OnConflict::Replace) => Ok(OnConflict::Replace),
        Err(_) => Err(unreadable(format!(
            "on_conflict {number} is not known to this release; give keep or replace, or upgrade the service"
        ))),
    }
}

/// Zero is left to the core, which refuses it with the other durations that are too short.
fn retention(millis: i64) -> Result<Duration, Rejection> {
    u64::try_from(millis).map(Duration::from_millis).map_err(|_| {
        let detail = format!("retention is {millis} ms; give a duration above zero, or none to seal for ever");
        Rejection::new(Reason::InvalidDuration, detail)
    })
}

fn invalid(error: &IdentityError) -> Rejection {
    Rejection::new(Reason::InvalidIdentity, error.to_string())
}

fn unreadable(detail: impl Into<String>) -> Rejection {
    Rejection::new(Reason::Unreadable, detail)
}

pub(super) fn to_proto(command: &Command) -> proto::Command {
    use proto::command::Action as Message;
    let about = |key: &TimerKey, generation: &Option<Generation>| {
        (key.id.as_str().to_owned(), generation.map(|generation| generation.0))
    };
    let action = match &command.action {
        Action::Arm(arm) => Message::Arm(arm_to_proto(arm)),
        Action::Disarm { key, generation } => {
            let (timer_id, generation) = about(key, generation);
            Message::Disarm(proto::Disarm { timer_id, generation })
        }
        Action::Pause { key, generation } => {
            let (timer_id, generation) = about(key, generation);
            Message::Pause(proto::Pause { timer_id, generation })
        }
        Action::Resume { key, generation } => {
            let (timer_id, generation) = about(key, generation);
            Message::Resume(proto::Resume { timer_id, generation })
        }
        Action::DisarmRun { run: _ } => Message::DisarmRun(proto::DisarmRun {}),
        Action::SealRun { run: _, retention } => {
            Message::SealRun(proto::SealRun { retention_ms: retention.map(retention_millis) })
        }
    };
    let run = command.action.run();
    // What is the default is left out: a forwarded command must not outgrow the one that was sent.
    let tenant = Some(run.tenant.as_str()).filter(|tenant| *tenant != DEFAULT_TENANT);
    proto::Command {
        tenant: tenant.unwrap_or_default().to_owned(),
        run: run.run.as_str().to_owned(),
        correlation_id: command.reply.as_ref().map(|reply| reply.correlation_id.clone()).unwrap_or_default(),
        action: Some(action),
    }
}

fn arm_to_proto(arm: &Arm) -> proto::Arm {
    let kind = match &arm.kind {
        KindRef::Number(number) => proto::arm::KindRef::KindNumber(u32::from(number.get())),
        KindRef::Name(name) => proto::arm::KindRef::Kind(name.clone()),
    };
    let on_conflict = match arm.on_conflict {
        OnConflict::Keep => proto::OnConflict::Unspecified,
        OnConflict::Replace => proto::OnConflict::Replace,
    };
    proto::Arm {
        timer_id: arm.key.id.as_str().to_owned(),
        kind_ref: Some(kind),
        when: Some(when::to_proto(&arm.when)),
        on_conflict: i32::from(on_conflict),
        payload: arm.payload.clone(),
        key: arm.record_key.clone(),
        headers: record::headers_to_proto(&arm.headers),
        outbox: record::outbox_to_proto(&arm.outbox),
    }
}

/// Rounds up to a millisecond, as every duration of the wire. A retention beyond 64 bits is refused by the core anyway.
fn retention_millis(retention: Duration) -> i64 {
    i64::try_from(retention.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}
