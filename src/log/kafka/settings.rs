//! What a worker's Kafka clients are made of: settings, topics, and the properties of each client.
//!
//! Owns the list of librdkafka properties that users may not set, the defaults that they may change, and the check of
//! what they did set. Never connects. Keeps: an owned property always has our value, whatever the user's properties say.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use crate::log::Destination;
use crate::log::transaction::order::RESEND_AFTER;
use crate::timer::kind::KindNumber;

/// How long the broker waits for a transaction before it aborts it.
pub const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a record may take to be delivered: less than a transaction, so that the record's error is the one we see.
pub const MESSAGE_TIMEOUT: Duration = Duration::from_secs(8);

/// What a worker's end of the log is made from.
#[derive(Clone, Debug)]
pub struct KafkaSettings {
    /// Where the cluster is found: `host:port`, separated by commas.
    pub bootstrap_servers: String,
    /// The user's librdkafka properties; see [`check_properties`].
    pub properties: BTreeMap<String, String>,
    /// The consumer group.
    pub group: String,
    /// The name of this worker in the group, the same after a restart: the group's instance id, and part of the
    /// transactional ids.
    pub instance: String,
    /// Whether the worker keeps its partitions over a short restart. A static member does not say good-bye: when it stops
    /// for good, its partitions wait for the session timeout.
    pub static_membership: bool,
    /// How long the group waits for a sign of life.
    pub session_timeout: Duration,
    /// The topics.
    pub topics: Topics,
    /// The number of partitions of the changelog.
    pub partitions: u32,
}

/// The names of the topics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topics {
    /// Where commands come from.
    pub arm: String,
    /// Where the state goes.
    pub changelog: String,
    /// Where records go that are no commands.
    pub dead_letter: String,
    /// Where outcomes go; none if nobody asked for them.
    pub results: Option<String>,
    /// Where fired events go, per kind.
    pub fired: BTreeMap<KindNumber, String>,
    /// Where outbox records go, per kind.
    pub outbox: BTreeMap<KindNumber, String>,
}

impl Topics {
    /// Returns the topic of a destination, if one is configured.
    pub fn name(&self, to: Destination) -> Option<&str> {
        match to {
            Destination::Arm => Some(&self.arm),
            Destination::Changelog => Some(&self.changelog),
            Destination::DeadLetter => Some(&self.dead_letter),
            Destination::Results => self.results.as_deref(),
            Destination::Fired(kind) => self.fired.get(&kind).map(String::as_str),
            Destination::Outbox(kind) => self.outbox.get(&kind).map(String::as_str),
        }
    }
}

/// Why a librdkafka property of the user is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropertyError {
    /// The property is ours.
    #[error("property `{key}` cannot be set: {reason}; remove it")]
    Owned {
        /// The property.
        key: String,
        /// Why it is ours, or what to set instead.
        reason: &'static str,
    },
    /// There is no such property. Its value is not told: a misspelt secret would not be known as one.
    #[error("there is no librdkafka property `{key}`; see librdkafka's CONFIGURATION.md for their names")]
    Unknown {
        /// The property.
        key: String,
    },
    /// The property does not take this value.
    #[error("property `{key}` does not take the value `{value}`: {reason}")]
    Value {
        /// The property.
        key: String,
        /// Its value, hidden if it may be a secret.
        value: String,
        /// What librdkafka says about it.
        reason: String,
    },
}

const EXACTLY_ONCE: &str = "exactly-once depends on its value";
const MEMBERSHIP: &str = "it has a setting of its own beside `properties`";
const BOUNDS: &str = "the bounds of a transaction depend on each other, and recovery depends on them";

