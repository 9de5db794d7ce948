//! One deployment of the service: its settings, its topics, its instances.
//!
//! Owns what tells one scenario from another on a shared broker: a prefix of topics and a group. Topics are made by the
//! service's own `topics create`, as an operator would.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use rdkafka::ClientConfig;
use serde_json::{Value, json};

use super::broker::Broker;
use super::commands::{Commands, Partitioner};
use super::reader::Reader;
use super::serve::{Environment, Serve};
use super::topics::TopicAdmin;
use super::{chaos, directory, free_port};

/// Partitions of every topic.
pub(crate) const PARTITIONS: i32 = 4;

/// Takes a name for one deployment for good: on brokers of their own, too, two of one name would share their state directories.
fn take_name(name: &str) {
    static TAKEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let is_new = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    assert!(is_new, "two scenarios call their deployment `{name}`; give one of them another name");
}

/// A deployment, with the kinds `email` and `payment`; the latter has an outbox.
pub(crate) struct Deployment {
    name: String,
    client: ClientConfig,
    directory: PathBuf,
    settings: Value,
}

impl Drop for Deployment {
    fn drop(&mut self) {
        // Brokers of ours end with the tests.
        if chaos::external_cluster().is_some() {
            self.remove_topics();
        }
    }
}

impl Deployment {
    /// Returns a deployment whose topics are made.
    pub(crate) fn new(broker: &Broker, name: &str) -> Self {
        Self::with(broker, name, |_| {})
    }

    /// Returns a deployment whose topics are made, with settings of its own.
    pub(crate) fn with(broker: &Broker, name: &str, change: impl FnOnce(&mut Value)) -> Self {
        Self::on(broker.client(), name, change)
    }

    /// The same on any cluster, whose clients are made from this configuration.
    pub(crate) fn on(client: ClientConfig, name: &str, change: impl FnOnce(&mut Value)) -> Self {
        let name = &chaos::name(name);
        take_name(name);
        let is_external = chaos::external_cluster().is_some();
        let mut settings = json!({
            "kafka": {
                "bootstrap_servers": client.get("bootstrap.servers"),
                "group": name,
                "session_timeout": "6s",
                "properties": {"broker.address.family": "v4"},
            },
            "topics": {
                "arm": format!("{name}.arm"),
                "changelog": format!("{name}.changelog"),
                "dead_letter": format!("{name}.dead-letter"),
                "results": format!("{name}.results"),
                "fired": format!("{name}.fired.{{kind}}"),
                "outbox": format!("{name}.outbox.{{kind}}"),
                "partitions": PARTITIONS,
                "replication_factor": 1,
            },
            "kinds": [{"number": 1, "name": "email"}, {"number": 2, "name": "payment", "outbox": true}],
            "store": {"memory_budget": "64MiB"},
            "log": {"level": "debug"},
        });
        if is_external {
            settings["topics"]["replication_factor"] = json!(-1);
            settings["kafka"]["properties"] = json!(chaos::properties().into_iter().collect::<BTreeMap<_, _>>());
        }
        change(&mut settings);
        let deployment = Self { name: name.to_owned(), client, directory: directory(name), settings };
        deployment.create_topics();
        deployment
    }

    /// Returns the full name of a topic, such as `arm` or `fired.email`.
    pub(crate) fn topic(&self, name: &str) -> String {
        format!("{}.{name}", self.name)
    }

    /// Returns the configuration of a client of the broker.
    pub(crate) fn client(&self) -> &ClientConfig {
        &self.client
    }

    /// Returns the consumer group.
    pub(crate) fn group(&self) -> &str {
        &self.name
    }

    /// Starts an instance and waits until it is ready.
    pub(crate) fn serve(&self, instance: &str) -> Serve {
        let mut serve = self.launch(instance);
        serve.wait_until_ready();
        serve
    }

    /// Starts an instance.
    pub(crate) fn launch(&self, instance: &str) -> Serve {
        self.launch_as(instance, instance, instance)
    }

