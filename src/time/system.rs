//! The clock of the host.
//!
//! Owns [`SystemClock`], the only reader of the host's clocks in the crate. Keeps: `boot` counts suspended time
//! (`CLOCK_BOOTTIME`), so that a suspended machine is not taken for a clock step.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Clock, Timestamp};

/// The wall clock and the boot-time clock of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock")]
    fn wall(&self) -> Timestamp {
        // A wall clock before 1970 reads as the epoch: nothing is due yet, so nothing fires early.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Timestamp::EPOCH.checked_add(since_epoch).unwrap_or(Timestamp::MAX)
    }

    fn boot(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
        Duration::new(seconds, nanos)
    }
}
