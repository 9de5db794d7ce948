//! What a resolution depended on, in 32 bytes.
//!
//! Owns [`Digest`] and [`zone_database`]; the only user of the hash. A timer stores the digest of what its instant was
//! resolved with, so that one can tell which timers another zone database or calendar could move.
//! Keeps: the same content gives the same digest in each release, wherever it runs.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::zone;

/// The number of bytes of a digest.
pub const DIGEST_BYTES: usize = 32;

/// SHA-256 of what a resolution depended on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; DIGEST_BYTES]);

impl Digest {
    /// Returns a digest that was stored.
    pub const fn from_bytes(bytes: [u8; DIGEST_BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes to store.
    pub const fn as_bytes(&self) -> &[u8; DIGEST_BYTES] {
        &self.0
    }

    /// Returns the digest of lines, each of which must not have a line break.
    pub(super) fn of_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hash = Sha256::new();
        for line in lines {
            debug_assert!(!line.contains('\n'), "lines are told apart by their breaks");
            hash.update(line.as_bytes());
            hash.update(b"\n");
        }
        Self(hash.finalize().into())
    }
}

/// Returns the digest of the zone database alone: what recurrence and civil times depend on.
pub fn zone_database() -> Digest {
    Digest::of_lines([zone_database_line().as_str()])
}

/// Returns the line that stands for the zone database in a digest.
pub(super) fn zone_database_line() -> String {
    format!("zone database {}", zone::database_version())
}

/// Lowercase hexadecimal.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_sha_256_of_the_lines() {
        // printf 'a\nb\n' | sha256sum
        assert_eq!(
            Digest::of_lines(["a", "b"]).to_string(),
            "911169ddaaf146aff539f58c26c489af3b892dff0fe283c1c264c65ae5aa59a2"
        );
    }

    #[test]
    fn a_digest_is_read_back() {
        let digest = zone_database();
        assert_eq!(Digest::from_bytes(*digest.as_bytes()), digest);
        assert_ne!(digest, Digest::of_lines(["zone database 1970a"]));
    }
}
