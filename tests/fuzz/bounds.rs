//! The memory that one input may cost.
//!
//! Owns the ceiling of INV-WIRE-1 and its measure, which counts every allocation of this thread. Keeps: the ceiling is one
//! straight line for each decoder, whatever the input holds.

use allocation_counter::AllocationInfo;

/// What a decoder may allocate: so many bytes for each byte of its input, and so many beside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ceiling {
    pub(crate) bytes_for_each: u64,
    pub(crate) bytes_beside: u64,
}

impl Ceiling {
    /// Returns what `decode` returns, and fails if it took more than the ceiling: at one time, or eight times that in all.
    /// What it takes in all bounds its work: a decoder that copies its input again and again would be slow, not large.
    #[track_caller]
    pub(crate) fn check<T>(self, input_bytes: usize, decode: impl FnOnce() -> T) -> T {
        let mut decoded = None;
        let took = allocation_counter::measure(|| decoded = Some(decode()));
        let most = self.bytes_for_each * input_bytes as u64 + self.bytes_beside;
        let AllocationInfo { bytes_max, bytes_total, .. } = took;
        assert!(bytes_max <= most, "INV-WIRE-1: {input_bytes} bytes took {bytes_max} at one time, {most} at most");
        assert!(
            bytes_total <= 8 * most,
            "INV-WIRE-1: {input_bytes} bytes took {bytes_total} in all, {} at most",
            8 * most
        );
        decoded.unwrap()
    }
}

#[test]
fn a_decoder_that_takes_more_is_found() {
    let ceiling = Ceiling { bytes_for_each: 2, bytes_beside: 100 };
    let is_found = |bytes: usize, times: usize| {
        let take = || (0..times).for_each(|_| drop(std::hint::black_box(Vec::<u8>::with_capacity(bytes))));
        std::panic::catch_unwind(|| ceiling.check(50, take)).is_err()
    };
    assert!(!is_found(200, 8), "at the ceiling");
    assert!(is_found(201, 1), "at one time");
    assert!(is_found(200, 9), "in all");
}
