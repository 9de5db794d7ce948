//! The settings as the layers below take them.
//!
//! Owns the conversions. Never reads a source. Keeps: what is not a setting but a rule of the product stands here with its
//! reason.

use std::time::Duration;

use super::settings::Config;
use crate::log::Destination;
use crate::log::kafka::settings::{KafkaSettings, Topics};
use crate::log::kafka::topics::plan::PlannedTopic;
use crate::task::rules::Rules;
use crate::worker::settings::Settings;

/// Half of seven days, which is the least `delete.retention.ms` of a changelog that is accepted: used if the topic does not
/// tell its own.
const STORE_AGE_MAX: Duration = Duration::from_hours(84);
/// The dead letter's own headers and the framing of its batch, beside the limit for fired records.
const DEAD_LETTER_ROOM_BYTES: usize = 16 * 1024;

impl Config {
    /// Returns the topics of all roles, in the order in which a person reads them.
    pub fn planned_topics(&self) -> Vec<PlannedTopic> {
        let topics = &self.topics;
        let planned = |destination, name: &String| PlannedTopic { destination, name: name.clone() };
        let state = [planned(Destination::Arm, &topics.arm), planned(Destination::Changelog, &topics.changelog)];
        let fired = topics.fired.iter().map(|(kind, name)| planned(Destination::Fired(*kind), name));
        let outbox = topics.outbox.iter().map(|(kind, name)| planned(Destination::Outbox(*kind), name));
        let dead_letter = [planned(Destination::DeadLetter, &topics.dead_letter)];
        let results = topics.results.iter().map(|name| planned(Destination::Results, name));
        state.into_iter().chain(fired).chain(outbox).chain(dead_letter).chain(results).collect()
    }

    /// Returns what a worker is told; `partitions` is the partition count of the changelog.
    pub fn worker_settings(&self, partitions: u32) -> Settings {
        let limits = self.limits();
        let rules = Rules {
            registry: self.registry(),
            limits,
            partitions,
            arm_topic: self.topics.arm.clone(),
            results: self.topics.results.is_some(),
            source: self.source.clone(),
            owner: self.instance.clone(),
            dead_letter_bytes_max: limits.fired_bytes_max.saturating_sub(DEAD_LETTER_ROOM_BYTES),
        };
        Settings {
            rules,
            budget: self.budget(),
            commit_linger: self.commit_linger,
            flush_interval: self.store.flush_interval,
            restore_stall_timeout: self.restore_stall_timeout,
            store_age_max: STORE_AGE_MAX,
            clock_step_max: self.clock_max_step,
        }
    }

    /// Returns how to reach Kafka; `partitions` is the partition count of the changelog.
    pub fn kafka_settings(&self, partitions: u32) -> KafkaSettings {
        let topics = &self.topics;
        KafkaSettings {
            bootstrap_servers: self.kafka.bootstrap_servers.clone(),
            properties: self.kafka.properties.clone(),
            group: self.kafka.group.clone(),
            instance: self.instance.clone(),
            static_membership: self.kafka.static_membership,
            session_timeout: self.kafka.session_timeout,
            topics: Topics {
                arm: topics.arm.clone(),
                changelog: topics.changelog.clone(),
                dead_letter: topics.dead_letter.clone(),
                results: topics.results.clone(),
                fired: topics.fired.clone(),
                outbox: topics.outbox.clone(),
            },
            partitions,
        }
    }
}