    /// Starts a process that calls itself `instance` and keeps its state where `owner` keeps its own: both are mistakes of
    /// an operator unless all three names are one. Its files are named after `name`.
    pub(crate) fn launch_as(&self, name: &str, instance: &str, owner: &str) -> Serve {
        let change = |settings: &mut Value| {
            settings["instance"] = json!(instance);
            settings["state_dir"] = json!(self.state_directory(owner));
        };
        self.launch_with(name, change, &[])
    }

    /// Starts an instance with settings and an environment of its own.
    pub(crate) fn launch_with(
        &self,
        name: &str,
        change: impl FnOnce(&mut Value),
        environment: Environment<'_>,
    ) -> Serve {
        let admin_port = free_port();
        let mut settings = self.settings.clone();
        settings["instance"] = json!(name);
        settings["state_dir"] = json!(self.state_directory(name));
        settings["admin"] = json!({"listen": format!("127.0.0.1:{admin_port}")});
        change(&mut settings);
        let config = self.write_config(name, &settings);
        let log = self.directory.join(format!("{name}.log"));
        Serve::start(&format!("{}/{name}", self.name), &config, admin_port, log, environment)
    }

    /// Returns the configuration file for tools: no instance runs with it.
    pub(crate) fn config(&self) -> PathBuf {
        self.directory.join("topics.yaml")
    }

    /// Returns where an instance keeps its state.
    pub(crate) fn state_directory(&self, instance: &str) -> PathBuf {
        self.directory.join(format!("{instance}.state"))
    }

    /// Returns the position in the changelog of each partition of an instance, as far as it is durable; none while a store
    /// is being made.
    pub(crate) fn durable_positions(&self, instance: &str) -> BTreeMap<u32, i64> {
        let mut inspect = Command::new(env!("CARGO_BIN_EXE_punctual"));
        let output =
            inspect.args(["inspect", "--output", "json"]).arg(self.state_directory(instance)).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let stores = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let position = |store: Value| {
            let (_, partition) = store["directory"].as_str()?.rsplit_once("partition-")?;
            Some((partition.parse().ok()?, store["changelog_position"].as_i64()?))
        };
        stores.filter_map(position).collect()
    }

    /// Returns a client that sends commands as it should.
    pub(crate) fn commands(&self) -> Commands {
        self.commands_partitioned_by(Partitioner::Murmur2)
    }

    /// Returns a client that sends commands.
    pub(crate) fn commands_partitioned_by(&self, partitioner: Partitioner) -> Commands {
        Commands::new(&self.client, &self.topic("arm"), partitioner)
    }

    /// Returns a reader of the fired events of all kinds.
    pub(crate) fn fired(&self) -> Reader {
        self.reader(&["fired.email", "fired.payment"])
    }

    /// Returns a reader of topics, named as in [`Deployment::topic`].
    pub(crate) fn reader(&self, topics: &[&str]) -> Reader {
        let topics: Vec<_> = topics.iter().map(|topic| self.topic(topic)).collect();
        Reader::start(&self.client, &topics)
    }

    /// Removes its topics.
    fn remove_topics(&self) {
        TopicAdmin::new(&self.client).delete_all_with_prefix(&format!("{}.", self.name));
    }

    fn create_topics(&self) {
        let config = self.write_config("topics", &self.settings);
        let mut create = Command::new(env!("CARGO_BIN_EXE_punctual"));
        // Scenarios run side by side, and a broker that has hundreds of partitions to make takes its time.
        let output = create.args(["topics", "create", "--timeout", "1m", "--config"]).arg(config).output().unwrap();
        assert!(output.status.success(), "topics create failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Writes settings as a configuration file; JSON is YAML too.
    fn write_config(&self, name: &str, settings: &Value) -> PathBuf {
        let path = self.directory.join(format!("{name}.yaml"));
        fs::write(&path, format!("{settings:#}")).unwrap();
        path
    }
}
