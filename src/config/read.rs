//! Texts to typed values.
//!
//! Owns the reading of durations, sizes, numbers and choices. Never has a default. Keeps: whatever a text holds, the answer is
//! a value within the stated range or an error that names key, value, origin and remedy.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use bytesize::ByteSize;

use super::error::{ConfigError, Origin};
use super::layers::Layers;
use super::yaml::Node;

/// A text on its way to a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written<'a> {
    /// The full key.
    pub(super) key: &'a str,
    /// What was written.
    pub(super) text: &'a str,
    /// Where.
    pub(super) origin: &'a Origin,
}

impl Layers {
    /// Returns the text of a key. Every key has one: the defaults are complete and no layer removes a key.
    pub(super) fn text<'a>(&'a self, key: &'a str) -> Result<Written<'a>, ConfigError> {
        match self.get(key) {
            Some(setting) => match &setting.node {
                Node::Text { text, .. } => Ok(Written { key, text, origin: &setting.origin }),
                Node::Empty | Node::List(_) | Node::Map(_) => {
                    Err(ConfigError::of_key(key, Some(setting.origin.clone()), "takes one value"))
                }
            },
            None => Err(ConfigError::of_key(key, None, "is missing from config/punctual.yaml")),
        }
    }
}

impl Written<'_> {
    /// Returns an error about this value; `problem` continues the sentence that begins with the value.
    pub(super) fn refuse<T>(&self, problem: impl Into<String>) -> Result<T, ConfigError> {
        Err(ConfigError::of_value(self.key, self.text, self.origin.clone(), problem))
    }

    /// Returns the text, which must not be empty.
    pub(super) fn non_empty(&self) -> Result<String, ConfigError> {
        if self.text.trim().is_empty() { self.refuse("is empty; give it a value") } else { Ok(self.text.to_owned()) }
    }

    /// Returns a whole number within the range.
    pub(super) fn count<T: TryFrom<u64>>(&self, range: RangeInclusive<u64>) -> Result<T, ConfigError> {
        let number = self.text.parse::<u64>().ok().filter(|n| range.contains(n)).and_then(|n| T::try_from(n).ok());
        match number {
            Some(number) => Ok(number),
            None => self.refuse(format!("is not a whole number from {} to {}", range.start(), range.end())),
        }
    }

    /// Returns `true` or `false`.
    pub(super) fn boolean(&self) -> Result<bool, ConfigError> {
        self.choice(&[("true", true), ("false", false)])
    }

    /// Returns the value that stands for one of the words.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, ConfigError> {
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == self.text) {
            return Ok(*value);
        }
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        self.refuse(format!("is none of: {}", words.join(", ")))
    }

    /// Returns a duration within the range, in whole milliseconds.
    pub(super) fn duration(&self, range: RangeInclusive<Duration>) -> Result<Duration, ConfigError> {
        // humantime reads `1M` as 30.44 days, and people write it for a minute.
        if self.text.contains(['M', 'y', 'Y']) || self.text.contains("mon") {
            return self.refuse("has a month or a year, which have no fixed length; write days, 30d, or minutes, 1m");
        }
        let Ok(duration) = humantime::parse_duration(self.text) else {
            return self.refuse("is not a duration; write a number with a unit: 100ms, 5s, 2m, 6h, 400d");
        };
        if !range.contains(&duration) {
            let (least, most) = (shown(*range.start()), shown(*range.end()));
            return self.refuse(format!("is out of range; it may be {least} to {most}"));
        }
        if duration.subsec_nanos() % 1_000_000 > 0 {
            return self.refuse("is finer than a millisecond");
        }
        Ok(duration)
    }

    /// Returns a number of bytes within the range.
    pub(super) fn size(&self, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
        let Ok(ByteSize(bytes)) = self.text.parse::<ByteSize>() else {
            return self.refuse("is not a size; write bytes, or a number with a unit: 256KiB, 64MiB, 1MB");
        };
        if !range.contains(&bytes) {
            let (least, most) = (ByteSize(*range.start()), ByteSize(*range.end()));
            return self.refuse(format!("is out of range; it may be {least} to {most}"));
        }
        Ok(bytes)
    }

    /// Returns a size that is counted in memory.
    pub(super) fn size_in_memory(&self, range: RangeInclusive<u64>) -> Result<usize, ConfigError> {
        match usize::try_from(self.size(range)?) {
            Ok(bytes) => Ok(bytes),
            Err(_) => self.refuse("does not fit the memory of this machine"),
        }
    }

    /// Returns an address and port to listen on.
    pub(super) fn address(&self) -> Result<SocketAddr, ConfigError> {
        match self.text.parse() {
            Ok(address) => Ok(address),
            Err(_) => self.refuse("is not an IP address with a port; write 127.0.0.1:9464, 0.0.0.0:9464 or [::]:9464"),
        }
    }
}

/// Returns the duration as one would write it: humantime's own form has months and years, which we refuse.
fn shown(duration: Duration) -> String {
    let millis = duration.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
    let whole = units.into_iter().find(|(_, unit)| millis > 0 && millis.is_multiple_of(*unit));
    whole.map_or_else(|| "0s".to_owned(), |(name, unit)| format!("{}{name}", millis / unit))
}

#[cfg(test)]
#[path = "read_test.rs"]
mod tests;
