//! The merged settings as YAML.
//!
//! Owns [`Config::to_yaml`] and the rule of what is a secret. Never shows a secret. Keeps: but for secrets, the output is a
//! file that loads to the same settings, here and under a YAML parser that gives scalars types.

use std::fmt::Write as _;

use super::layers::{PROPERTIES, Setting, is_list};
use super::settings::Config;
use super::yaml::Node;
use crate::log::kafka::settings;

/// What stands for the value of a secret.
pub(super) const REDACTED: &str = "***";

/// Returns whether the value of the key must not be shown. Only librdkafka properties can be secret.
pub(super) fn is_secret(key: &str) -> bool {
    key.strip_prefix(PROPERTIES).is_some_and(settings::is_secret)
}

impl Config {
    /// Returns the merged settings as YAML: every key with its value and, as a comment, where the value came from. Secrets show
    /// as `***`.
    pub fn to_yaml(&self) -> String {
        let mut yaml = String::new();
        let mut section = "";
        for key in self.layers.keys() {
            let Some(setting) = self.layers.get(key) else {
                continue;
            };
            let (own_section, name) = key.split_once('.').unwrap_or(("", key));
            if own_section != section {
                self.end_section(section, &mut yaml);
                section = own_section;
                if !section.is_empty() {
                    let _ = writeln!(yaml, "{section}:");
                }
            }
            let indent = if section.is_empty() { "" } else { "  " };
            if is_list(key) {
                write_list(key, setting, &mut yaml);
            } else {
                write_line(indent, name, key, setting, &mut yaml);
            }
        }
        self.end_section(section, &mut yaml);
        yaml
    }

    /// The open section has no keys among the defaults; it ends the section that it is part of.
    fn end_section(&self, section: &str, yaml: &mut String) {
        if PROPERTIES.strip_prefix(section) != Some(".properties.") {
            return;
        }
        let mut properties = self.layers.properties().peekable();
        yaml.push_str(if properties.peek().is_some() { "  properties:\n" } else { "  properties: {}\n" });
        for (name, setting) in properties {
            write_line("    ", &quoted(name), &format!("{PROPERTIES}{name}"), setting, yaml);
        }
    }
}

fn write_line(indent: &str, name: &str, key: &str, setting: &Setting, yaml: &mut String) {
    let value = if is_secret(key) { quoted(REDACTED) } else { scalar(&setting.node) };
    // Writing to a String cannot fail.
    let _ = writeln!(yaml, "{indent}{name}: {value}  # {}", comment(setting));
}

fn write_list(key: &str, setting: &Setting, yaml: &mut String) {
    let Node::List(items) = &setting.node else {
        return;
    };
    if items.is_empty() {
        let _ = writeln!(yaml, "{key}: []  # {}", comment(setting));
        return;
    }
    let _ = writeln!(yaml, "{key}:  # {}", comment(setting));
    for item in items {
        let _ = writeln!(yaml, "  - {}", flow(&item.node));
    }
}

/// Writes a node on one line; settings are not nested deeply.
fn flow(node: &Node) -> String {
    match node {
        Node::Map(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(name, placed)| format!("{name}: {}", flow(&placed.node))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Node::List(items) => {
            let items: Vec<_> = items.iter().map(|placed| flow(&placed.node)).collect();
            format!("[{}]", items.join(", "))
        }
        Node::Text { .. } | Node::Empty => scalar(node),
    }
}

/// A comment ends with its line.
fn comment(setting: &Setting) -> String {
    setting.origin.to_string().replace(|c: char| c.is_control(), "?")
}

fn scalar(node: &Node) -> String {
    match node {
        Node::Text { text, is_bare } if *is_bare && is_safe_bare(text) => text.clone(),
        Node::Text { text, .. } => quoted(text),
        Node::Empty | Node::List(_) | Node::Map(_) => quoted(""),
    }
}

/// A text that stood bare in a file may do so again, unless its neighbours here could give it another meaning.
fn is_safe_bare(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b))
}

/// JSON strings are YAML strings.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
