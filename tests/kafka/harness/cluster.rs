//! Three brokers side by side, each a controller as well, so that any one of them can be killed.
//!
//! Owns their processes and directories. Keeps: what is written is on three of them, and is acknowledged by two.

use std::fmt::Write as _;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::metadata::{Metadata, MetadataTopic};

use super::broker::{Broker, READY_BOUND, configure};
use super::{directory, wait};

const NODES: i32 = 3;
/// Replicas of everything, and who rules sooner when a controller is gone.
const PROPERTIES: &str = "\
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
controller.quorum.election.timeout.ms=500
controller.quorum.fetch.timeout.ms=1500
";

/// A cluster.
pub(crate) struct Cluster {
    nodes: Vec<Broker>,
}

impl Cluster {
    /// Starts a cluster, and waits until all of it is there.
    pub(crate) fn start(name: &str) -> Self {
        let names: Vec<String> = (1..=NODES).map(|node| format!("{name}-{node}")).collect();
        let ports: Vec<u16> = names.iter().map(|name| configure(&directory(name))).collect();
        let mut voters = String::new();
        for (node, port) in (1..).zip(&ports) {
            write!(voters, "{}{node}@127.0.0.1:{port}", if node == 1 { "" } else { "," }).unwrap();
        }
        let nodes = (1..).zip(&names).map(|(node, name)| {
            let own = format!("{PROPERTIES}node.id={node}\ncontroller.quorum.voters={voters}\n");
            Broker::launch(name, &own, None)
        });
        let mut cluster = Self { nodes: nodes.collect() };
        for node in &mut cluster.nodes {
            node.wait_until_ready();
        }
        cluster.wait_until_whole();
        cluster
    }

    /// Returns a broker, by the number that the cluster knows it by.
    pub(crate) fn node(&mut self, number: i32) -> &mut Broker {
        &mut self.nodes[usize::try_from(number - 1).unwrap()]
    }

    /// Returns all addresses.
    pub(crate) fn addresses(&self) -> String {
        self.nodes.iter().map(Broker::address).collect::<Vec<_>>().join(",")
    }

    /// Returns the configuration of a client that knows all brokers.
    pub(crate) fn client(&self) -> ClientConfig {
        let mut config = self.nodes[0].client();
        config.set("bootstrap.servers", self.addresses());
        config
    }

    /// Returns the number of the broker that leads a partition.
    pub(crate) fn leader(&self, topic: &str, partition: i32) -> i32 {
        wait::until(READY_BOUND, &format!("{topic} [{partition}] has a leader"), || {
            let metadata = self.metadata()?;
            let found = metadata.topics().iter().find(|found| found.name() == topic)?;
            let found = found.partitions().iter().find(|found| found.id() == partition)?;
            (found.leader() > 0).then_some(found.leader())
        })
    }

    /// Waits until every replica of every partition is in sync.
    pub(crate) fn wait_until_whole(&self) {
        wait::until_true(READY_BOUND, "all replicas are in sync", || {
            let Some(metadata) = self.metadata() else { return false };
            let mut partitions = metadata.topics().iter().flat_map(MetadataTopic::partitions);
            let is_whole = partitions.all(|partition| partition.isr().len() == partition.replicas().len());
            metadata.brokers().len() == self.nodes.len() && is_whole
        });
    }

    fn metadata(&self) -> Option<Metadata> {
        let consumer: BaseConsumer = self.client().create().unwrap();
        consumer.fetch_metadata(None, READY_BOUND).ok()
    }
}
