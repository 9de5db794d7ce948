//! What is checked before anything starts.
//!
//! Owns the start's look at settings and topics, and what the workers need to know of the topics. Keeps: a cluster that is away is
//! waited for, a topic that is wrong stops the start by name.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::config::convert::TopicFacts;
use crate::config::settings::Config;
use crate::log::LogError;
use crate::log::kafka::topics::findings::Severity;
use crate::log::kafka::topics::{Inspection, Topics};
use crate::time::Clock;
use crate::time::system::SystemClock;

/// How long one request about the topics may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a cluster that is away is asked again before the start fails, so that an orchestrator shows why.
const PATIENCE: Duration = Duration::from_mins(1);
/// Pause before asking again: a topic that was just created answers at once that its partitions have no leader yet.
const TRY_PAUSE: Duration = Duration::from_millis(500);
/// Room that the framing of a batch takes in `max.message.bytes`.
const BATCH_ROOM_BYTES: usize = 1024;
/// Room that a stored row needs beside the fired record: the identity once more, and framing.
const CHANGELOG_ROOM_BYTES: usize = 4096;

/// Checks the settings and the topics.
pub(super) fn check(config: &Config) -> Result<TopicFacts> {
    config.validate()?;
    let inspection = inspect(config)?;
    for finding in inspection.findings.iter().filter(|finding| finding.severity == Severity::Warning) {
        tracing::warn!(%finding, "topic is doubtful");
    }
    let errors: Vec<String> = inspection.errors().map(ToString::to_string).collect();
    if !errors.is_empty() {
        bail!(
            "the topics do not fit:\n  {}\nrun `punctual topics create` for those that are missing, and `punctual topics validate` for all",
            errors.join("\n  ")
        );
    }
    facts(&inspection)
}

fn inspect(config: &Config) -> Result<Inspection> {
    let topics = Topics::new(&config.kafka.bootstrap_servers, &config.kafka.properties, REQUEST_TIMEOUT)?;
    let planned = config.planned_topics();
    let deadline = SystemClock.boot() + PATIENCE;
    loop {
        match topics.inspect(&planned, &config.limits()) {
            Ok(inspection) => return Ok(inspection),
            Err(LogError::Retriable { doing, detail }) if SystemClock.boot() < deadline => {
                tracing::warn!(doing, detail, "cannot read the topics yet");
                // Nobody unparks this thread; if somebody did, the next try would only come sooner.
                thread::park_timeout(TRY_PAUSE);
            }
            Err(error) => {
                let servers = &config.kafka.bootstrap_servers;
                return Err(error)
                    .with_context(|| format!("reading the topics at `{servers}` (kafka.bootstrap_servers)"));
            }
        }
    }
}

fn facts(inspection: &Inspection) -> Result<TopicFacts> {
    let missing = |what| move || format!("the brokers do not tell {what}; grant DESCRIBE_CONFIGS on the topics");
    let changelog_bytes_max =
        inspection.changelog_bytes_max.with_context(missing("max.message.bytes of the changelog"))?;
    let fired_bytes_max = inspection.fired_bytes_max.unwrap_or(changelog_bytes_max);
    let arm_bytes_max = inspection.arm_bytes_max.with_context(missing("max.message.bytes of the command topic"))?;
    let dead_letter_bytes_max =
        inspection.dead_letter_bytes_max.with_context(missing("max.message.bytes of the dead-letter topic"))?;
    Ok(TopicFacts {
        partitions: inspection.changelog_partitions.with_context(missing("the partitions of the changelog"))?,
        arm_partitions: inspection.arm_partitions.with_context(missing("the partitions of the command topic"))?,
        changelog_delete_retention: inspection
            .delete_retention
            .with_context(missing("delete.retention.ms of the changelog"))?,
        fired_bytes_max: fired_bytes_max
            .saturating_sub(BATCH_ROOM_BYTES)
            .min(changelog_bytes_max.saturating_sub(CHANGELOG_ROOM_BYTES)),
        arm_bytes_max: arm_bytes_max.saturating_sub(BATCH_ROOM_BYTES),
        dead_letter_bytes_max: dead_letter_bytes_max.saturating_sub(BATCH_ROOM_BYTES),
    })
}
