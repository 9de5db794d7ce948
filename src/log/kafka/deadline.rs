//! Bounds on waiting for a broker.
//!
//! Owns [`Deadline`], [`now`] and [`pause`], the only places of `log::kafka` that read a clock or sleep. Never tells the time of
//! anything that is stored. Keeps: every loop that waits for a broker holds a deadline.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// A point in time until which something may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    started: Instant,
    patience: Duration,
}

impl Deadline {
    /// Starts to wait for at most `patience`.
    #[expect(clippy::disallowed_methods, reason = "a wait for the broker is measured, nothing that is stored")]
    pub(super) fn after(patience: Duration) -> Self {
        Self { started: Instant::now(), patience }
    }

    /// Returns the time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the time that is left, or zero.
    pub(super) fn remaining(&self) -> Duration {
        self.patience.saturating_sub(self.started.elapsed())
    }

    /// Returns whether nothing is left.
    pub(super) fn is_over(&self) -> bool {
        self.remaining().is_zero()
    }
}

/// Returns the time since it was first asked for.
#[expect(clippy::disallowed_methods, reason = "a wait for the broker is measured, nothing that is stored")]
pub(super) fn now() -> Duration {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    FIRST.elapsed()
}

/// Sleeps for a moment between two looks at something that librdkafka gives no way to wait for.
#[expect(clippy::disallowed_methods, reason = "librdkafka gives nothing to wait for here, and callers hold a deadline")]
pub(super) fn pause(moment: Duration) {
    std::thread::sleep(moment);
}
