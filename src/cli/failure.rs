//! How a command line ends when it does not end well.
//!
//! Owns [`Failure`] and the exit codes. Keeps: each failure is one line that names flag or key and value, and where there
//! is one, a second line with the remedy; a reader that closed the pipe is no failure that anybody wants to read about.

use std::io;

use crate::log::LogError;
use crate::store::StoreError;

/// What the exit code tells. The numbers are public and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Something did not work: a broker away, a file that cannot be read.
    Failed = 1,
    /// The command line or the configuration is wrong; nothing was done.
    Usage = 2,
    /// It worked, and the answer is no: a command was rejected, topics have errors.
    Negative = 3,
    /// The command was sent and no answer came in time: it may still be carried out.
    Unanswered = 4,
}

/// Why a command line ends with another code than 0.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// Something to tell.
    Told {
        /// The exit code.
        code: Code,
        /// What went wrong.
        message: String,
        /// What to do about it.
        remedy: Option<String>,
    },
    /// The output has said it already.
    Answered(Code),
    /// The reader of our output has gone.
    BrokenPipe,
}

impl Failure {
    /// Returns a failure of the world.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Told { code: Code::Failed, message: message.into(), remedy: None }
    }

    /// Returns a mistake on the command line or in the configuration.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Told { code: Code::Usage, message: message.into(), remedy: None }
    }

    /// Returns the failure with a remedy.
    #[must_use]
    pub fn with_remedy(self, text: impl Into<String>) -> Self {
        match self {
            Self::Told { code, message, .. } => Self::Told { code, message, remedy: Some(text.into()) },
            Self::Answered(code) => Self::Answered(code),
            Self::BrokenPipe => Self::BrokenPipe,
        }
    }

    /// Tells the failure on `stderr` and returns the exit code.
    pub fn report(&self, stderr: &mut impl io::Write) -> u8 {
        match self {
            Self::Told { code, message, remedy } => {
                // Nobody is left to tell when stderr is closed.
                let _ = writeln!(stderr, "error: {message}");
                if let Some(remedy) = remedy {
                    let _ = writeln!(stderr, "  {remedy}");
                }
                *code as u8
            }
            Self::Answered(code) => *code as u8,
            Self::BrokenPipe => 0,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::BrokenPipe
        } else {
            Self::failed(format!("cannot write the output: {error}"))
        }
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Retriable { .. } => {
                let message = error.to_string();
                let remedy = remedy(&message);
                Self::failed(message).with_remedy(remedy)
            }
            LogError::Fatal { .. } => Self::failed(error.to_string()),
        }
    }
}

/// Returns what to do when a broker cannot be reached: the words of the client library tell whether it was there.
fn remedy(message: &str) -> &'static str {
    if message.contains("SASL") || message.contains("uthentication") {
        "check security.protocol and sasl.mechanism, sasl.username and sasl.password under kafka.properties"
    } else if message.contains("authorization failed") {
        "the user lacks a right: docs/operations.md lists those that each command needs"
    } else if message.contains("SSL") {
        "check security.protocol, ssl.ca.location and ssl.certificate.location under kafka.properties"
    } else {
        "check --bootstrap-servers (or kafka.bootstrap_servers) and whether the broker runs"
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_stands_on_its_own_line() {
        let mut told = Vec::new();
        let _ = Failure::usage("--at `x` is no instant").with_remedy("write Z").report(&mut told);
        assert_eq!(String::from_utf8(told).unwrap(), "error: --at `x` is no instant\n  write Z\n");
    }

    #[test]
    fn a_broker_that_lets_nobody_in_is_another_remedy_than_one_that_is_away() {
        let remedies = [
            "Connection refused",
            "SSL handshake failed: certificate verify failed",
            "SASL authentication error",
            "Broker: Topic authorization failed",
        ]
        .map(remedy);
        assert!(remedies[0].contains("whether the broker runs"), "{remedies:?}");
        assert!(remedies[1].contains("ssl.ca.location"), "{remedies:?}");
        assert!(remedies[2].contains("sasl.password"), "{remedies:?}");
        assert!(remedies[3].contains("lacks a right"), "{remedies:?}");
    }

    #[test]
    fn a_closed_pipe_is_silent() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        let mut told = Vec::new();
        let _ = failure.report(&mut told);
        assert_eq!((failure, told), (Failure::BrokenPipe, Vec::new()));
    }
}
