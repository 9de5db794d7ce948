//! The settings judged together.
//!
//! Owns [`Config::validate`]: what a service needs beyond values that are valid each on their own. Keeps: no topic has two roles
//! that break each other (a fired timer that is read as a command, a result that is taken for state).

use std::collections::BTreeMap;

use super::error::{ConfigError, Origin};
use super::layers::{KINDS, PROPERTIES};
use super::settings::Config;
use crate::log::kafka::settings;

/// Longest topic name that Kafka takes.
const TOPIC_NAME_BYTES_MAX: usize = 249;
/// Longest instance and group: both go into the transactional ids and the names of group members, beside a few numbers.
const NAME_BYTES_MAX: usize = 128;

/// A topic in a role, and the key that gave it.
struct Role {
    key: String,
    topic: String,
    title: String,
    origin: Origin,
    /// Fired and outbox topics belong to the consumers, who may want both in one.
    is_output_of_kind: bool,
}

impl Config {
    /// Judges the settings as a whole: whether `serve` can run with them.
    ///
    /// # Errors
    /// When a name is not valid, there is no kind, a librdkafka property is misspelt or ours, or a topic has two roles. Show the text and stop.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.check_name("instance", &self.instance)?;
        self.check_name("kafka.group", &self.kafka.group)?;
        if self.source.chars().any(|c| c.is_control() || c.is_whitespace()) {
            let problem = "has a space or a control character; write a URI reference such as /timers/prod";
            return Err(ConfigError::of_value("source", &self.source, self.origin("source"), problem));
        }
        if self.registry.is_empty() {
            let problem = "is empty; declare at least one kind, such as [{number: 1, name: email}]";
            return Err(ConfigError::of_key(KINDS, Some(self.origin(KINDS)), problem));
        }
        self.check_properties()?;
        self.check_topics()
    }

    /// Judges the librdkafka properties alone, which every client needs.
    ///
    /// # Errors
    /// When one is misspelt, ours, or has a value that librdkafka does not take.
    pub fn check_properties(&self) -> Result<(), ConfigError> {
        for (name, value) in &self.kafka.properties {
            let alone = BTreeMap::from([(name.clone(), value.clone())]);
            settings::check_properties(&alone).map_err(|error| {
                let key = format!("{PROPERTIES}{name}");
                let origin = self.origin(&key);
                ConfigError::of_key(key, Some(origin), error.to_string())
            })?;
        }
        Ok(())
    }

    fn origin(&self, key: &str) -> Origin {
        self.layers.get(key).map_or(Origin::Defaults, |setting| setting.origin.clone())
    }

    fn check_name(&self, key: &str, name: &str) -> Result<(), ConfigError> {
        if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_name_byte) {
            return Ok(());
        }
        let rule = format!("use 1 to {NAME_BYTES_MAX} characters of A-Z a-z 0-9 . _ -");
        let is_host_name = key == "instance" && self.layers.text(key)?.text.is_empty();
        let problem = if is_host_name {
            format!("is the host name and cannot be the instance; set instance, {rule}")
        } else {
            format!("is no valid name; {rule}")
        };
        Err(ConfigError::of_value(key, name, self.origin(key), problem))
    }

    fn check_topics(&self) -> Result<(), ConfigError> {
        let mut first: BTreeMap<String, Role> = BTreeMap::new();
        for role in self.roles() {
            let is_name = (1..=TOPIC_NAME_BYTES_MAX).contains(&role.topic.len())
                && role.topic.bytes().all(is_name_byte)
                && role.topic != "."
                && role.topic != "..";
            if !is_name {
                let problem = format!(
                    "is no topic name (it is to be the {}); use 1 to {TOPIC_NAME_BYTES_MAX} characters of \
                     A-Z a-z 0-9 . _ -",
                    role.title
                );
                return Err(ConfigError::of_value(role.key, &role.topic, role.origin, problem));
            }
            match first.get(&role.topic) {
                Some(other) if !(other.is_output_of_kind && role.is_output_of_kind) => {
                    let problem = format!(
                        "is to be the {}, and {} makes it the {}; give each a topic of its own",
                        role.title, other.key, other.title
                    );
                    return Err(ConfigError::of_value(role.key, &role.topic, role.origin, problem));
                }
                Some(_) => {}
                None => {
                    first.insert(role.topic.clone(), role);
                }
            }
        }
        Ok(())
    }

    fn roles(&self) -> Vec<Role> {
        let topics = &self.topics;
        let fixed = [
            ("topics.arm", Some(&topics.arm), "arm topic"),
            ("topics.changelog", Some(&topics.changelog), "changelog"),
            ("topics.dead_letter", Some(&topics.dead_letter), "dead-letter topic"),
            ("topics.results", topics.results.as_ref(), "results topic"),
        ];
        let mut roles = Vec::new();
        for (key, topic, title) in fixed {
            let Some(topic) = topic else { continue };
            roles.push(Role {
                key: key.to_owned(),
                topic: topic.clone(),
                title: title.to_owned(),
                origin: self.origin(key),
                is_output_of_kind: false,
            });
        }
        for kind in &self.kinds {
            let own = [kind.fired_topic.is_some(), kind.outbox_topic.is_some()];
            let given = [topics.fired.get(&kind.kind.number), topics.outbox.get(&kind.kind.number)];
            for ((role, is_own), topic) in ["fired", "outbox"].into_iter().zip(own).zip(given) {
                let Some(topic) = topic else { continue };
                let template = format!("topics.{role}");
                roles.push(Role {
                    topic: topic.clone(),
                    title: format!("{role} topic of kind `{}`", kind.kind.name),
                    origin: if is_own { kind.origin.clone() } else { self.origin(&template) },
                    key: if is_own { format!("{}.{role}_topic", kind.key) } else { template },
                    is_output_of_kind: true,
                });
            }
        }
        roles
    }
}

/// What may stand in names of topics, groups and instances.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-".contains(&byte)
}

#[cfg(test)]
#[path = "validate_test.rs"]
mod tests;
