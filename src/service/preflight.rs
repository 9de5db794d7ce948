//! What is checked before anything starts.
//!
//! Owns [`Plan`]: settings as the workers need them, with what the topics themselves say. Keeps: a cluster that is away is
//! waited for, a topic that is wrong stops the start by name.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::config::settings::Config;
use crate::log::LogError;
use crate::log::kafka::settings::{KafkaSettings, check_properties};
use crate::log::kafka::topics::findings::Severity;
use crate::log::kafka::topics::{Inspection, Topics};
use crate::time::Clock;
use crate::time::system::SystemClock;
use crate::worker::settings::Settings;

/// How long one request about the topics may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a cluster that is away is asked again before the start fails, so that an orchestrator shows why.
const PATIENCE: Duration = Duration::from_mins(1);
/// Pause before asking again: a topic that was just created answers at once that its partitions have no leader yet.
const TRY_PAUSE: Duration = Duration::from_millis(500);
/// Room that a stored row needs beside the fired record: the identity once more, and framing.
const CHANGELOG_ROOM_BYTES: usize = 4096;

/// What the workers run by.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) settings: Settings,
    pub(super) kafka: KafkaSettings,
}

/// Checks the settings and the topics.
pub(super) fn check(config: &Config) -> Result<Plan> {
    config.validate()?;
    check_properties(&config.kafka.properties).context("kafka.properties")?;
    let inspection = inspect(config)?;
    let mut is_wrong = false;
    for finding in &inspection.findings {
        match finding.severity {
            Severity::Error => {
                is_wrong = true;
                tracing::error!(%finding, "topic is wrong");
            }
            Severity::Warning => tracing::warn!(%finding, "topic is doubtful"),
        }
    }
    if is_wrong {
        let errors: Vec<String> = inspection.errors().map(ToString::to_string).collect();
        bail!(
            "the topics do not fit:\n  {}\nrun `punctual topics create` for those that are missing, and `punctual topics validate` for all",
            errors.join("\n  ")
        );
    }
    plan(config, &inspection)
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

fn plan(config: &Config, inspection: &Inspection) -> Result<Plan> {
    let partitions = inspection.changelog_partitions.context("the changelog has no partitions")?;
    let mut settings = config.worker_settings(partitions);
    let fitting = [
        inspection.fired_bytes_max,
        inspection.changelog_bytes_max.map(|max| max.saturating_sub(CHANGELOG_ROOM_BYTES)),
    ];
    for fitting in fitting.into_iter().flatten() {
        settings.rules.limits.fired_bytes_max = settings.rules.limits.fired_bytes_max.min(fitting);
    }
    if let Some(retention) = inspection.delete_retention {
        settings.store_age_max = retention / 2;
    }
    Ok(Plan { settings, kafka: config.kafka_settings(partitions) })
}
