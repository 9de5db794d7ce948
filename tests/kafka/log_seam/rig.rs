//! What the scenarios of the seam stand on: topics of their own, logs, and loops that drive them.
//!
//! Owns a set of topics on a broker. Keeps: what a log is asked to write is told apart by its value, so that a reader
//! knows what became visible.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use punctual::log::kafka::KafkaLog;
use punctual::log::kafka::settings::{KafkaSettings, Topics};
use punctual::log::{CommitOutcome, Committed, Destination, Emission, Log, LogError, LogEvent, Transaction};
use punctual::position::{Partition, Position};
use punctual::time::Clock;
use punctual::time::system::SystemClock;
use punctual::timer::kind::KindNumber;
use punctual::timer::model::Header;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::harness::broker::Broker;
use crate::harness::reader::{Reader, Received};
use crate::harness::wait;

pub(crate) const BOUND: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);
const ALL: usize = 100_000;

/// Topics of one scenario.
pub(crate) struct Rig {
    pub(crate) client: ClientConfig,
    pub(crate) topics: Topics,
    name: String,
    partitions: u32,
}

impl Rig {
    /// Returns the fired topic of kind 1 or 2.
    pub(crate) fn fired_topic(&self, kind: u32) -> &str {
        &self.topics.fired[&KindNumber::new(kind).unwrap()]
    }

