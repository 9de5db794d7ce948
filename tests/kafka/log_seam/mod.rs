//! The seam `Log` on a real broker: what is committed, what is fenced, what restoring and reading promise.
//!
//! Owns scenarios that no simulator can vouch for. Never goes through the worker. Keeps: a reader of its own says what is
//! visible, not the log.

mod fencing;
mod outages;
mod reading;
mod rig;
mod writing;
