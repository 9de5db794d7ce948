//! The list of kinds.
//!
//! Owns [`KindSetting`] and its way to the core's [`Registry`] and to topics. Never judges topic names. Keeps: an error names
//! the entry, the key inside of it and the line.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::{ConfigError, Origin};
use super::layers::{KINDS, Layers};
use super::read::Written;
use super::yaml::{Node, Placed};
use crate::timer::kind::{ContentMode, Kind, KindNumber, PastDue, Registry, RegistryError};
use crate::timer::model::Claim;

/// What stands for the name of the kind in `topics.fired` and `topics.outbox`.
const PLACEHOLDER: &str = "{kind}";
const FIELDS: [&str; 12] = [
    "number",
    "name",
    "past_due",
    "outbox",
    "fired_topic",
    "outbox_topic",
    "delivery",
    "lease",
    "max_attempts",
    "expires_after",
    "remember",
    "content_mode",
];
/// How long a delivery by claim holds a timer where `lease` does not say.
const LEASE: Duration = Duration::from_mins(1);
const EXPIRIES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24 * 3650);
/// How long ids are remembered where `remember` does not say: not at all, for it costs more than a seventh of the fire rate
/// (docs/commands.md).
const REMEMBER: Duration = Duration::ZERO;
const REMEMBERED_FOR: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_hours(24 * 366);
const LEASES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_hours(24 * 30);

/// An entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KindSetting {
    /// The kind as the core knows it.
    pub(super) kind: Kind,
    /// A fired topic of its own.
    pub(super) fired_topic: Option<String>,
    /// An outbox topic of its own.
    pub(super) outbox_topic: Option<String>,
    /// The key of the entry: `kinds[0]`.
    pub(super) key: String,
    /// Where the entry stands.
    pub(super) origin: Origin,
}

/// Reads the list.
pub(super) fn read(layers: &Layers) -> Result<Vec<KindSetting>, ConfigError> {
    let Some(setting) = layers.get(KINDS) else {
        return Ok(Vec::new());
    };
    let Node::List(items) = &setting.node else {
        return Err(ConfigError::of_key(KINDS, Some(setting.origin.clone()), "is not a list"));
    };
    items.iter().enumerate().map(|(index, item)| read_entry(index, item, &setting.origin)).collect()
}

/// Builds the registry.
pub(super) fn registry(kinds: &[KindSetting]) -> Result<Registry, ConfigError> {
    let mut registry = Registry::default();
    for setting in kinds {
        // Entry by entry, so that the error names the one that is wrong.
        let known = registry.iter().cloned().chain([setting.kind.clone()]);
        registry = Registry::new(known).map_err(|e| refusal(setting, &e))?;
    }
    Ok(registry)
}

/// Returns the fired topic of each kind.
pub(super) fn fired_topics(kinds: &[KindSetting], template: &str) -> BTreeMap<KindNumber, String> {
    kinds.iter().map(|k| (k.kind.number, topic(k.fired_topic.as_deref(), template, &k.kind))).collect()
}

/// Returns the outbox topic of each kind that has an outbox.
pub(super) fn outbox_topics(kinds: &[KindSetting], template: &str) -> BTreeMap<KindNumber, String> {
    let with_outbox = kinds.iter().filter(|k| k.kind.outbox);
    with_outbox.map(|k| (k.kind.number, topic(k.outbox_topic.as_deref(), template, &k.kind))).collect()
}

fn topic(own: Option<&str>, template: &str, kind: &Kind) -> String {
    own.map_or_else(|| template.replace(PLACEHOLDER, &kind.name), str::to_owned)
}

fn refusal(setting: &KindSetting, error: &RegistryError) -> ConfigError {
    ConfigError::of_key(setting.key.as_str(), Some(setting.origin.clone()), error.to_string())
}

