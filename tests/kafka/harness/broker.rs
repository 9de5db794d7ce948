//! A Kafka broker: Apache Kafka itself, as `scripts/kafka` sets it up.
//!
//! Owns the broker's process and its directory. Keeps: a broker that is started again has the address and the data it had.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rustix::process::Signal;

use super::process::{Process, command};
use super::{directory, wait};

/// Formatting and starting take about five seconds on two cores, and much longer when the machine is busy.
const READY_BOUND: Duration = Duration::from_mins(2);

/// A broker, running or not.
pub(crate) struct Broker {
    directory: PathBuf,
    process: Process,
}

impl Broker {
    /// Returns the broker that all scenarios share which do not restart it.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Broker> = OnceLock::new();
        SHARED.get_or_init(|| Self::start("broker"))
    }

    /// Starts a broker of its own, for a scenario that restarts it.
    pub(crate) fn start(name: &str) -> Self {
        let directory = directory(name);
        let process = start_process(&directory);
        let mut broker = Self { directory, process };
        broker.wait_until_ready();
        broker
    }

    /// Returns host and port.
    pub(crate) fn address(&self) -> String {
        fs::read_to_string(self.directory.join("address")).unwrap_or_default().trim().to_owned()
    }

    /// Returns the configuration of a client.
    pub(crate) fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.address()).set("log_level", "0").set("broker.address.family", "v4");
        config
    }

    /// Kills the broker with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Freezes the broker as a long pause of its machine would.
    pub(crate) fn freeze(&self) {
        self.process.signal(Signal::STOP);
    }

    /// Lets a frozen broker go on.
    pub(crate) fn thaw(&self) {
        self.process.signal(Signal::CONT);
    }

    /// Restarts the broker with more properties.
    pub(crate) fn reconfigure(&mut self, properties: &str) {
        let file = self.directory.join("server.properties");
        let all = fs::read_to_string(&file).unwrap() + properties;
        fs::write(file, all).unwrap();
        self.kill();
        self.start_again();
    }

    /// Starts the broker again after [`Broker::kill`], at the same address with the same data.
    pub(crate) fn start_again(&mut self) {
        self.process = start_process(&self.directory);
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        wait::until_true(READY_BOUND, "the broker answers", || {
            let log = self.directory.join("broker.log");
            assert!(self.process.ended().is_none(), "the broker has ended; its log is {}", log.display());
            !self.address().is_empty() && self.answers()
        });
    }

    fn answers(&self) -> bool {
        let probe: BaseConsumer = self.client().create().unwrap();
        probe.fetch_metadata(None, Duration::from_secs(1)).is_ok_and(|metadata| !metadata.brokers().is_empty())
    }
}

fn start_process(directory: &Path) -> Process {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/kafka");
    let mut broker = command(script);
    broker.arg("exec").arg(directory);
    Process::start("the broker", broker, &directory.join("broker.log"))
}
