//! Durable timers in a program without Kafka: `cargo run --example embedded -- DIRECTORY`
//!
//! Arms a reminder for each order on the command line (`DIRECTORY order-42 order-43`), five seconds from now, and prints what fires.
//! Stop it at any moment, by Ctrl-C or kill -9, and start it again on the same directory: nothing is lost.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use punctual::engine::{Arm, ArmAnswer, Budget, Engine, EngineError, Options, Tick};
use punctual::time::system::SystemClock;
use punctual::time::{Clock, Timestamp};
use punctual::timer::emitted::What;
use punctual::timer::handler::{Done, FireContext, Fired, Handler, HandlerError};
use punctual::timer::model::{OutboxRecord, Timer};

/// The number of the kind; it is stored, and never given to another.
const REMINDER: u32 = 1;
/// How often an order is reminded of at most.
const REMINDERS: u8 = 3;
const PAUSE_MS: i64 = 5_000;
/// Longest sleep: another thread may arm something meanwhile.
const SLEEP_MAX: Duration = Duration::from_millis(500);
/// Most entries of the outbox that are delivered at once.
const BATCH_MAX: usize = 100;

/// Reminds three times, then gives up. The payload counts.
struct Remind;

impl Handler for Remind {
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        let count = timer.payload.as_ref().and_then(|payload| payload.first()).copied().unwrap_or(1);
        if count >= REMINDERS {
            return Ok(Fired::Done(Done::publish(timer)));
        }
        let due = ctx.now.checked_add_millis(PAUSE_MS).ok_or("the next reminder is beyond the year 9999")?;
        let notice = OutboxRecord {
            key: None,
            value: Some(format!("reminder {count} of {}", timer.key.run.run.as_str()).into()),
            headers: Vec::new(),
        };
        Ok(Fired::Reschedule { due, payload: Some(vec![count.saturating_add(1)].into()), outbox: vec![notice] })
    }
}

/// Opens the timers of this program.
///
/// # Errors
/// When another process has the directory, or it cannot be read.
pub fn open(directory: &Path) -> Result<Engine, EngineError> {
    Engine::open(directory, Options::new().kind(REMINDER, "reminder")?.handler(REMINDER, Remind)?)
}

/// Arms the first reminder of an order; one that is armed already stays as it is.
///
/// # Errors
/// When the order's name is no run, or the disk fails.
pub fn remind(engine: &Engine, order: &str, now: Timestamp) -> Result<ArmAnswer, EngineError> {
    let due = now.checked_add_millis(PAUSE_MS).unwrap_or(Timestamp::MAX);
    let (run, timer_id) = (order.to_owned(), "reminder".to_owned());
    engine.arm(Arm { run, timer_id, kind: REMINDER, due, ..Arm::default() }, now)
}

/// Fires what is due, and delivers what was emitted. Returns when there is something to do again.
///
/// # Errors
/// When the disk fails, or `deliver` does: what was not delivered comes again.
pub fn turn(
    engine: &Engine,
    clock: &impl Clock,
    deliver: &mut impl FnMut(&str) -> io::Result<()>,
) -> Result<Option<Timestamp>, Box<dyn Error>> {
    let report = engine.fire_due(clock.wall(), &mut Tick::new(Budget::default()), &|| clock.boot())?;
    for failure in &report.failures {
        deliver(&format!("{}/{} failed: {}", failure.run, failure.timer_id, failure.detail))?;
    }
    for entry in engine.read_outbox(0, BATCH_MAX)? {
        let emitted = entry.emitted?;
        match emitted.what {
            What::Record(record) => deliver(&String::from_utf8_lossy(&record.value.unwrap_or_default()))?,
            What::Event(_) => deliver(&format!("order {} is given up", emitted.key.run.run.as_str()))?,
            What::Expired { reason, .. } => deliver(&format!("{} expired: {reason:?}", emitted.key))?,
        }
        // Behind the delivery: after a crash in between it is delivered again, never lost.
        engine.acknowledge(entry.number)?;
    }
    Ok(report.next_wake)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("name a directory, and orders to be reminded of")?;
    let engine = open(Path::new(&directory))?;
    let clock = SystemClock;
    for order in arguments {
        remind(&engine, &order, clock.wall())?;
    }
    // A program with more to do would be woken by it; this one only sleeps.
    let (_waker, sleep) = mpsc::channel::<()>();
    loop {
        let wake = turn(&engine, &clock, &mut |line| writeln!(io::stdout(), "{line}"))?;
        let patience = wake.map_or(SLEEP_MAX, |wake| wake.since(clock.wall()).min(SLEEP_MAX));
        let _timed_out = sleep.recv_timeout(patience);
    }
}
