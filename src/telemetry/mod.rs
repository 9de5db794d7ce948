//! What is told about the running service: metrics, logs and health.
//!
//! Owns the metrics' names and sentences ([`metrics`]), their recorder ([`recorder`]), the log output ([`logging`]), the health of
//! workers ([`health`]) and the [`observer`] that feeds both from a worker. Never decides anything about timers. Keeps: labels are
//! few and bounded, never ids; memory is flat whether anyone scrapes or not.

pub mod metrics;
pub mod recorder;

pub mod logging;

pub mod health;
mod vitals;

pub mod observer;
