//! The admin server: metrics and probes over HTTP.
//!
//! Owns a listener, and a thread with a runtime of its own. Never serves commands and never touches timers. Keeps: a worker that
//! hangs does not take the probes with it, for they share nothing but [`Health`]; a taken port is an error at start.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::oneshot;

use crate::telemetry::health::{Health, Judgement};
use crate::telemetry::recorder::{Metrics, UPKEEP_INTERVAL};
use crate::time::Clock as _;
use crate::time::system::SystemClock;

const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const PATHS: &str = "there is:\n/metrics\n/livez\n/readyz\n/startupz\n";

/// Why there is no admin server.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The address cannot be listened on.
    #[error("admin.listen: cannot listen on `{address}`; choose a free address and port of this machine")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The machine gives no thread or no runtime.
    #[error("admin server: {0}")]
    Start(#[from] io::Error),
}

/// What the server shows.
#[derive(Clone, Debug)]
struct Shown {
    metrics: Metrics,
    health: Arc<Health>,
}

/// A running admin server.
#[derive(Debug)]
pub struct AdminServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl AdminServer {
    /// Listens on the address and serves until [`AdminServer::stop`].
    ///
    /// # Errors
    /// When the address is taken or not ours: show the text and stop.
    pub fn start(address: SocketAddr, metrics: Metrics, health: Arc<Health>) -> Result<Self, AdminError> {
        let listener = TcpListener::bind(address).map_err(|source| AdminError::Listen { address, source })?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || runtime.block_on(serve(listener, metrics, health, stopped)))?;
        Ok(Self { address, stop, thread })
    }

    /// Returns where it listens: the port that was taken if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops at once; an answer under way is cut off.
    pub fn stop(self) {
        // Neither fails unless the server has ended by itself, and then it has said so.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Returns the paths of the admin server.
pub fn router(metrics: Metrics, health: Arc<Health>) -> Router {
    Router::new()
        .route("/metrics", get(show_metrics))
        .route("/livez", get(show_live))
        .route("/readyz", get(show_ready))
        .route("/startupz", get(show_started))
        .fallback(async || (StatusCode::NOT_FOUND, PATHS))
        .with_state(Shown { metrics, health })
}

async fn serve(listener: TcpListener, metrics: Metrics, health: Arc<Health>, stopped: oneshot::Receiver<()>) {
    let served = async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        axum::serve(listener, router(metrics.clone(), health)).await
    };
    tokio::select! {
        result = served => {
            if let Err(error) = result {
                tracing::error!(%error, "admin server has ended");
            }
        }
        () = keep_up(&metrics) => {}
        _ = stopped => {}
    }
}

/// Runs the recorder's upkeep for ever, so that a process which nobody scrapes stays flat.
async fn keep_up(metrics: &Metrics) {
    let mut interval = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        interval.tick().await;
        metrics.upkeep();
    }
}

async fn show_metrics(State(shown): State<Shown>) -> Response {
    ([(header::CONTENT_TYPE, METRICS_TYPE)], shown.metrics.render()).into_response()
}

async fn show_live(State(shown): State<Shown>) -> Response {
    answer(shown.health.live(SystemClock.boot()))
}

async fn show_ready(State(shown): State<Shown>) -> Response {
    answer(shown.health.ready())
}

async fn show_started(State(shown): State<Shown>) -> Response {
    answer(shown.health.started())
}

fn answer(judgement: Judgement) -> Response {
    let status = if judgement.is_good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, judgement.text).into_response()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;
    use crate::telemetry::recorder::with_own;

    fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn any_port() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    #[test]
    fn metrics_and_probes_are_served() {
        let health = Arc::new(Health::new(1, SystemClock.boot()));
        let server = with_own(|metrics| AdminServer::start(any_port(), metrics.clone(), Arc::clone(&health))).unwrap();
        let metrics = ask(server.address(), "/metrics");
        assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
        assert!(metrics.contains("\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{metrics}");
        assert!(metrics.contains("\npunctual_build_info{version="), "{metrics}");
        assert!(ask(server.address(), "/livez").ends_with("\r\n\r\nlive\n"), "a worker that has just started is live");
        for path in ["/readyz", "/startupz"] {
            let answer = ask(server.address(), path);
            assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
            assert!(answer.ends_with("\r\n\r\nworker 0: has not joined the group yet\n"), "{answer}");
        }
        health.ended(0);
        assert!(ask(server.address(), "/livez").starts_with("HTTP/1.1 503 "), "a worker that has ended is not live");
        let unknown = ask(server.address(), "/health");
        assert!(unknown.starts_with("HTTP/1.1 404 ") && unknown.ends_with(PATHS), "{unknown}");
        server.stop();
    }

    #[test]
    fn a_taken_port_is_named_with_its_key() {
        let taken = TcpListener::bind(any_port()).unwrap();
        let address = taken.local_addr().unwrap();
        let health = Arc::new(Health::new(0, Duration::ZERO));
        let error = with_own(|metrics| AdminServer::start(address, metrics.clone(), health)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("admin.listen: cannot listen on `{address}`; choose")), "{error}");
    }
}
