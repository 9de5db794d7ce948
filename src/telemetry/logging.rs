//! Log output.
//!
//! Owns the subscriber of the process. Never logs itself. Keeps: logs go to standard error, so that standard output is for
//! results; `RUST_LOG` wins over the settings; colours show on a terminal only.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

/// Why there is no log output.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// A filter cannot be read.
    #[error("{source_name} `{text}` is no log filter: {detail}; write a level, or module=level with commas between")]
    Filter {
        /// `RUST_LOG` or `log.level`.
        source_name: &'static str,
        /// What was written.
        text: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The process has a subscriber already.
    #[error("log output is set up already")]
    Taken(#[from] TryInitError),
}

/// Sets up the log output of the process. `rust_log` is the variable `RUST_LOG`, which wins over `level` unless it is empty.
///
/// # Errors
/// When the filter cannot be read, or logging is set up already.
pub fn install(format: Format, level: &str, rust_log: Option<&str>) -> Result<(), LoggingError> {
    let filter = filter(level, rust_log)?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        Format::Human => builder.with_ansi(is_coloured()).finish().try_init()?,
        Format::Json => builder.json().flatten_event(true).finish().try_init()?,
    }
    Ok(())
}

/// See <https://no-color.org>.
fn is_coloured() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn filter(level: &str, rust_log: Option<&str>) -> Result<EnvFilter, LoggingError> {
    let (source_name, text) = match rust_log {
        Some(text) if !text.trim().is_empty() => ("RUST_LOG", text),
        Some(_) | None => ("log.level", level),
    };
    EnvFilter::builder().parse(text).map_err(|error| LoggingError::Filter {
        source_name,
        text: text.to_owned(),
        detail: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins_over_the_setting() {
        assert_eq!(filter("info", None).unwrap().to_string(), "info");
        assert_eq!(filter("info", Some("")).unwrap().to_string(), "info");
        assert_eq!(filter("info", Some("warn,punctual=debug")).unwrap().to_string(), "punctual=debug,warn");
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_named() {
        let error = filter("info", Some("punctual=loud")).unwrap_err().to_string();
        assert!(error.starts_with("RUST_LOG `punctual=loud` is no log filter: "), "{error}");
        assert!(error.ends_with("; write a level, or module=level with commas between"), "{error}");
    }
}
