//! Delivers what timers emit to an endpoint that may fail: `cargo run --example outbox_delivery -- DIRECTORY COMMAND`
//!
//! Arms one timer a second and gives each event to the standard input of `COMMAND`, such as `curl --fail --data @- URL`. Exit code 0 is a
//! delivery. Anything else stops the queue: order is kept, nothing is skipped, and the same entry is tried again after a pause that
//! doubles. Stop it at any moment; what was not acknowledged comes again.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use punctual::engine::{Arm, Budget, Engine, EngineError, Entry, Options, Tick};
use punctual::time::system::SystemClock;
use punctual::time::{Clock, Timestamp};
use punctual::timer::emitted::What;

const KIND: u32 = 1;
/// The pause after the first failure; each further one doubles it.
const PAUSE: Duration = Duration::from_secs(1);
/// No pause is longer, whatever the endpoint asks for.
const PAUSE_MAX: Duration = Duration::from_mins(15);
/// No pause doubles more often.
const DOUBLINGS_MAX: u32 = 20;
/// A pause is shorter by up to so many thousandths, so that those who failed together do not come back together.
const JITTER_PER_MILLE: u32 = 200;
/// Most entries that are read at once.
const BATCH_MAX: usize = 100;
const SLEEP_MAX: Duration = Duration::from_millis(500);

/// What the endpoint says to one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It has it.
    Delivered,
    /// It does not, and may say when to come back.
    Failed {
        /// How long it asks for, from now: a `Retry-After`.
        retry_after: Option<Duration>,
    },
}

/// Returns the pause after a failure of this entry that had `failures` before it: min(1 s · 2^min(failures, 20), 900 s), less up to a
/// fifth; not less than the endpoint asks for, and never more than 900 s.
pub fn pause(entry: u64, failures: u32, retry_after: Option<Duration>) -> Duration {
    let whole = PAUSE.saturating_mul(1 << failures.min(DOUBLINGS_MAX)).min(PAUSE_MAX);
    // A hash and no random number: the same failure has the same pause, in a test too.
    let cut = mixed(entry ^ u64::from(failures).rotate_left(32)) % (u64::from(JITTER_PER_MILLE) + 1);
    let left = 1_000 - u32::try_from(cut).unwrap_or(JITTER_PER_MILLE);
    let jittered = whole * left / 1_000;
    jittered.max(retry_after.unwrap_or_default()).min(PAUSE_MAX)
}

/// Spreads a number over all bits (the finaliser of `SplitMix64`).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// Who delivers, one entry after the other.
#[derive(Debug)]
pub struct Courier {
    /// Failures of the oldest entry, one after the other.
    failures: u32,
    /// Nothing is delivered before.
    rests_until: Timestamp,
}

impl Default for Courier {
    fn default() -> Self {
        Self { failures: 0, rests_until: Timestamp::EPOCH }
    }
}

impl Courier {
    /// Delivers what there is until an entry fails, which comes first the next time. Returns when that is; `None` if all is delivered.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn round(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        deliver: &mut impl FnMut(&Entry) -> Answer,
    ) -> Result<Option<Timestamp>, EngineError> {
        if now < self.rests_until {
            return Ok(Some(self.rests_until));
        }
        loop {
            let entries = engine.read_outbox(0, BATCH_MAX)?;
            if entries.is_empty() {
                return Ok(None);
            }
            for entry in entries {
                match deliver(&entry) {
                    Answer::Delivered => {
                        // Behind the delivery: after a crash in between it is delivered again, never lost.
                        engine.acknowledge(entry.number)?;
                        self.failures = 0;
                    }
                    Answer::Failed { retry_after } => {
                        let pause = pause(entry.number, self.failures, retry_after);
                        self.failures = self.failures.saturating_add(1);
                        self.rests_until = now.checked_add(pause).unwrap_or(Timestamp::MAX);
                        return Ok(Some(self.rests_until));
                    }
                }
            }
        }
    }
}

/// Gives an entry to a command. One that is no event, or cannot be read, is none of the endpoint's business.
fn give(entry: &Entry, command: &str) -> io::Result<bool> {
    let Ok(What::Event(event)) = entry.emitted.as_ref().map(|emitted| &emitted.what) else { return Ok(true) };
    let mut child = Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(event.payload.as_deref().unwrap_or_default())?;
    }
    Ok(child.wait()?.success())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(command)) = (arguments.next(), arguments.next()) else {
        return Err("name a directory, and a command that takes an event from its standard input".into());
    };
    let engine = Engine::open(Path::new(&directory), Options::new().kind(KIND, "outcome")?)?;
    let clock = SystemClock;
    let mut courier = Courier::default();
    // A program with more to do would be woken by it; this one only sleeps.
    let (_waker, sleep) = mpsc::channel::<()>();
    loop {
        let now = clock.wall();
        let second = now.as_millis() / 1_000 + 1;
        let (run, timer_id, due) = ("seconds".to_owned(), second.to_string(), Timestamp::from_millis(second * 1_000));
        let payload = Some(format!("second {second}\n").into());
        engine.arm(Arm { run, timer_id, kind: KIND, due, payload, ..Arm::default() }, now)?;
        engine.fire_due(now, &mut Tick::new(Budget::default()), &|| clock.boot())?;
        let next = courier.round(&engine, now, &mut |entry| match give(entry, &command) {
            Ok(true) => Answer::Delivered,
            Ok(false) | Err(_) => Answer::Failed { retry_after: None },
        })?;
        if let Some(next) = next {
            writeln!(io::stderr(), "not delivered; again at {next}")?;
        }
        let _timed_out = sleep.recv_timeout(SLEEP_MAX);
    }
}