fn read_entry(index: usize, item: &Placed, list: &Origin) -> Result<KindSetting, ConfigError> {
    let entry = Entry::new(index, item, list)?;
    let number = entry.required("number")?;
    let number: u32 = number.count(0..=u64::from(u32::MAX))?;
    let name = entry.required("name")?.text.to_owned();
    let Some(kind_number) = KindNumber::new(number) else {
        let error = RegistryError::Number { name, number };
        return Err(ConfigError::of_key(entry.key, Some(entry.origin), error.to_string()));
    };
    let past_due = match entry.optional("past_due") {
        Some(text) => text.choice(&[("fire", PastDue::Fire), ("reject", PastDue::Reject), ("skip", PastDue::Skip)])?,
        None => PastDue::default(),
    };
    let outbox_topic = entry.optional("outbox_topic").map(|text| text.non_empty()).transpose()?;
    let outbox = match entry.optional("outbox") {
        Some(text) if !text.boolean()? && outbox_topic.is_some() => {
            return text.refuse("contradicts outbox_topic; remove one of them");
        }
        Some(text) => text.boolean()?,
        None => outbox_topic.is_some(),
    };
    let expires_after = entry.optional("expires_after").map(|text| text.duration(EXPIRIES)).transpose()?;
    let remember = entry.optional("remember").map(|text| text.duration(REMEMBERED_FOR)).transpose()?;
    let (claim, remember) = (read_claim(&entry)?, remember.unwrap_or(REMEMBER));
    let content_mode = match entry.optional("content_mode") {
        Some(text) => text.choice(&[("binary", ContentMode::Binary), ("structured", ContentMode::Structured)])?,
        None => ContentMode::default(),
    };
    Ok(KindSetting {
        kind: Kind { number: kind_number, name, past_due, outbox, claim, expires_after, remember, content_mode },
        fired_topic: entry.optional("fired_topic").map(|text| text.non_empty()).transpose()?,
        outbox_topic,
        key: entry.key,
        origin: entry.origin,
    })
}

fn read_claim(entry: &Entry<'_>) -> Result<Option<Claim>, ConfigError> {
    let is_claim = match entry.optional("delivery") {
        Some(text) => text.choice(&[("once", false), ("claim", true)])?,
        None => false,
    };
    for field in ["lease", "max_attempts"] {
        if let Some(text) = entry.optional(field).filter(|_| !is_claim) {
            return text.refuse("is for `delivery: claim`; add that, or remove it");
        }
    }
    if !is_claim {
        return Ok(None);
    }
    let lease = entry.optional("lease").map(|text| text.duration(LEASES)).transpose()?;
    let attempts_max = entry.optional("max_attempts").map(|text| text.count(1..=u64::from(u32::MAX))).transpose()?;
    Ok(Some(Claim { lease: lease.unwrap_or(LEASE), attempts_max }))
}

/// An entry as it was written.
struct Entry<'a> {
    key: String,
    origin: Origin,
    fields: BTreeMap<&'static str, (String, &'a str, Origin)>,
}

impl<'a> Entry<'a> {
    fn new(index: usize, item: &'a Placed, list: &Origin) -> Result<Self, ConfigError> {
        let key = format!("{KINDS}[{index}]");
        let origin = at_line(list, item.line);
        let Node::Map(written) = &item.node else {
            return Err(ConfigError::of_key(key, Some(origin), "is not a kind; write {number: 1, name: email}"));
        };
        let mut fields = BTreeMap::new();
        for (name, value) in written {
            let full = format!("{key}.{name}");
            let origin = at_line(list, value.line);
            let Some(field) = FIELDS.into_iter().find(|field| field == name) else {
                let problem = format!("is no setting of a kind; there are {}", FIELDS.join(", "));
                return Err(ConfigError::of_key(full, Some(origin), problem));
            };
            let Node::Text { text, .. } = &value.node else {
                return Err(ConfigError::of_key(full, Some(origin), "takes one value"));
            };
            if fields.insert(field, (full.clone(), text.as_str(), origin.clone())).is_some() {
                return Err(ConfigError::of_key(full, Some(origin), "is given twice; keep one of them"));
            }
        }
        Ok(Self { key, origin, fields })
    }

    fn optional(&self, field: &str) -> Option<Written<'_>> {
        self.fields.get(field).map(|(key, text, origin)| Written { key, text, origin })
    }

    fn required(&self, field: &str) -> Result<Written<'_>, ConfigError> {
        self.optional(field).ok_or_else(|| {
            let problem = format!("has no {field}; write {{number: 1, name: email}}");
            ConfigError::of_key(self.key.as_str(), Some(self.origin.clone()), problem)
        })
    }
}

/// Inside a file the line of the entry is nearer than that of the list.
pub(super) fn at_line(list: &Origin, line: usize) -> Origin {
    match list {
        Origin::File { path, .. } => Origin::File { path: path.clone(), line },
        Origin::Defaults | Origin::Environment { .. } | Origin::Flag => list.clone(),
    }
}

#[cfg(test)]
#[path = "kinds_test.rs"]
mod tests;
