//! How large the scenarios are.
//!
//! Owns the factor by which counts and times of a scenario grow. Keeps: the long forms are the same code as the short ones.

/// Returns a count of the short form, scaled by `PUNCTUAL_CHAOS_SCALE` (1 if it is not set).
pub(crate) fn scaled(count: u32) -> u32 {
    count * scale()
}

fn scale() -> u32 {
    let Ok(scale) = std::env::var("PUNCTUAL_CHAOS_SCALE") else {
        return 1;
    };
    scale.parse().unwrap_or_else(|_| panic!("PUNCTUAL_CHAOS_SCALE is no whole number: {scale}"))
}