    /// Creates the topics.
    pub(crate) fn new(broker: &Broker, name: &str, partitions: u32) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("seam-{}-{name}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let of_kind = |what: &str| {
            let numbers = [1, 2].map(|number| KindNumber::new(number).unwrap());
            numbers.map(|number| (number, format!("{name}.{what}.{number}"))).into_iter().collect()
        };
        let topics = Topics {
            arm: format!("{name}.arm"),
            changelog: format!("{name}.changelog"),
            dead_letter: format!("{name}.dead-letter"),
            results: Some(format!("{name}.results")),
            fired: of_kind("fired"),
            outbox: of_kind("outbox"),
        };
        let rig = Self { client: broker.client(), topics, name, partitions };
        let topics = &rig.topics;
        let kinds = topics.fired.values().chain(topics.outbox.values());
        let all = [&topics.arm, &topics.changelog, &topics.dead_letter].into_iter().chain(&topics.results).chain(kinds);
        for topic in all {
            rig.create(topic);
        }
        rig
    }

    /// Creates a topic; the changelog is compacted, and its records have the broker's time.
    pub(crate) fn create(&self, topic: &str) {
        let mut new = NewTopic::new(topic, i32::try_from(self.partitions).unwrap(), TopicReplication::Fixed(1));
        if topic == self.topics.changelog {
            new = new.set("cleanup.policy", "compact").set("message.timestamp.type", "LogAppendTime");
        }
        let created = block_on(self.admin().create_topics([&new], &AdminOptions::new())).unwrap();
        assert!(created.iter().all(Result::is_ok), "{topic} is created: {created:?}");
    }

    pub(crate) fn delete(&self, topic: &str) {
        let deleted = block_on(self.admin().delete_topics(&[topic], &AdminOptions::new())).unwrap();
        assert!(deleted.iter().all(Result::is_ok), "{topic} is deleted: {deleted:?}");
    }

    /// Gives a topic so many partitions.
    pub(crate) fn add_partitions(&self, topic: &str, count: usize) {
        let more = NewPartitions::new(topic, count);
        let added = block_on(self.admin().create_partitions([&more], &AdminOptions::new())).unwrap();
        assert!(added.iter().all(Result::is_ok), "{topic} has {count} partitions: {added:?}");
    }

    /// Gives everybody the right to read a topic, and thereby nobody the right to write to it. No client in Rust can.
    pub(crate) fn allow_reading_only(&self, topic: &str) {
        let kafka_libs = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/kafka-libs");
        let libs = String::from_utf8(Command::new(kafka_libs).output().unwrap().stdout).unwrap();
        let mut command = Command::new("java");
        command.args(["-cp", &format!("{}/*", libs.trim()), "org.apache.kafka.tools.AclCommand"]);
        command.args(["--bootstrap-server", self.client.get("bootstrap.servers").unwrap(), "--add", "--topic", topic]);
        command.args(["--allow-principal", "User:*", "--operation", "Read", "--operation", "Describe"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    pub(crate) fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.client.create().unwrap()
    }

    /// Starts an independent reader of a topic.
    pub(crate) fn reader(&self, topic: &str) -> Reader {
        Reader::start(&self.client, &[topic.to_owned()])
    }

    /// Returns the settings of a dynamic member with a short session.
    pub(crate) fn settings(&self, instance: &str) -> KafkaSettings {
        KafkaSettings {
            bootstrap_servers: self.client.get("bootstrap.servers").unwrap().to_owned(),
            properties: BTreeMap::from([("broker.address.family".to_owned(), "v4".to_owned())]),
            group: self.name.clone(),
            instance: instance.to_owned(),
            static_membership: false,
            session_timeout: Duration::from_secs(6),
            topics: self.topics.clone(),
            partitions: self.partitions,
        }
    }

    /// Connects a member and lets it accept everything that it is given until it holds `count` partitions.
    pub(crate) fn member(&self, instance: &str, count: usize) -> Member {
        let mut member = Member::connect(&self.settings(instance));
        member.hold(count);
        member
    }

    /// Produces a transaction of somebody else, and leaves it open.
    pub(crate) fn open_transaction(&self, id: &str, topic: &str, values: &[&str]) -> BaseProducer {
        let mut config = self.client.clone();
        config.set("transactional.id", format!("{}-{id}", self.name)).set("transaction.timeout.ms", "3000");
        let producer: BaseProducer = config.set("message.timeout.ms", "3000").create().unwrap();
        producer.init_transactions(BOUND).unwrap();
        producer.begin_transaction().unwrap();
        for value in values {
            let record = BaseRecord::to(topic).partition(0).key(*value).payload(*value);
            producer.send(record).map_err(|(error, _)| error).unwrap();
        }
        producer.flush(BOUND).unwrap();
        producer
    }
}

/// A log and what it holds.
pub(crate) struct Member {
    pub(crate) log: KafkaLog,
    pub(crate) held: BTreeMap<Partition, Position>,
}

impl Member {
    pub(crate) fn connect(settings: &KafkaSettings) -> Self {
        // A topic that was just created is not known everywhere at once.
        let log = wait::until(BOUND, "the member is connected", || match KafkaLog::connect(settings) {
            Ok(log) => Some(log),
            Err(LogError::Retriable { .. }) => None,
            Err(error @ LogError::Fatal { .. }) => panic!("{error}"),
        });
        Self { log, held: BTreeMap::new() }
    }

    /// Polls once, obeys the group, and returns the events that are not about it.
    pub(crate) fn poll(&mut self) -> Result<Vec<LogEvent>, LogError> {
        let mut rest = Vec::new();
        for event in self.log.poll(POLL, ALL, ALL * 100)? {
            match event {
                LogEvent::Assigned(partitions) => {
                    self.log.accept(&partitions)?;
                    for partition in partitions {
                        let position = self.position_of(partition)?;
                        self.held.insert(partition, position);
                    }
                }
                LogEvent::Revoked(partitions) | LogEvent::Lost(partitions) => {
                    self.held.retain(|partition, _| !partitions.contains(partition));
                    self.log.release(&partitions)?;
                }
                event @ (LogEvent::Record(_) | LogEvent::Changelog(_) | LogEvent::OutOfRange(_)) => rest.push(event),
            }
        }
        Ok(rest)
    }

    /// Asks until the group's coordinator answers: one that has just come back may not know yet that it is it.
    fn position_of(&mut self, partition: Partition) -> Result<Position, LogError> {
        wait::until(BOUND, "the position is told", || match self.log.fencing_position(partition) {
            Ok(fencing) => Some(Ok(fencing.position)),
            Err(LogError::Retriable { .. }) => None,
            Err(error @ LogError::Fatal { .. }) => Some(Err(error)),
        })
    }

    /// Polls until exactly `count` partitions are held.
    pub(crate) fn hold(&mut self, count: usize) {
        wait::until_true(BOUND, &format!("{count} partitions are held"), || {
            self.poll().unwrap();
            self.held.len() == count
        });
    }

    /// Polls until `found` yields something of an event.
    pub(crate) fn find<T>(&mut self, what: &str, mut found: impl FnMut(LogEvent) -> Option<T>) -> T {
        wait::until(BOUND, what, || {
            let mut all = None;
            for event in self.poll().unwrap() {
                all = all.take().or(found(event));
            }
            all
        })
    }

    /// Commits records at the positions that are held.
    pub(crate) fn commit(&mut self, emissions: Vec<Emission>) -> CommitOutcome {
        self.log.commit(&Transaction { emissions, positions: self.held.clone() })
    }

    /// The same, when it must succeed: an abort or an unknown outcome, while the group or a coordinator comes back, is followed
    /// by another try, as a worker would.
    pub(crate) fn commit_surely(&mut self, emissions: &[Emission]) -> Committed {
        wait::until(BOUND, "the transaction commits", || match self.commit(emissions.to_vec()) {
            CommitOutcome::Committed(committed) => Some(committed),
            CommitOutcome::Aborted(_) => {
                self.poll().unwrap();
                None
            }
            CommitOutcome::Unknown { .. } => {
                wait::until_true(BOUND, "new producers are ready", || {
                    self.poll().unwrap();
                    self.log.rebuild().is_ok()
                });
                None
            }
        })
    }
}

/// Returns a record of the changelog of partition 0.
pub(crate) fn state(key: &str) -> Emission {
    let partition = Some(Partition(0));
    Emission { partition, ..emission(Destination::Changelog, key) }
}

/// Returns a fired event of kind 1 or 2.
pub(crate) fn fired(kind: u32, value: &str) -> Emission {
    emission(Destination::Fired(KindNumber::new(kind).unwrap()), value)
}

/// Returns a record with this text as key and value, and a header that stands twice.
pub(crate) fn emission(to: Destination, text: &str) -> Emission {
    let header = |value: Option<&str>| Header {
        key: "name".to_owned(),
        value: value.map(|value| Bytes::copy_from_slice(value.as_bytes())),
    };
    Emission {
        to,
        partition: None,
        key: Some(Bytes::copy_from_slice(text.as_bytes())),
        value: Some(Bytes::copy_from_slice(text.as_bytes())),
        headers: vec![header(Some("")), header(None)],
        timestamp: None,
    }
}

/// Returns the values of records as text.
pub(crate) fn values(records: &[Received]) -> Vec<&str> {
    records.iter().map(Received::text).collect()
}

/// Returns what a call returns, and how long it took.
pub(crate) fn timed<T>(call: impl FnOnce() -> T) -> (T, Duration) {
    let began = SystemClock.boot();
    let returned = call();
    (returned, SystemClock.boot().saturating_sub(began))
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
