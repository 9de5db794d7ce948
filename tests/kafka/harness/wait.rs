//! Waiting for a condition, with a bound.
//!
//! Owns the only pause in the tests. Keeps: no wait is blind, each names what it waits for.

use std::time::Duration;

use punctual::time::Clock;
use punctual::time::system::SystemClock;

const PAUSE: Duration = Duration::from_millis(20);

/// Returns what `condition` yields, asking until it does; fails the test when `bound` has passed.
pub(crate) fn until<T>(bound: Duration, what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = SystemClock.boot() + bound;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(SystemClock.boot() < deadline, "waited {bound:?} in vain: {what}");
        pause();
    }
}

/// The same for a condition that only holds or not.
pub(crate) fn until_true(bound: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    until(bound, what, || condition().then_some(()));
}

#[expect(clippy::disallowed_methods, reason = "the one pause between two looks at a condition")]
fn pause() {
    std::thread::sleep(PAUSE);
}
