//! `punctual arm`, `disarm`, `pause`, `resume`, `disarm-run`, `seal-run`: a command is sent, and its answer awaited if that was asked for.
//!
//! Owns the way from flags to a command and from its answer to an exit code. Never decides what the service decides: a
//! command with valid fields is sent as it is.
//! Keeps: the reader of answers has fixed its place before the command is sent, so no answer is missed.

use std::io::Read;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::args::{ArmArgs, DisarmRunArgs, PayloadArgs, SealRunArgs, SendArgs, TimerArgs};
use super::failure::{Code, Failure};
use super::output::{Format, Output};
use super::receipt::Receipt;
use super::setup::{self, Setup};
use super::{upcoming, when};
use crate::log::kafka::tool::producer::{Outgoing, Producer};
use crate::log::kafka::tool::reader::{Reader, Start};
use crate::time::Clock;
use crate::timer::command::{Action, Arm, Command, Encoding, OnConflict, Reply, When};
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::model::{Generation, Header, OutboxRecord};
use crate::wire;
use crate::wire::answer::Received;

/// Longest wait for one record, so that the bound on the whole wait is kept.
const POLL_MAX: Duration = Duration::from_millis(100);

/// Sends an arm.
///
/// # Errors
/// When a flag is wrong, or sending fails, or the answer is no.
pub(super) fn arm(args: &ArmArgs, clock: &dyn Clock, out: &mut Output<'_>) -> Result<(), Failure> {
    let arm = Arm {
        key: timer_key(&args.send, &args.run, &args.timer_id)?,
        kind: setup::kind_ref(&args.kind)?,
        when: when::when(&args.when, &args.schedule)?,
        on_conflict: if args.replace { OnConflict::Replace } else { OnConflict::Keep },
        payload: payload(&args.payload)?,
        record_key: args.key.as_ref().map(|key| Bytes::from(key.clone())),
        headers: args.headers.iter().map(|text| header(text)).collect::<Result<_, _>>()?,
        outbox: args.outbox.iter().map(|text| outbox_record(text)).collect::<Result<_, _>>()?,
    };
    let setup = Setup::load(&args.send.kafka)?;
    let is_plain = matches!(arm.when, When::At(_) | When::AfterMillis(_));
    if args.schedule.dry_run || !is_plain {
        let config = &setup.config;
        let upcoming = upcoming::upcoming(&arm.when, &config.calendar, &config.limits(), clock.wall())?;
        // What is read by programs has one value for each command: what was sent, or what would be.
        if args.schedule.dry_run || out.format == Format::Table {
            upcoming::show(&arm.when, &upcoming, out)?;
        }
    }
    if args.schedule.dry_run {
        return Ok(());
    }
    send(&args.send, &setup, Action::Arm(Box::new(arm)), clock, out)
}

/// Sends a disarm.
///
/// # Errors
/// When a flag is wrong, or sending fails, or the answer is no.
pub(super) fn disarm(args: &TimerArgs, clock: &dyn Clock, out: &mut Output<'_>) -> Result<(), Failure> {
    let (key, generation) = timer(args)?;
    send(&args.send, &Setup::load(&args.send.kafka)?, Action::Disarm { key, generation }, clock, out)
}

/// Sends a pause.
///
/// # Errors
/// When a flag is wrong, or sending fails, or the answer is no.
pub(super) fn pause(args: &TimerArgs, clock: &dyn Clock, out: &mut Output<'_>) -> Result<(), Failure> {
    let (key, generation) = timer(args)?;
    send(&args.send, &Setup::load(&args.send.kafka)?, Action::Pause { key, generation }, clock, out)
}

/// Sends a resume.
///
/// # Errors
/// When a flag is wrong, or sending fails, or the answer is no.
pub(super) fn resume(args: &TimerArgs, clock: &dyn Clock, out: &mut Output<'_>) -> Result<(), Failure> {
    let (key, generation) = timer(args)?;
    send(&args.send, &Setup::load(&args.send.kafka)?, Action::Resume { key, generation }, clock, out)
}

/// Sends a disarm of a whole run.
///
/// # Errors
/// When a flag is wrong, or sending fails, or the answer is no.
pub(super) fn disarm_run(args: &DisarmRunArgs, clock: &dyn Clock, out: &mut Output<'_>) -> Result<(), Failure> {
    send(
        &args.send,
        &Setup::load(&args.send.kafka)?,
        Action::DisarmRun { run: run_key(&args.send, &args.run)? },
        clock,
        out,
    )
}

/// Sends a seal of a run.
///
/// # Errors
/// When a flag is wrong, or sending fails, or the answer is no.
pub(super) fn seal_run(args: &SealRunArgs, clock: &dyn Clock, out: &mut Output<'_>) -> Result<(), Failure> {
    let retention = args.retention.as_deref().map(when::retention).transpose()?;
    send(
        &args.send,
        &Setup::load(&args.send.kafka)?,
        Action::SealRun { run: run_key(&args.send, &args.run)?, retention },
        clock,
        out,
    )
}

