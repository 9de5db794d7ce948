//! What a rule is told: names and values.
//!
//! Owns [`Parameters`] and `Reading`, which takes them one by one and collects everything that is wrong. Never stops at the
//! first problem: who corrects a command does it once.

use std::collections::BTreeMap;

use super::CalendarError;
use crate::text::shown;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A whole number of 64 bits.
    Integer(i64),
    /// A text.
    Text(String),
    /// Anything else, as it was written: `1.5`, `true`, `null`, `[1]`. No rule that comes with us takes one.
    Other(String),
}

impl From<i64> for Parameter {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for Parameter {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

/// The parameters of a rule, in order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(pub BTreeMap<String, Parameter>);

impl Parameters {
    /// Returns parameters of names and values.
    pub fn of<const N: usize, P: Into<Parameter>>(values: [(&str, P); N]) -> Self {
        Self(values.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect())
    }
}

/// Reads the parameters of one rule.
pub(super) struct Reading<'a> {
    parameters: &'a Parameters,
    read: Vec<&'static str>,
    problems: Vec<(String, String)>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(parameters: &'a Parameters) -> Self {
        Self { parameters, read: Vec::new(), problems: Vec::new() }
    }

    /// Reads a whole number that is needed, from 1.
    pub(super) fn positive(&mut self, name: &'static str) -> Option<i64> {
        self.read.push(name);
        let problem = match self.parameters.0.get(name) {
            Some(Parameter::Integer(value)) if *value > 0 => return Some(*value),
            Some(Parameter::Integer(value)) => format!("is {value}, but must be 1 or more"),
            Some(Parameter::Text(text)) => format!("is the text `{}`, but must be a whole number", shown(text)),
            Some(Parameter::Other(text)) => format!("is {}, but must be a whole number of 64 bits", shown(text)),
            None => "is missing; give a whole number, 1 or more".to_owned(),
        };
        self.problems.push((name.to_owned(), problem));
        None
    }

    /// Reads a text that is needed. `parse` gives its value or tells what is wrong with it.
    pub(super) fn text<T, E: ToString>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        if !self.parameters.0.contains_key(name) {
            self.read.push(name);
            self.problems.push((name.to_owned(), "is missing; give a text".to_owned()));
            return None;
        }
        self.optional_text(name, parse)
    }

    /// Reads a text that may be left out.
    pub(super) fn optional_text<T, E: ToString>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.read.push(name);
        let problem = match self.parameters.0.get(name)? {
            Parameter::Text(text) => match parse(text) {
                Ok(value) => return Some(value),
                Err(problem) => format!("is not usable: {}", problem.to_string()),
            },
            Parameter::Integer(value) => format!("is the number {value}, but must be a text"),
            Parameter::Other(text) => format!("is {}, but must be a text", shown(text)),
        };
        self.problems.push((name.to_owned(), problem));
        None
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// When something was wrong, or a parameter was given that the rule does not have.
    pub(super) fn end(mut self) -> Result<(), CalendarError> {
        for name in self.parameters.0.keys().filter(|name| !self.read.contains(&name.as_str())) {
            let known = self.read.join(", ");
            self.problems.push((name.clone(), format!("is none of the rule's parameters, which are {known}")));
        }
        if self.problems.is_empty() {
            return Ok(());
        }
        self.problems.sort();
        let sentence = |(name, problem): (String, String)| format!("parameter `{}` {problem}", shown(&name));
        Err(CalendarError::BadParameters(self.problems.into_iter().map(sentence).collect()))
    }
}
