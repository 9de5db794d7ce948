//! The settings, typed.
//!
//! Owns [`Config`]; a section of `config/punctual.yaml` is a struct here, and a key is a field. Never has a default. Keeps: a
//! loaded [`Config`] holds only values that are valid each on their own; [`Config::validate`] judges them together.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::calendars;
use super::error::ConfigError;
use super::kinds::{self, KindSetting};
use super::layers::Layers;
use super::memory;
use super::sources::Sources;
use crate::calendar::rules::Rules;
use crate::timer::budget::Budget;
use crate::timer::kind::{KindNumber, Registry};
use crate::timer::limits::Limits;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const TIB: u64 = 1024 * 1024 * MIB;

/// All settings. Each field is described in `config/punctual.yaml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The name of this process among its peers; the host name if the setting is empty.
    pub instance: String,
    /// The directory of the local state.
    pub state_dir: PathBuf,
    /// Threads that fire.
    pub workers: usize,
    /// The `ce_source` of fired events.
    pub source: String,
    /// How to reach the brokers and the group.
    pub kafka: Kafka,
    /// The topics of all roles.
    pub topics: Topics,
    /// The kinds, in the order of the file.
    pub(super) kinds: Vec<KindSetting>,
    pub(super) registry: Registry,
    /// The rules, with the calendars of working days.
    pub calendar: Rules,
    pub(super) limits: Limits,
    pub(super) budget: Budget,
    /// Largest forward step of the clock that is believed at once.
    pub clock_max_step: Duration,
    /// How long arms may wait for a commit when nothing fires.
    pub commit_linger: Duration,
    /// A restore that reads nothing new for this long ends the process.
    pub restore_stall_timeout: Duration,
    /// Local state.
    pub store: Store,
    /// Where the admin server listens.
    pub admin_listen: SocketAddr,
    /// How long a stop may take.
    pub shutdown_timeout: Duration,
    /// Log output.
    pub log: Log,
    pub(super) layers: Layers,
}

/// How to reach the brokers and the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kafka {
    /// Brokers to start from.
    pub bootstrap_servers: String,
    /// The consumer group.
    pub group: String,
    /// Whether a restart keeps its partitions.
    pub static_membership: bool,
    /// How long a silent process keeps its partitions.
    pub session_timeout: Duration,
    /// librdkafka's own properties.
    pub properties: BTreeMap<String, String>,
}

/// The topics of all roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    /// Where commands arrive.
    pub arm: String,
    /// Where state lives.
    pub changelog: String,
    /// Where unreadable records go.
    pub dead_letter: String,
    /// Where outcomes go, if anywhere.
    pub results: Option<String>,
    /// Where fired events go: all kinds.
    pub fired: BTreeMap<KindNumber, String>,
    /// Where outbox records go: the kinds that have an outbox.
    pub outbox: BTreeMap<KindNumber, String>,
    /// Partitions of created topics.
    pub partitions: u32,
    /// Replicas of created topics; −1 is the broker's default.
    pub replication_factor: i16,
}

/// Local state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Memory for caches and write buffers.
    pub memory_budget: MemoryBudget,
    /// How often a changed store is made durable.
    pub flush_interval: Duration,
}

/// Memory for caches and write buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBudget {
    /// A share of what the process may use.
    Auto,
    /// So many bytes.
    Bytes(u64),
}

/// Log output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// How a line looks.
    pub format: LogFormat,
    /// What is logged unless `RUST_LOG` says otherwise.
    pub level: &'static str,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Human,
    /// For collectors.
    Json,
}

impl Config {
    /// Merges the sources and reads every key.
    ///
    /// # Errors
    /// When a key is unknown or given twice, or its value is not what it must be. Show the text and stop.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let layers = Layers::merge(sources)?;
        let kinds = kinds::read(&layers)?;
        let instance = layers.text("instance")?.text;
        Ok(Self {
            instance: if instance.is_empty() { sources.host_name.clone() } else { instance.to_owned() },
            state_dir: PathBuf::from(layers.text("state_dir")?.non_empty()?),
            workers: layers.text("workers")?.count(1..=256)?,
            source: layers.text("source")?.non_empty()?,
            kafka: Kafka::read(&layers)?,
            topics: Topics::read(&layers, &kinds)?,
            registry: kinds::registry(&kinds)?,
            calendar: calendars::read(&layers)?,
            kinds,
            limits: read_limits(&layers)?,
            budget: read_budget(&layers)?,
            clock_max_step: layers.text("clock.max_step")?.duration(SECOND..=HOUR)?,
            commit_linger: layers.text("commit.linger")?.duration(Duration::ZERO..=5 * SECOND)?,
            restore_stall_timeout: layers.text("restore.stall_timeout")?.duration(SECOND..=HOUR)?,
            store: Store::read(&layers)?,
            admin_listen: layers.text("admin.listen")?.address()?,
            shutdown_timeout: layers.text("shutdown.timeout")?.duration(SECOND..=HOUR)?,
            log: Log::read(&layers)?,
            layers,
        })
    }

    /// Returns the kinds.
    pub fn registry(&self) -> Registry {
        self.registry.clone()
    }

    /// Returns the limits that arms are judged by.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns what one tick may do.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Returns the bytes for caches and write buffers; `auto` asks the host, whose files are found below `root` (`/`).
    pub fn memory_budget_bytes(&self, root: &Path) -> u64 {
        match self.store.memory_budget {
            MemoryBudget::Auto => memory::auto_budget_bytes(root),
            MemoryBudget::Bytes(bytes) => bytes,
        }
    }
}