/// The properties that users may not set, each with the reason, in alphabetical order.
pub const OWNED_PROPERTIES: &[(&str, &str)] = &[
    ("acks", EXACTLY_ONCE),
    (
        "allow.auto.create.topics",
        "a misspelt topic must not come into being; create topics with `punctual topics create`",
    ),
    ("auto.commit.enable", EXACTLY_ONCE),
    ("auto.commit.interval.ms", EXACTLY_ONCE),
    ("auto.offset.reset", "a position outside of the log is reported, never jumped over"),
    ("bootstrap.servers", MEMBERSHIP),
    ("delivery.timeout.ms", BOUNDS),
    ("enable.auto.commit", EXACTLY_ONCE),
    ("enable.auto.offset.store", EXACTLY_ONCE),
    ("enable.gapless.guarantee", EXACTLY_ONCE),
    ("enable.idempotence", EXACTLY_ONCE),
    ("enable.partition.eof", "restoring depends on its value"),
    ("group.id", MEMBERSHIP),
    ("group.instance.id", MEMBERSHIP),
    ("group.protocol", "the worker is written for the classic protocol"),
    ("group.protocol.type", "the worker is written for the classic protocol"),
    ("group.remote.assignor", "the worker is written for the classic protocol"),
    ("isolation.level", EXACTLY_ONCE),
    ("message.timeout.ms", BOUNDS),
    ("metadata.broker.list", MEMBERSHIP),
    ("offset.store.method", EXACTLY_ONCE),
    ("partition.assignment.strategy", "the worker is written for cooperative-sticky"),
    ("partitioner", "the partition of a timer is murmur2 of its key"),
    ("request.required.acks", EXACTLY_ONCE),
    ("session.timeout.ms", MEMBERSHIP),
    ("socket.timeout.ms", BOUNDS),
    ("test.mock.num.brokers", "librdkafka's mock broker does not keep transactions apart"),
    ("transaction.timeout.ms", BOUNDS),
    ("transactional.id", "it is made of the group and the instance"),
];

/// Second names of properties: our default under one name must give way to the user's value under the other.
const ALIASES: &[(&str, &str)] = &[
    ("compression.codec", "compression.type"),
    ("fetch.message.max.bytes", "max.partition.fetch.bytes"),
    ("max.in.flight", "max.in.flight.requests.per.connection"),
    ("message.send.max.retries", "retries"),
    ("queue.buffering.max.ms", "linger.ms"),
];

/// Checks the user's librdkafka properties.
///
/// # Errors
/// When one is ours, misspelt, or has a value that librdkafka does not take.
pub fn check_properties(properties: &BTreeMap<String, String>) -> Result<(), PropertyError> {
    for (key, value) in properties {
        if let Some((_, reason)) = OWNED_PROPERTIES.iter().find(|(owned, _)| owned == key) {
            return Err(PropertyError::Owned { key: key.clone(), reason });
        }
        let mut config = ClientConfig::new();
        config.set(key, value);
        if let Err(error) = config.create_native_config() {
            return Err(property_error(key, value, error));
        }
    }
    Ok(())
}

fn property_error(key: &str, value: &str, error: KafkaError) -> PropertyError {
    let key = key.to_owned();
    let is_unknown =
        matches!(&error, KafkaError::ClientConfig(result, ..) if *result == RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN);
    if is_unknown {
        return PropertyError::Unknown { key };
    }
    if is_secret(&key) {
        // librdkafka's text may hold the value.
        return PropertyError::Value { key, value: "(hidden)".to_owned(), reason: "librdkafka refuses it".to_owned() };
    }
    let reason = if let KafkaError::ClientConfig(_, reason, ..) = error { reason } else { error.to_string() };
    PropertyError::Value { key, value: value.to_owned(), reason }
}

/// Returns whether the value of a librdkafka property must not be shown.
pub fn is_secret(property: &str) -> bool {
    let is_named_so = ["password", "passphrase", "secret", "pem"].iter().any(|part| property.contains(part));
    is_named_so || property == "sasl.oauthbearer.config"
}

/// Returns the configuration that all clients start from; it is also that of a tool that only produces or looks.
pub fn base_config(bootstrap_servers: &str, properties: &BTreeMap<String, String>) -> ClientConfig {
    config_of(bootstrap_servers, properties, &[], &[("partitioner", "murmur2_random")])
}

/// Returns the configuration of the member of the group that reads commands.
pub(super) fn group_config(settings: &KafkaSettings) -> ClientConfig {
    let mut owned = vec![
        ("group.protocol", "classic"),
        ("partition.assignment.strategy", "cooperative-sticky"),
        ("isolation.level", "read_committed"),
    ];
    if settings.static_membership {
        owned.push(("group.instance.id", &settings.instance));
    }
    consumer_config(settings, &owned)
}

/// Returns the configuration of the client that reads the changelog. It uses the group's id, so that it needs no rights of
/// its own, but does not join.
pub(super) fn restore_config(settings: &KafkaSettings) -> ClientConfig {
    // The end of a partition is when to look whether the position moved over markers.
    consumer_config(settings, &[("isolation.level", "read_committed"), ("enable.partition.eof", "true")])
}

/// Returns the configuration of the client that asks: it sees open transactions, and does not join.
pub(super) fn probe_config(settings: &KafkaSettings) -> ClientConfig {
    consumer_config(settings, &[("isolation.level", "read_uncommitted")])
}

