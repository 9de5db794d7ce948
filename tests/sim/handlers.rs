//! The handlers that the kinds of the simulation have.
//!
//! Owns what they return. Keeps: each depends on its timer and the tick's time alone, so that the oracle can tell what it did.

use bytes::Bytes;
use punctual::timer::command::{Arm, OnConflict, When};
use punctual::timer::handler::{Done, FireContext, Fired, Handler, HandlerError, Handlers, TimerCommand};
use punctual::timer::identity::{TimerId, TimerKey};
use punctual::timer::kind::KindRef;
use punctual::timer::model::{Header, OutboxRecord, Timer};

use crate::sim::Millis;

/// The header of the record that says that a timer was dated anew: its value is the instant, in milliseconds since 1970.
pub(crate) const DATED: &str = "sim-dated";
/// The header of that record that names the version of the timer.
pub(crate) const VERSION: &str = "sim-version";
/// What the payload of a timer that was dated anew begins with.
const AGAIN: &[u8] = b"again ";
/// How much later such a timer fires.
pub(crate) const DATED_PAUSE: Millis = 900;
/// How much later the timer fires that a chained one arms.
pub(crate) const CHAINED_PAUSE: Millis = 700;
/// The payload of the timer that a chained one arms.
pub(crate) const CHAINED: &[u8] = b"chained";
/// The kind of that timer.
pub(crate) const CHAINED_KIND: (u32, &str) = (1, "email");

pub(crate) fn handlers() -> Handlers {
    let mut handlers = Handlers::new();
    handlers.register(9, Flaky).expect("once");
    handlers.register(11, Dated).expect("once");
    handlers.register(12, Chained).expect("once");
    handlers
}

/// Returns how often the handler of the flaky kind fails for a timer.
pub(crate) fn failures_of(generation: u64) -> u32 {
    u32::from(generation.is_multiple_of(2))
}

/// Returns the payload of a timer after it was dated anew; `None` if it fires instead.
pub(crate) fn dated(payload: Option<&Bytes>) -> Option<Bytes> {
    let payload = payload.map(AsRef::as_ref).unwrap_or_default();
    (!payload.starts_with(AGAIN)).then(|| [AGAIN, payload].concat().into())
}

/// Returns the ids of the timers that a chained one arms and disarms.
pub(crate) fn chained(id: &str) -> (String, String) {
    (format!("{id}.next"), format!("{id}.stop"))
}

struct Flaky;

impl Handler for Flaky {
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        if ctx.attempt > failures_of(timer.generation.0) {
            return Ok(Fired::Done(Done::publish(timer)));
        }
        if timer.generation.0.is_multiple_of(4) { Ok(Fired::Retry) } else { Err("not yet".into()) }
    }
}

struct Dated;

impl Handler for Dated {
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        let Some(payload) = dated(timer.payload.as_ref()) else { return Ok(Fired::Done(Done::publish(timer))) };
        let due = ctx.now.checked_add_millis(DATED_PAUSE).ok_or("the end of time")?;
        let header = |key: &str, value: String| Header { key: key.to_owned(), value: Some(value.into()) };
        let headers =
            vec![header(DATED, ctx.now.as_millis().to_string()), header(VERSION, timer.generation.0.to_string())];
        let record = OutboxRecord { key: Some(timer.key.to_string().into()), value: None, headers };
        Ok(Fired::Reschedule { due, payload: Some(payload), outbox: vec![record] })
    }
}

struct Chained;

impl Handler for Chained {
    fn fire(&self, _ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        let (next, stop) = chained(timer.key.id.as_str());
        let key = |id: &str| TimerKey { run: timer.key.run.clone(), id: TimerId::parse(id).expect("valid") };
        let disarm = TimerCommand::Disarm { key: key(&stop), generation: None };
        let arm = TimerCommand::Arm(Box::new(Arm {
            key: key(&next),
            kind: KindRef::Name(CHAINED_KIND.1.to_owned()),
            when: When::AfterMillis(CHAINED_PAUSE),
            on_conflict: OnConflict::Replace,
            payload: Some(Bytes::from_static(CHAINED)),
            record_key: None,
            headers: Vec::new(),
            outbox: Vec::new(),
        }));
        Ok(Fired::Done(Done { commands: vec![disarm, arm], ..Done::publish(timer) }))
    }
}
