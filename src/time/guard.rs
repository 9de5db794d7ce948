//! Decides whether the wall clock may be believed.
//!
//! ```text
//!            step ≤ max                      step > max                    broker confirms
//!   Trusted ────────────▶ Trusted   Trusted ────────────▶ Held   Held ───────────────────▶ Trusted
//!                                                          └── the clock comes back ────────▲
//! ```
//!
//! Owns [`ClockGuard`]. Compares the wall clock with the boot-time clock, which never steps and counts suspended time: a
//! forward jump of the difference beyond the limit would fire everything up to it too early, so it is held until the
//! broker's clock confirms it. A backward step needs no hold: `now` is then earlier, so nothing is due early.
//! Never changes a reading: `now` is the wall clock or nothing (INV-CLOCK-1).

use std::time::Duration;

use super::{Clock, Timestamp};
use crate::planted::{Bug, is_on};

/// What the guard makes of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The time to apply and to fire by.
    Trusted(Timestamp),
    /// The clock jumped forward by about so much; nothing is applied or fired until that is confirmed.
    Held {
        /// The wall clock, which is not to be believed yet.
        wall: Timestamp,
        /// The size of the jump.
        jump: Duration,
    },
}

/// Watches the wall clock for forward steps.
#[derive(Clone, Debug)]
pub struct ClockGuard {
    step_max: Duration,
    /// The last believed difference between the wall clock and the boot-time clock, in milliseconds.
    believed_difference_ms: Option<i64>,
}

impl ClockGuard {
    /// Returns a guard that believes the clock as it is first read, and later forward steps of up to `step_max`.
    pub fn new(step_max: Duration) -> Self {
        Self { step_max, believed_difference_ms: None }
    }

    /// Reads the clock.
    pub fn read(&mut self, clock: &impl Clock) -> Reading {
        let wall = clock.wall();
        let difference = difference_ms(wall, clock.boot());
        let believed = self.believed_difference_ms.unwrap_or(difference);
        let jump = Duration::from_millis(difference.saturating_sub(believed).max(0).unsigned_abs());
        if jump > self.step_max && !is_on(Bug::ClockGuardOff) {
            return Reading::Held { wall, jump };
        }
        self.believed_difference_ms = Some(difference);
        Reading::Trusted(wall)
    }

    /// Takes the broker's clock into account: believes the wall clock if it is not ahead of `appended`, the time at which
    /// the broker has just appended a record of ours, by more than the limit; and holds it otherwise.
    pub fn confirm(&mut self, clock: &impl Clock, appended: Timestamp) {
        let wall = clock.wall();
        let ahead = wall.since(appended);
        let difference = difference_ms(wall, clock.boot());
        if ahead <= self.step_max {
            self.believed_difference_ms = Some(difference);
        } else {
            let ahead_ms = i64::try_from(ahead.as_millis()).unwrap_or(i64::MAX);
            self.believed_difference_ms = Some(difference.saturating_sub(ahead_ms));
        }
    }
}

fn difference_ms(wall: Timestamp, boot: Duration) -> i64 {
    let boot_ms = i64::try_from(boot.as_millis()).unwrap_or(i64::MAX);
    wall.as_millis().saturating_sub(boot_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Hands {
        wall_ms: i64,
        boot_ms: u64,
    }

    impl Clock for Hands {
        fn wall(&self) -> Timestamp {
            Timestamp::from_millis(self.wall_ms)
        }
        fn boot(&self) -> Duration {
            Duration::from_millis(self.boot_ms)
        }
    }

    const STEP_MAX: Duration = Duration::from_secs(10);

    #[test]
    fn a_forward_jump_is_held_until_the_broker_confirms_it() {
        let mut guard = ClockGuard::new(STEP_MAX);
        let hour = 3_600_000;
        assert_eq!(
            guard.read(&Hands { wall_ms: 1_000_000, boot_ms: 0 }),
            Reading::Trusted(Timestamp::from_millis(1_000_000))
        );
        let jumped = Hands { wall_ms: 1_001_000 + hour, boot_ms: 1_000 };
        let held = Reading::Held { wall: jumped.wall(), jump: Duration::from_hours(1) };
        assert_eq!(guard.read(&jumped), held);
        assert_eq!(guard.read(&jumped), held, "it does not pass by waiting");
        guard.confirm(&jumped, Timestamp::from_millis(1_001_000));
        assert_eq!(guard.read(&jumped), held, "the broker says otherwise");
        guard.confirm(&jumped, Timestamp::from_millis(1_001_000 + hour));
        assert_eq!(guard.read(&jumped), Reading::Trusted(jumped.wall()), "the broker agrees");
    }

    #[test]
    fn a_clock_that_comes_back_is_believed() {
        let mut guard = ClockGuard::new(STEP_MAX);
        guard.read(&Hands { wall_ms: 1_000_000, boot_ms: 0 });
        assert!(matches!(guard.read(&Hands { wall_ms: 9_000_000, boot_ms: 10 }), Reading::Held { .. }), "jump");
        let back = Hands { wall_ms: 1_000_020, boot_ms: 20 };
        assert_eq!(guard.read(&back), Reading::Trusted(back.wall()));
    }

    #[test]
    fn a_backward_step_and_a_suspended_machine_are_no_jump() {
        let mut guard = ClockGuard::new(STEP_MAX);
        guard.read(&Hands { wall_ms: 10_000_000, boot_ms: 0 });
        let back = Hands { wall_ms: 6_400_000, boot_ms: 10 };
        assert_eq!(guard.read(&back), Reading::Trusted(back.wall()));
        let suspended = Hands { wall_ms: 6_400_000 + 7_200_000, boot_ms: 10 + 7_200_000 };
        assert_eq!(guard.read(&suspended), Reading::Trusted(suspended.wall()));
    }

    #[test]
    fn a_machine_that_starts_with_a_wrong_clock_is_held_by_the_first_barrier() {
        let mut guard = ClockGuard::new(STEP_MAX);
        let wrong = Hands { wall_ms: 9_000_000, boot_ms: 0 };
        guard.read(&wrong);
        guard.confirm(&wrong, Timestamp::from_millis(1_000_000));
        assert!(matches!(guard.read(&wrong), Reading::Held { .. }), "far ahead of the broker");
    }

    #[test]
    fn small_forward_steps_are_followed() {
        let mut guard = ClockGuard::new(STEP_MAX);
        for step in 0..100 {
            let hands = Hands { wall_ms: 1_000_000 + step * 9_000, boot_ms: 0 };
            assert_eq!(guard.read(&hands), Reading::Trusted(hands.wall()));
        }
    }
}
