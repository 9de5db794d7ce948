//! The service: everything wired together, from settings to a clean stop.
//!
//! ```text
//!   admin server, signals ─▶ preflight ─▶ state directory ─▶ workers … signal or failure ─▶ stop ─▶ join within the time-out
//! ```
//!
//! Owns the start, the threads and the end of the process. Decides nothing about timers.
//! Keeps: a bad setting or a wrong topic stops the start by name; a worker that ends takes the process with it, so that an
//! orchestrator sees it.

mod preflight;
mod threads;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::admin::AdminServer;
use crate::config::convert::TopicFacts;
use crate::config::settings::{Config, LogFormat};
use crate::store::rocks::Resources;
use crate::store::rocks::stores::StateDirectory;
use crate::telemetry::health::Health;
use crate::telemetry::logging;
use crate::telemetry::observer::WorkerObserver;
use crate::telemetry::recorder::Metrics;
use crate::time::Clock;
use crate::time::system::SystemClock;
use crate::timer::handler::Handlers;
use crate::worker::observer::Observer;
use threads::{Threads, WorkerParts};

/// How long the look at the topics may take before a probe calls it hung: it waits a minute for a cluster that is away.
const PREFLIGHT_BOUND: Duration = Duration::from_mins(2);
/// What is kept of the time for a stop, so that the process is gone when it is over.
const LEAVE_EARLY: Duration = Duration::from_secs(1);

/// Runs the service until a signal stops it: every kind publishes.
///
/// # Errors
/// When a setting, a topic or the state directory is wrong, or a worker cannot go on.
pub fn serve(config: &Config) -> Result<()> {
    serve_with(config, &Handlers::new())
}

/// Runs the service until a signal stops it, with handlers of your own for some kinds; the others publish. It installs the log
/// output and the metrics of the process, listens to its signals, and blocks the thread.
///
/// # Errors
/// When a handler is for a kind that the settings do not have, when a setting, a topic or the state directory is wrong, or a
/// worker cannot go on.
pub fn serve_with(config: &Config, handlers: &Handlers) -> Result<()> {
    handlers.check(&config.registry())?;
    install_logging(config)?;
    let metrics = Metrics::install().context("installing the metrics recorder")?;
    let health = Arc::new(Health::new(config.workers, SystemClock.boot()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the edge")?;
    // Before anything can be seen of the process: a stop is obeyed from the first moment on, and a probe answered before the
    // first call to Kafka.
    let mut signals = runtime.block_on(async { Signals::listen() })?;
    let admin = AdminServer::start(config.admin_listen, metrics, Arc::clone(&health))?;
    let result = runtime.block_on(async {
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            bootstrap_servers = config.kafka.bootstrap_servers,
            group = config.kafka.group,
            instance = config.instance,
            admin = %admin.address(),
            "connecting"
        );
        let Some(facts) = look_at_topics(config, &health, &mut signals).await? else {
            tracing::info!("stopped");
            return Ok(());
        };
        let threads = start(config, facts, handlers.clone(), health)?;
        run(threads, &mut signals, config.shutdown_timeout).await
    });
    admin.stop();
    // A call to Kafka that is still under way must not hold up the end.
    runtime.shutdown_background();
    result
}

/// Checks settings and topics; `None` when a signal came first.
async fn look_at_topics(config: &Config, health: &Arc<Health>, signals: &mut Signals) -> Result<Option<TopicFacts>> {
    for worker in 0..config.workers {
        WorkerObserver::new(worker, &config.registry(), Arc::clone(health), SystemClock)
            .entered("look at the topics", PREFLIGHT_BOUND);
    }
    let config = config.clone();
    let check = tokio::task::spawn_blocking(move || preflight::check(&config));
    tokio::select! {
        facts = check => Ok(Some(facts.context("looking at the topics")??)),
        () = signals.received() => Ok(None),
    }
}

fn start(config: &Config, facts: TopicFacts, handlers: Handlers, health: Arc<Health>) -> Result<Threads> {
    let budget = usize::try_from(config.memory_budget_bytes(Path::new("/"))).unwrap_or(usize::MAX);
    let stores = StateDirectory::lock(&config.state_dir, Resources::new(budget))?;
    for partition in stores.remove_old(SystemClock.wall(), facts.changelog_delete_retention / 2)? {
        tracing::info!(%partition, "old store removed");
    }
    tracing::info!(workers = config.workers, partitions = facts.partitions, memory_budget_bytes = budget, "started");
    Threads::start(config.workers, &WorkerParts { config: config.clone(), facts, handlers, stores, health })
}

/// The signals that ask for a stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("listening for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("listening for SIGINT")?,
        })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn install_logging(config: &Config) -> Result<()> {
    let format = match config.log.format {
        LogFormat::Human => logging::Format::Human,
        LogFormat::Json => logging::Format::Json,
    };
    logging::install(format, config.log.level, std::env::var("RUST_LOG").ok().as_deref())?;
    Ok(())
}

/// Waits for a signal or the end of a worker, then stops the others.
async fn run(mut threads: Threads, signals: &mut Signals, shutdown_timeout: Duration) -> Result<()> {
    let first_end = tokio::select! {
        () = signals.received() => None,
        ended = threads.next_end() => Some(ended),
    };
    tracing::info!(timeout_seconds = shutdown_timeout.as_secs(), "stopping");
    threads.stop();
    let patience = shutdown_timeout.saturating_sub(LEAVE_EARLY).max(shutdown_timeout / 2);
    let all_ended = tokio::time::timeout(patience, threads.join()).await;
    if let Some(Err(error)) = first_end {
        return Err(error);
    }
    if let Ok(result) = all_ended {
        result?;
        tracing::info!("stopped");
    } else {
        // No failure: the broker aborts what is open, and nothing that was accepted is lost.
        let seconds = patience.as_secs();
        tracing::warn!(seconds, "a worker is still in a call to Kafka (shutdown.timeout), leaving as after a crash");
    }
    Ok(())
}
