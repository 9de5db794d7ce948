//! What is there: the brokers, and of each planned topic its partitions, replicas and settings.
//!
//! Owns the reading of facts. Never judges them: that is [`findings`](super::findings).
//! Keeps: a topic that does not exist is absent from the facts, and reading creates none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, OwnedResourceSpecifier, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;

use super::plan::PlannedTopic;
use crate::log::LogError;
use crate::log::kafka::tool::waiting::wait;
use crate::log::kafka::tool::{Connection, describe, describe_code};

/// The cluster as far as the planned topics are concerned.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    /// How many brokers there are.
    pub(super) brokers: usize,
    /// The planned topics that exist.
    pub(super) topics: BTreeMap<String, TopicFacts>,
}

/// One topic.
#[derive(Clone, Debug, Default)]
pub(super) struct TopicFacts {
    /// Its partition count.
    pub(super) partitions: u32,
    /// The fewest replicas of any of its partitions.
    pub(super) replication: u32,
    /// Whether no partition holds a record; asked of the changelog only.
    pub(super) is_empty: bool,
    /// Its settings, as the broker writes them.
    pub(super) config: BTreeMap<String, String>,
}

impl TopicFacts {
    /// Returns a setting, or the empty text if the broker did not tell it.
    pub(super) fn setting(&self, key: &str) -> &str {
        self.config.get(key).map_or("", String::as_str)
    }

    /// Returns a setting in milliseconds; `None` for -1 (without limit) or when the broker did not tell it.
    pub(super) fn millis(&self, key: &str) -> Option<u64> {
        self.setting(key).parse().ok()
    }

    /// Returns the largest record that the topic takes.
    pub(super) fn bytes_max(&self) -> Option<usize> {
        self.setting("max.message.bytes").parse().ok()
    }

    /// Returns whether the clean-up policy names `policy`.
    pub(super) fn has_policy(&self, policy: &str) -> bool {
        self.setting("cleanup.policy").split(',').any(|part| part.trim() == policy)
    }
}

/// Reads the facts of the planned topics.
///
/// # Errors
/// [`LogError::Retriable`] when no broker answers in time, [`LogError::Fatal`] when one does not describe a topic to us.
pub(super) fn read(
    connection: &Connection,
    admin: &AdminClient<DefaultClientContext>,
    planned: &[PlannedTopic],
    timeout: Duration,
) -> Result<Cluster, LogError> {
    let mut cluster = existing(connection, planned)?;
    read_settings(connection, admin, &mut cluster, timeout)?;
    for topic in planned.iter().filter(|topic| topic.is_changelog()) {
        if let Some(facts) = cluster.topics.get_mut(&topic.name) {
            facts.is_empty = connection.is_empty(&topic.name, facts.partitions)?;
        }
    }
    Ok(cluster)
}

/// Reads which of the planned topics there are, with their partitions and replicas alone.
///
/// # Errors
/// [`LogError::Retriable`] when no broker answers in time.
pub(super) fn existing(connection: &Connection, planned: &[PlannedTopic]) -> Result<Cluster, LogError> {
    let names: BTreeSet<&str> = planned.iter().map(|topic| topic.name.as_str()).collect();
    let metadata = connection.metadata()?;
    let mut cluster = Cluster { brokers: metadata.brokers().len(), topics: BTreeMap::new() };
    for topic in metadata.topics().iter().filter(|topic| names.contains(topic.name())) {
        let partitions = topic.partitions();
        let replication = partitions.iter().map(|partition| partition.replicas().len()).min().unwrap_or(0);
        if partitions.is_empty() {
            continue;
        }
        let facts = TopicFacts {
            partitions: u32::try_from(partitions.len()).unwrap_or(u32::MAX),
            replication: u32::try_from(replication).unwrap_or(u32::MAX),
            ..TopicFacts::default()
        };
        cluster.topics.insert(topic.name().to_owned(), facts);
    }
    Ok(cluster)
}

fn read_settings(
    connection: &Connection,
    admin: &AdminClient<DefaultClientContext>,
    cluster: &mut Cluster,
    timeout: Duration,
) -> Result<(), LogError> {
    if cluster.topics.is_empty() {
        return Ok(());
    }
    let doing = || format!("reading the settings of topics from Kafka at {}", connection.servers());
    let options = AdminOptions::new().request_timeout(Some(timeout));
    let names: Vec<String> = cluster.topics.keys().cloned().collect();
    let resources: Vec<ResourceSpecifier<'_>> = names.iter().map(|name| ResourceSpecifier::Topic(name)).collect();
    let results = wait(admin.describe_configs(&resources, &options))
        .map_err(|error| LogError::Retriable { doing: doing(), detail: describe(&error) })?;
    for result in results {
        let resource = result.map_err(|code| LogError::Retriable { doing: doing(), detail: describe_code(code) })?;
        let OwnedResourceSpecifier::Topic(name) = &resource.specifier else {
            continue;
        };
        let Some(facts) = cluster.topics.get_mut(name) else {
            continue;
        };
        let entries = resource.entries.into_iter();
        facts.config = entries.filter_map(|entry| Some((entry.name, entry.value?))).collect();
        // The client library shows a refusal as a topic without settings, and every topic has some.
        if facts.config.is_empty() {
            let detail = format!("the user needs the right DESCRIBE_CONFIGS on topic `{name}`");
            return Err(LogError::Fatal { doing: doing(), detail });
        }
    }
    Ok(())
}
