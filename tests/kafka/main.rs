//! The service against a real Kafka: what is promised must hold when processes, disks and brokers fail.
//!
//! Each scenario arms timers through the public topics, breaks something, and checks an exact account of ids over a
//! `read_committed` consumer. A comment such as `// D5` names the failure of other systems that a scenario excludes.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails where it stands")]

mod claims;
mod clocks;
mod clusters;
mod crashes;
mod crowds;
mod disks;
mod harness;
mod journey;
mod limits;
mod log_seam;
mod losses;
mod members;
mod mistakes;
mod network;
mod outages;
mod paused;
mod recipes;

mod records;
mod recreated;
mod recurring;
mod remembered;
mod rights;
mod secured;
mod tool;
