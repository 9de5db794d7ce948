//! Stub.

pub mod observer;
pub mod settings;
