//! `punctual config print` and `validate`.
//!
//! Owns nothing but their output: settings explain themselves. Never talks to Kafka.

use super::args::{ConfigArgs, SettingsArgs};
use super::failure::Failure;
use super::output::Output;
use super::setup;

/// Prints every key with its value and its origin.
///
/// # Errors
/// When a setting is wrong.
pub(super) fn print(args: &ConfigArgs, out: &mut Output<'_>) -> Result<(), Failure> {
    let config = setup::load(&args.settings)?;
    Ok(out.line(config.to_yaml().trim_end())?)
}

/// Checks the settings as `serve` does.
///
/// # Errors
/// When `serve` would refuse them.
pub(super) fn validate(args: &SettingsArgs, out: &mut Output<'_>) -> Result<(), Failure> {
    let config = setup::load(args)?;
    config.validate().map_err(|error| Failure::usage(error.to_string()))?;
    let kinds = config.registry().len();
    out.line(&format!("valid: {kinds} kind{}", if kinds == 1 { "" } else { "s" }))?;
    Ok(())
}
