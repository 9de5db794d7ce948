//! The edge between the core and the code of handlers.
//!
//! Owns the catching of panics. Never judges what a handler returned. Keeps: a handler that panics fails its timer, and nothing else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::handler::{Attempt, FireContext, Handlers};
use super::model::Timer;

/// Lets the kind's handler fire a timer.
pub fn attempt(handlers: &Handlers, ctx: &FireContext, timer: &Timer) -> Attempt {
    // What a handler holds behind its shared reference is its own to keep whole; ours is untouched.
    match catch_unwind(AssertUnwindSafe(|| handlers.attempt(ctx, timer))) {
        Ok(attempt) => attempt,
        Err(payload) => Attempt::Failed(format!("the handler panicked: {}", text_of(payload.as_ref()))),
    }
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("it said nothing")
}
