//! JSON as clients write it: a tree that forgets nothing, and a reader that lets nothing pass.
//!
//! Owns [`Json`] (members in order, duplicates included, numbers whole or not) and [`Members`], which takes an object apart
//! by name. Never knows a command. Keeps: each member of an object is either asked for or refused by its name, none stands
//! twice, and each refusal names the member by its path. A member that is null counts as absent.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_path_to_error::Track;

use super::command::parts::{PARTS_MAX, too_many};
use crate::text::shown;
use crate::timer::outcome::{Reason, Rejection};

/// The standard alphabet; padding is written, and may be missing when read.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Most values in a text: a header is three of them, an outbox record four. Two bytes of text are a value of dozens in memory.
const VALUES_MAX: usize = 3 * PARTS_MAX;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// A whole number from 0.
    Whole(u64),
    /// A whole number below 0.
    Negative(i64),
    /// Any other number: a fraction, an exponent, or beyond 64 bits.
    Other(f64),
    Text(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Json {
    /// Parses a text that is one JSON value and nothing else.
    ///
    /// # Errors
    /// A rejection that names the place.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Rejection> {
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        let mut track = Track::new();
        let left = Cell::new(VALUES_MAX);
        let tracked = serde_path_to_error::Deserializer::new(&mut deserializer, &mut track);
        let tree = Seed { left: &left }.deserialize(tracked).map_err(|error| {
            if left.get() == 0 {
                return too_many();
            }
            // The path ends in `?` where the name of a member has not been read yet.
            let path = track.path().to_string();
            let path = path.trim_end_matches(".?");
            let place = if path == "." || path == "?" { "the command".to_owned() } else { shown(path) };
            unreadable(format!("{place} is not JSON: {error}"))
        })?;
        deserializer.end().map_err(|error| unreadable(format!("behind the command stands more: {error}")))?;
        Ok(tree)
    }

    /// Returns the value of the member, if this is an object that has it exactly once.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        let mut found = members.iter().filter(|(member, _)| member == name).map(|(_, value)| value);
        let first = found.next();
        if found.next().is_some() { None } else { first }
    }

    /// Returns the text, if this is one.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null
            | Self::Bool(_)
            | Self::Whole(_)
            | Self::Negative(_)
            | Self::Other(_)
            | Self::List(_)
            | Self::Object(_) => None,
        }
    }
}

/// The value as an error text shows it.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Whole(value) => write!(f, "{value}"),
            Self::Negative(value) => write!(f, "{value}"),
            Self::Other(value) => write!(f, "{value:?}"),
            Self::Text(text) => write!(f, "\"{}\"", shown(text)),
            Self::List(_) => f.write_str("a list"),
            Self::Object(_) => f.write_str("an object"),
        }
    }
}

/// What the names of headers that say what to do with a record begin with.
pub(super) const HEADER_PREFIX: &str = "punctual-";

/// How error texts name members.
#[derive(Debug)]
enum Naming {
    /// By their path in the command: `arm.at`.
    Path(String),
    /// As headers: `punctual-timer-id` for `timer_id`.
    Headers,
}

/// The members of an object that are still to be read.
pub(super) struct Members {
    naming: Naming,
    rest: Vec<(String, Json)>,
}

impl Members {
    /// Opens the object at `path`, which may have the `known` members, each once.
    ///
    /// # Errors
    /// A rejection when the value is no object, or has a member that is unknown or stands twice.
    pub(super) fn open(json: Json, path: &str, known: &[&str]) -> Result<Self, Rejection> {
        let Json::Object(rest) = json else {
            let name = if path.is_empty() { "the command" } else { path };
            return Err(unreadable(format!("{name} is {json}; give an object")));
        };
        Self::new(Naming::Path(path.to_owned()), rest, known)
    }

    /// Opens what headers say: the `known` members, each once.
    ///
    /// # Errors
    /// A rejection when a member is unknown or stands twice.
    pub(super) fn of_headers(members: Vec<(String, Json)>, known: &[&str]) -> Result<Self, Rejection> {
        Self::new(Naming::Headers, members, known)
    }

    fn new(naming: Naming, rest: Vec<(String, Json)>, known: &[&str]) -> Result<Self, Rejection> {
        let members = Self { naming, rest };
        let mut seen = BTreeSet::new();
        for (name, _) in &members.rest {
            if !known.contains(&name.as_str()) {
                let known: Vec<String> = known.iter().map(|name| members.short_name(name)).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(unreadable(format!("`{}` is not a known field; known here: {known}", members.name(name))));
            }
            if !seen.insert(name.as_str()) {
                return Err(unreadable(format!("`{}` stands twice; give it once", members.name(name))));
            }
        }
        Ok(members)
    }

