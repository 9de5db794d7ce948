//! Tests of `fire`.
