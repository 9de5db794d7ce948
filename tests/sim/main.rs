//! The simulator: the real worker, tasks, overlay, restore and order of a transaction, over a simulated broker and disks, in
//! simulated time, on one thread, from one seed. See docs/simulator.md.
//!
//! ```text
//!   PUNCTUAL_SEED=17 cargo test --test sim one_seed -- --nocapture     one seed, with the end of its trace
//!   make soak SECONDS=3600                                             random seeds on all cores
//! ```

#![expect(clippy::indexing_slicing, reason = "what is not there is a mistake of the simulation, and ends it")]

mod asks;
mod broker;
mod client;
mod cluster;
mod disk;
mod handlers;
mod invariants;
mod log;
mod murmur;
#[cfg(feature = "planted")]
mod mutants;
mod oracle;
mod pauses;
mod plan;
mod pod;
mod reader;
mod search;
mod setting;
mod shrink;
mod sim;
mod trace;
mod trouble;
mod world;