    /// Returns the full name of the member, for error texts.
    pub(super) fn name(&self, member: &str) -> String {
        match &self.naming {
            Naming::Path(path) if !path.is_empty() => format!("{path}.{}", self.short_name(member)),
            Naming::Path(_) | Naming::Headers => self.short_name(member),
        }
    }

    /// Returns the name of the member among its like.
    fn short_name(&self, member: &str) -> String {
        match self.naming {
            Naming::Path(_) => shown(member),
            Naming::Headers => format!("{HEADER_PREFIX}{}", shown(member).replace('_', "-")),
        }
    }

    /// Takes the member, unless it is absent or null.
    pub(super) fn take(&mut self, name: &str) -> Option<Json> {
        let index = self.rest.iter().position(|(member, _)| member == name)?;
        let (_, value) = self.rest.swap_remove(index);
        (value != Json::Null).then_some(value)
    }

    /// Takes a text.
    ///
    /// # Errors
    /// A rejection when the member is something else.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Rejection> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, &other, "a text")),
        }
    }

    /// Takes a text that must be there.
    ///
    /// # Errors
    /// A rejection when the member is absent or something else.
    pub(super) fn required_text(&mut self, name: &str) -> Result<String, Rejection> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    /// Takes a whole number from 0.
    ///
    /// # Errors
    /// A rejection when the member is something else: negative, a fraction, beyond 64 bits, a text.
    pub(super) fn whole(&mut self, name: &str) -> Result<Option<u64>, Rejection> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Whole(number)) => Ok(Some(number)),
            Some(other) => Err(self.wrong(name, &other, "a whole number from 0 to 18446744073709551615")),
        }
    }

    /// Takes a list; absent is empty.
    ///
    /// # Errors
    /// A rejection when the member is something else.
    pub(super) fn list(&mut self, name: &str) -> Result<Vec<Json>, Rejection> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Json::List(list)) => Ok(list),
            Some(other) => Err(self.wrong(name, &other, "a list")),
        }
    }

    /// Takes bytes: text under `name`, or any bytes under `name` with `_base64` behind it.
    ///
    /// # Errors
    /// A rejection when both members are there, or the one that is there is not what it should be.
    pub(super) fn bytes(&mut self, name: &str) -> Result<Option<Bytes>, Rejection> {
        let name_base64 = format!("{name}_base64");
        match (self.text(name)?, self.text(&name_base64)?) {
            (None, None) => Ok(None),
            (Some(text), None) => Ok(Some(Bytes::from(text))),
            (None, Some(text)) => {
                let decoded = BASE64.decode(&text).map_err(|_| {
                    let expected = "base64 of the alphabet A-Z a-z 0-9 + /";
                    self.wrong(&name_base64, &Json::Text(text), expected)
                })?;
                Ok(Some(Bytes::from(decoded)))
            }
            (Some(_), Some(_)) => {
                let (name, name_base64) = (self.name(name), self.name(&name_base64));
                Err(unreadable(format!("`{name}` and `{name_base64}` are both given; give one of them")))
            }
        }
    }

    /// Returns the rejection of a member that is absent.
    pub(super) fn missing(&self, name: &str) -> Rejection {
        unreadable(format!("`{}` is missing; give it", self.name(name)))
    }

    /// Returns the rejection of a member that is not what it should be.
    pub(super) fn wrong(&self, name: &str, found: &Json, expected: &str) -> Rejection {
        unreadable(format!("`{}` is {found}; give {expected}", self.name(name)))
    }
}

fn unreadable(detail: String) -> Rejection {
    Rejection::new(Reason::Unreadable, detail)
}

/// How a value is read: with a count of the values that may still come.
#[derive(Clone, Copy)]
struct Seed<'a> {
    left: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        let left = self.left.get();
        if left == 0 {
            return Err(D::Error::custom("too many values"));
        }
        self.left.set(left - 1);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Whole(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(u64::try_from(value).map_or(Json::Negative(value), Json::Whole))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Other(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = entries.next_key()? {
            members.push((name, entries.next_value_seed(self)?));
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
#[path = "json_test.rs"]
mod tests;
