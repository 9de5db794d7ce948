//! Which topics there should be, and how a new one is laid out.
//!
//! Owns the policies of new topics. Never talks to a broker.
//! Keeps: command topic, changelog and fired topics get one and the same partition count, that of those that exist.

use super::facts::Cluster;
use crate::log::Destination;

/// Seven days: how long the changelog keeps tombstones, and the command topic commands.
pub(super) const WEEK_MS: u64 = 7 * DAY_MS;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// A changelog record carries payload, headers and outbox records of a timer, so it is larger than any other record.
const CHANGELOG_BYTES_MAX: &str = "4194304";
/// Small segments are compacted sooner, so that a restore reads less.
const CHANGELOG_SEGMENT_BYTES: &str = "104857600";

/// A topic of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTopic {
    /// What it is for.
    pub destination: Destination,
    /// Its name.
    pub name: String,
}

impl PlannedTopic {
    pub(super) fn is_arm(&self) -> bool {
        self.destination == Destination::Arm
    }

    pub(super) fn is_changelog(&self) -> bool {
        self.destination == Destination::Changelog
    }

    pub(super) fn is_dead_letter(&self) -> bool {
        self.destination == Destination::DeadLetter
    }

    pub(super) fn is_fired(&self) -> bool {
        matches!(self.destination, Destination::Fired(_))
    }
}

/// What a person may say about new topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The partition count, unless the changelog or the command topic has one already.
    pub partitions: u32,
    /// The replication factor; -1 leaves it to the broker.
    pub replication: i32,
}

/// A topic to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSpec {
    /// Its name.
    pub name: String,
    /// Its partition count.
    pub partitions: u32,
    /// Its replication factor; -1 leaves it to the broker.
    pub replication: i32,
    /// Its settings that differ from the broker's defaults.
    pub config: Vec<(&'static str, String)>,
}

/// Returns what is to be created, each name once.
pub(super) fn missing(planned: &[PlannedTopic], cluster: &Cluster, layout: Layout) -> Vec<TopicSpec> {
    let partitions = partitions(planned, cluster, layout);
    let mut specs: Vec<TopicSpec> = Vec::new();
    for topic in planned {
        let is_taken = cluster.topics.contains_key(&topic.name) || specs.iter().any(|spec| spec.name == topic.name);
        if is_taken {
            continue;
        }
        let mut config = policy(topic.destination);
        if let Some(in_sync) = in_sync(layout.replication) {
            config.push(("min.insync.replicas", in_sync.to_string()));
        }
        specs.push(TopicSpec { name: topic.name.clone(), partitions, replication: layout.replication, config });
    }
    specs
}

/// The changelog's count decides, for commands are routed by it; then the command topic's; then what was asked for.
fn partitions(planned: &[PlannedTopic], cluster: &Cluster, layout: Layout) -> u32 {
    let count = |is: fn(&PlannedTopic) -> bool| {
        planned.iter().find(|topic| is(topic)).and_then(|t| cluster.topics.get(&t.name)).map(|facts| facts.partitions)
    };
    count(PlannedTopic::is_changelog).or_else(|| count(PlannedTopic::is_arm)).unwrap_or(layout.partitions)
}

/// One replica may be away while writing goes on, and what was acknowledged is on two, as far as there are so many.
fn in_sync(replication: i32) -> Option<u32> {
    match replication {
        ..1 => None,
        1 | 2 => Some(1),
        3.. => Some(2),
    }
}

fn policy(destination: Destination) -> Vec<(&'static str, String)> {
    let delete = || ("cleanup.policy", "delete".to_owned());
    match destination {
        Destination::Arm => vec![delete(), ("retention.ms", WEEK_MS.to_string())],
        Destination::Changelog => vec![
            ("cleanup.policy", "compact".to_owned()),
            ("delete.retention.ms", WEEK_MS.to_string()),
            ("message.timestamp.type", "LogAppendTime".to_owned()),
            ("max.message.bytes", CHANGELOG_BYTES_MAX.to_owned()),
            ("segment.bytes", CHANGELOG_SEGMENT_BYTES.to_owned()),
        ],
        Destination::Fired(_) | Destination::Outbox(_) => vec![delete()],
        Destination::DeadLetter => vec![delete(), ("retention.ms", (30 * DAY_MS).to_string())],
        Destination::Results => vec![delete(), ("retention.ms", DAY_MS.to_string())],
    }
}

#[cfg(test)]
#[path = "plan_test.rs"]
mod tests;
