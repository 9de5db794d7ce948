//! The topics as an administrator sees them: created with the right policies, and checked against what is needed.
//!
//! Owns [`Topics`]: [`Topics::inspect`] reads what is there and judges it, [`Topics::create`] makes what is missing.
//! Never alters or deletes a topic that exists: what is wrong with it is a [`Finding`] with its remedy, for a person.
//! Keeps: each call ends within a few times the given timeout, and a broker that does not answer is an error that names
//! the bootstrap servers.

mod facts;
pub mod findings;
pub mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::RDKafkaErrorCode;

use self::facts::Cluster;
use self::findings::{Finding, Severity};
use self::plan::{Layout, PlannedTopic, TopicSpec};
use super::tool::waiting::wait;
use super::tool::{Connection, describe, describe_code};
use crate::log::LogError;
use crate::timer::limits::Limits;

/// What is known of the topics, and what is wrong with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// What is wrong, errors first.
    pub findings: Vec<Finding>,
    /// The partition count of the command topic; more than the changelog has are only forwarded.
    pub arm_partitions: Option<u32>,
    /// The partition count of the changelog, by which commands are routed; `None` when it is missing.
    pub changelog_partitions: Option<u32>,
    /// How long the changelog keeps tombstones; a local store older than half of it must be discarded.
    pub delete_retention: Option<Duration>,
    /// The largest record that the changelog takes.
    pub changelog_bytes_max: Option<usize>,
    /// The largest record that the command topic takes.
    pub arm_bytes_max: Option<usize>,
    /// The largest record that the dead-letter topic takes.
    pub dead_letter_bytes_max: Option<usize>,
    /// The largest record that every fired topic takes.
    pub fired_bytes_max: Option<usize>,
}

impl Inspection {
    /// Returns the findings that keep the service from working right.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Error)
    }
}

/// What became of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation {
    /// The topic.
    pub topic: String,
    /// What it is for.
    pub role: String,
    /// What was done.
    pub done: Done,
}

/// What [`Topics::create`] did about a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was there before and is as it was.
    Existed {
        /// Its partition count.
        partitions: u32,
    },
    /// It was created.
    Created(TopicSpec),
    /// The broker refused.
    Failed {
        /// The broker's reason.
        detail: String,
    },
}

/// An administrator's connection.
pub struct Topics {
    connection: Connection,
    admin: AdminClient<DefaultClientContext>,
    timeout: Duration,
}

