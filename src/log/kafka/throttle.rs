//! One line where a client says the same thing again and again.
//!
//! Owns what was said last, per client and subject. Keeps: a broker that is away costs a line each ten seconds, not thousands;
//! the first line of a subject is always said, and each tells how many were left out before it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::deadline::Deadline;

/// Between two lines of one client about one subject.
const INTERVAL: Duration = Duration::from_secs(10);

/// The lines of one subject.
struct Said {
    next: Deadline,
    left_out: u64,
}

/// What the clients of this process have said. Clients and subjects are few: roles and librdkafka's facilities.
static SAID: Mutex<BTreeMap<(String, String), Said>> = Mutex::new(BTreeMap::new());

/// Returns how many lines were left out since the last one, or `None` if this one is to be left out too.
pub(super) fn turn(client: &str, subject: &str) -> Option<u64> {
    // A panic while holding the lock would leave whole entries.
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (client.to_owned(), subject.to_owned());
    let Some(last) = said.get_mut(&key) else {
        said.insert(key, Said { next: Deadline::after(INTERVAL), left_out: 0 });
        return Some(0);
    };
    if !last.next.is_over() {
        last.left_out += 1;
        return None;
    }
    let left_out = last.left_out;
    *last = Said { next: Deadline::after(INTERVAL), left_out: 0 };
    Some(left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subject_of_each_client_is_said_once_at_a_time() {
        assert_eq!(turn("throttle-test-a", "FAIL"), Some(0));
        assert_eq!(turn("throttle-test-a", "FAIL"), None);
        assert_eq!(turn("throttle-test-a", "REQTMOUT"), Some(0));
        assert_eq!(turn("throttle-test-b", "FAIL"), Some(0));
    }
}
