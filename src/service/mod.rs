//! The service: everything wired together, from settings to a clean stop.
//!
//! ```text
//!   preflight ─▶ state directory ─▶ admin server ─▶ workers … signal or failure ─▶ stop ─▶ join within the time-out
//! ```
//!
//! Owns the start, the threads and the end of the process. Decides nothing about timers.
//! Keeps: a bad setting or a wrong topic stops the start by name; a worker that ends takes the process with it, so that an
//! orchestrator sees it.

mod preflight;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use crate::admin::AdminServer;
use crate::config::settings::{Config, LogFormat};
use crate::store::rocks::Resources;
use crate::store::rocks::stores::StateDirectory;
use crate::telemetry::health::Health;
use crate::telemetry::logging;
use crate::telemetry::recorder::Metrics;
use crate::time::Clock;
use crate::time::system::SystemClock;
use threads::{Threads, WorkerParts};

/// Runs the service until a signal stops it.
///
/// # Errors
/// When a setting, a topic or the state directory is wrong, or a worker cannot go on.
pub fn serve(config: &Config) -> Result<()> {
    install_logging(config)?;
    let metrics = Metrics::install().context("installing the metrics recorder")?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        bootstrap_servers = config.kafka.bootstrap_servers,
        group = config.kafka.group,
        instance = config.instance,
        "connecting"
    );
    let facts = preflight::check(config)?;
    let budget = usize::try_from(config.memory_budget_bytes(std::path::Path::new("/"))).unwrap_or(usize::MAX);
    let stores = StateDirectory::lock(&config.state_dir, Resources::new(budget))?;
    for partition in stores.remove_old(SystemClock.wall(), facts.changelog_delete_retention / 2)? {
        tracing::info!(%partition, "old store removed");
    }
    let health = Arc::new(Health::new(config.workers, SystemClock.boot()));
    let admin = AdminServer::start(config.admin_listen, metrics, Arc::clone(&health))?;
    tracing::info!(
        workers = config.workers,
        partitions = facts.partitions,
        admin = %admin.address(),
        memory_budget_bytes = budget,
        "started"
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the edge")?;
    let parts = WorkerParts { config: config.clone(), facts, stores, health };
    let threads = Threads::start(config.workers, &parts)?;
    let result = runtime.block_on(run(threads, config.shutdown_timeout));
    admin.stop();
    result
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
async fn run(mut threads: Threads, shutdown_timeout: Duration) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    let first_end = tokio::select! {
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
        ended = threads.next_end() => Some(ended),
    };
    tracing::info!(timeout_seconds = shutdown_timeout.as_secs(), "stopping");
    threads.stop();
    let all_ended = tokio::time::timeout(shutdown_timeout, threads.join()).await;
    if let Some(Err(error)) = first_end {
        return Err(error);
    }
    match all_ended {
        Ok(result) => result?,
        Err(_) => bail!(
            "a worker did not stop within {} s (shutdown.timeout); what was open is aborted by the broker",
            shutdown_timeout.as_secs()
        ),
    }
    tracing::info!("stopped");
    Ok(())
}
