//! Who a timer is: tenant, run and timer id.
//!
//! Owns the identity types and their limits. Never knows how an identity is stored or routed.
//! Keeps: a value of these types is valid by construction, and their order is (tenant, run, timer id), which is the
//! order of their encoded keys.

use crate::text::shown;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// Longest tenant name, in bytes.
pub const TENANT_BYTES_MAX: usize = 128;
/// Longest run and longest timer id, in bytes of UTF-8.
pub const ID_BYTES_MAX: usize = 512;
/// The tenant of a command that names none.
pub const DEFAULT_TENANT: &str = "default";

/// Why a text is not a valid part of an identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} `{value}` {problem}")]
pub struct IdentityError {
    /// The field: `tenant`, `run` or `timer_id`.
    pub field: &'static str,
    /// The value, shortened to 64 characters and with control characters escaped.
    pub value: String,
    /// What is wrong with it, and what would be right.
    pub problem: &'static str,
}

impl IdentityError {
    fn new(field: &'static str, value: &str, problem: &'static str) -> Self {
        Self { field, value: shown(value), problem }
    }
}

/// An isolated name space of runs: 1 to 128 characters of `A-Z a-z 0-9 . _ ~ -`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant(Arc<str>);

/// The owner of timers, such as an order or a session: 1 to 512 bytes of UTF-8 without control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run(Arc<str>);

/// The name of a timer inside its run: 1 to 512 bytes of UTF-8 without control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(Arc<str>);

impl Tenant {
    /// Parses a tenant; the empty text means [`DEFAULT_TENANT`].
    ///
    /// # Errors
    /// When the text is too long or has a character outside `A-Z a-z 0-9 . _ ~ -`.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        let text = if text.is_empty() { DEFAULT_TENANT } else { text };
        if text.len() > TENANT_BYTES_MAX {
            return Err(IdentityError::new("tenant", text, "is longer than 128 bytes"));
        }
        if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._~-".contains(&b)) {
            return Err(IdentityError::new("tenant", text, "has a character outside A-Z a-z 0-9 . _ ~ -"));
        }
        Ok(Self(Arc::from(text)))
    }

    /// Returns the tenant as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Run {
    /// Parses a run.
    ///
    /// # Errors
    /// When the text is empty, longer than 512 bytes, or has a control character.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        check_id("run", text)?;
        Ok(Self(Arc::from(text)))
    }

    /// Returns the run as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TimerId {
    /// Parses a timer id.
    ///
    /// # Errors
    /// When the text is empty, longer than 512 bytes, or has a control character.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        check_id("timer_id", text)?;
        Ok(Self(Arc::from(text)))
    }

    /// Returns the timer id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_id(field: &'static str, text: &str) -> Result<(), IdentityError> {
    if text.is_empty() {
        return Err(IdentityError::new(field, text, "is empty; give it 1 to 512 bytes"));
    }
    if text.len() > ID_BYTES_MAX {
        return Err(IdentityError::new(field, text, "is longer than 512 bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err(IdentityError::new(field, text, "has a control character"));
    }
    Ok(())
}

/// The identity of a run: its tenant and its name. It decides the partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey {
    /// The tenant.
    pub tenant: Tenant,
    /// The run.
    pub run: Run,
}

/// The identity of a timer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerKey {
    /// The run that owns the timer.
    pub run: RunKey,
    /// The name of the timer inside its run.
    pub id: TimerId,
}

impl TimerKey {
    /// Returns where the timers of a run start in the order of keys: behind `after`, or at the least id there can be.
    pub fn scan_start(run: &RunKey, after: Option<&TimerId>) -> Bound<Self> {
        match after {
            Some(after) => Bound::Excluded(Self { run: run.clone(), id: after.clone() }),
            // Nothing valid sorts below a space: an id is not empty and has no control characters.
            None => Bound::Included(Self { run: run.clone(), id: TimerId(Arc::from(" ")) }),
        }
    }
}

/// `tenant/run`: the key of the records about this run, and what the partition is computed from.
impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant.as_str(), self.run.as_str())
    }
}

/// `tenant/run/timer_id`.
impl fmt::Display for TimerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.run, self.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeBounds;

    use super::*;

    #[test]
    fn no_id_sorts_below_the_start_of_a_scan() {
        let run = RunKey { tenant: Tenant::parse("").unwrap(), run: Run::parse("r").unwrap() };
        let start = TimerKey::scan_start(&run, None);
        for c in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            if let Ok(id) = TimerId::parse(&c.to_string()) {
                assert!((start.clone(), Bound::Unbounded).contains(&TimerKey { run: run.clone(), id }), "{c:?}");
            }
        }
    }

    #[test]
    fn limits_hold() {
        assert_eq!(Tenant::parse("").unwrap().as_str(), "default");
        assert!(Tenant::parse(&"a".repeat(128)).is_ok(), "128 bytes fit");
        assert!(Tenant::parse(&"a".repeat(129)).is_err(), "129 bytes do not");
        assert!(Tenant::parse("a/b").is_err(), "a slash would make tenant/run ambiguous");
        assert!(Run::parse("").is_err(), "empty");
        assert!(Run::parse(&"é".repeat(256)).is_ok(), "512 bytes fit");
        assert!(Run::parse(&"é".repeat(257)).is_err(), "514 bytes do not");
        assert!(TimerId::parse("a\u{0}b").is_err(), "control character");
        assert_eq!(Run::parse("a\nb").unwrap_err().to_string(), "run `a\\nb` has a control character");
    }
}
