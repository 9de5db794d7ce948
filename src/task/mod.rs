//! Stub.

pub mod tally;
