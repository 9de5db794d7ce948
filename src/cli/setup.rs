//! From the flags that all commands share to settings and a connection.
//!
//! Owns [`Setup`]. Never has a default of its own. Keeps: a wrong setting ends the command before anything is done.

use std::time::Duration;

use super::args::{KafkaArgs, SettingsArgs};
use super::failure::Failure;
use crate::config::settings::Config;
use crate::config::sources::Sources;
use crate::log::kafka::tool::Connection;
use crate::timer::kind::{KindNumber, KindRef};

/// Settings, and how long a request may take.
pub(super) struct Setup {
    /// The settings.
    pub(super) config: Config,
    /// The bound on each request to Kafka.
    pub(super) timeout: Duration,
}

impl Setup {
    /// Loads the settings.
    ///
    /// # Errors
    /// When a setting is wrong.
    pub(super) fn load(args: &KafkaArgs) -> Result<Self, Failure> {
        let mut settings = args.settings.clone();
        if let Some(servers) = &args.bootstrap_servers {
            settings.set.push(format!("kafka.bootstrap_servers={servers}"));
        }
        Ok(Self { config: load(&settings)?, timeout: args.timeout })
    }

    /// Prepares a connection.
    ///
    /// # Errors
    /// When the settings are refused.
    pub(super) fn connect(&self) -> Result<Connection, Failure> {
        let kafka = &self.config.kafka;
        Ok(Connection::new(&kafka.bootstrap_servers, &kafka.properties, self.timeout)?)
    }
}

/// Loads the settings from file, environment and flags.
///
/// # Errors
/// When a setting is wrong.
pub(super) fn load(args: &SettingsArgs) -> Result<Config, Failure> {
    let sources = Sources::gather(args.config.as_deref(), &args.set);
    let config = sources.and_then(|sources| Config::load(&sources));
    let config = config.and_then(|config| config.check_properties().map(|()| config));
    config.map_err(|error| Failure::usage(error.to_string()))
}

/// Loads the settings and judges them as a whole, as the service needs them.
///
/// # Errors
/// When a setting is wrong, or some contradict each other.
pub(super) fn load_valid(args: &SettingsArgs) -> Result<Config, Failure> {
    let config = load(args)?;
    config.validate().map_err(|error| Failure::usage(error.to_string()))?;
    Ok(config)
}

/// Reads `--kind`: a number, or else a name.
///
/// # Errors
/// When it is a number that no kind can have, or empty.
pub(super) fn kind_ref(text: &str) -> Result<KindRef, Failure> {
    if text.is_empty() {
        return Err(Failure::usage("--kind is empty").with_remedy("give the kind's number or its name"));
    }
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(KindRef::Name(text.to_owned()));
    }
    match text.parse().ok().and_then(KindNumber::new) {
        Some(number) => Ok(KindRef::Number(number)),
        None => Err(Failure::usage(format!("--kind `{text}` is no kind number"))
            .with_remedy("kinds have numbers from 1 to 239")),
    }
}
