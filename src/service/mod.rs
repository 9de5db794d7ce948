//! The service: everything put together and run.
//!
//! Owns nothing yet. Keeps: it says so.

use crate::config::settings::Config;

/// Runs the service until it is told to stop.
///
/// # Errors
/// Always, until the service is there.
#[expect(clippy::needless_pass_by_value, reason = "the service will keep its settings")]
pub fn serve(config: Config) -> anyhow::Result<()> {
    config.validate()?;
    anyhow::bail!("this build has no service yet")
}
