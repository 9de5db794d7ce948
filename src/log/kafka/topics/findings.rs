//! What is wrong with the topics.
//!
//! Owns [`Finding`] and the rules. Never talks to a broker: it judges facts.
//! Keeps: an error is what loses timers, fires them twice or keeps the service from working; all else is a warning.

use std::collections::BTreeSet;
use std::fmt;

use super::facts::{Cluster, TopicFacts};
use super::plan::{PlannedTopic, WEEK_MS};
use crate::log::Destination;
use crate::timer::limits::Limits;

/// Below this a stop of half an hour makes a state directory too old: such a stop is an ordinary one.
const AGE_CHECK_MS: u64 = 60 * 60 * 1000;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The service does not start.
    Error,
    /// The service works, with less than it could promise.
    Warning,
}

/// Something that is wrong with a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The topic.
    pub topic: String,
    /// What of it: the name of a topic setting, or `partitions`, `replication`, `topic`.
    pub key: &'static str,
    /// What was found.
    pub found: String,
    /// What is needed.
    pub expected: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, key, found, expected, remedy, .. } = self;
        write!(f, "topic `{topic}`: {key} is {found}, expected {expected}; {remedy}")
    }
}

/// Judges the planned topics, errors first, otherwise in the order of the plan.
pub(super) fn judge(planned: &[PlannedTopic], cluster: &Cluster, limits: &Limits) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for topic in planned {
        if !seen.insert(&topic.name) {
            continue;
        }
        match cluster.topics.get(&topic.name) {
            None => findings.push(missing(topic)),
            Some(facts) => {
                let mut about = About { topic, facts, findings: &mut findings };
                replication(&mut about, cluster.brokers);
                policy(&mut about);
                if topic.is_changelog() {
                    changelog(&mut about, limits);
                }
                if topic.is_fired() {
                    fired(&mut about, limits);
                }
                if topic.is_arm() {
                    arm(&mut about);
                }
            }
        }
    }
    partitions(planned, cluster, &mut findings);
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// One topic under judgement, and where findings about it go.
struct About<'a> {
    topic: &'a PlannedTopic,
    facts: &'a TopicFacts,
    findings: &'a mut Vec<Finding>,
}

impl About<'_> {
    fn add(&mut self, severity: Severity, key: &'static str, expected: impl Into<String>, remedy: impl Into<String>) {
        let found = match key {
            "replication" => self.facts.replication.to_string(),
            "partitions" => self.facts.partitions.to_string(),
            setting => self.facts.setting(setting).to_owned(),
        };
        let (expected, remedy) = (expected.into(), remedy.into());
        self.findings.push(Finding { severity, topic: self.topic.name.clone(), key, found, expected, remedy });
    }

    /// Adds a finding whose remedy is to set the topic's setting.
    fn add_setting(&mut self, severity: Severity, key: &'static str, value: &str, reason: &str) {
        let remedy = format!("set it ({}): {reason}", alter(&self.topic.name, key, value));
        self.add(severity, key, value, remedy);
    }
}

fn alter(topic: &str, key: &str, value: &str) -> String {
    // A list is written in brackets on Kafka's command line.
    let value = if value.contains(',') { format!("[{value}]") } else { value.to_owned() };
    format!("kafka-configs.sh --bootstrap-server SERVERS --alter --topic {topic} --add-config {key}={value}")
}

fn missing(topic: &PlannedTopic) -> Finding {
    Finding {
        severity: Severity::Error,
        topic: topic.name.clone(),
        key: "topic",
        found: "missing".to_owned(),
        expected: format!("the topic for {}", topic.destination),
        remedy:
            "run `punctual topics create`, for nothing else creates it; one that is there is seen with a right to it"
                .to_owned(),
    }
}

fn replication(about: &mut About<'_>, brokers: usize) {
    let replication = about.facts.replication;
    let in_sync: u32 = about.facts.setting("min.insync.replicas").parse().unwrap_or(1);
    let key = "min.insync.replicas";
    if in_sync > replication {
        let reason = format!("with {replication} replicas no write is ever acknowledged");
        about.add_setting(Severity::Error, key, &replication.to_string(), &reason);
    } else if replication > 1 && in_sync == replication {
        let reason = format!("with {in_sync} of {replication} replicas required, one broker away stops all writing");
        about.add_setting(Severity::Warning, key, &(replication - 1).to_string(), &reason);
    } else if replication > 2 && in_sync < 2 {
        about.add_setting(Severity::Warning, key, "2", "what one replica acknowledges is lost with its disk");
    }
    if replication < 3 && brokers >= 3 {
        let remedy = "move it to three brokers (kafka-reassign-partitions.sh): what it holds is lost with its disk";
        let remedy = if replication == 1 { remedy } else { "move it to three brokers (kafka-reassign-partitions.sh)" };
        about.add(Severity::Warning, "replication", "3", remedy);
    }
}

