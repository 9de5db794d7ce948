//! punctual: durable timers for Kafka, fired exactly once and never early; [`engine`] has them without Kafka.
//!
//! The modules stand in the order of their layers; each names itself and lower ones only (`tests/tidy.rs`).

pub mod planted;
pub mod position;
mod text;
pub mod time;

pub mod calendar;
pub mod timer;

pub mod wire;

pub mod log;
pub mod store;

pub mod engine;
pub mod task;

pub mod testing;
pub mod worker;

pub mod config;
pub mod telemetry;

pub mod admin;
pub mod cli;
pub mod service;
