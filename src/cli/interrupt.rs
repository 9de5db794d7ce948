//! Ctrl-C and a polite kill, for commands that run until they are told to stop.
//!
//! Owns [`Interrupt`]. Never ends the process: the command looks at it between two records and ends as it always does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::failure::Failure;

/// Whether the person wants the command to end.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on. A second Ctrl-C ends the process at once, should the command hang.
    ///
    /// # Errors
    /// When the system has no room for a thread or a signal handler.
    pub(super) fn listen() -> Result<Self, Failure> {
        let interrupt = Self::default();
        let asked = interrupt.clone();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::failed(format!("cannot listen to signals: {error}")))?;
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(wait_twice(&asked)))
            .map_err(|error| Failure::failed(format!("cannot listen to signals: {error}")))?;
        Ok(interrupt)
    }

    /// Returns whether the command is to end.
    pub(super) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a shell reports for a command ended by Ctrl-C.
const EXIT_INTERRUPTED: i32 = 130;

async fn wait_twice(asked: &Interrupt) {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    let mut next = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    next().await;
    asked.0.store(true, Ordering::Relaxed);
    next().await;
    // Standard output may be locked by what hangs.
    signal_hook::low_level::exit(EXIT_INTERRUPTED);
}
