//! The layers of settings, one laid on the other.
//!
//! Owns [`Layers`]: each key's winning value and where it came from. Never knows what a key means: the keys of
//! `config/punctual.yaml` are the keys there are. Keeps: a key that is not among them, or stands twice in one layer, is refused.
//!
//! ```text
//!   defaults ◀ --config FILE ◀ environment ◀ --set        key = "kafka.session_timeout"
//! ```
//! `kafka.properties` is open: what stands behind it is the name of a librdkafka property, dots and all. A list is one value.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::error::{ConfigError, Origin};
use super::sources::{ENVIRONMENT_PREFIX, Sources};
use super::yaml::{self, Node, Placed};

/// All defaults, with their reasons.
const DEFAULTS: &str = include_str!("../../config/punctual.yaml");
/// The one open section.
pub(super) const PROPERTIES: &str = "kafka.properties.";
/// The lists.
pub(super) const KINDS: &str = "kinds";
pub(super) const CALENDARS: &str = "calendars";
/// Longest name of a property: no property of librdkafka is half as long, and YAML takes no key of a thousand characters.
const PROPERTY_BYTES_MAX: usize = 128;
/// A wrong key is answered with the nearest right one if they are at least this similar (Jaro-Winkler, 0 to 1).
const SIMILARITY_MIN: f64 = 0.8;

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// The value: text, or a list.
    pub(super) node: Node,
    /// Where it came from.
    pub(super) origin: Origin,
}

/// The winning value of each key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layers {
    /// The keys in the order of `config/punctual.yaml`.
    keys: Vec<String>,
    settings: BTreeMap<String, Setting>,
}

impl Layers {
    /// Lays all sources over the defaults.
    pub(super) fn merge(sources: &Sources) -> Result<Self, ConfigError> {
        let mut layers = Self::defaults()?;
        if let Some((path, text)) = &sources.file {
            layers.lay(file_layer(path, text)?)?;
        }
        layers.lay(environment_layer(&sources.environment)?)?;
        layers.lay(flag_layer(&sources.set)?)?;
        Ok(layers)
    }

    fn defaults() -> Result<Self, ConfigError> {
        let root = yaml::parse(DEFAULTS).map_err(|e| {
            ConfigError::of_key("config/punctual.yaml", None, format!("line {}: {}", e.line, e.problem))
        })?;
        let mut layer = Vec::new();
        flatten("", root, &|_| Origin::Defaults, &mut layer);
        let keys = layer.iter().map(|(key, _)| key.clone()).collect();
        Ok(Self { keys, settings: layer.into_iter().collect() })
    }

    /// Returns the keys in the order of `config/punctual.yaml`, librdkafka properties left out.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    /// Returns the winning value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Setting> {
        self.settings.get(key)
    }

    /// Returns the librdkafka properties that were given, by their own names.
    pub(super) fn properties(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.settings.iter().filter_map(|(key, setting)| Some((key.strip_prefix(PROPERTIES)?, setting)))
    }

    fn lay(&mut self, layer: Vec<(String, Setting)>) -> Result<(), ConfigError> {
        let mut seen = BTreeSet::new();
        for (key, setting) in layer {
            if setting.node == Node::Empty && self.is_section(&key) {
                continue;
            }
            self.check_key(&key, &setting)?;
            if !seen.insert(key.clone()) {
                return Err(ConfigError::of_key(key, Some(setting.origin), "is given twice; keep one of them"));
            }
            self.settings.insert(key, setting);
        }
        Ok(())
    }

    fn is_section(&self, key: &str) -> bool {
        let prefix = format!("{key}.");
        prefix == PROPERTIES || self.keys.iter().any(|known| known.starts_with(&prefix))
    }

    fn check_key(&self, key: &str, setting: &Setting) -> Result<(), ConfigError> {
        let refuse = |problem: String| Err(ConfigError::of_key(key, Some(setting.origin.clone()), problem));
        let is_property =
            key.strip_prefix(PROPERTIES).is_some_and(|name| (1..=PROPERTY_BYTES_MAX).contains(&name.len()));
        if !is_property && !self.keys.iter().any(|known| known == key) {
            return refuse(self.unknown(key));
        }
        match (&setting.node, is_list(key)) {
            (Node::Text { .. }, false) | (Node::List(_), true) => Ok(()),
            (Node::Empty, _) => refuse("has no value; write \"\" for an empty one, or remove the line".to_owned()),
            (_, true) if key == KINDS => refuse("is not a list; write [{number: 1, name: email}]".to_owned()),
            (_, true) => refuse("is not a list; write [], or see config/punctual.yaml for an entry".to_owned()),
            (Node::List(_) | Node::Map(_), false) => refuse("takes one value, not several".to_owned()),
        }
    }

    fn unknown(&self, key: &str) -> String {
        if self.is_section(key) {
            return "is a section, it takes keys and no value".to_owned();
        }
        if key.starts_with("kinds.") {
            return "is no setting: the list of kinds is set as a whole, as YAML or JSON, such as \
                    kinds=[{number: 1, name: email}]"
                .to_owned();
        }
        if key.starts_with("calendars.") {
            return "is no setting: the list of calendars is set as a whole, as YAML or JSON".to_owned();
        }
        match self.nearest(key) {
            Some(nearest) => format!("is no setting; did you mean `{nearest}`?"),
            None => "is no setting; `punctual config print` shows all that there are".to_owned(),
        }
    }

    fn nearest(&self, key: &str) -> Option<&str> {
        let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
        let similarity = |known: &str| {
            // The right key in the wrong section, or in none, is the nearest of all.
            if last(known) == last(key) { 1.0 } else { strsim::jaro_winkler(known, key) }
        };
        let nearest = self.keys().max_by(|a, b| similarity(a).total_cmp(&similarity(b)))?;
        (similarity(nearest) >= SIMILARITY_MIN).then_some(nearest)
    }
}