impl Kafka {
    fn read(layers: &Layers) -> Result<Self, ConfigError> {
        let mut properties = BTreeMap::new();
        for (name, setting) in layers.properties() {
            if let super::yaml::Node::Text { text, .. } = &setting.node {
                properties.insert(name.to_owned(), text.clone());
            }
        }
        Ok(Self {
            bootstrap_servers: layers.text("kafka.bootstrap_servers")?.non_empty()?,
            group: layers.text("kafka.group")?.non_empty()?,
            static_membership: layers.text("kafka.static_membership")?.boolean()?,
            session_timeout: layers.text("kafka.session_timeout")?.duration(SECOND..=HOUR / 2)?,
            properties,
        })
    }
}

impl Topics {
    fn read(layers: &Layers, kinds: &[KindSetting]) -> Result<Self, ConfigError> {
        let results = layers.text("topics.results")?.text;
        let replicas = layers.text("topics.replication_factor")?;
        Ok(Self {
            arm: layers.text("topics.arm")?.non_empty()?,
            changelog: layers.text("topics.changelog")?.non_empty()?,
            dead_letter: layers.text("topics.dead_letter")?.non_empty()?,
            results: (!results.is_empty()).then(|| results.to_owned()),
            fired: kinds::fired_topics(kinds, &layers.text("topics.fired")?.non_empty()?),
            outbox: kinds::outbox_topics(kinds, &layers.text("topics.outbox")?.non_empty()?),
            partitions: layers.text("topics.partitions")?.count(1..=10_000)?,
            replication_factor: if replicas.text == "-1" { -1 } else { replicas.count(1..=100)? },
        })
    }
}

impl Store {
    fn read(layers: &Layers) -> Result<Self, ConfigError> {
        let budget = layers.text("store.memory_budget")?;
        Ok(Self {
            memory_budget: match budget.text {
                "auto" => MemoryBudget::Auto,
                _ => MemoryBudget::Bytes(budget.size(16 * MIB..=TIB)?),
            },
            flush_interval: layers.text("store.flush_interval")?.duration(SECOND..=HOUR)?,
        })
    }
}

impl Log {
    fn read(layers: &Layers) -> Result<Self, ConfigError> {
        let levels = ["error", "warn", "info", "debug", "trace"].map(|level| (level, level));
        Ok(Self {
            format: layers.text("log.format")?.choice(&[("human", LogFormat::Human), ("json", LogFormat::Json)])?,
            level: layers.text("log.level")?.choice(&levels)?,
        })
    }
}

fn read_limits(layers: &Layers) -> Result<Limits, ConfigError> {
    Ok(Limits {
        horizon: layers.text("limits.horizon")?.duration(SECOND..=36_500 * DAY)?,
        skew_max: layers.text("clock.max_skew")?.duration(Duration::ZERO..=DAY)?,
        fired_bytes_max: layers.text("limits.fired_bytes_max")?.size_in_memory(16 * KIB..=16 * MIB)?,
        outbox_bytes_max: layers.text("limits.outbox_bytes_max")?.size_in_memory(KIB..=16 * MIB)?,
        ..Limits::default()
    })
}

fn read_budget(layers: &Layers) -> Result<Budget, ConfigError> {
    Ok(Budget {
        fired_max: layers.text("tick.fired_max")?.count(1..=1_000_000)?,
        fired_per_kind_max: layers.text("tick.fired_per_kind_max")?.count(1..=1_000_000)?,
        fired_per_tenant_max: layers.text("tick.fired_per_tenant_max")?.count(1..=1_000_000)?,
        scanned_max: layers.text("tick.scanned_max")?.count(1..=10_000_000)?,
        bytes_max: layers.text("tick.bytes_max")?.size_in_memory(KIB..=1024 * MIB)?,
        elapsed_max: layers.text("tick.elapsed_max")?.duration(MILLISECOND..=5 * SECOND)?,
    })
}

#[cfg(test)]
#[path = "settings_test.rs"]
mod tests;
