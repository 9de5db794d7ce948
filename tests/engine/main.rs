//! The embedded engine, as an application sees it: in memory and on disk.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails where it stands")]

mod arming;
mod claims;
mod durability;
mod embedded;
mod handlers;
mod model;
mod outbox;
mod outbox_delivery;
mod pausing;
mod rig;
mod runs;
mod ticks;
