//! Kinds: numbered and named classes of timers, and the registry of those that this binary knows.
//!
//! Owns the kind numbers and the rule of a valid registry. Never knows topics: the edge maps a kind to its topics.
//! Keeps: numbers and names in a [`Registry`] are unique; a number is persisted with each timer and never reused.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::model::Claim;

/// The persisted number of a kind. 0 is invalid, 1 to 0xEF are for users, 0xF0 to 0xFF are reserved for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindNumber(u8);

/// The largest number that users may give a kind.
pub const KIND_NUMBER_MAX: u8 = 0xEF;

impl KindNumber {
    /// Returns the number, or `None` for 0 and for numbers above 255.
    pub fn new(number: u32) -> Option<Self> {
        u8::try_from(number).ok().filter(|n| *n > 0).map(Self)
    }

    /// Returns the number as it is stored.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for KindNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a command names a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindRef {
    /// By number; a number that this binary does not know is stored for one that does.
    Number(KindNumber),
    /// By name; a name that this binary does not know is rejected.
    Name(String),
}

/// What happens to an arm whose due is not after the time of its arming.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PastDue {
    /// The timer fires at once.
    #[default]
    Fire,
    /// The arm is rejected.
    Reject,
    /// The arm is answered with *skipped* and changes nothing.
    Skip,
}

/// A kind of timers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The persisted number.
    pub number: KindNumber,
    /// The name: 1 to 64 characters of `A-Z a-z 0-9 . _ -`.
    pub name: String,
    /// What happens to an arm that is already due.
    pub past_due: PastDue,
    /// Whether the kind has an outbox topic; without one, an arm with outbox records is rejected.
    pub outbox: bool,
    /// How its timers are delivered until they are disarmed; `None` is once.
    pub claim: Option<Claim>,
    /// How late its timers may fire; what is later goes to the dead-letter topic. `None` is without end.
    pub expires_after: Option<Duration>,
    /// How long the ids of its timers are remembered when they have ended; zero is not at all.
    pub remember: Duration,
    /// How its fired records are laid out.
    pub content_mode: ContentMode,
}

impl Kind {
    /// Returns a kind as it is if nothing else is said: it fires once, however late, and without an outbox.
    pub fn new(number: KindNumber, name: impl Into<String>) -> Self {
        Self {
            number,
            name: name.into(),
            past_due: PastDue::Fire,
            outbox: false,
            claim: None,
            expires_after: None,
            remember: Duration::ZERO,
            content_mode: ContentMode::Binary,
        }
    }
}

/// How an event is laid out in a record, by the words of `CloudEvents`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentMode {
    /// The value is the payload, and the rest are headers.
    #[default]
    Binary,
    /// The value is an envelope in JSON that has the payload and the rest; the headers stay.
    Structured,
}

/// Why a set of kinds is not a registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// A number is 0 or above 0xEF.
    #[error("kind `{name}` has number {number}; use 1 to 239 (240 to 255 are reserved for tests)")]
    Number {
        /// The kind's name.
        name: String,
        /// The refused number.
        number: u32,
    },
    /// A number is given to two kinds.
    #[error("kinds `{first}` and `{second}` both have number {number}; a number belongs to one kind for ever")]
    DuplicateNumber {
        /// The number.
        number: u32,
        /// The kind that had it first.
        first: String,
        /// The kind that took it again.
        second: String,
    },
    /// A name is given to two kinds.
    #[error("two kinds are named `{name}`; names are unique")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A name is empty, too long, or has a character that cannot stand in a topic name.
    #[error("kind number {number} is named `{name}`; use 1 to 64 characters of A-Z a-z 0-9 . _ -")]
    Name {
        /// The kind's number.
        number: u32,
        /// The refused name.
        name: String,
    },
}

/// The kinds that this binary knows, in order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    kinds: BTreeMap<KindNumber, Kind>,
    by_name: BTreeMap<String, KindNumber>,
    remember_longest: Duration,
}

impl Registry {
    /// Builds a registry of kinds with numbers 1 to 0xEF.
    ///
    /// # Errors
    /// When a number or a name is invalid or stands twice.
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Result<Self, RegistryError> {
        let mut registry = Self::default();
        for kind in kinds {
            if kind.number.get() > KIND_NUMBER_MAX {
                return Err(RegistryError::Number { name: kind.name, number: u32::from(kind.number.get()) });
            }
            registry.insert(kind)?;
        }
        Ok(registry)
    }

    /// Adds a kind, reserved numbers too: for tests only.
    ///
    /// # Errors
    /// When the name is invalid, or the number or the name is taken.
    pub fn insert(&mut self, kind: Kind) -> Result<(), RegistryError> {
        let number = u32::from(kind.number.get());
        let name_is_valid = (1..=64).contains(&kind.name.len())
            && kind.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if !name_is_valid {
            return Err(RegistryError::Name { number, name: kind.name });
        }
        if let Some(first) = self.kinds.get(&kind.number) {
            return Err(RegistryError::DuplicateNumber { number, first: first.name.clone(), second: kind.name });
        }
        if self.by_name.contains_key(&kind.name) {
            return Err(RegistryError::DuplicateName { name: kind.name });
        }
        self.by_name.insert(kind.name.clone(), kind.number);
        self.remember_longest = self.remember_longest.max(kind.remember);
        self.kinds.insert(kind.number, kind);
        Ok(())
    }

    /// Returns the kind with this number, if this binary knows it.
    pub fn get(&self, number: KindNumber) -> Option<&Kind> {
        self.kinds.get(&number)
    }

    /// Returns the kind with this name, if this binary knows it.
    pub fn by_name(&self, name: &str) -> Option<&Kind> {
        self.by_name.get(name).and_then(|number| self.kinds.get(number))
    }

    /// Returns the longest time for which any kind remembers ids: how long a disarm that found nothing is remembered.
    pub fn remember_longest(&self) -> Duration {
        self.remember_longest
    }

    /// Returns the kinds in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.values()
    }

    /// Returns how many kinds there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Returns whether there is no kind.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(number: u32, name: &str) -> Kind {
        Kind::new(KindNumber::new(number).unwrap(), name)
    }

    #[test]
    fn zero_is_no_number() {
        assert_eq!(KindNumber::new(0), None);
        assert_eq!(KindNumber::new(256), None);
    }

    #[test]
    fn duplicates_and_reserved_numbers_are_refused() {
        let refusal = |kinds: Vec<Kind>| Registry::new(kinds).unwrap_err().to_string();
        assert_eq!(
            refusal(vec![kind(1, "a"), kind(1, "b")]),
            "kinds `a` and `b` both have number 1; a number belongs to one kind for ever"
        );
        assert_eq!(refusal(vec![kind(1, "a"), kind(2, "a")]), "two kinds are named `a`; names are unique");
        assert_eq!(
            refusal(vec![kind(0xF0, "a")]),
            "kind `a` has number 240; use 1 to 239 (240 to 255 are reserved for tests)"
        );
        assert!(Registry::new(vec![kind(1, "a b")]).is_err(), "a space cannot stand in a topic name");
    }
}
