//! From what a caller gives to values that are valid.
//!
//! Owns [`Arm`], and the judgement of each argument by itself. Never judges one against the state. Keeps: what is refused is named, with
//! its value and the remedy.

use std::time::Duration;

use bytes::Bytes;

use super::error::EngineError;
use crate::time::Timestamp;
use crate::timer::command::{self, Action, OnConflict, When};
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::{KindNumber, KindRef};

/// The wish for a timer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arm {
    /// Whose it is: 1 to 128 characters of `A-Z a-z 0-9 . _ ~ -`; empty means `default`.
    pub tenant: String,
    /// The run that owns it: 1 to 512 bytes without control characters.
    pub run: String,
    /// Its name inside the run: 1 to 512 bytes without control characters.
    pub timer_id: String,
    /// The number of its kind: 1 to 239, and 240 to 255 in tests. It need not be one that the engine knows.
    pub kind: u32,
    /// When it is to fire: at this instant or later, never before. [`Timestamp::at_or_after`] rounds what is finer.
    pub due: Timestamp,
    /// What its event or its claim carries.
    pub payload: Option<Bytes>,
    /// What to do if a timer with this identity is armed already.
    pub on_conflict: OnConflict,
}

impl Arm {
    pub(super) fn action(self) -> Result<Action, EngineError> {
        let key = timer_key(&self.tenant, &self.run, &self.timer_id)?;
        let kind = kind(self.kind)?;
        let due = instant("due", self.due)?;
        Ok(Action::Arm(Box::new(command::Arm {
            key,
            kind: KindRef::Number(kind),
            when: When::At(due),
            on_conflict: self.on_conflict,
            payload: self.payload,
            record_key: None,
            headers: Vec::new(),
            outbox: Vec::new(),
        })))
    }
}

pub(super) fn tenant(tenant: &str) -> Result<Tenant, EngineError> {
    Ok(Tenant::parse(tenant)?)
}

pub(super) fn run_key(tenant: &str, run: &str) -> Result<RunKey, EngineError> {
    Ok(RunKey { tenant: Tenant::parse(tenant)?, run: Run::parse(run)? })
}

pub(super) fn timer_key(tenant: &str, run: &str, timer_id: &str) -> Result<TimerKey, EngineError> {
    Ok(TimerKey { run: run_key(tenant, run)?, id: TimerId::parse(timer_id)? })
}

fn kind(number: u32) -> Result<KindNumber, EngineError> {
    let problem = "is no kind number; use 1 to 239 (240 to 255 are reserved for tests)";
    KindNumber::new(number).ok_or_else(|| EngineError::invalid("kind", number, problem))
}

/// Returns an instant that can be stored.
pub(super) fn instant(field: &'static str, at: Timestamp) -> Result<Timestamp, EngineError> {
    if (Timestamp::EPOCH..=Timestamp::MAX).contains(&at) {
        return Ok(at);
    }
    let problem = "is outside the years 1970 to 9999; give milliseconds since 1970-01-01T00:00:00Z";
    Err(EngineError::invalid(field, at.as_millis(), problem))
}

/// Returns a duration of whole milliseconds, rounded up.
pub(super) fn whole_millis(field: &'static str, duration: Duration) -> Result<Duration, EngineError> {
    if duration.is_zero() {
        return Err(EngineError::invalid(field, "0 s", "is no duration; give one above zero"));
    }
    // What is longer than any instant is as good as the longest.
    let millis = u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    Ok(Duration::from_millis(millis))
}
