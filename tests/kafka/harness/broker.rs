//! A Kafka broker: Apache Kafka itself, as `scripts/kafka` sets it up.
//!
//! Owns the broker's process and its directory. Keeps: a broker that is started again has the address and the data it had.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rustix::process::Signal;

use super::process::{Process, command};
use super::{chaos, directory, wait};

/// Formatting and starting take about five seconds on two cores, and much longer when the machine is busy.
pub(crate) const READY_BOUND: Duration = Duration::from_mins(2);

const OURS: &str = "only a broker of ours is hurt";

/// A broker, running or not; or a cluster that is not ours, and is not hurt.
pub(crate) struct Broker {
    directory: PathBuf,
    /// None of a cluster that is not ours.
    process: Option<Process>,
    /// How that cluster is reached.
    client: Option<ClientConfig>,
    /// The jars of another release than that of the other brokers.
    libs: Option<PathBuf>,
}

impl Broker {
    /// Returns the broker that all scenarios share which do not restart it.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Broker> = OnceLock::new();
        SHARED.get_or_init(|| match chaos::external_cluster() {
            Some(client) => Self { client: Some(client), directory: PathBuf::new(), process: None, libs: None },
            // The transaction of a killed client is ended at its time-out, not up to ten seconds later. A broker that is
            // restarted must not look that often; see scripts/kafka.
            None => Self::start_with("broker", "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000\n"),
        })
    }

    /// Starts a broker of its own, for a scenario that restarts it.
    pub(crate) fn start(name: &str) -> Self {
        Self::start_with(name, "")
    }

    /// Starts a broker of its own with more properties, one a line.
    pub(crate) fn start_with(name: &str, properties: &str) -> Self {
        let mut broker = Self::launch(name, properties, None);
        broker.wait_until_ready();
        broker
    }

    /// Launches a broker, of another release if `libs` holds its jars, without waiting until it answers.
    pub(crate) fn launch(name: &str, properties: &str, libs: Option<PathBuf>) -> Self {
        let directory = directory(name);
        configure(&directory);
        append(&directory, properties);
        let process = Some(start_process(&directory, libs.as_deref()));
        Self { directory, process, libs, client: None }
    }

    /// Returns host and port.
    pub(crate) fn address(&self) -> String {
        fs::read_to_string(self.directory.join("address")).unwrap_or_default().trim().to_owned()
    }

    /// Returns the configuration of a client.
    pub(crate) fn client(&self) -> ClientConfig {
        if let Some(client) = &self.client {
            return client.clone();
        }
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.address()).set("log_level", "0").set("broker.address.family", "v4");
        config
    }

    /// Kills the broker with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.process().kill();
    }

    /// Freezes the broker as a long pause of its machine would.
    pub(crate) fn freeze(&self) {
        self.process.as_ref().expect(OURS).signal(Signal::STOP);
    }

    /// Lets a frozen broker go on.
    pub(crate) fn thaw(&self) {
        self.process.as_ref().expect(OURS).signal(Signal::CONT);
    }

    /// Restarts the broker with more properties.
    pub(crate) fn reconfigure(&mut self, properties: &str) {
        append(&self.directory, properties);
        self.kill();
        self.start_again();
    }

    /// Starts the broker again after [`Broker::kill`], at the same address with the same data.
    pub(crate) fn start_again(&mut self) {
        self.process = Some(start_process(&self.directory, self.libs.as_deref()));
        self.wait_until_ready();
    }

    /// Returns the port that clients connect to.
    pub(crate) fn port(&self) -> u16 {
        self.address().rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// Waits until the broker answers.
    pub(crate) fn wait_until_ready(&mut self) {
        wait::until_true(READY_BOUND, "the broker answers", || {
            let log = self.directory.join("broker.log");
            assert!(self.process().ended().is_none(), "the broker has ended; its log is {}", log.display());
            !self.address().is_empty() && self.answers()
        });
    }

    fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect(OURS)
    }

    fn answers(&self) -> bool {
        let probe: BaseConsumer = self.client().create().unwrap();
        probe.fetch_metadata(None, Duration::from_secs(1)).is_ok_and(|metadata| !metadata.brokers().is_empty())
    }
}

/// Writes the settings of a broker, unless they are there, and returns its port for controllers.
pub(crate) fn configure(directory: &Path) -> u16 {
    if !directory.join("address").exists() {
        let output = Command::new(script()).arg("configure").arg(directory).output().unwrap();
        assert!(output.status.success(), "a broker is configured: {output:?}");
    }
    let properties = fs::read_to_string(directory.join("server.properties")).unwrap();
    let port = properties.lines().find_map(|line| line.strip_prefix("controller.quorum.voters=1@127.0.0.1:"));
    port.and_then(|port| port.parse().ok()).expect("the settings name the controller")
}

/// Adds properties; of two with one name the later counts.
fn append(directory: &Path, properties: &str) {
    let file = directory.join("server.properties");
    let all = fs::read_to_string(&file).unwrap() + properties;
    fs::write(file, all).unwrap();
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/kafka")
}

fn start_process(directory: &Path, libs: Option<&Path>) -> Process {
    let mut broker = command(script());
    broker.arg("exec").arg(directory);
    if let Some(libs) = libs {
        broker.env("PUNCTUAL_KAFKA_LIBS", libs);
    }
    Process::start("the broker", broker, &directory.join("broker.log"))
}