impl Topics {
    /// Prepares a connection with the user's librdkafka properties. `timeout` bounds each request.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when a property is refused.
    pub fn new(
        bootstrap_servers: &str,
        properties: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> Result<Self, LogError> {
        let connection = Connection::new(bootstrap_servers, properties, timeout)?;
        let admin = connection.config().create().map_err(|error| LogError::Fatal {
            doing: "creating the Kafka admin client".to_owned(),
            detail: error.to_string(),
        })?;
        Ok(Self { connection, admin, timeout })
    }

    /// Reads the planned topics and judges them; `limits` are those that arms are judged by.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when no broker answers in time, [`LogError::Fatal`] when one does not describe a topic to us.
    pub fn inspect(&self, planned: &[PlannedTopic], limits: &Limits) -> Result<Inspection, LogError> {
        let cluster = facts::read(&self.connection, &self.admin, planned, self.timeout)?;
        let mut inspection =
            Inspection { findings: findings::judge(planned, &cluster, limits), ..Inspection::default() };
        if let Some(changelog) = planned.iter().find(|p| p.is_changelog()).and_then(|p| cluster.topics.get(&p.name)) {
            inspection.changelog_partitions = Some(changelog.partitions);
            inspection.delete_retention = changelog.millis("delete.retention.ms").map(Duration::from_millis);
            inspection.changelog_bytes_max = changelog.bytes_max();
        }
        let arm = planned.iter().find(|p| p.is_arm()).and_then(|p| cluster.topics.get(&p.name));
        inspection.arm_partitions = arm.map(|arm| arm.partitions);
        inspection.arm_bytes_max = arm.and_then(facts::TopicFacts::bytes_max);
        let dead_letter = planned.iter().find(|p| p.is_dead_letter()).and_then(|p| cluster.topics.get(&p.name));
        inspection.dead_letter_bytes_max = dead_letter.and_then(facts::TopicFacts::bytes_max);
        let fired = planned.iter().filter(|p| p.is_fired()).filter_map(|p| cluster.topics.get(&p.name));
        inspection.fired_bytes_max = fired.filter_map(facts::TopicFacts::bytes_max).min();
        Ok(inspection)
    }

    /// Creates the planned topics that are missing and waits until they can be used. Called again, it changes nothing.
    ///
    /// # Errors
    /// [`LogError::Retriable`] when no broker answers in time. What a broker says about one topic is in its
    /// [`Creation`].
    pub fn create(&self, planned: &[PlannedTopic], layout: Layout) -> Result<Vec<Creation>, LogError> {
        let cluster = facts::existing(&self.connection, planned)?;
        let specs = plan::missing(planned, &cluster, layout);
        let failures = self.create_all(&specs, cluster.brokers)?;
        let created = specs.iter().filter(|spec| !failures.contains_key(&spec.name));
        let created = created.map(|spec| (spec.name.as_str(), spec.partitions)).collect();
        self.connection.wait_until_usable(&created)?;
        let mut seen = BTreeSet::new();
        let unique = planned.iter().filter(|topic| seen.insert(&topic.name));
        Ok(unique.map(|topic| creation(topic, &cluster, &specs, &failures)).collect())
    }

    fn create_all(&self, specs: &[TopicSpec], brokers: usize) -> Result<BTreeMap<String, String>, LogError> {
        if specs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let options = AdminOptions::new().request_timeout(Some(self.timeout)).operation_timeout(Some(self.timeout));
        let topics: Vec<NewTopic<'_>> = specs.iter().map(new_topic).collect();
        let results = wait(self.admin.create_topics(&topics, &options)).map_err(|error| LogError::Retriable {
            doing: format!("creating topics on Kafka at {}", self.connection.servers()),
            detail: describe(&error),
        })?;
        let mut failures = BTreeMap::new();
        for result in results {
            match result {
                // Somebody else created it in the meantime: that is what was wanted.
                Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                Err((topic, code)) => {
                    failures.insert(topic, refusal(code, specs, brokers));
                }
            }
        }
        Ok(failures)
    }
}

fn refusal(code: RDKafkaErrorCode, specs: &[TopicSpec], brokers: usize) -> String {
    let words = describe_code(code);
    match specs.first() {
        Some(spec) if code == RDKafkaErrorCode::InvalidReplicationFactor => format!(
            "{words}: {} asked for, brokers: {brokers}; set topics.replication_factor (--replication) accordingly",
            spec.replication
        ),
        Some(_) | None => words,
    }
}

fn new_topic(spec: &TopicSpec) -> NewTopic<'_> {
    let partitions = i32::try_from(spec.partitions).unwrap_or(i32::MAX);
    let topic = NewTopic::new(&spec.name, partitions, TopicReplication::Fixed(spec.replication));
    spec.config.iter().fold(topic, |topic, (key, value)| topic.set(key, value))
}

fn creation(
    topic: &PlannedTopic,
    cluster: &Cluster,
    specs: &[TopicSpec],
    failures: &BTreeMap<String, String>,
) -> Creation {
    let existed = cluster.topics.get(&topic.name);
    let spec = specs.iter().find(|spec| spec.name == topic.name);
    let done = match (existed, failures.get(&topic.name), spec) {
        (Some(facts), _, _) => Done::Existed { partitions: facts.partitions },
        (None, Some(detail), _) => Done::Failed { detail: detail.clone() },
        (None, None, Some(spec)) => Done::Created(spec.clone()),
        (None, None, None) => Done::Failed { detail: "was not asked for".to_owned() },
    };
    Creation { topic: topic.name.clone(), role: topic.destination.to_string(), done }
}
