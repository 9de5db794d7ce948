//! The threads of the workers.
//!
//! Owns their start, the flag that stops them, and their ends. Keeps: an end, also a panic, is told exactly once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::config::convert::TopicFacts;
use crate::config::settings::Config;
use crate::log::LogError;
use crate::log::kafka::KafkaLog;
use crate::store::rocks::stores::StateDirectory;
use crate::telemetry::health::Health;
use crate::telemetry::observer::WorkerObserver;
use crate::time::Clock;
use crate::time::system::SystemClock;
use crate::timer::handler::Handlers;
use crate::worker::Worker;
use crate::worker::observer::Observer;

/// Longest one try to connect may take before it counts as hung.
const CONNECT_BOUND: Duration = Duration::from_mins(1);
/// Between two tries to connect.
const CONNECT_PAUSE: Duration = Duration::from_secs(1);

/// What every worker gets a copy of.
pub(super) struct WorkerParts {
    pub(super) config: Config,
    pub(super) facts: TopicFacts,
    pub(super) handlers: Handlers,
    pub(super) stores: StateDirectory,
    pub(super) health: Arc<Health>,
}

/// The running workers.
pub(super) struct Threads {
    stop: Arc<AtomicBool>,
    ends: UnboundedReceiver<Result<()>>,
    running: usize,
}

impl Threads {
    /// Starts the workers.
    pub(super) fn start(workers: usize, parts: &WorkerParts) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, ends) = unbounded_channel();
        for number in 0..workers {
            let thread = WorkerThread {
                number,
                config: parts.config.clone(),
                facts: parts.facts,
                handlers: parts.handlers.clone(),
                stores: parts.stores.clone(),
                health: Arc::clone(&parts.health),
                stop: Arc::clone(&stop),
            };
            let told: UnboundedSender<Result<()>> = told.clone();
            thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || {
                    let health = Arc::clone(&thread.health);
                    let end = catch_unwind(AssertUnwindSafe(|| thread.run()))
                        .unwrap_or_else(|_| Err(anyhow!("it panicked; the message stands above")));
                    health.ended(number);
                    // Nobody listens any more only when the process ends anyway.
                    let _unheard = told.send(end.with_context(|| format!("worker {number} ended")));
                })
                .with_context(|| format!("starting worker {number}"))?;
        }
        Ok(Self { stop, ends, running: workers })
    }

    /// Asks the workers to settle and to end.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for the next end of a worker.
    pub(super) async fn next_end(&mut self) -> Result<()> {
        let end = self.ends.recv().await;
        self.running = self.running.saturating_sub(1);
        end.unwrap_or(Ok(()))
    }

    /// Waits for the end of all workers. Returns the first failure.
    pub(super) async fn join(&mut self) -> Result<()> {
        let mut result = Ok(());
        while self.running > 0 {
            let end = self.next_end().await;
            result = result.and(end);
        }
        result
    }
}

/// One worker's thread.
struct WorkerThread {
    number: usize,
    config: Config,
    facts: TopicFacts,
    handlers: Handlers,
    stores: StateDirectory,
    health: Arc<Health>,
    stop: Arc<AtomicBool>,
}

impl WorkerThread {
    fn run(&self) -> Result<()> {
        let kafka = self.config.kafka_settings(self.number, &self.facts);
        let mut settings = self.config.worker_settings(self.number, &self.facts);
        settings.rules.handlers = self.handlers.clone();
        let mut observer =
            WorkerObserver::new(self.number, &settings.rules.registry, Arc::clone(&self.health), SystemClock);
        let Some(log) = self.connect(&kafka, &mut observer)? else {
            return Ok(());
        };
        Worker::new(settings, log, self.stores.clone(), SystemClock, observer).run(&self.stop)?;
        Ok(())
    }

    /// Connects, again and again while the cluster is away; `None` when it is asked to stop meanwhile.
    fn connect(
        &self,
        kafka: &crate::log::kafka::settings::KafkaSettings,
        observer: &mut WorkerObserver<SystemClock>,
    ) -> Result<Option<KafkaLog>> {
        while !self.stop.load(Ordering::Relaxed) {
            observer.entered("connect", CONNECT_BOUND);
            let connected = KafkaLog::connect(kafka);
            observer.left();
            match connected {
                Ok(log) => return Ok(Some(log)),
                Err(LogError::Retriable { doing, detail }) => {
                    tracing::warn!(doing, detail, "not connected yet");
                    self.pause();
                }
                Err(error @ LogError::Fatal { .. }) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    fn pause(&self) {
        let until = SystemClock.boot() + CONNECT_PAUSE;
        while SystemClock.boot() < until && !self.stop.load(Ordering::Relaxed) {
            thread::park_timeout(Duration::from_millis(50));
        }
    }
}
