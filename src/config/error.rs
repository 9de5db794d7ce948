//! What is wrong with a setting.
//!
//! Owns [`ConfigError`] and [`Origin`]. Never shows the value of a secret. Keeps: an error names the key, the value, where the
//! value came from, and the remedy.

use std::fmt;
use std::path::PathBuf;

use super::print::{REDACTED, is_secret};

/// Where a value came from, in rising priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `config/punctual.yaml`, compiled in.
    Defaults,
    /// The file given with `--config`.
    File {
        /// Its path.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: String,
    },
    /// A `--set` flag.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Defaults => f.write_str("default"),
            Self::File { path, line } => write!(f, "{} line {line}", path.display()),
            Self::Environment { variable } => write!(f, "environment variable {variable}"),
            Self::Flag => f.write_str("flag --set"),
        }
    }
}

/// Longest key, value and problem that an error shows, in characters.
const KEY_CHARACTERS_MAX: usize = 128;
const VALUE_CHARACTERS_MAX: usize = 256;
const PROBLEM_CHARACTERS_MAX: usize = 512;

/// What is wrong with a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    key: String,
    value: Option<String>,
    problem: String,
    origin: Option<Origin>,
}

impl ConfigError {
    /// Returns an error about a key as a whole; `problem` continues the sentence that begins with the key.
    pub(super) fn of_key(key: impl Into<String>, origin: Option<Origin>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), value: None, problem: problem.into(), origin }
    }

    /// Returns an error about a value; `problem` continues the sentence that begins with the value.
    pub(super) fn of_value(key: impl Into<String>, value: &str, origin: Origin, problem: impl Into<String>) -> Self {
        let key = key.into();
        let value = if is_secret(&key) { REDACTED.to_owned() } else { value.escape_debug().to_string() };
        Self { key, value: Some(value), problem: problem.into(), origin: Some(origin) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, problem) = (line(&self.key, KEY_CHARACTERS_MAX), line(&self.problem, PROBLEM_CHARACTERS_MAX));
        match &self.value {
            Some(value) => write!(f, "{key}: `{}` {problem}", line(value, VALUE_CHARACTERS_MAX))?,
            None => write!(f, "{key}: {problem}")?,
        }
        match &self.origin {
            Some(origin) => write!(f, " (from {})", line(&origin.to_string(), PROBLEM_CHARACTERS_MAX)),
            None => Ok(()),
        }
    }
}

/// Returns a text as a part of one line, whatever was written: shortened, its control characters escaped.
fn line(text: &str, characters_max: usize) -> String {
    let mut line = String::new();
    for char in text.chars().take(characters_max) {
        if char.is_control() { line.extend(char.escape_debug()) } else { line.push(char) }
    }
    if text.chars().nth(characters_max).is_some() {
        line.push('…');
    }
    line
}
