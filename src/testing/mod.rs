//! A kit for tests of handlers and commands: an engine in memory and a clock that the test sets.
//!
//! ```text
//!   arm, send ──▶ ┌───────┐ ──▶ step: one timer's turn at the clock's time
//!   ManualClock ─▶│ Bench │ ──▶ run_until: every turn up to an instant, from wake to wake
//!                 └───────┘ ──▶ emitted: events and records, since the last look
//! ```
//!
//! Owns [`Bench`] and [`ManualClock`]. Never waits and never reads a clock of the machine, so a year takes no time. Keeps: what happens
//! is what the engine does, and what the service does with the same handlers, but for what Kafka adds.
//!
//! # Examples
//! ```
//! use std::time::Duration;
//!
//! use punctual::engine::Options;
//! use punctual::testing::Bench;
//! use punctual::timer::handler::{Done, FireContext, Fired, Handler, HandlerError};
//! use punctual::timer::model::Timer;
//!
//! /// Reminds once more after an hour.
//! struct Twice;
//!
//! impl Handler for Twice {
//!     fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
//!         if timer.payload.is_some() {
//!             return Ok(Fired::Done(Done::publish(timer)));
//!         }
//!         let due = ctx.now.checked_add_millis(3_600_000).ok_or("the end of time")?;
//!         Ok(Fired::Reschedule { due, payload: Some("again".into()), outbox: Vec::new() })
//!     }
//! }
//!
//! let bench = Bench::new(Options::new().kind(1, "reminder")?.handler(1, Twice)?)?;
//! bench.send(r#"{"run":"order-42","arm":{"timer_id":"reminder","kind":"reminder","after":"PT5M"}}"#)?;
//! bench.clock().advance(Duration::from_secs(300));
//! assert_eq!(bench.step()?.rescheduled, 1);
//! assert_eq!(bench.emitted()?, []);
//! bench.run_for(Duration::from_secs(3_600))?;
//! assert_eq!(bench.emitted()?.len(), 1);
//! # Ok::<(), punctual::engine::EngineError>(())
//! ```

mod bench;
mod clock;

pub use bench::Bench;
pub use clock::ManualClock;