fn send(
    args: &SendArgs,
    setup: &Setup,
    action: Action,
    clock: &dyn Clock,
    out: &mut Output<'_>,
) -> Result<(), Failure> {
    let topics = &setup.config.topics;
    let results = match (&args.wait, &topics.results) {
        (None, _) => None,
        (Some(limit), Some(results)) => Some((results.as_str(), *limit)),
        (Some(_), None) => {
            return Err(Failure::usage("--wait reads the results topic, and topics.results is empty")
                .with_remedy("set topics.results, here and where the service runs"));
        }
    };
    let correlation_id = match (&args.correlation_id, results) {
        (Some(text), _) => Some(text.clone()),
        (None, Some(_)) => Some(format!("cli-{:032x}", fastrand::u128(..))),
        (None, None) => None,
    };
    let reply = correlation_id.map(|correlation_id| Reply { correlation_id, encoding: Encoding::Protobuf });
    let command = Command { reply, action };
    let value = wire::command::encode(&command, Encoding::Protobuf);
    let headers = [wire::content_type::header(Encoding::Protobuf)];
    // What the service could not read is refused here, with the service's own words.
    wire::command::decode(Some(&value), &headers).map_err(|refused| Failure::usage(refused.rejection.detail))?;
    let connection = setup.connect()?;
    let partitions = connection.partitions(&topics.changelog)?;
    let partition = wire::partition::partition_of(command.action.run(), partitions);
    let reader = results.map(|(topic, _)| Reader::open(&connection, &[topic], Start::End)).transpose()?;
    let key = command.action.run().to_string();
    let record = Outgoing {
        topic: &topics.arm,
        partition,
        key: key.as_bytes(),
        value: &value,
        headers: &headers,
        timestamp: clock.wall(),
    };
    let offset = Producer::new(&connection)?.send(&record)?;
    let receipt = Receipt { topic: topics.arm.clone(), partition, offset, command };
    let Some((reader, (topic, limit))) = reader.zip(results) else {
        receipt.show(None, out)?;
        return Ok(());
    };
    let answer = await_answer(&reader, &receipt.command, limit, clock)?;
    receipt.show(answer.as_ref(), out)?;
    match answer {
        None => Err(unanswered(&reader, topic, limit, setup)),
        Some(answer) if Receipt::is_yes(&answer) => Ok(()),
        Some(_) => Err(Failure::Answered(Code::Negative)),
    }
}

fn await_answer(
    reader: &Reader,
    command: &Command,
    limit: Duration,
    clock: &dyn Clock,
) -> Result<Option<Received>, Failure> {
    let Some(reply) = &command.reply else {
        return Ok(None);
    };
    let end = clock.boot() + limit;
    loop {
        let left = end.saturating_sub(clock.boot());
        if left.is_zero() {
            return Ok(None);
        }
        let Some(record) = reader.next(left.min(POLL_MAX))? else {
            continue;
        };
        // Answers to others, in whatever form, are none of our business.
        let value = record.value.unwrap_or_default();
        let Ok(answer) = wire::answer::decode(&value, &record.headers) else {
            continue;
        };
        let run = command.action.run();
        let is_ours = answer.correlation_id == reply.correlation_id
            && answer.tenant == run.tenant.as_str()
            && answer.run == run.run.as_str();
        if is_ours {
            return Ok(Some(answer));
        }
    }
}

fn unanswered(reader: &Reader, topic: &str, limit: Duration, setup: &Setup) -> Failure {
    let mut message =
        format!("no answer on `{topic}` within {limit:?}; the command was sent and may still be carried out");
    if let Some(trouble) = reader.trouble() {
        message = format!("{message} ({trouble})");
    }
    Failure::Told {
        code: Code::Unanswered,
        message,
        remedy: Some(format!(
            "check that `punctual serve` runs on {} with the same topics.arm, and has topics.results set",
            setup.config.kafka.bootstrap_servers
        )),
    }
}

fn run_key(args: &SendArgs, run: &str) -> Result<RunKey, Failure> {
    let tenant = Tenant::parse(&args.tenant).map_err(|error| Failure::usage(format!("--tenant: {error}")))?;
    let run = Run::parse(run).map_err(|error| Failure::usage(format!("RUN: {error}")))?;
    Ok(RunKey { tenant, run })
}

fn timer(args: &TimerArgs) -> Result<(TimerKey, Option<Generation>), Failure> {
    Ok((timer_key(&args.send, &args.run, &args.timer_id)?, args.generation.map(Generation)))
}

fn timer_key(args: &SendArgs, run: &str, timer_id: &str) -> Result<TimerKey, Failure> {
    let id = TimerId::parse(timer_id).map_err(|error| Failure::usage(format!("TIMER_ID: {error}")))?;
    Ok(TimerKey { run: run_key(args, run)?, id })
}

fn payload(args: &PayloadArgs) -> Result<Option<Bytes>, Failure> {
    if let Some(text) = &args.payload {
        return Ok(Some(Bytes::from(text.clone())));
    }
    if let Some(text) = &args.payload_base64 {
        let bytes = STANDARD.decode(text).map_err(|error| {
            Failure::usage(format!("--payload-base64 is no base64: {error}"))
                .with_remedy("the alphabet is A-Z a-z 0-9 + / with = at the end: base64 -w0 FILE writes it")
        })?;
        return Ok(Some(Bytes::from(bytes)));
    }
    let Some(path) = &args.payload_file else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::failed(format!("--payload-file `{}` cannot be read: {error}", path.display())))?;
    Ok(Some(Bytes::from(bytes)))
}

fn header(text: &str) -> Result<Header, Failure> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            Ok(Header { key: name.to_owned(), value: Some(Bytes::from(value.to_owned())) })
        }
        Some(_) | None => {
            Err(Failure::usage(format!("--header `{text}` is not NAME=VALUE")).with_remedy("write --header trace=abc"))
        }
    }
}

fn outbox_record(text: &str) -> Result<OutboxRecord, Failure> {
    let Some((key, value)) = text.split_once('=') else {
        return Err(Failure::usage(format!("--outbox `{text}` is not KEY=VALUE"))
            .with_remedy("write --outbox stock/7=release, or --outbox =release for a record without a key"));
    };
    let key = (!key.is_empty()).then(|| Bytes::from(key.to_owned()));
    Ok(OutboxRecord { key, value: Some(Bytes::from(value.to_owned())), headers: Vec::new() })
}
