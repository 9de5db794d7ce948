//! The program of `examples/embedded.rs`: what it prints, across a stop in the middle.

use std::time::Duration;

use punctual::engine::ArmAnswer;
use punctual::time::{Clock, Timestamp};
use tempfile::TempDir;

use crate::rig::at;

#[expect(dead_code, unreachable_pub, reason = "its main is a program of its own")]
#[path = "../../examples/embedded.rs"]
mod program;

/// A clock that stands at an instant.
struct Standing(Timestamp);

impl Clock for Standing {
    fn wall(&self) -> Timestamp {
        self.0
    }

    fn boot(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn it_reminds_three_times_and_loses_nothing_when_it_is_stopped() {
    let directory = TempDir::new().unwrap();
    let mut said = Vec::new();
    let mut deliver = |line: &str| {
        said.push(line.to_owned());
        Ok(())
    };
    let engine = program::open(directory.path()).unwrap();
    program::remind(&engine, "order-42", at(1_000)).unwrap();
    assert_eq!(program::turn(&engine, &Standing(at(5_999)), &mut deliver).unwrap(), Some(at(6_000)));
    assert_eq!(program::turn(&engine, &Standing(at(6_000)), &mut deliver).unwrap(), Some(at(11_000)));
    drop(engine);
    let engine = program::open(directory.path()).unwrap();
    let again = program::remind(&engine, "order-42", at(6_001)).unwrap();
    assert!(matches!(again, ArmAnswer::AlreadyArmed { .. }), "{again:?}");
    assert_eq!(program::turn(&engine, &Standing(at(11_000)), &mut deliver).unwrap(), Some(at(16_000)));
    assert_eq!(program::turn(&engine, &Standing(at(16_000)), &mut deliver).unwrap(), None);
    assert_eq!(said, ["reminder 1 of order-42", "reminder 2 of order-42", "order order-42 is given up"]);
}

#[test]
fn what_was_not_delivered_comes_again() {
    let directory = TempDir::new().unwrap();
    let engine = program::open(directory.path()).unwrap();
    program::remind(&engine, "order-42", at(1_000)).unwrap();
    let mut refuse = |_: &str| Err(std::io::Error::other("nobody listens"));
    assert!(program::turn(&engine, &Standing(at(6_000)), &mut refuse).is_err(), "the delivery failed");
    let mut said = Vec::new();
    let mut deliver = |line: &str| {
        said.push(line.to_owned());
        Ok(())
    };
    program::turn(&engine, &Standing(at(6_001)), &mut deliver).unwrap();
    assert_eq!(said, ["reminder 1 of order-42"]);
}