fn policy(about: &mut About<'_>) {
    let (compacts, deletes) = (about.facts.has_policy("compact"), about.facts.has_policy("delete"));
    let key = "cleanup.policy";
    match about.topic.destination {
        Destination::Changelog if deletes => {
            about.add_setting(Severity::Error, key, "compact", "deleting old records loses timers that are pending");
        }
        Destination::Changelog if !compacts => {
            about.add_setting(Severity::Error, key, "compact", "without compaction it grows without end");
        }
        Destination::Arm if compacts => {
            let reason = "commands of one run share a key, so compaction drops commands that were not read yet";
            about.add_setting(Severity::Error, key, "delete", reason);
        }
        Destination::Fired(_) | Destination::DeadLetter | Destination::Results if compacts => {
            let reason = "records of one run share a key, so compaction drops all but the last";
            about.add_setting(Severity::Warning, key, "delete", reason);
        }
        Destination::Changelog
        | Destination::Arm
        | Destination::Fired(_)
        | Destination::Outbox(_)
        | Destination::DeadLetter
        | Destination::Results => {}
    }
}

fn changelog(about: &mut About<'_>, limits: &Limits) {
    if about.facts.setting("message.timestamp.type") != "LogAppendTime" {
        let reason = "the append time is what the clock guard confirms a step of the clock by";
        about.add_setting(Severity::Warning, "message.timestamp.type", "LogAppendTime", reason);
    }
    if let Some(retention) = about.facts.millis("delete.retention.ms").filter(|retention| *retention < WEEK_MS) {
        let reason = if retention < AGE_CHECK_MS {
            "a state directory is older than half of it after nearly every stop, and is then restored from the start"
        } else {
            "a state directory older than half of it is discarded and restored from the start"
        };
        about.add_setting(Severity::Warning, "delete.retention.ms", &WEEK_MS.to_string(), reason);
    }
    bytes(
        about,
        limits.fired_bytes_max + limits.outbox_bytes_max,
        "a timer whose state is larger than this cannot be stored",
    );
}

fn fired(about: &mut About<'_>, limits: &Limits) {
    bytes(about, limits.fired_bytes_max, "arms whose fired record is larger than this are rejected");
}

fn bytes(about: &mut About<'_>, expected: usize, reason: &str) {
    if about.facts.bytes_max().is_some_and(|bytes| bytes < expected) {
        about.add_setting(Severity::Warning, "max.message.bytes", &expected.to_string(), reason);
    }
}

fn arm(about: &mut About<'_>) {
    const DAY_MS: u64 = WEEK_MS / 7;
    if about.facts.millis("retention.ms").is_some_and(|retention| retention < DAY_MS) {
        let reason = "commands that were not read within this time are lost";
        about.add_setting(Severity::Warning, "retention.ms", &WEEK_MS.to_string(), reason);
    }
}

/// Commands are routed by the partition count of the changelog, so the command topic must have those partitions.
fn partitions(planned: &[PlannedTopic], cluster: &Cluster, findings: &mut Vec<Finding>) {
    let find = |is: fn(&PlannedTopic) -> bool| {
        let topic = planned.iter().find(|topic| is(topic))?;
        Some((topic, cluster.topics.get(&topic.name)?))
    };
    let Some((arm, arm_facts)) = find(PlannedTopic::is_arm) else {
        return;
    };
    if let Some((changelog, changelog_facts)) = find(PlannedTopic::is_changelog) {
        let (of_arm, of_changelog) = (arm_facts.partitions, changelog_facts.partitions);
        let mut about = About { topic: changelog, facts: changelog_facts, findings };
        if of_arm != of_changelog && changelog_facts.is_empty {
            let remedy = format!(
                "delete `{}`, which holds nothing yet, and run `punctual topics create`: state and commands share partitions",
                changelog.name
            );
            about.add(Severity::Error, "partitions", format!("{of_arm} as `{}` has", arm.name), remedy);
        } else if of_arm < of_changelog {
            let remedy = format!(
                "if it grew, its state is split and must be drained; if not, add partitions to `{}` \
                 (kafka-topics.sh --bootstrap-server SERVERS --alter --topic {} --partitions {of_changelog})",
                arm.name, arm.name
            );
            about.add(Severity::Error, "partitions", format!("{of_arm} as `{}` has", arm.name), remedy);
        } else if of_arm > of_changelog {
            let remedy = format!(
                "commands on the partitions of `{}` from {of_changelog} on are only forwarded; \
                 never add partitions to the changelog",
                arm.name
            );
            about.add(Severity::Warning, "partitions", format!("{of_arm} as `{}` has", arm.name), remedy);
        }
    }
    let mut seen = BTreeSet::new();
    for topic in planned.iter().filter(|topic| topic.is_fired() && seen.insert(&topic.name)) {
        let Some(facts) = cluster.topics.get(&topic.name) else {
            continue;
        };
        if facts.partitions != arm_facts.partitions {
            let mut about = About { topic, facts, findings };
            let expected = format!("{} as `{}` has", arm_facts.partitions, arm.name);
            let remedy = "with equal counts a transaction touches one partition of it, not many: it commits faster";
            about.add(Severity::Warning, "partitions", expected, remedy);
        }
    }
}

#[cfg(test)]
#[path = "findings_test.rs"]
mod tests;
