//! What the lower layers are told.
//!
//! Owns the ways from [`Config`] to the settings of the log and of a worker. Never judges. Keeps: a worker's name is the same after
//! a restart and another for each worker of each process, for it fences.

use std::sync::Arc;
use std::time::Duration;

use super::settings::Config;
use crate::log::Destination;
use crate::log::kafka::settings::{KafkaSettings, Topics};
use crate::log::kafka::topics::plan::PlannedTopic;
use crate::task::rules::Rules;
use crate::timer::handler::Handlers;
use crate::worker::settings::Settings;

/// What only the brokers know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicFacts {
    /// The partition count of the changelog.
    pub partitions: u32,
    /// The partition count of the command topic.
    pub arm_partitions: u32,
    /// The changelog's `delete.retention.ms`.
    pub changelog_delete_retention: Duration,
    /// The largest fired record, outbox included, that all fired topics and the changelog take.
    pub fired_bytes_max: usize,
    /// The largest record that the command topic takes.
    pub arm_bytes_max: usize,
    /// The largest record that the dead-letter topic takes.
    pub dead_letter_bytes_max: usize,
}

impl Config {
    /// Returns the name of a worker among all workers of the group: `<instance>-<worker>`.
    pub fn worker_name(&self, worker: usize) -> String {
        format!("{}-{worker}", self.instance)
    }

    /// Returns what the worker's end of the log is made from.
    pub fn kafka_settings(&self, worker: usize, facts: &TopicFacts) -> KafkaSettings {
        KafkaSettings {
            bootstrap_servers: self.kafka.bootstrap_servers.clone(),
            properties: self.kafka.properties.clone(),
            group: self.kafka.group.clone(),
            instance: self.worker_name(worker),
            // A static member that comes back gets its old partitions, and the group does not look whether the topic has got
            // more of them meanwhile: commands on those would stay unread.
            static_membership: self.kafka.static_membership && facts.arm_partitions <= facts.partitions,
            session_timeout: self.kafka.session_timeout,
            topics: self.topic_names(),
            partitions: facts.partitions,
        }
    }

    /// Returns the names of all topics.
    pub fn topic_names(&self) -> Topics {
        Topics {
            arm: self.topics.arm.clone(),
            changelog: self.topics.changelog.clone(),
            dead_letter: self.topics.dead_letter.clone(),
            results: self.topics.results.clone(),
            fired: self.topics.fired.clone(),
            outbox: self.topics.outbox.clone(),
        }
    }

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

    /// Returns what the worker is told.
    pub fn worker_settings(&self, worker: usize, facts: &TopicFacts) -> Settings {
        let mut limits = self.limits();
        limits.fired_bytes_max = limits.fired_bytes_max.min(facts.fired_bytes_max);
        Settings {
            rules: Rules {
                registry: self.registry(),
                calendar: Arc::new(self.calendar.clone()),
                limits,
                partitions: facts.partitions,
                arm_topic: self.topics.arm.clone(),
                results: self.topics.results.is_some(),
                source: self.source.clone(),
                owner: self.worker_name(worker),
                arm_bytes_max: facts.arm_bytes_max,
                dead_letter_bytes_max: facts.dead_letter_bytes_max,
                handlers: Handlers::new(),
            },
            budget: self.budget(),
            commit_linger: self.commit_linger,
            flush_interval: self.store.flush_interval,
            restore_stall_timeout: self.restore_stall_timeout,
            // A removed timer's tombstone may be gone from the changelog after that time; half of it leaves room for the restore.
            store_age_max: facts.changelog_delete_retention / 2,
            clock_step_max: self.clock_max_step,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sources::Sources;

    #[test]
    fn workers_are_told_what_is_configured() {
        let set = ["instance=a", "kafka.session_timeout=6s", "topics.results=", "kinds=[{number: 1, name: email}]"];
        let set = set.map(str::to_owned).to_vec();
        let config = Config::load(&Sources { set, ..Sources::default() }).unwrap();
        let facts = TopicFacts {
            partitions: 12,
            arm_partitions: 12,
            changelog_delete_retention: Duration::from_hours(48),
            fired_bytes_max: 500_000,
            arm_bytes_max: 1_048_588,
            dead_letter_bytes_max: 1_048_588,
        };
        let log = config.kafka_settings(1, &facts);
        assert_eq!(log.instance, "a-1");
        assert_eq!(log.session_timeout, Duration::from_secs(6));
        assert_eq!(log.topics.fired.values().collect::<Vec<_>>(), ["timers.fired.email"]);
        assert_eq!(log.partitions, 12);
        assert!(log.static_membership, "as configured");
        let grown = TopicFacts { arm_partitions: 13, ..facts };
        assert!(!config.kafka_settings(1, &grown).static_membership, "R26: the new partition is to be assigned");
        let worker = config.worker_settings(1, &facts);
        assert_eq!(worker.rules.owner, "a-1");
        assert!(!worker.rules.results, "no results topic");
        assert_eq!(worker.rules.limits.fired_bytes_max, 500_000, "the topics take no more");
        assert_eq!(worker.store_age_max, Duration::from_hours(24));
        assert_eq!(worker.budget, config.budget());
    }
}
