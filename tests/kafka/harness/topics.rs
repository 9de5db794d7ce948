//! What an operator does to topics: create, delete, widen, truncate, set.
//!
//! Owns an admin client and its runtime. Keeps: a call returns when the cluster has said that it is done, and fails the test
//! when it says otherwise.

use std::time::Duration;

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::wait;

const BOUND: Duration = Duration::from_secs(30);

/// An operator's hands on the topics of a cluster.
pub(crate) struct TopicAdmin {
    client: ClientConfig,
    admin: AdminClient<DefaultClientContext>,
    options: AdminOptions,
    runtime: tokio::runtime::Runtime,
}

impl TopicAdmin {
    pub(crate) fn new(client: &ClientConfig) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let options = AdminOptions::new().operation_timeout(Some(BOUND)).request_timeout(Some(BOUND));
        Self { client: client.clone(), admin: client.create().unwrap(), options, runtime }
    }

    /// Creates a topic on one broker.
    pub(crate) fn create(&self, topic: &str, partitions: i32, settings: &[(&str, &str)]) {
        let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
        for (key, value) in settings {
            new = new.set(key, value);
        }
        // A topic of that name that was just deleted may not be gone everywhere.
        wait::until_true(BOUND, &format!("{topic} is created"), || {
            let created = self.runtime.block_on(self.admin.create_topics([&new], &self.options)).unwrap();
            created.iter().all(Result::is_ok)
        });
    }

    /// Deletes a topic, and waits until it is gone.
    pub(crate) fn delete(&self, topic: &str) {
        let deleted = self.runtime.block_on(self.admin.delete_topics(&[topic], &self.options)).unwrap();
        assert!(deleted.iter().all(Result::is_ok), "{topic} is deleted: {deleted:?}");
        wait::until_true(BOUND, &format!("{topic} is gone"), || self.partitions(topic) == 0);
    }

    /// Deletes the topics whose names start so; those that cannot be deleted are left for the operator to see.
    pub(crate) fn delete_all_with_prefix(&self, prefix: &str) {
        let Ok(metadata) = self.consumer().fetch_metadata(None, BOUND) else { return };
        let names = metadata.topics().iter().map(rdkafka::metadata::MetadataTopic::name);
        let ours: Vec<&str> = names.filter(|name| name.starts_with(prefix)).collect();
        drop(self.runtime.block_on(self.admin.delete_topics(&ours, &self.options)));
    }

    /// Deletes a topic and creates it anew: the same name, another topic.
    pub(crate) fn recreate(&self, topic: &str, partitions: i32, settings: &[(&str, &str)]) {
        self.delete(topic);
        self.create(topic, partitions, settings);
    }

    /// Adds partitions until there are `partitions`.
    pub(crate) fn widen(&self, topic: &str, partitions: usize) {
        let wider = NewPartitions::new(topic, partitions);
        let widened = self.runtime.block_on(self.admin.create_partitions([&wider], &self.options)).unwrap();
        assert!(widened.iter().all(Result::is_ok), "{topic} is widened: {widened:?}");
        wait::until_true(BOUND, &format!("{topic} is wider"), || self.partitions(topic) == partitions);
    }

    /// Removes all records that a topic has now.
    pub(crate) fn truncate(&self, topic: &str) {
        let mut ends = TopicPartitionList::new();
        for partition in 0..i32::try_from(self.partitions(topic)).unwrap() {
            ends.add_partition_offset(topic, partition, Offset::End).unwrap();
        }
        self.runtime.block_on(self.admin.delete_records(&ends, &self.options)).unwrap();
        let consumer = self.consumer();
        wait::until_true(BOUND, &format!("{topic} is empty"), || {
            ends.elements().iter().all(|element| {
                let extent = consumer.fetch_watermarks(topic, element.partition(), BOUND);
                extent.is_ok_and(|(start, end)| start == end)
            })
        });
    }

    /// Sets settings of a topic; those that are not named go back to their defaults.
    pub(crate) fn set(&self, topic: &str, settings: &[(&str, &str)]) {
        let mut change = AlterConfig::new(ResourceSpecifier::Topic(topic));
        for (key, value) in settings {
            change = change.set(key, value);
        }
        let changed = self.runtime.block_on(self.admin.alter_configs([&change], &self.options)).unwrap();
        assert!(changed.iter().all(Result::is_ok), "{topic} is changed: {changed:?}");
    }

    /// Returns the end of each partition of a topic, records of open transactions and markers included.
    pub(crate) fn ends(&self, topic: &str) -> Vec<i64> {
        let consumer = self.consumer();
        let partitions = 0..i32::try_from(self.partitions(topic)).unwrap();
        partitions.map(|partition| consumer.fetch_watermarks(topic, partition, BOUND).unwrap().1).collect()
    }

    /// Returns how many partitions a topic has; 0 if there is none.
    fn partitions(&self, topic: &str) -> usize {
        let metadata = self.consumer().fetch_metadata(None, BOUND);
        let count = |metadata: rdkafka::metadata::Metadata| {
            metadata.topics().iter().find(|found| found.name() == topic).map_or(0, |found| found.partitions().len())
        };
        metadata.map_or(0, count)
    }

    fn consumer(&self) -> BaseConsumer {
        self.client.create().unwrap()
    }
}
