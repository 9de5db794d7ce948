//! One property, tried on random inputs for as long as it was given.
//!
//! Owns the number of cases: a least one, so that no run of it is empty, and then as many as fit the time.

use std::fmt::Debug;
use std::time::Duration;

use proptest::prelude::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use punctual::time::Clock;
use punctual::time::system::SystemClock;

/// Cases between two looks at the clock. Each batch has a seed of its own.
const BATCH_CASES: u32 = 500;
/// What `make test` has time for, with twenty properties on a few threads.
const SECONDS: u64 = 3;
const SHRINK_STEPS_MAX: u32 = 20_000;

/// Tries `property` on inputs of `inputs`; fails with the smallest input that breaks it.
pub(crate) fn fuzz<S>(inputs: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>)
where
    S: Strategy,
    S::Value: Debug,
{
    let seconds = std::env::var("PUNCTUAL_FUZZ_SECONDS").map_or(SECONDS, |text| text.parse().unwrap());
    let end = SystemClock.boot() + Duration::from_secs(seconds);
    let mut cases = 0;
    while cases == 0 || SystemClock.boot() < end {
        let config = Config {
            cases: BATCH_CASES,
            max_shrink_iters: SHRINK_STEPS_MAX,
            failure_persistence: None,
            ..Config::default()
        };
        if let Err(failure) = TestRunner::new(config).run(inputs, &property) {
            panic!("after {cases} cases and more: {failure}");
        }
        cases += BATCH_CASES;
    }
    eprintln!("{cases} cases");
}
