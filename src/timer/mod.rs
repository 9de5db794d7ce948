//! The core: what a timer service decides, as functions from values to values.
//!
//! [`apply::apply`] judges a command, [`fire::fire_due`] finds what is due, [`sweep::work_off`] continues the removal of
//! large runs, [`claim::claim`] hands timers to a claimer. Each reads state through a [`view::View`] and returns an [`outcome::Outcome`]; nothing happens here.
//!
//! ```text
//!   command ──▶ apply ───┐
//!   now ──────▶ fire_due ┼──▶ Outcome { mutations, fired, … } ──▶ overlay, transaction
//!   now ──────▶ claim ────┤
//!   now ──────▶ work_off ┘
//! ```
//!
//! Never does I/O, never reads a clock, never logs, draws no random numbers, knows no bytes of the wire or the store,
//! and has no map without order. Keeps the invariants INV-* of ARCHITECTURE.md.

pub mod apply;
pub mod budget;
pub mod claim;
pub mod command;
pub mod emitted;
pub mod fire;
pub mod guard;
pub mod handler;
pub mod identity;
pub mod kind;
pub mod limits;
pub mod model;
pub mod outcome;
pub mod recurring;
pub mod redate;
pub mod schedule;
pub mod sweep;
pub mod view;

mod conclude;
mod pause;
mod remember;
mod size;
mod staged;

#[cfg(test)]
mod scenario;
