//! Tests of `sweep`.
