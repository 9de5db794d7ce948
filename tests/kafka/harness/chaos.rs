//! How large the scenarios are, and on which cluster they run.
//!
//! Owns the meaning of the variables that `make chaos` sets. Keeps: the long forms are the same code as the short ones; on a
//! cluster that is not ours everything has a name of ours, and is removed in the end.

use std::time::Duration;

use rdkafka::ClientConfig;

/// Returns a count of the short form, scaled by `PUNCTUAL_CHAOS_SCALE` (1 if it is not set).
pub(crate) fn scaled(count: u32) -> u32 {
    count * scale()
}

/// The same for a time.
pub(crate) fn scaled_time(time: Duration) -> Duration {
    time * scale()
}

fn scale() -> u32 {
    let Ok(scale) = std::env::var("PUNCTUAL_CHAOS_SCALE") else {
        return 1;
    };
    scale.parse().unwrap_or_else(|_| panic!("PUNCTUAL_CHAOS_SCALE is no whole number: {scale}"))
}

/// Returns the client configuration of the user's cluster in `CHAOS_BROKERS`, if the scenarios are to run there, with the
/// properties `key=value` in `CHAOS_PROPERTIES`, which are separated by spaces.
pub(crate) fn external_cluster() -> Option<ClientConfig> {
    let brokers = std::env::var("CHAOS_BROKERS").ok().filter(|brokers| !brokers.is_empty())?;
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers).set("log_level", "0");
    for (key, value) in properties() {
        config.set(key, value);
    }
    Some(config)
}

/// Returns the properties that every client of that cluster needs.
pub(crate) fn properties() -> Vec<(String, String)> {
    let properties = std::env::var("CHAOS_PROPERTIES").unwrap_or_default();
    let parse = |property: &str| {
        let parts = property.split_once('=');
        let (key, value) = parts.unwrap_or_else(|| panic!("CHAOS_PROPERTIES: no key=value: {property}"));
        (key.to_owned(), value.to_owned())
    };
    properties.split_whitespace().map(parse).collect()
}

/// Returns the name of a deployment: one that says whose it is and that no other run has, where others may have theirs.
pub(crate) fn name(name: &str) -> String {
    match external_cluster() {
        Some(_) => format!("punctual-chaos-{}-{name}", std::process::id()),
        None => name.to_owned(),
    }
}
