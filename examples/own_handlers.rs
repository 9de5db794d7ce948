//! A service with handlers of its own: `cargo run --example own_handlers -- punctual.yaml`
//!
//! Kind 1 (`escalation`) fires up to three times, an hour apart, until somebody disarms it. Kind 2 (`payment`) is a time-out: when it
//! fires, the run's reminder is no longer wanted. All other kinds of the settings publish.

use std::error::Error;
use std::path::Path;

use punctual::config::settings::Config;
use punctual::config::sources::Sources;
use punctual::timer::handler::{Done, FireContext, Fired, Handler, HandlerError, Handlers, TimerCommand};
use punctual::timer::identity::{TimerId, TimerKey};
use punctual::timer::model::{OutboxRecord, Timer};

/// How often an escalation fires at most.
const LEVELS: u8 = 3;
const HOUR_MS: i64 = 3_600_000;

/// Sends an outbox record at each level, and the event at the last. The payload is the level.
struct Escalate;

impl Handler for Escalate {
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        let level = timer.payload.as_ref().and_then(|payload| payload.first()).copied().unwrap_or(1);
        if level >= LEVELS {
            return Ok(Fired::Done(Done::publish(timer)));
        }
        let due = ctx.now.checked_add_millis(HOUR_MS).ok_or("the next hour is beyond the year 9999")?;
        let payload = vec![level.saturating_add(1)].into();
        let notice = OutboxRecord { key: None, value: timer.payload.clone(), headers: Vec::new() };
        Ok(Fired::Reschedule { due, payload: Some(payload), outbox: vec![notice] })
    }
}

/// Publishes, and cancels the timer `reminder` of the same run in the same transaction.
struct TimeOut;

impl Handler for TimeOut {
    fn fire(&self, _ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        let reminder = TimerKey { run: timer.key.run.clone(), id: TimerId::parse("reminder")? };
        let commands = vec![TimerCommand::Disarm { key: reminder, generation: None }];
        Ok(Fired::Done(Done { commands, ..Done::publish(timer) }))
    }

    fn share_max(&self) -> Option<usize> {
        Some(500)
    }
}

/// Returns the handlers of this program.
///
/// # Errors
/// When two are for one kind.
pub fn handlers() -> Result<Handlers, Box<dyn Error>> {
    let mut handlers = Handlers::new();
    handlers.register(1, Escalate)?;
    handlers.register(2, TimeOut)?;
    Ok(handlers)
}

/// Runs the service until a signal stops it.
///
/// # Errors
/// When a setting, a topic or the state directory is wrong, or a worker cannot go on.
pub fn serve(file: &Path) -> Result<(), Box<dyn Error>> {
    let config = Config::load(&Sources::gather(Some(file), &[])?)?;
    config.validate()?;
    Ok(punctual::service::serve_with(&config, &handlers()?)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).ok_or("name the file with the settings")?;
    serve(Path::new(&file))
}
