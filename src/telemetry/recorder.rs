//! The recorder behind the metrics, and what `/metrics` shows.
//!
//! Owns the Prometheus recorder of the process. Never listens and starts no thread: the admin server renders it and runs
//! [`Metrics::upkeep`]. Keeps: histograms have buckets, and a process that is never scraped does not grow.

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use super::metrics::{ALL, BUILD_INFO, Metric, Shape};
use crate::calendar::zone;

/// Every value since the last upkeep takes memory, 8 bytes in a histogram: at 5,000 fires a second this is some hundred kilobytes.
pub const UPKEEP_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);

/// The metrics of this process.
#[derive(Clone, Debug)]
pub struct Metrics {
    handle: PrometheusHandle,
}

impl Metrics {
    /// Makes this process's metrics go to a recorder of ours.
    ///
    /// # Errors
    /// When the process has a recorder already.
    pub fn install() -> Result<Self, BuildError> {
        let recorder = recorder()?;
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(BuildError::from)?;
        describe();
        Ok(Self { handle })
    }

    /// Returns the metrics in Prometheus' text format.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    /// Moves what was recorded into the buckets; to be called every [`UPKEEP_INTERVAL`].
    pub fn upkeep(&self) {
        self.handle.run_upkeep();
    }
}

fn recorder() -> Result<PrometheusRecorder, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for Metric { name, shape, .. } in ALL {
        if let Shape::Histogram(buckets) = shape {
            builder = builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), buckets.seconds())?;
        }
    }
    Ok(builder.build_recorder())
}

fn describe() {
    for Metric { name, shape, help, .. } in ALL {
        match shape {
            Shape::Counter => metrics::describe_counter!(name, help),
            Shape::Gauge => metrics::describe_gauge!(name, help),
            Shape::Histogram(_) => metrics::describe_histogram!(name, help),
        }
    }
    metrics::gauge!(BUILD_INFO.name, "version" => env!("CARGO_PKG_VERSION"), "zone_database" => zone::database_version()).set(1.0);
}

/// Runs `body` with a recorder of its own instead of the process's, for tests of what records.
#[cfg(test)]
pub(crate) fn with_own<T>(body: impl FnOnce(&Metrics) -> T) -> T {
    let recorder = recorder().unwrap();
    let own = Metrics { handle: recorder.handle() };
    metrics::with_local_recorder(&recorder, || {
        describe();
        body(&own)
    })
}
