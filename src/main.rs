//! The `punctual` binary.

fn main() {}
