//! The decoders under hostile input: arbitrary bytes, damaged records, values that nobody would write.
//!
//! Owns what must hold for every input: no panic, bounded memory (INV-WIRE-1), and what is decoded is written and read
//! back as the same value (INV-WIRE-2). Never knows an input beforehand but for those that are kept: each found a failure
//! once. `PUNCTUAL_FUZZ_SECONDS` is the time of each property, a few seconds unless it is set; `make fuzz` sets it.
//!
//! Keeps: a failure shows its input, shrunk, as a value that can be pasted into the kept cases of its file.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails where it stands")]

mod answers;
mod bounds;
mod commands;
mod mangled;
mod rows;
mod settings;
/// The generators of the unit tests: they name `crate::calendar`, `crate::time` and `crate::timer`, which the imports below put here.
#[path = "../../src/wire/strategy.rs"]
mod strategy;
mod trial;

use punctual::{calendar, time, timer};