fn consumer_config(settings: &KafkaSettings, owned: &[(&str, &str)]) -> ClientConfig {
    let session_ms = settings.session_timeout.as_millis();
    // A member is told of a rebalance with its heartbeat: a short interval makes a hand-over short.
    let heartbeat_ms = (session_ms / 3).clamp(1, 1_000).to_string();
    let poll_interval_ms = session_ms.max(300_000).to_string();
    let session_ms = session_ms.to_string();
    let defaults = [READING, &[("heartbeat.interval.ms", &heartbeat_ms), ("max.poll.interval.ms", &poll_interval_ms)]];
    // Also for those that do not join: librdkafka checks these against each other.
    let group = [("group.id", settings.group.as_str()), ("session.timeout.ms", &session_ms)];
    worker_config(settings, &defaults.concat(), &[NOT_COMMITTING, &group, owned].concat())
}

/// Returns the configuration of one of the worker's transactional producers.
pub(super) fn producer_config(settings: &KafkaSettings, number: usize) -> ClientConfig {
    let id = transactional_id(settings, number);
    let transaction_ms = TRANSACTION_TIMEOUT.as_millis().to_string();
    let message_ms = MESSAGE_TIMEOUT.as_millis().to_string();
    let owned = [
        ("transactional.id", id.as_str()),
        ("transaction.timeout.ms", &transaction_ms),
        ("message.timeout.ms", &message_ms),
        ("enable.idempotence", "true"),
        ("acks", "all"),
        ("partitioner", "murmur2_random"),
    ];
    worker_config(settings, WRITING, &owned)
}

/// Returns the id of one of the worker's transactional producers: the same after a restart, so that the new process
/// fences the old one.
pub(super) fn transactional_id(settings: &KafkaSettings, number: usize) -> String {
    format!("{}-{}-{number}", settings.group, settings.instance)
}

/// Defaults of clients that read. They bound the memory of prefetched records, and how long a partition that was just
/// resumed waits for a fetch that is under way.
const READING: &[(&str, &str)] = &[
    ("fetch.wait.max.ms", "100"),
    // How long partitions that were added to the command topic stay unread.
    ("topic.metadata.refresh.interval.ms", "30000"),
    ("fetch.queue.backoff.ms", "20"),
    ("fetch.error.backoff.ms", "100"),
    ("fetch.max.bytes", "8388608"),
    ("queued.max.messages.kbytes", "16384"),
    ("queued.min.messages", "10000"),
];

/// Defaults of producers. While a partition is being added to the transaction its records gather anyway, so that waiting
/// for more would only cost latency. A topic that does not exist is to be known as such at once, not in 30 s.
const WRITING: &[(&str, &str)] = &[
    ("linger.ms", "0"),
    ("message.max.bytes", "16777216"),
    ("queue.buffering.max.kbytes", "262144"),
    ("topic.metadata.propagation.max.ms", "1000"),
];

const NOT_COMMITTING: &[(&str, &str)] =
    &[("enable.auto.commit", "false"), ("enable.auto.offset.store", "false"), ("auto.offset.reset", "error")];

fn worker_config(settings: &KafkaSettings, defaults: &[(&str, &str)], owned: &[(&str, &str)]) -> ClientConfig {
    let client_id = format!("punctual-{}", settings.instance);
    // A broker that is back is to be found soon.
    let mut all = vec![("client.id", client_id.as_str()), ("reconnect.backoff.max.ms", "1000")];
    all.extend_from_slice(defaults);
    config_of(&settings.bootstrap_servers, &settings.properties, &all, owned)
}

fn config_of(
    bootstrap_servers: &str,
    properties: &BTreeMap<String, String>,
    defaults: &[(&str, &str)],
    owned: &[(&str, &str)],
) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set_log_level(RDKafkaLogLevel::Info);
    config.set("client.id", "punctual");
    for (key, value) in defaults {
        config.set(*key, *value);
    }
    for (key, value) in properties {
        for (one, other) in ALIASES {
            if key == one {
                config.remove(other);
            } else if key == other {
                config.remove(one);
            }
        }
        config.set(key, value);
    }
    for (key, value) in owned {
        config.set(*key, *value);
    }
    config.set("bootstrap.servers", bootstrap_servers);
    config.set("socket.timeout.ms", RESEND_AFTER.as_millis().to_string());
    config.set("allow.auto.create.topics", "false");
    config
}

#[cfg(test)]
#[path = "settings_test.rs"]
mod tests;