/// Returns whether the value of the key is a list.
pub(super) fn is_list(key: &str) -> bool {
    key == KINDS || key == CALENDARS
}

fn file_layer(path: &Path, text: &str) -> Result<Vec<(String, Setting)>, ConfigError> {
    let origin = |line| Origin::File { path: path.to_owned(), line };
    let root = yaml::parse(text)
        .map_err(|e| ConfigError::of_key("--config", Some(origin(e.line)), format!("not valid YAML: {}", e.problem)))?;
    match root.node {
        Node::Empty => Ok(Vec::new()),
        Node::Map(_) => {
            let mut layer = Vec::new();
            flatten("", root, &origin, &mut layer);
            Ok(layer)
        }
        Node::Text { .. } | Node::List(_) => {
            Err(ConfigError::of_key("--config", Some(origin(root.line)), "the file holds no `key: value` lines"))
        }
    }
}

fn environment_layer(environment: &[(String, String)]) -> Result<Vec<(String, Setting)>, ConfigError> {
    let mut layer = Vec::new();
    for (variable, value) in environment {
        let Some(name) = variable.strip_prefix(ENVIRONMENT_PREFIX) else {
            continue;
        };
        let mut key = name.replace("__", ".").to_ascii_lowercase();
        if let Some(property) = key.strip_prefix(PROPERTIES) {
            key = format!("{PROPERTIES}{}", property.replace('_', "."));
        }
        let origin = Origin::Environment { variable: variable.clone() };
        layer.push(single(key, value, origin)?);
    }
    Ok(layer)
}

fn flag_layer(set: &[String]) -> Result<Vec<(String, Setting)>, ConfigError> {
    let mut layer = Vec::new();
    for argument in set {
        let Some((key, value)) = argument.split_once('=') else {
            return Err(ConfigError::of_key(
                argument.as_str(),
                Some(Origin::Flag),
                "has no `=`; write --set section.key=value",
            ));
        };
        layer.push(single(key.trim().to_owned(), value, Origin::Flag)?);
    }
    Ok(layer)
}

/// A value from outside YAML is its text, to the byte; only a list is YAML (or JSON) inside.
fn single(key: String, value: &str, origin: Origin) -> Result<(String, Setting), ConfigError> {
    if !is_list(&key) {
        return Ok((key, Setting { node: Node::of_text(value), origin }));
    }
    match yaml::parse(value) {
        Ok(placed) => Ok((key, Setting { node: placed.node, origin })),
        Err(error) => Err(ConfigError::of_value(key, value, origin, format!("is not valid YAML: {}", error.problem))),
    }
}

/// Turns nested maps into keys with dots; `a: {b: x}` and `a.b: x` are the same.
fn flatten(prefix: &str, placed: Placed, origin: &impl Fn(usize) -> Origin, layer: &mut Vec<(String, Setting)>) {
    match placed.node {
        Node::Map(entries) => {
            for (key, value) in entries {
                let key = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
                flatten(&key, value, origin, layer);
            }
        }
        node @ (Node::Empty | Node::Text { .. } | Node::List(_)) => {
            layer.push((prefix.to_owned(), Setting { node, origin: origin(placed.line) }));
        }
    }
}

#[cfg(test)]
#[path = "layers_test.rs"]
mod tests;
